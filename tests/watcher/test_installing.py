"""Being registered with a coding agent, and being gone again without a trace."""

import json
import os
import shutil
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from policies.edits import UnreadableError, entries
from policies.edits.jsonc import find, read
from policies.edits.ours import PROGRAM, Edited, part_of
from policies.wording import Lang
from watcher import installing, placing
from watcher.errors import StoreError, UsageError
from watcher.installing import ChangedError, alone, install, program_path
from watcher.runtimes import chained, manifest
from watcher.runtimes.health import health
from watcher.runtimes.plan import Plan, plan_install
from watcher.runtimes.registry import RUNTIMES, heard
from watcher.runtimes.slots import Site, skill, slots
from watcher.uninstalling import plan_uninstall, uninstall

DATA = Path(__file__).parent.parent / "data/runtimes"
BY_US = [name for name, row in RUNTIMES.items() if not row.by_hand]
SAMPLES = {
    "claude-code": {
        "claude-code.settings.json": ".claude/settings.json",
        "claude-code.state.json": ".claude.json",
    },
    "gemini": {"gemini.settings.json": ".gemini/settings.json"},
    "codex": {
        "codex.config.toml": ".codex/config.toml",
        "codex.hooks.json": ".codex/hooks.json",
    },
    "opencode": {"opencode.jsonc": ".config/opencode/opencode.jsonc"},
    "cursor": {
        "cursor.hooks.json": ".cursor/hooks.json",
        "cursor.mcp.json": ".cursor/mcp.json",
        "cursor.cli-config.json": ".cursor/cli-config.json",
    },
    "copilot": {
        "copilot.mcp-config.json": ".copilot/mcp-config.json",
        "copilot.settings.json": ".copilot/settings.json",
    },
    "qwen": {"qwen.settings.json": ".qwen/settings.json"},
    "kimi": {
        "kimi.config.toml": ".kimi-code/config.toml",
        "kimi.mcp.json": ".kimi-code/mcp.json",
    },
}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "state"
    monkeypatch.setenv("KODER_MONITOR_STATE", str(path))
    return str(path)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def site(tmp_path: Path, home: Path, state: str) -> Site:
    """Give a place to register Claude Code in."""
    program = tmp_path / "bin dir" / PROGRAM
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return Site(
        runtime="claude-code",
        user=str(home),
        project=None,
        program=str(program),
        env={"PATH": str(program.parent)},
    )


@pytest.fixture
def settings(home: Path) -> Path:
    """Give a settings file of Claude Code that is as strict as it should be."""
    path = home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text('{\n  "model": "opus"\n}\n', "utf-8")
    return path


def fill(home: Path, runtime: str) -> None:
    for sample, place in SAMPLES[runtime].items():
        path = home / place
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(DATA / sample, path)


