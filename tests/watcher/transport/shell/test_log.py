"""A log read by each shell there is; what it sees is tested with the part (B68)."""

import os
from pathlib import Path

import pytest

from tests.watcher.onhost.logs import SHELLS, Here, Shell, append
from watcher.onhost.log import packed
from watcher.transport.shell import log


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> Shell:
    return Shell(SHELLS[request.param])


NAMES = [
    "a b/x 'y' $HOME.log",
    "-n",
    "*",
    "$(touch pwned)`touch pwned`",
    'a"b\\c',
    "a\nb.log",
    "é\udcff.log",
    "No such file or directory",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_means_itself_and_no_other_file(
    shell: Shell, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    request = {"op": "log", "path": str(path), "offset": 0}
    missing = shell.read(request)
    assert (missing["there"], missing["file"]) == (None, None)
    path.write_bytes(b"PASS\n")
    (tmp_path / "other").write_bytes(b"FAIL\n" * 9)
    found = shell.read(request)
    assert found["there"] == [path.stat().st_ino, 5]
    assert "pwned" not in os.listdir(tmp_path)
    assert "pwned" not in os.listdir()


def test_it_answers_as_the_reader_does(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"0123456789" * 20000)
    stat = path.stat()
    here = Here()
    for asked in ({}, {"offset": 0}, {"offset": 70, "inode": stat.st_ino}):
        request = {"op": "log", "path": str(path), **asked}
        one, other = here.read(request), shell.read(request)
        one["data"] = packed(one["data"])
        for answer in (one, other):
            answer["device"] = None
            answer["file"] = answer["file"][:2]
        assert other == one
    here.close()


def test_no_expression_is_in_the_script() -> None:
    request = {"op": "log", "path": "/l/x.log", "pass": "PASS", "fail": "FAIL"}
    assert "PASS" not in log.script(request)
    assert "FAIL" not in log.script(request)


def test_a_file_far_behind_its_beginning_is_not_read_up_to_there(
    shell: Shell, tmp_path: Path
) -> None:
    path = tmp_path / "x.log"
    path.touch()
    os.truncate(path, 1 << 40)
    append(path, b"PASS\n")
    request = {"op": "log", "path": str(path)}
    assert shell.read(request)["offset"] == (1 << 40) + 5 - log._TAIL


@pytest.mark.parametrize(
    "output",
    [
        b"noise\n",
        b"device 1",
        b"device 1\nthere 1\n",
        b"device 1\nthere one two\n",
        b"device 1\nfile 1 2\ndata x\n",
        b"device 1\nthere 1 2\nfile 1 2\n",
        b"",
    ],
)
def test_what_is_no_answer_is_refused(output: bytes) -> None:
    with pytest.raises((ValueError, KeyError)):
        log.answer({"op": "log", "path": "/x"}, output)


@pytest.mark.parametrize(
    ("output", "name", "text"),
    [
        (b"error EACCES\n", "EACCES", "/x/y"),
        (b"error ? \n", "", "/x/y"),
        (b"error ? ls: /x: Input/output error \n", "", "ls: /x: Input/output error"),
        (
            b"error ? ls: cannot access '/x/.': No such file or directory\n",
            "ENOENT",
            "ls: cannot access '/x/.': No such file or directory",
        ),
    ],
)
def test_what_it_could_not_see_is_said(output: bytes, name: str, text: str) -> None:
    found = log.answer({"op": "log", "path": "/x/y"}, output)
    assert found == {"error": {"errno": name, "text": text}}


def test_a_device_that_stat_cannot_tell_is_not_known() -> None:
    found = log.answer({"op": "log", "path": "/x", "offset": 0}, b"device \n")
    assert found["device"] is None
