"""What kind of thing a command does: looks, prints, pauses, leaves, or acts."""

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from policies.loops.names import names


class Does(StrEnum):
    """What a command does to the world, as far as a wait is concerned."""

    LOOK = "look"
    PRINT = "print"
    PAUSE = "pause"
    LEAVE = "leave"
    ACT = "act"


_LOOKS: Final = names("""
    pgrep pidof pstree ps test [ [[ grep egrep fgrep zgrep rg ag ack ls stat cat
    head tail wc cut tr awk gawk mawk sort uniq jq yq ss netstat lsof fuser du df
    free diff cmp md5sum sha1sum sha256sum cksum file readlink realpath basename
    dirname uptime who w id hostname uname nproc top vmstat iostat squeue sacct
    sinfo qstat bjobs condor_q nvidia-smi rocm-smi pg_isready mountpoint findmnt
    ping ping6 host dig nslookup getent expr column rev paste comm tac nl od xxd
    strings zcat compgen type which hash lsblk lsusb dmesg seq kill pkill killall
    curl wget http https xh nc ncat netcat nmap sed find journalctl tree bc printenv
    getprop dumpsys blkid atq lpstat lpq arp pmset ioreg sw_vers lsmod sensors
    """)
_PRINTS: Final = names("""
    echo printf : true false date clear tput logger print set export local declare
    readonly typeset unset let shopt math say notify-send
    """)
_OURS: Final = names("koder-monitor koder-job notify-release")
_LEAVES: Final = names("break exit return")
_STOPS_FOR_OPTIONS: Final = {
    "gh": "view list status checks api diff",
    "glab": "view list status get api",
    "kubectl": "get describe logs top status version cluster-info can-i",
    "oc": "get describe logs top status version",
    "docker": "ps inspect logs info version images top stats port ls history",
    "aws": "ls wait-status",
    "gcloud": "describe list get-value",
    "az": "show list",
    "systemctl": "is-active is-failed is-enabled is-system-running status show "
    "list-units list-jobs",
    "service": "status",
    "launchctl": "list print",
    "adb": "devices get-state get-serialno",
    "fastboot": "devices",
    "git": "status log rev-parse ls-remote diff show branch rev-list describe cat-file "
    "merge-base",
    "tmux": "has-session has ls list-sessions list-panes list-windows capture-pane",
    "screen": "-ls -list",
    "VBoxManage": "list showvminfo guestproperty",
    "virsh": "list domstate dominfo domifaddr",
    "ip": "addr address link route a l r neigh",
    "xcrun": "list",
    "redis-cli": "ping PING get GET exists EXISTS llen LLEN dbsize DBSIZE info INFO "
    "ttl TTL scard SCARD hget HGET",
    "mysqladmin": "ping status processlist",
    "rabbitmqctl": "status list_queues await_startup node_health_check ping",
    "rabbitmq-diagnostics": "status ping check_running check_port_connectivity",
    "scontrol": "show ping",
    "helm": "status list get history",
    "terraform": "show output",
    "zpool": "status list",
    "btrfs": "status",
    "mdadm": "--detail -D",
    "nomad": "status",
    "ceph": "status health -s",
    "supervisorctl": "status",
    "pm2": "list jlist show describe",
    "vagrant": "status",
    "multipass": "info list",
    "lxc": "list info",
    "incus": "list info",
    "heroku": "ps releases ps:wait info",
    "fly": "status list show",
    "flyctl": "status list show",
    "vercel": "inspect ls list",
    "nmcli": "show status",
    "argocd": "get list",
    "flux": "get",
    "etcdctl": "health status get",
    "consul": "members info",
    "vault": "status",
    "bq": "show ls",
    "gsutil": "ls stat du",
    "rclone": "ls lsf size lsl",
    "buildkite-agent": "get",
    "circleci": "status get",
    "jenkins-cli": "get-job list-jobs",
    "xdotool": "search getwindowname",
    "wmctrl": "-l",
    "bluetoothctl": "info show",
}
_LOOKING: Final = {name: names(verbs) for name, verbs in _STOPS_FOR_OPTIONS.items()} | {
    other: names(_STOPS_FOR_OPTIONS[name])
    for other, name in {
        "podman": "docker",
        "nerdctl": "docker",
        "docker-compose": "docker",
        "doctl": "gcloud",
        "k": "kubectl",
        "rc-service": "service",
        "sv": "service",
    }.items()
}
_ANY_TOOL_LOOKS: Final = names(
    "status show describe is-active is-ready health healthcheck inspect"
)
_LOOKING_PREFIX: Final = ("describe-", "get-", "list-", "head-")
_ACTING: Final = names("""
    install push pull clone apply deploy publish migrate upload download create
    delete rm start stop restart build test up down send sync update upgrade add
    commit merge set put post login submit copy cp mv run-job make edit patch scale
    rerun cancel
    """)
