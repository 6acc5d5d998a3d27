"""Services behind Apprise URLs: what they get, and what is told of failures (C6.5)."""

import asyncio
import logging
import sys
import threading
import warnings
from pathlib import Path

import apprise
import pytest

from notify.channels.apprise import AppriseChannel, apprise_channels, extra_problem
from notify.errors import DeliveryError, PermanentDeliveryError
from policies.delivery import MESSAGE_LIMIT
from policies.model import Severity
from policies.text import CUT_MARK
from policies.wording import Lang
from tests.notify.rig import Play, Rig, Server, a_ping, a_store, koder, serve

SECRET = "s3cr3t-t0ken"


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Load all of Apprise once, which takes longer than some attempts in here may."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for modules of older Pythons
        assert apprise.Apprise.instantiate("json://127.0.0.1") is not None


def url_of(server: Server, tail: str = "") -> str:
    address = server.url.removeprefix("http://")
    return f"json://user:{SECRET}@{address}{tail}"


def channel(url: str, limit_s: float = 10.0, lang: Lang = Lang.PT) -> AppriseChannel:
    return AppriseChannel(url, name="apprise:json#1", lang=lang, limit_s=limit_s)


async def failure(sender: AppriseChannel, key: str = "a") -> DeliveryError:
    with pytest.raises(DeliveryError) as caught:
        await sender.send(a_ping(key))
    return caught.value


@pytest.mark.parametrize(
    ("severity", "kind"),
    [
        (Severity.INFO, "info"),
        (Severity.WARNING, "warning"),
        (Severity.ERROR, "failure"),
    ],
)
async def test_a_service_gets_title_line_and_severity(
    severity: Severity, kind: str
) -> None:
    with serve() as server:
        await channel(url_of(server)).send(a_ping(severity=severity))
    ((headers, body),) = server.received
    assert body["title"] == a_ping().title
    assert body["message"] == a_ping().message
    assert body["type"] == kind
    assert headers["user-agent"] == "koder-monitor"


async def test_foreign_text_is_cleaned_and_cut() -> None:
    with serve() as server:
        await channel(url_of(server)).send(a_ping("k", "\x1b[2J :smile: \\n <b>"))
        await channel(url_of(server)).send(a_ping("k", "x" * 9999))
    (_, first), (_, second) = server.received
    assert first["message"] == r"\x1b[2J :smile: \n <b>"
    assert len(second["message"]) == MESSAGE_LIMIT
    assert second["message"].endswith(CUT_MARK)


@pytest.mark.parametrize(
    ("play", "said"),
    [
        (Play(status=500), "HTTP 500"),
        (Play(status=403), "HTTP 403"),
        (Play(status=302, headers={"Location": "/elsewhere"}), "HTTP 302"),
        (Play(close=True), "connection error"),
        (Play(reset=True), "connection error"),
    ],
    ids=["500", "403", "302", "closed", "reset"],
)
async def test_a_failure_is_told_without_a_word_of_the_url(
    play: Play,
    said: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.INFO)
    with serve(play) as server:
        sender = channel(url_of(server, "/deep?+X-Key=k3y"))
        error = await failure(sender)
    assert len(server.received) == 1, "no redirect is followed, nothing tried twice"
    assert not isinstance(error, PermanentDeliveryError)
    assert (str(error), error.unknown) == (said, False)
    shown = f"{error!r} {sender!r} {vars(sender)} {caplog.text} {capfd.readouterr()}"
    assert SECRET not in shown
    assert "k3y" not in shown


@pytest.mark.parametrize("option", ["?optional=yes", "?retry=3&wait=0", "?redirect=no"])
async def test_no_option_of_a_url_makes_a_failure_pass_for_a_success(
    option: str,
) -> None:
    with serve(Play(status=500)) as server:
        error = await failure(channel(url_of(server, option)))
    assert str(error) == "HTTP 500"
    assert len(server.received) == 1, "to try again is the outbox's part"


async def test_a_service_that_gives_no_reason_just_did_not_accept_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apprise.plugins.N_MGR["json"], "send", lambda *_, **__: False)
    error = await failure(channel(f"json://{SECRET}@127.0.0.1:9"))
    assert str(error) == "not accepted by the service"


async def test_a_fault_in_apprise_itself_costs_no_ping_and_tells_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr(apprise.Apprise, "notify", broken)
    error = await failure(channel(f"json://{SECRET}@127.0.0.1:9"))
    assert str(error) == "ZeroDivisionError"
    assert not isinstance(error, PermanentDeliveryError)


