"""Copied bytes of copies with unknown facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.model import ReplicaStatus, TopicPartition
from kreassign.model.requests import NO_COPY, Copy, OffsetRange

LEADER = ReplicaStatus(TopicPartition("t", 0), 1, True, 5, 0, 100, 0, 0, 1000)
COPY = ReplicaStatus(TopicPartition("t", 0), 2, False, 5, 0, 60, 40, 400, 620)


def test_what_has_been_copied_is_the_size_of_the_leader_without_the_lag() -> None:
    assert COPY.done_bytes(LEADER) == 600
    assert replace(COPY, lag_bytes=1200).done_bytes(LEADER) == 0


def test_the_size_of_the_copy_counts_without_that_of_the_leader() -> None:
    assert COPY.done_bytes(None) == 620
    assert replace(COPY, lag_bytes=None).done_bytes(LEADER) == 620
    assert COPY.done_bytes(replace(LEADER, size_bytes=None)) == 620
    assert replace(COPY, size_bytes=None).done_bytes(None) is None


def test_what_a_copy_skipped_counts_only_as_far_as_the_leader_has_it() -> None:
    whole = replace(COPY, lag_bytes=0)
    assert replace(whole, log_start_offset=25).done_bytes(LEADER) == 750
    assert replace(whole, log_start_offset=100).done_bytes(LEADER) == 0
    assert replace(whole, log_start_offset=101).done_bytes(LEADER) == 1000
    assert replace(whole, log_start_offset=25).done_bytes(replace(LEADER, log_start_offset=20)) == 938
    assert replace(whole, log_start_offset=1).done_bytes(LEADER) == 990
    assert replace(whole, log_start_offset=10).done_bytes(replace(LEADER, log_start_offset=20)) == 1000


def test_of_an_empty_log_all_has_been_copied() -> None:
    empty = replace(LEADER, log_end_offset=0, size_bytes=0)
    assert replace(COPY, log_end_offset=0, lag_records=0, lag_bytes=0).done_bytes(empty) == 0


def copy(start: int, end: int, size_bytes: int | None = None) -> Copy:
    return Copy(OffsetRange(start, end), size_bytes)


@pytest.mark.parametrize(("follower", "leader", "lag"), [
    (copy(0, 60), copy(0, 100, 1000), (40, 400)),
    (copy(0, 99), copy(0, 100, 1000), (1, 10)),
    (copy(0, 100), copy(0, 100, 1000), (0, 0)),
    (copy(0, 101), copy(0, 100, 1000), (0, 0)),
    (copy(0, 100), copy(0, 100), (0, 0)),
    (copy(0, 60), copy(0, 100), (40, None)),
    (copy(0, 60), copy(0, 100, 0), (40, 0)),
    (copy(0, 60), copy(20, 100, 1000), (40, 500)),
    (copy(0, 10), copy(20, 100, 1000), (80, 1000)),
    (Copy(NO_COPY, 0), copy(20, 100, 1000), (80, 1000)),
    (Copy(NO_COPY, 0), copy(0, 100, 1000), (100, 1000)),
    (Copy(NO_COPY, 0), copy(0, 0, 0), (0, 0)),
    (Copy(NO_COPY, 0), copy(5, 5, 7), (0, 0)),
    (copy(0, 2), copy(0, 3, 100), (1, 33)),
])  # fmt: skip
def test_a_copy_lags_by_records_and_by_as_much_of_the_size_of_the_leader(
    follower: Copy, leader: Copy, lag: tuple[int, int | None]
) -> None:
    assert follower.lag_behind(leader) == lag
