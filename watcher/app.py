"""Builds everything from the configuration; knows no signals."""

import os
import stat
from collections.abc import Callable

from notify.channels import Channel
from notify.channels.fallback import FallbackLog, LogChannel
from notify.channels.koder import KoderChannel
from notify.dispatcher import LOG, Dispatcher, Submit
from notify.secret import Secret
from policies.clock import Clock
from policies.wording import Lang, Phrase, phrase
from watcher import __version__
from watcher.config import Config
from watcher.errors import ConfigError

KODER = "koder-notify"
"""The name of the channel to a koder-notify server."""

_KEY_LIMIT = 4096  # bytes; servers refuse longer headers


def build_dispatcher(
    config: Config,
    *,
    clock: Clock,
    lang: Lang | None = None,
    submit: Submit | None = None,
    jitter: Callable[[], float] = lambda: 0.0,
    notice: Callable[[Phrase], None] = lambda _: None,
    unusable: Phrase | None = None,
) -> Dispatcher:
    """Return what sends pings, by every channel that is configured.

    A key that must not or cannot be used leaves the log as that channel, with the
    remedy as the reason (C6.2).

    Args:
        config: the settings in force.
        clock: for attempts and the log's times.
        lang: of what the log says; the configured one when not given.
        submit: the way to the outbox; None sends directly.
        jitter: draws 0.0 to 1.0 for the back-off.
        notice: told what neither a channel nor the log could take.
        unusable: why the settings name no channel, where that is not their choice.
    """
    lang = lang or config.lang
    fallback = FallbackLog(config.fallback_log, clock.zone())
    channels = _channels(config, fallback, lang, clock)
    if unusable is not None and not channels:
        channels = {LOG: LogChannel(fallback, unusable, lang)}
    return Dispatcher(
        channels,
        fallback,
        lang=lang,
        submit=submit,
        now=clock.wall,
        jitter=jitter,
        notice=notice,
        limit_s=config.notify.timeout,
    )


def _channels(
    config: Config, fallback: FallbackLog, lang: Lang, clock: Clock
) -> dict[str, Channel]:
    channels: dict[str, Channel] = {}
    if config.notify.url is not None:
        channels[KODER] = _koder(config, fallback, lang, clock)
    if config.notify.apprise:
        from notify.channels.apprise import apprise_channels  # noqa: PLC0415 - extra

        channels |= apprise_channels(
            config.notify.apprise, lang=lang, limit_s=config.notify.timeout
        )
    return channels


def _koder(config: Config, fallback: FallbackLog, lang: Lang, clock: Clock) -> Channel:
    try:
        key = read_key(config)
    except ConfigError as error:
        return LogChannel(fallback, error.phrase, lang)
    return KoderChannel(
        str(config.notify.url),
        key=key,
        auth=config.notify.auth,
        channel=config.notify.channel,
        user_agent=f"koder-monitor/{__version__}",
        limit_s=config.notify.timeout,
        now=clock.wall,
    )


def key_problem(config: Config) -> Phrase | None:
    """Return why the configured key will not be used, to be said while arming."""
    if config.notify.url is None:
        return None
    try:
        read_key(config)
    except ConfigError as error:
        return error.phrase
    return None


def read_key(config: Config) -> Secret | None:
    """Return the key of the notify service, or None where none is configured.

    Raises:
        ConfigError: the key file is readable by others, cannot be read, or holds
            something that no header can carry.
    """
    if config.notify_key is not None:
        return checked_key(config.notify_key, "KODER_MONITOR_NOTIFY_KEY")
    path = config.notify.key_file
    return None if path is None else read_key_file(path, "[notify] key_file")


def read_key_file(path: str, setting: str) -> Secret:
    """Return the secret that a file holds, named by `setting`; errors as `read_key`."""
    path = os.path.expanduser(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            mode = os.fstat(fd).st_mode
            if stat.S_ISREG(mode) and mode & 0o077:
                raise ConfigError(phrase("key_open", path=path))
            content = os.read(fd, _KEY_LIMIT + 1)
        finally:
            os.close(fd)
    except OSError as error:
        reason = error.strerror or str(error)
        why = phrase("key_unreadable", path=path, error=reason, setting=setting)
        raise ConfigError(why) from error
    return checked_key(content.decode("utf-8", "replace").strip(), path)


def checked_key(key: str, source: str) -> Secret:
    """Return a secret that a header can carry; errors as `read_key`."""
    shape = key.isascii() and key.isprintable() and " " not in key
    if not 0 < len(key) <= _KEY_LIMIT or not shape:
        raise ConfigError(phrase("key_malformed", path=source))
    return Secret(key)
