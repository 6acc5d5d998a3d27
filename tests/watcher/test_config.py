"""Settings: defaults, file, environment; a wrong one stops the start in one line."""

import contextlib
import json
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.wording import Lang
from tests.e2e.command import steering
from tests.watcher.rights import as_another_user, closed_to_others, open_folder
from watcher.conditions.lock import DEFAULT_DIRECTORY
from watcher.config import (
    Cadences,
    Config,
    Context,
    Locks,
    Notify,
    Seconds,
    Serve,
    Settle,
    check_url,
    differences,
    load_config,
    settings_of,
)
from watcher.errors import ConfigError

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "deploy" / "config.toml"

# Imported by the product only once there is a file, which a test may read as a user
# that cannot reach the library.
assert msgspec.__version__


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def write(file: Path, text: str | bytes) -> None:
    file.write_bytes(text.encode() if isinstance(text, str) else text)


def load(file: Path, text: str | bytes, **env: str) -> Config:
    write(file, text)
    return load_config({"KODER_MONITOR_CONFIG": str(file), **env})


def refused(file: Path, text: str | bytes | None = None, **env: str) -> str:
    """Return why settings are refused: one harmless line that says what to do."""
    if text is not None:
        write(file, text)
    with pytest.raises(ConfigError) as caught:
        load_config({"KODER_MONITOR_CONFIG": str(file), **env})
    line = caught.value.phrase.render(Lang.EN)
    assert steering(line) == []
    assert len(line) < 900
    return line


# defaults, file, environment


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    config = load_config({"XDG_CONFIG_HOME": str(tmp_path)})
    assert (config.locks, config.cadence, config.notify) == (
        Locks(),
        Cadences(),
        Notify(),
    )
    assert config.lang is Lang.PT
    assert config.notify_key is None


def test_the_defaults_are_those_of_the_contract() -> None:
    config = Config()
    assert config.cadence == Cadences(
        local=Seconds(30),
        remote=Seconds(60),
        floor_local=Seconds(30),
        floor_remote=Seconds(60),
        settle=Settle(0.25),
    )
    assert config.notify == Notify(
        url=None,
        key_file=None,
        auth="bearer",
        channel="kchat",
        timeout=Seconds(5),
        give_up_after=Seconds(86400),
        fallback_log=None,
        apprise=(),
    )


@pytest.mark.parametrize(
    "text", ["", "\n# nothing\n", "[notify]\n[cadence]\n[locks]\n"]
)
def test_an_empty_file_changes_nothing(text: str, file: Path) -> None:
    assert load(file, text) == load_config({"XDG_CONFIG_HOME": "/nowhere"})


def test_every_key_of_the_file_is_taken(file: Path) -> None:
    config = load(
        file,
        """
        lang = "en"
        [locks]
        dir = "/locks"
        [cadence]
        local = "1m"
        remote = "1h30m"
        floor_local = "10"
        floor_remote = "2d"
        settle = "500ms"
        [notify]
        url = "https://notify.example:8443/v1/notify?tenant=a"
        key_file = "~/notify.key"
        auth = "x-api-key"
        channel = "✅ ops"
        timeout = "3s"
        fallback_log = "/var/log/pings.log"
        give_up_after = "2h"
        apprise = ["ntfy://localhost/a", "json://localhost/"]
        [serve]
        socket = "own.sock"
        listen = "localhost:8765"
        token_file = "~/token"
        """,
    )
    assert config.lang is Lang.EN
    assert config.serve == Serve(
        socket="own.sock", listen="localhost:8765", token_file="~/token"
    )
    assert config.locks == Locks(dir="/locks")
    assert config.cadence == Cadences(
        local=Seconds(60),
        remote=Seconds(5400),
        floor_local=Seconds(10),
        floor_remote=Seconds(172_800),
        settle=Settle(0.5),
    )
    assert config.notify == Notify(
        url="https://notify.example:8443/v1/notify?tenant=a",
        key_file="~/notify.key",
        auth="x-api-key",
        channel="✅ ops",
        timeout=Seconds(3),
        give_up_after=Seconds(7200),
        fallback_log="/var/log/pings.log",
        apprise=("ntfy://localhost/a", "json://localhost/"),
    )


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ('""', ""),
        ('"/run/m.sock"', "/run/m.sock"),
        ('"own.sock"', "/state/own.sock"),
        ('"~/m.sock"', "~/m.sock"),
    ],
)
def test_the_socket_lies_where_it_is_asked_for(
    asked: str, path: str, file: Path
) -> None:
    text = f"[serve]\nsocket = {asked}\n"
    path = path and str(Path(path).expanduser())
    assert load(file, text, KODER_MONITOR_STATE="/state").socket == path
    assert load(file, "", KODER_MONITOR_STATE="/state").socket is None


