"""Steering a run from another terminal: the run in a process of its own, against a twin on real ports."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.plan_files import write_plan
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving
from testbed.fork_server import Forked, fork_server
from testbed.waiting import PATIENCE_S, wait_until
from tests.twin.asking import cluster

pytestmark = pytest.mark.thorough

HELD = "200kB/s"
"""At this rate the copies of the plan take a hundred seconds: a test lets them go once it has seen what it wanted."""


class Terminal:
    """A terminal beside that of the run."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.state = folder / "state"
        self.plan = folder / "plan.json"

    def type(self, command: str, *arguments: object) -> Result:
        return CliRunner().invoke(kreassign, [command, *map(str, arguments), "--state-dir", str(self.state)])

    def ask_cluster(self, command: str, *arguments: object) -> Result:
        return self.type(command, *arguments, "--bootstrap-server", self.bootstrap)

    def start_run(self, *more: str, throttle: str = HELD) -> Forked:
        options = [
            "--measure-for",
            "200ms",
            "--throttle",
            throttle,
            "--poll-interval",
            "100ms",
            "--format",
            "json",
            "--state-dir",
            str(self.state),
            *more,
        ]
        words = ["run", "--yes", str(self.plan), *options, "--bootstrap-server", self.bootstrap]
        return fork_server().start("kreassign", *words, imports=["kreassign.cli.commands.run"])

    def wait_for_a_move(self) -> None:
        """Until the first run has one in flight."""
        wait_until(
            lambda: bool(self.runs) and any(move["status"] == "moving" for move in self.runs[0]["moves"]),
            what="a move to be in flight",
        )

    def let_go(self) -> None:
        """Have the only run that is active copy as fast as brokers do."""
        assert self.type("throttle", "50MB/s").exit_code == 0

    @property
    def runs(self) -> list[dict[str, Any]]:
        listed = self.type("status", "--all", "--format", "json")
        found: list[dict[str, Any]] = json.loads(listed.stdout)["runs"]
        return found


@contextmanager
def serving_terminal(folder: Path, settings: TwinSettings | None = None) -> Iterator[Terminal]:
    """A terminal of a twin with two partitions, and a plan that moves both to brokers 3 and 2."""
    twin = Twin(cluster({"t": [[0, 1], [1, 0]]}), settings or TwinSettings())
    with serving(twin) as thread:
        found = Terminal(thread.bootstrap_servers, folder)
        assignments = (PartitionAssignment(TopicPartition("t", number), (3, 2)) for number in range(2))
        write_plan(found.plan, Plan(tuple(assignments)), None)
        yield found


def watch_it_pause(terminal: Terminal, run_id: str) -> None:
    """A healthy run says so, and after `pause` what goes on; without an id."""
    healthy = terminal.type("status").stdout
    assert f"run {run_id}: moving; 0 of 2 moves complete" in healthy
    assert "throttle in force: 200 kB/s per broker" in healthy
    assert "\n  healthy\n" in healthy
    assert not [word for word in ("left behind", "is still", "resume") if word in healthy]
    paused = terminal.type("pause")
    assert re.match(f"run {run_id}: starts no new moves; 2 in flight continue, [0-9.]+ MB left of them", paused.stdout)
    ways = (f"resume {run_id}", f"throttle {run_id} RATE", f"cancel {run_id}")
    said = zip(("next", "  or", "  or"), ways, strict=True)
    assert paused.stderr == "".join(f"{word}: kreassign {way} --state-dir {terminal.state}\n" for word, way in said)
    assert terminal.runs[0]["is_held"]
    assert f"run {run_id}: paused, 2 moves in flight go on; 0 of 2" in terminal.type("status", "last").stdout
    assert "paused, 2 moves in flight go on" in terminal.type("status", "--all").stdout


