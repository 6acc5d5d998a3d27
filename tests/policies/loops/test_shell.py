"""The reader of shell commands: what it takes, refuses, and how long it may take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.loops.glance import LONGEST, may_wait
from policies.loops.lexing import ShellError
from policies.loops.shell import parse
from policies.loops.suggestion import suggestion
from policies.loops.tree import Each, Function, Group, Loop, Simple
from tests.policies.loops.corpus import LOOKALIKES, PLAIN, WAITS
from tests.policies.samples import ALWAYS

NESTED = [
    *["(", "$(", "$((", "((", "{ ", "`", '"$(', "while ", "if ", "case x in y) "],
    *["a|", "a&&", "a;", "<<X\n", "${", "[[ ", "f(){ ", "$((a", "<(", "a=(", "! "],
    *["a -f ", "[ ! ", "( ", "sh -c '", "elif ", "if a; then b; elif ", "'\"", "\\"],
    *["[ -f a ] && break; ", "a=$a$a; ", "until a;", "[ -f a ] && ! ", "((="],
]
PIECES = [
    *"(){}[]|&;<>$`'\"\\#!=*?~ \n",
    *"while until do done if then fi else elif for in case esac function end".split(),  # noqa: SIM905
    *["$(", "$((", "))", "${", "<(", "<<X\n", "X\n", "[[", "]]", "((", "&&", "||"],
    *["sleep 5", "pgrep -f x", "[ -f a ]", "break", "repeat 3", "a=(", "$'", ";;"],
    *["grep -q A b.log", "python3 -c", "ssh h", "sh -c", "tail -f a", "kill -0 7"],
]


def words(command: str) -> list[str | None]:
    node = parse(command).items[0][0]
    assert isinstance(node, Simple)
    return [word.fixed for word in node.words]


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("a 'b c' d", ["a", "b c", "d"]),
        (r"a b\ c \"d", ["a", "b c", '"d']),
        ('a "b \\" \\x $"', ["a", 'b " \\x $']),
        ("a $'x\\ty\\q'", ["a", "x\tyq"]),
        ('a $"b"', ["a", "b"]),
        ('a ""', ["a", ""]),
        ("a b\\\nc", ["a", "bc"]),
        ('a "b\\\nc"', ["a", "bc"]),
        ("a $x", ["a", None]),
        ("a ${x:-y}", ["a", None]),
        ("a $((1 + 2))", ["a", None]),
        ("a `b`", ["a", None]),
        ('a "`b \\`c\\``"', ["a", None]),
        ("a $(b; c)", ["a", None]),
        ("a <(b)", ["a", None]),
        ("a @(b|c)", ["a", None]),
        ("a # b", ["a"]),
        ("a#b", ["a#b"]),
        ("a \\", ["a", ""]),
        ("[[ a =~ ^(b|c d)$ && x < y ]]", None),
    ],
)
def test_words_lose_their_quotes(command: str, wanted: list[str | None] | None) -> None:
    found = words(command)
    assert wanted is None or found == wanted


@pytest.mark.parametrize(
    "command",
    [
        "a() { b; }",
        "function f { b; }",
        "function f () ( b )",
        "x=(a 'b c' d); y[1]=2 z+=3 c",
        "for x; do a; done",
        "for x in; do a; done",
        "select x in a b; do c; done",
        "for ((i=0;;)); do a; done",
        "if a; then b; elif c; then d; else e; fi > f",
        "case $x in (a|b) c;; d) e;& *) e;;& esac",
        "case x in a) b; esac",
        "{ a; b; } 2>&1 | c |& d",
        "(a; (b))",
        "((a + (b)))",
        "((a; b))",
        "( (a) )",
        "! a && ! ! b || c &",
        "a; b & c\n\n\nd",
        "a <<-X\n\tb\n\tX\nc",
        "a <<X <<'Y'\n1\nX\n2\nY",
        "a <<X",
        "a <<X\nb",
        "a <<<b 2>/dev/null >|c &>d {fd}<e",
        "while a { b }",
        "while [[ a ]] { b }",
        "repeat 3 { a }",
        "repeat 3; do a; done",
        "while a; b; end",
        "if a; b; else; c; end",
        "if a; b; end",
        "for x in (seq 3); a; or b; end",
        "begin; a; and b; end",
        "",
        "\n # a\n",
        'a "$(b "$(c \'d\')")"',
        "a $(case x in y) z;; esac)",
        "a $((b",
        "x= y=$z a",
        "a=b",
        "> a",
    ],
)
def test_what_shells_take_is_read_to_its_end(command: str) -> None:
    try:
        script = parse(command)
    except ShellError:
        assert command in {"a $((b", "while a { b }"}
    else:
        assert script.end <= len(command)


@pytest.mark.parametrize(
    "command",
    [
        *["'a", '"a', "`a", "$'a", "${a", "$(a", "(a", "{ a", "a)", "a ;; b", "<"],
        *["while a; do b", "while", "while; end", "if a; then b", "if a; b"],
        *["for 1 in a; do b; done", "for ((a; do b; done", "case a in b c", "a | | b"],
        *[
            "function",
            "f() b",
            "function f b",
            "case a of b",
            "[[ a",
            "[[ a =~ b",
            "a @(b",
            "x=(",
        ],
        *[
            "repeat",
            "a &&",
            "while a; do b; done c d",
            "$'a\\",
            "(" * 40,
            '"$(a',
            "f( x",
        ],
    ],
)
def test_what_no_shell_takes_is_refused(command: str) -> None:
    with pytest.raises(ShellError):
        parse(command)


def test_a_body_of_a_heredoc_is_kept() -> None:
    node = parse("sh <<'X'\nwhile a; do b; done\nX\n").items[0][0]
    assert node.redirections[0].body == "while a; do b; done"


def test_the_kinds_of_commands_are_told_apart() -> None:
    script = parse("while a; do b; done; for x in y; do z; done; f() { g; }; (h)")
    kinds = [type(node) for node, _ in script.items]
    assert kinds == [Loop, Each, Function, Group]


@pytest.mark.parametrize("command", [*LOOKALIKES, *PLAIN])
def test_every_ordinary_command_of_the_corpus_is_read(command: str) -> None:
    assert parse(command).items or command.startswith("#")


def test_a_command_that_is_too_long_is_not_read() -> None:
    wait = "while pgrep -f x; do sleep 5; done"
    assert may_wait(wait)
    assert not may_wait(wait + " " * LONGEST)
    assert suggestion(wait + " " * LONGEST) is None


@pytest.mark.parametrize("unit", NESTED)
@pytest.mark.timeout(60)
def test_nesting_and_length_do_not_take_for_ever(unit: str) -> None:
    text = "while sleep 1; do " + unit * (60000 // len(unit))
    suggestion(text)
    suggestion(f"{text}; done")


@ALWAYS
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=40))
def test_no_text_is_too_strange(pieces: list[str]) -> None:
    found = suggestion(" ".join(pieces))
    assert found is None or found.command.startswith("koder-monitor ")


@ALWAYS
@given(st.sampled_from([command for command, _ in WAITS]), st.data())
def test_a_wait_that_is_cut_or_mixed_up_raises_nothing(
    command: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(command)))
    end = data.draw(st.integers(start, len(command)))
    more = data.draw(st.sampled_from(PIECES))
    suggestion(command[:start] + more + command[end:])
