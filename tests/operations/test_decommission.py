"""Brokers of a twin are taken out of service, whatever happens meanwhile, by whoever goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import cast

import pytest

from kreassign.admin import AdminClient
from kreassign.errors import Infeasible, InputError
from kreassign.executor.brokers import NOT_SHOWN, Blocked
from kreassign.executor.history.run_history import read_history
from kreassign.executor.journal import Journal
from kreassign.executor.lease import ClusterLease, Held, LeaseHolder, LeasePolicy
from kreassign.model import Batch, ConfigChange, LogDirReplica, NewTopic
from kreassign.model.plan_facts import PlanFacts, Totals
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.broker_changes import noted_decommissions
from kreassign.operations.decommission import (
    WITHOUT_PLAN,
    DecommissionRequest,
    DecommissionResult,
    preview_decommission,
)
from kreassign.planner.problem.policy import PlanPolicy
from kreassign.twin.access import ALL_TOPICS, ANONYMOUS, Allow, Operation, Permissions
from kreassign.twin.blueprint import Blueprint
from kreassign.twin.cluster import Twin
from tests.approved import approve
from tests.executor.odd_port import OddPort, Real
from tests.executor.twin_runs import RATE, TwinRig, tp
from tests.operations.decommissions import (
    BROKER,
    KEY,
    LISTS,
    OF_3,
    Killed,
    Operators,
    VirtualRuns,
    close,
    die_while_draining,
    is_named,
    keep,
    kill_while_moving,
    of_release,
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

    operators.stop()
    rig.let_reach_controllers()
    ended = operators.decommission(unregisters=True)
    assert ended.is_finished
    approve(operators.said, "unregister-a-stopped-broker")
    assert 3 not in rig.twin.metadata.brokers
    assert operators.cordon is None
    assert operators.decommission(unregisters=True).steps == (), "again: nothing is left to do"


def test_an_empty_broker_unregistered_here_is_done_when_asked_again(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    operators.empty_and_stop()
    assert operators.decommission(unregisters=True).is_finished
    again = operators.decommission(unregisters=True)
    assert (again.is_finished, again.steps) == (True, ())
    with pytest.raises(InputError, match="broker 3 is not known"):
        preview_decommission(operators.client, OF_3, operators.context(tmp_path / "elsewhere"))


def test_an_empty_broker_others_unregistered_is_done_when_asked_again(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    operators.empty_and_stop()
    operators.rig.client.unregister_broker(3)
    assert operators.decommission(unregisters=True).is_finished
    with pytest.raises(InputError, match="broker 9 is not known"):
        operators.decommission(9, unregisters=True)


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


def test_the_first_step_is_shown_and_nothing_is_changed(operators: Operators) -> None:
    found = operators.preview()
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
    operators.die_while_moving()
    found = operators.decommission()
    assert operators.said[0] == "resume run run-1, which drains broker 3"
    assert (found.is_finished, [run.run_id for run in found.runs]) == (True, ["run-1"])
    assert operators.rig.throttles == {}


def test_a_drain_whose_process_was_killed_is_finished_from_another_machine(
    operators: Operators, tmp_path: Path
) -> None:
    """Moves in flight are waited for; a run of its own drains the rest."""
    rig = operators.rig
    operators.die_while_moving()
    assert rig.client.list_partition_reassignments()
    rig.state_dir = tmp_path / "elsewhere"
    assert operators.decommission().is_finished
    assert operators.said[0].startswith("wait: t-0, t-1 are being reassigned to broker 3 or away from it")
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
    assert operators.go_on(OF_3, runs, tell=tell).is_finished
    assert operators.said[2:] == [f"wait: brokers to show the same as broker {behind}"]
    assert runs.ids == ["run-1"]


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
    with pytest.raises(InputError, match="are those of cluster other, and the brokers of cluster twin; name"):
        operators.cancel() if way == "cancel" else operators.decommission(unregisters=True)
    assert other.twin.metadata.configs[BROKER][KEY] == "*"
    assert 3 in rig.twin.metadata.brokers


def test_a_partition_that_cannot_move_is_named_before_anything_is_changed(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1, 2, 3, 4]]))
    with pytest.raises(Infeasible, match=r"t-0|replica"):
        operators.decommission()
    assert (operators.cordon, operators.said) == (None, [])


def test_a_topic_that_may_not_move_is_named_before_anything_moves(operators: Operators) -> None:
    request = DecommissionRequest((3,), policy=PlanPolicy(excluded_topics=("t",)))
    runs = VirtualRuns(operators.rig)
    said = r"t-0, t-1 must stay \(of an excluded topic\); take the topic out of .*\n.*decommission 3 --may-stay t`"
    with pytest.raises(Infeasible, match=said):
        operators.go_on(request, runs)
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
    assert operators.preview(request).drain is not None
    runs = VirtualRuns(rig)
    found = operators.go_on(request, runs)
    assert (found.is_finished, runs.ids) == (True, ["run-1"])
    assert "broker 3 is empty but for canary-0, canary-1, which may stay:" in str(found.next_step)
    canary = rig.client.describe_topics(["canary"])["canary"]
    assert tuple(one.replicas for one in canary.partitions) == lists
    assert not any(3 in replicas for replicas in rig.replicas.values())


def test_a_pattern_of_topics_that_may_stay_matches_some_topic(operators: Operators) -> None:
    for pattern, said in (("canarry.*", "no topic matches 'canarry.*'"), ("[", "is not a regular expression")):
        with pytest.raises(InputError, match=said):
            operators.preview(DecommissionRequest((3,), may_stay=(pattern,)))


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
    with pytest.raises(InputError, match="AlterConfigs on topic t"):
        operators.go_on(request)
    assert operators.said == []


def test_permissions_are_checked_once_in_a_wait(tmp_path: Path) -> None:
    """The partitions that it waits for change from one look to the next."""
    operators, checks = Operators(TwinRig(tmp_path, LISTS, size_bytes=200 * RATE)), list[int]()
    rig, odd = operators.rig, OddPort(operators.rig.client)
    operators.client = cast(AdminClient, odd)
    begin_move_of_others(rig)

    def tell(sentence: str) -> None:
        if sentence.startswith("wait"):
            checks.append([method for method, *_ in odd.calls].count("check_reassignment_permission"))
            if len(checks) == 1:
                rig.client.alter_partition_reassignments({tp(0): (0, 1)}).raise_if_any()

    assert operators.go_on(OF_3, tell=tell).is_finished
    assert len(checks) > 1
    assert set(checks) == {1}


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


def test_a_preview_says_that_a_dead_broker_will_be_unregistered(operators: Operators) -> None:
    rig = operators.rig
    seen = {}
    for is_live in (True, False):
        if not is_live:
            operators.stop()
        request = DecommissionRequest((3,), unregisters=True)
        seen[is_live] = operators.preview(request).unregistered
    assert seen == {True: (), False: (3,)}
    rig.let_reach_controllers()
    assert operators.decommission(unregisters=True).is_finished
    assert "unregister broker 3" in operators.said


@pytest.mark.parametrize("is_interrupted", [True, False])
def test_nothing_begins_to_which_nobody_agreed(operators: Operators, is_interrupted: bool) -> None:
    """A broker was silent when there was to be a question, so that there was none, and answers by now."""
    rig = operators.rig
    if is_interrupted:
        die_while_draining(operators)
    before = rig.twin.metadata.offset
    found = operators.go_on(OF_3, is_agreed=False)
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


@pytest.mark.parametrize("is_previewed", [True, False])
def test_moves_of_an_interrupted_run_here_are_not_waited_for(tmp_path: Path, is_previewed: bool) -> None:
    """No cordon comes first on this release, before which the run would be named."""
    operators = Operators(TwinRig(tmp_path, LISTS, release="3.9"))
    kill_while_moving(operators.rig, operators.rig.prepared({2: (2, 3)}))
    with pytest.raises(InputError, match="run run-1 was left on this cluster with 1 move under way"):
        operators.preview() if is_previewed else operators.decommission()
    assert operators.said == []


@pytest.mark.parametrize("is_previewed", [True, False])
def test_an_interrupted_run_of_topics_that_may_stay_is_not_waited_for(tmp_path: Path, is_previewed: bool) -> None:
    """A log directory that is offline is looked at twice; no cordon comes first on this release."""
    rig = TwinRig(tmp_path, [[0, 1], [1, 2]], release="3.9")
    kill_while_moving(rig, rig.prepared({1: (1, 3)}))
    operators = Operators(rig)

    def unread(real: Real, *args: object, **named: object) -> object:
        held = real(*args, **named)
        offline = tuple(replace(each, error="KAFKA_STORAGE_ERROR", replicas=()) for each in held.ok.get(3, ()))
        return Batch({**held.ok, 3: offline} if offline else held.ok, held.failed)

    operators.answer_always("describe_log_dirs", unread)
    request = DecommissionRequest((3,), may_stay=("t",))
    if is_previewed:
        assert "could not be read" in str(operators.preview(request).next_step)
    else:
        assert "broker 3 but for t-1, which may stay" in str(operators.go_on(request, poll_s=20.0).next_step)


def test_an_interrupted_run_keeps_no_cordon_from_a_broker_without_a_drain(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 3], [1, 2]]))
    kill_while_moving(operators.rig, operators.rig.prepared({1: (1, 4)}))
    assert operators.go_on(DecommissionRequest((3,), may_stay=("t",))).is_finished
    assert operators.cordon == "*"


def test_a_preview_calls_the_moves_of_its_own_drain_no_others(operators: Operators) -> None:
    operators.die_while_moving()
    seen = operators.preview()
    assert seen.resumed == ("run-1",)
    assert str(seen.next_step) == "wait: t-0, t-1 are being reassigned to broker 3 or away from it"


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
    hidden = replace(operators.client.describe_topics(["t"])["t"], partitions=())
    operators.answer_always(
        "describe_topics", lambda real, names, **named: real(names, **named) if names else Batch({"t": hidden})
    )
    found = operators.go_on(OF_3, poll_s=20.0)
    assert isinstance(found.next_step, Blocked)
    assert str(found.next_step).startswith(
        "broker 3 still holds t-0, t-1, though no replica list names it there, for 300 s now: it may be of a topic "
        "that this client may not see"
    )


def decommission_with_copies(operators: Operators, copies: Callable[[], Iterable[int]]) -> DecommissionResult:
    """Decommission broker 3, which no list names and whose directories hold these partitions at each look."""

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

    operators.answer_always("describe_log_dirs", stray)
    return operators.go_on(OF_3, tell=tell, poll_s=20.0)


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
