"""Settings: built-in defaults, then the file, then the environment."""

import errno
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TypeAlias, TypeVar

from policies.context import percentage
from policies.duration import parse_duration, parse_settle
from policies.target import is_possible_path
from policies.usage import THRESHOLD
from policies.waking import NAMES, unknown_names
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
    give_up_after: Seconds = Seconds(86400)
    fallback_log: str | None = None
    apprise: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ssh:
    """`[ssh]`: how hosts are reached, beside what the user's own file says."""

    config_file: str = "~/.ssh/config"
    connect_timeout: Seconds = Seconds(10)
    keepalive: Seconds = Seconds(15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """`[context]`: when a session is told how full its window is, in percent left."""

    warnings: bool = True
    warning: float = 35.0
    critical: float = 25.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """`[wake]`: what happens when a session shows no sign of life after an outcome."""

    grace: Seconds = Seconds(900)
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """`[serve]`: where the service listens beside its socket, and with which token."""

    socket: str | None = None
    listen: str | None = None
    token_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """`[handoff]`: percent of the context from which a session is handed over."""

    threshold: float = THRESHOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings. `state`, key and token come from the environment only."""

    locks: Locks = field(default_factory=Locks)
    cadence: Cadences = field(default_factory=Cadences)
    notify: Notify = field(default_factory=Notify)
    ssh: Ssh = field(default_factory=Ssh)
    context: Context = field(default_factory=Context)
    wake: Wake = field(default_factory=Wake)
    serve: Serve = field(default_factory=Serve)
    handoff: Handoff = field(default_factory=Handoff)
    lang: Lang = Lang.PT
    state: str = ""
    notify_key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    @property
    def fallback_log(self) -> str:
        """The file of pings that no channel took; relative to the state directory."""
        chosen = os.path.expanduser(self.notify.fallback_log or "release-pings.log")
        return os.path.join(self.state, chosen)

    @property
    def socket(self) -> str | None:
        """Where the socket lies, if not in the state directory; relative to that."""
        chosen = self.serve.socket
        return chosen and os.path.join(self.state, os.path.expanduser(chosen))


Section: TypeAlias = (
    Config | Locks | Cadences | Notify | Ssh | Context | Handoff | Serve | Wake
)


def load_config(env: Mapping[str, str]) -> Config:
    """Return the settings in force.

    Raises:
        ConfigError: for a file that cannot be read or parsed, a key that is not known
            (a misspelt one must stop the start) and a value that will not do.
    """
    path = config_file(env)
    config = _read_file(path) if _asked(env) or _may_exist(path) else Config()
    config = replace(
        config,
        state=state_directory(env),
        notify_key=env.get("KODER_MONITOR_NOTIFY_KEY") or None,
        token=env.get("KODER_MONITOR_TOKEN") or None,
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


def _may_exist(path: str) -> bool:
    """Say whether a file is there; one that cannot be seen may be."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # reading it will say why
    return True


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
    for name, path in (
        ("[locks] dir", config.locks.dir),
        ("[notify] key_file", config.notify.key_file),
        ("[notify] fallback_log", config.notify.fallback_log),
        ("[ssh] config_file", config.ssh.config_file),
        ("[serve] socket", config.serve.socket),
        ("[serve] token_file", config.serve.token_file),
    ):
        if path and not is_possible_path(path):
            raise ConfigError(phrase("bad_path", name=name, path=path))
    if config.notify.url is not None:
        check_url(config.notify.url)
    _check_percent("[handoff] threshold", config.handoff.threshold)
    _check_context(config.context)
    _check_wake(config.wake.command)
    if config.serve.listen is not None:
        from watcher.loopback import parse_listen  # noqa: PLC0415 - start-up time

        parse_listen(config.serve.listen, "[serve] listen")
    if config.notify.auth not in {"bearer", "x-api-key"}:
        choices = phrase("one_of", choices='"bearer", "x-api-key"')
        raise _bad_value("[notify] auth", config.notify.auth, choices)


def _check_percent(name: str, value: float) -> None:
    if percentage(value) is None:
        raise _bad_value(name, f"{value:g}", phrase("no_percentage"))


def _check_context(context: Context) -> None:
    for name, value in (("warning", context.warning), ("critical", context.critical)):
        _check_percent(f"[context] {name}", value)
    if context.critical >= context.warning:
        why = phrase("critical_too_high", warning=f"{context.warning:g}")
        raise _bad_value("[context] critical", f"{context.critical:g}", why)


def _check_wake(command: Sequence[str]) -> None:
    for name in unknown_names(command):
        choices = phrase("one_of", choices=", ".join(NAMES))
        raise _bad_value("[wake] command", f"{{{name}}}", choices)
    if any("\0" in word for word in command) or (command and not command[0]):
        raise _bad_value("[wake] command", " ".join(command), phrase("no_program"))


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
        raise _bad_url(url) from None
    good = (
        parts.scheme in {"http", "https"}
        and parts.hostname
        and port_ok
        and "@" not in parts.netloc
        and url.isprintable()
        and " " not in url
    )
    if not good:
        raise _bad_url(url)


def _bad_url(url: str) -> ConfigError:
    shown = "***" if "@" in url else url  # what stands before it may be a password
    return _bad_value("[notify] url", shown, phrase("url_scheme"))


def _bad_value(name: str, value: str, why: Phrase) -> ConfigError:
    return ConfigError(phrase("config_value", name=name, value=value, error=why))


def _read_file(path: str) -> Config:
    import tomllib  # noqa: PLC0415 - start-up time: most commands have no file

    import msgspec  # noqa: PLC0415

    def decode(kind: type, value: object) -> object:
        if isinstance(value, kind):
            return value
        msg = f'Expected a text such as "45s", got `{type(value).__name__}`'
        raise ValueError(msg)

    try:
        with open(path, "rb", opener=_without_waiting) as file:
            data = tomllib.load(file)
        return msgspec.convert(_known(data, Config(), ""), Config, dec_hook=decode)
    except OSError as error:
        raise _bad_file(path, error.strerror or str(error)) from error
    except ConfigError as error:
        raise _bad_file(path, error.phrase) from error
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise _bad_file(path, str(error)) from error


def _without_waiting(path: str, flags: int) -> int:
    """Open a file, but no pipe, which may wait for ever or give nothing.

    Raises:
        OSError: it is neither a file nor the null device.
    """
    fd = os.open(path, flags | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(fd).st_mode) or path == os.devnull:
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "not a regular file")


