"""Every service that Apprise knows, one channel a configured URL (C6.5).

The URLs hold secrets and so may whatever Apprise says of a failure: none of its words
are quoted, only what can be told from them.
"""

import asyncio
import importlib.util
import re
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from notify.channels.koder import ATTEMPT_LIMIT_S
from notify.errors import DeliveryError, PermanentDeliveryError
from notify.secret import Secret
from policies.delivery import FIELD_LIMIT, MESSAGE_LIMIT
from policies.model import Ping, Severity
from policies.text import clean
from policies.wording import Lang, Phrase, phrase

if TYPE_CHECKING:
    from apprise import Apprise

_EXTRA = "apprise"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,31})://.*", re.DOTALL)
_STATUS = re.compile(r"\berror=([1-5][0-9]{2})\b")
_MOST_OUT = 8  # attempts of a channel that may hang in their threads
_MOST_KEPT = 100  # results that came late and that nobody has asked for


def apprise_channels(
    urls: Sequence[str], *, lang: Lang, limit_s: float = ATTEMPT_LIMIT_S
) -> dict[str, "AppriseChannel"]:
    """Return a channel for each URL, by a name without secrets: `apprise:<scheme>#n`.

    The number counts the URLs of one scheme, so that a row finds its channel again
    when one of another scheme is added.
    """
    channels: dict[str, AppriseChannel] = {}
    for url in urls:
        match = _SCHEME.fullmatch(url)
        scheme = match[1].lower() if match else "?"
        number = 1
        while (name := f"apprise:{scheme}#{number}") in channels:
            number += 1
        channels[name] = AppriseChannel(url, name=name, lang=lang, limit_s=limit_s)
    return channels


def extra_problem() -> Phrase | None:
    """Return what is to be done where the extra is not installed; loads nothing."""
    if importlib.util.find_spec("apprise") is None:
        return phrase("extra_missing", extra=_EXTRA)
    return None


class AppriseChannel:
    """One service behind an Apprise URL."""

    def __init__(
        self, url: str, *, name: str, lang: Lang, limit_s: float = ATTEMPT_LIMIT_S
    ) -> None:
        """Send to `url`.

        Args:
            url: as Apprise documents it; never shown.
            name: of the channel, which is shown.
            lang: of what its errors say.
            limit_s: seconds that an attempt is waited for.
        """
        self.name = name
        self._url = Secret(url)
        self._lang = lang
        self._limit_s = limit_s
        self._out: dict[str, Future[None]] = {}

    async def send(self, ping: Ping) -> None:
        """Make one attempt, in a thread, since Apprise blocks.

        A thread cannot be stopped: where an attempt outlives its limit, the next one
        for that ping waits for its result, or else the service would get it twice.

        Raises:
            DeliveryError: it was not accepted, or not within the limit; or the extra is
                missing, which may be mended.
            PermanentDeliveryError: Apprise does not understand the URL.
        """
        key = ping.idempotency_key
        future = self._out.get(key) or self._start(ping)
        try:
            async with asyncio.timeout(self._limit_s):
                await asyncio.shield(asyncio.wrap_future(future))
        except TimeoutError:
            said = f"no answer within {self._limit_s:g} s"
            raise DeliveryError(said, unknown=True) from None
        except DeliveryError:
            self._out.pop(key, None)
            raise
        self._out.pop(key, None)

    def _start(self, ping: Ping) -> Future[None]:
        done = [key for key, future in self._out.items() if future.done()]
        for key in done[:-_MOST_KEPT]:
            del self._out[key]
        if len(self._out) - len(done) >= _MOST_OUT:
            msg = "earlier attempts still hang"
            raise DeliveryError(msg)
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()

        def run() -> None:
            try:
                self._notify(ping)
            except Exception as error:  # noqa: BLE001 - handed to whoever waits
                future.set_exception(_without_secrets(error))
            else:
                future.set_result(None)

        # A daemon: a thread that hangs holds up no exit.
        threading.Thread(target=run, name=self.name, daemon=True).start()
        self._out[ping.idempotency_key] = future
        return future

    def _notify(self, ping: Ping) -> None:
        """Make the attempt; blocks.

        Raises:
            DeliveryError: as for `send`.
        """
        try:
            import apprise  # noqa: PLC0415 - an extra, and slow to load
        except ImportError:
            missing = phrase("extra_missing", extra=_EXTRA).render(self._lang)
            raise DeliveryError(missing) from None
        apprise.logger.propagate = False  # what it says may hold a secret
        service = self._service()
        kind = {
            Severity.INFO: apprise.NotifyType.INFO,
            Severity.WARNING: apprise.NotifyType.WARNING,
            Severity.ERROR: apprise.NotifyType.FAILURE,
        }[ping.severity]
        result = service.notify(
            body=clean(ping.message, MESSAGE_LIMIT),
            title=clean(ping.title, FIELD_LIMIT),
            notify_type=kind,
            body_format=apprise.NotifyFormat.TEXT,
        )
        if not result:
            raise DeliveryError(_reason(entry.message for entry in result.logs()))

    def _service(self) -> "Apprise":
        """Return an Apprise with this one service.

        Raises:
            PermanentDeliveryError: there is no such service.
        """
        import apprise  # noqa: PLC0415

        asset = apprise.AppriseAsset(
            app_id="koder-monitor",
            async_mode=False,  # in this very thread: a pool would hold up the exit
            service_timeout=0,
            http_redirects=False,  # a key would go along
        )
        plugin = apprise.Apprise.instantiate(self._url.reveal(), asset=asset)
        if plugin is None:
            wrong = phrase("bad_apprise_url", channel=self.name).render(self._lang)
            raise PermanentDeliveryError(wrong)
        plugin.optional = False  # or a failure would pass for a success
        plugin.retry = 0  # that is the outbox's part
        service = apprise.Apprise(asset=asset)
        service.add(plugin)
        return service


def _reason(said: Iterable[str]) -> str:
    """Return what can be told of a failure without quoting a word of it."""
    text = "\n".join(said)
    status = _STATUS.search(text)
    if status is not None:
        return f"HTTP {status[1]}"
    if "onnection error" in text:
        return "connection error"
    return "not accepted by the service"


def _without_secrets(error: Exception) -> DeliveryError:
    """Return an error that may be shown; of a foreign one only the kind."""
    if isinstance(error, DeliveryError):
        return error
    return DeliveryError(type(error).__name__)
