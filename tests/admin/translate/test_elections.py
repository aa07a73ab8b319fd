"""The calls of `translate.leaders`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.admin.translate.partitions import elect_leaders
from kreassign.errors import Rejected, Unsupported
from kreassign.model import ElectionType, TopicPartition
from kreassign.wire import api
from tests.admin import answers
from tests.admin.values import OUTCOMES, PARTITIONS, TIMEOUT_MS, as_read_by_us, as_seen_by_broker, versions

ELECT = api.ELECT_LEADERS
T0 = TopicPartition("t", 0)


@given(st.none() | st.lists(PARTITIONS, max_size=5), versions(ELECT))
def test_a_broker_reads_which_partitions_shall_elect(partitions: list[TopicPartition] | None, version: int) -> None:
    seen = as_seen_by_broker(elect_leaders(partitions, ElectionType.PREFERRED), version)
    assert seen.timeout_ms == TIMEOUT_MS
    if partitions is None:
        assert seen.topic_partitions is None
    else:
        read = [TopicPartition(topic.topic, index) for topic in seen.topic_partitions for index in topic.partitions]
        assert read == sorted(set(partitions))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("election_type", list(ElectionType))
def test_a_broker_reads_the_kind_of_election(election_type: ElectionType, version: int) -> None:
    assert as_seen_by_broker(elect_leaders([T0], election_type), version).election_type == int(election_type)


def test_an_unclean_election_is_not_asked_of_an_old_broker() -> None:
    with pytest.raises(Unsupported, match="can only elect preferred leaders"):
        elect_leaders([T0], ElectionType.UNCLEAN).build(0, TIMEOUT_MS)


@given(st.dictionaries(PARTITIONS, OUTCOMES, max_size=5), versions(ELECT))
def test_every_partition_gets_its_own_outcome(outcomes: dict[TopicPartition, answers.Outcome], version: int) -> None:
    batch = as_read_by_us(elect_leaders(outcomes, ElectionType.PREFERRED), version, answers.elected(outcomes))
    codes = {key: error.code for key, error in batch.failed.items() if isinstance(error, Rejected)}
    assert dict.fromkeys(batch.ok, 0) | codes == {key: code for key, (code, _) in outcomes.items()}


@pytest.mark.parametrize("version", [1, 2])
def test_a_refused_request_raises(version: int) -> None:
    call = elect_leaders([T0], ElectionType.PREFERRED)
    with pytest.raises(Rejected) as refused:
        as_read_by_us(call, version, answers.elected({T0: (31, None)}, top=31))
    assert refused.value.code == 31


def test_when_all_were_asked_those_that_needed_none_are_left_out() -> None:
    assert len(as_read_by_us(elect_leaders(None, ElectionType.PREFERRED), 2, answers.elected({}))) == 0


def test_a_wrong_controller_may_say_so_for_the_request_or_for_a_partition() -> None:
    call = elect_leaders([T0], ElectionType.PREFERRED)
    assert call.is_write
    assert 41 in call.routing_codes(answers.elected({}, top=41))
    assert 41 in call.routing_codes(answers.elected({T0: (41, None)}))
    assert 41 not in call.routing_codes(answers.elected({T0: (84, None)}))
