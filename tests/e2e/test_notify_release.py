"""`notify-release "<message>"`: the ping goes its way, whoever calls is not broken."""

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from notify.channels.fallback import FallbackLog
from notify.dispatcher import Dispatcher
from policies.model import Ping
from policies.wording import Lang, phrase
from tests.e2e.command import Ended, Place, Running, steering, until
from tests.fakes import settle
from tests.notify.samples import a_ping
from tests.servers import Answer, Request, serve
from watcher.cli import notify_release
from watcher.errors import UsageError

NOTIFY_RELEASE = (
    sys.executable,
    "-c",
    "import sys; from watcher.cli.notify_release import main; sys.exit(main())",
)
KEY = "s3cr3t/Key+with=signs"
NO_CHANNEL = "nenhum canal configurado ([notify] url)"


def start(
    place: Place,
    *words: str | bytes,
    env: Mapping[str, str | None] | None = None,
    inside: tuple[str, ...] = (),
    cwd: Path | None = None,
) -> Running:
    """Start the command; `inside` is what starts it in turn."""
    return place.start(*words, env=env, cwd=cwd, program=(*inside, *NOTIFY_RELEASE))


def run(
    place: Place,
    *words: str | bytes,
    env: Mapping[str, str | None] | None = None,
    inside: tuple[str, ...] = (),
    cwd: Path | None = None,
) -> Ended:
    """Run the command; nothing is ever on its stdout."""
    ended = start(place, *words, env=env, inside=inside, cwd=cwd).end()
    assert ended.out == ""
    return ended


def configure(place: Place, text: str) -> None:
    path = place.folder / "config.toml"
    path.write_text(text, "utf-8")
    place.env["KODER_MONITOR_CONFIG"] = str(path)


@pytest.fixture
def closed_port() -> int:
    """Give a port that nobody listens on."""
    with serve() as server:
        return server.port


# delivered


def test_a_message_is_delivered_without_a_word(place: Place) -> None:
    with serve() as server:
        env = {
            "KODER_MONITOR_NOTIFY_URL": server.url(),
            "KODER_MONITOR_NOTIFY_KEY": KEY,
        }
        ended = run(place, "✅ deploy pronto — pode testar", env=env)
    assert (ended.status, ended.err) == (0, ())
    assert place.pings() == []
    request = server.request()
    assert request.headers["authorization"] == f"Bearer {KEY}"
    found = request.object
    assert request.headers["idempotency-key"] == found["idempotency_key"]
    assert len(found["idempotency_key"]) >= 16
    assert found["title"] == found["message"] == "✅ deploy pronto — pode testar"
    assert (found["severity"], found["source"]) == ("info", "koder-monitor")
    assert (found["channel"], found["watch"]) == ("kchat", {})


def test_the_severity_can_be_chosen(place: Place) -> None:
    with serve() as server:
        env = {"KODER_MONITOR_NOTIFY_URL": server.url()}
        run(place, "disco cheio", "--severity", "error", env=env)
    assert server.request().object["severity"] == "error"


def test_two_messages_are_two_pings_even_when_they_say_the_same(place: Place) -> None:
    with serve() as server:
        env = {"KODER_MONITOR_NOTIFY_URL": server.url()}
        run(place, "pronto", env=env)
        run(place, "pronto", env=env)
    assert len({r.object["idempotency_key"] for r in server.requests}) == 2


def test_the_title_is_the_beginning_of_a_long_message(place: Place) -> None:
    message = "linha um\n" + "palavra " * 40
    with serve() as server:
        run(place, message, env={"KODER_MONITOR_NOTIFY_URL": server.url()})
    found = server.request().object
    assert found["title"].startswith("linha um palavra palavra")
    assert found["title"].endswith("…(cortado)")
    assert len(found["title"]) == 80
    assert found["message"] == message.replace("\n", r"\n")


@pytest.mark.parametrize("message", ["--help", "-5 testes a menos"], ids=repr)
def test_a_message_may_begin_with_a_dash_behind_two(message: str, place: Place) -> None:
    with serve() as server:
        ended = run(
            place, "--", message, env={"KODER_MONITOR_NOTIFY_URL": server.url()}
        )
    assert ended.status == 0
    assert server.request().object["message"] == message


