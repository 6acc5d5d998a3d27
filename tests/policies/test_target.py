"""Targets: what they name, and their one canonical text (C1.2, C1.4)."""

import posixpath
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.target import (
    MAX_PID,
    absolute,
    is_possible_path,
    is_session,
    is_slug,
    lock_file,
    lock_target,
    match_target,
    pid_target,
    pidfile_target,
    regex_target,
    says_nothing,
    slug_of,
)
from tests.policies.samples import ALWAYS
from watcher.cli.parser import parse

slugs = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", fullmatch=True)
# Words of a command line: bytes that were no UTF-8 come as PEP 383 surrogates.
argument = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    | st.sampled_from("-'\"\\ \n$`=#\udc80\udcff"),
    min_size=1,
)
paths = argument.map(lambda text: absolute(text, "/l"))


@pytest.mark.parametrize(
    "text",
    ["a", "0", "meta-context", "v1.2_rc-3", "A.", "a" * 128, "a..b", "lock-a.md"],
)
def test_a_slug_is_letters_digits_and_a_few_signs(text: str) -> None:
    assert is_slug(text)
    assert is_session(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".a",
        "a/b",
        "a b",
        "a\n",
        "á",
        "٣",
        "a" * 129,
        "a*",
        "~",
        "..",
        "a\0",
        "a\udcff",
    ],
)
def test_anything_else_is_no_slug_and_no_session(text: str) -> None:
    assert not is_slug(text)
    assert not is_session(text)


@pytest.mark.parametrize("text", ["-a", "_a", "-", "_"])
def test_a_session_may_begin_with_a_dash(text: str) -> None:
    assert is_session(text)
    assert not is_slug(text)


@pytest.mark.parametrize(
    "label",
    [
        "aguardando",
        "Aguardando...",
        "waiting",
        "wait",
        "WAIT!",
        "teste",
        "testing …",
        "  espera : ",
        "rótulo",
        "",
        "   ",
        "\u00a0\u2003",
        "wait\r",
        "...",
        "--",
    ],
)
def test_a_generic_label_says_nothing(label: str) -> None:
    assert says_nothing(label)


@pytest.mark.parametrize(
    "label",
    [
        "build da API",
        "teste de carga",
        "wait-for-db",
        "soak 12h",
        "t",
        "✅",
        "日本",
        "a.b",
    ],
)
def test_a_label_that_tells_one_watch_from_another_is_taken(label: str) -> None:
    assert not says_nothing(label)


@ALWAYS
@given(slugs)
def test_a_slug_and_its_lock_file_name_each_other(slug: str) -> None:
    assert slug_of(lock_file(slug)) == slug


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a.md",
        "lock-a",
        "lock-.md",
        "lock--a.md",
        "lock-a b.md",
        "lock-a.md.swp",
        "lock-a.md\n",
        "LOCK-a.md",
        ".lock-a.md",
        f"lock-{'a' * 129}.md",
    ],
)
def test_any_other_file_has_no_slug(name: str) -> None:
    assert slug_of(name) is None


@pytest.mark.parametrize(
    ("path", "possible"),
    [
        pytest.param("/l/a", True, id="plain"),
        pytest.param("a b\n'c'", True, id="odd-characters"),
        pytest.param("/l/x\udcff", True, id="B17-byte-that-is-no-utf-8"),
        pytest.param("/" + "a" * 255, True, id="longest-name"),
        pytest.param("/a" * 2047 + "/", True, id="longest-path"),
        pytest.param("a", True, id="one-letter"),
        pytest.param("", False, id="empty"),
        pytest.param("a\0b", False, id="NUL"),
        pytest.param("/" + "a" * 256, False, id="name-too-long"),
        pytest.param("/" + "é" * 128, False, id="name-too-long-in-bytes"),
        pytest.param("/a" * 2048, False, id="path-too-long"),
        pytest.param("/l/\ud83d", False, id="surrogate-that-is-no-byte"),
    ],
)
def test_a_path_is_refused_when_no_file_could_have_it(
    path: str,
    possible: bool,
) -> None:
    assert is_possible_path(path) is possible


@pytest.mark.parametrize(
    ("path", "cwd", "expected"),
    [
        ("/l/a", "/home", "/l/a"),
        ("./a", "/home/me", "/home/me/a"),
        ("a", "/", "/a"),
        ("../a", "/home/me", "/home/a"),
        ("./../../a", "/home/me", "/a"),
        ("../../../a", "/home/me", "/a"),
        ("//l//a/./b/", "/", "/l/a/b"),
        ("a/../b", "/l", "/l/a/../b"),
        ("/l/../b", "/", "/l/../b"),
        ("..", "/home/me", "/home"),
        (".", "/home/me", "/home/me"),
        ("/", "/home", "/"),
    ],
)
def test_a_path_is_made_absolute_without_looking(
    path: str, cwd: str, expected: str
) -> None:
    assert absolute(path, cwd) == expected


