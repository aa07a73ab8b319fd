"""Drains that are rolled back: because a guard demanded it, or by an operator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from kreassign.admin import AdminClient
from kreassign.errors import ClusterBusy, ExecutionError
from kreassign.executor.brokers import Blocked
from kreassign.executor.events import Event, VerdictsRecorded
from kreassign.executor.guards import GuardName, GuardSetting, Reaction
from kreassign.executor.history.run_history import read_history
from kreassign.executor.journal import Journal
from kreassign.executor.journal.folder import cluster_folder
from kreassign.executor.maintenance.record import MaintenanceRecord
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.executor.state import RunView
from kreassign.model.error_codes import TOPIC_AUTHORIZATION_FAILED
from kreassign.model.run import Phase, RunHistory
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.broker_changes import FILE_NAME, MaintenanceStore
from kreassign.operations.decommission_undo import undo_drain
from kreassign.operations.drains import demanded_rollbacks
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.rollback import plan_rollback
from kreassign.operations.run import RunContext
from kreassign.operations.whole_runs import undone_if_demanded
from tests.executor.odd_port import Answer, OddPort, not_reached, refused
from tests.executor.twin_runs import RATE, TwinRig, tp
from tests.operations.decommissions import (
    LISTS,
    Killed,
    Operators,
    VirtualRuns,
    close,
    die_while_draining,
    is_named,
    is_opened,
    kill_while_moving,
    of_release,
)


@pytest.mark.parametrize("release", ["4.3", "4.4"])
def test_what_a_drain_has_moved_goes_back_when_it_is_called_off(tmp_path: Path, release: str) -> None:
    operators = of_release(tmp_path, release)
    rig = operators.rig
    before = dict(rig.replicas)
    runs = VirtualRuns(rig)
    assert operators.decommission(runs=runs).is_finished
    assert rig.replicas != before
    assert operators.cancel() == ("uncordon broker 3",)
    done = read_history(rig.path(runs.ids[0]))
    plan = plan_rollback(rig.client, done)
    chosen = RunSettings("back", rig.transport.now_ms(), ThrottleRates(RATE))
    rig.run(prepare(rig.client, plan.plan, chosen))
    assert rig.replicas == before


@pytest.mark.parametrize("is_ours", [True, False])
def test_before_a_rollback_only_what_a_decommission_cordoned_is_opened(operators: Operators, is_ours: bool) -> None:
    if is_ours:
        die_while_draining(operators)
    else:
        close(operators, "*")
    assert is_opened(operators) is is_ours
    assert is_ours or "broker 3 stays cordoned" in operators.said[-1]


@dataclass
class GuardedRuns(VirtualRuns):
    """Runs that end in this state though a guard demands their rollback, which `port` executes."""

    port: AdminClient = field(kw_only=True)
    state: Phase = field(kw_only=True)

    def execute(self, plan: PlanFile) -> RunHistory:
        ended = replace(super().execute(plan), state=self.state, wants_rollback=True)
        context = RunContext(self.rig.state_dir, 5.0, warn=lambda _: None)
        clock = self.rig.transport
        undo = partial(undo_drain, self.port, brokers=(3,), context=context, tell=lambda _: None, clock=clock)
        return undone_if_demanded(ended, undo).run


def busy(*_: object, **__: object) -> object:
    raise ClusterBusy("run run-9 holds the lease")


def taken_over(*_: object, **__: object) -> object:
    raise ExecutionError("the lease was lost")


@pytest.mark.parametrize(
    ("state", "hindrance", "why"),
    [
        (Phase.CANCELLED, not_reached, "could not connect"),
        (Phase.DONE, not_reached, "could not connect"),
        (Phase.CANCELLED, busy, "run run-9 holds the lease"),
        (Phase.CANCELLED, taken_over, "the lease was lost"),
    ],
)
def test_a_drain_whose_rollback_cannot_begin_is_not_made_again(
    operators: Operators, state: Phase, hindrance: Answer, why: str
) -> None:
    odd = OddPort(operators.rig.client)
    odd.answer_always("describe_cluster", hindrance)
    runs = GuardedRuns(operators.rig, port=cast(AdminClient, odd), state=state)
    found = operators.decommission(runs=runs).next_step
    assert isinstance(found, Blocked)
    assert f"(a guard demanded the rollback of run run-1, and it was not made: {why}; `kreassign " in str(found)
    assert runs.ids == ["run-1"]


def test_a_drain_that_is_done_and_rolled_back_ends_the_decommission(operators: Operators) -> None:
    """The last copies arrived before the cancel of its guard took effect."""
    rig, before = operators.rig, dict(operators.rig.replicas)
    runs = GuardedRuns(rig, port=rig.client, state=Phase.DONE)
    found = operators.decommission(runs=runs).next_step
    assert isinstance(found, Blocked)
    assert "run run-1, which drains broker 3, is done (a guard demanded its rollback: run " in str(found)
    assert (rig.replicas, runs.ids, operators.cordon) == (before, ["run-1"], None)


@dataclass
class DyingBeforeTheRollback(VirtualRuns):
    """Runs whose guard demands a rollback, and whose process dies after their end, before that.

    The last copies arrive before the cancel takes effect. Without `is_ended` the process dies at the demand.
    """

    guards: tuple[GuardSetting, ...] = (GuardSetting(GuardName.BROKER, Reaction.ROLLBACK),)
    is_ended: bool = True

    def execute(self, plan: PlanFile) -> RunHistory:
        named = {broker for replicas in plan.plan.replicas.values() for broker in replicas}
        spare = min(self.rig.twin.metadata.brokers.keys() - named - {3})

        def let_copies_arrive(event: Event, run: RunView) -> None:
            if isinstance(event, VerdictsRecorded) and run.control.wants_rollback:
                if not self.is_ended:
                    raise Killed
                self.rig.transport.sleep(120)

        self.rig.after(3, lambda: self.rig.twin.crash(spare))
        self.rig.listener = let_copies_arrive
        run = super().execute(plan)
        assert (run.state, run.wants_rollback) == ("done", True)
        self.rig.listener = None
        self.rig.twin.start(spare)
        self.rig.transport.sleep(30)
        raise Killed


@pytest.fixture
def undrained(tmp_path: Path) -> Operators:
    """Operators of a drain whose process died before the rollback that a guard had demanded."""
    operators = Operators(TwinRig(tmp_path, LISTS, brokers=7, size_bytes=40 * RATE))
    with pytest.raises(Killed):
        operators.decommission(runs=DyingBeforeTheRollback(operators.rig))
    assert not is_named(operators.rig)
    return operators


DEMANDED = (
    "a guard demanded the rollback of run run-1, and it was not made: "
    "`kreassign rollback run-1` makes it, or says what is in its way"
)


def demanded(operators: Operators) -> tuple[str, ...]:
    """Drains of which a preview says that their rollback was demanded and not made."""
    return operators.preview().demanded_rollbacks


def move_lists_back(operators: Operators) -> None:
    """Others open the broker and restore all lists."""
    close(operators, None)
    before = {tp(number): tuple(replicas) for number, replicas in enumerate(LISTS)}
    operators.rig.client.alter_partition_reassignments(before).raise_if_any()
    operators.rig.transport.sleep(60)


def test_a_rollback_that_a_dead_process_left_is_told_and_not_made(undrained: Operators) -> None:
    lists, runs = dict(undrained.rig.replicas), VirtualRuns(undrained.rig)
    assert demanded(undrained) == ("run-1",)
    assert undrained.decommission(runs=runs).is_finished
    assert (undrained.warnings, undrained.said) == ([DEMANDED], [])
    assert (undrained.rig.replicas, undrained.cordon, runs.ids) == (lists, "*", [])


def test_a_preview_says_that_a_drain_is_resumed_and_rolled_back(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, LISTS, brokers=7, size_bytes=40 * RATE))
    with pytest.raises(Killed):
        operators.decommission(runs=DyingBeforeTheRollback(operators.rig, is_ended=False))
    seen = operators.preview()
    assert (seen.resumed, seen.rolled_back, seen.demanded_rollbacks) == (("run-1",), ("run-1",), ())
    operators.decommission()
    assert operators.said[0] == "resume run run-1, which drains broker 3, and roll it back: a guard demanded that"


def test_a_demanded_rollback_keeps_no_dead_broker_registered(undrained: Operators) -> None:
    undrained.rig.let_reach_controllers()
    undrained.stop()
    assert undrained.decommission(unregisters=True).is_finished
    assert undrained.warnings == [DEMANDED]
    assert 3 not in undrained.rig.twin.metadata.brokers


def test_a_demanded_rollback_is_not_told_of_lists_that_others_restored(undrained: Operators) -> None:
    move_lists_back(undrained)
    assert demanded(undrained) == ()
    assert undrained.decommission().is_finished
    assert demanded(undrained) == (), "the lists are those of the next drain now"
    assert undrained.warnings == []


def test_a_demanded_rollback_is_told_until_a_move_of_it_was_submitted(undrained: Operators) -> None:
    rig = undrained.rig
    close(undrained, None)
    # The other partition stays as the drain left it.
    started = replace(rig.prepared({0: tuple(LISTS[0])}), undoes="run-1")
    Journal.create(rig.state_dir, replace(started, run_id="run-2")).close()
    assert demanded(undrained) == ("run-1",)
    kill_while_moving(rig, replace(started, run_id="run-3"))
    assert demanded_rollbacks(rig.client, (rig.state_dir,), rig.twin.cluster_id, (3,)) == ()


@pytest.mark.parametrize("is_rollback", [True, False], ids=["rollback", "same lists"])
def test_a_demanded_rollback_is_not_told_after_runs_of_other_directories(
    undrained: Operators, is_rollback: bool
) -> None:
    rig, drained = undrained.rig, dict(undrained.rig.replicas)
    home, beside = rig.state_dir, rig.state_dir / "beside"
    rig.state_dir = beside
    if is_rollback:
        close(undrained, None)
        kill_while_moving(rig, replace(rig.prepared({0: tuple(LISTS[0])}), run_id="run-2", undoes="run-1"))
    else:
        move_lists_back(undrained)
        moved = {number: replicas for number, replicas in drained.items() if replicas != tuple(LISTS[number])}
        assert rig.run(replace(rig.prepared(moved), run_id="run-2")).state == "done"
    assert demanded_rollbacks(rig.client, (home,), rig.twin.cluster_id, (3,)) == ("run-1",)
    assert demanded_rollbacks(rig.client, (home, beside), rig.twin.cluster_id, (3,)) == ()


def test_a_demanded_rollback_is_told_of_lists_that_cannot_be_read(undrained: Operators) -> None:
    move_lists_back(undrained)
    odd = OddPort(undrained.rig.client)
    odd.answer_always("describe_topics", refused(TOPIC_AUTHORIZATION_FAILED))
    folder, cluster_id = undrained.rig.state_dir, undrained.rig.twin.cluster_id
    assert demanded_rollbacks(cast(AdminClient, odd), (folder,), cluster_id, (3,)) == ("run-1",)
    assert demanded(undrained) == ()


@pytest.mark.parametrize("record", ["whole", "damaged", "a folder"])
def test_a_broker_in_maintenance_stays_closed_before_a_rollback(operators: Operators, record: str) -> None:
    rig = operators.rig
    die_while_draining(operators)
    path = cluster_folder(rig.state_dir, rig.twin.cluster_id) / FILE_NAME
    match record:
        case "whole":
            entered = MaintenanceRecord().entered((3,), 1, "ann", cordoned=())
            MaintenanceStore(rig.client, operators.context(), rig.twin.cluster_id, "ann").write(entered)
        case "damaged":
            path.write_text("no record")
        case "a folder":
            path.mkdir()
    assert not is_opened(operators)
    assert ("is in maintenance" if record == "whole" else "may be in maintenance") in operators.said[-1]