@pytest.mark.parametrize("address", ["0.0.0.0:80", "example.org:80", "127.0.0.1", ""])
def test_an_address_that_others_could_reach_stops_the_start(
    address: str, file: Path
) -> None:
    assert "[serve] listen" in refused(file, f'[serve]\nlisten = "{address}"')


def test_the_environment_goes_before_the_file(file: Path) -> None:
    config = load(
        file,
        """
        [locks]
        dir = "/of/the/file"
        [cadence]
        local = "10m"
        remote = "10m"
        floor_local = "10m"
        floor_remote = "10m"
        settle = "10s"
        [notify]
        url = "http://of.the.file.example/"
        key_file = "/of/the/file"
        channel = "ops"
        """,
        KODER_MONITOR_LOCKS_DIR="/locks",
        KODER_MONITOR_FLOOR="2s",
        KODER_MONITOR_SETTLE="20ms",
        KODER_MONITOR_NOTIFY_URL="http://127.0.0.1:9/x",
        KODER_MONITOR_NOTIFY_KEY_FILE="/key",
        KODER_MONITOR_NOTIFY_KEY="K",
        KODER_MONITOR_TOKEN="T",
        KODER_MONITOR_STATE="/state",
    )
    two = Seconds(2)
    assert config.locks.dir == "/locks"
    assert config.cadence == Cadences(
        local=two, remote=two, floor_local=two, floor_remote=two, settle=Settle(0.02)
    )
    assert config.notify == Notify(
        url="http://127.0.0.1:9/x", key_file="/key", channel="ops"
    )
    assert config.notify_key == "K"
    assert config.token == "T"
    assert config.state == "/state"


ENVIRONMENT = (
    "KODER_MONITOR_CONFIG",
    "KODER_MONITOR_LOCKS_DIR",
    "KODER_MONITOR_FLOOR",
    "KODER_MONITOR_SETTLE",
    "KODER_MONITOR_NOTIFY_URL",
    "KODER_MONITOR_NOTIFY_KEY_FILE",
    "KODER_MONITOR_NOTIFY_KEY",
    "KODER_MONITOR_TOKEN",
    "KODER_MONITOR_STATE",
)


def test_an_empty_variable_is_as_good_as_none(tmp_path: Path) -> None:
    home = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert load_config({**home, **dict.fromkeys(ENVIRONMENT, "")}) == load_config(home)


@pytest.mark.parametrize("name", ["KODER_MONITOR_FLOOR", "KODER_MONITOR_SETTLE"])
@pytest.mark.parametrize("text", ["0", "-1s", "1h30", "1.5s", "soon", "366d", "0ms"])
def test_a_bad_duration_of_the_environment_is_named(
    name: str, text: str, file: Path
) -> None:
    line = refused(file, "", **{name: text})
    assert line.startswith(f"{name} {text} is no duration; use for example 45s")


def test_milliseconds_are_for_the_settle_time_alone(file: Path) -> None:
    assert load(file, "", KODER_MONITOR_SETTLE="1ms").cadence.settle == 0.001
    assert "KODER_MONITOR_FLOOR 100ms is no" in refused(
        file, "", KODER_MONITOR_FLOOR="100ms"
    )


