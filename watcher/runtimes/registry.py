"""Where each runtime keeps what we register, and in which shape: one table (C11.1).

Each row says when and from where that was learned. Paths begin with a name in braces:
`{home}` is the runtime's own folder, `{user}` the person's, `{project}` the project's.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from policies.model import Json
from watcher.runtimes import HANDLERS

Shape: TypeAlias = Literal["grouped", "flat", "copilot", "named", "kimi"]
"""How a file holds hooks.

`grouped`: event to groups `{matcher, hooks: [...]}`; `flat`: event to hooks; `copilot`:
flat, with its own keys; `named`: an object under our name; `kimi`: an array of tables.
"""

LIMIT_S: Final = 10
"""Seconds that a runtime shall give a hook of ours, which takes two at the most."""

_CLAUDE_EVENTS: Final = {
    "session-start": "SessionStart",
    "user-prompt-submit": "UserPromptSubmit",
    "pre-tool-use": "PreToolUse",
    "post-tool-use": "PostToolUse",
    "stop": "Stop",
    "subagent-stop": "SubagentStop",
    "pre-compact": "PreCompact",
    "session-end": "SessionEnd",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Where hooks are registered.

    Attributes:
        user, local: the file for the person, and for one project.
        events: our event to its own name; those without a handler are left out.
        guarded: the tools before which a guard looks, as a matcher.
        per_s: what it counts as a second: 1 or 1000.
        base: what else the file must say.
        whole: the file is ours alone.
    """

    user: str
    local: str | None
    shape: Shape
    events: Mapping[str, str]
    guarded: str = ""
    per_s: int = 1
    base: Mapping[str, Json] | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where the MCP server is registered.

    Attributes:
        at: the keys of the object or table of servers.
        form: `plain` is `{command, args}`, `listed` one list as the command.
        more: further members of the entry.
    """

    user: str
    local: str | None
    at: tuple[str, ...] = ("mcpServers",)
    form: Literal["plain", "listed"] = "plain"
    more: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Where the status line is registered.

    Attributes:
        must_exist: the file holds more than settings; it is not ours to begin.
    """

    user: str
    local: str | None
    at: tuple[str, ...] = ("statusLine",)
    more: Mapping[str, Json] | None = None
    must_exist: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A file of ours alone, such as the skill; `source` lies beside this module."""

    user: str
    local: str | None
    source: str = "skill/SKILL.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """One coding agent.

    Attributes:
        title: what people call it.
        read_on, source: when and from where this was learned.
        home: its folder below the person's.
        home_env: variables that name that folder, the first that is set; with a rest
            that goes behind it.
        speaks: whose hook contract it keeps, where that has another name.
        instructions: the files that it reads instructions from, where it has no skills.
        gate: rest of the phrase `gate_...`: what a person must do before hooks run.
        notes: rests of phrases `note_...`: what else to know.
        by_hand: we print what goes where, and change nothing.
        strict: names of files in which it takes no comments.
    """

    title: str
    read_on: str
    source: str
    home: str
    home_env: tuple[tuple[str, str], ...] = ()
    hooks: Hooks | None = None
    server: Server | None = None
    line: Line | None = None
    texts: tuple[Text, ...] = ()
    speaks: str | None = None
    instructions: str | None = None
    gate: str | None = None
    notes: tuple[str, ...] = ()
    by_hand: bool = False
    strict: tuple[str, ...] = ()


def _skill(user: str, local: str | None) -> tuple[Text, ...]:
    end = "skills/koder-monitor/SKILL.md"
    return (Text(user=f"{user}/{end}", local=local and f"{local}/{end}"),)


RUNTIMES: Final[dict[str, Runtime]] = {
    "claude-code": Runtime(
        title="Claude Code",
        read_on="2026-08-22",
        source="code.claude.com/docs/en: hooks, settings, statusline, mcp, skills",
        home=".claude",
        home_env=(("CLAUDE_CONFIG_DIR", ""),),
        hooks=Hooks(
            user="{home}/settings.json",
            # Not settings.json, which is committed: our paths are of one machine.
            local="{project}/.claude/settings.local.json",
            shape="grouped",
            events=_CLAUDE_EVENTS,
            guarded="Bash|Edit|Monitor|MultiEdit|NotebookEdit|PowerShell|Write",
        ),
        line=Line(
            user="{home}/settings.json",
            local="{project}/.claude/settings.local.json",
            more={"refreshInterval": 10},  # else it is quiet while a session waits
        ),
        server=Server(
            user="{state}/.claude.json",
            local="{project}/.mcp.json",
            more={"type": "stdio"},
        ),
        texts=_skill("{home}", "{project}/.claude"),
        gate="workspace",
        strict=("settings.json", "settings.local.json"),
    ),
    "gemini": Runtime(
        title="Gemini CLI",
        read_on="2026-08-21",
        source="google-gemini/gemini-cli docs/hooks/reference.md,"
        " docs/reference/configuration.md, docs/tools/mcp-server.md",
        home=".gemini",
        home_env=(("GEMINI_CLI_HOME", "/.gemini"),),
        hooks=Hooks(
            user="{home}/settings.json",
            local="{project}/.gemini/settings.json",
            shape="grouped",
            events={  # it tells its model nothing before a tool: the guards come after
                "session-start": "SessionStart",
                "user-prompt-submit": "BeforeAgent",
                "post-tool-use": "AfterTool",
                "stop": "AfterAgent",
                "pre-compact": "PreCompress",
                "session-end": "SessionEnd",
            },
            per_s=1000,
        ),
        server=Server(
            user="{home}/settings.json", local="{project}/.gemini/settings.json"
        ),
        texts=_skill("{home}", "{project}/.gemini"),
        gate="folder",
    ),
    "codex": Runtime(
        title="Codex CLI",
        read_on="2026-10-01",
        source="developers.openai.com/codex: hooks, config, mcp, skills; openai/codex"
        " codex-rs/hooks/src/schema.rs",
        home=".codex",
        home_env=(("CODEX_HOME", ""),),
        hooks=Hooks(
            user="{home}/hooks.json",
            local="{project}/.codex/hooks.json",
            shape="grouped",
            events=_CLAUDE_EVENTS,
            guarded="Bash|Edit|Write|apply_patch",
        ),
        server=Server(
            user="{home}/config.toml",
            local="{project}/.codex/config.toml",
            at=("mcp_servers",),
        ),
        texts=_skill("{user}/.agents", "{project}/.agents"),
        gate="codex",
        notes=("codex",),
    ),
    "opencode": Runtime(
        title="OpenCode",
        read_on="2026-10-01",
        source="anomalyco/opencode packages/web/src/content/docs: plugins.mdx,"
        " skills.mdx, mcp-servers.mdx; opencode.ai/docs/build/plugins/migrate-v1",
        home=".config/opencode",
        home_env=(("OPENCODE_CONFIG_DIR", ""), ("XDG_CONFIG_HOME", "/opencode")),
        server=Server(
            user="{home}/opencode.json",
            local="{project}/opencode.json",
            at=("mcp",),
            form="listed",
            more={"type": "local", "enabled": True},
        ),
        texts=(
            *_skill("{home}", "{project}/.opencode"),
            Text(
                user="{home}/plugins/koder-monitor.js",
                local="{project}/.opencode/plugins/koder-monitor.js",
                source="opencode.js",
            ),
        ),
        notes=("opencode",),
    ),
    "cursor": Runtime(
        title="Cursor",
        read_on="2026-10-01",
        source="cursor.com/docs: hooks, mcp, skills; brujack/dotfiles"
        " .cursor/skills-cursor/statusline/SKILL.md",
        home=".cursor",
        hooks=Hooks(
            user="{home}/hooks.json",
            local="{project}/.cursor/hooks.json",
            shape="flat",
            events={
                "session-start": "sessionStart",
                "user-prompt-submit": "beforeSubmitPrompt",
                "post-tool-use": "postToolUse",
                "stop": "stop",
                "pre-compact": "preCompact",
                "session-end": "sessionEnd",
            },
            base={"version": 1},
        ),
        line=Line(
            user="{home}/cli-config.json",
            local=None,
            must_exist=True,
        ),
        server=Server(user="{home}/mcp.json", local="{project}/.cursor/mcp.json"),
        texts=_skill("{home}", "{project}/.cursor"),
        gate="cursor",
        notes=("cursor",),
    ),
    "copilot": Runtime(
        title="Copilot CLI",
        read_on="2026-10-01",
        source="github/docs content/copilot/reference/hooks-reference.md,"
        " copilot-cli-reference/cli-config-dir-reference.md",
        home=".copilot",
        home_env=(("COPILOT_HOME", ""),),
        hooks=Hooks(
            user="{home}/hooks/koder-monitor.json",
            local="{project}/.github/hooks/koder-monitor.json",
            shape="copilot",
            events={  # an error before a tool would refuse the tool: not registered
                "session-start": "sessionStart",
                "user-prompt-submit": "userPromptSubmitted",
                "post-tool-use": "postToolUse",
                "stop": "agentStop",
                "pre-compact": "preCompact",
                "session-end": "sessionEnd",
            },
            base={"version": 1},
            whole=True,
        ),
        line=Line(user="{home}/settings.json", local=None),
        server=Server(
            user="{home}/mcp-config.json",
            local="{project}/.github/mcp.json",
            more={"type": "local", "tools": ["*"]},
        ),
        texts=_skill("{home}", "{project}/.github"),
        gate="folder",
        notes=("copilot",),
    ),
    "qwen": Runtime(
        title="Qwen Code",
        read_on="2026-10-01",
        source="QwenLM/qwen-code docs/users/features: hooks.md, status-line.md, mcp.md;"
        " issue 11610",
        home=".qwen",
        hooks=Hooks(
            user="{home}/settings.json",
            local="{project}/.qwen/settings.json",
            shape="grouped",
            events=_CLAUDE_EVENTS,
            guarded="^(run_shell_command|edit|write_file)$",
            per_s=1000,
        ),
        line=Line(
            user="{home}/settings.json",
            local="{project}/.qwen/settings.json",
            at=("ui", "statusLine"),
        ),
        server=Server(
            user="{home}/settings.json", local="{project}/.qwen/settings.json"
        ),
        texts=_skill("{home}", "{project}/.qwen"),
        gate="folder",
    ),
    "kimi": Runtime(
        title="Kimi",
        read_on="2026-10-01",
        source="MoonshotAI/kimi-code docs/en/customization/hooks.md;"
        " MoonshotAI/kimi-cli docs/en/customization: hooks.md, mcp.md, skills.md",
        home=".kimi-code",
        home_env=(("KIMI_CODE_HOME", ""),),
        hooks=Hooks(
            user="{home}/config.toml",
            local=None,
            shape="kimi",
            events={  # an event that it does not know voids the whole file
                "session-start": "SessionStart",
                "user-prompt-submit": "UserPromptSubmit",
                "pre-tool-use": "PreToolUse",
                "post-tool-use": "PostToolUse",
                "stop": "Stop",
            },
            guarded="Shell|Bash|WriteFile|Write|StrReplaceFile|Edit",
        ),
        server=Server(user="{home}/mcp.json", local=None),
        texts=_skill("{user}/.agents", "{project}/.agents"),
        notes=("kimi",),
    ),
    # From here on we say what goes where.
    "antigravity": Runtime(
        title="Antigravity CLI",
        read_on="2026-10-01",
        source="google-antigravity/antigravity-cli issues 925, 222;"
        " thedotmack/claude-mem issues 3864, 4196",
        home=".gemini/config",
        hooks=Hooks(
            user="{home}/hooks.json",
            local="{project}/.agents/hooks.json",
            shape="named",
            events={
                "session-start": "SessionStart",
                "user-prompt-submit": "PreInvocation",
                "stop": "Stop",
            },
        ),
        server=Server(
            user="{home}/mcp_config.json", local="{project}/.agents/mcp_config.json"
        ),
        instructions="~/.gemini/GEMINI.md",
        by_hand=True,
    ),
    "augment": Runtime(
        title="Augment",
        read_on="2026-10-01",
        source="docs.augmentcode.com/cli/hooks",
        home=".augment",
        server=Server(user="{home}/settings.json", local=None),
        instructions="AGENTS.md",
        by_hand=True,
    ),
    "cline": Runtime(
        title="Cline",
        read_on="2026-10-01",
        source="cline/cline docs/getting-started/config.mdx",
        home=".cline",
        server=Server(user="{home}/mcp.json", local=None),
        instructions=".clinerules/koder-monitor.md",
        by_hand=True,
    ),
    "codebuddy": Runtime(
        title="CodeBuddy",
        read_on="2026-10-01",
        source="codebuddy.ai/docs/cli/hooks",
        home=".codebuddy",
        hooks=Hooks(
            user="{home}/settings.json",
            local="{project}/.codebuddy/settings.local.json",
            shape="grouped",
            events={
                event: name
                for event, name in _CLAUDE_EVENTS.items()
                if event in {"session-start", "user-prompt-submit", "stop"}
            },
        ),
        server=Server(user="{user}/.codebuddy.json", local="{project}/.mcp.json"),
        speaks="claude-code",
        instructions="AGENTS.md",
        by_hand=True,
    ),
    "hermes": Runtime(
        title="Hermes",
        read_on="2026-10-01",
        source="NousResearch/hermes-agent website/docs/user-guide/features/mcp.md",
        home=".hermes",
        home_env=(("HERMES_HOME", ""),),
        server=Server(user="{home}/config.yaml", local=None, at=("mcp_servers",)),
        instructions="AGENTS.md",
        by_hand=True,
    ),
    "kilo": Runtime(
        title="Kilo",
        read_on="2026-10-01",
        source="Kilo-Org/kilocode packages/kilo-docs/pages/automate/mcp/"
        "using-in-kilo-code.md",
        home=".config/kilo",
        home_env=(("KILO_CONFIG_DIR", ""), ("XDG_CONFIG_HOME", "/kilo")),
        server=Server(
            user="{home}/kilo.jsonc",
            local="{project}/kilo.jsonc",
            at=("mcp",),
            form="listed",
            more={"type": "local", "enabled": True},
        ),
        instructions="AGENTS.md",
        by_hand=True,
    ),
    "trae": Runtime(
        title="Trae",
        read_on="2026-10-01",
        source="docs.rs lorum docs/tools/trae.md; CoplayDev/unity-mcp pull 337",
        home=".trae",
        server=Server(user="{home}/mcp.json", local="{project}/.trae/mcp.json"),
        instructions=".trae/rules/koder-monitor.md",
        by_hand=True,
    ),
    "windsurf": Runtime(
        title="Windsurf",
        read_on="2026-10-01",
        source="docs.windsurf.com: Cascade Hooks (they tell the model nothing), MCP",
        home=".codeium/windsurf",
        server=Server(user="{home}/mcp_config.json", local=None),
        instructions=".windsurf/rules/koder-monitor.md",
        by_hand=True,
    ),
}


def heard(hooks: Hooks) -> dict[str, str]:
    """Return the events that somebody hears, ours to its name."""
    names = hooks.events.items()
    return {event: name for event, name in names if HANDLERS.get(event)}


def folders(
    name: str, *, env: Mapping[str, str], user: str, project: str
) -> dict[str, str]:
    """Return what the names in braces stand for."""
    runtime = RUNTIMES[name]
    home = f"{user}/{runtime.home}"
    state = user
    for variable, rest in runtime.home_env:
        if env.get(variable, "").startswith("/"):
            home = state = env[variable].rstrip("/") + rest
            break
    else:
        home = _older_kimi(home, env, user) if name == "kimi" else home
    return {"home": home, "user": user, "project": project, "state": state}


def _older_kimi(home: str, env: Mapping[str, str], user: str) -> str:
    """Return the folder of Kimi CLI, where Kimi Code, which follows it, has none."""
    older = env.get("KIMI_SHARE_DIR") or f"{user}/.kimi"
    return older if os.path.isdir(older) and not os.path.isdir(home) else home
