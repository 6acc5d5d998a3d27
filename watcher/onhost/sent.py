"""How a program that came as one text imports its own modules; no disk is touched."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from typing import Any


class Sent:
    """Finds and loads modules by their names in a table of sources."""

    def __init__(self, sources: dict[str, str]) -> None:
        """Keep the table; a name that others are below is a package."""
        self._sources = sources
        self._packages = {name.rpartition(".")[0] for name in sources}

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """Return how a module of the table is loaded."""
        if name not in self._sources:
            return None
        return ModuleSpec(name, self, is_package=name in self._packages)  # type: ignore[arg-type] # it has what a loader needs

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave that to the import system."""

    def exec_module(self, module: Any) -> None:
        """Run the source of a module in it."""
        source = self._sources[module.__name__]
        code = compile(source, f"<{module.__name__}>", "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - what an import does


def install(sources: dict[str, str]) -> None:
    """Let these modules be imported, before any others of their names."""
    sys.meta_path.insert(0, Sent(sources))
