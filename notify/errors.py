"""The errors of this package.

NotifyError
  DeliveryError              not delivered, try again later
    PermanentDeliveryError   refused for good
  FallbackError              the last resort failed too
"""


class NotifyError(Exception):
    """A ping did not get where it should; the text holds no secret."""


class DeliveryError(NotifyError):
    """Not delivered this time."""


class PermanentDeliveryError(DeliveryError):
    """The channel will never take it."""


class FallbackError(NotifyError):
    """The fallback log could not be written."""
