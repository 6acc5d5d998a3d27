"""What lies in deploy/ fits the product: units, rules, dashboard, container."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # only read here

from watcher.database import open_database
from watcher.metrics import Counts
from watcher.serve.hosting import _SWEEP_S
from watcher.serve.metrics import Shot, _Now

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
OPERATING = (ROOT / "docs/operating.md").read_text("utf-8")
UNITS = ("user", "system")

Unit = Mapping[str, Mapping[str, Sequence[str]]]


# units


def unit_path(kind: str) -> Path:
    return DEPLOY / "systemd" / kind / "koder-monitor.service"


def unit(kind: str) -> Unit:
    """Read a unit file: what a key is given, section by section."""
    found: defaultdict[str, defaultdict[str, list[str]]]
    found = defaultdict(lambda: defaultdict(list))
    section = ""
    for line in unit_path(kind).read_text("utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            section = line.strip("[]")
            continue
        name, equals, value = line.partition("=")
        assert equals, line
        found[section][name].append(value)
    return found


@pytest.mark.parametrize("kind", UNITS)
def test_a_unit_tells_when_it_is_ready_and_alive(kind: str) -> None:
    service = unit(kind)["Service"]
    assert service["Type"] == ["notify"]
    assert service["NotifyAccess"] == ["main"]
    [watchdog_s] = service["WatchdogSec"]
    assert int(watchdog_s) / 2 >= 2 * _SWEEP_S  # else a round may come too late for it
    [command] = service["ExecStart"]
    assert command.endswith("/koder-monitor serve")


@pytest.mark.parametrize("kind", UNITS)
def test_a_unit_starts_the_service_anew_but_not_for_ever(kind: str) -> None:
    found = unit(kind)
    assert found["Service"]["Restart"] == ["on-failure"]
    assert found["Service"]["RestartPreventExitStatus"] == ["2"]
    assert int(found["Service"]["TimeoutStopSec"][0]) > 5
    assert found["Unit"]["StartLimitBurst"]
    assert found["Install"]["WantedBy"]


@pytest.mark.parametrize("kind", UNITS)
def test_a_unit_is_hardened_as_far_as_looks_allow(kind: str) -> None:
    service = unit(kind)["Service"]
    assert service["NoNewPrivileges"] == ["yes"]
    assert service["UMask"] == ["0077"]
    families = service["RestrictAddressFamilies"][0].split()
    assert {"AF_UNIX", "AF_INET", "AF_INET6"} <= set(families)  # socket, ssh, pings
    closed = {"ProtectProc", "ProcSubset", "PrivateTmp", "PrivateUsers", "PrivatePIDs"}
    assert not closed & set(service)
    assert service["ProtectHome"] in ([], ["read-only"])  # locks and keys lie there
    assert service["PrivateNetwork"] == []


def test_the_unit_of_a_user_needs_no_privilege() -> None:
    service = unit("user")["Service"]
    assert service["User"] == []
    assert not [name for name in service if name.startswith(("Protect", "Private"))]


def test_the_unit_of_the_system_keeps_its_state_where_it_says() -> None:
    service = unit("system")["Service"]
    [directory] = service["StateDirectory"]
    assert f"KODER_MONITOR_STATE=%S/{directory}" in service["Environment"]
    assert service["StateDirectoryMode"] == ["0700"]
    assert service["ProtectSystem"] == ["strict"]
    assert service["User"] not in ([], ["root"])


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd is not installed"
)
@pytest.mark.parametrize("kind", UNITS)
def test_systemd_finds_nothing_wrong_with_a_unit(kind: str, tmp_path: Path) -> None:
    text = unit_path(kind).read_text("utf-8")
    copy = tmp_path / "koder-monitor.service"  # whose program is there
    copy.write_text(re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={sys.executable}", text))
    said = subprocess.run(
        ["systemd-analyze", f"--{kind}", "verify", "--man=no", str(copy)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (said.returncode, said.stderr) == (0, "")


# metrics: what the rules and the dashboard ask for is there


def families(state: Path) -> Iterator[Any]:
    """Give every family of metrics of ours, with the labels that it may have."""
    open_database(str(state))[0].close()
    shot = Shot(counts=Counts(), now_s=0.0, blind={}, overdue_s=0.0, degraded=False)
    yield from _Now(shot, str(state)).collect()


ENDINGS = {
    "counter": ["_total"],
    "gauge": [""],
    "histogram": ["_bucket", "_count", "_sum"],
}
OF_OTHERS = {"up": set[str]()} | {
    name: set[str]()
    for name in ("process_start_time_seconds", "process_resident_memory_bytes")
}
EVERYWHERE = {"instance", "job"}


@pytest.fixture
def known(tmp_path: Path) -> dict[str, set[str]]:
    """Give each name that can be asked for, with its labels."""
    found: dict[str, set[str]] = dict(OF_OTHERS)
    for family in families(tmp_path / "state"):
        labels = {*family._labelnames} | EVERYWHERE
        if family.type == "histogram":
            labels.add("le")
        for ending in ENDINGS[family.type]:
            found[family.name + ending] = labels
    return found


def rules() -> list[dict[str, Any]]:
    text = (DEPLOY / "prometheus/alerts.yml").read_text("utf-8")
    [group] = yaml.safe_load(text)["groups"]
    found = group["rules"]
    assert isinstance(found, list)
    return found


def panels() -> list[dict[str, Any]]:
    found = dashboard()["panels"]
    assert isinstance(found, list)
    return found


def dashboard() -> dict[str, Any]:
    found = json.loads((DEPLOY / "grafana/dashboard.json").read_text("utf-8"))
    assert isinstance(found, dict)
    return found


EXPRESSIONS = [rule["expr"] for rule in rules()] + [
    target["expr"] for panel in panels() for target in panel["targets"]
]
WORD = re.compile(r"[a-zA-Z_:][\w:]*")
LANGUAGE = {"sum", "max", "by", "rate", "increase", "changes", "histogram_quantile"}


def asked(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Give the names that an expression asks for, each with the labels it picks by."""
    plain = re.sub(r'"[^"]*"', '""', expression)
    plain = re.sub(r"\[\d+[smhd]\]", "", plain)
    plain = re.sub(r"\bby \([^)]*\)", "", plain)
    for name, picked in re.findall(r"([a-zA-Z_:][\w:]*)(\{[^}]*\})?", plain):
        if name not in LANGUAGE and not re.search(rf"\{{[^}}]*\b{name}\b", plain):
            yield name, set(WORD.findall(picked))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_what_is_asked_for_is_measured(
    expression: str, known: dict[str, set[str]]
) -> None:
    named = [*asked(expression)]
    assert named
    for name, picked in named:
        assert name in known
        assert picked <= known[name] | EVERYWHERE
    for grouped in re.findall(r"\bby \(([^)]*)\)", expression):
        wanted = {label.strip() for label in grouped.split(",")}
        assert all(wanted <= known[name] | EVERYWHERE for name, _ in named)
    for opening, closing in ("()", "{}", "[]"):
        assert expression.count(opening) == expression.count(closing)


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ('up{job="koder-monitor"} == 0', [("up", {"job"})]),
        (
            "histogram_quantile(0.95, sum by (le) (rate(x_bucket[1h]))) > 10",
            [("x_bucket", set())],
        ),
        ('sum(a{state!="b c"}) > c', [("a", {"state"}), ("c", set())]),
    ],
)
def test_names_are_found_in_expressions(
    expression: str, names: list[tuple[str, set[str]]]
) -> None:
    assert [*asked(expression)] == names


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rule_says_what_is_wrong_and_how_bad_that_is(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"KoderMonitor[A-Za-z]+", rule["alert"])
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert set(rule["annotations"]) == {"summary", "description"}
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))


