"""Settings: built-in defaults, then the file, then the environment."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TypeVar

from policies.duration import parse_duration, parse_settle
from policies.wording import Lang, Phrase, phrase
from watcher.errors import ConfigError
from watcher.paths import config_file, state_directory

T = TypeVar("T")


class Seconds(float):
    """A time span in seconds, written in the file as a duration text (C1.3)."""


class Settle(float):
    """A settle time in seconds, for which `ms` may be written as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Locks:
    """`[locks]`: the directory of the lock files; relative to the project folder."""

    dir: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cadences:
    """`[cadence]`: default intervals, their floors, and the settle time of locks."""

    local: Seconds = Seconds(30)
    remote: Seconds = Seconds(60)
    floor_local: Seconds = Seconds(30)
    floor_remote: Seconds = Seconds(60)
    settle: Settle = Settle(0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """`[notify]`: where pings go; without `url` to the fallback log alone."""

    url: str | None = None
    key_file: str | None = None
    auth: str = "bearer"
    channel: str = "kchat"
    timeout: Seconds = Seconds(5)
    fallback_log: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings. `state` and `key` come from the environment only."""

    locks: Locks = field(default_factory=Locks)
    cadence: Cadences = field(default_factory=Cadences)
    notify: Notify = field(default_factory=Notify)
    lang: Lang = Lang.PT
    state: str = ""
    notify_key: str | None = field(default=None, repr=False)

    @property
    def fallback_log(self) -> str:
        """The file of pings that no channel took."""
        return self.notify.fallback_log or f"{self.state}/release-pings.log"


def load_config(env: Mapping[str, str]) -> Config:
    """Return the settings in force.

    Raises:
        ConfigError: for a file that cannot be read or parsed, a key that is not known
            (a misspelt one must stop the start) and a value that will not do.
    """
    path = config_file(env)
    config = _read_file(path) if os.path.lexists(path) or _asked(env) else Config()
    config = replace(
        config,
        state=state_directory(env),
        notify_key=env.get("KODER_MONITOR_NOTIFY_KEY") or None,
        locks=_override(config.locks, env, dir="KODER_MONITOR_LOCKS_DIR"),
        notify=_override(
            config.notify,
            env,
            url="KODER_MONITOR_NOTIFY_URL",
            key_file="KODER_MONITOR_NOTIFY_KEY_FILE",
        ),
        cadence=_cadence_of(config.cadence, env),
    )
    _check(config)
    return config


def _asked(env: Mapping[str, str]) -> bool:
    return bool(env.get("KODER_MONITOR_CONFIG"))


def _override(section: T, env: Mapping[str, str], **names: str) -> T:
    values = {key: env[name] for key, name in names.items() if env.get(name)}
    return replace(section, **values) if values else section  # type: ignore[type-var]  # every section is a dataclass


def _cadence_of(cadence: Cadences, env: Mapping[str, str]) -> Cadences:
    floor, settle = env.get("KODER_MONITOR_FLOOR"), env.get("KODER_MONITOR_SETTLE")
    if floor:
        seconds = Seconds(_duration("KODER_MONITOR_FLOOR", floor, parse_duration))
        cadence = replace(
            cadence,
            local=seconds,
            remote=seconds,
            floor_local=seconds,
            floor_remote=seconds,
        )
    if settle:
        seconds_settle = Settle(_duration("KODER_MONITOR_SETTLE", settle, parse_settle))
        cadence = replace(cadence, settle=seconds_settle)
    return cadence


def _duration(name: str, text: str, parse: Callable[[str], float]) -> float:
    try:
        return parse(text)
    except ValueError as error:
        raise ConfigError(phrase("bad_duration", name=name, value=text)) from error


def _check(config: Config) -> None:
    if config.notify.url is not None:
        check_url(config.notify.url)
    if config.notify.auth not in {"bearer", "x-api-key"}:
        choices = phrase("one_of", choices='"bearer", "x-api-key"')
        raise _bad_value("[notify] auth", config.notify.auth, choices)


def check_url(url: str) -> None:
    """Refuse an address that no ping may go to.

    Raises:
        ConfigError: no http(s), no host, or credentials in it, which would be logged.
    """
    from urllib.parse import urlsplit  # noqa: PLC0415 - needed only with an address

    try:
        parts = urlsplit(url)
        port_ok = parts.port is None or parts.port > 0
    except ValueError:
        raise _bad_value("[notify] url", url, phrase("url_scheme")) from None
    good = (
        parts.scheme in {"http", "https"}
        and parts.hostname
        and port_ok
        and "@" not in parts.netloc
        and url.isprintable()
        and " " not in url
    )
    if not good:
        shown = "***" if "@" in parts.netloc else url
        raise _bad_value("[notify] url", shown, phrase("url_scheme"))


def _bad_value(name: str, value: str, why: Phrase) -> ConfigError:
    return ConfigError(phrase("config_value", name=name, value=value, error=why))


def _read_file(path: str) -> Config:
    import tomllib  # noqa: PLC0415 - start-up time: most commands have no file

    import msgspec  # noqa: PLC0415

    def decode(kind: type, value: object) -> object:
        if kind is Seconds and isinstance(value, str):
            return Seconds(parse_duration(value))
        if kind is Settle and isinstance(value, str):
            return Settle(parse_settle(value))
        raise ValueError(value)

    try:
        with open(path, "rb") as file:
            data = tomllib.load(file)
        _refuse_unknown(data, Config(), "")
        return msgspec.convert(data, Config, dec_hook=decode)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(phrase("config_file", path=path, error=reason)) from error
    except (ValueError, msgspec.ValidationError) as error:
        raise ConfigError(phrase("config_file", path=path, error=str(error))) from error


_ENVIRONMENT_ONLY = frozenset({"state", "notify_key"})


def _refuse_unknown(data: Mapping[str, object], section: object, prefix: str) -> None:
    if not is_dataclass(section) or isinstance(section, type):
        raise TypeError(prefix)
    known = {item.name for item in fields(section)} - _ENVIRONMENT_ONLY
    for key, value in data.items():
        if key not in known:
            raise _UnknownKeyError(prefix + key, sorted(known))
        inner = getattr(section, key)
        if is_dataclass(inner) and isinstance(value, dict):
            _refuse_unknown(value, inner, f"{key}.")


class _UnknownKeyError(ConfigError):
    def __init__(self, key: str, known: list[str]) -> None:
        super().__init__(phrase("unknown_key", name=key, known=", ".join(known)))
