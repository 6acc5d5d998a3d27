"""Addresses that only this machine reaches: where the service may listen (C10.1)."""

from policies.wording import Phrase, phrase
from watcher.errors import ConfigError

_LAST_PORT = 65535


def is_loopback(name: str) -> bool:
    """Say whether a host, as it stands in a URL, is this machine and nothing else."""
    if name == "localhost":
        return True
    import ipaddress  # noqa: PLC0415 - start-up time: most commands have no address

    bare = name[1:-1] if name[:1] + name[-1:] == "[]" else name
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return False
    if address.version == 4:
        return bare == name and address.is_loopback
    return bare != name and address.compressed == "::1" == bare


def parse_listen(text: str, setting: str) -> tuple[str, int]:
    """Return host and port of an address to listen at; port 0 is any that is free.

    Raises:
        ConfigError: it has another shape, or others could reach it.
    """
    host, colon, port = text.rpartition(":")
    shape = colon and port.isascii() and port.isdigit() and len(port) <= 5
    if not shape or int(port) > _LAST_PORT:
        raise _bad(setting, text, phrase("listen_shape"))
    if not is_loopback(host):
        raise _bad(setting, text, phrase("listen_far"))
    return host, int(port)


def _bad(setting: str, text: str, why: Phrase) -> ConfigError:
    return ConfigError(phrase("config_value", name=setting, value=text, error=why))
