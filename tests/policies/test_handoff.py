"""When a session is handed over, under which names, and what the file says (C11.3)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.handoff import (
    DEFAULT_NAME,
    File,
    Kind,
    age_text,
    archived_name,
    file_name,
    folders_to_search,
    front_matter,
    is_archived,
    is_fresh,
    is_handoff,
    is_ours,
    is_topic,
    kind_of,
    to_load,
    value_in,
)
from policies.handoff_text import (
    MOST_SHOWN,
    Facts,
    Tree,
    Wait,
    against_commit,
    code,
    commit_message,
    handoff_text,
    next_steps,
    opening_prompt,
)
from policies.usage import Source, Used
from policies.wording import Lang, phrase
from tests.policies.samples import unfit

# --- the kind of work


@pytest.mark.parametrize(
    ("plan", "component", "kind", "evidence"),
    [
        pytest.param("p", "c", Kind.MULTI_SESSION, "p", id="a-plan-goes-first"),
        pytest.param("p", None, Kind.MULTI_SESSION, "p", id="a-plan"),
        pytest.param(None, "c", Kind.COMPONENT_WORK, "c", id="a-component"),
        pytest.param(None, None, Kind.SINGLE_TASK, None, id="F71-fallback"),
    ],
)
def test_the_kind_of_work_is_told_by_a_file(
    plan: str | None, component: str | None, kind: Kind, evidence: str | None
) -> None:
    assert kind_of(plan, component) == (kind, evidence)


# --- names


def test_a_handoff_has_the_name_that_other_tools_know() -> None:
    assert file_name(None) == "NEXT-SESSION-PROMPT.local.md"
    assert file_name("payments") == "NEXT-SESSION-payments.local.md"
    assert archived_name(DEFAULT_NAME, 1) == "NEXT-SESSION-PROMPT.archived.local.md"
    assert archived_name(DEFAULT_NAME, 2) == "NEXT-SESSION-PROMPT.2.archived.local.md"


@given(
    st.from_regex(r"\w[\w-]{0,47}", fullmatch=True).filter(is_topic),
    st.integers(1, 999),
)
def test_whatever_the_topic_an_archived_handoff_is_never_loaded_again(
    topic: str, times: int
) -> None:
    name = file_name(topic)
    archived = archived_name(name, times)
    assert is_handoff(name)
    assert is_handoff(archived)
    assert (is_archived(name), is_archived(archived)) == (False, True)
    assert to_load([File(archived, 2.0)]) is None
    assert to_load([File(name, 1.0), File(archived, 2.0)]) == name
    assert archived_name(name, times + 1) != archived


@pytest.mark.parametrize(
    "topic",
    ["", ".", "..", "a/b", "../x", "-x", "_x", "a b", "a\nb", "x.archived", "a" * 49],
)
def test_what_cannot_name_a_file_is_no_topic(topic: str) -> None:
    assert not is_topic(topic)


@pytest.mark.parametrize("topic", ["a", "payments-api", "ação", "v2_1", "a" * 48])
def test_a_word_is_a_topic(topic: str) -> None:
    assert is_topic(topic)


@pytest.mark.parametrize(
    ("files", "loaded"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param([("README.md", 9)], None, id="something-else"),
        pytest.param(
            [("NEXT-SESSION-a.local.md", 9), (DEFAULT_NAME, 1)],
            DEFAULT_NAME,
            id="F66-default-first",
        ),
        pytest.param(
            [("NEXT-SESSION-a.local.md", 1), ("NEXT-SESSION-b.local.md", 2)],
            "NEXT-SESSION-b.local.md",
            id="F66-newest-topic",
        ),
        pytest.param(
            [("NEXT-SESSION-a.local.md", 1), ("NEXT-SESSION-b.local.md", 1)],
            "NEXT-SESSION-b.local.md",
            id="same-time-always-the-same",
        ),
        pytest.param(
            [("NEXT-SESSION-PROMPT.archived.local.md", 9)], None, id="F67-archived"
        ),
        pytest.param(
            [("NEXT-SESSION-a.2.archived.local.md", 9), (DEFAULT_NAME, 1)],
            DEFAULT_NAME,
            id="archived-and-new",
        ),
    ],
)
def test_of_several_handoffs_one_is_loaded(
    files: list[tuple[str, float]], loaded: str | None
) -> None:
    assert to_load(File(*file) for file in files) == loaded
    assert to_load(File(*file) for file in reversed(files)) == loaded


@pytest.mark.parametrize(
    ("cwd", "root", "project", "found"),
    [
        pytest.param(
            "/r/a/b", "/r", "/r", ["/r/a/b", "/r/a", "/r"], id="up-to-the-root"
        ),
        pytest.param("/r", "/r", "/r", ["/r"], id="at-the-root"),
        pytest.param(
            "/r/1/2/3/4/5",
            "/r",
            "/r",
            ["/r/1/2/3/4/5", "/r/1/2/3/4", "/r/1/2/3", "/r/1/2", "/r"],
            id="three-parents-and-the-project",
        ),
        pytest.param("/a/b", None, "/a/b", ["/a/b", "/a", "/"], id="no-repository"),
        pytest.param("/", None, "/", ["/"], id="the-root-of-all"),
        pytest.param("/x", "/x", "/r", ["/x", "/r"], id="went-elsewhere"),
    ],
)
def test_a_handoff_is_looked_for_upwards_within_its_repository(
    cwd: str, root: str | None, project: str, found: list[str]
) -> None:
    assert folders_to_search(cwd, root, project) == found


@pytest.mark.parametrize(
    ("age_s", "clean", "fresh"),
    [
        (0, True, True),
        (59.9, True, True),
        (60, True, False),
        (-1, True, False),
        (5, False, False),
    ],
)
def test_within_a_minute_on_a_clean_tree_there_is_nothing_to_do(
    age_s: float, clean: bool, fresh: bool
) -> None:
    assert is_fresh(age_s, clean=clean) is fresh


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (59, "59s"),
        (60, "1min"),
        (3599, "59min"),
        (7200, "2h"),
        (90000, "1d"),
    ],
)
def test_an_age_is_told_in_its_largest_unit(seconds: float, text: str) -> None:
    assert age_text(seconds) == text


# --- front matter


def test_what_stands_in_front_is_found_again() -> None:
    text = "\n".join([*front_matter(branch="main", session=None), "branch: no", ""])
    assert is_ours(text)
    assert value_in(text, "branch") == "main"
    assert value_in(text, "session") is None


@pytest.mark.parametrize(
    "text", ["", "---", "---\nother: 1\nbranch: x\n---", "# A file\nbranch: x"]
)
def test_a_file_of_another_program_is_not_ours(text: str) -> None:
    assert not is_ours(text)
    assert value_in(text, "branch") is None


def test_a_front_matter_without_end_is_read_to_its_end() -> None:
    assert value_in("\n".join(front_matter()[:-1]), "branch") is None


# --- the text

TREE = Tree(
    branch="main",
    head="abc123",
    ahead=2,
    staged=("b",),
    changed=("a", "b"),
    conflicts=("c",),
    commits=("abc123 second", "def456 first"),
)
WAIT = Wait(
    id="w1",
    target="lock api",
    label="api",
    resume="the API",
    until="2026-12-01T12:00:00+00:00",
    seen=True,
)


def facts(**changes: object) -> Facts:
    values: dict[str, object] = {
        "at": "2026-12-01T10:00:00+00:00",
        "project": "/r",
        "path": "/r/" + DEFAULT_NAME,
        "topic": None,
        "session": "s-1",
        "used": Used(72.5, Source.BRIDGE),
        "kind": Kind.SINGLE_TASK,
        "evidence": None,
        "tree": TREE,
        "notes": (),
        "waits": (WAIT,),
    }
    return Facts(**(values | changes))  # type: ignore[arg-type]  # a test's own values


TITLES = {
    Lang.EN: [
        "Why this session",
        "Status",
        "How to continue",
        "Open watches",
        "Push policy",
        "Verification",
        "Traps",
        "Text to open the next session with",
    ],
    Lang.PT: [
        "Por que esta sessão",
        "Estado",
        "Como continuar",
        "Esperas abertas",
        "Política de push",
        "Verificação",
        "Armadilhas",
        "Texto para abrir a próxima sessão",
    ],
}


@pytest.mark.parametrize("lang", Lang)
def test_a_handoff_has_its_sections_and_each_says_something(lang: Lang) -> None:
    for given_facts in (
        facts(),
        facts(tree=phrase("handoff_bare"), waits=None, used=None),
        facts(tree=Tree(branch=None, head=None, ahead=None), waits=()),
    ):
        parts = re.split(
            r"^## (.*)$", handoff_text(given_facts, lang), flags=re.MULTILINE
        )
        assert parts[1::2] == TITLES[lang]
        for body in parts[2::2]:
            assert body.strip()
            assert all(re.match("- |  - |> ", x) for x in body.strip().splitlines())


GOLDEN = """\
---
koder_monitor_handoff: 1
created_at: 2026-12-01T10:00:00+00:00
type: single-task
branch: main
head: abc123
session: s-1
---