def test_the_key_is_no_part_of_what_the_settings_show() -> None:
    config = load_config({"KODER_MONITOR_NOTIFY_KEY": "s3cr3t"})
    assert "s3cr3t" not in f"{config} {config!r}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("warning = 100.5", "[context] warning 100.5 "),
        ("critical = -1", "[context] critical -1 "),
        ("warning = nan", "[context] warning nan "),
        ("warning = 25", "[context] critical 25 "),
        ("critical = 35", "it has to be below warning (35)"),
        ('warnings = "false"', "Expected `bool`, got `str`"),
        ('warning = "30"', "Expected `float`, got `str`"),
    ],
)
def test_limits_of_the_context_are_percentages_the_critical_one_below(
    file: Path, text: str, why: str
) -> None:
    assert why.strip() in refused(file, f"[context]\n{text}\n")


def test_limits_of_the_context_may_be_whole_numbers(file: Path) -> None:
    config = load(file, "[context]\nwarnings = false\nwarning = 50\ncritical = 0\n")
    assert config.context == Context(warnings=False, warning=50.0, critical=0.0)


# keys that are not known

TABLES = (
    "cadence",
    "context",
    "handoff",
    "lang",
    "locks",
    "notify",
    "serve",
    "ssh",
    "wake",
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("langue = 'pt'", "langue"),
        ("Lang = 'pt'", "Lang"),
        ("[lock]\ndir = '/x'", "lock"),
        ("[locks]\ndirectory = '/x'", "locks.directory"),
        ("[notify]\nURL = 'http://x'", "notify.URL"),
        ("[notify]\nurl = 'http://x'\nkey = 'K'", "notify.key"),
        ("notify.keyfile = '/x'", "notify.keyfile"),
        ("notify = { urll = 'http://x' }", "notify.urll"),
        ("[notify.retry]\nafter = '5s'", "notify.retry"),
        ("[cadence]\nfloor = '5s'", "cadence.floor"),
        ("[[cadences]]", "cadences"),
        ("[handoff]\npercent = 80", "handoff.percent"),
        ("'' = 1", ""),
        ("'a\\u001b]0;x\\u0007' = 1".replace("'", '"'), r"a\x1b]0;x\x07"),
        # these come with their parts of the product
        ("[contxt]\nwarnings = [70]", "contxt"),
        ("[serve]\nport = 80", "serve.port"),
        # these come from the environment alone
        ("state = '/x'", "state"),
        ("notify_key = 'K'", "notify_key"),
        ("token = 'T'", "token"),
        ("fallback_log = '/x'", "fallback_log"),
    ],
    ids=repr,
)
def test_a_key_that_is_not_known_stops_the_start_and_is_named(
    text: str, name: str, file: Path
) -> None:
    line = refused(file, text)
    assert line.startswith(f"{file}: unknown key {name}; known: ")
    assert line.endswith("; mend the file")


def test_the_known_keys_are_told(file: Path) -> None:
    known = "cadence, context, handoff, lang, locks, notify, serve, ssh, wake"
    assert f"; known: {known}; mend" in refused(file, "x = 1")
    assert "; known: dir; mend" in refused(file, "[locks]\nx = 1")


def test_a_value_of_a_key_that_is_not_known_is_not_shown(file: Path) -> None:
    assert "s3cr3t" not in refused(file, "[notify]\nkey = 's3cr3t'")


