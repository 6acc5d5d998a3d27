"""The plugin for Claude Code is what `install` would register, of this version."""

import json
import re
import shlex
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import watcher
from policies.lines import outcome_line
from policies.model import Ending, Outcome
from policies.target import pid_target
from policies.wording import Lang, phrase
from watcher.cli.parser import COMMANDS, WATCHES, parse
from watcher.runtimes.registry import RUNTIMES, heard
from watcher.runtimes.slots import Site, skill, slots

ROOT = Path(__file__).parent.parent
PLUGIN = ROOT / "deploy/claude-code"
HOOKS = json.loads((PLUGIN / "hooks/hooks.json").read_text("utf-8"))["hooks"]


def commands() -> list[str]:
    return [hook["command"] for [group] in HOOKS.values() for hook in group["hooks"]]


def test_the_manifest_has_our_version() -> None:
    manifest = json.loads((PLUGIN / ".claude-plugin/plugin.json").read_text("utf-8"))
    assert (manifest["name"], manifest["version"]) == (
        "koder-monitor",
        watcher.__version__,
    )
    assert "hooks" not in manifest  # loaded by its place; named too, it would run twice


def test_the_marketplace_has_the_plugin() -> None:
    path = PLUGIN / ".claude-plugin/marketplace.json"
    [entry] = json.loads(path.read_text("utf-8"))["plugins"]
    assert entry["name"] == "koder-monitor"
    assert (PLUGIN / entry["source"]).resolve() == PLUGIN.resolve()


def test_the_skill_is_the_one_that_is_installed() -> None:
    shipped = PLUGIN / "skills/koder-monitor/SKILL.md"
    assert shipped.read_text("utf-8") == skill()


def test_the_plugin_hears_what_an_installation_hears() -> None:
    hooks = RUNTIMES["claude-code"].hooks
    assert hooks is not None
    assert set(HOOKS) == set(heard(hooks).values())
    for event, name in heard(hooks).items():
        [group] = HOOKS[name]
        assert f"koder-monitor hook {event} --runtime claude-code;" in json.dumps(group)
        assert group.get("matcher", "") == (
            hooks.guarded if event == "pre-tool-use" else ""
        )


def test_the_server_is_the_one_that_an_installation_has() -> None:
    shipped = json.loads((PLUGIN / ".mcp.json").read_text("utf-8"))
    site = Site(
        runtime="claude-code", user="/h", project=None, program="koder-monitor", env={}
    )
    slot = next(slot for slot in slots(site) if slot.name == "{state}/.claude.json")
    assert json.loads(slot.snippet()) == shipped


@pytest.mark.parametrize("command", commands())
def test_a_hook_of_the_plugin_hands_on_to_the_command(
    command: str, tmp_path: Path
) -> None:
    program = tmp_path / "koder-monitor"
    program.write_text('#!/bin/sh\nread -r line\necho "$@" "$line"\n')
    program.chmod(0o755)
    ran = run(command, f"{tmp_path}:/usr/bin:/bin", "payload\n")
    event = command.partition(" hook ")[2].split()[0]
    assert ran.stdout == f"hook {event} --runtime claude-code payload\n"
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("command", commands())
def test_a_hook_of_the_plugin_is_no_error_where_the_command_is_missing(
    command: str,
) -> None:
    ran = run(command, "/nowhere", "")
    assert (ran.returncode, ran.stderr) == (0, "")
    if "session-start" in command:
        assert "not on PATH" in json.loads(ran.stdout)["systemMessage"]
    else:
        assert ran.stdout == ""


