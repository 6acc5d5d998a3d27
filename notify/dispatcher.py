"""From a ping to its channel, and to the fallback log where that fails (C6.4).

One attempt, then the log. A durable outbox takes this place when the service comes; the
rest of the product knows only `Dispatcher.send`.
"""

from notify.channels import Channel
from notify.channels.fallback import FallbackLog
from notify.errors import DeliveryError, FallbackError, PermanentDeliveryError
from policies.delivery import MESSAGE_LIMIT
from policies.model import Ping
from policies.wording import Lang, Phrase, phrase


class Dispatcher:
    """Sends pings; none is ever dropped in silence."""

    def __init__(
        self,
        channel: Channel | None,
        fallback: FallbackLog,
        *,
        lang: Lang,
        unusable: Phrase | None = None,
    ) -> None:
        """Send through `channel`.

        Args:
            channel: None where none is configured or it cannot be used.
            fallback: takes what the channel does not.
            lang: of the reasons in the log.
            unusable: why there is no channel, when one is configured.
        """
        self._channel = channel
        self._fallback = fallback
        self._lang = lang
        self._unusable = unusable

    @property
    def needs_network(self) -> bool:
        """Whether sending takes longer than writing a line to a file."""
        return self._channel is not None

    async def send(self, ping: Ping) -> Phrase | None:
        """Deliver a ping or write it down; return what a person must know of that."""
        if self._channel is None:
            return self.write_down(ping, self._unusable or phrase("no_channel"))
        try:
            await self._channel.send(ping)
        except PermanentDeliveryError as error:
            return self.write_down(ping, phrase("refused", error=str(error)))
        except DeliveryError as error:
            return self.write_down(ping, phrase("not_delivered", error=str(error)))
        if len(ping.message) > MESSAGE_LIMIT:
            return self.write_down(ping, phrase("whole_text"))
        return None

    def write_down(self, ping: Ping, reason: Phrase) -> Phrase:
        """Append a ping to the fallback log; return what a person must know of that."""
        try:
            self._fallback.append(ping, reason.render(self._lang))
        except FallbackError as error:
            return phrase("ping_lost", reason=str(error), message=ping.message)
        return phrase("ping_logged", path=self._fallback.path, reason=reason)
