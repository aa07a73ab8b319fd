"""Progress of copies, from the answers of brokers about their own copies."""

import pytest

from kreassign.admin.topic_changes import BrokerReport, replica_sizes_bytes, replica_statuses
from kreassign.errors import OutcomeUnknown, Unreachable
from kreassign.model import NO_LEADER, LogDir, LogDirReplica, Partition, ReplicaStatus, TopicPartition
from kreassign.model.requests import OffsetRange

T0 = TopicPartition("t", 0)
LEADER, FOLLOWER, THIRD = 1, 2, 3


def moving(leader: int = LEADER) -> dict[TopicPartition, Partition]:
    return {T0: Partition(T0, (LEADER, FOLLOWER, THIRD), (LEADER,), leader)}


def report(start: int, end: int, size: int | None, taken_ms: int = 5) -> BrokerReport:
    return BrokerReport(taken_ms, {T0: OffsetRange(start, end)}, {} if size is None else {T0: size})


def progress(leader: BrokerReport, follower: BrokerReport) -> ReplicaStatus:
    """The status of the follower."""
    (found,) = [
        status
        for status in replica_statuses(moving(), {LEADER: leader, FOLLOWER: follower}, {})[T0]
        if status.broker == FOLLOWER
    ]
    return found


@pytest.mark.parametrize(("leader", "follower", "lag_records", "lag_bytes", "size_bytes"), [
    (report(400, 1000, 6000), report(0, 0, 0), 600, 6000, 0),  # a new copy lags from the leader's start
    (report(0, 100, 1000), report(0, 120, 1200), 0, 0, 1200),  # seen later than the leader, a copy may be ahead
    (report(0, 100, None), report(0, 10, 90), 90, None, 90),
    (report(0, 100, 1000), report(0, 10, None), 90, 900, None),  # a size that was not told is not zero
    (report(7, 7, None), BrokerReport(9), 0, 0, 0),
    # Offsets 0 to 8,999 are in remote storage: sizes know nothing of them.
    (report(9_000, 10_000, 6_000), report(9_000, 9_250, 1_500), 750, 4_500, 1_500),
])  # fmt: skip
def test_lag_follows_from_what_both_brokers_tell(
    leader: BrokerReport, follower: BrokerReport, lag_records: int, lag_bytes: int | None, size_bytes: int | None
) -> None:
    status = progress(leader, follower)
    assert (status.lag_records, status.lag_bytes, status.size_bytes) == (lag_records, lag_bytes, size_bytes)


def test_a_broker_that_did_not_answer_is_left_out() -> None:
    outcome = replica_statuses(
        moving(), {LEADER: report(0, 1, 1), FOLLOWER: report(0, 1, 1)}, {THIRD: Unreachable("down")}
    )
    assert [status.broker for status in outcome[T0]] == [LEADER, FOLLOWER]


def test_a_partition_fails_with_the_error_of_its_leader() -> None:
    hung = OutcomeUnknown("hung")
    outcome = replica_statuses(moving(), {FOLLOWER: report(0, 1, 1)}, {LEADER: hung})
    assert dict(outcome.failed) == {T0: hung}
    assert not outcome.ok


def test_a_partition_without_a_leader_fails_and_says_so() -> None:
    outcome = replica_statuses(moving(NO_LEADER), {LEADER: report(0, 1, 1)}, {})
    assert "the leader of t-0 is not known" in str(outcome.failed[T0])


def test_a_leader_that_no_longer_hosts_the_partition_is_no_leader() -> None:
    outcome = replica_statuses(moving(), {LEADER: BrokerReport(5), FOLLOWER: report(0, 1, 1)}, {})
    assert isinstance(outcome.failed[T0], Unreachable)


def test_sizes_are_those_of_current_copies_in_all_directories() -> None:
    t1 = TopicPartition("t", 1)
    log_dirs = (
        LogDir("/a", None, None, None, False, (LogDirReplica(T0, 100, 0, False), LogDirReplica(t1, 7, 3, True))),
        LogDir("/b", None, None, None, False, (LogDirReplica(t1, 200, 0, False),)),
        LogDir("/c", "KAFKA_STORAGE_ERROR", None, None, False, ()),
    )
    assert replica_sizes_bytes(log_dirs) == {T0: 100, t1: 200}
