"""Effects of an override on KRaft: rows seen on Kafka 4.3.1, and the same from the twin's controller."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kreassign.model import OngoingReassignment, TopicPartition
from kreassign.model.reassignment import Override
from kreassign.twin import Twin
from kreassign.twin.controller import reassignments
from tests.approved import approve
from tests.twin.asking import twin

Brokers = tuple[int, ...]


def override(before: Brokers, first: Brokers, second: Brokers) -> Override:
    started = Override(OngoingReassignment(before, (), ()), first).listed
    return Override(started, second)


@pytest.mark.parametrize(("before", "first", "second", "sentence"), [
    # The list from before, submitted again, which looks like a way back.
    ((0, 1), (2, 3), (0, 1), "it can never end (Kafka 4.3): brokers 2,3 would be both added and removed"),
    ((0,), (3,), (0,), "it can never end (Kafka 4.3): broker 3 would be both added and removed"),
    # Nothing is removed any more, so that what was to go goes.
    ((0, 1), (2, 3), (2, 3, 0, 1), "it ends without the target's replicas on brokers 0,1"),
    # Something new: the abandoned copy is one of the replicas, as far as a cancel knows.
    ((0,), (3, 1), (3, 2), "copies for the former target stay on brokers 1,3 until it ends, even if cancelled"),
    ((0, 1), (2, 3), (3, 2), ""),
    ((0, 1), (2, 3), (2, 3), ""),
])  # fmt: skip
def test_each_risk_is_said(before: Brokers, first: Brokers, second: Brokers, sentence: str) -> None:
    found = override(before, first, second)
    assert str(found) == sentence
    assert found.is_risky == bool(sentence)


def test_of_an_override_every_list_is_known_and_ascends() -> None:
    found = Override(OngoingReassignment((5, 4, 1, 0), (4, 5), (0, 1)), (6, 1, 5))
    assert found.listed == OngoingReassignment((6, 1, 5, 0, 4), (6,), (0, 4))
    assert (found.dropped, found.left_over, found.can_never_complete, found.is_risky) == ((), (4, 5), False, True)
    found = Override(OngoingReassignment((5, 4, 1, 0), (4, 5), (0, 1)), (1, 0, 5, 4))
    assert found.listed == OngoingReassignment((1, 0, 5, 4), (4, 5), (0, 1))
    assert (found.dropped, found.left_over, found.can_never_complete, found.is_risky) == ((0, 1), (), False, True)


def test_several_risks_are_said_one_after_the_other() -> None:
    endless = Override(OngoingReassignment((3, 2, 1), (3,), (1, 2)), (2, 1))
    found = Override(OngoingReassignment((4, 3, 2, 1), (3, 4), (1, 2)), (4, 3, 2, 1, 5))
    approve([endless, found], "risks-of-overrides")
    assert (found.can_never_complete, found.is_risky) == (False, True)


def submit(cluster: Twin, replicas: Brokers | None) -> None:
    command = reassignments.AlterReassignments(
        (reassignments.TopicTargets("foo", (reassignments.Target(0, replicas),)),)
    )
    cluster.commit(reassignments.alter_reassignments(cluster.context, command))


def listed(cluster: Twin) -> OngoingReassignment | None:
    found = reassignments.list_reassignments(cluster.metadata)
    return found[0].partitions[0][1] if found else None


def replicas(cluster: Twin) -> Brokers:
    state = cluster.metadata.partition(TopicPartition("foo", 0))
    assert state is not None
    return state.replicas


LISTS = st.lists(st.sampled_from(range(4)), min_size=1, max_size=4, unique=True).map(tuple)


@settings(deadline=None, max_examples=60)
@given(LISTS, LISTS, LISTS)
def test_a_controller_comes_to_the_same(before: Brokers, first: Brokers, second: Brokers) -> None:
    cluster = twin({"foo": [list(before)]})
    submit(cluster, first)
    ongoing = listed(cluster)
    if ongoing is None:
        return
    expected = Override(ongoing, second)
    submit(cluster, second)
    found = listed(cluster)
    if found is None:  # it has ended at once, with what it was expected to drop
        assert not expected.can_never_complete
        assert set(replicas(cluster)) == set(expected.listed.target)
        return
    assert found == expected.listed
    submit(cluster, None)
    if listed(cluster) is None:  # else a cancel would lose records, and is refused
        assert set(replicas(cluster)) - set(before) == set(expected.left_over) - set(before)
