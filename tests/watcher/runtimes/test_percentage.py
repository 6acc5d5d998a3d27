"""How full a session is: each source in its order, and none that is not one (C11.2)."""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.usage import Source, Used
from policies.values import Json
from tests.watcher.runtimes.calls import SESSION, hook_call
from watcher.runtimes import percentage
from watcher.runtimes.percentage import Transcript, read_transcript, used_share

Entry = dict[str, Json]


def answer(tokens: int, *, model: str = "claude-opus-4-7", **more: Json) -> Entry:
    """Return a line of a transcript with an answer, as agent-runtimes A8 tells it."""
    usage: Entry = {
        "input_tokens": 3,
        "cache_creation_input_tokens": tokens - 3 - tokens // 2,
        "cache_read_input_tokens": tokens // 2,
        "output_tokens": 999_999,
    }
    message: Entry = {"id": "m", "model": model, "content": [], "usage": usage}
    return {"type": "assistant", "isSidechain": False, "message": message, **more}


USER: Entry = {"type": "user", "message": {"role": "user", "content": "hello"}}
SIDE = answer(900_000, isSidechain=True)
API_ERROR = answer(900_000, isApiErrorMessage=True)
SYNTHETIC = answer(900_000, model="<synthetic>")
PLACEHOLDER: Entry = {"type": "assistant", "message": {"usage": {"input_tokens": 0}}}
BOUNDARY: Entry = {"type": "system", "subtype": "compact_boundary"}
SUMMARY: Entry = {"type": "user", "isCompactSummary": True, "message": {}}


