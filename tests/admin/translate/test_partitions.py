"""Calls about partitions and replicas: what depends on the version, and what an error says of a whole answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.admin.translate.partitions import (
    CONSUMER,
    DEBUGGING_REPLICA,
    describe_log_dirs,
    elect_leaders,
    list_offsets,
)
from kreassign.errors import Rejected, Unsupported
from kreassign.model import ElectionType, LogDir, OffsetSpec, TopicPartition
from kreassign.wire import api
from tests.admin import answers
from tests.admin.values import LOG_DIRS, PARTITIONS, TIMEOUT_MS, as_read_by_us, as_seen_by_broker, versions

T0 = TopicPartition("t", 0)

# Elections


def test_an_unclean_election_is_not_asked_of_an_old_broker() -> None:
    with pytest.raises(Unsupported, match="can only elect preferred leaders"):
        elect_leaders([T0], ElectionType.UNCLEAN).build(0, TIMEOUT_MS)


def test_a_wrong_controller_may_say_so_for_the_request_or_for_a_partition() -> None:
    call = elect_leaders([T0], ElectionType.PREFERRED)
    assert call.is_write
    assert 41 in call.routing_codes(answers.elected({}, top=41))
    assert 41 in call.routing_codes(answers.elected({T0: (41, None)}))
    assert 41 not in call.routing_codes(answers.elected({T0: (84, None)}))


# Offsets


@pytest.mark.parametrize("replica_id", [CONSUMER, DEBUGGING_REPLICA])
@given(
    partitions=st.lists(PARTITIONS, max_size=4), spec=st.sampled_from(OffsetSpec), version=versions(api.LIST_OFFSETS)
)
def test_a_broker_reads_which_offsets_are_asked_for_and_by_whom(
    replica_id: int, partitions: list[TopicPartition], spec: OffsetSpec, version: int
) -> None:
    seen = as_seen_by_broker(list_offsets(partitions, spec, replica_id), version)
    assert seen.replica_id == replica_id
    assert {entry.current_leader_epoch for topic in seen.topics for entry in topic.partitions} <= {-1}
    read = [(TopicPartition(topic.name, entry.partition_index), entry.timestamp)
            for topic in seen.topics for entry in topic.partitions]  # fmt: skip
    # Before tiered storage was known all logs were local.
    is_known = spec is not OffsetSpec.EARLIEST_LOCAL or version >= 8
    assert read == [(key, int(spec) if is_known else -2) for key in sorted(set(partitions))]


# Log directories


@given(st.lists(LOG_DIRS, max_size=3), versions(api.DESCRIBE_LOG_DIRS))
def test_directories_are_read_with_all_that_the_version_tells(log_dirs: list[LogDir], version: int) -> None:
    told = tuple(
        replace(
            log_dir,
            total_bytes=log_dir.total_bytes if version >= 4 else None,
            usable_bytes=log_dir.usable_bytes if version >= 4 else None,
            is_cordoned=log_dir.is_cordoned and version >= 5,
        )
        for log_dir in log_dirs
    )
    assert as_read_by_us(describe_log_dirs(None), version, answers.log_dirs(log_dirs)) == told


UNREAD = LogDir("/a", None, None, None, False, ())


def test_an_offline_directory_carries_the_name_of_its_error() -> None:
    (read,) = as_read_by_us(describe_log_dirs(None), 4, answers.log_dirs([UNREAD], {"/a": 56}))
    assert read.error == "KAFKA_STORAGE_ERROR"


def test_another_error_of_a_directory_does_not_make_it_offline() -> None:
    with pytest.raises(Rejected, match="UNKNOWN_SERVER_ERROR"):
        as_read_by_us(describe_log_dirs(None), 4, answers.log_dirs([UNREAD], {"/a": -1}))


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_refused_request_raises(version: int) -> None:
    with pytest.raises(Rejected) as refused:
        as_read_by_us(describe_log_dirs(None), version, answers.log_dirs([], top=31))
    assert refused.value.code == 31
