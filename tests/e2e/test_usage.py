"""Bad input: exit 2, one line on stderr that says what to do, and nothing else (C1.6).

In this very process, for speed; a few real ones prove that it is the same there.
"""

import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from tests.e2e.command import Ended, Place, steering
from watcher.cli import main

Call = Callable[..., Ended]

# Whatever the sentence is, it says what to do: in a hint, or by an example.
ADVICE = re.compile(
    r"; veja '|; use |: use |; diga |; dê |; confira|; corrija|; retire|: defina "
)

few = settings(
    max_examples=40,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

# What can stand on a command line: no NUL, and odd bytes as Python shows them.
WORDS = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"])
    | st.sampled_from("\udc80\udcff\x1b\n\u202e"),
    max_size=30,
)


@pytest.fixture
def call(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Call:
    """Give a function that runs a command here as if it had been started."""
    for name, value in place.env.items():
        if name.startswith("KODER_MONITOR_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("KODER_MONITOR_SETTLE", "1ms")
    monkeypatch.setenv("TTL", "1s")  # what is not refused must not wait for ever
    monkeypatch.chdir(place.folder)

    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["koder-monitor", *words])
        with pytest.raises(SystemExit) as stopped:
            sys.exit(main())
        status = stopped.value.code
        assert isinstance(status, int)
        out, err = (stream.decode("utf-8") for stream in capfdbinary.readouterr())
        assert steering((out + err).replace("\n", "")) == []
        assert "Traceback" not in err
        return Ended(status=status, out=out, err=tuple(err.splitlines()))

    return run


def refused(ended: Ended) -> str:
    """Return the one line that says what is wrong and what to do."""
    assert (ended.status, ended.out) == (2, "")
    (line,) = ended.err
    assert line.startswith("koder-monitor: erro: ")
    assert ADVICE.search(line), line
    return line


# Options: (words, what the line must name)

COMMON = {
    "--ttl": ["--ttl", "1h30"],
    "--ttl without value": ["--ttl"],
    "--ttl empty": ["--ttl="],
    "--every": ["--every", "1.5h"],
    "--every without value": ["--every"],
    "--every zero": ["--every", "0"],
    "--resume without value": ["--resume"],
    "--label generic": ["--label", "aguardando"],
    "--label empty": ["--label", ""],
    "--label without value": ["--label"],
    "--session": ["--session", "../x"],
    "--session empty": ["--session="],
    "--session without value": ["--session"],
    "--json with a value": ["--json=yes"],
    "--exit-codes with a value": ["--exit-codes=1"],
    "--lang": ["--lang", "fr"],
    "--lang without value": ["--lang"],
    "an unknown option": ["--detached-from-reality"],
    "an abbreviation": ["--exit"],
    "one word too many": ["more"],
}
TARGETS = {"lock": ["lock", "demo"], "process": ["process", "--match", "no-such-work"]}


@pytest.mark.parametrize("words", COMMON.values(), ids=COMMON)
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_bad_common_option_is_refused_by_every_command(
    call: Call, target: list[str], words: list[str]
) -> None:
    refused(call(*target, *words))


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([], id="nothing"),
        pytest.param([""], id="an empty command"),
        pytest.param(["locks", "demo"], id="an unknown command"),
        pytest.param(["--ttl", "1h", "lock", "demo"], id="an option too early"),
        pytest.param(["--version=1"], id="a value for --version"),
        pytest.param(["--help=1"], id="a value for --help"),
        pytest.param(["lock"], id="no lock"),
        pytest.param(["lock", ""], id="an empty slug"),
        pytest.param(["lock", "-demo"], id="a slug like an option"),
        pytest.param(["lock", "--", "-demo"], id="the same behind --"),
        pytest.param(["lock", ".hidden"], id="a dot first"),
        pytest.param(["lock", "two words"], id="a space"),
        pytest.param(["lock", "café"], id="a slug beyond ASCII"),
        pytest.param(["lock", "demo\n"], id="a newline"),
        pytest.param(["lock", "s" * 129], id="too long a slug"),
        pytest.param(["lock", "./locks/"], id="a directory"),
        pytest.param(["lock", "/"], id="the root"),
        pytest.param(["lock", "./" + "n" * 256], id="too long a name"),
        pytest.param(["lock", "./" + "n/" * 2048 + "n"], id="too long a path"),
        pytest.param(["process"], id="no process"),
        pytest.param(["process", "work"], id="a bare word"),
        pytest.param(["process", "--pid", "1", "--match", "x"], id="two names"),
        pytest.param(["process", "--pid"], id="--pid without value"),
        pytest.param(["process", "--pid", ""], id="an empty PID"),
        pytest.param(["process", "--pid", "0"], id="PID 0"),
        pytest.param(["process", "--pid=-1"], id="a negative PID"),
        pytest.param(["process", "--pid", "4194305"], id="too large a PID"),
        pytest.param(["process", "--pid", "0000004194305"], id="large behind zeros"),
        pytest.param(["process", "--pid", "1" * 400], id="a huge PID"),
        pytest.param(["process", "--pid", "00000001" + "9" * 30], id="huge with zeros"),
        pytest.param(["process", "--pid", "12a"], id="no number"),
        pytest.param(["process", "--pid", "1.0"], id="a fraction"),
        pytest.param(["process", "--pid", "١٢"], id="other digits"),
        pytest.param(["process", "--pidfile"], id="--pidfile without value"),
        pytest.param(["process", "--pidfile", ""], id="an empty pidfile"),
        pytest.param(["process", "--pidfile", "n" * 256], id="too long a pidfile"),
        pytest.param(["process", "--match"], id="--match without value"),
        pytest.param(["process", "--match", ""], id="an empty pattern"),
        pytest.param(["process", "--match", "  "], id="a blank pattern"),
        pytest.param(["process", "--regex"], id="--regex without value"),
        pytest.param(["process", "--regex", ""], id="an empty expression"),
        pytest.param(["process", "--regex", "("], id="an open bracket"),
        pytest.param(["process", "--regex", "*"], id="nothing to repeat"),
        pytest.param(["process", "--regex", "["], id="an open set"),
        pytest.param(["process", "--regex", "a{9999999999}"], id="too many repeats"),
        pytest.param(["process", "--regex", "(?<=a+)b"], id="what re refuses"),
        pytest.param(["process", "--regex", "(" * 5000], id="deep brackets"),
        pytest.param(
            ["process", "--pid", "1", "--take"],
            id="--take for a process",
        ),
        pytest.param(
            ["process", "--match", "x", "--start-within"],
            id="--start-within without value",
        ),
        pytest.param(
            ["process", "--match", "x", "--start-within", "soon"],
            id="--start-within no duration",
        ),
        pytest.param(
            ["process", "--pid", "1", "--start-within", "5s"],
            id="--start-within for a PID",
        ),
    ],
)
def test_a_bad_call_is_refused_in_one_line(call: Call, words: list[str]) -> None:
    refused(call(*words))