def test_no_rule_has_the_name_of_another() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) > 5


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rule_names_only_labels_that_it_has(
    rule: dict[str, Any], known: dict[str, set[str]]
) -> None:
    """What a sum takes away cannot be shown."""
    grouped = re.search(r"\bby \(([^)]*)\)", rule["expr"])
    [(name, _)] = asked(rule["expr"])
    has = known[name] | EVERYWHERE
    if grouped:
        has = {label.strip() for label in grouped[1].split(",")}
    text = " ".join(rule["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", text)) <= has


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids))


def test_the_dashboard_asks_whichever_data_source_is_chosen() -> None:
    source = {"type": "prometheus", "uid": "${datasource}"}
    variables = {item["name"] for item in dashboard()["templating"]["list"]}
    assert variables == {"datasource", "instance"}
    for panel in panels():
        assert panel["datasource"] == source
        assert all(target["datasource"] == source for target in panel["targets"])


def test_the_page_lists_every_metric_with_its_labels(tmp_path: Path) -> None:
    row = re.compile(r"^\| `(koder_monitor_\w+)` \| ([^|]*)\|", re.MULTILINE)
    listed = {
        name: re.findall(r"`(\w+)`", labels) for name, labels in row.findall(OPERATING)
    }
    there = {
        family.name + ("_total" if family.type == "counter" else ""): [
            *family._labelnames
        ]
        for family in families(tmp_path / "state")
    }
    assert listed == there