def test_a_run_is_steered_from_another_terminal(terminal: Terminal) -> None:
    process = terminal.start_run()
    try:
        wait_until(lambda: bool(terminal.runs) and terminal.runs[0]["state"] == "moving", what="the run to move")
        run_id = terminal.runs[0]["run_id"]

        watch_it_pause(terminal, run_id)
        assert "throttled to 100 kB/s per broker" in terminal.type("throttle", "100kB/s").stdout
        assert terminal.runs[0]["rates"]["bytes_per_s"] == 100_000
        single = terminal.type("throttle", run_id, "90kB/s", "--broker", "3")
        assert "throttled to 90 kB/s at broker 3" in single.stdout
        assert terminal.runs[0]["rates"]["per_broker"] == [{"broker": 3, "bytes_per_s": 90_000}]
        assert terminal.type("throttle", run_id, "auto").exit_code == 2
        capacity = ("--broker-capacity", "100kB/s", "--throttle-floor", "60kB/s")
        followed = terminal.type("throttle", run_id, "auto", *capacity)
        assert "throttled to what other traffic leaves of 100 kB/s per broker" in followed.stdout
        assert terminal.runs[0]["rates"]["adaptive"]["floor_bytes_per_s"] == 60_000
        paced = terminal.type("pace", "--max-moves-per-source", "1", "--max-bytes", "none")
        assert "order makespan, at most 1 move per source, 100 elections per step" in paced.stdout
        assert terminal.runs[0]["pace"]["caps"]["source"] == {"moves": 1, "size_bytes": None}
        heard = json.loads(terminal.type("resume", "--format", "json").stdout)
        assert (heard["run_id"], heard["kind"], heard["request"]) == (run_id, "ReleaseRequested", 6)
        assert not terminal.runs[0]["is_held"]
        refused = terminal.type("resume", run_id, "--replan")
        assert (refused.exit_code, "--replan is for a run that is resumed" in refused.stderr) == (2, True)

        second = terminal.ask_cluster("run", "--yes", terminal.plan)
        assert second.exit_code == 2
        assert f"run {run_id} is active on this cluster" in second.stderr
        assert f"take it over with `kreassign resume {run_id}`" in second.stderr

        elsewhere = terminal.type("cancel", "--metrics-port", "0")
        assert (elsewhere.exit_code, "only that one can be monitored" in elsewhere.stderr) == (2, True)
        assert "cancelling 2 moves in flight" in terminal.type("cancel").stdout
        output, _ = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, json.loads(output)["state"]) == (5, "cancelled")
        assert json.loads(output)["throttle_residue"] == []
    finally:
        process.kill()
        process.communicate()

    over = f"error: run {run_id} is cancelled: there is nothing to "
    ways = f". `kreassign status {run_id}` shows how it ended, `kreassign rollback {run_id}` takes it back\n"
    for words in (["pause", run_id], ["throttle", run_id, "5MB/s"], ["pace", run_id, "--max-moves", "3"]):
        assert (late := terminal.type(*words)).exit_code == 2
        assert late.stderr == f"{over}steer{ways}"
    for deed in ("resume", "cancel"):
        assert (late := terminal.type(deed, run_id)).exit_code == 2
        assert late.stderr == f"{over}{deed}{ways}"

    priced = json.loads(terminal.ask_cluster("rollback", run_id, "--dry-run", "--format", "json").stdout)
    assert priced["copied_bytes"] == 0
    undone = terminal.ask_cluster("rollback", run_id, "--yes", "--poll-interval", "0.1")
    assert undone.exit_code == 0, undone.output


@contextmanager
def draining(terminal: Terminal) -> Iterator[tuple[Forked, Forked, str]]:
    """A run that is paused with a move in flight, `kreassign pause --drain` of it, and its id."""
    process = terminal.start_run("--max-moves", "1")
    try:
        terminal.wait_for_a_move()
        pause = fork_server().start("kreassign", "pause", "--drain", "--state-dir", str(terminal.state))
        wait_until(lambda: bool(terminal.runs[0]["is_held"]), what="the run to be paused")
        yield process, pause, terminal.runs[0]["run_id"]
    finally:
        process.kill()
        process.communicate()


def test_pause_drain_returns_when_moves_in_flight_are_complete(terminal: Terminal) -> None:
    with draining(terminal) as (process, pause, run_id):
        terminal.let_go()
        stdout, stderr = pause.communicate(PATIENCE_S)
        assert pause.returncode == 0, stderr
        assert stdout.endswith(f"run {run_id}: nothing is in flight\n")
        assert stderr == f"next: kreassign resume {run_id} --state-dir {terminal.state}\n"
        (held,) = terminal.runs
        assert held["is_held"]
        assert sorted(move["status"] for move in held["moves"]) == ["complete", "planned"]
        terminal.type("cancel")
        process.communicate(timeout=PATIENCE_S)


