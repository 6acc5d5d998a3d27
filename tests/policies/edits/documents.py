"""Documents as people write them: JSON with comments in any place that allows them."""

import json
from typing import Any

from hypothesis import strategies as st

from policies.model import Json

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.text(max_size=8),
)
KEYS = st.text(max_size=6)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=8,
)

_FORMS = st.sampled_from(["", " ", "\t", "/* c */", ' /* , ] } " */ '])
_LINES = st.sampled_from(["// c, ]", "", "  ", "/* a\n b */"])


@st.composite
def documents(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> str:
    """Give a value as text: with any indentation, line end, comment and mark."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    unit = draw(st.sampled_from(["  ", "    ", "\t"]))
    trailing = draw(st.booleans())
    spread = draw(st.booleans())

    def gap() -> str:
        return str(draw(_FORMS))

    def shown(value: Json, indent: str) -> str:
        if not isinstance(value, (dict, list)):
            return json.dumps(value, ensure_ascii=draw(st.booleans()))
        opened, closed = "{}" if isinstance(value, dict) else "[]"
        if not value:
            return opened + closed
        wide = spread and draw(st.booleans())
        inner = indent + unit
        parts = []
        for key in value:
            part = shown(value[key] if isinstance(value, dict) else key, inner)
            if isinstance(value, dict):
                part = f"{json.dumps(key)}{gap()}:{gap()}{part}"
            parts.append(part + gap())
        if not wide:
            last = "," if trailing and draw(st.booleans()) else ""
            body = ",".join(gap() + part for part in parts)
            return opened + body + last + gap() + closed
        lines = []
        for index, part in enumerate(parts):
            comma = "," if trailing or index < len(parts) - 1 else ""
            remark = str(draw(_LINES)).replace("\n", newline)
            lines.append(f"{inner}{part}{comma}{remark}{newline}")
        return f"{opened}{newline}{''.join(lines)}{indent}{closed}"

    head = draw(st.sampled_from(["", "\ufeff", "\ufeff// mine\n", "/* x */ "]))
    tail = draw(st.sampled_from(["", newline, f" // end{newline}", newline * 2]))
    return head.replace("\n", newline) + shown(draw(values), "") + tail