HOSTILE = "\x1b]0;x\x07\x1b[2J \u202eabc \u2028 a\nb".encode() + b" \xff \xc2\x9b31m"


def test_what_could_steer_a_terminal_reaches_nobody(place: Place) -> None:
    with serve(Answer(status=503)) as server:
        env = {"KODER_MONITOR_NOTIFY_URL": server.url()}
        ended = run(place, HOSTILE, env=env)
    found = server.request().object
    assert steering(found["message"] + found["title"]) == []
    assert r"\x1b]0;x\x07\x1b[2J \u202eabc \u2028 a\nb \xff \x9b31m" in found["message"]
    assert ended.status == 0
    assert place.ping(r"a\nb \xff \x9b31m")


# not delivered


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(status=503, body=b"busy"), "não entregue: HTTP 503 busy"),
        (Answer(status=401, body=b"who?"), "recusado: HTTP 401 who?"),
        (Answer(delay_s=60), "resultado desconhecido (no answer within 1 s)"),
    ],
    ids=["503", "401", "silent"],
)
def test_what_the_server_did_not_take_is_in_the_log_and_on_stderr(
    answer: Answer, reason: str, place: Place
) -> None:
    with serve(answer) as server:
        configure(place, f"[notify]\nurl = '{server.url()}'\ntimeout = '1s'")
        ended = run(place, "deploy pronto")
    assert ended.status == 0
    (line,) = ended.err
    assert line.startswith(f"notify-release: ping gravado em {place.log}: {reason}")
    assert reason in place.ping("deploy pronto")


def test_a_server_that_is_down_breaks_nothing(place: Place, closed_port: int) -> None:
    env = {"KODER_MONITOR_NOTIFY_URL": f"http://127.0.0.1:{closed_port}/"}
    ended = run(place, "deploy pronto", env=env)
    assert ended.status == 0
    assert "não entregue: ConnectError" in ended.err[0]
    assert place.ping("deploy pronto").endswith(" deploy pronto: deploy pronto")


def test_without_an_address_the_message_is_in_the_log(place: Place) -> None:
    ended = run(place, "deploy pronto")
    assert ended.status == 0
    assert ended.err == (f"notify-release: ping gravado em {place.log}: {NO_CHANNEL}",)
    ping = place.ping("deploy pronto")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00 info [0-9a-f]{16} "
        rf"\({re.escape(NO_CHANNEL)}\) deploy pronto: deploy pronto",
        ping,
    )


@pytest.mark.parametrize(
    ("words", "config"),
    [(("--lang", "en"), ""), (("--lang=en",), "lang = 'pt'"), ((), "lang = 'en'")],
    ids=["option", "option first", "file"],
)
def test_messages_are_in_the_language_of_the_call_or_of_the_settings(
    words: tuple[str, ...], config: str, place: Place
) -> None:
    configure(place, config)
    ended = run(place, "ready", *words)
    reason = "no channel configured ([notify] url)"
    assert ended.err == (f"notify-release: ping written to {place.log}: {reason}",)
    # The log is the service's, and speaks the language of the settings.
    logged = NO_CHANNEL if words else reason
    assert logged in place.ping("ready")


@pytest.mark.slow
def test_an_attempt_has_five_seconds_even_when_something_trickles_in(
    place: Place,
) -> None:
    with serve(Answer(trickle_s=0.5)) as server:
        env = {"KODER_MONITOR_NOTIFY_URL": server.url()}
        start_s = time.monotonic()
        ended = run(place, "deploy pronto", env=env)
        took_s = time.monotonic() - start_s
        assert "no answer within 5 s" in place.ping("deploy pronto")
    assert ended.status == 0
    assert "fila de envio" in ended.err[0] or "no answer within 5 s" in ended.err[0]
    assert 4 < took_s < 9


# settings that will not do

BROKEN = {
    "a misspelt key": ("[notify]\nurls = 'http://127.0.0.1:9/'", "notify.urls"),
    "no TOML": ("[notify", "config.toml"),
    "a bad address": ("[notify]\nurl = 'ftp://x'", "[notify] url ftp://x"),
}