# Session handoff

## Why this session

- the session's context reached 73% [bridge]
- a single task

## Status

- project: `/r`
- branch `main`, last commit `abc123`
- 2 commits ahead of the upstream
- latest commits:
  - `abc123 second`
  - `def456 first`
- 2 files changed or new:
  - `a`
  - `b`

## How to continue

- resolve 1 merge conflicts
- review 2 files changed or new, not committed
- ask the person whether 2 commits are to be pushed
- when `api` is over or released, resume `the API`

## Open watches

- they go on without this session, each with its deadline and its ping
- w1: `lock api`, until 2026-12-01T12:00:00+00:00; then `the API`; check: \
`koder-monitor show w1`

## Push policy

- this handoff pushes nothing; to push is the person's decision, as it cannot be undone
- 2 commits ahead of the upstream

## Verification

- `git status --short`: the files of the status above, less those committed since
- `git log -3 --oneline`: `abc123 second`
- `koder-monitor list`: 1 watches

## Traps

- what stands here was so at 2026-12-01T10:00:00+00:00; check it before acting
- 1 files were staged already, not committed, and were left so
- there are merge conflicts

## Text to open the next session with

> Read /r/NEXT-SESSION-PROMPT.local.md: it is the state that the session before left. \
Check it with git status and koder-monitor list, and go on from there.
"""


def test_a_handoff_says_all_that_the_next_session_needs() -> None:
    assert handoff_text(facts(), Lang.EN) == GOLDEN


def test_a_handoff_that_a_person_asked_for_says_topic_kind_and_notes() -> None:
    text = handoff_text(
        facts(
            used=None,
            topic="payments",
            kind=Kind.COMPONENT_WORK,
            evidence="api/package.json",
            notes=("REMEMBER.md", "TODO.md"),
        ),
        Lang.EN,
    )
    assert "- asked for by a command\n- topic: payments\n" in text
    assert "- work in one component, by `api/package.json`" in text
    assert "- read `REMEMBER.md`\n- read `TODO.md`\n- resolve" in text


def test_an_evident_plan_is_named() -> None:
    found = facts(kind=Kind.MULTI_SESSION, evidence="PLAN")
    assert "- work over several sessions, by `PLAN`" in handoff_text(found, Lang.EN)


def test_where_nothing_is_open_the_person_is_asked() -> None:
    clean = Tree(branch="main", head="abc123", ahead=None, commits=("abc123 x",))
    text = handoff_text(facts(tree=clean, waits=()), Lang.EN)
    assert next_steps(facts(tree=clean, waits=()), Lang.EN) == [
        "ask the person what comes next"
    ]
    assert "- the branch has no upstream" in text
    assert "- `git status --short`: nothing changed or new" in text
    assert "## Open watches\n\n- none\n" in text


def test_a_detached_head_and_a_watch_without_sight_are_traps() -> None:
    blind = Wait(
        id="w2", target="lock b", label="b", resume=None, until="?", seen=False
    )
    loose = Tree(branch=None, head=None, ahead=0)
    text = handoff_text(facts(tree=loose, waits=(blind,)), Lang.EN)
    assert "- detached HEAD, at commit none\n- 0 commits ahead" in text
    assert "- detached HEAD\n- `b` could not be seen at that moment" in text
    assert "then the blocked activity" in text
    assert "branch: " not in text.partition("# ")[0]


def test_without_git_or_store_it_says_so() -> None:
    found = facts(tree=phrase("handoff_git_slow"), waits=None)
    text = handoff_text(found, Lang.EN)
    assert "- no state of git: git did not end in time; it was stopped" in text
    assert "- monitor.db could not be read" in text
    assert "- `koder-monitor doctor`: monitor.db could not be read" in text
    assert "koder-monitor list`:" not in text


def test_long_lists_are_cut_and_counted() -> None:
    many = tuple(f"f{number}" for number in range(MOST_SHOWN + 5))
    tree = Tree(branch="main", head="abc", ahead=None, changed=many)
    text = handoff_text(facts(tree=tree, more_waits=7), Lang.EN)
    assert f"  - `f{MOST_SHOWN - 1}`\n- and 5 more\n" in text
    assert "- and 7 more" in text
    assert "- `koder-monitor list`: 8 watches" in text


def test_the_same_facts_give_the_same_text() -> None:
    assert handoff_text(facts(), Lang.PT) == handoff_text(facts(), Lang.PT)


@given(st.text(max_size=300), st.sampled_from(Lang))
def test_foreign_text_adds_no_line_and_ends_no_code(foreign: str, lang: Lang) -> None:
    plain = handoff_text(facts(tree=tree_of("x"), waits=(wait_of("x"),)), lang)
    text = handoff_text(facts(tree=tree_of(foreign), waits=(wait_of(foreign),)), lang)
    assert unfit(text.replace("\n", "")) == set()
    # An empty activity is the same as none.
    assert text.count("\n") == plain.count("\n")
    assert [x for x in text.splitlines() if x.startswith("#")] == [
        x for x in plain.splitlines() if x.startswith("#")
    ]


def tree_of(text: str) -> Tree:
    return Tree(branch=text or "x", head="abc", ahead=None, changed=(text,))


def wait_of(text: str) -> Wait:
    return Wait(id="w", target=text, label=text, resume=text, until="?", seen=False)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a", "`a`"),
        ("a`b", "``a`b``"),
        ("`a``b", "``` `a``b ```"),
        ("a\nb\x1b[2J", "`a\\nb\\x1b[2J`"),
    ],
)
def test_foreign_text_is_code_whatever_is_in_it(text: str, shown: str) -> None:
    assert code(text) == shown


@pytest.mark.parametrize("lang", Lang)
@pytest.mark.parametrize("topic", [None, "payments"])
def test_the_commits_message_is_a_conventional_one(
    topic: str | None, lang: Lang
) -> None:
    message = commit_message(topic, lang)
    assert re.fullmatch(r"chore\(handoff\): [a-z][^\n]{10,80}", message)
    assert (topic or "") in message


def test_the_text_to_open_with_names_the_file() -> None:
    assert "/r/x.md" in opening_prompt("/r/x.md", Lang.PT)


@pytest.mark.parametrize(
    ("tree", "key"),
    [
        (Tree(branch="main", head="a", ahead=None), None),
        (Tree(branch=None, head="a", ahead=None), "handoff_detached"),
        (TREE, "handoff_conflicts"),
    ],
)
def test_conflicts_and_a_detached_head_stand_against_a_commit(
    tree: Tree, key: str | None
) -> None:
    found = against_commit(tree)
    assert (found.key if found else None) == key