_SQL: Final = names("psql mysql mariadb sqlite3 mongosh mongo clickhouse-client sqlcmd")
_SQL_LOOKS: Final = re.compile(
    r"(?i)\b(select|show|ping|status|count|find|hello)\b|\\[lq]"
)
_SQL_ACTS: Final = re.compile(
    r"(?i)\b(insert|update|delete|drop|create|alter|truncate|grant|vacuum|call|copy)\b"
)
_LOOKING_SCRIPT: Final = re.compile(
    r"(?i)(^|[-_.])(is|has|check|status|ready|health\w*|alive|probe|poll)([-_.]|$)"
)
_FOLLOWS: Final = re.compile(r"-[a-zA-Z]*[fF][a-zA-Z]*|--follow\b.*|--retry")
_LOGS: Final = frozenset({"logs", "log"})
_FOLLOWING: Final = {
    True: frozenset({"-f", "--follow", "-w", "--watch"}),
    False: frozenset({"-w", "--watch", "--follow"}),
}
_INNER: Final = names("exec shell")
_LOOPBACK: Final = names("127.0.0.1 localhost ::1")
_DATA: Final = (
    "--data",
    "--form",
    "--upload-file",
    "--json",
    "--remote-name",
    "--post",
    "--body",
)


def does(words: Sequence[str]) -> Does:
    """Say what a command does, from its words with quotes taken away.

    A command that is not known acts: a wait is only what surely just looks.
    """
    name = words[0].rpartition("/")[2]
    rest = words[1:]
    if name in _OURS:
        return Does.ACT
    if name in _LEAVES:
        return Does.LEAVE
    if pause_s(words) is not None:
        return Does.PAUSE
    if name in _PRINTS:
        return Does.PRINT
    return Does.LOOK if _looks(name, rest) else Does.ACT


def pause_s(words: Sequence[str]) -> float | None:
    """Return the seconds that a command pauses, zero where they are not known.

    None for a command that does not pause, and for one that pauses for ever.
    """
    name = words[0].rpartition("/")[2]
    if name in {"sleep", "gsleep", "Start-Sleep"}:
        return _slept(words[1:])
    if name == "usleep":
        return _seconds(words[-1]) / 1_000_000
    if name == "read":
        return _read_timeout(words)
    if name in {"ping", "ping6"} and words[-1] in _LOOPBACK:
        return _number_after(words, ("-c", "-n"))
    return None


def _slept(words: Sequence[str]) -> float | None:
    if any(word in {"infinity", "inf"} for word in words):
        return None
    return sum(_seconds(word) for word in words if not word.startswith("-"))


def _seconds(word: str) -> float:
    match = re.fullmatch(r"([0-9]{0,9}(?:\.[0-9]{1,9})?)([smhd]?)", word)
    if match is None or not match[1] or match[1] == ".":
        return 0.0
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


def _read_timeout(words: Sequence[str]) -> float | None:
    for place, word in enumerate(words):
        if re.fullmatch(r"-[a-z]*t", word):
            return _seconds(words[place + 1]) if place + 1 < len(words) else 0.0
        if match := re.fullmatch(r"-[a-z]*t([0-9.]+)", word):
            return _seconds(match[1])
    return None


def _number_after(words: Sequence[str], names: tuple[str, ...]) -> float:
    for place, word in enumerate(words[:-1]):
        if word in names:
            return _seconds(words[place + 1])
    return 0.0