def tree(folder: Path) -> dict[str, bytes | str]:
    """Return all that lies below a folder: contents, and where links lead."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = str(path.readlink())
        else:
            found[name] = b"" if path.is_dir() else path.read_bytes()
    return found


def value(path: Path) -> Any:  # noqa: ANN401 - what a test expects says it
    return read(path.read_text("utf-8")).value


def said(plan: Plan) -> str:
    phrases = [*plan.notes]
    for step in plan.steps:
        phrases += [*step.warned, *([step.refused] if step.refused else [])]
    return "\n".join(item.render(Lang.EN) for item in phrases)


def commands(path: Path) -> Iterator[str]:
    """Give every text of a file that is a command of ours."""
    if path.suffix == ".toml":
        stack: list[Any] = [tomllib.loads(path.read_text("utf-8"))]
    else:
        stack = [value(path)]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            stack += item.values()
        elif isinstance(item, list):
            stack += item
        elif isinstance(item, str) and part_of(item):
            yield item


# Every runtime


@pytest.mark.parametrize("filled", [True, False], ids=["with files", "without files"])
@pytest.mark.parametrize("runtime", BY_US)
def test_uninstall_leaves_the_very_bytes_of_before(
    runtime: str, filled: bool, site: Site, home: Path, state: str
) -> None:
    if filled:
        fill(home, runtime)
    before = tree(home)
    site = replace(site, runtime=runtime)
    install(site, state)
    assert tree(home) != before
    uninstall(site, state)
    assert tree(home) == before
    assert manifest.load(state) == []
    assert chained.previous(runtime) is None


@pytest.mark.parametrize("blank", [b"", b"  \n", b"\xef\xbb\xbf\r\n"])
@pytest.mark.parametrize("runtime", BY_US)
def test_a_json_file_that_holds_nothing_is_an_empty_object(
    runtime: str, blank: bytes, site: Site, home: Path, state: str
) -> None:
    site = replace(site, runtime=runtime)
    files = [slot for slot in slots(site) if slot.path.endswith((".json", ".jsonc"))]
    for slot in files:
        os.makedirs(os.path.dirname(slot.path), exist_ok=True)
        Path(slot.path).write_bytes(blank)
    before = tree(home)
    plan = install(site, state)
    assert not plan.refused
    assert not any(step.warned for step in plan.steps)
    for slot in files:
        assert json.loads(Path(slot.path).read_text("utf-8-sig"))
    uninstall(site, state)
    assert tree(home) == before


def test_what_could_not_be_taken_out_again_is_not_put_in(
    site: Site, settings: Path, home: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(*_: object, **__: object) -> Edited:
        raise UnreadableError("odd", 7)

    monkeypatch.setattr(entries, "uninstall", odd)
    before = tree(home)
    plan = install(site, state)
    assert plan.refused
    assert f"{settings}" in said(plan)
    assert "line 7" in said(plan)
    assert tree(home) == before


@pytest.mark.parametrize("runtime", BY_US)
def test_install_says_beforehand_exactly_what_it_does(
    runtime: str, site: Site, home: Path, state: str
) -> None:
    fill(home, runtime)
    site = replace(site, runtime=runtime)
    before = tree(home)
    plan = plan_install(site, [])
    assert tree(home) == before
    assert not plan.refused
    assert not os.path.exists(state)
    install(site, state)
    changed = {name: data for name, data in tree(home).items() if data}
    planned = {
        os.path.relpath(step.slot.path, home): step.after
        for step in plan.steps
        if not step.idle
    }
    copies = {name for name in changed if name.endswith(".before-koder-monitor")}
    differing = {name for name in changed if before.get(name) != changed[name]}
    assert {name: changed[name] for name in differing - copies} == planned


@pytest.mark.parametrize("runtime", BY_US)
def test_twice_is_once(runtime: str, site: Site, home: Path, state: str) -> None:
    fill(home, runtime)
    site = replace(site, runtime=runtime)
    install(site, state)
    once = tree(home)
    again = install(site, state)
    assert all(step.idle for step in again.steps)
    assert tree(home) == once
    uninstall(site, state)
    assert all(step.idle for step in uninstall(site, state).steps)


@pytest.mark.parametrize("runtime", BY_US)
def test_everything_registered_is_an_absolute_path_that_is_there(
    runtime: str, site: Site, home: Path, state: str
) -> None:
    fill(home, runtime)
    site = replace(site, runtime=runtime)
    plan = install(site, state)
    heard_events = RUNTIMES[runtime].hooks
    found = []
    for step in plan.steps:
        path = Path(step.slot.path)
        if path.suffix in {".json", ".jsonc", ".toml"}:
            found += list(commands(path))
    assert all(command.startswith(f"'{site.program}' ") for command in found)
    hooks = [command for command in found if part_of(command) == "hook"]
    if heard_events is not None:
        assert len(hooks) == len(heard(heard_events)) > 3
        assert all(command.endswith(f" --runtime {runtime}") for command in hooks)
        assert all(
            f" hook {event} " in " ".join(hooks) for event in heard(heard_events)
        )
    lines = [command for command in found if part_of(command) == "statusline"]
    assert len(lines) == (RUNTIMES[runtime].line is not None)


@pytest.mark.parametrize("runtime", BY_US)
def test_the_server_and_the_skill_are_registered(
    runtime: str, site: Site, home: Path, state: str
) -> None:
    site = replace(site, runtime=runtime)
    plan = install(site, state)
    server = RUNTIMES[runtime].server
    assert server is not None
    slot = next(step.slot for step in plan.steps if step.slot.name == server.user)
    text = Path(slot.path).read_text("utf-8")
    root = tomllib.loads(text) if slot.path.endswith(".toml") else json.loads(text)
    for key in (*server.at, PROGRAM):
        root = root[key]
    listed = root["command"] if server.form == "listed" else [root["command"], "mcp"]
    assert listed == [site.program, "mcp"]
    skills = [p for p in home.rglob("SKILL.md") if p.parent.name == PROGRAM]
    assert [path.read_text("utf-8") for path in skills] == [skill()]


@pytest.mark.parametrize("runtime", BY_US)
def test_what_others_write_meanwhile_stays_when_we_go(
    runtime: str, site: Site, home: Path, state: str
) -> None:
    fill(home, runtime)
    site = replace(site, runtime=runtime)
    install(site, state)
    for place in SAMPLES[runtime].values():
        path = home / place
        text = path.read_text("utf-8")
        if path.suffix == ".toml":
            path.write_text(f"{text}\n[theirs]\nx = 1\n", "utf-8", newline="")
        else:
            path.write_text(f"{text}\n// theirs\n", "utf-8", newline="")
    uninstall(site, state)
    for sample, place in SAMPLES[runtime].items():
        path = home / place
        text = path.read_text("utf-8")
        assert "theirs" in text
        assert list(commands(path)) == []
        had = (DATA / sample).read_text("utf-8")
        if path.suffix == ".toml":
            assert tomllib.loads(text) == {**tomllib.loads(had), "theirs": {"x": 1}}
        else:
            assert read(text).value == read(had).value


@pytest.mark.parametrize("runtime", BY_US)
def test_what_is_installed_is_known_without_a_record(
    runtime: str, site: Site, home: Path, state: str
) -> None:
    fill(home, runtime)
    site = replace(site, runtime=runtime)
    before = {place: (home / place).read_bytes() for place in SAMPLES[runtime].values()}
    install(site, state)
    Path(state, manifest.NAME).unlink()
    uninstall(site, state)
    for place, data in before.items():
        left = home / place
        if left.suffix != ".toml":
            gone = read(data.decode("utf-8")).value
            hooks = find(read(left.read_text("utf-8")), ("hooks",))
            assert list(commands(left)) == []
            assert hooks is None or isinstance(gone, dict)
    assert not list(home.rglob("SKILL.md"))


@pytest.mark.parametrize("runtime", BY_US)
def test_another_place_of_the_program_replaces_the_old_entries(
    runtime: str, site: Site, home: Path, state: str, tmp_path: Path
) -> None:
    fill(home, runtime)
    before = tree(home)
    site = replace(site, runtime=runtime)
    install(site, state)
    newer = tmp_path / "newer" / PROGRAM
    newer.parent.mkdir()
    shutil.copy(site.program, newer)
    moved = replace(site, program=str(newer))
    install(moved, state)
    for place in SAMPLES[runtime].values():
        assert all(
            command.startswith(f"{newer} ") for command in commands(home / place)
        )
    assert site.program not in json.dumps([str(v) for v in tree(home).values()])
    uninstall(moved, state)
    assert tree(home) == before


@pytest.mark.parametrize("runtime", sorted(RUNTIMES))
def test_each_row_says_when_and_where_it_was_learned(runtime: str) -> None:
    row = RUNTIMES[runtime]
    assert datetime.strptime(row.read_on, "%Y-%m-%d").replace(tzinfo=UTC).year >= 2026
    assert "/" in row.source or "." in row.source
    assert row.by_hand or row.texts
    assert not row.by_hand or row.instructions


@pytest.mark.parametrize("runtime", [n for n, row in RUNTIMES.items() if row.by_hand])
def test_what_a_person_has_to_add_is_whole(runtime: str, site: Site) -> None:
    found = slots(replace(site, runtime=runtime))
    assert found
    for slot in found:
        assert PROGRAM in slot.snippet()
        json.loads(slot.snippet())


# One project


@pytest.mark.parametrize("runtime", [n for n in BY_US if n != "kimi"])
def test_a_project_is_registered_in_its_own_files(
    runtime: str, site: Site, home: Path, state: str, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    site = replace(site, runtime=runtime, project=str(project))
    install(site, state)
    assert tree(home) == {}
    found = [path for path in project.rglob("*") if path.is_file()]
    assert len(found) >= 2
    uninstall(site, state)
    assert tree(project) == {}


def test_in_one_project_the_persons_own_line_goes_on(
    site: Site, settings: Path, state: str, tmp_path: Path
) -> None:
    settings.write_text('{"statusLine": {"command": "my line"}}', "utf-8")
    local = replace(site, project=str(tmp_path))
    install(local, state)
    assert chained.previous("claude-code") == "my line"
    uninstall(local, state)
    assert chained.previous("claude-code") is None
    settings.write_text("{ no", "utf-8")
    install(local, state)
    assert chained.previous("claude-code") is None


def test_two_scopes_and_two_runtimes_that_read_the_same_hooks_are_said(
    site: Site, state: str, tmp_path: Path
) -> None:
    install(site, state)
    local = install(replace(site, project=str(tmp_path)), state)
    assert "claude-code is registered in ~ too" in said(local)
    cursor = install(replace(site, runtime="cursor"), state)
    assert "they may run twice" in said(cursor)
    copilot = plan_install(replace(site, runtime="copilot"), manifest.load(state))
    assert "they may run twice" in said(copilot)
    gemini = plan_install(replace(site, runtime="gemini"), manifest.load(state))
    assert "twice" not in said(gemini)


def test_a_skill_that_two_runtimes_read_stays_until_both_are_gone(
    site: Site, home: Path, state: str
) -> None:
    codex, kimi = replace(site, runtime="codex"), replace(site, runtime="kimi")
    install(codex, state)
    install(kimi, state)
    shared = home / ".agents/skills/koder-monitor/SKILL.md"
    uninstall(codex, state)
    assert shared.exists()
    uninstall(kimi, state)
    assert tree(home) == {}


# Claude Code, and what files may be like


def test_a_status_line_goes_on_in_front_of_ours(
    site: Site, settings: Path, state: str
) -> None:
    settings.write_text('{"statusLine": {"command": "my line", "padding": 2}}', "utf-8")
    plan = install(site, state)
    assert chained.previous("claude-code") == "my line"
    assert "in front of ours: my line" in said(plan)
    line = value(settings)["statusLine"]
    assert (part_of(line["command"]), line["padding"]) == ("statusline", 2)
    settings.write_text(settings.read_text("utf-8") + "\n", "utf-8")
    uninstall(site, state)
    assert value(settings)["statusLine"] == {"command": "my line", "padding": 2}


def test_comments_in_a_strict_file_are_kept_and_said(
    site: Site, home: Path, state: str
) -> None:
    fill(home, "claude-code")
    path = home / ".claude/settings.json"
    plan = install(site, state)
    text = path.read_bytes().decode("utf-8")
    for kept in ("\ufeff", "// how I like it", "/* nobody knows it */", "// tells me"):
        assert kept in text
    assert "may ignore the whole file" in said(plan)
    assert "notify-send done" in text


@pytest.mark.parametrize(
    "content", [b"{ no", b"[]", b"\xff\xfe{\x00}\x00", b'{"hooks": 7}']
)
def test_what_makes_no_sense_is_left_alone_and_so_is_all_else(
    content: bytes, site: Site, home: Path, settings: Path, state: str
) -> None:
    settings.write_bytes(content)
    before = tree(home)
    plan = install(site, state)
    assert plan.refused
    assert str(settings) in said(plan)
    assert tree(home) == before
    [bad] = [step for step in plan.steps if step.refused]
    assert json.loads(bad.slot.snippet())["hooks"]
    assert install(site, state, forced=True).refused
    assert settings.read_bytes() == content
    assert (home / ".claude/skills/koder-monitor/SKILL.md").exists()


def test_what_makes_no_sense_any_more_stays_known_when_we_go(
    site: Site, settings: Path, state: str
) -> None:
    install(site, state)
    settings.write_text("{ no", "utf-8")
    plan = uninstall(site, state)
    assert plan.refused
    [left] = manifest.load(state)
    assert [record.path for record in left.files] == [str(settings)]
    settings.write_bytes(b"\xff")
    assert uninstall(site, state).refused
    settings.write_text("{}", "utf-8")
    assert not uninstall(site, state).refused
    assert manifest.load(state) == []


@pytest.mark.parametrize("runtime", ["claude-code", "codex"])
def test_a_folder_in_the_place_of_a_file_is_refused(
    runtime: str, site: Site, home: Path, state: str
) -> None:
    site = replace(site, runtime=runtime)
    slot = slots(site)[0]
    Path(slot.path).mkdir(parents=True)
    assert "cannot be read" in said(install(site, state))
    assert "cannot be read" in said(uninstall(site, state))


def test_a_link_stays_a_link_and_its_file_keeps_its_mode(
    site: Site, settings: Path, state: str, tmp_path: Path
) -> None:
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    settings.rename(real)
    real.chmod(0o600)
    settings.symlink_to(real)
    had = real.read_bytes()
    install(site, state)
    assert settings.is_symlink()
    assert real.read_bytes() != had
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    copy = settings.with_name("settings.json.before-koder-monitor")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    uninstall(site, state)
    assert settings.is_symlink()
    assert real.read_bytes() == had
    assert sorted(path.name for path in real.parent.iterdir()) == ["claude.json"]


def test_a_link_that_leads_nowhere_gets_its_file_and_loses_it_again(
    site: Site, settings: Path, state: str, tmp_path: Path
) -> None:
    settings.unlink()
    target = tmp_path / "not" / "yet.json"
    settings.symlink_to(target)
    install(site, state)
    assert target.exists()
    uninstall(site, state)
    assert settings.is_symlink()
    assert not target.parent.exists()


def test_a_read_only_file_is_changed_only_by_force(
    site: Site, settings: Path, state: str
) -> None:
    settings.chmod(0o444)
    had = settings.read_bytes()
    assert "read-only" in said(install(site, state))
    assert settings.read_bytes() == had
    install(site, state, forced=True)
    assert stat.S_IMODE(settings.stat().st_mode) == 0o444
    assert "read-only" in said(uninstall(site, state))
    settings.chmod(0o644)
    uninstall(site, state)
    assert settings.read_bytes() == had


def test_a_folder_that_cannot_be_written_is_found_before_anything_is_done(
    site: Site, home: Path, state: str
) -> None:
    (home / ".claude").write_text("a file")
    before = tree(home)
    plan = install(site, state)
    assert plan.refused
    assert tree(home) == before


def test_a_new_file_is_its_owners_alone(site: Site, home: Path, state: str) -> None:
    install(site, state)
    assert stat.S_IMODE((home / ".claude.json").stat().st_mode) == 0o600


def test_a_file_that_changes_under_way_is_read_again(
    site: Site, settings: Path, state: str
) -> None:
    plans = []

    def change(plan: Plan) -> None:
        plans.append(plan)
        if len(plans) == 1:
            settings.write_text('{"theirs": 1}', "utf-8")

    install(site, state, planned=change)
    assert len(plans) == 2
    assert value(settings)["theirs"] == 1
    assert value(settings)["hooks"]
    uninstall(site, state)
    assert value(settings) == {"theirs": 1}


def test_a_file_that_never_stops_changing_is_given_up(
    site: Site, settings: Path, state: str
) -> None:
    plans = []

    def change(plan: Plan) -> None:
        plans.append(plan)
        settings.write_text(f'{{"theirs": {len(plans)}}}', "utf-8")

    with pytest.raises(ChangedError):
        install(site, state, planned=change)
    assert value(settings) == {"theirs": len(plans)}


def test_what_somebody_writes_over_at_once_is_seen(
    site: Site, settings: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overwritten(path: str, placed: placing.Placed) -> None:
        placing.place(path, placed)
        if path == str(settings):
            settings.write_text("{}", "utf-8")

    monkeypatch.setattr(installing, "place", overwritten)
    with pytest.raises(ChangedError):
        install(site, state)


def test_a_full_disk_leaves_what_was_there_and_can_be_repeated(
    site: Site, home: Path, settings: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(home)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(StoreError):
            install(site, state)
    assert tree(home) == before
    with monkeypatch.context() as patch:
        patch.setattr(installing, "place", full)
        with pytest.raises(StoreError):
            install(site, state)
    install(site, state)
    uninstall(site, state)
    assert tree(home) == before


def test_an_edited_skill_is_copied_before_it_goes(
    site: Site, home: Path, state: str
) -> None:
    install(site, state)
    path = home / ".claude/skills/koder-monitor/SKILL.md"
    path.write_text("my own words", "utf-8")
    plan = uninstall(site, state)
    assert not plan.refused
    assert not path.exists()
    copy = path.with_name("SKILL.md.before-koder-monitor")
    assert copy.read_text("utf-8") == "my own words"


def test_a_skill_of_the_same_name_comes_back(
    site: Site, home: Path, state: str
) -> None:
    path = home / ".claude/skills/koder-monitor/SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("somebody else's", "utf-8")
    before = tree(home)
    plan = install(site, state)
    assert str(path) in said(plan)
    assert path.read_text("utf-8") == skill()
    uninstall(site, state)
    assert tree(home) == before


def test_a_skill_that_is_not_ours_is_left_alone(
    site: Site, home: Path, state: str
) -> None:
    path = home / ".claude/skills/koder-monitor/SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("somebody else's", "utf-8")
    uninstall(site, state)
    assert path.read_text("utf-8") == "somebody else's"


def test_a_copy_that_is_gone_is_done_without(
    site: Site, settings: Path, state: str
) -> None:
    had = settings.read_bytes()
    install(site, state)
    settings.with_name("settings.json.before-koder-monitor").unlink()
    uninstall(site, state)
    assert settings.read_bytes() == had


def test_every_copy_of_what_differs_is_kept_and_said(
    site: Site, settings: Path, state: str, tmp_path: Path
) -> None:
    install(site, state)
    settings.write_text(settings.read_text("utf-8") + "\n\n", "utf-8")
    moved = tmp_path / "moved" / PROGRAM
    moved.parent.mkdir()
    shutil.copy(site.program, moved)
    install(replace(site, program=str(moved)), state)
    plan = uninstall(site, state)
    copies = sorted(p.name for p in settings.parent.glob("*.before-koder-monitor*"))
    assert copies == [
        "settings.json.before-koder-monitor",
        "settings.json.before-koder-monitor.2",
    ]
    assert all(name in said(plan) for name in copies)
    assert value(settings) == {"model": "opus"}


def test_a_server_of_our_name_that_is_not_ours_is_said(
    site: Site, home: Path, state: str
) -> None:
    path = home / ".claude.json"
    path.write_text('{"mcpServers": {"koder-monitor": {"command": "uvx"}}}', "utf-8")
    plan = install(site, state)
    assert "mcpServers.koder-monitor" in said(plan)
    assert value(path) == {"mcpServers": {"koder-monitor": {"command": "uvx"}}}


def test_beside_the_plugin_only_the_status_line_is_registered(
    site: Site, home: Path, settings: Path, state: str
) -> None:
    install(site, state)
    text = settings.read_text("utf-8").rstrip().removesuffix("}").rstrip()
    enabled = ', "enabledPlugins": {"koder-monitor@koder": true, "x@y": true}}'
    settings.write_text(text + enabled, "utf-8")
    plan = install(site, state)
    assert "koder-monitor@koder" in said(plan)
    assert list(commands(settings)) == [value(settings)["statusLine"]["command"]]
    assert value(home / ".claude.json").get("mcpServers", {}) == {}
    assert not plan_install(site, [], forced=True).site.plugin
    assert len([*commands(settings)]) == 1


@pytest.mark.parametrize(
    "content", ['{"enabledPlugins": {"koder-monitor@koder": false}}', "{ no", "[]"]
)
def test_a_plugin_that_is_off_is_no_matter(
    content: str, site: Site, settings: Path
) -> None:
    settings.write_text(content, "utf-8")
    assert plan_install(site, []).site.plugin is None


def test_the_settings_folder_is_the_one_that_the_environment_names(
    site: Site, tmp_path: Path, home: Path, state: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    named = replace(site, env={**site.env, "CLAUDE_CONFIG_DIR": f"{elsewhere}/"})
    install(named, state)
    assert tree(home) == {}
    names = {p.name for p in elsewhere.iterdir()}
    assert names == {"settings.json", ".claude.json", "skills"}
    uninstall(site, state)  # found by its record, whatever the environment says now
    assert not elsewhere.exists()


def test_every_folder_that_was_registered_in_is_left(
    site: Site, tmp_path: Path, home: Path, state: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    install(site, state)
    install(replace(site, env={**site.env, "CLAUDE_CONFIG_DIR": str(elsewhere)}), state)
    assert elsewhere.exists()
    uninstall(site, state)
    assert tree(home) == {}
    assert not elsewhere.exists()


def test_kimi_is_found_in_its_older_folder(site: Site, home: Path, state: str) -> None:
    (home / ".kimi").mkdir()
    install(replace(site, runtime="kimi"), state)
    assert (home / ".kimi/config.toml").exists()


# What is kept of it


def test_a_record_that_cannot_be_read_is_never_overwritten(
    site: Site, state: str
) -> None:
    path = Path(state, manifest.NAME)
    path.parent.mkdir()
    for content in ("{ no", '{"version": 7, "installs": []}'):
        path.write_text(content)
        for do in (install, uninstall):
            with pytest.raises(StoreError):
                do(site, state)
        assert path.read_text() == content


def test_a_state_directory_that_cannot_be_written_stops_everything(
    site: Site, home: Path, tmp_path: Path
) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    with pytest.raises(StoreError):
        install(site, f"{blocked}/state")
    assert tree(home) == {}


@pytest.mark.parametrize("do", [install, uninstall])
def test_one_that_is_stopped_for_good_is_not_waited_for(
    do: Callable[[Site, str], object],
    site: Site,
    state: str,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("watcher.installing._TURN_LIMIT_S", 0.1)
    with alone(state):
        before = tree(home)
        with pytest.raises(StoreError, match=r"installed\.lock"):
            do(site, state)
        assert tree(home) == before


def test_a_kept_line_survives_odd_content(state: str) -> None:
    path = Path(state, "statusline.json")
    path.parent.mkdir()
    for content in ("{ no", "[]", '{"claude-code": 7}', '{"claude-code": {}}'):
        path.write_text(content)
        assert chained.previous("claude-code") is None
    chained.keep("claude-code", "x")
    assert chained.previous("claude-code") == "x"
    assert chained.previous("qwen") is None
    chained.forget("qwen")
    chained.forget("claude-code")
    assert chained.previous("claude-code") is None


def test_a_line_that_cannot_be_kept_leaves_nothing_behind(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        chained.keep("claude-code", "x")
    assert list(Path(state).iterdir()) == []


# Which program


def test_the_program_is_the_one_that_was_called(site: Site, tmp_path: Path) -> None:
    link = tmp_path / "link" / PROGRAM
    link.parent.mkdir()
    link.symlink_to(site.program)
    assert program_path(str(link), "/nowhere/python") == str(link)


def test_else_it_is_the_one_on_the_path(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.path.dirname(site.program))
    assert program_path("/x/__main__.py", "/nowhere/python") == site.program
    assert program_path(f"/gone/{PROGRAM}", "/nowhere/python") == site.program


def test_else_it_is_the_one_beside_the_interpreter(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    python = os.path.join(os.path.dirname(site.program), "python")
    assert program_path("x", python) == site.program


def test_a_program_that_is_not_there_is_never_registered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError):
        program_path("x", "/nowhere/python")


# How it is


def judged(state: str) -> list[tuple[str, bool, str]]:
    return [
        (item.name, item.ok, item.detail.render(Lang.EN))
        for item in health(state, dict(os.environ))
    ]


def test_it_is_said_whether_a_hook_ever_ran(site: Site, state: str) -> None:
    assert judged(state) == []
    install(site, state)
    [(name, ok, detail)] = judged(state)
    assert (name, ok) == ("claude-code", False)
    assert "no hook has run since" in detail
    beats = Path(state, "hooks/beats")
    beats.mkdir(parents=True)
    (beats / "gemini.stop").touch()
    assert judged(state)[0][1] is False
    (beats / "claude-code.stop").touch()
    os.utime(beats / "claude-code.stop", (7, 7))  # of an installation before
    assert judged(state)[0][1] is False
    (beats / "claude-code.stop").touch()
    install(site, state)  # which changes nothing
    [(_, ok, detail)] = judged(state)
    assert ok
    assert "(stop)" in detail


def test_it_is_said_what_is_missing(site: Site, settings: Path, state: str) -> None:
    install(site, state)
    settings.write_text("{}", "utf-8")
    [(_, ok, detail)] = judged(state)
    assert not ok
    assert str(settings) in detail
    Path(site.program).unlink()
    assert "no longer there" in judged(state)[0][2]
    Path(state, manifest.NAME).write_text("{ no")
    assert judged(state)[0][:2] == ("manifest", False)


def test_a_project_is_named(site: Site, state: str, tmp_path: Path) -> None:
    install(replace(site, project=str(tmp_path)), state)
    assert judged(state)[0][0] == f"claude-code {tmp_path}"


def test_the_plan_to_go_changes_nothing(site: Site, home: Path, state: str) -> None:
    install(site, state)
    there = tree(home)
    plan = plan_uninstall(site, manifest.load(state))
    assert not all(step.idle for step in plan.steps)
    assert tree(home) == there


# Files as they may be


def test_what_is_no_settings_file_is_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="no regular file"):
        placing.taken(str(pipe))
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(64 * 1024 * 1024)
    with pytest.raises(OSError, match="too long"):
        placing.taken(str(big))


def test_a_file_keeps_its_owner_where_that_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "theirs"
    path.write_text("old")
    there = placing.taken(str(path))
    assert there is not None
    assert there.status is not None
    fields = list(there.status)
    fields[stat.ST_UID] += 1
    owners = []

    def given(_: int, uid: int, gid: int) -> None:
        owners.append((uid, gid))
        raise PermissionError

    monkeypatch.setattr(os, "fchown", given)
    other = os.stat_result(fields)
    placing.place(str(path), placing.Placed(b"new", other))
    assert owners == [(other.st_uid, other.st_gid)]
    assert path.read_text() == "new"


def test_a_copy_is_made_once_and_never_over_another(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    first = placing.back_up(path, placing.Placed(b"1"))
    assert placing.back_up(path, placing.Placed(b"1")) == first
    Path(f"{first}.2").symlink_to("nowhere")
    assert placing.back_up(path, placing.Placed(b"2")) == f"{first}.3"


def test_what_cannot_be_removed_is_said(
    site: Site, home: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, state)

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", denied)
        with pytest.raises(StoreError):
            uninstall(site, state)
    uninstall(site, state)
    assert tree(home) == {}


def test_a_kept_line_that_cannot_be_let_go_is_said(
    site: Site, settings: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.write_text('{"statusLine": {"command": "my line"}}', "utf-8")
    install(site, state)

    def denied(_: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(chained, "forget", denied)
    with pytest.raises(StoreError):
        uninstall(site, state)


def test_a_record_that_cannot_be_written_stops_everything(
    site: Site, home: Path, state: str
) -> None:
    Path(state, manifest.NAME).mkdir(parents=True)
    with pytest.raises(StoreError):
        manifest.save(state, [])
    with pytest.raises(StoreError):
        install(site, state)
    assert tree(home) == {}


def test_only_what_is_there_of_a_manual_runtime_is_taken_out(
    site: Site, home: Path, state: str
) -> None:
    path = home / ".gemini/config/hooks.json"
    path.parent.mkdir(parents=True)
    by_hand = replace(site, runtime="antigravity")
    path.write_text(slots(by_hand)[0].snippet(), "utf-8")
    uninstall(by_hand, state)
    assert list(commands(path)) == []
