from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.admin.translate.partitions import alter_replica_log_dirs, describe_log_dirs
from kreassign.errors import Rejected
from kreassign.model import LogDir, TopicPartition
from kreassign.wire import api
from tests.admin import answers
from tests.admin.values import LOG_DIRS, PARTITIONS, as_read_by_us, as_seen_by_broker, versions

DESCRIBE, ALTER = api.DESCRIBE_LOG_DIRS, api.ALTER_REPLICA_LOG_DIRS
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@given(st.none() | st.lists(PARTITIONS, max_size=4), versions(DESCRIBE))
def test_a_broker_reads_which_copies_are_asked_about(partitions: list[TopicPartition] | None, version: int) -> None:
    seen = as_seen_by_broker(describe_log_dirs(partitions), version)
    if partitions is None:
        assert seen.topics is None
    else:
        read = [TopicPartition(topic.topic, index) for topic in seen.topics for index in topic.partitions]
        assert read == sorted(set(partitions))


@given(st.lists(LOG_DIRS, max_size=3), versions(DESCRIBE))
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


def test_an_offline_directory_carries_the_name_of_its_error() -> None:
    offline = LogDir("/a", None, None, None, False, ())
    (read,) = as_read_by_us(describe_log_dirs(None), 4, answers.log_dirs([offline], {"/a": 56}))
    assert read.error == "KAFKA_STORAGE_ERROR"


def test_another_error_of_a_directory_does_not_make_it_offline() -> None:
    unread = LogDir("/a", None, None, None, False, ())
    with pytest.raises(Rejected, match="UNKNOWN_SERVER_ERROR"):
        as_read_by_us(describe_log_dirs(None), 4, answers.log_dirs([unread], {"/a": -1}))


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_refused_request_raises(version: int) -> None:
    with pytest.raises(Rejected) as refused:
        as_read_by_us(describe_log_dirs(None), version, answers.log_dirs([], top=31))
    assert refused.value.code == 31


@given(st.dictionaries(PARTITIONS, st.text(max_size=6), max_size=5), versions(ALTER))
def test_a_broker_reads_where_every_copy_shall_go(targets: dict[TopicPartition, str], version: int) -> None:
    seen = as_seen_by_broker(alter_replica_log_dirs(targets), version)
    read = {
        TopicPartition(topic.name, index): entry.path
        for entry in seen.dirs
        for topic in entry.topics
        for index in topic.partitions
    }
    assert read == targets
    assert len({entry.path for entry in seen.dirs}) == len(seen.dirs)


@given(st.dictionaries(PARTITIONS, st.sampled_from([0, 3, 9, 39, 57, 999]), max_size=5), versions(ALTER))
def test_every_copy_gets_its_own_outcome(outcomes: dict[TopicPartition, int], version: int) -> None:
    call = alter_replica_log_dirs(dict.fromkeys(outcomes, "/a"))
    assert call.is_write
    batch = as_read_by_us(call, version, answers.log_dirs_altered(outcomes))
    failed = {key: error.code for key, error in batch.failed.items() if isinstance(error, Rejected)}
    assert dict.fromkeys(batch.ok, 0) | failed == outcomes