def test_a_warning_waits_until_the_call_is_known_to_be_right(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KODER_MONITOR_FLOOR")
    refused(call("lock", "demo", "--every", "1s", "--ttl", "x"))
    refused(call("lock", "no slug", "--every", "1s"))


def test_without_a_lock_directory_a_slug_is_refused(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KODER_MONITOR_LOCKS_DIR")
    assert "KODER_MONITOR_LOCKS_DIR" in refused(call("lock", "demo"))


def test_in_a_deleted_directory_a_relative_path_is_refused(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with monkeypatch.context() as patch:
        patch.chdir(gone)
        gone.rmdir()
        ended = call("lock", "./x.lock")
    assert (ended.status, ended.out, len(ended.err)) == (2, "", 1)
    assert "foi apagado; vá para outro" in ended.err[0]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["lock", "demo", "--ttl", "x", "--lang", "en"],
            "error: --ttl x is no duration",
        ),
        (["lock", "demo", "--ttl", "x", "--lang=en"], "error: --ttl x is no duration"),
        (["--lang", "en"], "see 'koder-monitor --help'"),
    ],
)
def test_an_error_is_told_in_the_language_that_was_asked_for(
    call: Call, words: list[str], sentence: str
) -> None:
    ended = call(*words)
    assert (ended.status, len(ended.err)) == (2, 1)
    assert sentence in ended.err[0]


# Durations: B85, B87

DURATIONS = {
    "45s": 45,
    "30m": 1800,
    "1h30m": 5400,
    "19h": 68400,
    "2d": 172800,
    "1d2h3m4s": 93784,
    "90": 90,
    "0h5s": 5,
    "60d": 5184000,
    "365d": 31536000,
    "31536000": 31536000,
}


@pytest.mark.parametrize(("text", "seconds"), DURATIONS.items())
def test_a_ttl_is_exactly_what_was_written(call: Call, text: str, seconds: int) -> None:
    assert call("lock", "demo", "--ttl", text, "--json").object["ttl_s"] == seconds