@given(name=st.text(max_size=400).filter(lambda name: name not in TABLES))
def test_whatever_a_key_is_called_it_is_refused_in_one_line(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "any-key.toml"
    escaped = "".join(f"\\U{ord(char):08x}" for char in name)
    assert "unknown key" in refused(file, f'"{escaped}" = 1')


# values of a wrong type


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("lang = 1", "$.lang"),
        ("lang = 'fr'", "$.lang"),
        ("lang = ''", "$.lang"),
        ("lang = {}", "$.lang"),
        ("locks = '/x'", "$.locks"),
        ("locks = []", "$.locks"),
        ("[[notify]]\nurl = 'http://x'", "$.notify"),
        ("notify = 1979-05-27", "$.notify"),
        ("[locks]\ndir = ['/x']", "$.locks.dir"),
        ("[locks]\ndir = false", "$.locks.dir"),
        ("[notify]\nurl = 3", "$.notify.url"),
        ("[notify.url]\nx = 1", "$.notify.url"),
        ("[notify]\nkey_file = 0.5", "$.notify.key_file"),
        ("[notify]\nauth = true", "$.notify.auth"),
        ("[notify]\nchannel = 1", "$.notify.channel"),
        ("[notify]\nfallback_log = []", "$.notify.fallback_log"),
        ("[notify]\ntimeout = 5", "$.notify.timeout"),
        ("[notify]\ntimeout = inf", "$.notify.timeout"),
        ("[cadence]\nlocal = true", "$.cadence.local"),
        ("[cadence]\nremote = []", "$.cadence.remote"),
        ("[cadence]\nfloor_local = 07:32:00", "$.cadence.floor_local"),
        ("[cadence]\nfloor_remote = {}", "$.cadence.floor_remote"),
        ("[cadence]\nsettle = 250", "$.cadence.settle"),
    ],
    ids=repr,
)
def test_a_value_of_a_wrong_type_is_named_with_its_place(
    text: str, where: str, file: Path
) -> None:
    line = refused(file, text)
    assert line.startswith(f"{file}: ")
    assert line.endswith(f" - at `{where}`; mend the file")


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("cadence", "local"),
        ("cadence", "remote"),
        ("cadence", "floor_local"),
        ("cadence", "floor_remote"),
        ("cadence", "settle"),
        ("notify", "timeout"),
    ],
)
@pytest.mark.parametrize(
    "text", ["", "0", "1h30", "1.5h", "-5m", "30m1h", "366d", "٣h"]
)
def test_a_bad_duration_of_the_file_is_named_with_its_place(
    section: str, key: str, text: str, file: Path
) -> None:
    line = refused(file, f"[{section}]\n{key} = '{text}'")
    assert line.startswith(f"{file}: {section}.{key} {text} is no duration; use for")


@pytest.mark.parametrize("auth", ["Bearer", "basic", "", "x-api-key "])
def test_an_unknown_way_to_show_the_key_is_told(auth: str, file: Path) -> None:
    line = refused(file, f"[notify]\nauth = '{auth}'")
    assert line == f'[notify] auth {auth} will not do: use "bearer", "x-api-key"'


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("locks.dir", "[locks] dir"),
        ("notify.key_file", "[notify] key_file"),
        ("notify.fallback_log", "[notify] fallback_log"),
    ],
)
@pytest.mark.parametrize("path", ["/a\\u0000b", "x" * 256, "/x" * 3000])
def test_a_path_that_cannot_be_is_told(
    key: str, name: str, path: str, file: Path
) -> None:
    assert refused(file, f'{key} = "{path}"').startswith(f"{name} '")


# addresses

BAD_URLS = {
    "empty": "",
    "no scheme": "notify.example/x",
    "a port for a scheme": "notify.example:80/x",
    "no host": "http://",
    "no host but a path": "https:///x",
    "no host but a port": "http://:80/",
    "another scheme": "ftp://notify.example/",
    "a file": "file:///etc/passwd",
    "a blank": "http://notify.example/a b",
    "a blank in front": " http://notify.example/",
    "a line break": "http://notify.example/\n",
    "a tab in the scheme": "ht\ttp://notify.example/",
    "a control character": "http://notify.example/\x1b",
    "port 0": "http://notify.example:0/",
    "port 65536": "http://notify.example:65536/",
    "no number": "http://notify.example:http/",
    "a bracket": "http://[::1",
    "no address": "http://[notify.example]/",
}


@pytest.mark.parametrize("url", BAD_URLS.values(), ids=BAD_URLS)
def test_an_address_that_no_ping_can_go_to_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_url(url)
    line = caught.value.phrase.render(Lang.EN)
    assert line.startswith("[notify] url ")
    assert line.endswith(
        "use http:// or https:// with a host and no password in the address"
    )
    assert steering(line) == []


