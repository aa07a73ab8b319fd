import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.admin.translate.partitions import CONSUMER, DEBUGGING_REPLICA, list_offsets
from kreassign.errors import Rejected
from kreassign.model import OffsetSpec, TopicPartition
from kreassign.wire import api
from tests.admin import answers
from tests.admin.values import LONGS, PARTITIONS, as_read_by_us, as_seen_by_broker, versions

T0 = TopicPartition("t", 0)


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


def test_specs_have_kafkas_numbers() -> None:
    assert (OffsetSpec.LATEST, OffsetSpec.EARLIEST, CONSUMER, DEBUGGING_REPLICA) == (-1, -2, -1, -2)
    assert (OffsetSpec.EARLIEST_LOCAL, OffsetSpec.EARLIEST_PENDING_UPLOAD) == (-4, -6)


@given(st.dictionaries(PARTITIONS, LONGS, max_size=4), versions(api.LIST_OFFSETS))
def test_offsets_are_read(found: dict[TopicPartition, int], version: int) -> None:
    batch = as_read_by_us(list_offsets(found, OffsetSpec.LATEST), version, answers.offsets(found))
    assert batch.ok == found
    assert not batch.failed


@pytest.mark.parametrize("code", [3, 6, 29, 999])
def test_a_refused_partition_carries_its_code(code: int) -> None:
    batch = as_read_by_us(list_offsets([T0], OffsetSpec.LATEST), 7, answers.offsets({}, {T0: code}))
    refused = batch.failed[T0]
    assert isinstance(refused, Rejected)
    assert refused.code == code
