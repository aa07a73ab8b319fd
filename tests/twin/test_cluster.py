"""The twin as a whole: brokers that stop and start, the metadata log, time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.errors import InputError, ProtocolViolation
from kreassign.model import TopicPartition
from kreassign.twin.blueprint import Blueprint, PartitionPlan, TopicPlan, small_cluster
from kreassign.twin.cluster import Twin
from kreassign.twin.controller.reassignments import AlterReassignments, Target, TopicTargets, alter_reassignments
from kreassign.twin.core import TwinSettings
from kreassign.twin.replication.partition_logs import Traffic
from kreassign.twin.store import SIGNATURE, FileLog
from kreassign.twin.version import KAFKA_3_9, KAFKA_4_3, KafkaVersion
from kreassign.wire import api
from kreassign.wire.codec import encode_request
from tests.twin.asking import ask, cluster, partition, twin
from tests.twin.memory_log import MemoryLog

ORDERS = TopicPartition("orders", 0)


def listed(asked: Twin) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    """Replicas, adding and removing of orders-0 while it moves, from its listing; None when it does not."""
    topics = ask(asked, api.LIST_PARTITION_REASSIGNMENTS, 0, timeout_ms=1000, topics=None).topics
    if not topics:
        return None
    ((entry,),) = [one.partitions for one in topics]
    return tuple(entry.replicas), tuple(entry.adding_replicas), tuple(entry.removing_replicas)


def move(asked: Twin, topic: str, number: int, *target: int) -> None:
    change = AlterReassignments((TopicTargets(topic, (Target(number, target),)),))
    answer = asked.commit(alter_reassignments(asked.context, change))
    assert [outcome.code for entry in answer.topics for _, outcome in entry.outcomes] == [0]


# Time


def test_a_move_takes_as_long_as_its_bytes_need() -> None:
    # 10 GB over disks of 500 MB/s: 20 s and what it takes to begin and to be taken in.
    asked = Twin(cluster({"orders": [[0, 1]]}, size_bytes=10_000_000_000))
    move(asked, "orders", 0, 2, 1)
    asked.advance(19_900)
    assert asked.metadata.reassigning
    asked.advance(1_000)
    assert not asked.metadata.reassigning


def test_time_can_be_taken_in_one_step_or_in_many() -> None:
    def after(*steps: int) -> str:
        asked = twin({"orders": [[0, 1], [1, 2]]})
        move(asked, "orders", 0, 2, 3)
        asked.crash(1)
        for step in steps:
            asked.advance(step)
        assert asked.now_ms == 60_000
        return repr(asked.metadata)

    assert after(60_000) == after(*[100] * 600) == after(1, 59_998, 1)


def test_going_to_the_past_or_the_present_changes_nothing() -> None:
    asked = twin({"orders": [[0, 1]]})
    asked.advance(5_000)
    asked.advance_to(1_000)
    asked.advance(0)
    assert asked.now_ms == 5_000


def test_what_happens_next_is_known_and_nothing_is_never() -> None:
    asked = twin({"orders": [[0, 1]]})
    asked.advance(1_000)
    assert asked.next_event_ms() is None
    assert not asked.is_copying
    asked.crash(1)
    assert asked.next_event_ms() is not None
    move(asked, "orders", 0, 0, 2)
    assert asked.is_copying


def test_a_leader_rate_of_nothing_stops_a_move_after_one_answer() -> None:
    rates = {broker: {"leader.replication.throttled.rate": "0"} for broker in range(4)}
    lists = {"leader.replication.throttled.replicas": "*"}
    plan = TopicPlan("orders", (PartitionPlan((0, 1), Traffic(size_bytes=50_000_000)),), lists)
    asked = Twin(replace(small_cluster(4), topics=(plan,), broker_configs=rates))
    move(asked, "orders", 0, 2, 1)
    asked.advance(60_000)
    assert asked.metadata.reassigning
    assert not asked.is_copying
    assert asked.replication.readings.size_bytes(TopicPartition("orders", 0), 2) == pytest.approx(1.04e6, rel=0.01)


# Brokers


def test_a_broker_back_within_its_session_joins_only_after_it() -> None:
    asked = twin({"orders": [[0, 1]]})
    asked.crash(0)
    asked.advance(3_000)
    asked.start(0)
    asked.advance(5_999)
    assert partition(asked, "orders") == ((0, 1), {0, 1}, 0)
    asked.advance(1)
    assert partition(asked, "orders") == ((0, 1), {1}, 1)
    asked.advance(2_000)
    assert partition(asked, "orders") == ((0, 1), {0, 1}, 1)


def test_a_broker_that_dies_again_while_it_starts_stays_away() -> None:
    asked = twin({"orders": [[0, 1]]})
    asked.stop(0)
    asked.start(0)
    asked.advance(500)
    asked.crash(0)
    asked.advance(60_000)
    assert asked.metadata.brokers[0].fenced
    assert not asked.is_running(0)


def test_brokers_cannot_be_stopped_twice_or_started_while_they_run() -> None:
    asked = twin()
    with pytest.raises(InputError, match="is running"):
        asked.start(0)
    asked.crash(0)
    for again in (asked.crash, asked.stop):
        with pytest.raises(InputError, match="down already"):
            again(0)
    with pytest.raises(InputError, match="there is no broker 9"):
        asked.crash(9)


def test_a_full_directory_is_given_up_by_its_broker() -> None:
    hardware = small_cluster(3, log_dirs=1)
    small = tuple(
        replace(broker, hardware=replace(broker.hardware, log_dirs=tuple(
            replace(log_dir, capacity_bytes=1_000_000_000) for log_dir in broker.hardware.log_dirs
        )))
        for broker in hardware.brokers
    )  # fmt: skip
    plans = tuple(PartitionPlan((leader,), Traffic(size_bytes=700_000_000)) for leader in (0, 1))
    asked = Twin(replace(hardware, brokers=small, topics=(TopicPlan("orders", plans),)))
    move(asked, "orders", 0, 1)
    asked.advance(60_000)
    assert asked.metadata.reassigning == {ORDERS}
    assert asked.metadata.brokers[1].failed_dirs
    assert not asked.is_running(1)
    assert partition(asked, "orders", 1)[2] == -1


def test_a_broker_with_another_directory_lives_on() -> None:
    asked = twin({"orders": [[0, 1], [0, 1]]})
    asked.fail_log_dir(0, "/data/0/d0")
    assert asked.is_running(0)
    assert partition(asked, "orders", 0)[1:] == ({1}, 1)
    assert partition(asked, "orders", 1)[1:] == ({0, 1}, 0)


# The metadata log


def test_the_log_tells_the_whole_state() -> None:
    log = MemoryLog()
    asked = Twin(cluster({"orders": [[0, 1]]}), log=log)
    move(asked, "orders", 0, 2, 3)
    asked.advance(5_000)
    asked.stop(1)
    again = Twin(cluster(), log=log)
    assert again.metadata == asked.metadata
    assert not again.is_running(1)


def test_a_directory_that_was_offline_still_is_when_the_log_is_read_again() -> None:
    log, blueprint = MemoryLog(), cluster({"orders": [[0, 1]]})
    Twin(blueprint, log=log).fail_log_dir(0, "/data/0/d0")
    again = Twin(blueprint, log=log)
    assert again.replication.readings.log_dir(ORDERS, 0) is None
    again.stop(0)
    again.start(0)
    again.advance(30_000)
    assert partition(again, "orders")[1] == {1}
    again.repair_log_dir(0, "/data/0/d0")
    again.stop(0)
    again.start(0)
    again.advance(30_000)
    assert partition(again, "orders")[1] == {0, 1}


def test_a_cluster_goes_on_from_its_file(tmp_path: Path) -> None:
    blueprint = cluster({"orders": [[0, 1]]})
    log = FileLog(tmp_path / "metadata.log")
    first = Twin(blueprint, log=log)
    topic: dict[str, object] = {"name": "new", "num_partitions": 3, "replication_factor": 2}
    ask(first, api.CREATE_TOPICS, 7, topics=[topic], timeout_ms=1000)
    log.close()
    log = FileLog(tmp_path / "metadata.log")
    second = Twin(blueprint, log=log)
    assert second.metadata == first.metadata
    topic["name"] = "newer"
    ask(second, api.CREATE_TOPICS, 7, topics=[topic], timeout_ms=1000)
    ids = [known.topic_id for known in second.metadata.topics.values()]
    assert len(set(ids)) == 3
    log.close()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(KAFKA_3_9, KAFKA_4_3, id="upgraded"),
        pytest.param(KAFKA_4_3, KAFKA_3_9, id="downgraded"),
    ],
)
def test_an_open_move_goes_on_when_its_cluster_is(first: KafkaVersion, second: KafkaVersion, tmp_path: Path) -> None:
    """KIP-455: one release begins the move, the other ends it."""
    blueprint, path = cluster({"orders": [[1, 2, 3]]}, brokers=7), tmp_path / "metadata.log"
    log = FileLog(path)
    before = Twin(blueprint, TwinSettings(first), log)
    move(before, "orders", 0, 4, 5, 6)
    half_way = listed(before)
    assert half_way == ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    log.close()

    log = FileLog(path)
    after = Twin(blueprint, TwinSettings(second), log)
    assert listed(after) == half_way
    after.advance(60_000)
    assert listed(after) is None
    assert partition(after, "orders")[:2] == ((4, 5, 6), {4, 5, 6})
    log.close()


def test_a_torn_log_loses_at_most_its_last_decision(tmp_path: Path) -> None:
    path, blueprint = tmp_path / "metadata.log", cluster({"orders": [[0, 1], [1, 2]]})
    log = FileLog(path)
    twin = Twin(blueprint, log=log)
    before, whole_before = twin.metadata.copy(), path.stat().st_size
    both_move(twin)
    log.close()
    whole = path.read_bytes()
    assert len(SIGNATURE) < whole_before < len(whole)
    for length in [*range(whole_before, len(whole), 7), len(whole)]:
        path.write_bytes(whole[:length])
        log = FileLog(path)
        again = Twin(blueprint, log=log)
        assert again.metadata == (twin.metadata if length == len(whole) else before), length
        both_move(again)
        assert [partition.replicas for partition in again.metadata.topics["orders"].partitions.values()] == [
            (2, 3, 0, 1), (2, 3, 1)
        ]  # fmt: skip
        log.close()


def both_move(asked: Twin) -> None:
    """Move both partitions of orders by one decision."""
    targets = tuple(TopicTargets("orders", (Target(number, (2, 3)),)) for number in range(2))
    asked.commit(alter_reassignments(asked.context, AlterReassignments(targets)))


def test_a_log_of_another_cluster_is_refused() -> None:
    log = MemoryLog()
    Twin(cluster(brokers=3), log=log)
    with pytest.raises(InputError, match=r"other brokers than this cluster has: \[3\]"):
        Twin(cluster(brokers=4), log=log)


def test_leaders_return_to_preferred_replicas_only_on_request() -> None:
    asked = twin({"orders": [[0, 1], [0, 2]]})
    asked.stop(0)
    asked.start(0)
    asked.advance(600_000)
    assert [partition(asked, "orders", number)[2] for number in range(2)] == [1, 2]
    asked.restore_preferred_leaders()
    assert [partition(asked, "orders", number)[2] for number in range(2)] == [0, 0]


def test_an_allowed_unclean_election_happens_only_on_request() -> None:
    blueprint = cluster({"orders": [[0, 1]]})
    (topic,) = blueprint.topics
    asked = Twin(replace(blueprint, topics=(replace(topic, configs={"unclean.leader.election.enable": "true"}),)),
                 TwinSettings(KAFKA_3_9))  # fmt: skip
    asked.stop(1)
    asked.advance(60_000)
    asked.crash(0)
    asked.advance(60_000)
    asked.start(1)
    asked.advance(60_000)
    asked.elect_unclean_leaders()
    assert partition(asked, "orders")[2] == 1


def test_watchers_see_every_step() -> None:
    asked = twin({"orders": [[0, 1]]})
    seen: list[int] = []
    asked.watch(lambda box, _step: seen.append(box.metadata.offset))
    move(asked, "orders", 0, 2, 3)
    asked.advance(5_000)
    assert seen == sorted(seen)
    assert seen[-1] == asked.metadata.offset
    assert len(seen) > 3


# Requests without a connection


def test_a_single_frame_can_be_submitted() -> None:
    frame = encode_request(12, api.METADATA.request(topics=None), 1, "tests")
    assert twin().submit(0, bytes(frame)).frame
    with pytest.raises(ProtocolViolation):
        twin().submit(100, bytes(frame))


# Blueprints


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Blueprint(()), "a cluster needs brokers"),
        (lambda: Blueprint(small_cluster(1).brokers * 2), "a cluster needs brokers with different ids"),
        (lambda: PartitionPlan(()), "a partition needs replicas"),
        (lambda: PartitionPlan((1, 1)), "each on a broker of its own"),
        (lambda: PartitionPlan((1, 2), paths=("/d",)), "2 replicas have 1 log directory;"),
    ],
)
def test_clusters_that_cannot_be_are_refused(make: object, text: str) -> None:
    assert callable(make)
    with pytest.raises(InputError, match=text):
        make()


def test_replicas_lie_where_the_blueprint_says_or_else_evenly() -> None:
    plans = (PartitionPlan((0,), paths=("/data/0/d1",)), PartitionPlan((0,)), PartitionPlan((0,)), PartitionPlan((0,)))
    asked = Twin(replace(small_cluster(2), topics=(TopicPlan("orders", plans),)))
    found = [asked.replication.readings.log_dir(TopicPartition("orders", number), 0) for number in range(4)]
    assert found == ["/data/0/d1", "/data/0/d0", "/data/0/d0", "/data/0/d1"]
    ids = {log_dir.path: log_dir.directory_id for log_dir in asked.metadata.brokers[0].log_dirs}
    states = asked.metadata.topics["orders"].partitions.values()
    assert [state.directories for state in states] == [(ids[path],) for path in found if path]


def test_a_directory_that_a_broker_has_not_got_is_refused() -> None:
    plan = TopicPlan("orders", (PartitionPlan((0,), paths=("/elsewhere",)),))
    with pytest.raises(InputError, match="broker 0 has no log directory /elsewhere"):
        Twin(replace(small_cluster(2), topics=(plan,)))


def test_a_move_in_progress_goes_on() -> None:
    plan = PartitionPlan(
        (2, 0, 1), Traffic(size_bytes=1_000_000_000), adding=(2,), removing=(1,), held_bytes={2: 400_000_000}
    )
    asked = Twin(replace(small_cluster(3), topics=(TopicPlan("orders", (plan,)),)))
    assert asked.metadata.reassigning == {ORDERS}
    assert asked.replication.readings.size_bytes(ORDERS, 2) == 400_000_000
    asked.advance(5_000)
    assert partition(asked, "orders")[0] == (2, 0)
