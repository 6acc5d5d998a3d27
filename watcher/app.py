"""Builds everything from the configuration; knows no signals."""

import os
import stat

from notify.channels.fallback import FallbackLog
from notify.channels.koder import KoderChannel, Secret
from notify.dispatcher import Dispatcher
from policies.clock import Clock
from policies.wording import Lang, Phrase, phrase
from watcher import __version__
from watcher.config import Config
from watcher.errors import ConfigError

_KEY_LIMIT = 4096  # bytes


def build_dispatcher(config: Config, *, lang: Lang, clock: Clock) -> Dispatcher:
    """Return what sends pings.

    A key that must not or cannot be used leaves no channel: then pings go to the
    fallback log, with the remedy as the reason (C6.2).
    """
    fallback = FallbackLog(config.fallback_log, clock.zone())
    if config.notify.url is None:
        return Dispatcher(None, fallback, lang=lang)
    try:
        key = read_key(config)
    except ConfigError as error:
        return Dispatcher(None, fallback, lang=lang, unusable=error.phrase)
    channel = KoderChannel(
        config.notify.url,
        key=key,
        auth=config.notify.auth,
        channel=config.notify.channel,
        user_agent=f"koder-monitor/{__version__}",
        limit_s=config.notify.timeout,
    )
    return Dispatcher(channel, fallback, lang=lang)


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
        return _checked(config.notify_key, "KODER_MONITOR_NOTIFY_KEY")
    path = config.notify.key_file
    if path is None:
        return None
    path = os.path.expanduser(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            mode = os.fstat(fd).st_mode
            if stat.S_ISREG(mode) and mode & 0o077:
                raise ConfigError(phrase("key_open", path=path))
            content = os.read(fd, _KEY_LIMIT)
        finally:
            os.close(fd)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(phrase("key_unreadable", path=path, error=reason)) from error
    return _checked(content.decode("utf-8", "replace").strip(), path)


def _checked(key: str, source: str) -> Secret:
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(phrase("key_malformed", path=source))
    return Secret(key)
