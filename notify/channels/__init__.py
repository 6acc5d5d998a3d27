"""The ways a ping can go; one class each with one `send`."""

from typing import Protocol

from policies.model import Ping


class Channel(Protocol):
    """Where a ping goes."""

    async def send(self, ping: Ping) -> None:
        """Return once the ping is delivered.

        Raises:
            DeliveryError: it is not; `PermanentDeliveryError` when it never will be.
        """
        ...
