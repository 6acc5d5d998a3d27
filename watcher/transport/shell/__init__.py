"""The parts of `watcher.onhost` in POSIX sh, for hosts without a usable Python.

A module here has the name of its part and two functions, which give the same answers:

    script(request) -> str        text for /bin/sh; every foreign value is quoted by
                                  `shlex.quote`, no pattern is ever in it
    answer(request, output) -> answer   of the bytes that the script wrote

The session frames each script, so that an answer without its own end is none. A script
runs in a shell of its own, in the C locale, with nothing to read, its errors dropped,
for a few seconds at most; whatever it leaves behind in variables is lost. `$session` is
the PID of the shell of the session: all that descends from it is our own side.
"""
