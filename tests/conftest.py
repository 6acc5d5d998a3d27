"""What every test starts from."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.services import stop_services

# A busy machine is no fault of the code, and CI finds the same each time: what it has
# not found before is for those who run the tests by hand.
settings.register_profile(
    "ours",
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ours")

_OURS = ("KODER_MONITOR_", "CLAUDE_CODE_")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio, the only loop that the product uses."""
    return "asyncio"


@pytest.fixture(autouse=True)
def clean_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[None]:
    """Give each test an empty home, no settings of the operator, and no service."""
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
    yield
    stop_services(tmp_path)
