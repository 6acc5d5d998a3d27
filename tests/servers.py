"""A real HTTP or HTTPS server on loopback that plays a list of answers."""

import contextlib
import json
import os
import socket
import ssl
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import trustme

PATIENCE_S = 10.0
"""Seconds that a connection may be silent before the server gives it up."""

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the server received.

    Attributes:
        target: the path, or the whole address where a proxy is asked.
        headers: by their names in lower case.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def object(self) -> dict[str, Any]:
        """The body as the JSON object that it must be."""
        found = json.loads(self.body.decode("utf-8"))
        assert isinstance(found, dict)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server does with a request.

    Attributes:
        length: the Content-Length that is claimed, if it is a lie.
        raw: sent as it is in place of all the rest.
        delay_s: silence before the answer.
        trickle_s: silence behind each byte of the answer, its head included.
        body_trickle_s: silence behind each byte of the body alone.
        close: hang up where the answer should begin.
        reset: likewise, but by an RST.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    length: int | None = None
    raw: bytes | None = None
    delay_s: float = 0.0
    trickle_s: float = 0.0
    body_trickle_s: float = 0.0
    close: bool = False
    reset: bool = False

    def head(self) -> bytes:
        length = len(self.body) if self.length is None else self.length
        headers = {"Content-Length": str(length), "Connection": "close"}
        lines = [f"HTTP/1.1 {self.status} Whatever"]
        lines += [
            f"{name}: {text}" for name, text in {**headers, **self.headers}.items()
        ]
        return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()


Play = Answer | Callable[[Request], Answer]


class Server:
    """One server; the last answer of its list is played for ever."""

    def __init__(self, answers: tuple[Play, ...], tls: ssl.SSLContext | None) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self.over = threading.Event()
        self._answers = list(answers) or [Answer()]
        self._tls = tls
        self._lock = threading.Lock()
        self._http = _Http(self)

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    def url(self, path: str = "/notify", host: str = "127.0.0.1") -> str:
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://{host}:{self.port}{path}"

    def request(self) -> Request:
        """Return the request; it is the only one."""
        (request,) = self.requests
        return request

    def received(self, request: Request) -> Answer:
        """Note a request and return what to do with it."""
        with self._lock:
            self.requests.append(request)
            last = len(self._answers) == 1
            play = self._answers[0] if last else self._answers.pop(0)
        return play if isinstance(play, Answer) else play(request)

    def secured(self, connection: socket.socket) -> socket.socket:
        """Put TLS on a connection; hands are shaken when it is first read."""
        self.connections += 1
        connection.settimeout(PATIENCE_S)
        if self._tls is None:
            return connection
        return self._tls.wrap_socket(
            connection, server_side=True, do_handshake_on_connect=False
        )

    def run(self) -> None:
        self._http.serve_forever(0.01)

    def stop(self) -> None:
        self.over.set()
        self._http.shutdown()
        self._http.server_close()


@contextlib.contextmanager
def serve(*answers: Play, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Serve on a free loopback port until the block is left."""
    server = Server(answers, tls)
    thread = threading.Thread(target=server.run, name="server")
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them: nothing is left behind

    def __init__(self, server: Server) -> None:
        self.server = server
        super().__init__(("127.0.0.1", 0), _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        return self.server.secured(connection), address

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that hung up or refused our certificate."""


class _Handler(BaseHTTPRequestHandler):
    server: _Http

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        request = Request(
            method=self.command,
            target=self.path,
            headers={name.lower(): text for name, text in self.headers.items()},
            body=self.rfile.read(length),
        )
        self.close_connection = True
        self._play(self.server.server.received(request))

    def do_CONNECT(self) -> None:
        """Be a proxy that is asked for a tunnel."""
        self.do_POST()

    def do_GET(self) -> None:
        """Be where a redirect leads that was followed."""
        self.do_POST()

    def _play(self, answer: Answer) -> None:
        if self._over(answer.delay_s):
            return
        if answer.close:
            return
        if answer.reset:
            self._reset()
            return
        body_trickle_s = answer.body_trickle_s or answer.trickle_s
        if answer.raw is not None:
            self._write(answer.raw, answer.trickle_s)
        elif self._write(answer.head(), answer.trickle_s):
            self._write(answer.body, body_trickle_s)

    def _reset(self) -> None:
        """End the connection by an RST, which is to linger for no time: socket(7)."""
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        os.close(self.connection.detach())

    def _write(self, data: bytes, pause_s: float) -> bool:
        """Write all, byte by byte if there is a pause; say whether it came so far."""
        if not pause_s:
            self.wfile.write(data)
            return True
        for byte in data:
            self.wfile.write(bytes([byte]))
            if self._over(pause_s):
                return False
        return True

    def _over(self, seconds: float) -> bool:
        return bool(seconds) and self.server.server.over.wait(seconds)

    def log_message(self, *words: object) -> None:
        pass


class Certificates:
    """A certificate authority of our own, and server certificates of all kinds."""

    def __init__(self) -> None:
        self._ca = trustme.CA()

    def authority(self, folder: Path) -> Path:
        """Write what a client must trust for `good` to be good."""
        path = folder / "authority.pem"
        self._ca.cert_pem.write_to_path(path)
        return path

    def good(self) -> ssl.SSLContext:
        return _context(self._ca.issue_cert("127.0.0.1", "localhost"))

    def expired(self) -> ssl.SSLContext:
        end = LONG_AGO + timedelta(days=1)
        name = "127.0.0.1"
        return _context(self._ca.issue_cert(name, not_before=LONG_AGO, not_after=end))

    def wrong_name(self) -> ssl.SSLContext:
        return _context(self._ca.issue_cert("other.example"))

    def foreign(self) -> ssl.SSLContext:
        """Issued by an authority that nobody knows."""
        return _context(trustme.CA().issue_cert("127.0.0.1"))

    def self_signed(self) -> ssl.SSLContext:
        own = trustme.CA()
        return _loaded(own.private_key_pem.bytes() + own.cert_pem.bytes())


def _context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    return _loaded(certificate.private_key_and_cert_chain_pem.bytes())


def _loaded(pem: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)
    return context
