import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policies.samples import ALWAYS
from watcher.onhost import frames
from watcher.onhost.frames import Frames, frame

NONCE = "0123456789abcdef" * 2
MARK = frames.telling(NONCE)

messages = st.lists(
    st.dictionaries(st.text(max_size=5), st.integers() | st.text()), max_size=5
)
noise = st.binary(max_size=80).map(lambda data: data.replace(b"<", b">"))


def fed(data: bytes, cuts: list[int]) -> list[object]:
    """Feed bytes cut at these places."""
    reader = Frames(MARK)
    found: list[object] = []
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        found += reader.feed(data[start:end])
    return found


@ALWAYS
@given(messages, st.lists(noise, min_size=6, max_size=6), st.lists(st.integers(0)))
def test_bytes_cut_anywhere_with_noise_between_give_the_same_messages(
    messages: list[dict[str, object]], noise: list[bytes], cuts: list[int]
) -> None:
    parts = [
        noise[number] + frame(MARK, json.dumps(message))
        for number, message in enumerate(messages)
    ]
    assert fed(b"".join(parts) + noise[5], cuts) == messages


@ALWAYS
@given(messages.filter(bool), st.data())
def test_a_frame_that_is_cut_off_is_none(
    messages: list[dict[str, object]], data: st.DataObject
) -> None:
    whole = b"".join(frame(MARK, json.dumps(message)) for message in messages)
    last = len(frame(MARK, json.dumps(messages[-1])))
    missing = data.draw(st.integers(1, last))
    assert fed(whole[:-missing], []) == messages[:-1]


@ALWAYS
@given(st.binary(max_size=60), st.binary(max_size=60))
def test_a_damaged_frame_is_an_error_or_none_but_never_another_message(
    head: bytes, tail: bytes
) -> None:
    whole = frame(MARK, '{"number": 1}')
    reader = Frames(MARK)
    try:
        found = reader.feed(MARK + head + whole[len(MARK) + 5 :] + tail)
    except ValueError:
        return
    assert found in ([], [{"number": 1}])


@pytest.mark.parametrize(
    "data",
    [
        MARK + b"99999999\n",
        MARK + b"0000 002\n{}\n" + MARK,
        MARK + b"00000002 {}\n" + MARK,
        MARK + b"00000002\n{}\nwhat follows is no mark, and long enough",
        MARK + b"00000002\n{]\n" + MARK + b"\n",
        MARK + b"00000002\n[]\n" + MARK + b"\n",
    ],
    ids=["absurd size", "no number", "no line", "no end", "no JSON", "no message"],
)
def test_what_bears_the_mark_and_is_no_frame_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - JSON raises a kind of its own
        Frames(MARK).feed(data)


def test_noise_takes_no_memory() -> None:
    reader = Frames(MARK)
    for _ in range(320):
        assert reader.feed(b"x" * 65536) == []
    assert len(reader._buffer) <= len(MARK)


def test_what_we_send_is_no_answer_where_a_terminal_echoes_it() -> None:
    ours = frame(frames.asking(NONCE), '{"number": 1}')
    assert Frames(MARK).feed(ours) == []


def test_a_message_that_is_too_long_is_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frames, "MOST", 10)
    with pytest.raises(ValueError, match="too long"):
        frame(MARK, '{"number": 1}')
