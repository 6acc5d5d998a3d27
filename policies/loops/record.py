"""Values of the guard: dataclasses that cost a hook little to define."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(kw_only_default=True)
def record(cls: type[_T]) -> type[_T]:
    """Make a dataclass without what is not needed here.

    Comparison, freezing and slots take four times as long to define as the rest; thirty
    such classes cost more than the interpreter's own start. Nobody changes one.
    """
    return dataclass(eq=False, repr=False, kw_only=True)(cls)
