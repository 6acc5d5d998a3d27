"""What every test starts from."""

import os
from pathlib import Path

import pytest

_OURS = ("KODER_MONITOR_", "CLAUDE_CODE_")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio, the only loop that the product uses."""
    return "asyncio"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give each test an empty home and none of the operator's settings."""
    for name in list(os.environ):
        if name.startswith(_OURS) or name in {"TTL", "TZ"}:
            monkeypatch.delenv(name)
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TZ", "UTC")