@pytest.mark.parametrize(
    "url",
    [
        "http://user:pa55word@notify.example/",
        "http://pa55word@notify.example/",
        "http://@notify.example/",
        "user:pa55word@notify.example",
        "http://user:pa55word@[::1",
        "http://user:pa55word@notify.example:port/",
        "http://user:pa55 word@notify.example/",
    ],
)
def test_an_address_with_a_password_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_url(url)
    assert "[notify] url *** will not do" in caught.value.phrase.render(Lang.EN)
    assert "pa55" not in f"{caught.value!r} {caught.value.__cause__!r}"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9",
        "https://notify.example/v1/notify",
        "HTTPS://Notify.Example:8443/?a=b@c",
        "http://[::1]:80/",
        "http://localhost/",
        "https://avisos.café.example/",
    ],
)
def test_an_address_of_a_server_will_do(url: str) -> None:
    check_url(url)


@pytest.mark.parametrize("where", ["file", "environment"])
def test_a_bad_address_stops_the_start(where: str, file: Path) -> None:
    if where == "file":
        line = refused(file, "[notify]\nurl = 'ftp://x'")
    else:
        line = refused(file, "", KODER_MONITOR_NOTIFY_URL="ftp://x")
    assert line.startswith("[notify] url ftp://x will not do")


# files that are none


@pytest.mark.parametrize(
    "text",
    [
        "[notify",
        "url",
        "url = ",
        "url = 'a",
        "lang = 'pt'\nlang = 'en'",
        "[notify]\n[notify]",
        "\ufefflang = 'pt'",
        'lang = "\x00"',
        b"\xff\xfe",
        b"lang = '\xe7'",
        "x = " + "[" * 100_000,
        "x = " + "9" * 5000,
        "lang: pt",
        "{}",
    ],
    ids=lambda text: repr(text[:20]),
)
def test_a_file_that_is_no_toml_is_told(text: str | bytes, file: Path) -> None:
    line = refused(file, text)
    assert line.startswith(f"{file}: ")
    assert line.endswith("; mend the file")


