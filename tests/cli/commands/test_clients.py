"""`--guard-query` and `--guard-command`, with a Prometheus and a script, against a twin on real ports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kreassign.executor.client_guard import ClientGuard, ClientQuery
from kreassign.executor.events import HealthObserved, RunStarted
from kreassign.executor.journal import find_journals, read_events
from tests.cli.commands.test_steering import Terminal
from tests.monitoring.prometheus import FakePrometheus, prometheus

AT_ONCE = ("--yes", "--poll-interval", 0.1, "--format", "json")
SECRET = "correct-horse-battery"


@pytest.fixture
def server() -> Iterator[FakePrometheus]:
    with prometheus() as found:
        yield found


def script(tmp_path: Path, text: str) -> str:
    file = tmp_path / "check"
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(0o755)
    return str(file)


def journal_of(terminal: Terminal, run_id: str) -> Path:
    (found,) = find_journals(terminal.state, run_id)
    return found


def test_a_run_asks_prometheus_and_a_command_and_keeps_no_secret(
    terminal: Terminal, server: FakePrometheus, tmp_path: Path
) -> None:
    login = tmp_path / "login"
    login.write_text(f"bearer {SECRET}\n", encoding="utf-8")
    check = script(tmp_path, "echo all is well")
    query = ("--guard-query", "max(p99) < 0.2", "--guard-url", server.url, "--guard-login", login)
    result = terminal.ask_cluster("run", terminal.plan, *query, "--guard-command", f"{check} -w 1", *AT_ONCE)
    done = json.loads(result.stdout)
    assert (result.exit_code, done["state"], done["problems"]) == (0, "done", [])
    assert (server.asked[0].query, server.asked[0].authorization) == ("max(p99)", f"Bearer {SECRET}")
    journal = journal_of(terminal, done["run_id"])
    events = read_events(journal)
    guard = ClientGuard((ClientQuery.parse("max(p99) < 0.2"),), server.url, str(login), command=(check, "-w", "1"))
    assert isinstance(events[0], RunStarted)
    assert events[0].clients == guard
    (seen, *_) = [event.health.clients for event in events if isinstance(event, HealthObserved)]
    assert [reading.seen for reading in seen] == ["max(p99) is 0.1", f"`{check} -w 1` exited with 0: all is well"]
    assert SECRET.encode() not in b"".join(file.read_bytes() for file in terminal.state.rglob("*") if file.is_file())
    status = terminal.type("status", done["run_id"]).stdout
    assert "clients: it was neither held nor slowed for them" in status

    undone = json.loads(terminal.ask_cluster("rollback", done["run_id"], *AT_ONCE).stdout)
    (first, *_) = read_events(journal_of(terminal, undone["rollback_run"]["run_id"]))
    assert isinstance(first, RunStarted)
    assert first.clients == guard


def test_what_is_not_known_is_warned_of_before_the_run_begins(terminal: Terminal, tmp_path: Path) -> None:
    check = script(tmp_path, "exit 3")
    words = ("--guard-command", check, "--guard", "clients=warn", *AT_ONCE)
    result = terminal.ask_cluster("run", terminal.plan, *words)
    assert result.exit_code == 0
    assert f"what clients feel is not known: `{check}`: it exited with 3" in result.stderr
    (problem,) = [one for one in json.loads(result.stdout)["problems"] if one.startswith("clients")]
    assert "could not be read" in problem


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--guard-query", "max(p99) < 0.2"), "need the address of a Prometheus"),
        (("--guard-url", "https://prometheus:9090"), "need the address of a Prometheus"),
        (("--guard-query", "max(p99)", "--guard-url", "https://prometheus:9090"), "is no condition"),
        (("--guard-command", "'"), "is no command"),
    ],
)
def test_options_that_do_not_fit_are_refused(terminal: Terminal, words: tuple[str, ...], why: str) -> None:
    result = terminal.ask_cluster("run", terminal.plan, *words, *AT_ONCE)
    assert result.exit_code == 2
    assert why in result.stderr
