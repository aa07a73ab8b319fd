"""Runs whose cluster calls its things what it likes, and one that goes on while a test looks at it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kreassign.autopilot.events import (
    ApprovalAsked,
    ApprovalsJudged,
    Began,
    ClosedGate,
    DisksMeasured,
    DiskUse,
    FindingMoved,
    GatesJudged,
    Looked,
    Name,
    Planned,
    Result,
    RunBegan,
    RunEnded,
    State,
    TurnedOff,
)
from kreassign.autopilot.policy import Kind
from kreassign.executor.events import MovesSubmitted, PlacementState, PlannedMove, Refusal, SubmissionIntended
from kreassign.executor.journal import Journal, find_journals
from kreassign.executor.journal.folder import make_folder
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.run import Operator, RunHistory
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.autopilot_journal import DECISIONS, decisions_path
from kreassign.operations.connect import connect
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import RunContext, RunRequest
from kreassign.operations.run_journals import is_active, this_operator
from kreassign.operations.whole_runs import execute_whole
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving
from testbed.waiting import wait_until
from tests.executor.run_events import look, started
from tests.executor.twin_runs import tp
from tests.twin.asking import cluster

SCRIPT = "<script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(1)>"
QUOTES = "\"'><svg onload=alert(1)>"
HOSTILE = (SCRIPT, IMAGE, QUOTES)
SLOW = ThrottleRates(20_000)


def hostile_journal(state_dir: Path) -> Path:
    """A run of a cluster that calls topic, itself and reasons what a page would run, if it took them for markup."""
    move = PlannedMove(TopicPartition(SCRIPT, 0), (0, 1), (2, 1), 1_000)
    begun = replace(
        started(move, throttle=None), cluster_id=IMAGE, plan_id="0123456789abcdef",
        operator=Operator(QUOTES, IMAGE, (SCRIPT, QUOTES)),
    )  # fmt: skip
    with Journal.create(state_dir, begun) as journal:
        for event in (
            look(3_000, PlacementState.UNTOUCHED, move),
            SubmissionIntended(3_000, (move.topic_partition,)),
            MovesSubmitted(4_000, (), (Refusal(move.topic_partition, f"{SCRIPT} is refused"),)),
        ):
            journal.append(event)
        return journal.path


def hostile_decisions(state_dir: Path) -> None:
    """Journals of an autopilot and of its dry run, whose subjects, reasons and signers are markup."""
    disk, gone = Name(Kind.DISK_FILLS, f"broker 1:{SCRIPT}"), Name(Kind.BROKER_GONE, "broker 3")
    events = (
        FindingMoved(1_000, gone, State.TOLD, QUOTES, "it is down since 40 min"),
        Planned(2_000, gone, "p", 5_000_000, (tp(0),), (f"drain broker 3 {IMAGE}",)),
        RunBegan(3_000, gone, "run-1", 5_000_000, (tp(0),)),
        RunEnded(4_000, gone, Result.DONE, 5_000_000),
        FindingMoved(5_000, disk, State.TOLD, QUOTES, f"it is 92% full {QUOTES}"),
        Planned(6_000, disk, "p", 7_000_000, (tp(0),), (IMAGE,)),
        DisksMeasured(5_500, (DiskUse(1, SCRIPT, 2, 100),)),
        DisksMeasured(5_900, (DiskUse(1, SCRIPT, 92, 100),)),
        ApprovalAsked(6_000, disk, "r"),
        ApprovalsJudged(7_000, disk, (SCRIPT,), lacking="1 approval of 2"),
        GatesJudged(7_000, disk, (ClosedGate("window", "no window is open; the next one begins at 22:00"),)),
        TurnedOff(8_000, 1, 10**13, QUOTES, IMAGE),
        Looked(9_000),
    )
    for is_dry in (False, True):
        path = decisions_path(state_dir, IMAGE, is_dry=is_dry)
        make_folder(path.parent)
        with Journal.begin(path, Began(0, IMAGE), "the autopilot", DECISIONS) as journal:
            for event in events:
                journal.append(event)


@dataclass(slots=True)
class LiveRun:
    """A run that a thread executes. `ended` once it is over."""

    state_dir: Path
    ended: list[RunHistory]

    @property
    def journal(self) -> Path:
        (found,) = find_journals(self.state_dir)
        return found

    @property
    def run_id(self) -> str:
        return self.journal.stem

    def wait_for_end(self) -> RunHistory:
        wait_until(lambda: bool(self.ended), what="the end of the run")
        return self.ended[0]


@contextmanager
def live_run(state_dir: Path) -> Iterator[LiveRun]:
    """A run of two moves on a twin that would take hours; it is to be ended within the block."""
    twin = Twin(cluster({"t": [[0, 1], [1, 0]]}, size_bytes=10**9), TwinSettings())
    plan = Plan((PartitionAssignment(tp(0), (2, 1)), PartitionAssignment(tp(1), (1, 3))))
    request = RunRequest(PlanFile(plan), SLOW, measure_for_s=0)
    found = LiveRun(state_dir, [])
    with serving(twin) as thread, connect(thread.bootstrap_servers) as client:
        context = RunContext(state_dir, poll_s=0.1, operator=this_operator())
        runner = threading.Thread(target=lambda: found.ended.append(execute_whole(client, request, context).run))
        runner.start()
        try:
            wait_until(lambda: any(map(is_active, find_journals(state_dir))), what="the beginning of the run")
            yield found
        finally:
            runner.join(120)
            assert not runner.is_alive(), "the run was not ended by its test"
