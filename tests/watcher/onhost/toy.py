"""A part that does what its request says: stands in for a real one."""

import sys
import threading
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest

import watcher.onhost
from policies.model import Json


class Toy(ModuleType):
    """What `watcher.onhost.toy` is while a test lasts."""

    def __init__(self) -> None:
        super().__init__("watcher.onhost.toy")
        self.gate = threading.Event()
        """Looks that hang come back when it is set."""
        self.looks: list[str] = []

    def read(self, request: Mapping[str, Any]) -> dict[str, object]:
        self.looks.append(request.get("name", ""))
        do = request.get("do")
        if do == "hang":
            self.gate.wait()
        if do == "deny":
            raise PermissionError(13, "no")
        if do == "odd":
            return {"bytes": b""}
        if do == "long":
            return {"text": "x" * request["size"]}
        return {"said": request.get("name", "")}


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Toy]:
    toy = Toy()
    monkeypatch.setattr(watcher.onhost, "_READERS", {"toy": "toy"})
    monkeypatch.setitem(sys.modules, toy.__name__, toy)
    yield toy
    toy.gate.set()


def look(name: str = "", do: str = "", **more: Json) -> dict[str, Json]:
    return {"op": "toy", "name": name, "do": do, **more}
