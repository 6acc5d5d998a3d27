"""What a JSON value is; apart from the model, whose dataclasses cost hooks too much."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = (
    "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
)
