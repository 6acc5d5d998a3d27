"""The report: one file that needs nothing else, in which nothing of others runs."""

import base64
import re
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from policies.history import History
from policies.wording import Lang
from tests.rows import add_waiter, add_watch, opened
from watcher.past import history
from watcher.report import fine, report_html
from watcher.views import Watch, newest_rows

NOW = 1_800_000_000.0
EVIL = [
    "<img src=x onerror=alert(1)>",
    '"onmouseover=alert(1) x="',
    "</style></script><script>alert(1)</script>",
    "javascript:alert(1)",
]


class Seen(HTMLParser):
    """Keeps what a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def stored(
    tmp_path: Path, *labels: str, host: str | None = None
) -> tuple[History, list[Watch]]:
    store = opened(tmp_path / "state")
    for number, label in enumerate(labels):
        add_watch(
            store,
            f"{number}",
            at=NOW - 7200,
            label=label,
            host=host,
            state="released",
            ended_at=NOW - 3600,
            evidence={"seen_at": "2027-01-15T07:00:00+00:00"},
        )
        add_waiter(store, f"{number}", at=NOW, state="told", told_at=NOW - 3600)
    found = history(store, now_s=NOW, days=7), newest_rows(store, 9)
    store.close()
    return found


@pytest.mark.parametrize("evil", EVIL)
def test_what_others_wrote_is_shown_as_text(evil: str, tmp_path: Path) -> None:
    """B150."""
    page = report_html(*stored(tmp_path, evil, host=evil), until_s=NOW, lang=Lang.PT)
    seen = Seen(page)
    assert not seen.tags & {"script", "img", "a", "iframe"}
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert seen.texts.count(evil) >= 2
    assert "alert(1)" not in page.replace("&", "").partition("<svg")[0]


def test_it_needs_no_other_address_and_runs_no_script(tmp_path: Path) -> None:
    page = report_html(*stored(tmp_path, "api"), until_s=NOW, lang=Lang.EN)
    assert not re.search(r"https?:|//|src=|href=|@import|url\(", page)
    policies = [
        v for n, v in Seen(page).attributes if n == "content" and "default" in str(v)
    ]
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(sha256(style.encode()).digest()).decode()
    assert policies == [f"default-src 'none'; style-src 'sha256-{digest}'"]
    assert "prefers-color-scheme: dark" in style


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        (
            Lang.PT,
            ["Horas bloqueadas por dia", "1,0 h (1)", "liberado", "esta máquina"],
        ),
        (Lang.EN, ["Hours blocked a day", "1.0 h (1)", "released", "this machine"]),
    ],
)
def test_it_says_what_there_was_in_each_language(
    lang: Lang, words: list[str], tmp_path: Path
) -> None:
    page = report_html(*stored(tmp_path, "api"), until_s=NOW, lang=lang)
    assert f'<html lang="{lang}">' in page
    for word in words:
        assert word in page


def test_without_any_history_it_says_so(tmp_path: Path) -> None:
    page = report_html(*stored(tmp_path), until_s=NOW, lang=Lang.EN)
    assert page.count("no data in this period") == 6
    assert "<table" not in page


def test_it_says_where_something_was_left_out(tmp_path: Path) -> None:
    found, ended = stored(tmp_path, "api")
    fields = {name: getattr(found, name) for name in found.__struct_fields__}
    cut = History(**(fields | {"left_out": True}))
    page = report_html(cut, ended, until_s=NOW, lang=Lang.EN)
    assert "only the newest waits are counted" in page


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (0.0031, "3ms"), (1.5, "1s"), (125.0, "2m05s")]
)
def test_a_short_time_is_told_in_milliseconds(seconds: float | None, text: str) -> None:
    assert fine(seconds) == text
