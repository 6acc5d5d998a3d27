"""The errors of this package.

NotifyError
  DeliveryError              not delivered, try again later
    PermanentDeliveryError   refused for good
  FallbackError              the last resort failed too
"""


class NotifyError(Exception):
    """A ping did not get where it should; the text holds no secret."""


class DeliveryError(NotifyError):
    """Not delivered this time, as far as is known."""

    def __init__(
        self,
        said: str = "",
        *,
        retry_after_s: float | None = None,
        unknown: bool = False,
    ) -> None:
        """Keep what happened.

        Args:
            said: what a person may read of it.
            retry_after_s: seconds that the server asks to be left alone, if it does.
            unknown: the request may have arrived, only its answer was lost.
        """
        super().__init__(said)
        self.retry_after_s = retry_after_s
        self.unknown = unknown


class PermanentDeliveryError(DeliveryError):
    """The channel will never take it."""


class FallbackError(NotifyError):
    """The fallback log could not be written."""
