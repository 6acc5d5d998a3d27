"""The outcome lines, word by word (C2.1 to C2.3), and what none of them may hold."""

from dataclasses import replace
from datetime import UTC, timedelta, timezone

import pytest
from hypothesis import given

from policies.lines import cleared_ending, local_time, outcome_line, severity, title
from policies.model import Ending, Outcome, Result, Severity, Target
from policies.target import lock_target
from policies.text import CUT_MARK
from policies.wording import Lang, Phrase, phrase
from tests.policies.samples import (
    ALWAYS,
    LOCK,
    START,
    WORK,
    ZONE,
    outcomes,
    phrases,
    unfit,
)

BOX = replace(WORK, target=replace(WORK.target, host="box"))
PORT = Target(kind="port", text="port 5432 --free --host box", label="porta 5432")
REMOTE_PORT = replace(LOCK, target=replace(PORT, host="box"), label="porta 5432")
PATH_LOCK = replace(LOCK, target=lock_target("/m/x.lock", "/l"))
BLIND_SINCE = LOCK.ended_at - timedelta(minutes=12)
DENIED = phrase("denied", path="/l")
HUNG = phrase("hung", what="/l")


def expired(outcome: Outcome) -> Outcome:
    return replace(outcome, ending=Ending.EXPIRED)


def blind(outcome: Outcome) -> Outcome:
    return replace(expired(outcome), unknown_since=BLIND_SINCE, reason=DENIED)


