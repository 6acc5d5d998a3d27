"""A part for both kinds of session, sent to a host instead of a real one."""

import shlex
import sys
from collections.abc import Mapping
from types import ModuleType

import pytest

from policies.model import Json
from watcher.transport import Answer, Request, bundle

_ON_HOST = """
import os, sys, time

def read(request):
    do = request.get("do")
    if do == "hang":
        time.sleep(3600)
    if do == "deny":
        raise PermissionError(13, "no")
    if do == "where":
        with open("/proc/self/cmdline") as file:
            argv = file.read()
        mask = os.umask(0)
        os.umask(mask)
        fds = [os.readlink("/proc/self/fd/%d" % fd) for fd in (0, 1, 2)]
        return {"argv": argv, "cwd": os.getcwd(), "umask": mask, "fds": fds,
                "pid": os.getpid(), "files": len(os.listdir("/proc/self/fd"))}
    if do == "spoil":
        print("noise of a look", flush=True)
        os.system("cat; echo more noise")
    if do == "long":
        return {"said": "x" * request["size"]}
    return {"said": request.get("name", "")}
"""


class ShellToy(ModuleType):
    """What `watcher.transport.shell.command` is while a test lasts."""

    def script(self, request: Request) -> str:
        if request.get("do") == "raw":
            return str(request["script"])
        if request.get("do") == "no script":
            raise ValueError("no script")
        return f"printf %s {shlex.quote(str(request.get('name', '')))}"

    def answer(self, request: Request, output: bytes) -> Answer:
        if request.get("do") == "no answer":
            raise ValueError("no answer")
        return {"said": output.decode("latin-1")}


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    table: Mapping[str, str] = {
        **bundle.sources(),
        "watcher.onhost.command": _ON_HOST,
    }
    monkeypatch.setattr(bundle, "sources", lambda: table)
    name = "watcher.transport.shell.command"
    monkeypatch.setitem(sys.modules, name, ShellToy(name))


def look(name: str = "", do: str = "", **more: Json) -> dict[str, Json]:
    return {"op": "command", "name": name, "do": do, **more}


def raw(script: str) -> dict[str, Json]:
    return look(do="raw", script=script)
