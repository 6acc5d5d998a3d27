"""Regular expressions that people give: which of them can be used."""

import re
import warnings

from policies.pattern import MOST, items


def fault_of(pattern: str) -> str | None:
    """Return what is wrong with a Python regular expression, None if nothing is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return "the repetition number is too large" if items(pattern) > MOST else None
