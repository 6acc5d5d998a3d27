"""The thin side of the socket: asks the service, and starts it where there is none.

HTTP/1.1 by hand on a socket, one request a connection: the standard library's client
costs every command more than the interpreter's own start (measured: 29 ms of 40).
"""

import contextlib
import json
import os
import select
import socket
import sys
from collections.abc import Iterator, Mapping
from typing import Self, cast

from policies.codec import phrase_of
from policies.model import Json
from policies.wording import phrase
from watcher.config import Config
from watcher.errors import ServiceError, UsageError
from watcher.file_lock import locked
from watcher.socket_path import service_answers, socket_address

Answer = Mapping[str, Json]

_START_LIMIT_S = 15.0  # a loaded machine takes its time; a healthy one 0.3 s
_ANSWER_LIMIT_S = 15.0
_START_TRIES = 3  # it may be killed while it starts, like anything
_ANSWER_SIZE = 64 << 20  # bytes


class NotThereError(ServiceError):
    """The service knows nothing of the kind: a watch of another store, or a typo."""


class Client:
    """Requests to the service of one state directory."""

    def __init__(self, state: str) -> None:
        """Ask nothing yet."""
        self._state = state

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        limit_s: float = _ANSWER_LIMIT_S,
    ) -> tuple[int, Json]:
        """Return status and JSON of one request.

        Raises:
            UsageError: the service says what is wrong with it.
            NotThereError: it knows nothing of what is asked for.
            ServiceError: there is no service, or it gave no whole answer in time.
        """
        with self.send(method, path, body, limit_s=limit_s) as pending:
            return pending.read()

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        limit_s: float = _ANSWER_LIMIT_S,
    ) -> "Pending":
        """Send a request whose answer may be long in coming.

        Raises:
            ServiceError: there is no service.
        """
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(limit_s)
            with socket_address(self._state) as address:
                connection.connect(address)
            connection.sendall(head.encode("ascii") + content)
        except OSError as error:
            connection.close()
            raise _no_service(str(error)) from error
        return Pending(connection)


class Pending:
    """An answer that is awaited; its descriptor can be polled for it."""

    def __init__(self, connection: socket.socket) -> None:
        """Wait on a connection whose request is sent."""
        self._connection = connection

    def __enter__(self) -> Self:
        """Close it at the end."""
        return self

    def __exit__(self, *args: object) -> None:
        """Close the connection."""
        self._connection.close()

    def fileno(self) -> int:
        """Return the descriptor, for a poll."""
        return self._connection.fileno()

    def read(self) -> tuple[int, Json]:
        """Return status and JSON; errors are those of `Client.request`."""
        try:
            raw = self._read_all()
            head, _, content = raw.partition(b"\r\n\r\n")
            status = int(head.split(b" ", 2)[1])
            value: Json = json.loads(content) if content else None
        except (OSError, ValueError, IndexError) as error:
            raise _no_service(str(error)) from error
        if status >= 400:
            raise _refusal(status, value)
        return status, value

    def _read_all(self) -> bytes:
        """Read to the end that the headers announce: a cut answer is none."""
        raw = b""
        while chunk := self._connection.recv(65536):
            raw += chunk
            if len(raw) > _ANSWER_SIZE:
                raise ValueError(len(raw))
        head, end, content = raw.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = int(value)
        if not end or len(content) != length:
            raise ValueError(raw[:80])
        return raw


def start_service(state: str, *, wait: bool) -> None:
    """Start the service on demand, unless it is there; by one command at a time.

    Args:
        state: the state directory.
        wait: until it answers; else only until it is on its way.

    Raises:
        ServiceError: it cannot be started.
    """
    try:
        with _starting(state, wait=wait) as mine:
            for _ in range(_START_TRIES):
                if not mine or service_answers(state) or _spawn(wait=wait):
                    return
            raise ServiceError(phrase("not_started", log=f"{state}/service.log"))
    except OSError as error:
        raise _no_service(str(error)) from error


def start_service_if_needed(state: str) -> None:
    """Have a service on its way if there is none; never wait or fail for it (C5.3)."""
    with contextlib.suppress(ServiceError):
        if not service_answers(state):
            start_service(state, wait=False)


def flush_outbox(config: Config, *, dead: bool) -> int:
    """Have every pending ping tried now, dead ones too if asked; return how many.

    Raises:
        ServiceError: no service can be had.
    """
    start_service(config.state, wait=True)
    _, answer = Client(config.state).request("POST", "/v1/outbox/flush", {"dead": dead})
    return cast("int", cast("Answer", answer)["tried"])


@contextlib.contextmanager
def _starting(state: str, *, wait: bool) -> Iterator[bool]:
    """Let one command at a time start the service; say whether we are that one.

    Raises:
        OSError: the state directory cannot be written.
    """
    os.makedirs(state, mode=0o700, exist_ok=True)
    fd = os.open(f"{state}/start.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield locked(fd, limit_s=_START_LIMIT_S if wait else 0.0)
    finally:
        os.close(fd)


def _spawn(*, wait: bool) -> bool:
    """Run the service as a session of its own, detached from this process's tree.

    It forks once more and its parent ends, so that whoever ends this command with all
    its children does not end the watches with it.
    """
    reading, writing = os.pipe()
    devnull = os.open(os.devnull, os.O_RDWR)
    os.set_inheritable(writing, True)
    try:
        pid = os.posix_spawn(
            sys.executable,
            [
                sys.executable,
                "-P",  # what lies in the current folder must not pass for our package
                "-m",
                "watcher",
                "serve",
                "--on-demand",
                f"--ready-fd={writing}",
            ],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, devnull, fd) for fd in (0, 1, 2)],
            setsid=True,
        )
        os.close(writing)
        writing = -1
        os.waitpid(pid, 0)
        return not wait or _ready(reading)
    finally:
        for fd in (reading, writing, devnull):
            if fd >= 0:
                os.close(fd)


def _ready(reading: int) -> bool:
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    return bool(poll.poll(_START_LIMIT_S * 1000)) and os.read(reading, 1) == b"1"


def _refusal(status: int, value: Json) -> UsageError | ServiceError:
    problem = value if isinstance(value, Mapping) else {}
    sentence = phrase_of(problem.get("phrase"))
    if sentence is not None and status in {400, 409}:
        return UsageError(sentence)
    if status == 404:
        return NotThereError(phrase("no_service", reason="404"))
    return _no_service(f"{status} {problem.get('detail', '')}")


def _no_service(reason: str) -> ServiceError:
    return ServiceError(phrase("no_service", reason=reason))
