import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.admin.translate.partitions import alter_partition_reassignments, list_partition_reassignments
from kreassign.errors import Rejected, Unsupported
from kreassign.model import OngoingReassignment, TopicPartition
from kreassign.wire import api
from tests.admin import answers, values

ALTER, LIST = api.ALTER_PARTITION_REASSIGNMENTS, api.LIST_PARTITION_REASSIGNMENTS
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
Targets = dict[TopicPartition, tuple[int, ...] | None]


@given(st.dictionaries(values.PARTITIONS, st.none() | values.REPLICAS, max_size=5), values.versions(ALTER))
def test_a_broker_reads_every_target_and_every_cancel(targets: Targets, version: int) -> None:
    seen = values.as_seen_by_broker(
        alter_partition_reassignments(targets, allow_replication_factor_change=True), version
    )
    read = {
        TopicPartition(topic.name, partition.partition_index): partition.replicas
        for topic in seen.topics
        for partition in topic.partitions
    }
    assert read == {key: None if replicas is None else list(replicas) for key, replicas in targets.items()}
    assert list(read) == sorted(targets)
    assert seen.timeout_ms == values.TIMEOUT_MS


@pytest.mark.parametrize("allowed", [True, False])
def test_a_broker_that_knows_kip_860_reads_whether_the_factor_may_change(allowed: bool) -> None:
    seen = values.as_seen_by_broker(
        alter_partition_reassignments({T0: (1,)}, allow_replication_factor_change=allowed), 1
    )
    assert seen.allow_replication_factor_change is allowed


def test_a_guard_that_a_broker_lacks_is_refused_in_kafkas_words() -> None:
    call = alter_partition_reassignments({T0: (1,)}, allow_replication_factor_change=False)
    with pytest.raises(Unsupported) as refused:
        call.build(0, values.TIMEOUT_MS)
    assert str(refused.value) == (
        "The broker does not support the AllowReplicationFactorChange option for the AlterPartitionReassignments API. "
        "Consider re-sending the request without the option or updating the server version"
    )


@given(st.dictionaries(values.PARTITIONS, values.OUTCOMES, max_size=5), values.versions(ALTER))
def test_every_partition_gets_its_own_outcome(outcomes: dict[TopicPartition, answers.Outcome], version: int) -> None:
    call = alter_partition_reassignments(dict.fromkeys(outcomes), allow_replication_factor_change=True)
    batch = values.as_read_by_us(call, version, answers.altered(outcomes))
    assert dict.fromkeys(batch.ok, 0) | {key: error.code for key, error in rejections(batch.failed)} == {
        key: code for key, (code, _) in outcomes.items()
    }
    for key, error in rejections(batch.failed):
        assert not outcomes[key][1] or error.message == outcomes[key][1]


def rejections(failed: object) -> list[tuple[TopicPartition, Rejected]]:
    assert isinstance(failed, dict)
    assert all(isinstance(error, Rejected) for error in failed.values())
    return list(failed.items())


def test_a_refused_request_raises_although_its_partitions_repeat_the_error() -> None:
    call = alter_partition_reassignments({T0: (1,)}, allow_replication_factor_change=True)
    response = answers.altered({T0: (31, "needs ALTER permission.")}, top=(31, "needs ALTER permission."))
    with pytest.raises(Rejected, match=r"needs ALTER permission.") as refused:
        values.as_read_by_us(call, 1, response)
    assert refused.value.code == 31


def test_an_empty_message_next_to_no_error_is_no_error() -> None:
    call = alter_partition_reassignments({T0: (1,)}, allow_replication_factor_change=True)
    assert values.as_read_by_us(call, 0, answers.altered({T0: answers.FINE}, top=(0, ""))).ok == {T0: None}


def test_only_the_top_level_sends_the_call_to_another_controller() -> None:
    call = alter_partition_reassignments({T0: (1,)}, allow_replication_factor_change=True)
    assert list(call.routing_codes(answers.altered({}, top=(41, None)))) == [41]
    assert call.is_write


@given(st.none() | st.lists(values.PARTITIONS, max_size=5), values.versions(LIST))
def test_a_broker_reads_which_partitions_are_asked_about(partitions: list[TopicPartition] | None, version: int) -> None:
    seen = values.as_seen_by_broker(list_partition_reassignments(partitions), version)
    if partitions is None:
        assert seen.topics is None
    else:
        read = [TopicPartition(topic.name, index) for topic in seen.topics for index in topic.partition_indexes]
        assert read == sorted(set(partitions))


@given(st.dictionaries(values.PARTITIONS, values.ONGOING, max_size=5), values.versions(LIST))
def test_ongoing_reassignments_are_read_as_they_are_stored(
    ongoing: dict[TopicPartition, OngoingReassignment], version: int
) -> None:
    assert values.as_read_by_us(list_partition_reassignments(None), version, answers.listed(ongoing)) == ongoing


def test_a_refused_listing_raises() -> None:
    call = list_partition_reassignments(None)
    assert not call.is_write
    assert list(call.routing_codes(answers.listed({}, top=(41, None)))) == [41]
    with pytest.raises(Rejected, match="Cluster authorization failed"):
        values.as_read_by_us(call, 0, answers.listed({}, top=(31, None)))
