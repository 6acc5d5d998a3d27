"""A service's key as a type of its own, so that no log shows it."""


class Secret:
    """The key of a service; its repr shows nothing."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        """Keep the key."""
        self._value = value

    def reveal(self) -> str:
        """Return the key, for a request's header only."""
        return self._value

    def __repr__(self) -> str:
        """Hide the key from every log and traceback."""
        return "***"
