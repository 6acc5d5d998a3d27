"""The MCP server: six tools for a coding agent, on stdin and stdout (C11.4).

stdout carries only the protocol: `Wire` writes it to a descriptor of its own, while
whatever else is printed, by us or by a child, goes to stderr (B152). It ends when its
client closes stdin; what was armed lives on in the service (C5.4).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, cast, get_args

import anyio
import msgspec
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from policies.text import clean
from policies.wording import Phrase, phrase
from watcher import __version__
from watcher.errors import UsageError, WatcherError
from watcher.runtimes import mcp_asked as asked
from watcher.runtimes.mcp_tools import Said, Tools
from watcher.runtimes.mcp_waits import Progress
from watcher.runtimes.mcp_wire import Wire

NAME: Final = "koder-monitor"
CALL_LIMIT_S: Final = 55.0
"""A call takes no longer in all: several clients give up after 60 s."""

_ALSO: Final = {
    "ttl": ("ttl_s",),
    "every": ("every_s",),
    "what": ("id", "target"),
    "id": ("what",),
}
"""Argument to what an agent calls it that has read our objects."""

_log = logging.getLogger(__name__)

INSTRUCTIONS: Final = """\
Blocked by something that clears by itself (a lock, a build, a test run)? Arm a watch
with `arm` and do other work: never poll, sleep or loop. A background service looks,
pings the operator once at the outcome, and goes on when this session ends. There is
one watch a condition: arming again joins it. A line with ✅ was seen to be so. ⏰ is no
release: `assess`, then `renew`, or `remove` with a reason. See `list` before you end.
"""


class _Tool(NamedTuple):
    """A tool: what it takes, what it is for, and what it may do."""

    kind: type[msgspec.Struct]
    does: str
    reads: bool = False
    repeats: bool = False


TOOLS: Final[dict[str, _Tool]] = {
    "arm": _Tool(
        asked.Arm,
        "Wait for a condition that clears by itself, instead of polling. Returns id,"
        " state and deadline at once, or the outcome within wait_s; take a longer wait"
        " up again with check (what=id, wait_s). The same condition is joined, and the"
        " same call again is safe. The operator is pinged at the outcome. Say in resume"
        " what is blocked. To be woken by the end of a background command, run"
        " `koder-monitor TARGET` in your shell tool instead.",
        repeats=True,
    ),
    "list": _Tool(
        asked.List,
        "Show what is armed, with deadlines; with all also how watches ended within a"
        " day. Look before you arm, and before you end a session.",
        reads=True,
    ),
    "check": _Tool(
        asked.Check,
        "Look once, now: held, released or unknown, with evidence. Unknown is not"
        " released. With an id and wait_s it waits for that watch's outcome instead;"
        " where it returns `waiting` true there is none yet: call it again.",
        reads=True,
    ),
    "assess": _Tool(
        asked.Assess,
        "Weigh an expired or long watch: renew, remove or ask, with reasons. It does"
        " nothing by itself. Call it before renew or remove.",
        reads=True,
    ),
    "renew": _Tool(
        asked.Renew,
        "Give a live or just expired watch a new deadline; say why where assess saw no"
        " progress.",
    ),
    "remove": _Tool(
        asked.Remove,
        "End a watch for everybody who waits, with the reason that they are told. The"
        " lock or process itself is left alone.",
    ),
}


def build_server(tools: Tools) -> Server[dict[str, Any]]:
    """Return the server that offers the tools of one client."""

    async def list_tools(
        context: ServerRequestContext[dict[str, Any]],  # noqa: ARG001
        params: PaginatedRequestParams | None,  # noqa: ARG001
    ) -> ListToolsResult:
        return ListToolsResult(tools=described())

    async def call_tool(
        context: ServerRequestContext[dict[str, Any]], params: CallToolRequestParams
    ) -> CallToolResult:
        async def progress(passed_s: float, wait_s: float) -> None:
            await context.session.report_progress(passed_s, wait_s)

        return await call(tools, params.name, params.arguments or {}, progress)

    return Server(
        NAME,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def described() -> list[Tool]:
    """Return the tools with the schemas of what they take."""
    _, schemas = msgspec.json.schema_components([tool.kind for tool in TOOLS.values()])
    return [
        Tool(
            name=name,
            description=tool.does,
            input_schema=_schema(schemas[tool.kind.__name__]),
            annotations=ToolAnnotations(
                read_only_hint=tool.reads,
                destructive_hint=name == "remove",
                idempotent_hint=tool.reads or tool.repeats,
                open_world_hint=False,
            ),
        )
        for name, tool in TOOLS.items()
    ]


def _schema(schema: Mapping[str, object]) -> dict[str, object]:
    """Return the schema of an object without what only says the class's name."""
    return {k: v for k, v in schema.items() if k not in {"title", "description"}}


async def call(
    tools: Tools, name: str, arguments: Mapping[str, object], progress: Progress
) -> CallToolResult:
    """Return what a tool answers; what goes wrong is an answer too, in one line.

    Raises:
        MCPError: there is no such tool.
    """
    if name not in TOOLS:
        known = ", ".join(TOOLS)
        raise MCPError(INVALID_PARAMS, f"no tool {clean(name, 80)}; there are {known}")
    try:
        async with asyncio.timeout(CALL_LIMIT_S):
            shape, text = await _answer(tools, name, arguments, progress)
    except WatcherError as error:
        return _refused(tools, error.phrase)
    except TimeoutError:
        return _refused(
            tools, phrase("mcp_too_slow", tool=name, limit=f"{CALL_LIMIT_S:g}")
        )
    except Exception as error:  # noqa: BLE001 - the last net: one line, never a traceback
        _log.debug("tool.failed", exc_info=True)
        what = f"{type(error).__name__}: {error}"
        return _refused(tools, phrase("internal", error=what))
    return CallToolResult(
        content=[TextContent(text=text)], structured_content={**shape, "message": text}
    )


async def _answer(
    tools: Tools, name: str, arguments: Mapping[str, object], progress: Progress
) -> Said:
    run = cast("Callable[[object, Progress], Awaitable[Said]]", getattr(tools, name))
    return await run(_taken(name, arguments), progress)


def _taken(name: str, arguments: Mapping[str, object]) -> object:
    """Return the arguments of a tool.

    A number will do where a text is meant, and null for what is left out.

    Raises:
        UsageError: they are not what it takes.
    """
    kind = TOOLS[name].kind
    given = {key: value for key, value in arguments.items() if value is not None}
    for field in msgspec.structs.fields(kind):
        for other in _ALSO.get(field.name, ()):
            if other in given:
                given.setdefault(field.name, given.pop(other))
        value = given.get(field.name)
        if type(value) is int and get_args(field.type)[0] is str:
            given[field.name] = str(value)
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        why = phrase("mcp_bad_arguments", tool=name, error=str(error))
        raise UsageError(why) from error


def _refused(tools: Tools, why: Phrase) -> CallToolResult:
    text = phrase("error", what=why).render(tools.lang)
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


async def serve(reading: int, writing: int, lang: str | None = None) -> None:
    """Serve one client until it closes its end.

    Args:
        reading: descriptor that its messages come from; it becomes ours.
        writing: descriptor that the protocol goes to, and nothing else does.
        lang: of lines and errors; None for that of the configuration.
    """
    server = build_server(Tools(lang))
    wire = Wire(reading, writing)
    file = cast("anyio.AsyncFile[str]", wire)  # of which it needs these few methods
    with wire.over:
        async with stdio_server(file, file) as (incoming, outgoing):
            options = server.create_initialization_options()
            await server.run(incoming, outgoing, options)