@pytest.mark.parametrize(
    ("env", "words", "seconds"),
    [
        pytest.param(None, [], 3600, id="an hour by default"),
        pytest.param("120", [], 120, id="the environment, in seconds"),
        pytest.param("2m", [], 120, id="the environment, a duration"),
        pytest.param(" 90 ", [], 90, id="the environment, with spaces"),
        pytest.param("", [], 3600, id="an empty variable is none"),
        pytest.param("2m", ["--ttl", "5"], 5, id="the option goes first"),
        pytest.param("x", ["--ttl=5m"], 300, id="whatever the variable says"),
    ],
)
def test_the_ttl_comes_from_the_option_else_from_the_environment(
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    env: str | None,
    words: list[str],
    seconds: int,
) -> None:
    monkeypatch.delenv("TTL")
    if env is not None:
        monkeypatch.setenv("TTL", env)
    assert call("lock", "demo", *words, "--json").object["ttl_s"] == seconds


NO_DURATIONS = [
    "1h30",
    "1.5h",
    "1h 30m",
    "1H",
    "30m1h",
    "1h1h",
    "-5m",
    "0",
    "0s",
    "",
    " ",
    "inf",
    "nan",
    "1e3s",
    "٣h",
    "366d",
    "3650d",
    "9999999999s",
    "31536001",
    "1e30s",
    "45s ",
    "45s\n",
    "+5",
    "5_0",
    "0x10",
    "½h",
    "9" * 5000,
]


@pytest.mark.parametrize("option", ["--ttl", "--every", "--start-within"])
@pytest.mark.parametrize("text", NO_DURATIONS, ids=ascii)
def test_what_is_no_duration_is_refused(call: Call, option: str, text: str) -> None:
    line = refused(call("process", "--match", "x", f"{option}={text}"))
    assert f"{option} " in line


@given(text=WORDS)
@example(text="1h30")
@few
def test_no_text_is_silently_some_other_duration(call: Call, text: str) -> None:
    units = r"(?:[0-9]+d)?(?:[0-9]+h)?(?:[0-9]+m)?(?:[0-9]+s)?|[0-9]+"
    assume(not re.fullmatch(units, text) or not text)
    for option in ("--ttl", "--every", "--start-within"):
        refused(call("process", "--match", "x", f"{option}={text}"))