LINES = [
    pytest.param(
        replace(LOCK, resume="migrar a API"),
        "✅ LIBERADO: lock meta-context em 10:00:00 — retomar migrar a API",
        "✅ LIBERADO: lock meta-context at 10:00:00 — resume migrar a API",
        id="C2.1-released",
    ),
    pytest.param(
        LOCK,
        "✅ LIBERADO: lock meta-context em 10:00:00 — retomar a atividade bloqueada",
        "✅ LIBERADO: lock meta-context at 10:00:00 — resume the blocked activity",
        id="C2.1-released-without-an-activity",
    ),
    pytest.param(
        replace(LOCK, label="outro nome"),
        "✅ LIBERADO: lock meta-context em 10:00:00 — retomar a atividade bloqueada",
        "✅ LIBERADO: lock meta-context at 10:00:00 — resume the blocked activity",
        id="C2.1-a-lock-is-named-by-its-slug",
    ),
    pytest.param(
        PATH_LOCK,
        "✅ LIBERADO: lock x.lock em 10:00:00 — retomar a atividade bloqueada",
        "✅ LIBERADO: lock x.lock at 10:00:00 — resume the blocked activity",
        id="C1.2-a-path-is-named-by-its-file",
    ),
    pytest.param(
        REMOTE_PORT,
        "✅ LIBERADO: porta 5432 no box em 10:00:00 — retomar a atividade bloqueada",
        "✅ LIBERADO: porta 5432 on box at 10:00:00 — resume the blocked activity",
        id="C2.1-released-on-a-host",
    ),
    pytest.param(
        replace(LOCK, already_clear=True, resume="x"),
        "✅ LIBERADO: lock meta-context em 10:00:00 — retomar x — já estava livre "
        "ao armar",
        "✅ LIBERADO: lock meta-context at 10:00:00 — resume x — was already free when "
        "armed",
        id="C2.2-already-free",
    ),
    pytest.param(
        replace(
            LOCK,
            already_clear=True,
            resume="x",
            tail=(phrase("near_lock", name="meta-contexts"),),
        ),
        "✅ LIBERADO: lock meta-context em 10:00:00 — retomar x — já estava livre "
        "ao armar — atenção: existe um lock de nome parecido: meta-contexts",
        "✅ LIBERADO: lock meta-context at 10:00:00 — resume x — was already free when "
        "armed — careful: there is a lock with a near name: meta-contexts",
        id="C2.2-B15-a-lock-with-a-near-name",
    ),
    pytest.param(
        WORK,
        "✅ TERMINOU: treino em 10:00:00 — retomar a atividade bloqueada",
        "✅ TERMINOU: treino at 10:00:00 — resume the blocked activity",
        id="C2.1-ended",
    ),
    pytest.param(
        replace(BOX, result=Result.PASS, resume="publicar"),
        "✅ TERMINOU: treino no box em 10:00:00 [PASS] — retomar publicar",
        "✅ TERMINOU: treino on box at 10:00:00 [PASS] — resume publicar",
        id="C2.1-ended-on-a-host-in-a-state",
    ),
    pytest.param(
        replace(WORK, already_clear=True),
        "✅ TERMINOU: treino em 10:00:00 — retomar a atividade bloqueada — já não "
        "rodava ao armar",
        "✅ TERMINOU: treino at 10:00:00 — resume the blocked activity — was already "
        "over when armed",
        id="C2.2-already-over",
    ),
    pytest.param(
        expired(LOCK),
        "⏰ EXPIROU: lock meta-context ainda ativo após 60min — renovar prazo ou "
        "remover monitor?",
        "⏰ EXPIROU: lock meta-context still held after 60min — renew the deadline or "
        "remove the watch?",
        id="C2.1-lock-expired",
    ),
    pytest.param(
        replace(expired(LOCK), ttl_s=45),
        "⏰ EXPIROU: lock meta-context ainda ativo após 45s — renovar prazo ou "
        "remover monitor?",
        "⏰ EXPIROU: lock meta-context still held after 45s — renew the deadline or "
        "remove the watch?",
        id="C2.1-a-deadline-under-a-minute-in-seconds",
    ),
    pytest.param(
        expired(REMOTE_PORT),
        "⏰ EXPIROU: porta 5432 ainda ativo no box após 60min — renovar prazo ou "
        "remover monitor?",
        "⏰ EXPIROU: porta 5432 still held on box after 60min — renew the deadline or "
        "remove the watch?",
        id="C2.1-a-resource-on-a-host-expired",
    ),
    pytest.param(
        expired(WORK),
        "⏰ EXPIROU: treino ainda rodando após 60min — renovar ou remover?",
        "⏰ EXPIROU: treino still running after 60min — renew or remove?",
        id="C2.1-work-expired",
    ),
    pytest.param(
        expired(BOX),
        "⏰ EXPIROU: treino ainda rodando no box após 60min — renovar ou remover?",
        "⏰ EXPIROU: treino still running on box after 60min — renew or remove?",
        id="C2.1-work-on-a-host-expired",
    ),
    pytest.param(
        replace(expired(LOCK), tail=(phrase("orphan", pid=999999),)),
        "⏰ EXPIROU: lock meta-context ainda ativo após 60min — renovar prazo ou "
        "remover monitor? — órfão: dono (PID 999999) não existe neste host: lock "
        "abandonado?",
        "⏰ EXPIROU: lock meta-context still held after 60min — renew the deadline or "
        "remove the watch? — órfão: holder (PID 999999) does not exist on this host: "
        "abandoned lock?",
        id="C3.8-B09-orphaned-lock",
    ),
    pytest.param(
        replace(expired(WORK), suspended_s=7200.4),
        "⏰ EXPIROU: treino ainda rodando após 60min — renovar ou remover? — a máquina "
        "dormiu 120min",
        "⏰ EXPIROU: treino still running after 60min — renew or remove? — the machine "
        "slept for 120min",
        id="C4.3-B83-the-machine-slept",
    ),
    pytest.param(
        replace(blind(BOX), out_of_reach=True, reason=phrase("host_lost", host="box")),
        "⏰ EXPIROU: treino sem resposta de box há 12min (a conexão com box caiu) — "
        "renovar ou remover?",
        "⏰ EXPIROU: treino no answer from box for 12min (the connection to box was "
        "lost) — renew or remove?",
        id="C2.3-a-silent-host",
    ),
    pytest.param(
        replace(blind(REMOTE_PORT), out_of_reach=True, reason=None),
        "⏰ EXPIROU: porta 5432 sem resposta de box há 12min (?) — renovar prazo ou "
        "remover monitor?",
        "⏰ EXPIROU: porta 5432 no answer from box for 12min (?) — renew the deadline "
        "or remove the watch?",
        id="C2.3-a-silent-host-of-a-resource",
    ),
    pytest.param(
        replace(
            BOX,
            result=Result.FAIL,
            decided=phrase("probe_failed", error="3 \x1b[31mFAILED"),
            resume="x",
        ),
        "✅ TERMINOU: treino no box em 10:00:00 [FAIL] «a leitura falhou: 3 "
        "\\x1b[31mFAILED» — retomar x",
        "✅ TERMINOU: treino on box at 10:00:00 [FAIL] «the look failed: 3 "
        "\\x1b[31mFAILED» — resume x",
        id="C2.1-what-decided",
    ),
    pytest.param(
        blind(LOCK),
        "⏰ EXPIROU: lock meta-context sem leitura há 12min (sem permissão: /l) — "
        "renovar prazo ou remover monitor?",
        "⏰ EXPIROU: lock meta-context could not be seen for 12min (permission denied: "
        "/l) — renew the deadline or remove the watch?",
        id="C2.3-B01-lock-not-to-be-seen",
    ),
    pytest.param(
        replace(blind(WORK), reason=HUNG),
        "⏰ EXPIROU: treino sem leitura há 12min (sem resposta: /l) — renovar ou "
        "remover?",
        "⏰ EXPIROU: treino could not be seen for 12min (no answer: /l) — renew or "
        "remove?",
        id="C2.3-B13-work-not-to-be-seen",
    ),
    pytest.param(
        replace(blind(BOX), reason=None),
        "⏰ EXPIROU: treino sem leitura no box há 12min (?) — renovar ou remover?",
        "⏰ EXPIROU: treino could not be seen on box for 12min (?) — renew or remove?",
        id="C2.3-on-a-host-for-no-known-reason",
    ),
    pytest.param(
        replace(BOX, ending=Ending.REMOVED, reason=phrase("someone")),
        "🚫 REMOVIDO: treino no box — outro dono",
        "🚫 REMOVIDO: treino on box — another holder",
        id="C2.1-removed",
    ),
    pytest.param(
        replace(LOCK, ending=Ending.REMOVED),
        "🚫 REMOVIDO: lock meta-context — ",
        "🚫 REMOVIDO: lock meta-context — ",
        id="C2.1-removed-without-a-why",
    ),
    pytest.param(
        replace(WORK, ending=Ending.UNSEEN),
        "❓ NÃO VISTO: nada casa com treino — confira o padrão",
        "❓ NÃO VISTO: nothing matches treino — check the pattern",
        id="C2.1-B42-never-seen",
    ),
    pytest.param(
        replace(BOX, ending=Ending.UNSEEN),
        "❓ NÃO VISTO: nada casa com treino no box — confira o padrão",
        "❓ NÃO VISTO: nothing matches treino on box — check the pattern",
        id="C2.1-B24-never-seen-on-a-host",
    ),
]


