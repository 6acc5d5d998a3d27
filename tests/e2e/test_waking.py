"""An outcome stays unacknowledged until its session shows a sign of life (C9.4)."""

import pytest

from tests.e2e.command import Place, until

SESSION = {"KODER_MONITOR_SESSION": "s-1"}


def ended(place: Place, env: dict[str, str | None] | None = None) -> str:
    """Let a session wait for a lock that is given back; return the watch's id."""
    path = place.hold()
    running = place.start("lock", "demo", "--session", "s-1", env=env)
    running.armed()
    path.unlink()
    assert running.end().status == 0
    return str(place.watch("--all")["id"])


def acknowledged(place: Place) -> object:
    return place.watch("--all")["acknowledged"]


@pytest.mark.parametrize("sign", ["check", "ack", "arm"])
def test_what_a_session_does_next_is_a_sign_of_life(place: Place, sign: str) -> None:
    watch_id = ended(place)
    assert acknowledged(place) is False
    place.run("check", "lock other", env={"KODER_MONITOR_SESSION": "s-2"})
    place.run("list", env=SESSION)
    assert acknowledged(place) is False
    match sign:
        case "check":
            place.run("check", "lock other", env=SESSION)
        case "ack":
            place.run("ack", watch_id)
        case _:
            place.run("lock", "other", "--session", "s-1")
    assert place.run("show", watch_id, "--json").object["acknowledged"] is True


def test_without_one_the_operator_is_pinged_again_and_the_session_woken(
    place: Place,
) -> None:
    said = place.folder / "said"
    config = place.folder / "wake.toml"
    command = f'["sh", "-c", "echo $1 $2 >>{said}", "wake", "{{session}}", "{{line}}"]'
    config.write_text(f'[wake]\ngrace = "1s"\ncommand = {command}\n')
    ended(place, env={"KODER_MONITOR_CONFIG": str(config)})
    until(lambda: len(place.pings()) == 2, limit_s=60)
    first, second = place.pings()
    assert "lock demo liberado" in first or "LIBERADO: lock demo" in first
    assert "a sessão não deu sinal há 1s" in second
    until(lambda: said.exists() and said.read_text().count("\n") == 1)
    assert said.read_text().startswith("s-1 ✅ LIBERADO: lock demo ")
