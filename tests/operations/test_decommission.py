"""Brokers of a twin are taken out of service, whatever happens meanwhile, by whoever goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import cast

import pytest

from kreassign.admin import AdminClient
from kreassign.errors import (
    ClusterBusy,
    ClusterError,
    ExecutionError,
    Infeasible,
    InputError,
    JournalDamaged,
    Unreachable,
)
from kreassign.executor.brokers import CORDON, NOT_SHOWN, Blocked
from kreassign.executor.events import Event, RunStarted, VerdictsRecorded
from kreassign.executor.guards import GuardName, GuardSetting, Reaction
from kreassign.executor.history.run_history import read_history
from kreassign.executor.journal import Journal, find_journals
from kreassign.executor.journal.folder import cluster_folder, make_folder
from kreassign.executor.lease import OFFSETS_TOPIC, ClusterLease, Held, LeaseHolder, LeasePolicy
from kreassign.executor.maintenance.record import MaintenanceRecord
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.executor.state import RunView
from kreassign.model import Batch, ConfigChange, ConfigResource, LogDirReplica, NewTopic
from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED, INVALID_CONFIG, TOPIC_AUTHORIZATION_FAILED
from kreassign.model.plan_facts import PlanFacts, Totals
from kreassign.model.run import Phase, RunHistory
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.broker_changes import (
    CORDONS,
    DECOMMISSIONED,
    FILE_NAME,
    MaintenanceStore,
    noted_cordons,
    noted_decommissions,
)
from kreassign.operations.decommission import (
    WITHOUT_PLAN,
    Decommissioning,
    DecommissionRequest,
    DecommissionResult,
    preview_decommission,
)
from kreassign.operations.decommission_undo import cancel_decommission, uncordon_drained, undo_drain
from kreassign.operations.doctor import diagnose_cluster
from kreassign.operations.drains import demanded_rollbacks
from kreassign.operations.maintenance import Way, maintain
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.rollback import plan_rollback
from kreassign.operations.run import RunContext
from kreassign.operations.run_journals import keep_facts, kept_facts_path
from kreassign.operations.whole_runs import undone_if_demanded
from kreassign.planner.problem.policy import PlanPolicy
from kreassign.twin.access import ALL_TOPICS, ANONYMOUS, Allow, Operation, Permissions
from kreassign.twin.blueprint import Blueprint
from kreassign.twin.cluster import Twin
from kreassign.wire import api
from tests.approved import approve
from tests.executor.odd_port import Answer, OddPort, Real, lost_on_the_way_back, not_reached, refusal, refused
from tests.executor.twin_runs import RATE, TwinRig, tp

KEY = "cordoned.log.dirs"
BROKER = ConfigResource.broker(3)
LISTS = [[0, 3], [3, 1], [2, 4]]


class Killed(BaseException):
    """The process is gone."""


def die() -> None:
    raise Killed


def keep(rig: TwinRig, run_id: str, facts: PlanFacts) -> None:
    """The facts of a plan beside the journal, as a run keeps them."""
    make_folder(rig.path(run_id).parent)
    keep_facts(rig.path(run_id), facts)


def kill_while_moving(rig: TwinRig, started: RunStarted) -> None:
    """The process of this run dies once a partition moves."""

    def die_once_it_moves(*_: object) -> None:
        if rig.client.list_partition_reassignments():
            raise Killed

    rig.listener = die_once_it_moves
    with pytest.raises(Killed):
        rig.run(started)
    rig.listener = None


@dataclass
class VirtualRuns:
    """Runs in the time of the twin. `before` hears of each before it begins; its process is killed at `dies`."""

    rig: TwinRig
    before: Callable[[], object] = lambda: None
    dies_after_s: float | None = None
    ids: list[str] = field(default_factory=list)
    guards: tuple[GuardSetting, ...] = ()

    def execute(self, plan: PlanFile) -> RunHistory:
        self.before()
        number = len(find_journals(self.rig.state_dir)) + 1
        chosen = RunSettings(f"run-{number}", self.rig.transport.now_ms(), ThrottleRates(RATE), self.guards)
        started = prepare(self.rig.client, plan.plan, chosen, expected=plan.expected)
        self.ids.append(started.run_id)
        if self.dies_after_s is not None:
            due_ms = self.rig.transport.now_ms() + self.dies_after_s * 1000

            def die_then(*_: object) -> None:
                if self.rig.transport.now_ms() >= due_ms:
                    raise Killed

            self.rig.listener = die_then
        assert plan.facts is not None
        keep(self.rig, started.run_id, plan.facts)
        return self.rig.run(started)

    def resume(self, run_id: str) -> RunHistory:
        self.rig.listener = None
        return self.rig.resume(run_id)


class Operators:
    """Operators who each decommission with a process of their own."""

    def __init__(self, rig: TwinRig) -> None:
        self.rig = rig
        self.client = rig.client
        self.said: list[str] = []
        self.warnings: list[str] = []

    def context(self, state_dir: Path | None = None) -> RunContext:
        context = RunContext(
            state_dir or self.rig.state_dir,
            0.2,
            lease=LeasePolicy.AUTO,
            warn=self.warnings.append,
        )
        controllers = self.rig.controllers
        return replace(context, controllers=controllers) if isinstance(controllers, AdminClient) else context

    def decommission(
        self,
        *brokers: int,
        runs: VirtualRuns | None = None,
        successors: tuple[int, ...] = (),
        unregisters: bool = False,
    ) -> DecommissionResult:
        request = DecommissionRequest(brokers or (3,), successors, unregisters)
        runs = runs or VirtualRuns(self.rig)
        self.said.clear()
        return Decommissioning(self.client, request, self.context(), runs, self.rig.transport, self.said.append).go_on()

    def empty_and_stop(self) -> None:
        """Take everything off broker 3, and shut it down."""
        assert self.decommission().is_finished
        self.rig.twin.stop(3)
        self.rig.transport.sleep(30)

    def cancel(self) -> tuple[str, ...]:
        return cancel_decommission(self.rig.client, (3,), self.context(), self.rig.transport).steps

    @property
    def cordon(self) -> str | None:
        return self.rig.twin.metadata.configs.get(BROKER, {}).get(KEY)


@pytest.fixture
def operators(tmp_path: Path) -> Operators:
    return Operators(TwinRig(tmp_path, LISTS))


def is_named(rig: TwinRig, broker: int = 3) -> bool:
    return any(
        broker in state.replicas for topic in rig.twin.metadata.topics.values() for state in topic.partitions.values()
    )


def test_a_broker_is_drained_and_unregistered_once_it_is_stopped(operators: Operators) -> None:
    rig = operators.rig
    found = operators.decommission(unregisters=True)
    assert operators.said[:2] == ["cordon the log directories of broker 3", "drain broker 3: t-0, t-1"]
    assert isinstance(found.next_step, Blocked)
    assert "empty and still running: stop the process" in str(found.next_step)
    assert [run.state for run in found.runs] == ["done"]
    assert not is_named(rig)
    assert rig.replicas[2] == (2, 4), "what is not on the broker does not move"

    rig.twin.stop(3)
    rig.transport.sleep(30)
    rig.let_reach_controllers()
    ended = operators.decommission(unregisters=True)
    assert ended.is_finished
    approve(operators.said, "unregister-a-stopped-broker")
    assert 3 not in rig.twin.metadata.brokers
    assert operators.cordon is None
    assert operators.decommission(unregisters=True).steps == (), "again: nothing is left to do"


def test_an_empty_broker_unregistered_here_is_done_when_asked_again(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    rig = operators.rig
    operators.empty_and_stop()
    assert operators.decommission(unregisters=True).is_finished
    again = operators.decommission(unregisters=True)
    assert (again.is_finished, again.steps) == (True, ())
    request, elsewhere = DecommissionRequest((3,)), operators.context(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="broker 3 is not known"):
        preview_decommission(rig.client, request, elsewhere)


def test_an_empty_broker_others_unregistered_is_done_when_asked_again(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    operators.empty_and_stop()
    operators.rig.client.unregister_broker(3)
    assert operators.decommission(unregisters=True).is_finished
    with pytest.raises(InputError, match="broker 9 is not known"):
        operators.decommission(9, unregisters=True)


def test_a_broker_is_unknown_after_its_decommission_was_cancelled(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    assert operators.decommission().is_finished
    operators.cancel()
    operators.rig.twin.stop(3)
    operators.rig.transport.sleep(30)
    operators.rig.client.unregister_broker(3)
    with pytest.raises(InputError, match="broker 3 is not known"):
        operators.decommission(unregisters=True)


def test_a_broker_in_use_again_counts_as_decommissioned_no_longer(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    rig, cluster_id = operators.rig, operators.rig.client.describe_cluster().cluster_id
    assert operators.decommission().is_finished
    assert noted_decommissions(rig.state_dir, cluster_id) == {3}
    close(operators, None)
    rig.client.alter_partition_reassignments({tp(0): (0, 3)}).raise_if_any()
    rig.transport.sleep(60)
    die_while_draining(operators)
    assert noted_decommissions(rig.state_dir, cluster_id) == frozenset()


@pytest.mark.parametrize("note", [DECOMMISSIONED, CORDONS])
@pytest.mark.parametrize("garbled", [b"7 \x80", b"7 seven"])
def test_a_note_of_brokers_that_cannot_be_read_is_not_replaced(tmp_path: Path, note: str, garbled: bytes) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    folder = cluster_folder(tmp_path, operators.rig.client.describe_cluster().cluster_id)
    make_folder(folder)
    (folder / note).write_bytes(garbled)
    with pytest.raises(InputError, match=note):
        operators.decommission()
    assert ((folder / note).read_bytes(), operators.cordon) == (garbled, None)


def garble(operators: Operators, note: str) -> Path:
    """Damage a note of this state directory; its path."""
    path = cluster_folder(operators.rig.state_dir, operators.rig.twin.cluster_id) / note
    with path.open("ab") as file:
        file.write(b" \x80")
    return path


def test_no_broker_is_called_unknown_by_a_note_that_cannot_be_read(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    operators.empty_and_stop()
    assert operators.decommission(unregisters=True).is_finished
    note = garble(operators, DECOMMISSIONED)
    with pytest.raises(InputError, match=str(note)):
        preview_decommission(operators.rig.client, DecommissionRequest((3,)), operators.context())


def test_the_first_step_is_shown_and_nothing_is_changed(operators: Operators) -> None:
    request, context = DecommissionRequest((3,)), RunContext(operators.rig.state_dir)
    found = preview_decommission(operators.rig.client, request, context, operators.rig.transport)
    assert (str(found.next_step), found.open_ways) == ("cordon the log directories of broker 3", ())
    assert found.drain is not None
    assert (found.drain.partitions, found.drain.copies) == (2, 2)
    assert operators.cordon is None
    assert operators.rig.client.list_partition_reassignments() == {}


def test_a_broker_is_swapped_for_another_in_the_same_places(operators: Operators) -> None:
    rig = TwinRig(operators.rig.state_dir, [[0, 3], [3, 2]])
    swapped = Operators(rig)
    assert swapped.decommission(successors=(1,)).is_finished
    assert rig.replicas == {0: (0, 1), 1: (1, 2)}


def test_a_swap_whose_process_was_killed_goes_on_with_the_same_successor(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 3], [3, 2]]))
    with pytest.raises(Killed):
        operators.decommission(runs=VirtualRuns(operators.rig, dies_after_s=3), successors=(1,))
    assert operators.decommission(successors=(1,)).is_finished
    assert operators.rig.replicas == {0: (0, 1), 1: (1, 2)}


def test_a_topic_placed_on_it_after_the_drain_is_drained(tmp_path: Path) -> None:
    """Before Kafka 4.4 a cordon keeps nobody from naming the broker."""
    operators = of_release(tmp_path, "4.3")
    assert operators.decommission().is_finished
    operators.rig.client.create_topics([NewTopic("late", assignments=((3, 0),))]).raise_if_any()
    again = operators.decommission(unregisters=True)
    assert operators.said[0] == "drain broker 3: late-0"
    assert isinstance(again.next_step, Blocked)
    assert not is_named(operators.rig)


def test_a_topic_placed_on_it_during_the_drain_needs_a_second_run(tmp_path: Path) -> None:
    """Before Kafka 4.4, which refuses such a topic."""
    operators = of_release(tmp_path, "4.3")
    rig = operators.rig
    rig.between_steps(5, lambda: rig.client.create_topics([NewTopic("late", assignments=((3, 0),))]))
    found = operators.decommission()
    assert (found.is_finished, len(found.runs)) == (True, 2)
    assert not is_named(rig)


def test_a_drain_whose_process_was_killed_is_resumed_where_its_journal_is(operators: Operators) -> None:
    with pytest.raises(Killed):
        operators.decommission(runs=VirtualRuns(operators.rig, dies_after_s=3))
    found = operators.decommission()
    assert operators.said[0] == "resume run run-1, which drains broker 3"
    assert (found.is_finished, [run.run_id for run in found.runs]) == (True, ["run-1"])
    assert operators.rig.throttles == {}


def test_a_drain_whose_process_was_killed_is_finished_from_another_machine(
    operators: Operators, tmp_path: Path
) -> None:
    """Moves in flight are waited for; a run of its own drains the rest."""
    rig = operators.rig
    with pytest.raises(Killed):
        operators.decommission(runs=VirtualRuns(rig, dies_after_s=3))
    rig.listener = None
    assert rig.client.list_partition_reassignments()
    rig.state_dir = tmp_path / "elsewhere"
    assert operators.decommission().is_finished
    assert operators.said[0].startswith("wait: no run of this state directory accounts for the reassignment of t-0")
    assert not is_named(rig)


def test_a_broker_that_dies_in_the_middle_is_drained_all_the_same(operators: Operators) -> None:
    rig = operators.rig
    rig.after(4, lambda: rig.twin.crash(3))
    stopped = operators.decommission(unregisters=True)
    assert isinstance(stopped.next_step, Blocked)
    assert "run run-1, which drains broker 3, is failed" in str(stopped.next_step)
    assert not is_named(rig)
    # Its throttle is left on the broker, which only a controller can change now.
    rig.let_reach_controllers()
    ended = operators.decommission(unregisters=True)
    assert ended.is_finished
    assert "is not registered in this cluster" in str(ended.next_step)
    assert (rig.throttles, operators.cordon) == ({}, None)


@pytest.mark.parametrize("behind", range(2))
def test_a_broker_that_lags_after_the_drain_is_waited_for(operators: Operators, behind: int) -> None:
    rig = operators.rig

    def tell(sentence: str) -> None:
        operators.said.append(sentence)
        if sentence.startswith("wait: brokers to show"):
            rig.twin.views.release(behind)

    runs = VirtualRuns(rig, before=lambda: rig.twin.views.hold_back(behind))
    request = DecommissionRequest((3,))
    assert Decommissioning(rig.client, request, operators.context(), runs, rig.transport, tell).go_on().is_finished
    assert operators.said[2:] == [f"wait: brokers to show the same as broker {behind}"]
    assert runs.ids == ["run-1"]


def test_without_a_controller_the_cordon_outlives_the_broker(operators: Operators) -> None:
    rig = operators.rig
    operators.empty_and_stop()
    assert operators.decommission(unregisters=True).is_finished
    assert "a broker that is started with it is cordoned until `kreassign decommission 3 --cancel`" in operators.said[1]
    rig.twin.start(3)
    rig.transport.sleep(30)
    assert operators.cancel() == ("uncordon broker 3",)


@pytest.mark.parametrize("way", ["cancel", "unregister"])
def test_controllers_of_another_cluster_are_not_told_to_open_their_broker(
    operators: Operators, tmp_path: Path, way: str
) -> None:
    rig = operators.rig
    operators.empty_and_stop()

    def renamed(blueprint: Blueprint) -> Twin:
        return Twin(replace(blueprint, cluster_id="other"))

    other = TwinRig(tmp_path / "other", LISTS, make_twin=renamed)
    other.client.incremental_alter_configs({BROKER: [ConfigChange.set(KEY, "*")]}).raise_if_any()
    other.let_reach_controllers()
    rig.controllers = other.controllers
    with pytest.raises(Unreachable, match="belongs to cluster other, not to twin as expected"):
        operators.cancel() if way == "cancel" else operators.decommission(unregisters=True)
    assert other.twin.metadata.configs[BROKER][KEY] == "*"
    assert 3 in rig.twin.metadata.brokers


def test_a_partition_that_cannot_move_is_named_before_anything_is_changed(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1, 2, 3, 4]]))
    with pytest.raises(Infeasible, match=r"t-0|replica"):
        operators.decommission()
    assert (operators.cordon, operators.said) == (None, [])


def test_the_drain_is_planned_before_the_cordon_once_others_move_nothing(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1, 2, 3, 4], [0, 1]]))
    operators.rig.client.alter_partition_reassignments({tp(1): (0, 3)}).raise_if_any()
    with pytest.raises(Infeasible, match=r"t-0|replica"):
        operators.decommission()
    assert operators.said == ["wait: no run of this state directory accounts for the reassignment of t-1"]
    assert operators.cordon is None


def test_a_late_unmovable_partition_is_named_and_the_cordon_stays(tmp_path: Path) -> None:
    operators = of_release(tmp_path, "4.3")
    wide = NewTopic("wide", assignments=((0, 1, 2, 3, 4),))
    runs = VirtualRuns(operators.rig, before=lambda: operators.rig.client.create_topics([wide]).raise_if_any())
    with pytest.raises(Infeasible, match=r"wide-0|replica"):
        operators.decommission(runs=runs)
    assert runs.ids == ["run-1"]
    assert operators.cordon is not None
    assert "uncordon broker 3" in operators.cancel()[0]
    assert operators.cordon is None


def test_a_topic_that_may_not_move_is_named_before_anything_moves(operators: Operators) -> None:
    request = DecommissionRequest((3,), policy=PlanPolicy(excluded_topics=("t",)))
    runs = VirtualRuns(operators.rig)
    said = r"t-0, t-1 must stay \(of an excluded topic\); take the topic out of .*\n.*decommission 3 --may-stay t`"
    with pytest.raises(Infeasible, match=said):
        Decommissioning(
            operators.rig.client, request, operators.context(), runs, operators.rig.transport, operators.said.append
        ).go_on()
    assert runs.ids == []


@pytest.mark.parametrize(
    ("excluded", "successors"), [((), ()), (("canary",), ()), ((), (1,))],
    ids=["", "that the goals file excludes", "of a broker that is replaced"],
)  # fmt: skip
def test_topics_that_may_stay_keep_their_replicas_and_the_rest_is_drained(
    tmp_path: Path, excluded: tuple[str, ...], successors: tuple[int, ...]
) -> None:
    """Example: the canaries of Amazon MSK, which its customers may not move and which are on every broker."""
    operators = Operators(TwinRig(tmp_path, [[0, 3], [3, 2], [2, 4]]))
    rig, lists = operators.rig, ((0, 1, 3), (3, 1, 2), (1, 2, 4))
    rig.client.create_topics([NewTopic("canary", assignments=lists)]).raise_if_any()
    request = DecommissionRequest((3,), successors, policy=PlanPolicy(excluded_topics=excluded), may_stay=("canary.*",))
    assert preview_decommission(rig.client, request, operators.context(), rig.transport).drain is not None
    runs = VirtualRuns(rig)
    found = Decommissioning(
        rig.client, request, operators.context(), runs, rig.transport, operators.said.append
    ).go_on()
    assert (found.is_finished, runs.ids) == (True, ["run-1"])
    assert "broker 3 is empty but for canary-0, canary-1, which may stay:" in str(found.next_step)
    canary = rig.client.describe_topics(["canary"])["canary"]
    assert tuple(one.replicas for one in canary.partitions) == lists
    assert not any(3 in replicas for replicas in rig.replicas.values())


def test_a_pattern_of_topics_that_may_stay_matches_some_topic(operators: Operators) -> None:
    for pattern, said in (("canarry.*", "no topic matches 'canarry.*'"), ("[", "is not a regular expression")):
        with pytest.raises(InputError, match=said):
            preview_decommission(
                operators.rig.client, DecommissionRequest((3,), may_stay=(pattern,)), operators.context()
            )


@pytest.mark.parametrize("phase", ["before anything", "cordoned", "draining", "drained"])
def test_a_cancel_in_any_phase_leaves_the_setting_as_it_was(operators: Operators, phase: str) -> None:
    rig = operators.rig
    match phase:
        case "cordoned":
            with pytest.raises(Killed):
                operators.decommission(runs=VirtualRuns(rig, before=die))
        case "draining":
            with pytest.raises(Killed):
                operators.decommission(runs=VirtualRuns(rig, dies_after_s=3))
        case "drained":
            assert operators.decommission().is_finished
    assert (operators.cordon == "*") is (phase != "before anything")
    rig.listener = None
    said = operators.cancel()
    assert operators.cordon is None
    assert ("cancel run run-1" in said) is (phase == "draining")
    assert rig.client.list_partition_reassignments() == {}
    assert rig.throttles == {}
    # Once more, there is nothing to undo.
    assert operators.cancel() == ("broker 3 is not cordoned",)


@pytest.mark.parametrize("release", ["4.3", "4.4"])
def test_a_cancel_leaves_alone_what_others_have_cordoned(tmp_path: Path, release: str) -> None:
    """The message names the command that takes the cordon back, and so does the doctor."""
    operators, both = of_release(tmp_path, release), "/data/3/d0,/data/3/d1"
    operators.rig.client.incremental_alter_configs({BROKER: [ConfigChange.set(KEY, both)]}).raise_if_any()
    assert operators.decommission().is_finished
    way = "kafka-configs --alter --entity-type brokers --entity-name 3 --delete-config cordoned.log.dirs"
    assert operators.cancel() == (
        f"broker 3 stays as it is: its cordoned.log.dirs is {both}, set by others; to open it: {way}",
    )
    assert operators.cordon == both
    (issue,) = (one for one in diagnose_cluster(operators.rig.client, tmp_path).issues if one.kind == "cordoned")
    assert tuple(way.split()) in issue.commands


@pytest.mark.parametrize(("release", "said"), [
    ("4.3", "Kafka accepts reassignments to it in silence"),
    ("4.4", "plans leave its partitions as they are, for Kafka 4.4, and 4.3 with KAFKA-20832, refuse every"),
])  # fmt: skip
def test_the_doctor_tells_what_kafka_does_with_lists_of_a_cordoned_broker(
    tmp_path: Path, release: str, said: str
) -> None:
    operators = of_release(tmp_path, release)
    client = operators.rig.client
    client.incremental_alter_configs({BROKER: [CORDON]}).raise_if_any()
    (issue,) = (one for one in diagnose_cluster(client, tmp_path).issues if one.kind == "cordoned")
    assert said in issue.seen
    refused = client.alter_partition_reassignments({tp(2): (2, 3)}).failed
    assert (tp(2) in refused) == ("refuse" in said)
    assert operators.cancel() == ("uncordon broker 3",)
    assert not any(one.kind == "cordoned" for one in diagnose_cluster(client, tmp_path).issues)


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


# --- older clusters -------------------------------------------------------------------------------------------------


def of_release(tmp_path: Path, release: str) -> Operators:
    return Operators(TwinRig(tmp_path, LISTS, release=release))


def test_a_cancel_is_refused_while_a_journal_may_be_of_its_drain(operators: Operators) -> None:
    die_while_draining(operators)
    operators.rig.path("run-1").write_bytes(b"damaged")
    with pytest.raises(JournalDamaged, match="a run on this cluster has a journal that cannot be read"):
        operators.cancel()
    assert operators.cordon == "*"


def garble_facts(operators: Operators) -> None:
    kept_facts_path(operators.rig.path("run-1")).write_bytes(b"damaged")


@pytest.mark.parametrize(("damage", "named"), [
    (lambda operators: garble(operators, CORDONS), CORDONS),
    (lambda operators: garble(operators, DECOMMISSIONED), DECOMMISSIONED),
    (garble_facts, "run-1.facts"),
], ids=["note of cordons", "note of decommissions", "facts of the run"])  # fmt: skip
def test_a_cancel_changes_nothing_while_files_of_it_cannot_be_read(
    operators: Operators, damage: Callable[[Operators], object], named: str
) -> None:
    with pytest.raises(Killed):
        operators.decommission(runs=VirtualRuns(operators.rig, dies_after_s=3))
    operators.rig.listener = None
    damage(operators)
    with pytest.raises(InputError, match=named):
        operators.cancel()
    assert (operators.cordon, read_history(operators.rig.path("run-1")).ended_ms) == ("*", None)


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_a_release_without_cordons_is_drained_with_a_warning(tmp_path: Path, release: str) -> None:
    operators = of_release(tmp_path, release)
    assert operators.decommission().is_finished
    assert operators.said[0] == "drain broker 3: t-0, t-1"
    (warning,) = operators.warnings
    assert warning.startswith("broker 3 cannot be cordoned: its release has no cordoned.log.dirs (Kafka 4.3 has)")
    assert operators.cancel() == ("broker 3 is not cordoned",)


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_before_cordons_a_dead_broker_is_called_off_without_a_controller(tmp_path: Path, release: str) -> None:
    operators = of_release(tmp_path, release)
    assert operators.decommission().is_finished
    operators.rig.twin.stop(3)
    operators.rig.transport.sleep(30)
    assert operators.cancel() == ("broker 3 is not cordoned",)
    assert operators.decommission(unregisters=True).is_finished
    assert operators.said == ["unregister broker 3"], "no cordon outlives it"


def test_brokers_are_unregistered_where_stopped_ones_are_unlisted(tmp_path: Path) -> None:
    operators = of_release(tmp_path, "3.9")
    operators.empty_and_stop()
    assert operators.decommission(unregisters=True).is_finished
    assert 3 not in operators.rig.twin.metadata.brokers


def test_a_broker_unregistered_too_early_is_drained_afterwards(operators: Operators) -> None:
    operators.rig.twin.crash(3)
    operators.rig.transport.sleep(30)
    operators.rig.client.unregister_broker(3)
    assert operators.decommission(unregisters=True).is_finished
    assert not is_named(operators.rig)


def test_a_run_of_another_process_here_is_named_before_any_change(operators: Operators) -> None:
    rig = operators.rig
    with (
        Journal.create(rig.state_dir, rig.prepared({2: (2, 1)})),
        pytest.raises(InputError, match="run run-1 is active on this cluster; follow it with `kreassign watch run-1`"),
    ):
        operators.decommission()
    assert operators.cordon is None


def begin_move_of_others(rig: TwinRig) -> None:
    """Let another operator move a partition to broker 3."""
    rig.client.alter_partition_reassignments({tp(2): (2, 3)}).raise_if_any()


def test_missing_permissions_to_throttle_are_named_before_a_wait(operators: Operators) -> None:
    rig = operators.rig
    begin_move_of_others(rig)
    rules = [Allow(ANONYMOUS, one) for one in (Operation.DESCRIBE, Operation.ALTER, Operation.ALTER_CONFIGS)]
    rules += [Allow(ANONYMOUS, one, ALL_TOPICS) for one in (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)]
    rules.append(Allow(ANONYMOUS, Operation.DESCRIBE_CONFIGS))
    rig.twin.settings = replace(rig.twin.settings, permissions=Permissions(frozenset(rules)))
    request = DecommissionRequest((3,), run=replace(WITHOUT_PLAN, throttle=ThrottleRates(RATE)))
    runs = VirtualRuns(rig)
    with pytest.raises(InputError, match="AlterConfigs on topic t"):
        Decommissioning(rig.client, request, operators.context(), runs, rig.transport, operators.said.append).go_on()
    assert operators.said == []


def test_permissions_are_checked_once_in_a_wait(tmp_path: Path) -> None:
    """The partitions that it waits for change from one look to the next."""
    operators, checks = Operators(TwinRig(tmp_path, LISTS, size_bytes=200 * RATE)), list[int]()
    rig, odd = operators.rig, OddPort(operators.rig.client)
    begin_move_of_others(rig)

    def tell(sentence: str) -> None:
        if sentence.startswith("wait"):
            checks.append([method for method, *_ in odd.calls].count("check_reassignment_permission"))
            if len(checks) == 1:
                rig.client.alter_partition_reassignments({tp(0): (0, 1)}).raise_if_any()

    request, client, runs = DecommissionRequest((3,)), cast(AdminClient, odd), VirtualRuns(rig)
    assert Decommissioning(client, request, operators.context(), runs, rig.transport, tell).go_on().is_finished
    assert len(checks) > 1
    assert set(checks) == {1}


def test_an_interrupted_run_is_named_before_the_cordon(operators: Operators) -> None:
    rig = operators.rig
    started = rig.prepared({2: (2, 1)})
    kill_while_moving(rig, started)
    with pytest.raises(InputError, match=started.run_id):
        operators.decommission()
    assert operators.cordon is None


def test_a_run_that_leaves_the_broker_by_chance_is_not_its_drain(operators: Operators) -> None:
    """A rebalance of others, which waits: it is neither resumed nor cancelled unasked."""
    rig = operators.rig
    started = rig.prepared({0: (0, 2), 1: (2, 1)})
    keep(rig, started.run_id, PlanFacts(started.plan_id, "", "rebalance", Totals(2, 2, 0)))
    kill_while_moving(rig, started)
    with pytest.raises(InputError, match=started.run_id):
        operators.decommission()
    done, going_on = operators.cancel()
    assert done == "broker 3 is not cordoned"
    assert going_on.startswith(
        f"still on the way off broker 3, maybe by run {started.run_id}, which is no drain of it: "
    )
    assert read_history(rig.path()).ended_ms is None


def close(operators: Operators, value: str | None) -> None:
    """Others set the cordon of broker 3, or remove it."""
    change = ConfigChange.delete(KEY) if value is None else ConfigChange.set(KEY, value)
    operators.rig.client.incremental_alter_configs({BROKER: [change]}).raise_if_any()


def die_while_draining(operators: Operators, *brokers: int) -> None:
    """A decommission whose process dies after the cordon, before its run begins."""
    with pytest.raises(Killed):
        operators.decommission(*brokers, runs=VirtualRuns(operators.rig, before=die))


def is_opened(operators: Operators) -> bool:
    """True if broker 3 is opened before a rollback."""
    uncordon_drained(operators.rig.client, (3,), operators.context(), operators.said.append, operators.rig.transport)
    return operators.cordon is None


def test_a_later_broker_with_the_id_is_not_opened_for_the_one_that_left(operators: Operators) -> None:
    rig = operators.rig
    rig.let_reach_controllers()
    operators.decommission(unregisters=True)
    rig.twin.stop(3)
    rig.transport.sleep(30)
    assert operators.decommission(unregisters=True).is_finished
    rig.twin.start(3)
    rig.transport.sleep(30)
    close(operators, "*")
    assert not is_opened(operators)


def test_directories_that_others_cordon_during_the_checks_stay_theirs(operators: Operators) -> None:
    path = operators.rig.twin.metadata.brokers[3].log_dirs[0].path

    def validated(real: Real, *args: object, **named: object) -> object:
        close(operators, path)
        return real(*args, **named)

    odd = OddPort(operators.rig.client)
    odd.answer("incremental_alter_configs", validated)
    operators.client = cast("AdminClient", odd)
    result = operators.decommission()
    assert isinstance(result.next_step, Blocked)
    assert f"cordoned.log.dirs of broker 3 is {path}" in str(result.next_step)
    assert (operators.cordon, operators.said, result.runs) == (path, [], ())
    assert "set by others" in operators.cancel()[0]


@pytest.mark.parametrize("is_ours", [True, False])
def test_before_a_rollback_only_what_a_decommission_cordoned_is_opened(operators: Operators, is_ours: bool) -> None:
    if is_ours:
        die_while_draining(operators)
    else:
        close(operators, "*")
    assert is_opened(operators) is is_ours
    assert is_ours or "broker 3 stays cordoned" in operators.said[-1]


@pytest.mark.parametrize("way", ["refused", "finished", "opened by others"])
def test_a_cordon_of_others_is_not_opened_for_an_earlier_one_of_ours(operators: Operators, way: str) -> None:
    if way == "refused":  # only once it is no longer a mere validation

        def refuse(real: Real, changes: dict[ConfigResource, object], **named: bool) -> Batch[ConfigResource, None]:
            if named.get("validate_only") or BROKER not in changes:
                return cast("Batch[ConfigResource, None]", real(changes, **named))
            return Batch({}, {BROKER: refusal(INVALID_CONFIG)})

        odd = OddPort(operators.rig.client)
        odd.answer_always("incremental_alter_configs", refuse)
        operators.client = cast("AdminClient", odd)
        die_while_draining(operators)
    elif way == "finished":
        assert operators.decommission().is_finished
    else:
        die_while_draining(operators)
    close(operators, None)
    if way == "opened by others":
        assert operators.decommission(4).is_finished
    close(operators, "*")
    assert not is_opened(operators)


def unless_validated(answer: Answer) -> Answer:
    """This answer to changes of settings that are not merely validated."""

    def changed(real: Real, changes: dict[ConfigResource, list[ConfigChange]], **named: bool) -> object:
        return real(changes, **named) if named.get("validate_only") else answer(real, changes, **named)

    return changed


@pytest.mark.parametrize(("answer", "ours"), [
    (refused(CLUSTER_AUTHORIZATION_FAILED), frozenset()), (lost_on_the_way_back, {3}),
], ids=["refused", "lost"])  # fmt: skip
def test_only_cordons_that_may_have_been_set_count_as_ours(
    operators: Operators, answer: Answer, ours: frozenset[int]
) -> None:
    """The first of two cordons fails, so that the second is never sent."""
    odd = OddPort(operators.rig.client)
    odd.answer_always("incremental_alter_configs", unless_validated(answer))
    operators.client = cast(AdminClient, odd)
    with pytest.raises(ClusterError):
        operators.decommission(3, 4)
    assert noted_cordons(operators.rig.state_dir, operators.rig.twin.cluster_id) == ours


def hide_cordon(operators: Operators) -> OddPort:
    """Let broker 3 show these operators settings and directories from before a cordon."""
    odd = OddPort(operators.rig.client)

    def as_before(real: Real, *args: object, **named: object) -> object:
        held = real(*args, **named)
        dirs = {one: tuple(replace(each, is_cordoned=False) for each in found) for one, found in held.ok.items()}
        return Batch(dirs, held.failed)

    operators.rig.twin.views.hold_back(3, api_key=api.DESCRIBE_CONFIGS.key)
    odd.answer_always("describe_log_dirs", as_before)
    operators.client = cast(AdminClient, odd)
    return odd


def done_before_a_death(real: Real, *args: object, **named: object) -> object:
    real(*args, **named)
    raise Killed


def refused_as_unknown(real: Real, changes: dict[ConfigResource, object], **named: object) -> object:
    del real, named
    return Batch({}, dict.fromkeys(changes, refusal(INVALID_CONFIG)))


@pytest.mark.parametrize("answer", [refused(CLUSTER_AUTHORIZATION_FAILED), refused_as_unknown])
def test_a_cordon_stays_ours_when_its_repetition_is_refused(operators: Operators, answer: Answer) -> None:
    """Its broker does not show it yet, so that the next process sends it once more."""
    rig, odd = operators.rig, hide_cordon(operators)
    for each in (done_before_a_death, answer):
        odd.answer_always("incremental_alter_configs", unless_validated(each))
        with pytest.raises((ClusterError, Killed)):
            operators.decommission(runs=VirtualRuns(rig, before=die))
    cordons = [named for method, _, named in odd.calls if method == "incremental_alter_configs"]
    assert sum(not named.get("validate_only") for named in cordons) == 2
    rig.twin.views.release(3, api_key=api.DESCRIBE_CONFIGS.key)
    assert is_opened(operators)


def test_a_cordon_stays_ours_while_its_broker_hides_it(operators: Operators) -> None:
    """Another decommission sees settings from before the cordon, beside directories that are closed already."""
    rig = operators.rig
    rig.twin.views.hold_back(3, api_key=api.DESCRIBE_CONFIGS.key)
    die_while_draining(operators)
    die_while_draining(operators, 4)
    assert is_opened(operators)


def test_an_empty_broker_stays_decommissioned_when_its_cordon_is_refused(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    assert operators.decommission().is_finished
    close(operators, None)
    odd = OddPort(operators.rig.client)
    odd.answer_always("incremental_alter_configs", unless_validated(refused(CLUSTER_AUTHORIZATION_FAILED)))
    operators.client = cast(AdminClient, odd)
    with pytest.raises(ClusterError):
        operators.decommission()
    assert noted_decommissions(tmp_path, operators.rig.twin.cluster_id) == {3}


def test_no_cordon_is_set_once_a_note_cannot_be_read(operators: Operators) -> None:
    """It could not be changed after the cordon."""
    odd = OddPort(operators.rig.client)

    def damage(real: Real, *args: object, **named: object) -> object:
        if named.get("validate_only"):
            make_folder(cluster_folder(operators.rig.state_dir, operators.rig.twin.cluster_id))
            garble(operators, DECOMMISSIONED)
        return real(*args, **named)

    odd.answer_always("incremental_alter_configs", damage)
    operators.client = cast(AdminClient, odd)
    with pytest.raises(InputError, match=DECOMMISSIONED):
        operators.decommission()
    assert operators.cordon is None


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["decommissioned again", "called off"])
def test_a_note_that_cannot_be_changed_hides_nothing_that_was_done(tmp_path: Path, is_cancelled: bool) -> None:
    """The broker was emptied here, and others opened it since."""
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    assert operators.decommission().is_finished
    if not is_cancelled:
        close(operators, None)
    lock = cluster_folder(tmp_path, operators.rig.twin.cluster_id) / f".{DECOMMISSIONED}.lock"
    lock.unlink()
    lock.mkdir()
    done = "uncordon" if is_cancelled else "cordon"
    with pytest.raises(InputError, match=f"cannot be opened: .* Done before that: {done} broker 3; move it away"):
        operators.cancel() if is_cancelled else operators.decommission()
    assert operators.cordon == (None if is_cancelled else "*")


def test_no_cordon_is_opened_unasked_while_the_note_of_ours_cannot_be_read(operators: Operators) -> None:
    die_while_draining(operators)
    note = garble(operators, CORDONS)
    assert not is_opened(operators)
    assert f"broker 3 stays cordoned, since it is not known who cordoned it ({note}" in operators.said[-1]


def test_a_note_that_cannot_be_read_is_not_taken_for_a_cancel(operators: Operators) -> None:
    """The broker does not show its cordon yet, so that it is sent once more."""
    odd = hide_cordon(operators)

    def damage(real: Real, *args: object, **named: object) -> object:
        answer: object = real(*args, **named)
        garble(operators, CORDONS)
        return answer

    odd.answer_always("incremental_alter_configs", unless_validated(damage))
    with pytest.raises(InputError, match=f"{CORDONS}: not a text in UTF-8"):
        operators.decommission()


def test_a_cordon_opened_by_a_process_that_died_is_not_opened_again(operators: Operators) -> None:
    """It died before it had noted that; others cordon the broker since."""
    die_while_draining(operators)
    close(operators, None)
    assert is_opened(operators)
    close(operators, "*")
    assert not is_opened(operators)


def enter_maintenance(operators: Operators) -> None:
    rig = operators.rig
    assert maintain(rig.client, (3,), Way.ENTER, operators.context(), wait_s=60, clock=rig.transport).is_finished


def leave_maintenance(operators: Operators) -> None:
    rig = operators.rig
    assert maintain(rig.client, (3,), Way.EXIT, operators.context(), wait_s=60, clock=rig.transport).is_finished


def test_a_cancel_leaves_the_cordon_that_maintenance_set(operators: Operators) -> None:
    enter_maintenance(operators)
    kept = "broker 3 stays cordoned, since it is in maintenance, which `kreassign maintenance exit 3` ends"
    assert operators.cancel() == (kept,)
    assert operators.cordon == "*"
    leave_maintenance(operators)
    assert operators.cordon is None


@pytest.mark.parametrize("is_noted", [False, True])
def test_a_cancel_leaves_a_cordon_of_maintenance_that_the_broker_hides(operators: Operators, is_noted: bool) -> None:
    """It answers from before the cordon, while its directories are closed already."""
    rig = operators.rig
    if is_noted:
        die_while_draining(operators)
        close(operators, None)
    record = MaintenanceRecord().entered((3,), 1, "ann", cordoned=(3,))
    MaintenanceStore(rig.client, operators.context(), rig.twin.cluster_id, "ann").write(record)
    rig.twin.views.hold_back(3, api_key=api.DESCRIBE_CONFIGS.key)
    close(operators, "*")
    kept = "broker 3 stays as it is, since it is in maintenance, which `kreassign maintenance exit 3` ends"
    assert (operators.cancel(), operators.cordon) == ((kept,), "*")


@pytest.mark.parametrize("is_open", [False, True], ids=["cordoned", "uncordoned by others"])
def test_no_decommission_goes_on_under_a_cordon_of_maintenance(operators: Operators, is_open: bool) -> None:
    enter_maintenance(operators)
    if is_open:
        close(operators, None)
    refused = operators.decommission().next_step
    assert isinstance(refused, Blocked)
    assert "the cordon of broker 3 is that of maintenance (broker 3 since " in str(refused)
    assert "end it first (`kreassign maintenance exit 3`)" in str(refused)
    request, context = DecommissionRequest((3,)), operators.context()
    assert preview_decommission(operators.rig.client, request, context, operators.rig.transport).next_step == refused
    assert operators.said == []
    leave_maintenance(operators)
    assert operators.decommission().is_finished
    assert operators.cordon == "*"


def test_the_end_of_maintenance_leaves_the_cordon_of_a_decommission(tmp_path: Path) -> None:
    operators = of_release(tmp_path, "4.3")
    die_while_draining(operators)
    enter_maintenance(operators)
    later = "give `kreassign maintenance exit 3`, then `kreassign decommission 3 --cancel`"
    kept = (
        f"broker 3 stays cordoned, since it is in maintenance, whose end leaves a cordon that was there before: {later}"
    )
    assert operators.cancel() == (kept,)
    leave_maintenance(operators)
    assert operators.cordon == "*"
    assert operators.cancel() == ("uncordon broker 3",)


def test_a_cordon_that_others_take_back_meanwhile_is_not_set_again(operators: Operators) -> None:
    found = operators.decommission(runs=VirtualRuns(operators.rig, before=lambda: close(operators, None)))
    assert isinstance(found.next_step, Blocked)
    assert "the cordon of broker 3 was taken back since: somebody called the decommission off" in str(found.next_step)
    assert operators.cordon is None
    assert operators.said == ["cordon the log directories of broker 3", "drain broker 3: t-0, t-1"]
    assert operators.decommission().is_finished
    assert operators.cordon == "*"


def test_a_cancel_right_after_the_cordon_is_not_overruled(operators: Operators) -> None:
    """No reading of the decommission has shown the cordon yet."""
    odd, steps = OddPort(operators.rig.client), list[str]()

    def cancelled(real: Real, *args: object, **named: object) -> object:
        if operators.cordon and not steps:
            steps.extend(operators.cancel())
        return real(*args, **named)

    odd.answer_always("list_partition_reassignments", cancelled)  # a reading begins with it
    operators.client = cast(AdminClient, odd)
    found = operators.decommission()
    assert (steps, operators.cordon) == (["uncordon broker 3"], None)
    assert "the cordon of broker 3 was taken back since" in str(found.next_step)
    assert found.runs == ()


def test_a_cancel_between_two_cordons_is_not_overruled(operators: Operators) -> None:
    rig, odd, steps = operators.rig, OddPort(operators.rig.client), list[str]()

    def cancelled(real: Real, *args: object, **named: object) -> object:
        answer = real(*args, **named)
        if operators.cordon and not steps:
            steps.extend(cancel_decommission(rig.client, (3, 4), operators.context(), rig.transport).steps)
        return answer

    odd.answer_always("incremental_alter_configs", cancelled)
    operators.client = cast(AdminClient, odd)
    found = operators.decommission(3, 4)
    assert steps == ["uncordon broker 3", "broker 4 is not cordoned"]
    assert "the cordon of broker 3 was taken back since" in str(found.next_step)
    assert not rig.twin.metadata.configs.get(ConfigResource.broker(4), {}).get(KEY)


def test_a_cordon_that_others_take_back_at_once_is_not_set_for_ever(operators: Operators) -> None:
    rig, odd = operators.rig, OddPort(operators.rig.client)

    def undone(real: Real, changes: dict[ConfigResource, list[ConfigChange]], **named: object) -> object:
        answer = real(changes, **named)
        if CORDON in changes.get(BROKER, ()) and not named.get("validate_only"):
            close(operators, None)
        return answer

    odd.answer_always("incremental_alter_configs", undone)
    request, client, runs = DecommissionRequest((3,)), cast(AdminClient, odd), VirtualRuns(rig)
    context = replace(operators.context(), poll_s=60.0)
    found = Decommissioning(client, request, context, runs, rig.transport, operators.said.append).go_on()
    assert "broker 3: no cordon shows, for 300 s since it was set" in str(found.next_step)
    assert operators.said == ["cordon the log directories of broker 3"]


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
    request, context = DecommissionRequest((3,)), operators.context()
    return preview_decommission(operators.rig.client, request, context, operators.rig.transport).demanded_rollbacks


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
    context = operators.context()
    seen = preview_decommission(operators.rig.client, DecommissionRequest((3,)), context, operators.rig.transport)
    assert (seen.resumed, seen.rolled_back, seen.demanded_rollbacks) == (("run-1",), ("run-1",), ())
    operators.decommission()
    assert operators.said[0] == "resume run run-1, which drains broker 3, and roll it back: a guard demanded that"


def test_a_preview_says_that_a_dead_broker_will_be_unregistered(operators: Operators) -> None:
    rig = operators.rig
    seen = {}
    for is_live in (True, False):
        if not is_live:
            rig.twin.stop(3)
            rig.transport.sleep(30)
        request = DecommissionRequest((3,), unregisters=True)
        seen[is_live] = preview_decommission(rig.client, request, operators.context(), rig.transport).unregistered
    assert seen == {True: (), False: (3,)}
    rig.let_reach_controllers()
    assert operators.decommission(unregisters=True).is_finished
    assert "unregister broker 3" in operators.said


def test_a_demanded_rollback_keeps_no_dead_broker_registered(undrained: Operators) -> None:
    undrained.rig.let_reach_controllers()
    undrained.rig.twin.stop(3)
    undrained.rig.transport.sleep(30)
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
    assert demanded(undrained) == ()


def test_a_demanded_rollback_is_told_of_lists_that_cannot_be_read(undrained: Operators) -> None:
    move_lists_back(undrained)
    odd = OddPort(undrained.rig.client)
    odd.answer_always("describe_topics", refused(TOPIC_AUTHORIZATION_FAILED))
    folder, cluster_id = undrained.rig.state_dir, undrained.rig.twin.cluster_id
    assert demanded_rollbacks(cast(AdminClient, odd), folder, cluster_id, (3,)) == ("run-1",)
    assert demanded(undrained) == ()


def test_a_drain_of_two_brokers_is_not_called_off_for_one_of_them(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 3], [4, 1], [2, 0]])
    operators = Operators(rig)
    with pytest.raises(Killed):
        operators.decommission(3, 4, runs=VirtualRuns(rig, dies_after_s=3))
    rig.listener = None
    with pytest.raises(
        InputError, match=r"run run-1 drains brokers 3, 4 at once.*`kreassign decommission 3,4 --cancel`"
    ):
        operators.cancel()
    assert operators.cordon == "*"
    assert "cancel run run-1" in cancel_decommission(rig.client, (3, 4), operators.context(), rig.transport).steps
    assert not operators.cordon
    assert rig.client.list_partition_reassignments() == {}


def test_a_cancel_elsewhere_names_the_moves_that_go_on(operators: Operators, tmp_path: Path) -> None:
    rig = operators.rig
    with pytest.raises(Killed):
        operators.decommission(runs=VirtualRuns(rig, dies_after_s=3))
    rig.listener = None
    elsewhere = operators.context(tmp_path / "elsewhere")
    opened, going_on = cancel_decommission(rig.client, (3,), elsewhere, rig.transport).steps
    assert opened == "uncordon broker 3"
    assert going_on.startswith("still on the way off broker 3, by no run of this state directory: t-0")


def test_a_cancel_leaves_the_decommission_of_another_broker(operators: Operators) -> None:
    die_while_draining(operators)
    die_while_draining(operators, 4)
    assert operators.cancel() == ("uncordon broker 3",)
    assert operators.rig.twin.metadata.configs[ConfigResource.broker(4)][KEY] == "*"
    close(operators, "*")
    assert not is_opened(operators)
    uncordon_drained(operators.rig.client, (4,), operators.context(), operators.said.append, operators.rig.transport)
    assert operators.said[-1] == "uncordon broker 4"


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


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_a_broker_stays_closed_while_the_record_of_maintenance_is_refused(
    operators: Operators, is_asked_for: bool
) -> None:
    die_while_draining(operators)
    odd = OddPort(operators.rig.client)

    def hide(real: Real, names: Iterable[str] | None, **named: object) -> object:
        asked = None if names is None else [*names]
        if asked == [OFFSETS_TOPIC]:
            return Batch({}, {OFFSETS_TOPIC: refusal(TOPIC_AUTHORIZATION_FAILED, OFFSETS_TOPIC)})
        return real(asked, **named)

    odd.answer_always("describe_topics", hide)
    client, context = cast(AdminClient, odd), operators.context()
    if is_asked_for:
        operators.said += cancel_decommission(client, (3,), context, operators.rig.transport).steps
    else:
        uncordon_drained(client, (3,), context, operators.said.append, operators.rig.transport)
    assert operators.cordon == "*"
    assert "broker 3 stays cordoned, since it may be in maintenance" in operators.said[-1]
    assert "To open it: kafka-configs --alter --entity-type brokers --entity-name 3" in operators.said[-1]


@pytest.mark.parametrize("is_interrupted", [True, False])
def test_nothing_begins_to_which_nobody_agreed(operators: Operators, is_interrupted: bool) -> None:
    """A broker was silent when there was to be a question, so that there was none, and answers by now."""
    rig = operators.rig
    if is_interrupted:
        die_while_draining(operators)
    before, runs = rig.twin.metadata.offset, VirtualRuns(rig)
    request, say = DecommissionRequest((3,)), operators.said.append
    found = Decommissioning(rig.client, request, operators.context(), runs, rig.transport, say, is_agreed=False).go_on()
    assert (found.next_step, found.steps, rig.twin.metadata.offset) == (NOT_SHOWN, (), before)


@pytest.mark.parametrize("release", ["4.3", "4.4"])
@pytest.mark.parametrize("calls", [((3, 4),), ((3,), (4,)), ((4,), (3,))], ids=str)
def test_two_brokers_are_emptied_at_once_or_in_turn(
    tmp_path: Path, calls: tuple[tuple[int, ...], ...], release: str
) -> None:
    rig = TwinRig(tmp_path, [[3, 4], [4, 0], [0, 3]], release=release)
    operators = Operators(rig)
    assert all(operators.decommission(*brokers).is_finished for brokers in calls)
    assert not any(is_named(rig, broker) for broker in calls[-1])


@pytest.mark.parametrize("release", ["4.3", "4.4"])
def test_a_list_between_two_cordoned_brokers_is_refused_before_the_cordon(tmp_path: Path, release: str) -> None:
    """Kafka 4.4 does not take it; whether a 4.3 does shows only in brokers that are cordoned."""
    rig = TwinRig(tmp_path, [[3, 4, 0], [4, 0, 1]], release=release)
    operators, runs = Operators(rig), VirtualRuns(rig)
    stepwise = replace(WITHOUT_PLAN, pace=replace(WITHOUT_PLAN.pace, is_stepwise=True))

    def asked(*brokers: int) -> Decommissioning:
        request = DecommissionRequest(brokers, run=stepwise)
        return Decommissioning(rig.client, request, operators.context(), runs, rig.transport, operators.said.append)

    refusal = "t-0 would leave brokers 3, 4 one after the other.*decommission the brokers one after the other"
    with pytest.raises(InputError, match=refusal):
        asked(3, 4).go_on()
    with pytest.raises(InputError, match=refusal):
        preview_decommission(rig.client, DecommissionRequest((3, 4), run=stepwise), operators.context(), rig.transport)
    assert (operators.cordon, operators.said, runs.ids) == (None, [], [])
    assert asked(3).go_on().is_finished


def test_a_list_between_brokers_that_stay_open_is_not_refused(tmp_path: Path) -> None:
    """Kafka refuses their cordon: brokers of 4.3 in a cluster with the metadata version of an older one."""
    rig = TwinRig(tmp_path, [[3, 4, 0], [4, 0, 1]])
    operators, runs, odd = Operators(rig), VirtualRuns(rig), OddPort(rig.client)

    def refuse(real: Real, changes: dict[ConfigResource, list[ConfigChange]], **named: object) -> object:
        if any(CORDON in each for each in changes.values()):
            return Batch({}, dict.fromkeys(changes, refusal(INVALID_CONFIG)))
        return real(changes, **named)

    odd.answer_always("incremental_alter_configs", refuse)
    client, context = cast(AdminClient, odd), operators.context()
    stepwise = replace(WITHOUT_PLAN, pace=replace(WITHOUT_PLAN.pace, is_stepwise=True))
    request = DecommissionRequest((3, 4), run=stepwise)
    shown = preview_decommission(client, request, context, rig.transport)
    assert str(shown.next_step) == "drain brokers 3, 4: t-0, t-1"
    assert "broker 3 cannot be cordoned" in shown.open_ways[0]
    assert Decommissioning(client, request, context, runs, rig.transport, operators.said.append).go_on().is_finished
    assert operators.said == [str(shown.next_step)]


def test_no_step_is_told_of_an_empty_broker_whose_cordon_is_refused(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    odd = OddPort(operators.rig.client)

    def refuse(real: Real, changes: dict[ConfigResource, list[ConfigChange]], **named: object) -> object:
        is_cordon = CORDON in changes.get(BROKER, ())
        return Batch({}, {BROKER: refusal(INVALID_CONFIG)}) if is_cordon else real(changes, **named)

    odd.answer_always("incremental_alter_configs", refuse)
    operators.client = cast(AdminClient, odd)
    found = operators.decommission()
    assert (found.is_finished, found.steps, operators.said) == (True, (), [])


def test_another_run_on_the_cluster_is_not_disturbed(operators: Operators) -> None:
    """Its lease says so before anything is changed."""
    holder = ClusterLease(
        operators.rig.client, operators.rig.transport, LeaseHolder("run-9", "ann", "elsewhere", 0), LeasePolicy.REQUIRE
    )
    assert isinstance(holder.take(), Held)
    with pytest.raises(InputError, match=r"run run-9 of ann@elsewhere .* holds the lease of the cluster"):
        operators.decommission()
    assert operators.cordon is None


def test_replicas_without_a_known_list_do_not_block_for_ever(operators: Operators) -> None:
    """Example: a topic that this client may not see."""
    rig = operators.rig
    odd = OddPort(rig.client)
    hidden = replace(rig.client.describe_topics(["t"])["t"], partitions=())
    odd.answer_always(
        "describe_topics", lambda real, names, **named: real(names, **named) if names else Batch({"t": hidden})
    )
    request, runs = DecommissionRequest((3,)), VirtualRuns(rig)
    client = cast("AdminClient", odd)
    context = replace(operators.context(), poll_s=20.0)
    found = Decommissioning(client, request, context, runs, rig.transport, operators.said.append).go_on()
    assert isinstance(found.next_step, Blocked)
    assert str(found.next_step).startswith(
        "broker 3 still holds t-0, t-1, though no replica list names it there, for 300 s now: it may be of a topic "
        "that this client may not see"
    )


def decommission_with_copies(operators: Operators, copies: Callable[[], Iterable[int]]) -> DecommissionResult:
    """Decommission broker 3, which no list names and whose directories hold these partitions at each look."""
    odd = OddPort(operators.rig.client)

    def stray(real: Real, *args: object, **named: object) -> object:
        held = real(*args, **named)
        if 3 not in held.ok:
            return held
        replicas = tuple(LogDirReplica(tp(number), 1, 0, is_future=False) for number in copies())
        dirs = tuple(replace(each, replicas=replicas) for each in held.ok[3])
        return Batch({**held.ok, 3: dirs}, held.failed)

    def tell(sentence: str) -> None:
        operators.said.append(sentence)
        assert len(operators.said) < 50, "it waits without end"

    odd.answer_always("describe_log_dirs", stray)
    client, runs = cast(AdminClient, odd), VirtualRuns(operators.rig)
    context = replace(operators.context(), poll_s=20.0)
    return Decommissioning(client, DecommissionRequest((3,)), context, runs, operators.rig.transport, tell).go_on()


def test_a_brief_wait_whose_reason_alternates_is_bounded(tmp_path: Path) -> None:
    operators, looks = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]])), count()
    found = decommission_with_copies(operators, lambda: [next(looks) % 2])
    assert "for 300 s now: it may be of a topic that this client may not see" in str(found.next_step)


def test_a_wait_for_a_deletion_lasts_while_copies_become_fewer(tmp_path: Path) -> None:
    """Every 200 s a copy is deleted; the last one stays at first."""
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    begun_s = operators.rig.transport.monotonic_s()

    def left(at_least: int) -> range:
        return range(max(at_least, 5 - int((operators.rig.transport.monotonic_s() - begun_s) // 200)))

    found = decommission_with_copies(operators, lambda: left(1)).next_step
    assert str(found).startswith("broker 3 still holds t-0, though no replica list names it there, for 300 s now")
    begun_s = operators.rig.transport.monotonic_s()
    assert decommission_with_copies(operators, lambda: left(0)).is_finished


def test_an_only_copy_on_a_dead_broker_is_the_cause_that_is_told(operators: Operators) -> None:
    operators.rig.client.create_topics([NewTopic("only", assignments=((3,),))]).raise_if_any()
    operators.rig.twin.crash(3)
    operators.rig.transport.sleep(30)
    with pytest.raises(InputError, match=r"broker 3 cannot be emptied: only-0 must stay \(no live broker has a copy"):
        operators.decommission()
