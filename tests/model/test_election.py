"""Results of a preferred leader election, partition by partition."""

from __future__ import annotations

import pytest

from kreassign.errors import ClusterError, InputError, Rejected, Unreachable
from kreassign.model import Batch, TopicPartition
from kreassign.model.requests import ElectionType, PreferredElectionResult

WELL, REFUSED, LOST, OTHER = (TopicPartition("t", number) for number in range(4))
NOT_AVAILABLE = Rejected("no", api="ElectLeaders", code=80, name="PREFERRED_LEADER_NOT_AVAILABLE", item=REFUSED)
DOWN = Unreachable("down")


def result(failed: dict[TopicPartition, ClusterError]) -> PreferredElectionResult:
    return PreferredElectionResult(Batch({WELL: None}, failed))


RESULT = result({REFUSED: NOT_AVAILABLE, LOST: DOWN})


def test_a_partition_is_well_or_raises_its_own_error() -> None:
    RESULT.partition_result(WELL)
    with pytest.raises(Rejected) as refused:
        RESULT.partition_result(REFUSED)
    assert refused.value is NOT_AVAILABLE
    with pytest.raises(Unreachable) as lost:
        RESULT.partition_result(LOST)
    assert (lost.value.item, lost.value.__cause__) == (LOST, DOWN)


def test_a_partition_for_which_no_election_was_attempted_is_named() -> None:
    with pytest.raises(InputError) as refused:
        RESULT.partition_result(OTHER)
    assert str(refused.value) == "no preferred leader election was attempted for partition t-3"


def test_those_for_which_one_was_attempted_are_known_whatever_came_of_it() -> None:
    assert RESULT.partitions() == {WELL, REFUSED, LOST}


def test_all_are_well_or_the_first_error_is_raised() -> None:
    result({}).all()
    with pytest.raises(Rejected) as refused:
        RESULT.all()
    assert refused.value is NOT_AVAILABLE


def test_elections_have_kafkas_numbers() -> None:
    assert [(one.name, int(one)) for one in ElectionType] == [("PREFERRED", 0), ("UNCLEAN", 1)]
