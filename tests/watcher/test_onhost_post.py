"""A detached watcher's ping is the one that the service would send (C6.1, C6.2)."""

import json
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify.channels.koder import KoderChannel, is_loopback
from notify.secret import Secret
from policies import delivery
from policies.model import Ping, Severity
from tests.servers import Answer, Certificates, serve
from watcher.onhost import post

KEY = "k3y/with+signs"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PING: dict[str, Any] = {
    "idempotency_key": "a1-1-released",
    "title": "x liberado",
    "message": "✅ LIBERADO: x\x1b[2J" + "y" * 5000,
    "severity": "info",
    "occurred_at": NOW.isoformat(),
    "watch": {"id": "a1"},
}


def notify(url: str, **values: object) -> dict[str, Any]:
    made: dict[str, Any] = {
        "url": url,
        "auth": "bearer",
        "channel": "kchat",
        "timeout_s": 5.0,
        "user_agent": "koder-monitor/1",
    }
    return made | values


@pytest.mark.parametrize("auth", ["bearer", "x-api-key"])
async def test_the_request_is_that_of_the_channel(auth: str) -> None:
    with serve() as server:
        url = server.url("/a/b?c=d")
        channel = KoderChannel(
            url,
            key=Secret(KEY),
            auth=auth,
            channel="kchat",
            user_agent="koder-monitor/1",
        )
        await channel.send(
            Ping(
                idempotency_key=PING["idempotency_key"],
                title=PING["title"],
                message=PING["message"],
                severity=Severity.INFO,
                occurred_at=NOW,
                watch=PING["watch"],
            )
        )
        made = post.send(notify(url, auth=auth), KEY, PING)
        assert made == {"answer": "delivered", "error": "", "retry_after_s": None}
        ours, theirs = server.requests
    assert ours.object == theirs.object
    assert ours.target == theirs.target
    plain = ("idempotency-key", "user-agent", "content-type", "accept-encoding")
    for name in (*plain, "authorization", "x-api-key"):
        assert ours.headers.get(name) == theirs.headers.get(name), name


def test_without_a_key_none_is_sent() -> None:
    with serve() as server:
        post.send(notify(server.url()), "", PING)
        headers = server.request().headers
    assert "authorization" not in headers
    assert "x-api-key" not in headers


@given(st.integers(100, 599))
def test_a_status_means_what_it_means_there(status: int) -> None:
    assert post.classify(status) == delivery.classify(status)


@given(
    st.integers(1, 20),
    st.floats(-10, 100_000),
    st.floats(0, 1),
    st.none() | st.floats(0, 3600),
)
def test_the_next_attempt_comes_when_it_comes_there(
    attempts: int, left_s: float, jitter: float, asked_s: float | None
) -> None:
    left_s = round(left_s, 3)
    due_at = delivery.next_attempt(
        attempts,
        now=NOW,
        give_up_at=NOW + timedelta(seconds=left_s),
        jitter=jitter,
        retry_after_s=asked_s,
    )
    wait_s = post.next_wait(
        attempts, left_s=left_s, jitter=jitter, retry_after_s=asked_s
    )
    if due_at is None or wait_s is None:
        assert (due_at is None) == (wait_s is None)
    else:
        assert wait_s == pytest.approx((due_at - NOW).total_seconds(), abs=1e-3)


@pytest.mark.parametrize(
    "value", ["7", "0", "99999", "x", "-1", "", "Sun, 01 Mar 2026 12:00:30 GMT"]
)
def test_a_retry_after_means_what_it_means_there(value: str) -> None:
    date = "Sun, 01 Mar 2026 12:00:00 GMT"
    assert post.retry_after(value, date) == delivery.retry_after(value, now=NOW)


@given(st.text(max_size=40), st.sampled_from(["", KEY, 'a"b']))
def test_an_excerpt_is_that_of_there(text: str, secret: str) -> None:
    text += json.dumps(secret) + secret
    assert post.excerpt(text, secret) == delivery.excerpt(text, secret)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "a.localhost.",
        "127.1",
        "::1",
        "[::1]",
        "::ffff:127.0.0.1",
        "0.0.0.0",
        "example.org",
        "8.8.8.8",
        "2001:db8::1",
    ],
)
def test_loopback_is_what_it_is_there(host: str) -> None:
    assert post.is_loopback(host) == is_loopback(host)