@pytest.mark.parametrize("text", ["x", "0", "-5", "1h30", "1.5", "366d"])
def test_a_ttl_of_the_environment_that_is_none_is_refused(
    call: Call, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("TTL", text)
    assert f"TTL {text}" in refused(call("lock", "demo"))


# Labels and names: C2.4, C1.2


@given(
    word=st.sampled_from(["aguardando", "waiting", "wait", "teste"]),
    around=st.text(" .…!?-_:", max_size=4),
    upper=st.booleans(),
)
@few
def test_a_generic_label_is_refused_with_a_hint(
    call: Call, word: str, around: str, *, upper: bool
) -> None:
    label = around + (word.upper() if upper else word) + around
    line = refused(call("lock", "demo", f"--label={label}"))
    assert "como 'build da API'" in line


@given(text=WORDS)
@few
def test_what_is_no_slug_is_refused(call: Call, text: str) -> None:
    assume("/" not in text)
    assume(not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", text))
    refused(call("lock", "--", text))


@given(text=WORDS)
@few
def test_what_is_no_session_is_refused(call: Call, text: str) -> None:
    assume(not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}", text))
    refused(call("lock", "demo", f"--session={text}"))


@given(text=WORDS | st.integers().map(str))
@few
def test_what_is_no_pid_is_refused(call: Call, text: str) -> None:
    assume(not (re.fullmatch("[0-9]+", text) and 0 < int(text) <= 4194304))
    refused(call("process", f"--pid={text}"))


@given(text=st.text("abc()[]{}*+?\\|^$.<>=!:-,0123456789P", min_size=1, max_size=12))
@few
def test_an_expression_that_python_refuses_is_refused(call: Call, text: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(text)
    except re.error:
        refused(call("process", f"--regex={text}"))
    else:
        assume(False)


@given(text=WORDS)
@few
def test_an_unknown_language_is_refused(call: Call, text: str) -> None:
    assume(text not in {"pt", "en"})
    refused(call("lock", "demo", f"--lang={text}"))


# Settings

SECRET = "secret-of-this-test"


@pytest.mark.parametrize(
    ("env", "named"),
    [
        ({"KODER_MONITOR_FLOOR": "fast"}, "KODER_MONITOR_FLOOR fast"),
        ({"KODER_MONITOR_FLOOR": "0"}, "KODER_MONITOR_FLOOR 0"),
        ({"KODER_MONITOR_SETTLE": "1us"}, "KODER_MONITOR_SETTLE 1us"),
        ({"KODER_MONITOR_NOTIFY_URL": "ftp://127.0.0.1/"}, "ftp://127.0.0.1/"),
        ({"KODER_MONITOR_NOTIFY_URL": "127.0.0.1"}, "http://"),
        ({"KODER_MONITOR_NOTIFY_URL": f"http://me:{SECRET}@127.0.0.1/"}, "senha"),
        ({"KODER_MONITOR_NOTIFY_URL": "http://127.0.0.1:x/"}, "http://"),
        ({"KODER_MONITOR_CONFIG": "none.toml"}, "none.toml"),
        ({"KODER_MONITOR_CONFIG": "."}, "corrija o arquivo"),
    ],
)
def test_a_bad_setting_of_the_environment_is_refused(
    call: Call, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], named: str
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    line = refused(call("lock", "demo"))
    assert named in line
    assert SECRET not in line


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[cadense]\nlocal = '1m'\n", "cadense"),
        ("[cadence]\nlocale = '1m'\n", "cadence.locale"),
        ("[cadence]\nlocal = 'soon'\n", "config.toml"),
        ("[cadence]\nlocal = 30\n", "config.toml"),
        ("[notify]\nauth = 'basic'\n", "bearer"),
        ("lang = 'fr'\n", "config.toml"),
        ("lang = \n", "config.toml"),
        ("locks = 'x'\n", "config.toml"),
        ("lang = '\udcff'\n", "config.toml"),
        ("[cadence]\n" * 2, "config.toml"),
        ("x = " + "[" * 10000, "config.toml"),
    ],
    ids=range(11),
)
def test_a_bad_configuration_file_is_refused(
    call: Call, monkeypatch: pytest.MonkeyPatch, place: Place, text: str, named: str
) -> None:
    path = place.folder / "config.toml"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    monkeypatch.setenv("KODER_MONITOR_CONFIG", str(path))
    assert named in refused(call("lock", "demo"))


# Anything at all

OPTIONS = [
    *("lock", "process", "demo", "./free.lock", "--", "-", "", "-h", "--help"),
    *("--version", "--ttl", "--ttl=1s", "--every", "--every=1s", "--resume", "--label"),
    *("--session", "--json", "--exit-codes", "--lang", "--lang=en", "--lang=pt", "en"),
    *(
        "--pid",
        "--pid=4194304",
        "--pidfile",
        "--match",
        "--regex",
        "--start-within",
        "--take",
        *("--log", "--pass", "--fail", "--stalled", "--from-start", "--host=-x"),
    ),
]


@given(words=st.lists(st.sampled_from(OPTIONS) | WORDS.map("☃".__add__), max_size=8))
@settings(few, max_examples=150)
def test_no_words_at_all_make_it_stumble(call: Call, words: list[str]) -> None:
    """At the worst it waits a second: the last --ttl on a command line counts."""
    ended = call(*words, "--ttl=1s")
    assert ended.status in {0, 2, 6, 124}
    if ended.status == 2:
        assert (ended.out, len(ended.err)) == ("", 1)
        assert ended.err[0].startswith("koder-monitor: err")


def test_an_error_quotes_no_more_of_the_input_than_a_reader_can_take(
    call: Call,
) -> None:
    for words in (
        ["lock", "s" * 100_000],
        ["lock", "demo", "--lang", "x" * 100_000],
        ["lock", "demo", "--ttl", "x" * 100_000],
        ["process", "--regex", "(" + "x" * 100_000],
    ):
        assert len(refused(call(*words))) < 1000


# As real processes


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([], id="nothing"),
        pytest.param(["lock", "no slug"], id="lock"),
        pytest.param(["process", "--regex", "("], id="process"),
        pytest.param(["lock", "demo", b"--ttl=\xff\x1b[2J"], id="odd bytes"),
    ],
)
@pytest.mark.parametrize("env", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_a_real_process_refuses_in_the_same_way(
    place: Place, words: list[str | bytes], env: dict[str, str]
) -> None:
    refused(place.run(*words, env={"PYTHONCOERCECLOCALE": "0", **env}))


def test_a_refusal_that_nobody_can_read_is_still_exit_2(place: Place) -> None:
    for closing in ("2>&-", "2> /dev/full", ">&- 2>&-"):
        ended = place.shell(f"koder-monitor lock 'no slug' {closing}").end()
        assert (ended.status, ended.out, ended.err) == (2, "", ())


def test_every_option_of_the_help_is_refused_somewhere_above(call: Call) -> None:
    """A new option must get its bad input."""
    tried = "\n".join([*map(" ".join, COMMON.values()), *OPTIONS])
    for command in TARGETS:
        text = call(command, "--help").out
        for option in re.findall(r"--[a-z][a-z-]+", text):
            assert option in tried, option