@pytest.mark.parametrize(("outcome", "portuguese", "english"), LINES)
def test_a_line_reads_word_by_word(
    outcome: Outcome, portuguese: str, english: str
) -> None:
    assert outcome_line(outcome, Lang.PT, ZONE) == portuguese
    assert outcome_line(outcome, Lang.EN, ZONE) == english


@pytest.mark.parametrize("result", Result)
def test_the_brackets_hold_the_state(result: Result) -> None:
    line = outcome_line(replace(WORK, result=result), Lang.PT, ZONE)
    assert f" em 10:00:00 [{result.value}] — " in line


def test_a_nap_shorter_than_a_second_is_not_worth_a_word() -> None:
    nap, sleep = (replace(expired(WORK), suspended_s=span) for span in (0.9, 1))
    assert "dormiu" not in outcome_line(nap, Lang.PT, ZONE)
    assert outcome_line(sleep, Lang.PT, ZONE).endswith(" — a máquina dormiu 1s")


def test_a_label_and_an_activity_are_cut_to_a_readable_length_b102() -> None:
    outcome = replace(WORK, label="l" * 300_000, resume="r" * 300_000)
    label, resume = "l" * 190 + CUT_MARK, "r" * 290 + CUT_MARK
    assert outcome_line(outcome, Lang.PT, ZONE) == (
        f"✅ TERMINOU: {label} em 10:00:00 — retomar {resume}"
    )


