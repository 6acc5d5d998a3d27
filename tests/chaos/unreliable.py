"""A notify server on loopback that fails, delays and drops answers, and remembers."""

import json
import random
import socket
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


class UnreliableServer:
    """Answers by chance; counts what it was sent and what it confirmed, by key."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.received: Counter[str] = Counter()
        self.confirmed: Counter[str] = Counter()
        self.reliable = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                content = self.rfile.read(length)
                if len(content) < length:
                    return  # its sender was killed
                body = json.loads(content)
                outer._answer(self, body["idempotency_key"])

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/notify"

    def _answer(self, handler: BaseHTTPRequestHandler, key: str) -> None:
        with self._lock:
            self.received[key] += 1
            chance = 1.0 if self.reliable else self._random.random()
        if chance < 0.15:  # the answer is lost
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        if chance < 0.35:
            handler.send_response(503)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        with self._lock:
            self.confirmed[key] += 1
        handler.send_response(200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
