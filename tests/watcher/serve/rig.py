"""The API in this process: by its socket, or as over TCP."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus

import httpx

from notify.secret import Secret
from tests.watcher.house import House
from watcher.serve.api import build_api
from watcher.serve.operations import Front
from watcher.serve.tokens import Tokens

TOKEN = "token-of-this-test"
PORT = 8765
URL = f"http://127.0.0.1:{PORT}"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def front_of(house: House) -> Front:
    return Front(URL, Tokens(Secret(TOKEN), house.clock))


@asynccontextmanager
async def client_of(
    house: House, front: Front | None = None, *, url: str = "http://local"
) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client; over TCP where `url` has a port, by the unix socket else."""
    transport = httpx.ASGITransport(
        build_api(house.hosting, front), raise_app_exceptions=False
    )
    async with httpx.AsyncClient(transport=transport, base_url=url) as client:
        yield client


def problem(answer: httpx.Response, status: int, kind: str) -> Mapping[str, object]:
    """Check that an answer is a problem document (RFC 9457), and return it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert isinstance(document, dict)
    assert document["type"] == f"urn:koder-monitor:problem:{kind}"
    assert document["title"] == HTTPStatus(status).phrase
    assert document["status"] == status
    assert document["detail"]
    return document