def _bad_file(path: str, why: str | Phrase) -> ConfigError:
    return ConfigError(phrase("config_file", path=path, error=why))


def settings_of(config: Config) -> dict[str, str]:
    """Return the settings in which a command and its service must agree (C5.1b).

    The secret ones only as a digest: it tells a difference and nothing else.
    """
    from hashlib import sha256  # noqa: PLC0415 - start-up time

    def digest(text: str) -> str:
        return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]

    notify, cadence = config.notify, config.cadence
    secret = f"{config.notify_key or ''} {notify.key_file or ''}"
    return {
        "[locks] dir": _carried(str(config.locks.dir)),
        "[cadence] local": f"{cadence.local:g}",
        "[cadence] floor_local": f"{cadence.floor_local:g}",
        "[cadence] remote": f"{cadence.remote:g}",
        "[cadence] floor_remote": f"{cadence.floor_remote:g}",
        "[cadence] settle": f"{cadence.settle:g}",
        "[notify] url": str(notify.url),
        "[notify] auth": notify.auth,
        "[notify] channel": notify.channel,
        "[notify] key": digest(secret),
        "[notify] apprise": digest(" ".join(notify.apprise)),
        "[notify] give_up_after": f"{notify.give_up_after:g}",
        "[notify] fallback_log": _carried(config.fallback_log),
        "[ssh] config_file": _carried(config.ssh.config_file),
    }


def _carried(value: str) -> str:
    """Return a text that JSON can carry, whatever bytes a path has."""
    return value.encode("utf-8", "backslashreplace").decode()


def differences(config: Config, others: Mapping[str, str]) -> list[str]:
    """Return the names of the settings in which others differ from ours."""
    ours = settings_of(config)
    return [name for name, value in others.items() if ours.get(name) != value]


_ENVIRONMENT_ONLY = frozenset({"state", "notify_key", "token"})


def _known(
    data: Mapping[str, object], section: Section, prefix: str
) -> dict[str, object]:
    """Return the values of a table, its durations in seconds.

    Raises:
        ConfigError: it has a key that `section` does not know, or a bad duration.
    """
    known = {item.name for item in fields(section)} - _ENVIRONMENT_ONLY
    found = dict(data)
    for key, value in data.items():
        if key not in known:
            names = ", ".join(sorted(known))
            raise ConfigError(phrase("unknown_key", name=prefix + key, known=names))
        default = getattr(section, key)
        if isinstance(value, dict) and isinstance(default, Section):
            found[key] = _known(value, default, f"{key}.")
        elif isinstance(value, str) and isinstance(default, Seconds):
            found[key] = Seconds(_duration(prefix + key, value, parse_duration))
        elif isinstance(value, str) and isinstance(default, Settle):
            found[key] = Settle(_duration(prefix + key, value, parse_settle))
    return found