class Session:
    """A session with a transcript and a figure of the status line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.transcript = folder / "transcript.jsonl"
        self.at = datetime.now(UTC)
        self.env = {
            "KODER_MONITOR_STATE": str(folder / "state"),
            "TMPDIR": str(folder),
        }

    def write(self, *entries: Entry, filler: int = 0) -> None:
        lines = [json.dumps(entry) for entry in entries]
        text = "x" * filler + "\n" if filler else ""
        self.transcript.write_text(text + "\n".join(lines) + "\n")

    def bridge(self, remaining: Json, *, age_s: float = 0) -> None:
        metrics = {
            "session_id": SESSION,
            "remaining_percentage": remaining,
            "used_pct": 0,
            "timestamp": int(self.at.timestamp() - age_s),
        }
        path = self.folder / f"claude-ctx-{SESSION}.json"
        path.write_text(json.dumps(metrics))

    def used(self, session: str | None = SESSION, **payload: Json) -> Used | None:
        return used_share(
            hook_call(
                "stop",
                {"transcript_path": str(self.transcript)} | payload,
                cwd=self.folder,
                env=self.env,
                session=session,
                at=self.at,
            )
        )


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def window(**values: Json) -> Mapping[str, Json]:
    return values


# --- the order (F78)


def test_the_payload_wins_over_everything_downwards(session: Session) -> None:
    """25 % in the payload beats a transcript that would give 86 %."""
    session.bridge(5)
    session.write(filler=600_000)
    found = session.used(
        context_window={"used_percentage": 25, "context_window_size": 200_000}
    )
    assert found == Used(25, Source.DIRECT)


def test_the_payload_wins_over_everything_upwards(session: Session) -> None:
    session.bridge(95)
    session.write(answer(10))
    found = session.used(context_window={"used_percentage": 91.5})
    assert found == Used(91.5, Source.DIRECT)


def test_the_status_lines_figure_comes_second(session: Session) -> None:
    session.bridge(28.5)
    session.write(answer(10))
    assert session.used() == Used(71.5, Source.BRIDGE)
    assert session.used(context_window={"used_percentage": None}) == Used(
        71.5, Source.BRIDGE
    )


def test_the_newest_answer_of_the_transcript_comes_third(session: Session) -> None:
    session.write(answer(100_000), USER, answer(720_000), USER, filler=9_000_000)
    assert session.used() == Used(72, Source.TRANSCRIPT)
    assert session.used(context_window={"context_window_size": 800_000}) == Used(
        90, Source.TRANSCRIPT
    )


def test_the_size_of_the_payloads_window_comes_fourth(session: Session) -> None:
    session.write(filler=600_000)
    found = session.used(
        context_window={"context_window_size": 200_000}, model="claude-opus-4-7"
    )
    assert found is not None
    assert (round(found.percent), found.source) == (86, Source.PAYLOAD_SIZE)


@pytest.mark.parametrize(
    "model", ["claude-sonnet-4-6", {"id": "claude-sonnet-4-6", "display_name": "S"}]
)
def test_the_models_window_comes_fifth(session: Session, model: Json) -> None:
    session.write(filler=600_000)
    found = session.used(model=model)
    assert found is not None
    assert (round(found.percent), found.source) == (86, Source.MODEL_MAP)


@pytest.mark.parametrize("model", [None, 5, {}, "unheard-of"])
def test_a_window_of_a_million_comes_last(session: Session, model: Json) -> None:
    session.write(filler=600_000)
    found = session.used(model=model)
    assert found is not None
    assert (round(found.percent), found.source) == (17, Source.DEFAULT_1M)


def test_the_model_of_the_payload_goes_before_that_of_the_answer(
    session: Session,
) -> None:
    session.write(answer(140_000, model="claude-haiku-4-5"))
    assert session.used() == Used(70, Source.TRANSCRIPT)
    assert session.used(model="claude-opus-4-7") == Used(14, Source.TRANSCRIPT)


# --- the status line's figure


@pytest.mark.parametrize(
    ("remaining", "age_s"),
    [
        pytest.param(10, 61, id="F60-old"),
        pytest.param(10, -3600, id="F60-of-tomorrow"),
        pytest.param(None, 0, id="null"),
        pytest.param("10", 0, id="a-text"),
        pytest.param(101, 0, id="too-much"),
    ],
)
def test_a_figure_that_cannot_be_used_is_left_for_the_next_source(
    session: Session, remaining: Json, age_s: float
) -> None:
    session.bridge(remaining, age_s=age_s)
    session.write(answer(20_000))
    assert session.used() == Used(2, Source.TRANSCRIPT)


def test_without_a_session_there_is_no_figure(session: Session) -> None:
    session.bridge(10)
    session.write(answer(20_000))
    assert session.used(session=None) == Used(2, Source.TRANSCRIPT)


def test_a_figure_of_a_minute_ago_can_be_used(session: Session) -> None:
    session.bridge(10, age_s=59)
    assert session.used() == Used(90, Source.BRIDGE)


# --- the transcript


@pytest.mark.parametrize(
    "later",
    [
        pytest.param([], id="nothing"),
        pytest.param([USER], id="a-question"),
        pytest.param([SIDE], id="a-sub-agent"),
        pytest.param([API_ERROR], id="an-error"),
        pytest.param([SYNTHETIC], id="the-runtime"),
        pytest.param([PLACEHOLDER], id="a-placeholder"),
        pytest.param([{"type": "assistant", "message": None, "usage": 1}], id="none"),
        pytest.param([{"type": "assistant", "message": {"usage": []}}], id="a-list"),
        pytest.param([{"type": "user", "message": {"usage": {}}}], id="no-answer"),
        pytest.param([SIDE, SIDE, USER, API_ERROR], id="all-of-them"),
        pytest.param([BOUNDARY | {"isSidechain": True}], id="emptied-elsewhere"),
    ],
)
def test_what_is_no_answer_of_the_main_line_is_passed_over(
    session: Session, later: list[Entry]
) -> None:
    session.write(answer(100), answer(700_000), *later)
    found = read_transcript(str(session.transcript))
    assert (found.tokens, found.model) == (700_000, "claude-opus-4-7")


def test_a_model_that_is_no_text_is_unknown(session: Session) -> None:
    entry = answer(7)
    entry["message"] = {"model": 5, "usage": {"input_tokens": 7, "x": True}}
    session.write(entry)
    assert read_transcript(str(session.transcript))[:2] == (7, None)


@pytest.mark.parametrize("emptied", [BOUNDARY, SUMMARY])
def test_behind_a_compaction_nothing_is_known_until_the_next_answer(
    session: Session, emptied: Entry
) -> None:
    session.write(answer(900_000), emptied, USER, filler=5_000_000)
    assert session.used() is None
    session.write(answer(900_000), emptied, USER, answer(50_000), filler=5_000_000)
    assert session.used() == Used(5, Source.TRANSCRIPT)


@pytest.mark.parametrize(
    "tail",
    [
        b"",
        b"\n\n\n",
        b'{"type": "assistant", "message": {"usage": {"inp',
        b'\xff\xfe "usage" \xff\n',
        b'"usage"\n',
        b'["usage"]\n',
        b'{"usage": ' + b"[" * 100_000 + b"\n",
    ],
)
def test_what_is_half_written_or_no_json_is_passed_over(
    session: Session, tail: bytes
) -> None:
    session.write(answer(500_000))
    with session.transcript.open("ab") as file:
        file.write(tail)
    assert session.used() == Used(50, Source.TRANSCRIPT)


def test_a_huge_transcript_is_read_from_its_end_only(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    real = os.pread

    def pread(fd: int, size: int, offset: int) -> bytes:
        read.append(size)
        return real(fd, size, offset)

    monkeypatch.setattr(os, "pread", pread)
    with session.transcript.open("wb") as file:
        file.truncate(3 << 30)  # gigabytes, on the disk next to nothing
        file.seek(0, 2)
        file.write(b"\n" + json.dumps(answer(720_000)).encode() + b"\n")
        file.write(json.dumps(USER).encode() * 3000 + b"\n")
    assert session.used() == Used(72, Source.TRANSCRIPT)
    assert sum(read) <= 1 << 20
    read.clear()
    with session.transcript.open("ab") as file:
        file.truncate(3 << 30)
    found = session.used()
    assert found == Used(100, Source.DEFAULT_1M)
    assert sum(read) <= percentage._MOST_BYTES


@pytest.mark.parametrize("path", ["", "/nowhere/at/all", "a\0b", 5, None, "."])
def test_a_transcript_that_cannot_be_read_says_nothing(
    session: Session, path: Json
) -> None:
    assert session.used(transcript_path=path) is None


def test_a_pipe_is_not_waited_for(session: Session) -> None:
    os.mkfifo(session.transcript)
    assert session.used() is None


def test_an_empty_transcript_is_an_empty_window(session: Session) -> None:
    session.transcript.write_bytes(b"")
    assert read_transcript(str(session.transcript)) == Transcript(None, None, 0)
    assert session.used() == Used(0, Source.DEFAULT_1M)


@pytest.mark.parametrize("given_window", [None, [], "x", 5, {"used_percentage": True}])
def test_a_window_that_is_none_says_nothing(
    session: Session, given_window: Json
) -> None:
    session.bridge(50)
    assert session.used(context_window=given_window) == Used(50, Source.BRIDGE)


@given(
    lines=st.lists(
        st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=9
    ),
    chunk=st.integers(1, 16),
)
def test_lines_come_whole_wherever_the_pieces_are_cut(
    lines: list[bytes], chunk: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "lines"
    path.write_bytes(b"\n".join(lines))
    fd = os.open(path, os.O_RDONLY)
    before = percentage._CHUNK
    percentage._CHUNK = chunk
    try:
        found = list(percentage._lines_backwards(fd, path.stat().st_size))
    finally:
        percentage._CHUNK = before
        os.close(fd)
    assert found[::-1] == (lines or [b""])


def test_a_line_that_begins_before_the_limit_is_left_out(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(percentage, "_MOST_BYTES", 1000)
    session.write(answer(700_000) | {"text": "x" * 2000}, USER)
    assert read_transcript(str(session.transcript)).tokens is None


def test_the_time_is_that_of_the_call(session: Session) -> None:
    session.bridge(10)
    session.at += timedelta(minutes=5)
    assert session.used() is None