@ALWAYS
@given(st.lists(st.sampled_from(["a", "b", ".", "..", "", " c"])), st.booleans())
def test_an_absolute_path_is_the_same_file_written_plainly(
    parts: list[str],
    rooted: bool,
) -> None:
    path = "/" * rooted + "/".join(parts)
    result = absolute(path, "/l/m")
    assert absolute(result, "/elsewhere") == result
    assert result.startswith("/")
    assert "//" not in result
    assert "." not in result.split("/")
    assert posixpath.normpath(result).replace("//", "/") == posixpath.normpath(
        posixpath.join("/l/m", path)
    ).replace("//", "/")


@pytest.mark.parametrize(
    ("path", "lock_dir", "text", "label"),
    [
        pytest.param("/l/lock-api.md", "/l", "lock api", "api", id="slug"),
        pytest.param("/lock-api.md", "/", "lock api", "api", id="slug-in-the-root"),
        pytest.param(
            "/m/lock-api.md", "/l", "lock /m/lock-api.md", "lock-api.md", id="elsewhere"
        ),
        pytest.param(
            "/l/m/lock-api.md",
            "/l",
            "lock /l/m/lock-api.md",
            "lock-api.md",
            id="in-a-folder-below",
        ),
        pytest.param(
            "/l/lock-api.md",
            None,
            "lock /l/lock-api.md",
            "lock-api.md",
            id="no-lock-directory",
        ),
        pytest.param("/l/x.lock", "/l", "lock /l/x.lock", "x.lock", id="no-lock-name"),
        pytest.param("/a b/x'y", "/l", "lock '/a b/x'\"'\"'y'", "x'y", id="quoted"),
        pytest.param(
            "/l/.#plan.lock", "/l", "lock '/l/.#plan.lock'", ".#plan.lock", id="B07"
        ),
    ],
)
def test_a_lock_in_the_lock_directory_is_its_slug(
    path: str, lock_dir: str | None, text: str, label: str
) -> None:
    target = lock_target(path, lock_dir)
    assert (target.kind, target.text, target.label) == ("lock", text, label)
    assert target.host is None


@pytest.mark.parametrize(
    ("target", "text", "label"),
    [
        (pid_target(1234), "process --pid 1234", "PID 1234"),
        (pid_target(MAX_PID), "process --pid 4194304", "PID 4194304"),
        (pidfile_target("/run/a.pid"), "process --pidfile /run/a.pid", "a.pid"),
        (pidfile_target("/a b/c d"), "process --pidfile '/a b/c d'", "c d"),
        (match_target("train.py"), "process --match train.py", "train.py"),
        (match_target("train(1"), "process --match 'train(1'", "train(1"),
        (match_target("-v x"), "process '--match=-v x'", "-v x"),
        (regex_target("^a|b$"), "process --regex '^a|b$'", "^a|b$"),
        (regex_target("--"), "process --regex=--", "--"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_process_target_is_its_own_command_line(
    target: object, text: str, label: str
) -> None:
    assert vars_of(target) == {
        "kind": "process",
        "text": text,
        "label": label,
        "host": None,
    }


def vars_of(target: object) -> dict[str, object]:
    return {name: getattr(target, name) for name in ("kind", "text", "label", "host")}


@ALWAYS
@given(paths, st.sampled_from(["/l", "/", None]))
def test_a_lock_target_survives_a_round_trip(path: str, lock_dir: str | None) -> None:
    target = lock_target(path, lock_dir)
    command, named = shlex.split(target.text)
    assert command == "lock"
    assert parse([command, named])[1].lock == named
    if "/" in named:
        assert named == path
    else:
        assert f"{(lock_dir or '').rstrip('/')}/{lock_file(named)}" == path


@ALWAYS
@given(argument)
def test_a_pattern_target_survives_a_round_trip_through_its_own_command(
    text: str,
) -> None:
    assert parse(shlex.split(match_target(text).text))[1].match == text
    assert parse(shlex.split(regex_target(text).text))[1].regex == text


@ALWAYS
@given(paths)
def test_a_pidfile_target_survives_a_round_trip(path: str) -> None:
    assert parse(shlex.split(pidfile_target(path).text))[1].pidfile == path


@ALWAYS
@given(argument, argument)
def test_two_patterns_share_a_target_only_when_they_are_the_same(
    one: str, other: str
) -> None:
    same = match_target(one).text == match_target(other).text
    assert same == (one == other)
    assert match_target(one).text != regex_target(one).text
