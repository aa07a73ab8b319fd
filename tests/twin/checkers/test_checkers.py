"""Every checker is quiet about a sound twin, and speaks up about one that was broken in just that way."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kreassign.errors import InvariantBroken
from kreassign.model import ConfigResource, TopicPartition, throttle
from kreassign.twin import Twin
from kreassign.twin.checkers import CHECKERS, LARGE, SAMPLED, check_all, check_step, look
from kreassign.twin.controller import reassignments
from kreassign.twin.controller.decision import DONE, Decision
from kreassign.twin.core import Step
from kreassign.twin.metadata import BrokerRegistered, ConfigChanged, PartitionState
from tests.checks.source import read
from tests.twin.asking import cluster

ORDERS = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
GIGABYTES = 1_000_000_000


@pytest.fixture
def twin() -> Twin:
    """Partition 0 is on its way from brokers 0 and 1 to 2 and 1, partition 1 is idle on 1 and 2."""
    twin = Twin(cluster({"orders": [[0, 1], [1, 2]]}, size_bytes=10 * GIGABYTES))
    move(twin, (2, 1))
    twin.advance(5_000)
    return twin


def move(twin: Twin, target: tuple[int, ...] | None) -> None:
    request = reassignments.AlterReassignments(
        (reassignments.TopicTargets("orders", (reassignments.Target(0, target),)),)
    )
    twin.commit(reassignments.alter_reassignments(twin.context, request))


def state(twin: Twin, key: TopicPartition = ORDERS) -> PartitionState:
    found = twin.metadata.partition(key)
    assert found is not None
    return found


def broken(twin: Twin, **fields: Any) -> Twin:
    """A copy in which the metadata of partition 0 says something else."""
    other = copy.deepcopy(twin)
    other.metadata.topics["orders"].partitions[0] = replace(state(other), **fields)
    return other


def found(number: int, twin: Twin, step: Step | None = None) -> list[str]:
    """Findings of the checker of this number on a step, by default one that made partition 0."""
    return list(CHECKERS[number].check(twin, step or Step(before={ORDERS: None})))


def after(twin: Twin, before: PartitionState, **fields: Any) -> Step:
    """A step before which partition 0 was like this."""
    return Step(before={ORDERS: before}, was_held={ORDERS: 10_000_000}, **fields)


def test_there_is_nothing_to_say_about_a_sound_twin(twin: Twin) -> None:
    check_all(twin)
    assert list(look(twin, Step(before={ORDERS: None, OTHER: None}))) == []
    assert len(CHECKERS) == 10


# One by one


@pytest.mark.parametrize("isr", [(0, 1, 3), (0, 1, 1)])
def test_a_stranger_or_a_double_in_the_isr_is_found(twin: Twin, isr: tuple[int, ...]) -> None:
    assert not found(0, twin)
    assert "ISR" in str(*found(0, broken(twin, isr=isr)))


def test_a_leader_out_of_sync_is_found(twin: Twin) -> None:
    assert not found(1, twin)
    assert not found(1, broken(twin, leader=-1))
    assert "is led by 2, and its ISR is (0, 1)" in str(*found(1, broken(twin, leader=2)))


def test_a_move_that_costs_the_last_copy_in_sync_is_found(twin: Twin) -> None:
    before = replace(state(twin), adding=(), removing=())
    assert not found(2, twin, after(twin, before))
    assert "has none now" in str(*found(2, broken(twin, isr=()), after(twin, before)))


def test_a_move_that_ends_on_a_copy_without_the_data_is_found(twin: Twin) -> None:
    before = state(twin)
    emptied = broken(twin, replicas=(2,), isr=(2,), leader=2, adding=(), removing=())
    row = emptied.replication._replicas.state.logs.row(ORDERS)
    assert row is not None
    emptied.replication._replicas.state.logs.replace(row, 0.0, 4_000_000.0)
    assert "had 10,000,000 records in sync on (0, 1), and has 4000 on (2,)" in str(
        *found(2, emptied, after(twin, before))
    )


def test_a_topic_that_allows_unclean_elections_may_lose_records(twin: Twin) -> None:
    emptied = broken(twin, isr=())
    emptied.metadata.apply(ConfigChanged(ConfigResource.topic("orders"), "unclean.leader.election.enable", "true"))
    assert not found(2, emptied, after(twin, replace(state(twin), adding=())))


@pytest.mark.parametrize(("fields", "text"), [
    ({"adding": (3,)}, "moves what is no replica"),
    ({"removing": (3,)}, "moves what is no replica"),
    ({"removing": (0, 1, 2)}, "has no target"),
    ({"directories": ()}, "has 0 directories"),
])  # fmt: skip
def test_lists_that_do_not_belong_together_are_found(twin: Twin, fields: dict[str, Any], text: str) -> None:
    assert not found(3, twin)
    assert not found(3, broken(twin, adding=(0,), removing=(0,)))
    assert text in str(*found(3, broken(twin, **fields)))


@pytest.mark.parametrize("fields", [
    {"partition_epoch": 99}, {"leader_epoch": 99}, {"leader": 1, "partition_epoch": 0}, {"isr": (1, 0)},
    {"replicas": (2, 1, 0, 3), "partition_epoch": 0},
])  # fmt: skip
def test_epochs_that_go_back_or_stand_still_are_found(twin: Twin, fields: dict[str, Any]) -> None:
    assert not found(4, twin, after(twin, state(twin)))
    assert ORDERS.topic in str(*found(4, twin, after(twin, replace(state(twin), **fields))))


def test_a_broker_that_registers_under_an_old_epoch_is_found(twin: Twin) -> None:
    known = twin.metadata.brokers[1]
    record = BrokerRegistered(1, known.host, known.port, None, known.log_dirs, broker_epoch=2)
    assert "registered under epoch 2" in str(*found(4, twin, Step((record,))))
    assert not found(4, twin, Step((replace(record, broker_epoch=50),)))


@pytest.mark.parametrize("replicas", [(0, 1), (1, 2), (2,), (2, 1, 3)])
def test_a_move_that_ends_elsewhere_is_found(twin: Twin, replicas: tuple[int, ...]) -> None:
    ended = {"adding": (), "removing": ()}
    assert not found(5, broken(twin, replicas=(2, 1), **ended), after(twin, state(twin)))
    assert "was to go to (2, 1)" in str(*found(5, broken(twin, replicas=replicas, **ended), after(twin, state(twin))))


def test_a_client_may_end_a_move_where_there_are_copies_and_nowhere_else(twin: Twin) -> None:
    by_client = after(twin, state(twin), answer=reassignments.ReassignmentsAltered(DONE, ()))
    ended = {"adding": (), "removing": ()}
    assert not found(5, broken(twin, replicas=(0, 1), **ended), by_client)
    assert found(5, broken(twin, replicas=(0, 3), **ended), by_client)


def test_a_copy_that_nobody_asked_for_or_that_is_missing_is_found(twin: Twin) -> None:
    assert not found(6, twin)
    assert "should have them on [1, 2]" in str(*found(6, broken(twin, replicas=(2, 1))))
    assert "should have them on [0, 1, 2, 3]" in str(*found(6, broken(twin, replicas=(2, 1, 0, 3))))


@pytest.mark.parametrize(("spoil", "text"), [
    (lambda replicas: replicas.state.in_sync_traffic.size.__iadd__(10), "is said to hold"),
    (lambda replicas: replicas.log_dirs.to_be_deleted.__isub__(10), "waits for the deletion of -10.0 bytes"),
    (lambda replicas: replicas.log_dirs.log_counts.__setitem__(0, 9), "is said to hold 9 logs"),
])  # fmt: skip
def test_bytes_that_do_not_add_up_are_found(twin: Twin, spoil: Callable[[Any], None], text: str) -> None:
    assert not found(7, twin)
    other = copy.deepcopy(twin)
    spoil(other.replication._replicas)
    assert text in found(7, other)[0]


@pytest.mark.parametrize(("key", "listed", "owner"), [
    (throttle.LEADER_THROTTLED_RATE, throttle.LEADER_THROTTLED_REPLICAS, 0),
    (throttle.FOLLOWER_THROTTLED_RATE, throttle.FOLLOWER_THROTTLED_REPLICAS, 2),
])  # fmt: skip
def test_a_copy_that_is_faster_than_its_throttle_is_found(twin: Twin, key: str, listed: str, owner: int) -> None:
    records = (
        ConfigChanged(ConfigResource.broker(owner), key, "1000000"),
        ConfigChanged(ConfigResource.topic("orders"), listed, f"0:{owner}"),
    )
    # Applied to the metadata alone: the brokers do not know of it, and go on as fast as they can.
    unheeded = copy.deepcopy(twin)
    for record in records:
        unheeded.metadata.apply(record)
    assert f"{key} of broker {owner} is 1000000.0 bytes per second, and 500000000.0 flow" in str(*found(8, unheeded))
    twin.commit(Decision(records, None))
    twin.advance(1_000)
    assert next(twin.replication.readings.flows()).bytes_per_s == pytest.approx(930_000, rel=0.03)
    assert not found(8, twin)


def test_a_directory_move_that_is_faster_than_its_throttle_is_found(twin: Twin) -> None:
    twin.replication.alter_log_dir(OTHER, 2, "/data/2/d1")
    twin.advance(1_000)
    twin.metadata.apply(ConfigChanged(ConfigResource.broker(2), throttle.LOG_DIR_RATE, "1000"))
    assert f"{throttle.LOG_DIR_RATE} of broker 2 is 1000.0" in str(found(8, copy.deepcopy(twin)))
    twin.metadata.apply(ConfigChanged(ConfigResource.broker(2), throttle.LOG_DIR_RATE, None))


def test_a_move_that_is_not_listed_or_listed_in_vain_is_found(twin: Twin) -> None:
    assert not found(9, twin)
    unlisted = copy.deepcopy(twin)
    unlisted.metadata.reassigning.clear()
    assert "orders-0 is listed as None, and is " in str(*found(9, unlisted))


# All together


def test_a_step_that_breaks_something_is_refused_with_what_and_where(twin: Twin) -> None:
    twin = broken(twin, leader=2)
    with pytest.raises(InvariantBroken, match=r"at 5000 ms, record \d+: the leader is in the ISR, .*: orders-0 is led"):
        check_step(twin, Step(before={ORDERS: None}))
    with pytest.raises(InvariantBroken, match="the leader is in the ISR"):
        check_all(twin)


def test_a_twin_that_is_watched_stops_at_the_step_that_breaks_something(twin: Twin) -> None:
    twin = broken(twin, isr=(0, 1, 3))
    with pytest.raises(InvariantBroken, match="no partition loses its last in-sync copy"):
        move(twin, (3, 1))


@pytest.mark.thorough
def test_large_clusters_are_looked_at_as_a_whole_now_and_then() -> None:
    twin = Twin(cluster({"orders": [[0]] * (LARGE + 1)}))
    unlisted = copy.deepcopy(twin)
    unlisted.metadata.reassigning.add(ORDERS)
    unlisted.metadata.topics["orders"].partitions[0] = replace(state(unlisted), adding=(0,))
    unlisted.metadata.reassigning.clear()
    record = ConfigChanged(ConfigResource.topic("orders"), "retention.ms", "1")
    seen = []
    for _ in range(SAMPLED):
        unlisted.metadata.apply(record)
        seen.append(bool(list(look(unlisted, Step((record,))))))
    assert seen.count(True) == 1
    with pytest.raises(InvariantBroken, match="orders-0 is listed as None"):
        check_all(unlisted)


def test_the_page_names_every_invariant() -> None:
    (page,) = read("docs/concepts/checkers.md")
    rows = [line.split("|")[1].strip() for line in page.lines if line.startswith("| ") and "Invariant" not in line]
    assert rows == [checker.sentence for checker in CHECKERS]
