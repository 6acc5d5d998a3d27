"""Which files a tool call edits, and which of them the globs of a lock cover."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.guards import MOST_PATHS, covered, edited_paths, is_somebody_elses
from policies.holder import Holder
from policies.values import Json

PATCH = """\
*** Begin Patch
*** Update File: src/a.py
*** Move to: src/b.py
@@
-*** Add File: not/at/the/start.py
*** Add File: new.py
+x
*** Delete File: old.py
*** End Patch
"""
PATCHED = ["src/a.py", "src/b.py", "new.py", "old.py"]


@pytest.mark.parametrize(
    ("tool", "tool_input", "paths"),
    [
        pytest.param("Edit", {"file_path": "/p/a.py"}, ["/p/a.py"], id="Edit"),
        pytest.param("Write", {"file_path": "/p/a.py"}, ["/p/a.py"], id="Write"),
        pytest.param(
            "MultiEdit",
            {"file_path": "a", "edits": [{"old_string": "x"}, {"file_path": "b"}]},
            ["a", "b"],
            id="MultiEdit-of-several-files",
        ),
        pytest.param("NotebookEdit", {"notebook_path": "n"}, ["n"], id="NotebookEdit"),
        pytest.param("write_file", {"path": "a"}, ["a"], id="with-an-underscore"),
        pytest.param("mcp__files__write_file", {"path": "a"}, ["a"], id="of-an-MCP"),
        pytest.param(
            "edit", {"files": ["a", "b", 5]}, ["a", "b"], id="a-list-of-files"
        ),
        pytest.param("edit", {"changes": {"a": {}}}, ["a"], id="a-map-of-changes"),
        pytest.param("edit", {"path": "a", "file_path": "a"}, ["a"], id="named-twice"),
        pytest.param(
            "str_replace_editor", {"command": "create", "path": "a"}, ["a"], id="create"
        ),
        pytest.param(
            "str_replace_editor", {"command": "view", "path": "a"}, [], id="only-a-view"
        ),
        pytest.param("apply_patch", {"input": PATCH}, PATCHED, id="a-patch"),
        pytest.param("shell", {"command": ["apply_patch", PATCH]}, PATCHED, id="argv"),
        pytest.param(
            "Bash",
            {"command": f"apply_patch <<'E'\n{PATCH}E"},
            PATCHED,
            id="in-a-shell",
        ),
        pytest.param(
            "Bash", {"command": "sed -i s/a/b/ a.py"}, [], id="a-shell-command"
        ),
        pytest.param("Read", {"file_path": "/p/a.py"}, [], id="a-read"),
        pytest.param("Grep", {"path": "/p"}, [], id="a-search"),
        pytest.param("Edit", {"file_path": 5, "path": ""}, [], id="wrong-types"),
        pytest.param(
            "Edit", {"edits": "a", "files": None}, [], id="lists-that-are-none"
        ),
        pytest.param("Edit", {}, [], id="no-arguments"),
        pytest.param(None, {"file_path": "a"}, [], id="no-tool"),
        pytest.param("5", {"file_path": "a"}, [], id="a-tool-without-letters"),
    ],
)
def test_only_what_edits_names_files(
    tool: str | None, tool_input: Mapping[str, Json], paths: list[str]
) -> None:
    assert edited_paths(tool, tool_input) == paths


def test_a_call_that_edits_thousands_of_files_names_no_more_than_a_hundred() -> None:
    files: Json = [f"f{number}" for number in range(5000)]
    assert len(edited_paths("edit", {"files": files})) == MOST_PATHS


@pytest.mark.parametrize(
    ("patterns", "path", "inside"),
    [
        pytest.param(["src/api"], "src/api/x.py", True, id="a-folder-covers-its-files"),
        pytest.param(["src/api/"], "src/api/a/b/c.py", True, id="however-deep"),
        pytest.param(["./src/api"], "src/api/x.py", True, id="dot-slash"),
        pytest.param(["src/api"], "src/api", True, id="itself"),
        pytest.param(["src/api"], "src/apis/x.py", False, id="no-prefix-of-a-name"),
        pytest.param(["src/api"], "other/src/api/x", False, id="from-the-root-only"),
        pytest.param(["src/api/x.py"], "src/api/x.py", True, id="a-file"),
        pytest.param(["src/api/x.py"], "src/api/y.py", False, id="another-file"),
        pytest.param(["*.md"], "README.md", True, id="a-star"),
        pytest.param(["*.md"], "docs/README.md", False, id="a-star-stays-in-a-folder"),
        pytest.param(["src/*"], "src/api/x.py", True, id="a-star-may-be-a-folder"),
        pytest.param(["**/*.md"], "docs/a/README.md", True, id="two-stars"),
        pytest.param(["**/*.md"], "README.md", True, id="two-stars-may-be-nothing"),
        pytest.param(["src/**"], "src/a/b.py", True, id="all-below"),
        pytest.param(["src/**/x.py"], "src/a/b/x.py", True, id="two-stars-within"),
        pytest.param(["src/**/x.py"], "src/a/b/y.py", False, id="and-its-end-counts"),
        pytest.param(["src/**/**/**/x"], "src/x", True, id="many-two-stars"),
        pytest.param(["src/v?.py"], "src/v1.py", True, id="a-question-mark"),
        pytest.param(["src/v?.py"], "src/v10.py", False, id="which-is-one-character"),
        pytest.param(["src/[ab].py"], "src/a.py", True, id="a-set"),
        pytest.param(["src/[ab].py"], "src/c.py", False, id="not-of-the-set"),
        pytest.param(["a*b*c"], "aXbYbZc", True, id="stars-that-have-to-try-again"),
        pytest.param(["a*b"], "aXbY", False, id="a-star-and-an-end-that-differs"),
        pytest.param(["ab*"], "ab", True, id="a-star-for-nothing"),
        pytest.param(["."], "src/x.py", True, id="the-whole-project"),
        pytest.param(["src/../web"], "web/x.py", True, id="dots-within"),
        pytest.param(["../other"], "src/x.py", False, id="outside-of-the-project"),
        pytest.param(["/p/src"], "src/x.py", True, id="an-absolute-one"),
        pytest.param(["/q/src"], "src/x.py", False, id="an-absolute-one-elsewhere"),
        pytest.param(["a", "src"], "src/x.py", True, id="any-of-several"),
        pytest.param(["", "  "], "src/x.py", False, id="an-empty-one-means-nothing"),
        pytest.param(["a/" * 600], "a/b", False, id="far-too-long"),
        pytest.param([], "src/x.py", False, id="none-cover-nothing"),
    ],
)
def test_globs_are_relative_to_the_project_and_folders_cover_what_is_in_them(
    patterns: Sequence[str], path: str, inside: bool
) -> None:
    assert covered(patterns, ["/p"], [f"/p/{path}"]) == [f"/p/{path}"] * inside


def test_a_project_is_known_by_each_of_its_names() -> None:
    assert covered(["src"], ["/link", "/real/p"], ["/real/p/src/x"]) == [
        "/real/p/src/x"
    ]


def test_only_the_covered_ones_of_several_paths_are_returned() -> None:
    paths = ["/p/a/x", "/p/b/x", "/p/a/y"]
    assert covered(["a"], ["/p"], paths) == ["/p/a/x", "/p/a/y"]


def test_a_lock_with_thousands_of_hostile_globs_is_looked_at_in_linear_time() -> None:
    hostile = ["**/" * 100 + "*a" * 200 + "c"] * 10_000
    path = "/p/" + "/".join(["a" * 200] * 20)
    assert covered(hostile, ["/p"], [path]) == []  # else not before the sun burns out


@pytest.mark.parametrize(
    ("holder", "theirs"),
    [
        pytest.param(Holder(session="s-2"), True, id="another-session"),
        pytest.param(Holder(session="s-1"), False, id="its-own"),
        pytest.param(Holder(session="s-11"), True, id="B137-a-longer-name"),
        pytest.param(Holder(session="s-"), True, id="B137-a-shorter-name"),
        pytest.param(Holder(pid=5), True, id="nobody-known"),
    ],
)
def test_a_lock_of_ones_own_is_no_obstacle(holder: Holder, theirs: bool) -> None:
    assert is_somebody_elses(holder, ["s-1"]) is theirs


NAMES = st.text("ab.*?[", min_size=1, max_size=6)
PARTS = st.lists(NAMES, min_size=1, max_size=5)


@given(PARTS, PARTS)
def test_whatever_covers_a_folder_covers_what_is_in_it(
    pattern: list[str], path: list[str]
) -> None:
    globs, folder = ["/".join(pattern)], "/p/" + "/".join(path)
    if covered(globs, ["/p"], [folder]) and ".." not in path:
        assert covered(globs, ["/p"], [f"{folder}/deep/er.py"])


@given(st.lists(st.text("ab", min_size=1), min_size=1, max_size=5))
def test_a_plain_path_covers_itself_and_stars_cover_it(path: list[str]) -> None:
    whole = "/p/" + "/".join(path)
    for pattern in ("/".join(path), "/".join("*" for _ in path), "**"):
        assert covered([pattern], ["/p"], [whole]) == [whole]


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.text(), st.lists)))
def test_no_arguments_of_a_tool_are_too_odd(tool_input: dict[str, Json]) -> None:
    assert isinstance(edited_paths("Edit", tool_input), list)