@pytest.mark.parametrize(("config", "named"), BROKEN.values(), ids=BROKEN)
def test_broken_settings_break_nothing_and_are_named(
    config: str, named: str, place: Place
) -> None:
    configure(place, config)
    ended = run(place, "deploy pronto", "--lang", "en")
    assert ended.status == 0
    (line,) = ended.err
    assert line.startswith(f"notify-release: ping written to {place.log}: ")
    assert named in line
    assert named in place.ping("deploy pronto")


@pytest.mark.parametrize(
    ("name", "text"),
    [("KODER_MONITOR_CONFIG", "/missing/config.toml"), ("KODER_MONITOR_FLOOR", "soon")],
)
def test_a_broken_environment_breaks_nothing_and_is_named(
    name: str, text: str, place: Place
) -> None:
    ended = run(place, "deploy pronto", env={name: text})
    assert ended.status == 0
    assert text in ended.err[0]
    assert text in place.ping("deploy pronto")


def test_a_key_that_others_can_read_is_not_used(place: Place) -> None:
    path = place.folder / "notify.key"
    path.write_text(KEY, "utf-8")
    path.chmod(0o644)
    with serve() as server:
        configure(place, f"[notify]\nurl = '{server.url()}'\nkey_file = '{path}'")
        ended = run(place, "deploy pronto")
    assert server.connections == 0
    assert ended.status == 0
    assert f"legível por outros, não usada; rode: chmod 600 {path}" in ended.err[0]
    assert f"chmod 600 {path}" in place.ping("deploy pronto")


def test_a_key_that_the_server_echoes_is_shown_to_nobody(place: Place) -> None:
    def echo(request: Request) -> Answer:
        text = f"401 {request.headers['x-api-key']}\n".encode()
        return Answer(status=401, body=text + b"x" * 5_000_000)

    with serve(echo) as server:
        configure(place, f"[notify]\nurl = '{server.url()}'\nauth = 'x-api-key'")
        env = {"KODER_MONITOR_NOTIFY_KEY": KEY, "KODER_MONITOR_DEBUG": "1"}
        ended = run(place, "deploy pronto", env=env)
    assert server.request().headers["x-api-key"] == KEY
    assert "HTTP 401 401 *** xxx" in ended.err[0]
    assert KEY not in "".join(ended.err) + place.log.read_text("utf-8")


# wrong calls


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("",),
        (" \t\n",),
        ("um", "dois"),
        ("--severity", "fatal", "msg"),
        ("--lang", "fr", "msg"),
        ("--unknown", "msg"),
        ("-x",),
        ("--sev", "error", "msg"),
        ("--severity",),
    ],
    ids=repr,
)
def test_a_wrong_call_is_told_in_one_line_and_sends_nothing(
    words: tuple[str, ...],
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["notify-release", *words])
    monkeypatch.setenv("KODER_MONITOR_STATE", place.env["KODER_MONITOR_STATE"])
    assert notify_release.main() == 2
    out, err = capfd.readouterr()
    (line,) = err.splitlines()
    assert line.startswith("notify-release: erro: ")
    assert "notify-release " in line.removeprefix("notify-release: erro: ")
    assert (out, place.pings()) == ("", [])


def test_a_wrong_call_in_english_is_told_in_english(place: Place) -> None:
    ended = run(place, "--lang", "en", "")
    assert ended.status == 2
    assert ended.err == (
        'notify-release: error: the message is empty; use: notify-release "text"',
    )


def test_help_says_how_to_call_it(place: Place) -> None:
    ended = start(place, "--help").end()
    assert (ended.status, ended.err) == (0, ())
    assert "--severity" in ended.out
    assert place.pings() == []


# when even the log fails