def _looks(name: str, rest: Sequence[str]) -> bool:
    checks: dict[str, Callable[[Sequence[str]], bool]] = {
        "kill": _asks_kill,
        "pkill": _asks_kill,
        "killall": _asks_kill,
        "curl": _asks_curl,
        "wget": _asks_wget,
        "http": _asks_httpie,
        "https": _asks_httpie,
        "xh": _asks_httpie,
        "nc": _asks_nc,
        "ncat": _asks_nc,
        "netcat": _asks_nc,
        "sed": _only_reads,
        "find": _only_finds,
        "fuser": _only_asks,
        "tail": _does_not_follow,
        "journalctl": _does_not_follow,
        "flock": _only_tries,
    }
    if name in checks:
        return checks[name](rest)
    if name in _LOOKS:
        return True
    if name in {"command", "type"}:
        return "-v" in rest
    if name in _SQL:
        text = " ".join(rest)
        return bool(_SQL_LOOKS.search(text)) and not _SQL_ACTS.search(text)
    if name in {"gh", "glab"} and "api" in rest:
        return not any(
            word.startswith(
                ("-X", "-f", "-F", "--method", "--field", "--input", "--raw")
            )
            for word in rest
        )
    return _verb_looks(name, rest)


def _verb_looks(name: str, rest: Sequence[str]) -> bool:
    """Say whether the first verb of a tool that has verbs is one that only looks."""
    verbs = _LOOKING.get(name, _ANY_TOOL_LOOKS)
    for place, word in enumerate(rest[:6]):
        if word in verbs or (name == "aws" and word.startswith(_LOOKING_PREFIX)):
            return not _FOLLOWING[word in _LOGS] & {*rest[place:]}
        if word in _INNER and name in _LOOKING:
            return _inside_looks(rest[place + 1 :])
        if word in _ACTING:
            return False
    return name not in _LOOKING and bool(
        _LOOKING_SCRIPT.search(name.removesuffix(".sh").removesuffix(".py"))
    )


def _inside_looks(words: Sequence[str]) -> bool:
    """Say whether what is run in a container or on a device only looks."""
    if "--" in words:
        words = words[words.index("--") + 1 :]
    else:
        while words and words[0].startswith("-"):
            words = words[1:]
    for place in (0, 1):
        inner = " ".join(words[place:]).split()
        if inner and does(inner) is Does.LOOK:
            return True
    return False


def _does_not_follow(words: Sequence[str]) -> bool:
    return not any(_FOLLOWS.fullmatch(word) for word in words if word != "-f=")


def _only_reads(words: Sequence[str]) -> bool:
    return not any(word.startswith(("-i", "--in")) for word in words)


def _only_finds(words: Sequence[str]) -> bool:
    return not {"-delete", "-exec", "-execdir", "-ok"} & {*words}


def _only_asks(words: Sequence[str]) -> bool:
    return not any(re.fullmatch(r"-[a-zA-Z]*k[a-zA-Z]*", word) for word in words)


def _only_tries(words: Sequence[str]) -> bool:
    """Say whether a `flock` only tries to get a lock, to give it back at once."""
    tries = {"-n", "--nonblock", "-xn", "-nx", "-sn", "-w"} & {*words}
    return bool(tries) and words[-1] in {"true", ":", "/bin/true"}


def _asks_kill(words: Sequence[str]) -> bool:
    return "-0" in words or "-s 0" in " ".join(words) or "-n 0" in " ".join(words)


def _asks_curl(words: Sequence[str]) -> bool:
    for place, word in enumerate(words):
        after = words[place + 1] if place + 1 < len(words) else ""
        if word in {"-X", "--request"} and after not in {"GET", "HEAD"}:
            return False
        if word.startswith("-X") and word[2:] not in {"", "GET", "HEAD"}:
            return False
        if word.startswith(_DATA) or re.fullmatch(r"-[a-zA-Z]*[OJFTd]", word):
            return False
        if _writes_to(word, after):
            return False
    return True


def _writes_to(word: str, after: str) -> bool:
    """Say whether an option of curl writes a file: `-o out`, `-sfo out`."""
    short = re.fullmatch(r"-[a-zA-Z]*o", word) is not None
    return (short or word == "--output") and after not in {"/dev/null", "-", "NUL"}


def _asks_wget(words: Sequence[str]) -> bool:
    text = " ".join(words)
    if "--post" in text or "--method" in text:
        return False
    return bool(
        re.search(
            r"--spider|-[a-zA-Z]*O ?-|-[a-zA-Z]*O ?/dev/null|--output-document=-", text
        )
    )


def _asks_httpie(words: Sequence[str]) -> bool:
    writes = {"POST", "PUT", "PATCH", "DELETE", "--download", "-d", "-o", "--output"}
    return not writes & {*words} and not any(
        re.match(r"\w+:?=", word) for word in words
    )


def _asks_nc(words: Sequence[str]) -> bool:
    return any(re.fullmatch(r"-[a-zA-Z]*z[a-zA-Z0-9]*", word) for word in words)