def run(command: str, path: str, payload: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["/bin/sh", "-c", command],
        env={"PATH": path},
        input=payload,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


# The skill


def calls() -> list[list[str]]:
    spans = re.findall(r"`(koder-monitor [^`]+)`", skill())
    return [shlex.split(span) for span in spans]


def test_the_skill_is_about_a_page_and_can_be_found() -> None:
    head = skill().partition("---\n")[2].partition("---\n")[0]
    [name] = re.findall(r"^name: (.*)$", head, re.MULTILINE)
    [description] = re.findall(r"^description: (.*)$", head, re.MULTILINE)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert len(description) <= 1024
    assert len(skill().splitlines()) < 100


def test_the_skill_shows_only_calls_that_can_be_made() -> None:
    shown = calls()
    assert {words[1] for words in shown} >= {*WATCHES, "check", "assess", "renew"}
    for words in shown:
        argv = [{"ID": "abc", "ARGV...": "true"}.get(word, word) for word in words[1:]]
        if argv == ["log", "FILE"] or argv[0] not in {*WATCHES, *COMMANDS}:
            continue
        parse(argv)


@pytest.mark.parametrize("ending", Ending)
def test_the_skill_says_what_to_do_on_every_line(ending: Ending) -> None:
    now = datetime(2026, 11, 30, 14, 3, 21, tzinfo=UTC)
    outcome = Outcome(
        ending=ending,
        watch_id="ec28c874b465",
        target=pid_target(4711),
        label="API build",
        armed_at=now,
        ended_at=now,
        waited_s=1.0,
        ttl_s=3600,
        reason=phrase("said", text="why"),
    )
    words = outcome_line(outcome, Lang.PT, UTC).partition(":")[0]
    assert f"| `{words}` |" in skill()


def test_the_skill_never_makes_an_offer_of_a_watch() -> None:
    assert "without asking" in skill()
    for offer in ("would you like", "shall i", "should i", "do you want"):
        assert offer not in skill().lower()


# The plugin for OpenCode


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_plugin_for_opencode_hands_over_what_hooks_say(tmp_path: Path) -> None:
    program = tmp_path / "koder-monitor"
    program.write_text(
        "#!/bin/sh\n"
        'read -r line; printf "%s %s\\n" "$2" "$line" >>"$0.log"\n'
        'case "$2" in stop) echo \'{"hold": "blocked"}\';;'
        ' pre-compact) ;; *) echo "{\\"context\\": \\"says $2\\"}";; esac\n'
    )
    program.chmod(0o755)
    site = Site(
        runtime="opencode",
        user=str(tmp_path),
        project=None,
        program=str(program),
        env={},
    )
    plugin = next(slot for slot in slots(site) if slot.path.endswith(".js"))
    module = tmp_path / "plugin.mjs"
    module.write_text(plugin.snippet(), "utf-8")
    script = tmp_path / "run.mjs"
    script.write_text(OPENCODE, "utf-8")
    ran = subprocess.run(
        ["node", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert ran.returncode == 0, ran.stderr
    told: dict[str, Any] = json.loads(ran.stdout)
    assert told == {
        "prompt": "hello\n\nsays session-start\n\nsays user-prompt-submit",
        "result": "done\n\nsays pre-tool-use\n\nsays post-tool-use",
        "sent": [{"session": "s1", "text": "blocked"}],
    }
    log = Path(f"{program}.log").read_text("utf-8").splitlines()
    payloads = [
        (line.split(" ", 1)[0], json.loads(line.split(" ", 1)[1])) for line in log
    ]
    assert [event for event, _ in payloads] == [
        "session-start",
        "user-prompt-submit",
        "pre-tool-use",
        "post-tool-use",
        "stop",
        "stop",
    ]
    assert all(said["session_id"] == "s1" for _, said in payloads)
    assert payloads[2][1]["tool_input"] == {"command": "ls"}
    assert [said["stop_hook_active"] for _, said in payloads[-2:]] == [False, True]


OPENCODE = """
import { KoderMonitor } from "./plugin.mjs"
const sent = []
const client = { session: { promptAsync: async ({ path, body }) =>
  sent.push({ session: path.id, text: body.parts[0].text }) } }
const hooks = await KoderMonitor({ client, directory: "/p/sub", worktree: "/p" })
const properties = { info: { id: "s1" } }
await hooks.event({ event: { type: "session.created", properties } })
const message = { message: {}, parts: [{ type: "text", text: "hello" }] }
await hooks["chat.message"]({ sessionID: "s1" }, message)
const call = { tool: "bash", sessionID: "s1", callID: "c1" }
await hooks["tool.execute.before"](call, { args: { command: "ls" } })
const result = { title: "", output: "done", metadata: {} }
await hooks["tool.execute.after"]({ ...call, args: { command: "ls" } }, result)
const idle = { event: { type: "session.idle", properties: { sessionID: "s1" } } }
await hooks.event(idle)
await hooks.event(idle)
const prompt = message.parts[0].text
console.log(JSON.stringify({ prompt, result: result.output, sent }))
"""