@pytest.mark.parametrize(
    "url", ["", "text", f"nosuch://{SECRET}", "json://", f"://{SECRET}", "slack://x"]
)
async def test_a_url_that_apprise_does_not_understand_is_refused_for_good(
    url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    error = await failure(channel(url))
    assert isinstance(error, PermanentDeliveryError)
    assert str(error) == (
        "o Apprise não entende o endereço apprise:json#1; confira [notify] apprise"
    )
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("lang", Lang)
async def test_a_missing_extra_is_named_with_what_to_run(
    lang: Lang, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert extra_problem() is None
    monkeypatch.setitem(sys.modules, "apprise", None)
    error = await failure(channel("json://127.0.0.1:9", lang=lang))
    assert str(error).endswith("pip install 'koder-monitor[apprise]'")
    assert not isinstance(error, PermanentDeliveryError)
    problem = extra_problem()
    assert problem is not None
    assert problem.render(lang) == str(error)


# threads that hang


async def test_an_attempt_that_outlives_its_limit_is_not_made_twice() -> None:
    gate = threading.Event()
    with serve(Play(gate=gate)) as server:
        sender = channel(url_of(server), limit_s=0.1)
        for _ in range(2):
            error = await failure(sender)
            assert (str(error), error.unknown) == ("no answer within 0.1 s", True)
        gate.set()
        sender._limit_s = 10
        await sender.send(a_ping("a"))
    assert len(server.received) == 1
    assert sender._out == {}


async def test_a_result_that_came_while_nobody_waited_counts() -> None:
    gate = threading.Event()
    with serve(Play(gate=gate)) as server:
        sender = channel(url_of(server), limit_s=0.1)
        assert (await failure(sender)).unknown
        gate.set()
        await let_threads_end(sender)
        await sender.send(a_ping("a"))
    assert len(server.received) == 1


async def test_another_attempt_is_made_once_the_late_one_has_failed() -> None:
    gate = threading.Event()
    with serve(Play(status=500, gate=gate), Play()) as server:
        sender = channel(url_of(server), limit_s=0.1)
        assert (await failure(sender)).unknown
        gate.set()
        sender._limit_s = 10
        assert str(await failure(sender)) == "HTTP 500"
        await sender.send(a_ping("a"))
    assert len(server.received) == 2


async def test_threads_that_hang_do_not_pile_up() -> None:
    with serve(Play(hang=True)) as server:
        sender = channel(url_of(server), limit_s=0.02)
        errors = await asyncio.gather(
            *(failure(sender, f"key-{number}") for number in range(20))
        )
    assert len([error for error in errors if error.unknown]) == 8
    others = {str(error) for error in errors if not error.unknown}
    assert others == {"earlier attempts still hang"}
    await let_threads_end(sender)


async def test_late_results_that_nobody_asks_for_do_not_pile_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("notify.channels.apprise._MOST_KEPT", 2)
    gate = threading.Event()
    with serve(Play(gate=gate)) as server:
        sender = channel(url_of(server), limit_s=0.01)
        for number in range(5):
            await failure(sender, f"key-{number}")
        gate.set()
        await let_threads_end(sender)
        sender._limit_s = 10
        await sender.send(a_ping("new"))
    assert set(sender._out) == {"key-3", "key-4"}


async def let_threads_end(sender: AppriseChannel) -> None:
    for thread in threading.enumerate():
        if thread.name == sender.name:
            await asyncio.to_thread(thread.join, 10)
            assert not thread.is_alive()


# by configuration


def test_a_name_tells_the_service_and_no_secret() -> None:
    urls = [
        f"json://{SECRET}@127.0.0.1",
        f"NTFY://{SECRET}",
        "json://127.0.0.1/other",
        f"{SECRET}",
        "",
        f"{SECRET} json://x",
    ]
    channels = apprise_channels(urls, lang=Lang.PT)
    assert list(channels) == [
        "apprise:json#1",
        "apprise:ntfy#1",
        "apprise:json#2",
        "apprise:?#1",
        "apprise:?#2",
        "apprise:?#3",
    ]
    assert [sender.name for sender in channels.values()] == list(channels)


async def test_each_channel_has_its_own_state_in_the_outbox(tmp_path: Path) -> None:
    with (
        a_store(tmp_path) as store,
        serve(Play(status=500), Play()) as service,
        serve() as server,
    ):
        rig = Rig(store=store, log=tmp_path / "log")
        channels = apprise_channels([url_of(service)], lang=Lang.PT)
        dispatcher = rig.over({"koder": koder(server.url), **channels})
        for name in dispatcher.names:
            await store.add("a", channel=name)
        await dispatcher.drain()
        assert store.states() == ["delivered", "pending"]
        assert store.rows()[1]["last_error"] == "não entregue: HTTP 500"
        await rig.clock.advance(5)
        await dispatcher.drain()
        assert store.states() == ["delivered", "delivered"]
    assert (len(server.received), len(service.received)) == (1, 2)
    assert len(rig.logged()) == 1