def test_a_full_log_is_said_with_the_message_itself(
    place: Place, closed_port: int
) -> None:
    configure(
        place,
        "[notify]\nfallback_log = '/dev/full'\n"
        f"url = 'http://127.0.0.1:{closed_port}/'",
    )
    ended = run(place, "deploy pronto")
    assert ended.status == 0
    (line,) = ended.err
    assert line.startswith("notify-release: PING NÃO ENTREGUE NEM GRAVADO (")
    assert "ConnectError" in line
    assert line.endswith("): deploy pronto")
    (row,) = place.rows("SELECT state FROM pings")
    assert row["state"] == "pending"


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_a_state_directory_that_is_none_is_said(kind: str, place: Place) -> None:
    path = place.folder / "nothing"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.touch()
    ended = run(place, "deploy pronto", env={"KODER_MONITOR_STATE": str(path)})
    assert ended.status == 0
    (line,) = ended.err
    assert "PING NÃO ENTREGUE NEM GRAVADO" in line
    assert line.endswith("): deploy pronto")


def test_a_log_that_is_a_pipe_does_not_hang(place: Place) -> None:
    path = place.folder / "pipe"
    os.mkfifo(path)
    configure(place, f"[notify]\nfallback_log = '{path}'")
    ended = run(place, "deploy pronto")
    assert ended.status == 0
    assert f"{path}: No such device or address" in ended.err[0]
    assert ended.err[0].endswith("): deploy pronto")


def test_a_relative_state_directory_of_a_deleted_folder_is_said(place: Place) -> None:
    folder = place.folder / "gone"
    folder.mkdir()
    ended = run(
        place,
        "deploy pronto",
        env={"KODER_MONITOR_STATE": "own"},
        cwd=folder,
        inside=("sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh"),
    )
    assert ended.status == 0
    (line,) = ended.err
    assert "o diretório atual foi apagado" in line
    assert line.endswith("): deploy pronto")


@pytest.mark.parametrize("descriptors", ["<&- >&- 2>&-", "2>/dev/full"])
def test_who_listens_to_nothing_has_the_ping_in_the_log(
    descriptors: str, place: Place
) -> None:
    inside = ("sh", "-c", f'exec "$@" {descriptors}', "sh")
    assert run(place, "deploy pronto", inside=inside).status == 0
    assert place.ping("deploy pronto").endswith("deploy pronto: deploy pronto")


def test_an_ascii_locale_does_not_change_the_text(place: Place) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with serve() as server:
        env = {**ascii_only, "KODER_MONITOR_NOTIFY_URL": server.url()}
        run(place, "✅ café".encode(), env=env)
    assert server.request().object["message"] == "✅ café"
    assert run(place, "✅ café".encode(), env=ascii_only).status == 0
    assert place.ping(" ✅ café: ✅ café")


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        (MemoryError("no memory"), 0, "internal error: MemoryError: no memory"),
        (UsageError(phrase("no_cwd")), 0, "the current directory was deleted"),
        (KeyboardInterrupt(), 130, "sending was cut short by a signal"),
    ],
    ids=["fault", "wrong setting", "Ctrl-C"],
)
def test_whatever_happens_the_message_is_not_lost_in_silence(
    fault: BaseException,
    status: int,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail(*words: object, **options: object) -> None:
        raise fault

    monkeypatch.setattr(notify_release, "build_dispatcher", fail)
    monkeypatch.setattr(sys, "argv", ["notify-release", "pronto", "--lang", "en"])
    assert notify_release.main() == status
    out, err = capfd.readouterr()
    (line,) = err.splitlines()
    start = "notify-release: PING NEITHER DELIVERED NOR WRITTEN ("
    assert (out, line[: len(start)]) == ("", start)
    assert reason in line
    assert line.endswith("): pronto")


# signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_waits_leaves_the_ping_to_the_service(
    number: signal.Signals, place: Place
) -> None:
    with serve(Answer(delay_s=1)) as server:
        running = start(
            place, "deploy pronto", env={"KODER_MONITOR_NOTIFY_URL": server.url()}
        )
        until(lambda: server.requests)
        running.send(number)
        ended = running.end()
        assert ended.status == 128 + number
        assert "fila de envio" in ended.err[0]
        until(lambda: place.rows("SELECT 1 FROM pings WHERE state = 'delivered'"))
    assert server.request().object["message"] == "deploy pronto"
    assert place.pings() == []