def test_a_server_that_echoes_the_key_does_not_spread_it() -> None:
    with serve(Answer(status=400, body=f"no {KEY} here".encode())) as server:
        made = post.send(notify(server.url()), KEY, PING)
    assert made["answer"] == "refused"
    assert made["error"] == "HTTP 400 no *** here"


@pytest.mark.parametrize(
    "answer",
    [Answer(close=True), Answer(reset=True), Answer(raw=b"nonsense\r\n\r\n")],
    ids=["close", "reset", "nonsense"],
)
def test_no_answer_is_tried_again(answer: Answer) -> None:
    with serve(answer) as server:
        made = post.send(notify(server.url()), KEY, PING)
    assert made["answer"] == "try_later"
    assert made["error"]


def test_a_refusal_whose_words_are_cut_is_one_all_the_same() -> None:
    with serve(Answer(status=429, body=b"wa", length=100)) as server:
        made = post.send(notify(server.url(), timeout_s=1.0), KEY, PING)
    assert made["answer"] == "try_later"
    assert made["error"].startswith("HTTP 429")


def test_nobody_there_is_tried_again() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        made = post.send(notify(f"http://127.0.0.1:{port}/"), KEY, PING)
    assert made["answer"] == "try_later"
    assert "ConnectionRefusedError" in made["error"]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_certificate_must_be_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = Certificates()
    with serve(tls=certificates.good()) as server:
        made = post.send(notify(server.url()), KEY, PING)
        assert made["answer"] == "try_later"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority(tmp_path)))
        assert post.send(notify(server.url()), KEY, PING)["answer"] == "delivered"
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("url", "proxies", "proxy"),
    [
        ("http://a.example/", {"http": "http://p:1"}, "http://p:1"),
        ("https://a.example/", {"http": "http://p:1"}, None),
        ("https://a.example/", {"all": "http://p:2"}, "http://p:2"),
        ("http://127.0.0.1/", {"http": "http://p:1"}, None),
        ("http://a.example/", {"http": "http://p:1", "no": "b, .example"}, None),
        ("http://a.example/", {"http": "http://p:1", "no": "*"}, None),
        ("http://a.example/", {"http": "http://p:1", "no": "ample"}, "http://p:1"),
        ("http://a.example/", {"http": "http://p:1", "no": "a.example:80"}, None),
        ("http://a.example/", {}, None),
    ],
)
def test_the_standard_proxy_variables_are_honoured(
    url: str, proxies: dict[str, str], proxy: str | None
) -> None:
    assert post.proxy_for(url, proxies) == proxy


def test_a_proxy_is_asked_for_the_whole_address() -> None:
    with serve() as proxy:
        by = proxy.url("").replace("://", "://me:p%40ss@")
        made = post.send(
            notify("http://notify.example/x", proxies={"http": by}), KEY, PING
        )
        assert made["answer"] == "delivered"
        request = proxy.request()
    assert request.target == "http://notify.example/x"
    assert request.headers["proxy-authorization"] == "Basic bWU6cEBzcw=="


def test_a_proxy_is_asked_for_a_tunnel() -> None:
    with serve(Answer(status=403)) as proxy:
        proxies = {"https": proxy.url("")}
        made = post.send(notify("https://notify.example/x", proxies=proxies), KEY, PING)
        assert made["answer"] == "try_later"
        assert proxy.request().method == "CONNECT"
        assert "authorization" not in proxy.request().headers


@pytest.mark.parametrize("proxy", ["socks5://p:1", "http://"])
def test_a_proxy_of_another_kind_is_no_way(proxy: str) -> None:
    made = post.send(notify("http://a.example/", proxies={"http": proxy}), KEY, PING)
    assert made["answer"] == "try_later"
    assert "proxy variables" in made["error"]
