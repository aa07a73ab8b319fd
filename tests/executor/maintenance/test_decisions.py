"""Maintenance of brokers, decided from what the cluster says and what was written down, wherever it is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kreassign.errors import InputError
from kreassign.executor.brokers import Await, Blocked, BrokerReading, Cordon, CordonReading, Finished, Readings
from kreassign.executor.maintenance.decisions import (
    BeginEnd,
    Elect,
    Forget,
    Lists,
    MaintenanceFacts,
    Remember,
    Reorder,
    Step,
    Uncordon,
    next_to_enter,
    next_to_exit,
    to_be_named,
)
from kreassign.executor.maintenance.record import (
    Entered,
    KnownMaintenance,
    MaintenanceRecord,
    Reordering,
    format_record,
    known_maintenance,
    parse_record,
)
from kreassign.model import LogDir, OngoingReassignment, Partition, TopicPartition
from tests.approved import approve

MOST_STEPS = 25
GROUPS = [(2,), (3,), (4,), (3, 4)]
LISTS = {0: (3, 1, 2), 1: (1, 3, 2), 2: (2, 1, 4), 3: (3, 4, 1)}


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


@dataclass
class Cluster:
    """The part of a cluster that maintenance reads, and its record."""

    lists: dict[int, tuple[int, ...]] = field(default_factory=lambda: dict(LISTS))
    leaders: dict[int, int] = field(default_factory=dict)
    out_of_sync: set[tuple[int, int]] = field(default_factory=set)
    down: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    values: dict[int, str] = field(default_factory=dict)
    moving: dict[int, OngoingReassignment] = field(default_factory=dict)
    min_isr: int = 2
    has_cordon: bool = True
    binds: bool = True
    tells_registered: bool = True
    record: MaintenanceRecord = field(default_factory=MaintenanceRecord)
    busy: frozenset[TopicPartition] = frozenset()
    coming: Mapping[TopicPartition, frozenset[int]] = field(default_factory=dict)
    now_ms: int = 0
    topic_ids: Mapping[str, str] = field(default_factory=lambda: {"t": "first"})

    def __post_init__(self) -> None:
        self.leaders = {number: replicas[0] for number, replicas in self.lists.items()} | self.leaders

    def isr(self, number: int) -> tuple[int, ...]:
        return tuple(
            broker
            for broker in self.lists[number]
            if broker not in self.down and (number, broker) not in self.out_of_sync
        )

    def facts(self, *brokers: int) -> MaintenanceFacts:
        partitions = tuple(
            Partition(tp(number), replicas, self.isr(number), self.leaders[number])
            for number, replicas in self.lists.items()
        )
        found = Readings(
            frozenset({1, 2, 3, 4}) - self.down,
            tuple(self._reading(broker) for broker in brokers),
            partitions,
            frozenset(map(tp, self.moving)),
            topic_ids=self.topic_ids,
        )
        facts = MaintenanceFacts(found, {"t": self.min_isr}, self.record, self.busy, coming=self.coming)
        refused = sorted(to_be_named(facts) & self.values.keys()) if self.binds else ()
        return replace(facts, refused=dict.fromkeys(refused, "all its working log directories are cordoned"))

    def _reading(self, broker: int) -> BrokerReading:
        is_live = broker not in self.down
        value = self.values.get(broker)
        log_dirs = (LogDir("/d", None, None, None, value is not None, ()),)
        return BrokerReading(
            broker,
            is_live,
            broker not in self.gone if is_live or self.tells_registered else None,
            CordonReading(self.has_cordon, value, log_dirs) if is_live else None,
            replicas=tuple(tp(number) for number, replicas in self.lists.items() if broker in replicas),
            arriving={tp(number): move for number, move in self.moving.items() if broker in move.adding},
        )

    def take(self, step: Step, *, only_written: bool = False) -> None:
        """Carry a step out; `only_written` is a process that dies when it has written down what it is about to do."""
        self.now_ms += 1
        match step:
            case Remember(brokers, cordoned):
                self.record = self.record.entered(brokers, self.now_ms, "ann", cordoned)
            case Reorder(targets, present):
                self._reorder(targets, present, only_written=only_written)
            case Cordon(brokers):
                self.values |= dict.fromkeys(brokers, "*")
            case Uncordon(brokers):
                for broker in brokers:
                    self.values.pop(broker, None)
                if not only_written:
                    self.record = self.record.uncordoned(brokers, self.now_ms)
            case Elect(names):
                for name in names:
                    first = self.lists[name.partition][0]
                    assert first in self.isr(name.partition)
                    self.leaders[name.partition] = first
            case BeginEnd(brokers):
                self.record = self.record.with_end_begun(brokers, self.now_ms)
            case Forget(brokers, _, restored):
                self.record = self.record.left(brokers, self.now_ms, restored)
            case Await():
                self.out_of_sync.clear()
                self.moving.clear()

    def _reorder(self, targets: Lists, present: Lists, *, only_written: bool) -> None:
        known = self.record.orders
        if any(name not in known or known[name].original != target for name, target in targets.items()):
            self.record = self.record.reordered(present, targets, self.now_ms, self.topic_ids)
        if only_written:
            return
        for name, target in targets.items():
            assert sorted(target) == sorted(self.lists[name.partition]), "an order copies nothing"
            assert name.partition not in self.moving, "the move would be overridden"
            assert not self.binds or self.values.keys().isdisjoint(target), "Kafka 4.4 refuses it"
            self.lists[name.partition] = target

    def unregister(self, broker: int) -> None:
        self.stop(broker)
        self.gone.add(broker)

    def stop(self, broker: int) -> None:
        """In order: its leaders go to whoever is in sync."""
        self.down.add(broker)
        for number, leader in self.leaders.items():
            if leader == broker:
                self.leaders[number] = self.isr(number)[0]

    def start(self, broker: int) -> None:
        self.down.discard(broker)


def way(cluster: Cluster, decide: Callable[[MaintenanceFacts], Step], *brokers: int) -> list[Step]:
    taken: list[Step] = []
    while not taken or not isinstance(taken[-1], Finished | Blocked):
        taken.append(decide(cluster.facts(*brokers)))
        cluster.take(taken[-1])
        assert len(taken) < MOST_STEPS, taken
    return taken


def kinds(steps: list[Step]) -> list[type[Step]]:
    return [type(step) for step in steps]


# --- the way --------------------------------------------------------------------------------------------------------


def test_maintenance_takes_leaders_off_and_gives_them_back() -> None:
    cluster = Cluster()
    steps = way(cluster, next_to_enter, 3)
    assert kinds(steps) == [Remember, Reorder, Elect, Remember, Cordon, Finished]
    approve(steps, "maintenance-enter")
    assert cluster.lists == {0: (1, 2, 3), 1: (1, 3, 2), 2: (2, 1, 4), 3: (4, 1, 3)}, "4 leads nothing yet"
    assert cluster.leaders == {0: 1, 1: 1, 2: 2, 3: 4}
    assert kinds(way(cluster, next_to_enter, 3)) == [Finished], "entering twice changes nothing"
    cluster.stop(3)
    (again,) = way(cluster, next_to_enter, 3)
    assert str(again) == "broker 3 is in maintenance, and not live"
    (early,) = way(cluster, next_to_exit, 3)
    assert "start it, or take it out (`kreassign decommission 3 --unregister`)" in str(early)
    cluster.start(3)
    cluster.out_of_sync = {(0, 3)}
    steps = way(cluster, next_to_exit, 3)
    assert kinds(steps) == [BeginEnd, Uncordon, Await, Reorder, Elect, Forget, Finished]
    approve(steps, "maintenance-exit")
    assert (cluster.lists, cluster.leaders, cluster.values) == (LISTS, {0: 3, 1: 1, 2: 2, 3: 3}, {})
    assert (dict(cluster.record.brokers), dict(cluster.record.orders)) == ({}, {})
    assert kinds(way(cluster, next_to_exit, 3)) == [Finished]


def test_two_brokers_leave_in_turn_and_an_absent_one_never_leads() -> None:
    """Kafka before 4.4 takes lists that name a cordoned broker."""
    cluster = Cluster({0: (3, 4, 1, 2), 1: (4, 3, 1, 2)}, binds=False)
    way(cluster, next_to_enter, 3)
    way(cluster, next_to_enter, 4)
    assert [cluster.leaders[number] in {1, 2} for number in (0, 1)] == [True, True]
    way(cluster, next_to_exit, 4)
    assert (cluster.lists[1], cluster.leaders[1]) == ((4, 3, 1, 2), 4)
    assert cluster.leaders[0] != 3, "broker 3 is still away"
    way(cluster, next_to_exit, 3)
    assert cluster.lists == {0: (3, 4, 1, 2), 1: (4, 3, 1, 2)}
    assert cluster.leaders == {0: 3, 1: 4}
    assert cluster.values == {}


# --- brokers that no changed list may name (Kafka 4.4) --------------------------------------------------------------


@pytest.mark.parametrize("order", [(3, 4), (4, 3)], ids=str)
def test_lists_of_two_brokers_go_back_with_the_end_of_the_last_maintenance(order: tuple[int, int]) -> None:
    before = {0: (3, 4, 1, 2), 1: (4, 3, 1, 2), 2: (order[0], 1, 2)}
    cluster = Cluster(dict(before))
    assert isinstance(way(cluster, next_to_enter, 3, 4)[-1], Finished)
    assert set(cluster.leaders.values()) <= {1, 2}
    steps = way(cluster, next_to_exit, order[0])
    assert isinstance(steps[-1], Finished)
    assert cluster.lists[2] == before[2]
    assert {cluster.lists[number][0] for number in (0, 1)} <= {1, 2}, "they name the other one, which is cordoned"
    (forget,) = (str(step) for step in steps if isinstance(step, Forget))
    assert f"until broker {order[1]}, which is cordoned, leaves its maintenance, too" in forget
    assert isinstance(way(cluster, next_to_exit, order[1])[-1], Finished)
    assert (cluster.lists, cluster.values) == (before, {})
    assert cluster.leaders == {number: replicas[0] for number, replicas in before.items()}
    assert dict(cluster.record.orders) == {}


@pytest.mark.parametrize("order", [*permutations((2, 3, 4))], ids=str)
def test_lists_go_back_whoever_leaves_between_two_brokers_that_they_name(order: tuple[int, ...]) -> None:
    before = {0: (3, 4, 1), 1: (2, 1), 2: (4, 3, 1)}
    cluster = Cluster(dict(before), min_isr=1)
    assert isinstance(way(cluster, next_to_enter, 2, 3, 4)[-1], Finished)
    for broker in order:
        steps = way(cluster, next_to_exit, broker)
        assert isinstance(steps[-1], Finished)
        assert not any("somebody else" in str(step) for step in steps)
    assert (cluster.lists, cluster.values) == (before, {})
    assert cluster.leaders == {number: replicas[0] for number, replicas in before.items()}
    assert dict(cluster.record.orders) == {}


def test_a_list_naming_a_broker_in_maintenance_blocks_another() -> None:
    cluster = Cluster({0: (4, 1, 2), 1: (3, 4, 1)}, min_isr=1)
    way(cluster, next_to_enter, 4)
    before = replace(cluster.record), dict(cluster.lists)
    (step,) = way(cluster, next_to_enter, 3)
    approve([step], "names-a-broker-in-maintenance")
    assert (cluster.record, cluster.lists) == before
    way(cluster, next_to_exit, 4)
    assert isinstance(way(cluster, next_to_enter, 3, 4)[-1], Finished)


def test_a_cordon_of_others_is_named_before_anything_is_changed() -> None:
    cluster = Cluster(values={3: "*"})
    (step,) = way(cluster, next_to_enter, 3)
    approve([step], "cordoned-by-others")
    assert (cluster.values, cluster.record, cluster.lists) == ({3: "*"}, MaintenanceRecord(), LISTS)


def test_a_dead_cordoned_broker_is_to_be_started_or_emptied() -> None:
    cluster = Cluster(values={4: "*"}, down={4}, min_isr=1)
    (step,) = way(cluster, next_to_enter, 3)
    assert "it is not live: start it, or move its replicas away (`kreassign decommission 4`)" in str(step)


def test_a_later_foreign_cordon_is_named_at_the_end() -> None:
    cluster = Cluster({0: (3, 1, 2), 1: (3, 4, 1)})
    way(cluster, next_to_enter, 3)
    cluster.values[4] = "*"
    steps = way(cluster, next_to_exit, 3)
    assert kinds(steps) == [BeginEnd, Uncordon, Reorder, Elect, Blocked]
    approve(steps[-1:], "keeps-its-order")
    assert (cluster.lists, cluster.values) == ({0: (3, 1, 2), 1: (4, 1, 3)}, {4: "*"})
    del cluster.values[4]
    assert kinds(way(cluster, next_to_exit, 3)) == [Reorder, Elect, Forget, Finished]
    assert cluster.lists == {0: (3, 1, 2), 1: (3, 4, 1)}


@pytest.mark.parametrize("reordered", [0, 1, 2])
@pytest.mark.parametrize("decide", [next_to_enter, next_to_exit])
def test_the_order_of_earlier_versions_is_gone_on_with(
    decide: Callable[[MaintenanceFacts], Step], reordered: int
) -> None:
    """They cordoned first: with the lists as they were, written down, or changed, the broker has its cordon."""
    cluster = Cluster()
    cluster.take(Remember((3,)))
    cluster.take(Remember((3,), (3,)))
    change = next_to_enter(cluster.facts(3))
    assert isinstance(change, Reorder)
    if reordered:
        cluster.take(change, only_written=reordered == 1)
    cluster.take(Cordon((3,)))
    steps = way(cluster, decide, 3)
    assert isinstance(steps[-1], Finished)
    assert cluster.values == ({} if decide is next_to_exit else {3: "*"})
    assert isinstance(way(cluster, next_to_exit, 3)[-1], Finished)
    assert (cluster.lists, cluster.values) == (LISTS, {})
    assert cluster.leaders == {number: replicas[0] for number, replicas in LISTS.items()}


# --- what is in the way ---------------------------------------------------------------------------------------------


def test_maintenance_is_refused_where_it_would_break_min_isr() -> None:
    cluster = Cluster({0: (3, 1), 1: (3,), 2: (1, 2)})
    (step,) = way(cluster, next_to_enter, 3)
    approve([step], "min-isr-would-be-lost")
    assert (cluster.values, cluster.record) == ({}, MaintenanceRecord())


def test_a_topic_whose_min_isr_nobody_may_read_is_named() -> None:
    (step,) = way(Cluster(), lambda facts: next_to_enter(replace(facts, min_isr={}, unread={"t": "no answer"})), 3)
    approve([step], "min-isr-cannot-be-read")


def test_brokers_that_are_in_maintenance_already_do_not_count() -> None:
    cluster = Cluster({0: (3, 1, 2), 1: (4, 1, 2)})
    way(cluster, next_to_enter, 3)
    assert isinstance(way(cluster, next_to_enter, 4)[-1], Finished), "other partitions"
    (step,) = way(cluster, next_to_enter, 1)
    assert "without broker 1 (with brokers 3, 4 in maintenance, too), 2 partitions would lose" in str(step)


def test_a_replica_that_is_catching_up_is_waited_for() -> None:
    cluster = Cluster(out_of_sync={(0, 1), (0, 2)})
    steps = way(cluster, next_to_enter, 3)
    assert kinds(steps) == [Remember, Reorder, Elect, Await, Reorder, Elect, Remember, Cordon, Finished]
    assert str(steps[3]) == "wait: t-0 has [] in sync besides, and needs 2"


def test_a_moving_partition_keeps_order_and_leader_until_shutdown() -> None:
    cluster = Cluster(moving={3: OngoingReassignment((3, 4, 1), (4,), ())}, busy=frozenset({tp(0)}))
    steps = way(cluster, next_to_enter, 3)
    assert kinds(steps) == [Remember, Remember, Cordon, Finished]
    assert "it leads only t-0, t-3, which a reassignment keeps until it shuts down" in str(steps[-1])


def test_what_is_being_reassigned_to_it_is_waited_for() -> None:
    steps = way(Cluster(moving={2: OngoingReassignment((2, 1, 4, 3), (3,), ())}), next_to_enter, 3)
    assert kinds(steps) == [Remember, Reorder, Elect, Remember, Cordon, Await, Finished]
    assert str(steps[5]) == "wait: t-2 is being reassigned to broker 3"


def test_without_cordons_a_run_towards_the_broker_has_to_be_paused() -> None:
    cluster = Cluster(has_cordon=False, coming={tp(2): frozenset({3})})
    assert "a run of this state directory is still to move t-2 to broker 3" in str(way(cluster, next_to_enter, 3)[-1])
    cluster.coming = {tp(2): frozenset({1})}
    assert "it is not cordoned" in str(way(cluster, next_to_enter, 3)[-1])


def test_a_cordon_that_takes_the_place_of_somebody_elses_is_taken_back() -> None:
    cluster = Cluster(values={3: "*"}, binds=False)
    way(cluster, next_to_enter, 3)
    cluster.values = {}
    assert kinds(way(cluster, next_to_enter, 3)) == [Remember, Cordon, Finished]
    way(cluster, next_to_exit, 3)
    assert cluster.values == {}


def test_directories_cordoned_in_part_by_others_prevent_the_start() -> None:
    cluster = Cluster()
    found = cluster.facts(3).found
    cordon = CordonReading(
        True, "/d", (LogDir("/d", None, None, None, True, ()), LogDir("/e", None, None, None, False, ()))
    )
    partly = replace(found, brokers=(replace(found.brokers[0], cordon=cordon),))
    step = next_to_enter(replace(cluster.facts(3), found=partly))
    assert isinstance(step, Blocked)
    assert str(step).startswith("cordoned.log.dirs of broker 3 is /d: some directories are cordoned already")


def test_a_broker_that_was_unregistered_meanwhile_is_forgotten() -> None:
    cluster = Cluster()
    way(cluster, next_to_enter, 3)
    cluster.unregister(3)
    assert list(map(str, way(cluster, next_to_exit, 3))) == [
        "end the maintenance of broker 3",
        "broker 3 is not registered",
    ]
    assert dict(cluster.record.brokers) == {}


def test_a_broker_beside_one_that_was_unregistered_leaves_all_the_same() -> None:
    cluster = Cluster({0: (3, 1, 2), 1: (4, 1, 2)})
    way(cluster, next_to_enter, 3, 4)
    cluster.lists[1] = (1, 2, 3)
    cluster.unregister(4)
    steps = way(cluster, next_to_exit, 3, 4)
    assert kinds(steps) == [Forget, BeginEnd, Uncordon, Reorder, Elect, Forget, Finished]
    assert (cluster.lists[0], cluster.values) == ((3, 1, 2), {4: "*"})


def test_a_dead_broker_of_no_list_leaves_where_registrations_are_unknown() -> None:
    """Before Kafka 4.0; otherwise its maintenance could never end, and would keep others from theirs."""
    cluster = Cluster(has_cordon=False, tells_registered=False)
    way(cluster, next_to_enter, 3)
    cluster.stop(3)
    (named,) = way(cluster, next_to_exit, 3)
    assert "broker 3 is not live: start it, or take it out (`kreassign decommission 3`)" in str(named)
    cluster.lists = {0: (1, 2, 4)}
    facts = cluster.facts(3)
    hidden = next_to_exit(replace(facts, found=replace(facts.found, unseen=("hidden",))))
    assert isinstance(hidden, Blocked), "its list may name it"
    assert kinds(way(cluster, next_to_exit, 3)) == [Forget, Finished]
    assert dict(cluster.record.brokers) == {}


def test_a_cordon_of_somebody_else_outlives_the_maintenance() -> None:
    cluster = Cluster(values={3: "*"}, binds=False)
    way(cluster, next_to_enter, 3)
    way(cluster, next_to_exit, 3)
    assert cluster.values == {3: "*"}


def test_a_cordon_that_was_opened_and_not_recorded_is_recorded_first() -> None:
    """Its process died in between; what others cordon after that is theirs."""
    cluster = Cluster(binds=False)
    way(cluster, next_to_enter, 3)
    cluster.take(next_to_exit(cluster.facts(3)))
    cluster.take(next_to_exit(cluster.facts(3)), only_written=True)
    assert (cluster.values, cluster.record.brokers[3].is_cordoned) == ({}, True)
    cluster.out_of_sync = {(0, 3)}
    cluster.take(next_to_exit(cluster.facts(3)))
    cluster.values = {3: "*"}
    assert isinstance(way(cluster, next_to_exit, 3)[-1], Finished)
    assert (cluster.values, cluster.lists) == ({3: "*"}, LISTS)


@pytest.mark.parametrize("has_cordon", [False, True])
def test_a_broker_that_enters_while_it_leaves_is_recorded_as_staying(has_cordon: bool) -> None:
    cluster = Cluster(has_cordon=has_cordon)
    way(cluster, next_to_enter, 3)
    cluster.take(next_to_exit(cluster.facts(3)))
    assert cluster.record.leaving == {3}
    assert kinds(way(cluster, next_to_enter, 3)) == [Remember, Finished]
    assert cluster.record.staying == {3}
    cluster.take(next_to_exit(cluster.facts(3)))
    cluster.stop(3)
    assert kinds(way(cluster, next_to_enter, 3)) == [Remember, Finished], "it is not live"


def test_a_list_changed_by_others_is_left_alone_and_named() -> None:
    cluster = Cluster()
    way(cluster, next_to_enter, 3)
    cluster.lists[0] = (2, 3, 1)
    steps = way(cluster, next_to_exit, 3)
    (forget,) = (step for step in steps if isinstance(step, Forget))
    assert "t-0 keeps [2, 3, 1], for somebody else has changed or moves it" in str(forget)
    assert (cluster.lists[0], cluster.lists[3]) == ((2, 3, 1), (3, 4, 1))


def test_a_broker_without_a_record_is_in_service_but_cordoned() -> None:
    cluster = Cluster()
    way(cluster, next_to_enter, 3)
    cluster.record = MaintenanceRecord()
    (step,) = way(cluster, next_to_exit, 3)
    approve([step], "in-service-and-cordoned")


# --- wherever it is interrupted -------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(
    st.permutations(range(1, 5)).flatmap(
        lambda order: st.lists(st.permutations(order).map(lambda one: tuple(one[:3])), min_size=1, max_size=5)
    ),
    st.lists(st.tuples(st.sampled_from(["enter", "exit"]), st.booleans()), max_size=14),
    st.sampled_from([(False, False), (True, False), (True, True)]),
    st.integers(0, 14),
)
def test_whoever_goes_on_after_whatever_interruption_ends_where_it_began(
    lists: list[tuple[int, ...]], events: list[tuple[str, bool]], cordons: tuple[bool, bool], upgraded: int
) -> None:
    """Each event is one process that takes one step of either way, dying after it or in the middle of it.

    The brokers have cordons or not, and from one of the events on these bind or not.
    """
    before = dict(enumerate(lists))
    cluster = Cluster(dict(before), has_cordon=cordons[0], binds=False)
    for number, (verb, only_written) in enumerate(events):
        cluster.binds = cordons[1] and number >= upgraded
        step = (next_to_enter if verb == "enter" else next_to_exit)(cluster.facts(3))
        cluster.take(step, only_written=only_written)
    cluster.binds = cordons[1]
    *_, entered = way(cluster, next_to_enter, 3)
    assert isinstance(entered, Finished)
    assert 3 not in cluster.leaders.values()
    cluster.stop(3)
    cluster.start(3)
    *_, left = way(cluster, next_to_exit, 3)
    assert isinstance(left, Finished)
    assert (cluster.lists, cluster.values) == (before, {})
    assert all(cluster.leaders[number] == 3 for number, one in before.items() if one[0] == 3)
    assert (dict(cluster.record.brokers), dict(cluster.record.orders)) == ({}, {})


@settings(max_examples=300)
@given(
    st.lists(st.permutations(range(1, 5)).map(lambda one: tuple(one[:3])), min_size=1, max_size=5),
    st.lists(st.tuples(st.sampled_from(["enter", "exit"]), st.sampled_from(GROUPS), st.booleans()), max_size=20),
    st.sampled_from([(False, False), (True, False), (True, True)]),
    st.integers(0, 20),
    st.permutations(GROUPS),
)
def test_brokers_leave_maintenance_as_they_entered_it(
    lists: list[tuple[int, ...]],
    events: list[tuple[str, tuple[int, ...], bool]],
    cordons: tuple[bool, bool],
    upgraded: int,
    last: list[tuple[int, ...]],
) -> None:
    """As above, of each of three brokers, or two at once."""
    before = dict(enumerate(lists))
    cluster = Cluster(dict(before), min_isr=1, has_cordon=cordons[0], binds=False)
    for number, (verb, brokers, only_written) in enumerate(events):
        cluster.binds = cordons[1] and number >= upgraded
        step = (next_to_enter if verb == "enter" else next_to_exit)(cluster.facts(*brokers))
        cluster.take(step, only_written=only_written)
        if verb == "enter" and isinstance(step, Finished):
            assert not set(brokers) & set(cluster.leaders.values())
    cluster.binds = cordons[1]
    for brokers in last:
        assert isinstance(way(cluster, next_to_exit, *brokers)[-1], Finished)
    assert (cluster.lists, cluster.values) == (before, {})
    assert cluster.leaders == {number: replicas[0] for number, replicas in before.items()}
    assert (dict(cluster.record.brokers), dict(cluster.record.orders)) == ({}, {})


# --- what is written down -------------------------------------------------------------------------------------------


def test_a_record_is_read_back_as_it_was_written() -> None:
    cluster = Cluster()
    way(cluster, next_to_enter, 3)
    assert {order.topic_id for order in cluster.record.orders.values()} == {"first"}
    assert parse_record(format_record(cluster.record)) == cluster.record
    without = replace(cluster.record, orders={tp(0): Reordering((3, 1), (1, 3), (3, 1)), tp(1): Reordering((1,), (1,))})
    assert parse_record(format_record(without)) == without
    assert parse_record(format_record(MaintenanceRecord())) == MaintenanceRecord()


@pytest.mark.parametrize("text", [
    "", "[]", "{}", "[5,0,[],[]]", "[4,0,[],[],0]", "[5,0,[3],[],0]", "[5,0,[],3,0]", '[5,0,[],[["t",null,3]],0]',
    "[5,0,[],[],[]]", "[5,Infinity,[],[],0]", "[5,0.5,[],[],0]", '[5,0,[[3,1e15,"ann",true,false]],[],0]', "[" * 99_999,
    '[5,0,[],[["t",null,[[0,"31",[1,3]]]]],0]',
])  # fmt: skip
def test_what_is_no_record_is_not_read_as_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_record(text)


IDS = {"t": "first"}


def test_the_first_order_counts_however_often_a_list_is_changed() -> None:
    once = MaintenanceRecord().reordered({tp(0): (3, 4, 1)}, {tp(0): (4, 1, 3)}, 1, IDS)
    twice = once.reordered({tp(0): (4, 1, 3)}, {tp(0): (1, 3, 4)}, 2, IDS)
    assert twice.orders == {tp(0): Reordering((3, 4, 1), (1, 3, 4), (4, 1, 3), "first")}
    others = replace(once).reordered({tp(0): (4, 3, 1)}, {tp(0): (1, 3, 4)}, 2, IDS)
    assert others.orders == {tp(0): Reordering((4, 3, 1), (1, 3, 4), topic_id="first")}, "somebody else has changed it"
    again = once.reordered({tp(0): (4, 1, 3)}, {tp(0): (1, 3, 4)}, 2, {"t": "second"})
    assert again.orders == {tp(0): Reordering((4, 1, 3), (1, 3, 4), topic_id="second")}, "another topic has its name"


ANN, BOB = Entered(1, "ann@a", is_cordoned=True), Entered(2, "bob@b", is_cordoned=False)


def of(at_ms: int, *brokers: int, made_from: int | None = None) -> MaintenanceRecord:
    """A record that the cluster kept, or, here only, one that was made from that of another time."""
    return MaintenanceRecord(at_ms, dict.fromkeys(brokers, ANN), cluster_ms=at_ms if made_from is None else made_from)


@pytest.mark.parametrize(("here", "cluster", "counts", "doubtful"), [
    (None, None, (), ()),
    (None, of(5, 3), (3,), ()),
    (of(9, 4), of(5, 3), (3,), ()),
    (of(1, 4), of(5), (), ()),
    (of(9, 4, made_from=5), of(5, 3), (4,), ()),
    (of(9, 4, made_from=0), of(5, 3), (3,), (4,)),
    (of(9, 4, 3, made_from=2), of(5, 3), (3,), (4,)),
    (of(1, 4, 3, made_from=0), of(5, 3), (3,), (4,)),
    (of(1, 4, made_from=0), None, (4,), ()),
    (of(1, 4), None, (), (4,)),
    (of(1), None, (), ()),
])  # fmt: skip
def test_one_of_two_records_counts(
    here: MaintenanceRecord | None,
    cluster: MaintenanceRecord | None,
    counts: tuple[int, ...],
    doubtful: tuple[int, ...],
) -> None:
    known = known_maintenance(here, cluster)
    assert (tuple(known.record.brokers), tuple(known.doubtful.brokers)) == (counts, doubtful)
    assert bool(known.doubt) == bool(doubtful)


def test_an_operator_decides_what_is_doubtful_by_naming_all_of_it() -> None:
    order = Reordering((3, 1), (1, 3))
    known = KnownMaintenance(of(9, 5), MaintenanceRecord(1, {3: ANN, 4: BOB}, {tp(0): order}))
    for brokers in ((5,), (3,)):
        with pytest.raises(InputError, match=r"broker 3 since .* by ann@a; broker 4 .*maintenance exit 3,4"):
            known.decided(brokers)
    decided = known.decided((3, 4))
    assert (set(decided.brokers), decided.orders) == ({3, 4, 5}, {tp(0): order})
