import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policies.samples import ALWAYS
from watcher.transport import scripts
from watcher.transport.scripts import Rounds, Said

NONCE = "ab" * 16


def mark(word: object, number: int = 1) -> bytes:
    return f"\n{NONCE} {number} {word}\n".encode()


def script(number: int, output: bytes, status: int = 0) -> bytes:
    return mark(number) + output + mark(f"{number} {status}")


def fed(data: bytes, cuts: list[int], number: int = 1) -> tuple[Rounds, list[Said]]:
    rounds = Rounds(NONCE)
    for _ in range(number):
        rounds.begin([])
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    pieces = zip([0, *places], [*places, len(data)], strict=True)
    said = [rounds.feed(data[start:end]) for start, end in pieces]
    return rounds, [one for one in said if one is not None]


outputs = st.lists(st.binary(max_size=40), max_size=5)


@ALWAYS
@given(outputs, st.binary(max_size=80), st.lists(st.integers(0)))
def test_bytes_cut_anywhere_with_noise_around_give_the_same_round(
    outputs: list[bytes], noise: bytes, cuts: list[int]
) -> None:
    inner = b"".join(script(number, out, 3) for number, out in enumerate(outputs))
    _, said = fed(noise + mark("begin") + inner + mark("end") + noise, cuts)
    ended = {number: (3, output) for number, output in enumerate(outputs)}
    assert said == [Said(whole=True, begun=set(ended), ended=ended)]


@ALWAYS
@given(outputs.filter(bool), st.data())
def test_a_script_without_its_end_has_no_answer(
    outputs: list[bytes], data: st.DataObject
) -> None:
    inner = b"".join(script(number, out) for number, out in enumerate(outputs))
    last = script(len(outputs) - 1, outputs[-1])
    missing = data.draw(st.integers(1, len(last)))
    rounds, said = fed(mark("begin") + inner[:-missing], [])
    assert said == []
    part = rounds.part()
    assert part is not None
    assert not part.whole
    assert set(part.ended) == set(range(len(outputs) - 1))


def test_output_that_was_cut_is_none_and_the_next_is_whole() -> None:
    cut = mark(0) + b"x" * 10
    _, (said,) = fed(mark("begin") + cut + script(1, b"y") + mark("end"), [])
    assert said.ended == {1: (0, b"y")}
    assert said.begun == {0, 1}
    assert not said.slow(0)


def test_what_comes_late_of_another_round_is_noise() -> None:
    old = mark("begin") + script(0, b"old") + mark("end")
    new = mark("begin", 2) + mark("0", 2) + b"new" + mark("0 0", 2) + mark("end", 2)
    _, (said,) = fed(old + new, [], number=2)
    assert said.ended == {0: (0, b"new")}


def test_a_round_of_which_nothing_came_has_no_part() -> None:
    rounds, _ = fed(b"banner", [])
    assert rounds.part() is None


@pytest.mark.parametrize(
    ("data", "slow"),
    [
        (mark(0), True),
        (b"", False),
        (script(0, b"", 137), True),
        (script(0, b"", 124), True),
        (script(0, b"", 1), False),
    ],
    ids=["begun", "not begun", "killed", "timed out", "failed"],
)
def test_what_was_slow_is_what_held_the_others_up(data: bytes, slow: bool) -> None:
    rounds, _ = fed(mark("begin") + data, [])
    said = rounds.part()
    assert said is not None
    assert said.slow(0) is slow


def test_a_round_without_an_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "_MOST", 1000)
    rounds, _ = fed(mark("begin"), [])
    with pytest.raises(ValueError, match="more than"):
        rounds.feed(b"x" * 2000)


def test_noise_takes_no_memory_and_its_last_is_kept() -> None:
    rounds = Rounds(NONCE)
    rounds.begin([])
    for _ in range(320):
        assert rounds.feed(b"x" * 65536) is None
    rounds.feed(b"This account is not available." + b" " * 60)
    assert len(rounds._buffer) <= len(mark("begin"))
    assert len(rounds.noise()) < 600
    assert "This account" in rounds.noise()
    rounds.feed(mark("begin") + b"not noise")
    assert rounds.noise().endswith("This account is not available.")


def test_no_mark_is_in_what_is_sent() -> None:
    rounds = Rounds(NONCE)
    assert NONCE not in rounds.setup() + rounds.begin(["true", "echo 'a'"])
