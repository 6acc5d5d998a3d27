"""Where the token of programs comes from, and who may read it."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes import FakeClock
from watcher.config import Config, Serve
from watcher.errors import ConfigError
from watcher.serve.tokens import TOKEN_NAME, Expiring, Tokens, token_of


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    return folder


@pytest.fixture
def config(state: Path) -> Config:
    return Config(state=str(state))


def test_a_token_is_made_for_its_owner_only_and_stays(
    config: Config, state: Path
) -> None:
    token = token_of(config).reveal()
    assert len(token) >= 43
    assert (state / TOKEN_NAME).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in state.iterdir()] == [TOKEN_NAME]
    assert token_of(config).reveal() == token
    other = Config(state=str(state / "other"))
    (state / "other").mkdir()
    assert token_of(other).reveal() != token


def test_a_token_file_that_is_configured_is_read(config: Config, state: Path) -> None:
    file = state / "mine"
    file.write_text("token-of-mine\n")
    file.chmod(0o600)
    config = replace(config, serve=Serve(token_file=str(file)))
    assert token_of(config).reveal() == "token-of-mine"
    assert not (state / TOKEN_NAME).exists()


def test_the_token_of_the_environment_goes_first(config: Config, state: Path) -> None:
    config = replace(
        config, token="of-the-environment", serve=Serve(token_file="/nowhere")
    )
    assert token_of(config).reveal() == "of-the-environment"
    assert not (state / TOKEN_NAME).exists()
    assert "of-the-environment" not in repr(config)


@pytest.mark.parametrize("name", [TOKEN_NAME, "mine"])
def test_a_token_that_others_can_read_is_not_used(
    name: str, config: Config, state: Path
) -> None:
    file = state / name
    file.write_text("x" * 40)
    file.chmod(0o644)
    if name == "mine":
        config = replace(config, serve=Serve(token_file=str(file)))
    with pytest.raises(ConfigError, match="key_open"):
        token_of(config)
    assert file.read_text() == "x" * 40


@pytest.mark.parametrize("content", ["", "two words", "ü" * 20, "x\ny"])
def test_what_no_header_can_carry_is_no_token(
    content: str, config: Config, state: Path
) -> None:
    file = state / TOKEN_NAME
    file.write_text(content)
    file.chmod(0o600)
    with pytest.raises(ConfigError):
        token_of(config)


def test_a_token_that_is_not_there_or_cannot_be_made_is_said(
    config: Config, state: Path
) -> None:
    missing = replace(config, serve=Serve(token_file=str(state / "none")))
    with pytest.raises(ConfigError) as caught:
        token_of(missing)
    assert caught.value.phrase.values["setting"] == "[serve] token_file"
    with pytest.raises(ConfigError) as caught:
        token_of(Config(state=str(state / "no such folder")))
    assert caught.value.phrase.key == "token_not_made"


def test_a_token_half_written_by_a_service_that_died_is_written_anew(
    config: Config, state: Path
) -> None:
    (state / f"{TOKEN_NAME}.new").write_text("hal")
    assert len(token_of(config).reveal()) >= 43


async def test_a_secret_is_good_until_its_time_is_over_or_it_is_spent() -> None:
    clock = FakeClock()
    kept = Expiring(clock, 10)
    one, two = kept.make(), kept.make()
    assert one != two
    assert kept.holds(one)
    assert kept.spend(one)
    assert not kept.spend(one)
    assert not kept.holds("")
    await clock.advance(10)
    assert not kept.spend(two)


def test_no_secret_lies_in_memory_as_it_is(config: Config) -> None:
    token = token_of(config)
    tokens = Tokens(token, FakeClock())
    once = tokens.once.make()
    assert tokens.is_token(token.reveal())
    assert not tokens.is_token("\udcff")
    kept = str(vars(tokens)) + str(vars(tokens.once))
    assert token.reveal() not in kept
    assert once not in kept
