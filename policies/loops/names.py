"""Names written as words of one text: tables that read like a list."""


def names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())