def test_a_signal_that_the_caller_ignores_stays_ignored(place: Place) -> None:
    with serve(Answer(delay_s=0.3)) as server:
        running = start(
            place,
            "deploy pronto",
            env={"KODER_MONITOR_NOTIFY_URL": server.url()},
            inside=("sh", "-c", "trap '' HUP; exec \"$@\"", "sh"),
        )
        until(lambda: server.requests)
        running.send(signal.SIGHUP)
        ended = running.end()
    assert (ended.status, ended.err, place.pings()) == (0, (), [])


class SilentChannel:
    """A channel that never answers."""

    async def send(self, ping: Ping) -> None:
        await asyncio.Event().wait()


async def test_who_gives_the_command_up_without_a_signal_hears_of_it(
    tmp_path: Path,
) -> None:
    log = FallbackLog(str(tmp_path / "pings.log"), UTC)
    dispatcher = Dispatcher(
        {"silent": SilentChannel()},
        log,
        lang=Lang.EN,
        submit=None,
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        jitter=float,
        notice=lambda _: None,
    )
    sending = asyncio.ensure_future(notify_release._deliver(dispatcher, a_ping()))
    await settle()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending


# what only a mount of our own can show


@pytest.fixture(scope="session")
def mounts() -> tuple[str, ...]:
    """Give what runs a shell script where it may mount."""
    own = ("-m",) if os.geteuid() == 0 else ("-rm",)
    program = shutil.which("unshare")
    if program is None:
        pytest.skip("needs unshare (Debian: util-linux)")
    command = (program, *own, "sh", "-c")
    probe = [*command, "mount -t tmpfs none /mnt"]
    if subprocess.run(probe, capture_output=True, check=False, timeout=20).returncode:
        pytest.skip("needs root or user namespaces to mount")
    return command


def test_a_disk_that_was_full_takes_whole_lines_again(
    mounts: tuple[str, ...], place: Place
) -> None:
    """The first ping finds room for the beginning of its line only."""
    disk = place.folder / "disk"
    disk.mkdir()
    configure(place, f"[notify]\nfallback_log = '{disk}/pings.log'")
    script = f"""
        set -e
        mount -t tmpfs -o size=64k none {disk}
        head -c 4000 /dev/zero | tr '\\0' x >{disk}/pings.log
        echo >>{disk}/pings.log
        cat /dev/zero >{disk}/filler 2>/dev/null || :
        "$@" um
        rm {disk}/filler
        "$@" dois
        "$@" tres
        cat {disk}/pings.log
    """
    ended = place.start(program=(*mounts, script, "sh", *NOTIFY_RELEASE)).end()
    assert ended.status == 0
    lost, *written = ended.err
    assert "NEM GRAVADO" in lost
    assert lost.endswith("): um")
    assert "No space left on device" in lost
    assert all(line.endswith(NO_CHANNEL) for line in written)
    full, cut_short, *whole = ended.out.splitlines()
    assert full == "x" * 4000
    assert len(cut_short) == 95
    texts = [line.rpartition(" ")[2] for line in whole]
    assert [text for text in texts if text != "um"] == ["dois", "tres"]


def test_a_read_only_disk_is_said(mounts: tuple[str, ...], place: Place) -> None:
    disk = place.folder / "disk"
    disk.mkdir()
    script = f'mount -t tmpfs -o ro none {disk} && exec "$@"'
    ended = run(
        place,
        "deploy pronto",
        env={"KODER_MONITOR_STATE": str(disk)},
        inside=(*mounts, script, "sh"),
    )
    assert ended.status == 0
    assert ended.err[0].endswith("Read-only file system): deploy pronto")


