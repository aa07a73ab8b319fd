"""What has been copied, of copies about which not everything is known."""

from __future__ import annotations

from dataclasses import replace

from kreassign.model import ReplicaStatus, TopicPartition

LEADER = ReplicaStatus(TopicPartition("t", 0), 1, True, 5, 0, 100, 0, 0, 1000)
COPY = ReplicaStatus(TopicPartition("t", 0), 2, False, 5, 0, 60, 40, 400, 620)


def test_what_has_been_copied_is_the_size_of_the_leader_without_the_lag() -> None:
    assert COPY.done_bytes(LEADER) == 600
    assert replace(COPY, lag_bytes=1200).done_bytes(LEADER) == 0


def test_without_leader_or_lag_or_size_of_the_leader_it_is_what_the_copy_takes() -> None:
    assert COPY.done_bytes(None) == 620
    assert replace(COPY, lag_bytes=None).done_bytes(LEADER) == 620
    assert COPY.done_bytes(replace(LEADER, size_bytes=None)) == 620
    assert replace(COPY, size_bytes=None).done_bytes(None) == 0


def test_what_a_copy_skipped_counts_only_as_far_as_the_leader_has_it() -> None:
    whole = replace(COPY, lag_bytes=0)
    assert replace(whole, log_start_offset=25).done_bytes(LEADER) == 750
    assert replace(whole, log_start_offset=100).done_bytes(LEADER) == 0
    assert replace(whole, log_start_offset=101).done_bytes(LEADER) == 1000
    assert replace(whole, log_start_offset=25).done_bytes(replace(LEADER, log_start_offset=20)) == 938