# the page, the container, the rotation


def test_every_file_that_the_page_names_is_there() -> None:
    named = re.findall(r"`(deploy/[\w./-]+)`", OPERATING)
    named += re.findall(r" (deploy/[\w./-]+\.service)", OPERATING)
    assert len(named) > 5
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_file_to_deploy_is_named_on_a_page() -> None:
    pages = OPERATING + (ROOT / "README.md").read_text("utf-8")
    kept = [
        path.relative_to(ROOT).as_posix()
        for path in DEPLOY.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    ours = [path for path in kept if path.count("/") > 1 or path.endswith(".toml")]
    folders = ("systemd", "container", "logrotate", "prometheus", "grafana")
    mine = [path for path in ours if path.split("/")[1] in folders]
    assert len(mine) == 6
    assert [path for path in mine if path not in pages] == []


CONTAINERFILE = (DEPLOY / "container/Containerfile").read_text("utf-8")


def test_the_container_is_made_of_what_is_there() -> None:
    text = CONTAINERFILE.replace("\\\n", " ")
    copied = [
        source
        for line in re.findall(r"^COPY (.*)$", text, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert {"pyproject.toml", "notify", "policies", "watcher"} <= set(copied)
    assert [source for source in copied if not (ROOT / source).exists()] == []
    assert re.findall(r"^FROM (.*)$", text, re.MULTILINE) == ["python:3.11-slim"]
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == ["monitor"]
    assert 'CMD ["serve"]' in text


def test_the_health_check_of_the_container_can_fail(tmp_path: Path) -> None:
    text = CONTAINERFILE.replace("\\\n", " ")
    [words] = re.findall(r"HEALTHCHECK .*?CMD (\[.*\])$", text, re.MULTILINE)
    program, *arguments = json.loads(words)
    assert program == "python"
    said = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "KODER_MONITOR_STATE": str(tmp_path)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (said.returncode, said.stderr) == (1, b"")


def test_the_rotation_is_of_the_log_that_the_system_s_service_writes() -> None:
    text = (DEPLOY / "logrotate/koder-monitor").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    [directory] = unit("system")["Service"]["StateDirectory"]
    assert lines[0] == f"/var/lib/{directory}/release-pings.log {{"
    assert lines[-1] == "}"
    words = {line.split()[0]: line.split()[1:] for line in lines[1:-1]}
    [user] = unit("system")["Service"]["User"]
    assert words["su"][0] == user
    assert words["create"] == ["0600"]
    assert "missingok" in words
    assert "copytruncate" not in words  # lines that come meanwhile would be lost
