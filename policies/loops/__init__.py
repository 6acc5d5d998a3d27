"""The loop guard: a hand-made wait, and the koder-monitor command in its place (C11.3).

`glance` says whether a command is worth parsing; only then is `suggestion` imported.
"""
