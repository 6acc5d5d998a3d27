"""What the settings come to: a channel, or the log and why (C6.2, C6.3)."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from policies.wording import Lang, Phrase, phrase
from tests.fakes import FakeClock
from tests.notify.samples import a_ping
from tests.servers import Answer, serve
from tests.watcher.rights import as_another_user, open_folder
from watcher import __version__
from watcher.app import build_dispatcher, key_problem, read_key
from watcher.config import Config, Notify, Seconds
from watcher.errors import ConfigError

KEY = "s3cr3t/Key+with=signs"


def config(
    tmp_path: Path,
    *,
    url: str | None = None,
    notify_key: str | None = None,
    **notify: str,
) -> Config:
    return Config(
        state=str(tmp_path / "state"),
        notify=replace(Notify(url=url, timeout=Seconds(30)), **notify),  # type: ignore[arg-type]  # texts
        notify_key=notify_key,
    )


def key_file(
    tmp_path: Path, content: bytes = KEY.encode() + b"\n", mode: int = 0o600
) -> Path:
    path = tmp_path / "notify.key"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def log(config: Config) -> str:
    path = Path(config.fallback_log)
    return path.read_text("utf-8") if path.exists() else ""


async def send(config: Config, unusable: Phrase | None = None) -> Phrase | None:
    dispatcher = build_dispatcher(
        config, lang=Lang.EN, clock=FakeClock(), unusable=unusable
    )
    return await dispatcher.send(a_ping())


def rendered(note: Phrase | None) -> str:
    return note.render(Lang.EN) if note is not None else ""


# without an address


async def test_there_is_no_built_in_address(tmp_path: Path) -> None:
    settings = config(tmp_path)
    assert settings.notify.url is None
    note = rendered(await send(settings))
    assert "no channel configured ([notify] url)" in note
    assert "no channel configured" in log(settings)


async def test_what_is_wrong_with_the_settings_is_the_reason_in_the_log(
    tmp_path: Path,
) -> None:
    settings = config(tmp_path)
    broken = phrase("unknown_key", name="notify.urls", known="url")
    note = rendered(await send(settings, unusable=broken))
    assert "unknown key notify.urls" in note
    assert "unknown key notify.urls" in log(settings)


@pytest.mark.parametrize("key", ["", "two words"])
def test_without_an_address_no_key_is_looked_at(key: str, tmp_path: Path) -> None:
    settings = config(tmp_path, notify_key=key, key_file=str(tmp_path / "missing"))
    assert key_problem(settings) is None


# with one


@pytest.mark.parametrize(
    ("auth", "header", "text"),
    [("bearer", "authorization", f"Bearer {KEY}"), ("x-api-key", "x-api-key", KEY)],
)
async def test_the_settings_reach_the_server(
    auth: str, header: str, text: str, tmp_path: Path
) -> None:
    path = key_file(tmp_path)
    with serve() as server:
        settings = config(
            tmp_path,
            url=server.url("/v1/notify"),
            key_file=str(path),
            auth=auth,
            channel="ops",
        )
        assert key_problem(settings) is None
        assert await send(settings) is None
    request = server.request()
    assert request.target == "/v1/notify"
    assert request.headers[header] == text
    assert request.headers["user-agent"] == f"koder-monitor/{__version__}"
    assert request.object["channel"] == "ops"
    assert log(settings) == ""


async def test_the_limit_of_an_attempt_is_the_settings(tmp_path: Path) -> None:
    with serve(Answer(delay_s=60)) as server:
        settings = replace(
            config(tmp_path), notify=Notify(url=server.url(), timeout=Seconds(0.3))
        )
        note = rendered(await send(settings))
    assert "result unknown (no answer within 0.3 s)" in note


async def test_each_apprise_address_is_a_channel_beside_the_server(
    tmp_path: Path,
) -> None:
    notify = Notify(
        url="http://127.0.0.1:9/",
        apprise=("json://localhost/", "ntfy://localhost/a", "json://localhost/b"),
    )
    settings = replace(config(tmp_path), notify=notify)
    dispatcher = build_dispatcher(settings, clock=FakeClock())
    assert dispatcher.names == (
        "koder-notify",
        "apprise:json#1",
        "apprise:ntfy#1",
        "apprise:json#2",
    )
    assert dispatcher.needs_network
    alone = replace(settings, notify=replace(notify, url=None))
    names = build_dispatcher(alone, clock=FakeClock()).names
    assert names == dispatcher.names[1:]


async def test_without_a_key_none_is_sent(tmp_path: Path) -> None:
    with serve() as server:
        settings = config(tmp_path, url=server.url())
        assert key_problem(settings) is None
        assert await send(settings) is None
    assert {"authorization", "x-api-key"}.isdisjoint(server.request().headers)


async def test_the_key_of_the_environment_goes_before_that_of_a_file(
    tmp_path: Path,
) -> None:
    path = key_file(tmp_path, b"of the file", mode=0o644)
    with serve() as server:
        settings = config(
            tmp_path, url=server.url(), key_file=str(path), notify_key=KEY
        )
        assert await send(settings) is None
    assert server.request().headers["authorization"] == f"Bearer {KEY}"


# keys that will do


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_key_file_that_only_its_owner_reads_is_used(
    mode: int, tmp_path: Path
) -> None:
    assert (
        revealed(config(tmp_path, key_file=str(key_file(tmp_path, mode=mode)))) == KEY
    )


@pytest.mark.parametrize(
    "content", [b"K", b"K\n", b"K\r\n", b"  K \n\n", b"\tK\t"], ids=repr
)
def test_blanks_around_a_key_do_not_count(content: bytes, tmp_path: Path) -> None:
    path = key_file(tmp_path, content)
    assert revealed(config(tmp_path, key_file=str(path))) == "K"


def test_a_key_of_the_greatest_length_is_used_whole(tmp_path: Path) -> None:
    path = key_file(tmp_path, b"k" * 4096)
    assert revealed(config(tmp_path, key_file=str(path))) == "k" * 4096


def test_a_key_file_may_be_named_from_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_file(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert revealed(config(tmp_path, key_file="~/notify.key")) == KEY


def test_a_key_file_may_be_a_link(tmp_path: Path) -> None:
    path = key_file(tmp_path)
    (tmp_path / "link").symlink_to(path)
    assert revealed(config(tmp_path, key_file=str(tmp_path / "link"))) == KEY


# keys that will not


async def refused(settings: Config) -> str:
    """Return why a key is not used; then nothing is sent and the log says why."""
    with serve() as server:
        notify = replace(settings.notify, url=server.url())
        settings = replace(settings, notify=notify)
        why = rendered(key_problem(settings))
        note = rendered(await send(settings))
    assert (server.connections, server.requests) == (0, [])
    assert why
    assert why in note
    assert why in log(settings)
    for secret in (KEY, KEY[:8], KEY[-8:]):
        assert secret not in why + note + log(settings)
    return why


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o622, 0o601, 0o777])
async def test_a_key_file_that_others_can_open_is_not_used(
    mode: int, tmp_path: Path
) -> None:
    path = key_file(tmp_path, mode=mode)
    why = await refused(config(tmp_path, key_file=str(path)))
    assert why == f"key {path} readable by others, not used; run: chmod 600 {path}"


BAD_KEYS = {
    "nothing": b"",
    "a line break": b"\n",
    "blanks": b" \t\n",
    "two lines": f"{KEY}\n{KEY}".encode(),
    "a header of its own": f"{KEY[:8]}\r\nX-Evil: 1".encode(),
    "two words": f"Bearer {KEY}".encode(),
    "a letter": f"{KEY}ç".encode(),
    "NUL": f"{KEY}\0".encode(),
    "DEL": f"{KEY}\x7f".encode(),
    "no UTF-8": b"\xff" + KEY.encode(),
    "a byte order mark": f"\ufeff{KEY}".encode(),
    "UTF-16": KEY.encode("utf-16"),
    "a byte too much": b"k" * 4097,
    "a flood": b"k" * 1_000_000,
}


@pytest.mark.parametrize("content", BAD_KEYS.values(), ids=BAD_KEYS)
async def test_what_no_header_can_carry_is_not_used(
    content: bytes, tmp_path: Path
) -> None:
    path = key_file(tmp_path, content)
    why = await refused(config(tmp_path, key_file=str(path)))
    assert why == f"the key of {path} is empty or has invalid characters"


@pytest.mark.parametrize(
    "key",
    ["two words", "line\nbreak", "ção", "\udcff", "k" * 4097],
    ids=["two words", "two lines", "letters", "no UTF-8", "too long"],
)
async def test_a_bad_key_of_the_environment_is_named_by_its_variable(
    key: str, tmp_path: Path
) -> None:
    why = await refused(config(tmp_path, notify_key=key))
    assert "the key of KODER_MONITOR_NOTIFY_KEY is empty or has" in why


async def test_a_missing_key_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "missing"
    why = await refused(config(tmp_path, key_file=str(path)))
    assert why == (
        f"key {path} unreadable (No such file or directory); check [notify] key_file"
    )


async def test_a_directory_is_no_key(tmp_path: Path) -> None:
    why = await refused(config(tmp_path, key_file=str(tmp_path)))
    assert "unreadable (Is a directory)" in why


async def test_a_pipe_is_no_key_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    async with asyncio.timeout(10):
        why = await refused(config(tmp_path, key_file=str(tmp_path / "pipe")))
    assert "is empty" in why


async def test_a_pipe_that_is_open_but_silent_is_not_waited_for(
    tmp_path: Path,
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    writer = os.open(pipe, os.O_RDWR)
    try:
        async with asyncio.timeout(10):
            why = await refused(config(tmp_path, key_file=str(pipe)))
    finally:
        os.close(writer)
    assert "unreadable (Resource temporarily unavailable)" in why


def test_a_key_that_may_not_be_read_is_told() -> None:
    with open_folder() as folder:
        path = key_file(folder, mode=0)
        settings = config(folder, url="http://127.0.0.1:9/", key_file=str(path))
        with as_another_user():
            why = rendered(key_problem(settings))
    assert why.startswith(f"key {path} unreadable (Permission denied)")


def test_an_error_about_a_key_does_not_lead_to_it(tmp_path: Path) -> None:
    path = key_file(tmp_path, f"{KEY}\n{KEY}".encode())
    with pytest.raises(ConfigError) as caught:
        read_key(config(tmp_path, key_file=str(path)))
    assert KEY not in f"{caught.value!r} {caught.value.phrase}"


def revealed(settings: Config) -> str:
    key = read_key(settings)
    assert key is not None
    return key.reveal()
