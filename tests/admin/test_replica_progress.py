"""Progress of copies, from the answers of brokers about their own copies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_lag_is_counted_from_the_leader_and_bytes_by_its_mean_record() -> None:
    status = progress(report(100, 1100, 5000), report(100, 850, 3700, taken_ms=77))
    assert status == ReplicaStatus(T0, FOLLOWER, False, 77, 100, 850, 250, 1250, 3700)


def test_the_leader_itself_lags_nothing() -> None:
    (status,) = replica_statuses(moving(), {LEADER: report(0, 10, 100)}, {})[T0]
    assert status == ReplicaStatus(T0, LEADER, True, 5, 0, 10, 0, 0, 100)


def test_a_copy_that_does_not_exist_yet_lags_all_that_the_leader_has() -> None:
    status = progress(report(400, 1000, 6000), BrokerReport(9))
    assert status == ReplicaStatus(T0, FOLLOWER, False, 9, -1, -1, 600, 6000, 0)


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


@given(st.integers(0, 10**9), st.integers(0, 10**6), st.integers(0, 10**12), st.integers(-1, 10**9 + 10**6))
def test_lag_is_never_negative_and_never_more_than_the_leader_has(
    start: int, records: int, size: int, end: int
) -> None:
    status = progress(report(start, start + records, size), report(start, end, size))
    assert 0 <= status.lag_records <= records
    assert status.lag_bytes is not None
    assert 0 <= status.lag_bytes <= size


def test_sizes_are_those_of_current_copies_in_all_directories() -> None:
    t1 = TopicPartition("t", 1)
    log_dirs = (
        LogDir("/a", None, None, None, False, (LogDirReplica(T0, 100, 0, False), LogDirReplica(t1, 7, 3, True))),
        LogDir("/b", None, None, None, False, (LogDirReplica(t1, 200, 0, False),)),
        LogDir("/c", "KAFKA_STORAGE_ERROR", None, None, False, ()),
    )
    assert replica_sizes_bytes(log_dirs) == {T0: 100, t1: 200}


def test_what_a_copy_skipped_because_remote_storage_has_it_was_not_copied() -> None:
    leader, copy = replica_statuses(moving(), {LEADER: report(0, 1000, 6000), FOLLOWER: report(800, 900, 600)}, {})[T0]
    assert (copy.lag_bytes, copy.done_bytes(leader)) == (600, 600)
    whole = progress(report(0, 1000, 6000), report(0, 900, 5400))
    assert (whole.lag_bytes, whole.done_bytes(leader)) == (600, 5400)
