"""The history as one HTML file that needs nothing else, on screen and on paper."""

import base64
from collections.abc import Sequence
from hashlib import sha256
from html import escape

from policies.duration import format_duration
from policies.history import History, Share, Times
from policies.plots import Bar, columns, rows
from policies.wording import Lang, Phrase, phrase
from watcher.cli.tables import day_time, span, state_text
from watcher.views import Watch, optional, shown

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --text: #1b1f24; --soft: #57606a;
  --line: #d5dae0; --bar: #1f5fae; }
@media screen and (prefers-color-scheme: dark) { :root { --ground: #12151a;
  --text: #e7eaee; --soft: #a2abb6; --line: #343c47; --bar: #76b0f5; } }
@media print { :root { color-scheme: light; } figure, tr { break-inside: avoid; } }
body { margin: 0 auto; max-width: 70rem; padding: 1rem; background: var(--ground);
  color: var(--text); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.3rem; }
main { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 28rem), 1fr)); }
figure { margin: 0; }
figcaption { font-weight: 600; margin-bottom: .5rem; }
p { margin: .3rem 0; color: var(--soft); font-size: .9rem; }
svg { width: 100%; height: auto; }
rect { fill: var(--bar); print-color-adjust: exact; }
text { fill: var(--text); font: 14px system-ui, sans-serif; }
table { width: 100%; border-collapse: collapse; font-size: .9rem; margin-top: 1.5rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0;
  border-bottom: 1px solid var(--line); }
caption { text-align: left; font-weight: 600; }
"""
_SHORT_S = 1.0  # below it, milliseconds say more


def report_html(
    history: History, ended: Sequence[Watch], *, until_s: float, lang: Lang
) -> str:
    """Return the report: plots, and the watches that ended last.

    Args:
        history: in numbers.
        ended: the newest first.
        until_s: when it is written.
        lang: its language.
    """
    digest = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'"
    until = day_time(until_s)
    title = phrase("report_title", days=len(history.days), until=until).render(lang)
    figures = "\n".join(_figures(history, lang))
    return f"""<!DOCTYPE html>
<html lang="{lang}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<main>
{figures}
</main>
{_table(ended, lang)}
</body>
</html>
"""


def _figures(history: History, lang: Lang) -> list[str]:
    days = [Bar(day.day, day.hours, _hours(day.hours, lang)) for day in history.days]
    by_day = phrase("page_by_day").render(lang)
    found = [_figure(by_day, columns(by_day, days), lang)]
    for said, shares in (
        (phrase("page_by_lock"), history.locks),
        (phrase("page_by_host"), history.hosts),
    ):
        title = said.render(lang)
        bars = [_share(share, lang) for share in shares]
        found.append(_figure(title, rows(title, bars), lang))
    found += [
        _times(phrase("page_spread"), history.waits, lang),
        _times(phrase("page_release_line"), history.release_to_line, lang),
        _times(phrase("page_line_delivery"), history.line_to_delivery, lang),
    ]
    if history.left_out:
        found.append(f"<p>{escape(phrase('page_left_out').render(lang))}</p>")
    return found


def _figure(title: str, plot: str, lang: Lang, note: Phrase | None = None) -> str:
    empty = f"<p>{escape(phrase('page_no_data').render(lang))}</p>"
    below = f"<p>{escape(note.render(lang))}</p>" if note else ""
    head = f"<figcaption>{escape(title)}</figcaption>"
    return f"<figure>{head}{plot or empty}{below}</figure>"


def _share(share: Share, lang: Lang) -> Bar:
    name = share.name if share.name is not None else phrase("page_here").render(lang)
    said = phrase(
        "report_hours_waits", hours=_number(share.hours, lang), count=share.waits
    )
    return Bar(name, share.hours, said.render(lang))


def _times(said: Phrase, times: Times, lang: Lang) -> str:
    title = said.render(lang)
    bars = [
        Bar(
            phrase("page_up_to", span=_bound(bucket.up_to_s)).render(lang)
            if bucket.up_to_s is not None
            else phrase("page_longer").render(lang),
            bucket.count,
            str(bucket.count),
        )
        for bucket in times.buckets
    ]
    note = phrase(
        "page_times",
        count=times.count,
        median=fine(times.median_s),
        p95=fine(times.p95_s),
        longest=fine(times.longest_s),
    )
    return _figure(title, rows(title, bars), lang, note if times.count else None)


def _table(ended: Sequence[Watch], lang: Lang) -> str:
    if not ended:
        return ""
    words = (
        phrase("page_when"),
        phrase("page_state"),
        phrase("page_what"),
        phrase("page_host"),
        phrase("page_waited"),
    )
    heads = "".join(
        f'<th scope="col">{escape(word.render(lang))}</th>' for word in words
    )
    lines = "\n".join(_line(_cells(watch, lang)) for watch in ended)
    caption = escape(phrase("page_ended_table").render(lang))
    head = f"<caption>{caption}</caption>\n<thead><tr>{heads}</tr></thead>"
    return f"<table>{head}\n<tbody>\n{lines}\n</tbody></table>"


def _line(cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _cells(watch: Watch, lang: Lang) -> tuple[str, ...]:
    return (
        day_time(watch.ended_at),
        state_text(watch, lang),
        shown(watch.label),
        optional(watch.host) or phrase("page_here").render(lang),
        span((watch.ended_at or watch.armed_at) - watch.armed_at),
    )


def _hours(hours: float, lang: Lang) -> str:
    return phrase("report_hours", hours=_number(hours, lang)).render(lang)


def _number(hours: float, lang: Lang) -> str:
    text = f"{hours:.2f}" if hours < 1 else f"{hours:.1f}"
    return text.replace(".", ",") if lang is Lang.PT else text


def _bound(seconds: float) -> str:
    return fine(seconds) if seconds < _SHORT_S else format_duration(int(seconds))


def fine(seconds: float | None) -> str:
    """Return a time span as `span` does, a short one in milliseconds."""
    if seconds is None:
        return "-"
    return f"{seconds * 1000:.0f}ms" if seconds < _SHORT_S else span(seconds)
