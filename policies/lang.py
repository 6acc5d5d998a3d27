"""The languages; apart from the sentences, which most hooks never come to need."""

from enum import StrEnum


class Lang(StrEnum):
    """The languages of `--lang`."""

    PT = "pt"
    EN = "en"
