"""Who may import whom, and what no file of the repository may hold."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("notify", "policies", "watcher")

# The linter's own list; unlike the linter, this test knows no noqa.
RUFF = tomllib.loads((ROOT / "policies/ruff.toml").read_text("utf-8"))
NO_IO = tuple(RUFF["lint"]["flake8-tidy-imports"]["banned-api"])
FORBIDDEN = {
    "policies": ("tests", "notify", "watcher", *NO_IO),
    "notify": ("tests", "watcher"),
    "watcher": ("tests",),
}

SENT = (
    "watcher.onhost.",
    "policies.logscan.",
    "policies.proctable.",
    "policies.text.",
)
"""What is sent to a host, and all of ours that it may import."""

# Brackets, so that this file does not hold what it looks for.
UNWANTED = re.compile(
    r"""
      \w+://(?:[^/\s@]*@)?(?:10|172\.(?:1[6-9]|2\d|3[01])|192\.168)\.\d  # not loopback
    | py[p]i\.org | files\.python[h]osted      # a registry's host
    | /wor[k]/                                 # a folder of one machine
    | \b(?:TOD[O](?!\.md)|FIXM[E])\b          # an issue says it better
    """,
    re.VERBOSE,
)
NOT_OURS = re.compile(
    r"\.(?!ci$|github$).*|__pycache__|build|dist|htmlcov|node_modules|.*\.egg-info"
)


def files() -> Iterator[str]:
    """Walk what is kept; without git, which an unpacked archive does not have."""
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = [name for name in subfolders if not NOT_OURS.fullmatch(name)]
        for name in names:
            if name == ".gitignore" or not NOT_OURS.fullmatch(name):
                yield (Path(folder) / name).relative_to(ROOT).as_posix()


FILES = sorted(files())
MODULES = [f for f in FILES if f.endswith(".py") and f.split("/")[0] in PACKAGES]


def dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports(node: ast.AST, package: str) -> Iterator[str]:
    """Give dotted names: `from a import b` is a.b, whether b is a module or not."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        parts = package.split(".")[: 1 - node.level or None] if node.level else []
        base = ".".join([*parts, *filter(None, [node.module])])
        yield from (f"{base}.{alias.name}" for alias in node.names)


def only_its_own(name: str) -> bool:
    """Say whether what runs on a host may import this."""
    top = name.split(".", maxsplit=1)[0]
    return top in sys.stdlib_module_names or f"{name}.".startswith(SENT)


def opens_sqlite(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == "sqlite3.connect"


def breaches(
    path: str, source: str, modules: Collection[str] = MODULES
) -> Iterator[str]:
    """Say what a module does that its place does not allow."""
    module = dotted(path)
    package = module if path.endswith("__init__.py") else module.rpartition(".")[0]
    forbidden = [*FORBIDDEN[module.split(".")[0]]]
    if module.startswith("watcher.conditions."):
        others = {dotted(m) for m in modules if m.startswith("watcher/conditions/")}
        forbidden += others - {module, package}
    if module != "watcher.database":
        forbidden.append("sqlite3.connect")
    on_host = f"{module}.".startswith("watcher.onhost.")
    for node in ast.walk(ast.parse(source)):
        for name in imports(node, package):
            if any(f"{name}.".startswith(f"{no}.") for no in forbidden):
                yield f"imports {name}"
            if on_host and not only_its_own(name):
                yield f"imports {name}, which no host has"
        if opens_sqlite(node) and module != "watcher.database":
            yield "opens SQLite, which only watcher/database.py may"


@pytest.mark.parametrize("path", MODULES)
def test_a_module_does_only_what_its_place_allows(path: str) -> None:
    assert list(breaches(path, (ROOT / path).read_text("utf-8"))) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("policies/x.py", "import os.path"),
        ("policies/x.py", "def f():\n    from time import monotonic"),
        ("policies/x.py", "from pathlib import Path"),
        ("policies/x.py", "import http.client"),
        ("policies/x.py", "from urllib import request"),
        ("policies/x.py", "from notify import outbox"),
        ("policies/x.py", "from sqlite3 import connect"),
        ("notify/x.py", "import watcher.app"),
        ("notify/x.py", "import sqlite3\nsqlite3.connect('f')"),
        ("watcher/x.py", "from sqlite3 import connect"),
        ("watcher/x.py", "from tests.fakes import FakeClock"),
        ("watcher/conditions/lock.py", "from watcher.conditions import port"),
        ("watcher/conditions/lock.py", "from watcher.conditions.port import Port"),
        ("watcher/conditions/lock.py", "import watcher.conditions.port"),
        ("watcher/conditions/lock.py", "from . import port"),
        ("watcher/conditions/lock.py", "from .port import Port"),
        ("watcher/onhost/x.py", "import psutil"),
        ("watcher/onhost/x.py", "from watcher.errors import WatcherError"),
    ],
)
def test_a_breach_is_seen(path: str, source: str) -> None:
    assert len(list(breaches(path, source, ["watcher/conditions/port.py"]))) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("policies/x.py", "from pathlib import PurePosixPath"),
        ("policies/x.py", "from datetime import datetime\nimport timeit"),
        ("policies/x.py", "from policies.model import Target"),
        ("policies/deep/x.py", "from ..model import Target"),
        ("notify/x.py", "import sqlite3\nfrom policies import delivery"),
        ("watcher/database.py", "import sqlite3\nsqlite3.connect('f')"),
        ("watcher/conditions/__init__.py", "from . import port"),
        ("watcher/conditions/lock.py", "from watcher.conditions import KINDS"),
        ("watcher/app.py", "from watcher.conditions import port"),
        ("watcher/onhost/x.py", "import os\nfrom watcher.onhost import log"),
    ],
)
def test_what_a_place_allows_is_no_breach(path: str, source: str) -> None:
    assert list(breaches(path, source, ["watcher/conditions/port.py"])) == []


@pytest.mark.parametrize("path", FILES)
def test_a_file_names_no_foreign_place_and_puts_nothing_off(path: str) -> None:
    content = (ROOT / path).read_bytes()
    text = "" if b"\0" in content else content.decode("utf-8", "replace")
    lines = enumerate(text.splitlines(), 1)
    assert [f"{n}: {line}" for n, line in lines if UNWANTED.search(line)] == []


@pytest.mark.parametrize(
    "text",
    [
        "http://1" + "0.0.0.1/x",
        "ssh://me@192." + "168.1.1",
        "https://172.31" + ".0.1",
        "FIX" + "ME: later",
        "https://py" + "pi.org",
        "/wor" + "k/shared",
    ],
)
def test_what_no_file_may_hold_is_found(text: str) -> None:
    assert UNWANTED.search(text)


@pytest.mark.parametrize(
    "text", ["http://127.0.0.1:10", "a method", "/network/", "172.16.0.0/12"]
)
def test_what_a_file_may_hold_is_left_alone(text: str) -> None:
    assert not UNWANTED.search(text)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_package_under_test_is_the_installed_one(package: str) -> None:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    found = Path(spec.origin).resolve()
    assert not found.is_relative_to((ROOT / package).resolve()), "run 'make unit'"


def test_what_is_sent_to_a_host_runs_on_its_python() -> None:
    sent = [m for m in MODULES if f"{dotted(m)}.".startswith(SENT)]
    assert sent
    oldest = ["--target=3.9-", "--no-tips", "--violations", *sent]
    said = subprocess.run(
        [sys.executable, "-c", "import vermin; vermin.main()", *oldest],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout
