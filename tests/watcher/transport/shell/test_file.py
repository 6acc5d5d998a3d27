"""Files by POSIX sh: the same answers as the part's, without near names."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.watcher.rights import closed_to_others, open_folder
from tests.watcher.transport.shell.shells import NAMES, SHELLS, program, run
from watcher.onhost import answer
from watcher.onhost import file as part
from watcher.transport.shell import file as shell_part

each_shell = pytest.mark.parametrize("shell", SHELLS, ids=NAMES)


def request(path: Path | str, *, follow: bool = False) -> dict[str, Any]:
    return {"op": "file", "path": str(path), "near": False, "follow": follow}


def judged(
    path: Path | str, found: dict[str, Any], memory: dict[str, Any] | None = None
) -> dict[str, Any]:
    spec = {"path": str(path), "awaits": "gone"}
    return part.judge(spec, memory or {}, [found], {"up_s": 0, "at": 0})


@each_shell
@pytest.mark.parametrize(
    "name",
    ["file", "a b/x 'y' $HOME", "no/such/file", "never", "file/below", "-n", "d", "l"],
)
def test_a_shell_sees_what_the_part_sees(
    shell: list[str], tmp_path: Path, name: str
) -> None:
    """B68 among them."""
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "x 'y' $HOME").touch()
    (tmp_path / "d").mkdir()
    (tmp_path / "l").symlink_to("nowhere")
    (tmp_path / "file").touch()
    path = tmp_path / name
    own, found = answer(request(path)), run(shell, shell_part, request(path))
    assert judged(path, found)["sight"] == judged(path, own)["sight"]
    if "error" not in own:
        assert bool(found["entry"]) is bool(own["entry"])
    if own.get("entry") or name == "never":
        assert found["chain"][-1][:2] == own["chain"][-1][:2]


@each_shell
def test_a_file_is_gone_in_the_very_directory_that_was_seen(
    shell: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "d" / "file"
    path.parent.mkdir()
    path.touch()
    held = judged(path, run(shell, shell_part, request(path)))
    assert held["sight"] == "held"
    path.unlink()
    free = judged(path, run(shell, shell_part, request(path)), held["memory"])
    assert free["sight"] == "released"
    path.parent.rename(tmp_path / "aside")
    lost = judged(path, run(shell, shell_part, request(path)), held["memory"])
    assert lost["reason"][0] == "directory_vanished"
    path.parent.mkdir()
    other = judged(path, run(shell, shell_part, request(path)), held["memory"])
    assert other["reason"][0] == "unmounted"


@each_shell
def test_every_change_shows(shell: list[str], tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("x")
    link.symlink_to(path)
    wanted = request(link, follow=True)
    seen = [run(shell, shell_part, wanted)["entry"]]
    path.write_text("xy")
    seen.append(run(shell, shell_part, wanted)["entry"])
    os.utime(path, ns=(1, 123456789))
    seen.append(run(shell, shell_part, wanted)["entry"])
    assert run(shell, shell_part, wanted)["entry"] == seen[-1]
    assert len({tuple(one) for one in seen}) == 3
    assert seen[0] != run(shell, shell_part, request(link))["entry"]


@each_shell
def test_a_directory_that_is_closed_is_no_missing_one(shell: list[str]) -> None:
    with open_folder() as folder:
        path = folder / "d" / "file"
        path.parent.mkdir()
        with closed_to_others(path.parent):
            found = run(shell, shell_part, request(path))
    assert judged(path, found)["reason"] == ["denied", {"path": str(path)}]


BSD = """\
[ "$1" != -c ] || { echo 'stat: illegal option -- c' >&2; exit 1; }
[ "$1" = -L ] && { shift; one=-L; }
[ "$1" = -c ] && { echo 'stat: illegal option -- c' >&2; exit 1; }
[ "$1" = -f ] || exit 1
exec %s ${one:-} -c '%%d %%i %%f %%s %%.9Y %%.9Z' "$3"
"""


@each_shell
def test_the_stat_of_bsd_serves_as_well(shell: list[str], tmp_path: Path) -> None:
    real = shutil.which("stat")
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", "stat", BSD % real)
    path = tmp_path / "file"
    free = run(shell, shell_part, request(path), tmp_path / "bin")
    assert judged(path, free)["sight"] == "released"
    path.touch()
    for follow in (False, True):
        wanted = request(path, follow=follow)
        found = run(shell, shell_part, wanted, tmp_path / "bin")
        assert found["chain"][-1] == [*answer(wanted)["chain"][-1][:2], None]
        assert found["entry"][1] == str(path.stat().st_ino)
        assert len(found["entry"]) == 6


@pytest.mark.parametrize(
    ("said", "errno"),
    [
        pytest.param("", "EIO", id="nothing"),
        pytest.param("directory sh: stat: not found", "EIO", id="no stat"),
        pytest.param("missing stat: /x: Stale file handle", "ESTALE", id="stale"),
        pytest.param("missing 1 2 3 4 5 6", "EIO", id="there, and not to be entered"),
        pytest.param(
            "directory 1 2 3 4 5 6\nentry stat: x: Permission denied", "EACCES", id="no"
        ),
        pytest.param("directory 1 2 3 4 5 6\nentry 1 2", "EIO", id="cut"),
        pytest.param("directory 1 2 3 4 5 6", "EIO", id="cut earlier"),
    ],
)
def test_what_is_no_answer_is_unknown(said: str, errno: str) -> None:
    found: dict[str, Any] = dict(shell_part.answer(request("/a/b"), said.encode()))
    assert found["error"]["errno"] == errno
    assert judged("/a/b", found)["sight"] == "unknown"