def test_pause_drain_says_that_the_run_died_with_moves_in_flight(terminal: Terminal) -> None:
    with draining(terminal) as (process, pause, run_id):
        process.kill()
        stdout, stderr = pause.communicate(PATIENCE_S)
        assert (pause.returncode, "nothing is in flight" in stdout) == (5, False)
        assert f"no process executes run {run_id} any more: 1 move had not ended" in stderr


def test_pause_tells_what_copies_within_a_broker_have_left(terminal: Terminal) -> None:
    write_plan(terminal.plan, Plan((PartitionAssignment(TopicPartition("t", 0), (0, 1), ("/data/0/d1", "any")),)), None)
    process = terminal.start_run()
    try:
        terminal.wait_for_a_move()
        assert re.search(r"; 1 in flight continue, [1-9][0-9.]* MB left of them\n", terminal.type("pause").stdout)
    finally:
        process.kill()
        process.communicate()


def test_cancel_drain_finishes_moves_in_flight_and_the_plan_can_rerun(terminal: Terminal) -> None:
    """The second run finds one of its two partitions where the plan wants it, and moves the other."""
    process = terminal.start_run("--max-moves", "1")
    try:
        terminal.wait_for_a_move()
        told = terminal.type("cancel", "--drain")
        assert "draining: 1 move in flight finishes, then it ends" in told.stdout
        terminal.let_go()
        output, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.communicate()
    found = json.loads(output)
    assert (process.returncode, found["state"], found["throttle_residue"]) == (5, "cancelled", [])
    assert sorted(move["status"] for move in found["moves"]) == ["cancelled", "complete"]

    again = terminal.ask_cluster("run", "--yes", terminal.plan, "--measure-for", "0", "--poll-interval", "0.1")
    assert again.exit_code == 0, again.output
    assert terminal.ask_cluster("verify", terminal.plan).exit_code == 0
    assert sorted(run["state"] for run in terminal.runs) == ["cancelled", "done"]


def test_a_plan_whose_run_was_cancelled_at_once_is_run_again(terminal: Terminal) -> None:
    process = terminal.start_run()
    try:
        terminal.wait_for_a_move()
        terminal.type("cancel")
        process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.communicate()
    assert terminal.ask_cluster("verify", terminal.plan).exit_code == 1
    again = terminal.ask_cluster("run", "--yes", terminal.plan, "--measure-for", "0", "--poll-interval", "0.1")
    assert again.exit_code == 0, again.output
    assert terminal.ask_cluster("verify", terminal.plan).exit_code == 0


def test_a_run_that_was_killed_is_cancelled_by_the_command_itself(terminal: Terminal) -> None:
    process = terminal.start_run()
    try:
        terminal.wait_for_a_move()
    finally:
        process.kill()
        process.communicate()
    run_id = terminal.runs[0]["run_id"]
    assert "specify --bootstrap-server" in terminal.type("cancel", run_id).output
    ended = terminal.ask_cluster("cancel", "--poll-interval", "0.1", "--metrics-port", "0", "--format", "json")
    assert ended.exit_code == 5, ended.output
    assert re.search(r"^metrics: http://127\.0\.0\.1:\d+/metrics$", ended.stderr, re.MULTILINE)
    found = json.loads(ended.stdout)
    assert (found["state"], found["throttle_residue"]) == ("cancelled", [])
    assert {move["status"] for move in found["moves"]} == {"cancelled"}


@pytest.mark.parametrize(
    "signals", [(signal.SIGTERM,), (signal.SIGINT, signal.SIGINT)], ids=["SIGTERM", "SIGINT, twice"]
)
def test_a_run_that_is_sent_a_signal_can_be_resumed(terminal: Terminal, signals: tuple[signal.Signals, ...]) -> None:
    process = terminal.start_run()
    try:
        terminal.wait_for_a_move()
        for number in signals:
            process.send_signal(number)
        output, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130, errors
    left = json.loads(output)
    assert "Pausing… Ctrl-C again to quit now." in errors
    assert left["throttle_residue"] != []
    assert left["state"] == ("paused" if len(signals) == 1 else terminal.runs[0]["state"])
    second = terminal.ask_cluster("run", "--yes", terminal.plan)
    assert (second.exit_code, f"run {left['run_id']} was left on this cluster with" in second.stderr) == (2, True)
    terminal_options = ("--poll-interval", "0.1", "--format", "json")
    ended = terminal.ask_cluster("cancel", left["run_id"], *terminal_options)
    assert json.loads(ended.stdout)["throttle_residue"] == []