def test_a_release_does_not_speak_of_sleep() -> None:
    outcome = replace(LOCK, suspended_s=7200)
    assert outcome_line(outcome, Lang.PT, ZONE) == outcome_line(LOCK, Lang.PT, ZONE)


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        (UTC, "12:00:00"),
        (timezone(timedelta(hours=-3)), "09:00:00"),
        (timezone(timedelta(hours=5, minutes=45)), "17:45:00"),
    ],
)
def test_a_time_is_that_of_the_command(zone: timezone, shown: str) -> None:
    assert local_time(START, zone) == shown


@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        ("lock", Ending.RELEASED),
        ("port", Ending.RELEASED),
        ("file", Ending.RELEASED),
        ("http", Ending.RELEASED),
        ("wait", Ending.RELEASED),
        ("process", Ending.ENDED),
        ("log", Ending.ENDED),
        ("command", Ending.ENDED),
    ],
)
def test_resources_are_released_and_work_ends(kind: str, ending: Ending) -> None:
    assert cleared_ending(kind) is ending


@pytest.mark.parametrize(
    ("outcome", "portuguese", "english"),
    [
        (LOCK, "lock meta-context liberado", "lock meta-context released"),
        (BOX, "treino terminou no box", "treino ended on box"),
        (WORK, "treino terminou", "treino ended"),
        (
            expired(LOCK),
            "monitor lock meta-context EXPIROU",
            "watch lock meta-context EXPIRED",
        ),
        (expired(BOX), "monitor treino EXPIROU", "watch treino EXPIRED"),
        (
            replace(WORK, ending=Ending.REMOVED),
            "monitor treino removido",
            "watch treino removed",
        ),
        (
            replace(BOX, ending=Ending.UNSEEN),
            "treino não visto no box",
            "treino not seen on box",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_title_is_the_short_form_of_the_line(
    outcome: Outcome, portuguese: str, english: str
) -> None:
    assert title(outcome, Lang.PT) == portuguese
    assert title(outcome, Lang.EN) == english


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        pytest.param(LOCK, Severity.INFO, id="released"),
        pytest.param(WORK, Severity.INFO, id="ended"),
        pytest.param(replace(WORK, result=Result.PASS), Severity.INFO, id="PASS"),
        pytest.param(expired(WORK), Severity.WARNING, id="expired"),
        pytest.param(
            replace(WORK, ending=Ending.UNSEEN), Severity.INFO, id="never-seen"
        ),
        pytest.param(replace(WORK, result=Result.FAIL), Severity.ERROR, id="FAIL"),
        pytest.param(
            replace(WORK, result=Result.STALLED), Severity.ERROR, id="STALLED"
        ),
        pytest.param(replace(WORK, result=Result.DIED), Severity.ERROR, id="DIED"),
    ],
)
def test_an_outcome_weighs_so_much(outcome: Outcome, expected: Severity) -> None:
    assert severity(outcome) is expected


HEADS = {
    Ending.RELEASED: "✅ LIBERADO",
    Ending.ENDED: "✅ TERMINOU",
    Ending.EXPIRED: "⏰ EXPIROU",
    Ending.REMOVED: "🚫 REMOVIDO",
    Ending.UNSEEN: "❓ NÃO VISTO",
}


@ALWAYS
@given(outcomes)
def test_whatever_is_foreign_in_it_a_line_is_one_line_with_its_fixed_first_words(
    outcome: Outcome,
) -> None:
    """B100, B104: no control character, override or lone surrogate anywhere."""
    for lang in Lang:
        line, short = outcome_line(outcome, lang, ZONE), title(outcome, lang)
        assert line.split(":")[0] == HEADS[outcome.ending]
        assert unfit(line + short) == set()
        assert len(line.splitlines()) == len(short.splitlines()) == 1
        assert (line + short).encode().decode() == line + short


@ALWAYS
@given(phrases(), phrases())
def test_the_host_and_the_activity_stand_in_the_line_as_they_were_given(
    reason: Phrase, tail: Phrase
) -> None:
    outcome = replace(BOX, resume="x-activity", reason=reason, tail=(tail,))
    line = outcome_line(outcome, Lang.PT, ZONE)
    assert " no box em " in line
    assert "retomar x-activity" in line
    assert line.endswith(f" — {tail.render(Lang.PT)}")