@given(content=st.binary(max_size=300))
def test_no_file_whatever_is_in_it_is_a_crash(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "any-content.toml"
    with contextlib.suppress(ConfigError):
        load(file, content)


def test_a_file_that_was_asked_for_and_is_not_there_is_told(file: Path) -> None:
    assert refused(file) == f"{file}: No such file or directory; mend the file"


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    assert refused(tmp_path) == f"{tmp_path}: not a regular file; mend the file"


def test_a_pipe_is_no_file_and_nobody_waits_for_it(file: Path) -> None:
    os.mkfifo(file)
    assert refused(file) == f"{file}: not a regular file; mend the file"


def test_a_device_is_no_file() -> None:
    assert "not a regular file" in refused(Path("/dev/zero"))


def test_the_null_device_is_an_empty_file() -> None:
    config = load_config({"KODER_MONITOR_CONFIG": "/dev/null"})
    assert config.notify == Notify()


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "koder-monitor"
    folder.mkdir()
    (folder / "config.toml").symlink_to("missing")
    with pytest.raises(ConfigError) as caught:
        load_config({"XDG_CONFIG_HOME": str(tmp_path)})
    assert "No such file" in caught.value.phrase.render(Lang.EN)


def test_a_file_that_may_not_be_read_is_told() -> None:
    with open_folder() as folder:
        file = folder / "config.toml"
        file.touch(0)
        with as_another_user():
            assert refused(file) == f"{file}: Permission denied; mend the file"


def test_a_folder_that_may_not_be_looked_into_is_not_taken_for_an_empty_one() -> None:
    with open_folder() as folder:
        closed = folder / "koder-monitor"
        closed.mkdir()
        with closed_to_others(closed), pytest.raises(ConfigError) as caught:
            load_config({"XDG_CONFIG_HOME": str(folder)})
    assert "Permission denied" in caught.value.phrase.render(Lang.EN)


def test_a_folder_that_is_a_file_holds_no_settings(tmp_path: Path) -> None:
    (tmp_path / "koder-monitor").touch()
    assert load_config({"XDG_CONFIG_HOME": str(tmp_path)}).notify == Notify()


def test_an_error_keeps_its_cause(file: Path) -> None:
    for text in ("[", "x = 1", "lang = 1"):
        with pytest.raises(ConfigError) as caught:
            load(file, text)
        assert caught.value.__cause__ is not None


# channels beside the server


@pytest.mark.parametrize(
    "value",
    ['"ntfy://localhost/a"', "[5]", '[["a"]]', "{}", "true"],
)
def test_apprise_is_a_list_of_addresses(value: str, file: Path) -> None:
    assert "apprise" in refused(file, f"[notify]\napprise = {value}\n")


@pytest.mark.parametrize("value", ['"1.5h"', '"0"', '"366d"', "5", "true"])
def test_the_time_to_give_up_is_a_duration(value: str, file: Path) -> None:
    assert "give_up_after" in refused(file, f"[notify]\ngive_up_after = {value}\n")


def test_an_apprise_address_is_shown_nowhere(file: Path) -> None:
    config = load(file, '[notify]\napprise = ["slack://s3cr3t/"]\n')
    assert "s3cr3t" not in f"{config!r} {settings_of(config)}"


# where a command and its service must agree

OTHERS = {
    "[locks] dir": {"KODER_MONITOR_LOCKS_DIR": "/other"},
    "[cadence] local": {"KODER_MONITOR_FLOOR": "3s"},
    "[cadence] floor_local": {"KODER_MONITOR_FLOOR": "3s"},
    "[cadence] remote": {"KODER_MONITOR_FLOOR": "3s"},
    "[cadence] floor_remote": {"KODER_MONITOR_FLOOR": "3s"},
    "[cadence] settle": {"KODER_MONITOR_SETTLE": "3s"},
    "[notify] url": {"KODER_MONITOR_NOTIFY_URL": "http://127.0.0.1:9/"},
    "[notify] key": {"KODER_MONITOR_NOTIFY_KEY": "s3cr3t"},
    "[notify] fallback_log": {"KODER_MONITOR_STATE": "/elsewhere"},
}
OF_THE_FILE = {
    "[ssh] config_file": 'config_file = "/c"',
    "[notify] auth": 'auth = "x-api-key"',
    "[notify] channel": 'channel = "ops"',
    "[notify] apprise": 'apprise = ["json://localhost/"]',
    "[notify] give_up_after": 'give_up_after = "1h"',
    "[notify] key": 'key_file = "/k"',
}


def test_equal_settings_do_not_differ(file: Path) -> None:
    one, two = (load(file, "", KODER_MONITOR_NOTIFY_KEY="K") for _ in range(2))
    assert differences(one, settings_of(two)) == []
    assert differences(one, {}) == []


def test_every_setting_that_matters_has_its_case(file: Path) -> None:
    assert set(settings_of(load(file, ""))) == {*OTHERS, *OF_THE_FILE}


@pytest.mark.parametrize("name", OTHERS)
def test_an_environment_that_differs_is_named(name: str, file: Path) -> None:
    service, command = load(file, ""), load(file, "", **OTHERS[name])
    named = differences(service, settings_of(command))
    assert name in named
    assert len(named) <= 4
    assert "s3cr3t" not in str(settings_of(command))


@pytest.mark.parametrize("name", OF_THE_FILE)
def test_a_file_that_differs_is_named(name: str, file: Path) -> None:
    service = load(file, "")
    table = name.partition(" ")[0]
    command = load(file, f"{table}\n{OF_THE_FILE[name]}\n")
    assert differences(service, settings_of(command)) == [name]


def test_a_setting_that_the_service_does_not_know_differs(file: Path) -> None:
    assert differences(load(file, ""), {"[new] key": "x"}) == ["[new] key"]


# where the fallback log is


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (None, "/state/release-pings.log"),
        ("", "/state/release-pings.log"),
        ("pings.log", "/state/pings.log"),
        ("logs/pings.log", "/state/logs/pings.log"),
        ("/var/log/pings.log", "/var/log/pings.log"),
        ("~/pings.log", "/home/ana/pings.log"),
    ],
)
def test_the_fallback_log_is_in_the_state_directory_unless_told_otherwise(
    chosen: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ana")
    config = Config(state="/state", notify=Notify(fallback_log=chosen))
    assert config.fallback_log == expected


# the example configuration, which is the reference

WITHOUT_DEFAULT = {
    "notify.url",
    "notify.key_file",
    "serve.socket",
    "serve.listen",
    "serve.token_file",
}
DEFAULT_BY_PLACE = {
    "locks.dir": DEFAULT_DIRECTORY,
    "notify.fallback_log": "release-pings.log",
}
SETTING = re.compile(r"^#(?=\w+ = )", re.MULTILINE)


def flat(value: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Walk the keys of settings, or of a parsed file, with their values."""
    if is_dataclass(value) and not isinstance(value, type):
        pairs = [(item.name, getattr(value, item.name)) for item in fields(value)]
    else:
        assert isinstance(value, dict)
        pairs = list(value.items())
    for name, inner in pairs:
        if prefix + name in {"state", "notify_key", "token"}:
            continue
        if isinstance(inner, dict) or is_dataclass(inner):
            yield from flat(inner, f"{prefix}{name}.")
        else:
            yield prefix + name, inner


def example() -> str:
    return EXAMPLE.read_text("utf-8")


def every_setting() -> str:
    """Return the example with the mark of each setting taken away."""
    return SETTING.sub("", example())


def test_the_example_as_it_stands_changes_nothing(file: Path) -> None:
    assert load(file, example()) == load_config({"XDG_CONFIG_HOME": "/nowhere"})


def test_the_example_holds_every_key_and_no_other() -> None:
    assert set(dict(flat(tomllib.loads(every_setting())))) == set(dict(flat(Config())))


def test_the_example_holds_the_true_defaults(file: Path) -> None:
    loaded = dict(flat(load(file, every_setting())))
    true = {**dict(flat(Config())), **DEFAULT_BY_PLACE}
    for name in WITHOUT_DEFAULT:
        assert loaded.pop(name)
        assert true.pop(name) is None
    assert loaded == true


def test_each_setting_of_the_example_is_explained() -> None:
    lines = example().splitlines()
    for number, line in enumerate(lines):
        if SETTING.match(line):
            assert lines[number - 1].startswith("# "), line
    for name in WITHOUT_DEFAULT:
        above = example().partition(f"\n#{name.partition('.')[2]} = ")[0]
        assert "No default: " in above.rpartition("\n\n")[2]


def test_the_example_names_the_variables_that_go_first() -> None:
    assert set(re.findall(r"KODER_MONITOR_\w+", example())) == set(ENVIRONMENT)


def test_the_settings_of_a_path_with_odd_bytes_can_be_sent() -> None:
    odd = Config(state="/h\udcff", locks=Locks(dir="/l\udcff"))
    assert json.dumps(settings_of(odd), ensure_ascii=False).encode()


# percentages


@pytest.mark.parametrize("value", ["0", "70", "70.5", "100", "100.0"])
def test_a_percentage_is_a_number_from_0_to_100(value: str, file: Path) -> None:
    found = load(file, f"[handoff]\nthreshold = {value}").handoff.threshold
    assert found == float(value)


@pytest.mark.parametrize("value", ["-1", "100.1", "1000", "nan", "inf", "-inf"])
def test_what_is_no_percentage_is_refused(value: str, file: Path) -> None:
    line = refused(file, f"[handoff]\nthreshold = {value}")
    assert "[handoff] threshold" in line
    assert "use a number from 0 to 100" in line


@pytest.mark.parametrize("value", ["'70'", "true", "[]", "{}"])
def test_a_percentage_of_another_type_is_refused(value: str, file: Path) -> None:
    assert "handoff.threshold" in refused(file, f"[handoff]\nthreshold = {value}")