@contextmanager
def silent_resolver() -> Iterator[str]:
    """Give a name server on loopback that answers nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as resolver:
        try:
            resolver.bind(("127.77.0.1", 53))
        except PermissionError:
            pytest.skip("needs root to be a name server")
        yield "127.77.0.1"


@pytest.mark.slow
def test_a_name_server_that_does_not_answer_holds_nobody_up(
    mounts: tuple[str, ...], place: Place
) -> None:
    resolv = place.folder / "resolv.conf"
    script = f'mount --bind {resolv} /etc/resolv.conf && exec "$@"'
    configure(place, "[notify]\nurl = 'http://notify.example.invalid/'\ntimeout = '1s'")
    with silent_resolver() as address:
        resolv.write_text(f"nameserver {address}\noptions timeout:30\n", "utf-8")
        start_s = time.monotonic()
        ended = run(place, "deploy pronto", inside=(*mounts, script, "sh"))
        took_s = time.monotonic() - start_s
    assert ended.status == 0
    assert "no answer within 1 s" in ended.err[0]
    assert place.ping("deploy pronto")
    assert took_s < 10, "the resolver itself gives up after 30 s"


@pytest.mark.parametrize("excepted", [True, False], ids=["no_proxy", "proxy"])
def test_a_proxy_and_its_exceptions_are_honoured(
    excepted: bool, mounts: tuple[str, ...], place: Place
) -> None:
    hosts = place.folder / "hosts"
    hosts.write_text("127.0.0.1 notify.example.invalid\n", "utf-8")
    script = f'mount --bind {hosts} /etc/hosts && exec "$@"'
    with serve() as proxy, serve() as server:
        url = server.url(host="notify.example.invalid")
        env = {
            "KODER_MONITOR_NOTIFY_URL": url,
            "http_proxy": proxy.url(""),
            "no_proxy": "example.invalid" if excepted else "other.invalid",
        }
        ended = run(place, "deploy pronto", env=env, inside=(*mounts, script, "sh"))
    assert (ended.status, ended.err) == (0, ())
    reached, left_alone = (server, proxy) if excepted else (proxy, server)
    assert reached.request().target == ("/notify" if excepted else url)
    assert left_alone.connections == 0


# the same path behind a watch


def gone(place: Place) -> str:
    """Return the PID of a process that has ended: its watch ends at once."""
    work = place.work()
    work.end()
    return str(work.pid)


def test_of_a_watch_neither_line_nor_json_shows_the_key(place: Place) -> None:
    def echo(request: Request) -> Answer:
        return Answer(status=403, body=request.headers["authorization"].encode())

    with serve(echo) as server:
        env = {
            "KODER_MONITOR_NOTIFY_URL": server.url(),
            "KODER_MONITOR_NOTIFY_KEY": KEY,
        }
        ended = place.run("process", "--pid", gone(place), "--json", env=env)
    assert ended.status == 0
    assert ended.object["outcome"] == "ended"
    assert "recusado: HTTP 403 Bearer ***" in "".join(ended.err)
    written = place.log.read_text("utf-8")
    assert KEY not in ended.out + "".join(ended.err) + written


def test_a_watch_whose_ping_goes_nowhere_still_says_its_line(
    place: Place, closed_port: int
) -> None:
    configure(
        place,
        "[notify]\nfallback_log = '/dev/full'\n"
        f"url = 'http://127.0.0.1:{closed_port}/'",
    )
    ended = place.run("process", "--pid", gone(place))
    assert ended.status == 0
    assert ended.line.startswith("✅ TERMINOU: ")
    (warning,) = [line for line in ended.err if "PING" in line]
    assert warning.startswith("PING NÃO ENTREGUE NEM GRAVADO (")
    assert warning.endswith(f"): {ended.line}")


@pytest.mark.parametrize(
    "label", ["✅ café\n☕ 日本", "日" * 40_000], ids=["symbols", "very long"]
)
def test_any_label_of_a_watch_arrives(label: str, place: Place) -> None:
    def picky(request: Request) -> Answer:
        too_long = len(request.object["message"]) > 4096
        return Answer(status=400 if too_long else 200)

    with serve(picky) as server:
        env = {"KODER_MONITOR_NOTIFY_URL": server.url()}
        ended = place.run("process", "--pid", gone(place), "--label", label, env=env)
    assert place.pings() == []
    found = server.request().object
    assert found["message"] == ended.line
    shown = label.replace("\n", r"\n")[:150]
    assert shown in found["message"]
    assert shown in found["title"]
    assert shown in found["watch"]["label"]
