"""`koder-monitor process (--pid N | --pidfile FILE | --match TEXT | --regex RE)`."""

import argparse
import os

from policies.duration import parse_duration
from policies.target import (
    MAX_PID,
    absolute,
    is_possible_path,
    match_target,
    pid_target,
    pidfile_target,
    regex_target,
)
from policies.wording import phrase
from watcher.cli.common import add_common, order_of, working_directory
from watcher.cli.waiting import wait_for
from watcher.clock import SystemClock
from watcher.conditions import Condition
from watcher.conditions.process import (
    MatchingProcesses,
    OneProcess,
    expression,
    literal,
)
from watcher.config import load_config
from watcher.errors import UsageError
from watcher.procfs import process_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what processes are named by."""
    named = parser.add_mutually_exclusive_group(required=True)
    named.add_argument("--pid", metavar="N", help="one process")
    named.add_argument(
        "--pidfile", metavar="FILE", help="the process whose PID a file holds"
    )
    named.add_argument(
        "--match", metavar="TEXT", help="all whose command line holds this very text"
    )
    named.add_argument(
        "--regex", metavar="RE", help="all whose command line a Python expression finds"
    )
    parser.add_argument(
        "--start-within",
        metavar="DURATION",
        help="wait this long for work that has yet to begin",
    )
    add_common(parser)


def run(options: argparse.Namespace) -> int:
    """Wait until they have ended."""
    config = load_config(os.environ)
    order = order_of(options, config, os.environ)
    start_within_s = _start_within(options)
    condition = _condition(options, awaits_start=start_within_s > 0)
    return wait_for(condition, order, config, start_within_s=start_within_s)


def _condition(options: argparse.Namespace, *, awaits_start: bool) -> Condition:
    clock, table = SystemClock(), process_table()
    if options.pid is not None:
        pid = _pid(options.pid)
        return OneProcess(pid_target(pid), pid=pid, table=table, clock=clock)
    if options.pidfile is not None:
        if not is_possible_path(options.pidfile):
            raise UsageError(phrase("bad_path", name="--pidfile", path=options.pidfile))
        path = absolute(options.pidfile, working_directory())
        return OneProcess(
            pidfile_target(path),
            pidfile=path,
            awaits_start=awaits_start,
            table=table,
            clock=clock,
        )
    if options.match is not None:
        target, matches = match_target(options.match), literal(options.match)
    else:
        target, matches = regex_target(options.regex), expression(options.regex)
    return MatchingProcesses(
        target, matches, table=table, clock=clock, launcher=os.getpid()
    )


def _pid(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= MAX_PID):
        raise UsageError(phrase("bad_pid", pid=text))
    return int(text)


def _start_within(options: argparse.Namespace) -> int:
    if options.start_within is None:
        return 0
    if options.pid is not None:
        raise UsageError(phrase("start_within_idle"))
    try:
        return parse_duration(options.start_within)
    except ValueError as error:
        name, value = "--start-within", options.start_within
        raise UsageError(phrase("bad_duration", name=name, value=value)) from error
