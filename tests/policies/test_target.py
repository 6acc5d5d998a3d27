"""Targets: what they name, and their one canonical text (C1.2, C1.4)."""

import posixpath
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.duration import parse_duration
from policies.model import Target
from policies.target import (
    MAX_PID,
    absolute,
    command_target,
    file_target,
    is_host,
    is_possible_path,
    is_possible_word,
    is_session,
    is_slug,
    lock_file,
    lock_target,
    log_options,
    log_target,
    match_target,
    on_host,
    path_on_host,
    pid_target,
    pidfile_target,
    port_target,
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


@pytest.mark.parametrize(
    ("target", "text", "host"),
    [
        (
            log_target("/var/log/soak.log", passes="ALL OK", host="box"),
            "log /var/log/soak.log --pass 'ALL OK' --host box",
            "box",
        ),
        (
            log_target(
                "/a b/x 'y' $HOME.log",
                passes="-x",
                fails="^FAIL",
                stalled_s=5400,
                from_start=True,
            ),
            """log '/a b/x '"'"'y'"'"' $HOME.log' --pass=-x --fail '^FAIL' """
            "--stalled 1h30m --from-start",
            None,
        ),
        (log_target("/l", stalled_s=45), "log /l --stalled 45s", None),
    ],
    ids=["contract", "all", "silence"],
)
def test_a_log_target_is_its_own_command_line(
    target: object, text: str, host: str | None
) -> None:
    seen = vars_of(target)
    assert (seen["kind"], seen["text"], seen["host"]) == ("log", text, host)


def test_a_log_is_called_by_its_file_name() -> None:
    assert log_target("/var/log/soak.log", fails="x").label == "soak.log"


@ALWAYS
@given(
    paths,
    argument | st.none(),
    argument | st.none(),
    st.integers(1, 365 * 86400) | st.none(),
    st.booleans(),
)
def test_a_log_target_survives_a_round_trip_through_its_own_command(
    path: str,
    passes: str | None,
    fails: str | None,
    stalled_s: int | None,
    from_start: bool,
) -> None:
    target = log_target(
        path,
        passes=passes,
        fails=fails,
        stalled_s=stalled_s,
        from_start=from_start,
        host="box",
    )
    read = parse(shlex.split(target.text))[1]
    assert (read.file, read.passes, read.fails) == (path, passes, fails)
    assert (read.from_start, read.host) == (from_start, "box")
    assert (read.stalled and parse_duration(read.stalled)) == stalled_s


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


@pytest.mark.parametrize(
    ("target", "text"),
    [
        pytest.param(
            pid_target(
                1234,
                log=log_options(
                    "/p", passes="X", fails="Y", stalled_s=1800, from_start=True
                ),
                host="box",
            ),
            "process --pid 1234 --log /p --pass X --fail Y --stalled 30m --from-start "
            "--host box",
            id="all of it",
        ),
        pytest.param(
            pidfile_target("/a b", log=log_options("/x", fails="-E")),
            "process --pidfile '/a b' --log /x --fail=-E",
            id="a pidfile",
        ),
        pytest.param(
            match_target("-x", host="me@box:22"),
            "process --match=-x --host me@box:22",
            id="a text on a host",
        ),
        pytest.param(
            regex_target("a b", log=log_options("/x", stalled_s=90)),
            "process --regex 'a b' --log /x --stalled 1m30s",
            id="an expression",
        ),
    ],
)
def test_processes_are_named_with_their_log_and_their_host(
    target: Target, text: str
) -> None:
    assert target.text == text
    assert target.kind == "process"
    assert (target.host is not None) is ("--host" in text)


@pytest.mark.parametrize(
    ("target", "text", "label"),
    [
        (port_target(80, "free", None, None), "port 80 --free", "port 80"),
        (
            port_target(80, "open", "127.0.0.1", "box"),
            "port 127.0.0.1:80 --open --host box",
            "port 127.0.0.1:80",
        ),
        (
            port_target(80, "free", "::1", None),
            "port '[::1]:80' --free",
            "port [::1]:80",
        ),
        (file_target("/a b/c", "gone", None, None), "file '/a b/c' --gone", "c"),
        (
            file_target("/a", "quiet", 90, "me@box"),
            "file /a --quiet 90s --host me@box",
            "a",
        ),
        (command_target(["x", "a b"], None), "command -- x 'a b'", "x 'a b'"),
        (
            command_target(["x", "--host", "y"], "box"),
            "command --host box -- x --host y",
            "x --host y",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_ports_files_and_commands_are_named_by_their_own_command_line(
    target: Target, text: str, label: str
) -> None:
    assert (target.text, target.label) == (text, label)
    assert target.kind == text.split(maxsplit=1)[0]
    far = text.removesuffix(label)
    assert target.host == (far.split("--host ")[1].split()[0] if "box" in far else None)


@pytest.mark.parametrize(
    ("word", "possible"),
    [("", True), ("a b", True), ("\udcff", True), ("a\0", False), ("\ud800", False)],
)
def test_a_word_is_possible_where_a_program_can_be_given_it(
    word: str, possible: bool
) -> None:
    assert is_possible_word(word) is possible


@pytest.mark.parametrize(
    "text",
    [
        *("box", "box.example.org", "b", "_x", "a-b", "a_b.c", "127.0.0.1", "x.-"),
        *("me@box", "me@box:2222", "box:1", "box:65535", "o.b+c-d_e@box"),
        *("::1", "fe80::1", "me@fe80::1", "[::1]", "[::1]:22", "me@[::1]:22"),
        *("[fe80::1%eth0]:22", "x" * 255),
    ],
)
def test_c7_1_what_openssh_users_name_is_a_host(text: str) -> None:
    assert is_host(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "-l", "-oProxyCommand=x", "me@-x", "-x@box", "@box", "me@", "a@b@c"),
        *("a b", "a\tb", "a\n", "a\nb", "a\x00", "a;b", "a|b", "a&b", "a$b", "$(id)"),
        *("`id`", "a'b", 'a"b', "a\\b", "a/b", "a*b", "a?b", "~", "!", "#", "a=b"),
        *("{a}", "<a", ">a", "a,b", "%h", "box:", "box:0", "box:65536", "box:99999"),
        *("box:00000", "box:123456", "box:x", "[::1", "::1]", "[box]", "[::1]x", "é"),
        *("x" * 256, "ssh://box", "b\u0660x", "box:\u0661"),
    ],
)
def test_b66_what_could_be_an_option_or_shell_syntax_is_no_host(text: str) -> None:
    assert not is_host(text)


@ALWAYS
@given(st.text(), st.text())
def test_b66_whatever_is_a_host_is_one_plain_word_of_a_shell(a: str, b: str) -> None:
    for text in (a, f"{a}@{b}", f"{a}:{b}", f"{a}[{b}]", f"x{a}"):
        if is_host(text):
            assert text[0] not in "-%"
            plain = text.replace("[", "").replace("]", "").replace("%", "")
            assert shlex.quote(plain) == plain
            assert text.isprintable()


def test_a_target_on_a_host_ends_with_the_host() -> None:
    words = ["log", "/var/log/a b", "--pass", "ALL OK"]
    assert on_host(words, None) == "log '/var/log/a b' --pass 'ALL OK'"
    assert on_host(words, "box") == "log '/var/log/a b' --pass 'ALL OK' --host box"


@ALWAYS
@given(st.lists(st.text(min_size=1)), st.sampled_from([None, "box", "me@[::1]:22"]))
def test_a_target_on_a_host_survives_a_round_trip(
    words: list[str], host: str | None
) -> None:
    more = [] if host is None else ["--host", host]
    assert shlex.split(on_host(words, host)) == [*words, *more]


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/a//b/./c", "/a/b/c"),
        ("run/END", "~/run/END"),
        ("./x", "~/x"),
        ("~/x y", "~/x y"),
        ("~other/x", "~/~other/x"),
        ("a/../b", "~/a/../b"),
    ],
)
def test_a_relative_path_on_a_host_is_below_the_home_folder_there(
    path: str, there: str
) -> None:
    assert path_on_host(path) == there
    assert path_on_host(there) == there
