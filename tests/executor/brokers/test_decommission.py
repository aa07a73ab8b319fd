"""The decommission of a broker, decided from what the cluster says: whatever happens between two steps, and whoever
goes on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kreassign.executor.brokers import Await, Blocked, BrokerReading, Cordon, CordonReading, Finished, Readings
from kreassign.executor.decommission import LOOK, Decommission, Drain, Step, Unregister
from kreassign.model import LogDir, OngoingReassignment, TopicPartition
from tests.approved import approve

OTHERS = frozenset({1, 2})
BROKER = 3
PATHS = ("/d1", "/d2")
MOST_STEPS = 20


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def leaving(broker: int = BROKER, to: int = 1) -> OngoingReassignment:
    return OngoingReassignment((to, 2, broker), (to,), (broker,))


@dataclass
class Cluster:
    """The part of a cluster that the decommission of one broker reads. Readings are values."""

    value: str | None = None
    has_cordon: bool = True
    is_live: bool = True
    is_registered: bool = True
    tells_registered: bool = True
    replicas: set[int] = field(default_factory=lambda: {0, 1})
    moving: set[int] = field(default_factory=set)
    dying: set[int] = field(default_factory=set)
    was_unregistered_full: bool = False

    @property
    def read(self) -> Readings:
        entries = (self.value or "").split(",")
        dirs = tuple(
            LogDir(path, None, None, None, self.has_cordon and ("*" in entries or path in entries), ())
            for path in PATHS
        )
        reading = BrokerReading(
            BROKER,
            self.is_live,
            True if self.is_live else self.is_registered if self.tells_registered else None,
            CordonReading(self.has_cordon, self.value, dirs) if self.is_live else None,
            tuple(map(tp, sorted(self.replicas))),
            {},
            {tp(number): leaving() for number in self.moving},
            tuple(map(tp, sorted(self.replicas | self.dying))) if self.is_live else (),
        )
        return Readings(OTHERS | ({BROKER} if self.is_live else set()), (reading,))

    def take(self, step: Step) -> None:
        """Carry a step out, as the cluster does it."""
        match step:
            case Cordon():
                assert self.is_live
                assert self.has_cordon
                assert not self.value, "what somebody else has set is not overwritten"
                self.value = "*"
            case Await():
                self.replicas -= self.moving
                self.moving.clear()
                self.dying.clear()
            case Drain(_, partitions):
                assert set(partitions) == {tp(number) for number in self.replicas}
                self.dying = set(self.replicas) if self.is_live else set()
                self.replicas.clear()
            case Unregister():
                assert not self.is_live, "a broker that runs is not unregistered"
                self.was_unregistered_full |= bool(self.replicas)
                self.is_registered = False

    def drain_in_part(self) -> None:
        """State after a killed run: a partition has moved, another is on its way."""
        done, *under_way = sorted(self.replicas)
        self.replicas.discard(done)
        self.moving = set(under_way[:1])


def journey(cluster: Cluster, wanted: Decommission) -> list[Step]:
    """Go on until nothing is left to do, or only the operator can."""
    taken: list[Step] = []
    for _ in range(MOST_STEPS):
        taken.append(wanted.next_step(cluster.read))
        if isinstance(taken[-1], Finished | Blocked):
            return taken
        cluster.take(taken[-1])
    raise AssertionError(taken)


def kinds(steps: list[Step]) -> list[type[Step]]:
    return [type(step) for step in steps]


# --- topics that may stay --------------------------------------------------------------------------------------------

CANARY = TopicPartition("__amazon_msk_canary", 0)
MAY_STAY = ("__amazon_msk_canary.*",)


def with_canary(found: Readings, **lists: Any) -> Readings:
    """The readings with a partition that the vendor keeps on every broker."""
    (one,) = found.brokers
    kept: dict[str, Any] = {"replicas": (*one.replicas, CANARY), "copies": (*one.copies, CANARY)} if one.is_live else {}
    return replace(found, brokers=(replace(one, **{**kept, **lists}),))


def test_replicas_that_may_stay_are_not_drained_but_named() -> None:
    wanted, cluster = Decommission(may_stay=MAY_STAY), Cluster()
    steps: list[Step] = []
    while not steps or not isinstance(steps[-1], Finished):
        steps.append(wanted.next_step(with_canary(cluster.read)))
        cluster.take(steps[-1])
    assert kinds(steps) == [Cordon, Drain, Await, Finished]
    assert str(steps[-1]).startswith(
        "broker 3 is empty but for __amazon_msk_canary-0, which may stay: no replica list names it"
    )


@pytest.mark.parametrize(("lists", "otherwise"), [
    ({}, Drain),
    ({"arriving": {CANARY: OngoingReassignment((1, 3), (3,), ())}}, Await),
    ({"leaving": {CANARY: leaving()}}, Await),
    ({"replicas": ()}, Await),
], ids=["a replica", "one that arrives", "one that leaves", "a copy that is left"])  # fmt: skip
def test_only_what_may_stay_is_left_out(lists: dict[str, Any], otherwise: type[Step]) -> None:
    emptied = with_canary(Cluster(value="*", replicas=set()).read, **lists)
    assert type(Decommission(may_stay=MAY_STAY).next_step(emptied)) is Finished
    for others in ((), ("__amazon_msk",), ("canary",)):  # a pattern matches whole names
        assert type(Decommission(may_stay=others).next_step(emptied)) is otherwise


def test_hidden_topics_that_may_stay_are_in_nobodys_way() -> None:
    hidden = replace(Cluster(value="*", replicas=set()).read, unseen=(CANARY.topic,))
    assert isinstance(Decommission().next_step(hidden), Blocked)
    assert isinstance(Decommission(may_stay=MAY_STAY).next_step(hidden), Finished)


def test_a_broker_with_replicas_that_may_stay_is_not_unregistered() -> None:
    stopped = with_canary(Cluster(is_live=False, replicas=set()).read, replicas=(CANARY,))
    step = Decommission(unregisters=True, may_stay=MAY_STAY).next_step(stopped)
    assert isinstance(step, Blocked)
    assert step.reason == (
        "broker 3 cannot be unregistered while __amazon_msk_canary-0 may stay there: a replica on a broker that is not "
        "registered is never in sync. Leave out --unregister, or that they may stay"
    )


# --- the way --------------------------------------------------------------------------------------------------------


def test_a_broker_is_cordoned_then_drained_then_proven_empty() -> None:
    cluster = Cluster()
    steps = journey(cluster, Decommission())
    assert kinds(steps) == [Cordon, Drain, Await, Finished]
    approve(steps, "decommission")
    assert kinds(journey(cluster, Decommission())) == [Finished], "a second time there is nothing to do"


def test_it_is_unregistered_once_it_is_empty_and_stopped_and_not_before() -> None:
    cluster = Cluster()
    *_, last = journey(cluster, Decommission(unregisters=True))
    cluster.is_live = False
    stopped = journey(cluster, Decommission(unregisters=True))
    assert kinds([last, *stopped]) == [Blocked, Unregister, Finished]
    approve([last, *stopped], "decommission-and-unregister")


def test_a_broker_that_was_dead_to_begin_with_is_drained_without_a_cordon() -> None:
    steps = journey(Cluster(is_live=False), Decommission(unregisters=True))
    assert kinds(steps) == [Drain, Unregister, Finished]
    assert "it is down, so its log directories were not checked" in str(steps[-1])


def test_unregistering_is_repeated_where_registrations_are_unknown() -> None:
    cluster = Cluster(is_live=False, tells_registered=False, replicas=set())
    wanted = Decommission(unregisters=True)
    assert wanted.next_step(cluster.read) == Unregister((BROKER,))
    assert isinstance(replace(wanted, unregistered=frozenset({BROKER})).next_step(cluster.read), Finished)


def test_what_others_have_cordoned_in_part_is_not_overwritten() -> None:
    (step,) = journey(Cluster(value="/d2"), Decommission())
    approve([step], "cordoned-in-part")
    assert kinds(journey(Cluster(value="/d2,/d1"), Decommission())) == [Drain, Await, Finished]


# --- what is in the way ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, "*"])
def test_moves_of_others_end_before_a_broker_is_cordoned_and_drained(value: str | None) -> None:
    """While they go on the drain cannot be planned, and the cordon may turn out to be for nothing."""
    cluster = Cluster(value=value, replicas={0, 1}, moving={0})
    assert Decommission().open_ways(cluster.read) == (), "it will be cordoned"
    steps = journey(cluster, Decommission())
    assert kinds(steps) == [Await, *([] if value else [Cordon]), Drain, Await, Finished]
    assert str(steps[0]) == "wait: t-0 is being reassigned to broker 3 or away from it"


@pytest.mark.parametrize("move", [
    pytest.param(leaving(to=9), id="its destination is not live"),
    pytest.param(OngoingReassignment((1, 2, 3), (3,), (3,)), id="it was overridden"),
])  # fmt: skip
def test_a_reassignment_that_can_never_end_is_not_waited_for(move: OngoingReassignment) -> None:
    found = Cluster(value="*").read
    stuck = Readings(found.live, (replace(found.brokers[0], leaving={tp(0): move}),))
    step = Decommission().next_step(stuck)
    assert isinstance(step, Blocked)
    assert str(step).startswith("the reassignment of t-0 cannot end: a broker that it adds is not live")


def test_a_broker_that_does_not_answer_is_no_empty_broker() -> None:
    silent = BrokerReading(BROKER, is_live=True, is_registered=True, unread="no answer in 5 s")
    step = Decommission(unregisters=True).next_step(Readings(OTHERS, (silent,)))
    assert str(step) == "cannot list what is on broker 3: broker 3 could not be read: no answer in 5 s. Try again"
    assert not Decommission().open_ways(Readings(OTHERS, (silent,))), "whether it can be cordoned is not known either"


def test_where_it_cannot_be_cordoned_it_is_said_what_may_still_land_on_it() -> None:
    old = Cluster(has_cordon=False)
    assert kinds(journey(old, Decommission())) == [Drain, Await, Finished]
    (sentence,) = Decommission().open_ways(old.read)
    approve([sentence], "without-a-cordon")
    refused = Decommission(uncordoned={BROKER: "it requires metadata.version >= 4.3"})
    assert kinds(journey(Cluster(), refused)) == [Drain, Await, Finished]
    assert "it requires metadata.version >= 4.3" in refused.open_ways(Cluster().read)[0]
    assert Decommission().open_ways(Cluster(value="*").read) == ()


def with_dirs(*log_dirs: LogDir, broker: int = BROKER) -> Readings:
    """The readings of a drained broker, cordoned, that lists these log directories."""
    found = Cluster(value="*", replicas=set()).read
    cordon = found.brokers[0].cordon
    assert cordon is not None
    return replace(
        found, brokers=(replace(found.brokers[0], broker=broker, cordon=replace(cordon, log_dirs=log_dirs)),)
    )


def log_dir(path: str, error: str | None = None) -> LogDir:
    return LogDir(path, error, None, None, True, ())


FAILED = "KAFKA_STORAGE_ERROR"
PARTLY_READ = with_dirs(log_dir("/d1"), log_dir("/d2", FAILED))
UNREAD = with_dirs(log_dir("/d1", FAILED))
UNLISTED = with_dirs()


@pytest.mark.parametrize(("found", "proof"), [
    (PARTLY_READ, "/d1 holds nothing, /d2 (KAFKA_STORAGE_ERROR) could not be read, so what is there is not known"),
    (UNREAD, "/d1 (KAFKA_STORAGE_ERROR) could not be read, so what is there is not known"),
    (UNLISTED, "its log directories could not be read, so what is there is not known"),
], ids=["one of two", "the only one", "none is listed"])  # fmt: skip
def test_a_broker_with_an_unread_directory_is_not_called_empty(found: Readings, proof: str) -> None:
    looked_twice = Decommission(unread=found.unread_log_dirs)
    assert str(looked_twice.next_step(found)) == (
        f"no replica list names broker 3, nothing is being reassigned to it or away from it, {proof}, it is cordoned"
    )
    running = replace(looked_twice, unregisters=True).next_step(found)
    assert isinstance(running, Blocked)
    assert "could not be read): stop the process" in running.reason
    assert "empty" not in running.reason


def test_an_unread_directory_is_looked_at_again_after_a_wait() -> None:
    for wanted in (Decommission(), Decommission(unregisters=True), Decommission(unread=frozenset({"broker 3: /d1"}))):
        step = wanted.next_step(PARTLY_READ)
        assert step == Await("what is on broker 3: /d2 (KAFKA_STORAGE_ERROR) could not be read", LOOK)


def test_a_broker_that_is_down_is_not_called_empty() -> None:
    (proof,) = journey(Cluster(is_live=False, replicas=set()), Decommission())
    assert str(proof) == (
        "no replica list names broker 3, nothing is being reassigned to it or away from it, it is down, so its log "
        "directories were not checked"
    )


# --- whatever happens between two steps -----------------------------------------------------------------------------


EVENTS = st.sampled_from(
    ["nothing", "killed in the drain", "topic", "others move it", "dies", "starts", "opened", "moves end"]
)


def happen(cluster: Cluster, event: str) -> None:
    """Change by others between two steps."""
    match event:
        case "killed in the drain" if cluster.replicas and not cluster.moving:
            cluster.drain_in_part()
        case "topic":
            # By hand, which a cordon keeps nobody from; a broker that is not registered cannot be named.
            if cluster.is_registered:
                cluster.replicas.add(len(cluster.replicas) + 7)
        case "others move it" if cluster.replicas:
            cluster.moving = {min(cluster.replicas)}
        case "dies":
            cluster.is_live = False
            cluster.dying = set()
        case "starts":
            cluster.is_live = cluster.is_registered = True
        case "opened" if cluster.is_live:
            cluster.value = None
        case "moves end":
            cluster.replicas -= cluster.moving
            cluster.moving = set()


@settings(max_examples=300)
@given(st.lists(EVENTS, max_size=12), st.booleans(), st.booleans(), st.booleans())
def test_any_interrupted_decommission_ends_with_an_empty_broker(
    events: list[str], has_cordon: bool, unregisters: bool, tells_registered: bool
) -> None:
    """Each event falls between two steps, and everything but the cluster is forgotten there."""
    cluster = Cluster(has_cordon=has_cordon, tells_registered=tells_registered)
    for event in events:
        happen(cluster, event)
        step = Decommission(unregisters=unregisters).next_step(cluster.read)
        if isinstance(step, Drain | Unregister) and cluster.is_live and has_cordon:
            assert cluster.read.brokers[0].is_closed, "nothing is drained while the controller may fill it again"
        cluster.take(step)
    cluster.is_live = cluster.is_live and not unregisters
    wanted = Decommission(unregisters=unregisters)
    if not tells_registered and not cluster.is_registered:
        wanted = replace(wanted, unregistered=frozenset({BROKER}))
    if unregisters and not tells_registered and cluster.is_registered:
        assert kinds(journey_to_unregister(cluster, wanted))[-1] is Unregister
        wanted = replace(wanted, unregistered=frozenset({BROKER}))
    *_, last = journey(cluster, wanted)
    assert isinstance(last, Finished)
    assert not cluster.replicas
    assert not cluster.moving
    assert not cluster.was_unregistered_full
    assert not (unregisters and cluster.is_registered)


def journey_to_unregister(cluster: Cluster, wanted: Decommission) -> list[Step]:
    taken: list[Step] = []
    while not taken or not isinstance(taken[-1], Unregister | Finished):
        taken.append(wanted.next_step(cluster.read))
        cluster.take(taken[-1])
        assert len(taken) < MOST_STEPS, taken
    return taken
