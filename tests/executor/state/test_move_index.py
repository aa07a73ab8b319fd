"""Where every unfinished move stands, and what pacing wants to know of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.executor.events import CopyProgress, LogDirTarget, PartitionObservation, PlacementState, PlannedMove
from kreassign.executor.scheduling import Candidate
from kreassign.executor.state.move import MoveRecord, MoveStatus, NextAction
from kreassign.executor.state.move_index import MoveIndex, candidate, left_by_destination, left_of
from kreassign.model import TopicPartition


def move(number: int, original: tuple[int, ...], target: tuple[int, ...], **paths: str) -> PlannedMove:
    """A move of 1,000 bytes, with the directories of some copies: `b2` is that of broker 2."""
    log_dirs = tuple(
        LogDirTarget(int(broker[1:]), path, "/old" if int(broker[1:]) in original else None)
        for broker, path in paths.items()
    )
    return PlannedMove(TopicPartition("a", number), original, target, 1_000, 7.0, number == 0, log_dirs)


FIRST = move(0, (0, 1), (2, 3), b2="/x", b9="/z")
SECOND = move(1, (1, 0), (1, 4))
WITHIN = move(2, (5, 6), (5, 6), b5="/y")
NAMES = [one.topic_partition for one in (FIRST, SECOND, WITHIN)]


def places(index: MoveIndex) -> tuple[list[TopicPartition], list[TopicPartition], list[TopicPartition]]:
    return [*index.queue], [*index.in_flight], [*index.unsettled]


def records() -> list[MoveRecord]:
    return [MoveRecord(one) for one in (FIRST, SECOND, WITHIN)]


def test_before_a_look_all_that_is_planned_is_unsettled_and_what_was_sent_in_flight() -> None:
    first, second, third = records()
    second.status, third.status = MoveStatus.SENT, MoveStatus.FAILED
    assert places(MoveIndex.unseen([first, second, third])) == ([], NAMES[1:2], NAMES[:1])


@pytest.mark.parametrize(("status", "action", "place"), [
    (MoveStatus.PLANNED, NextAction.SUBMIT, 0),
    (MoveStatus.PLANNED, NextAction.NOTHING, 2),
    (MoveStatus.PLANNED, NextAction.CANCEL, 2),
    (MoveStatus.SENT, NextAction.SUBMIT, 1),
    (MoveStatus.MOVING, NextAction.NOTHING, 1),
    (MoveStatus.CANCELLING, NextAction.CANCEL, 1),
    (MoveStatus.COMPLETE, NextAction.SUBMIT, None),
    (MoveStatus.CANCELLED, NextAction.NOTHING, None),
    (MoveStatus.FAILED, NextAction.NOTHING, None),
])  # fmt: skip
def test_a_move_is_in_one_place_wherever_it_was_before(
    status: MoveStatus, action: NextAction, place: int | None
) -> None:
    for before, first_action in (
        (MoveStatus.PLANNED, NextAction.SUBMIT),
        (MoveStatus.PLANNED, NextAction.NOTHING),
        (MoveStatus.MOVING, NextAction.NOTHING),
    ):
        index, record = MoveIndex(), MoveRecord(FIRST, before)
        index.sort(record, first_action)
        record.status = status
        index.sort(record, action)
        assert places(index) == tuple(NAMES[:1] if one == place else [] for one in range(3))
    assert index.queue.moves == ((candidate(record),) if place == 0 else ())


def test_of_a_move_that_is_sorted_without_a_word_nothing_is_to_be_done() -> None:
    index = MoveIndex()
    index.sort(MoveRecord(FIRST))
    assert places(index) == ([], [], NAMES[:1])


def sorted_index() -> MoveIndex:
    """The first waits, the second is under way, the third was not seen."""
    first, second, third = records()
    second.status = MoveStatus.MOVING
    index = MoveIndex.unseen([second, third])
    index.sort(first, NextAction.SUBMIT)
    return index


def test_destinations_are_all_brokers_that_still_get_a_copy() -> None:
    index = sorted_index()
    assert index.destinations == {2, 3, 4, 5}
    index.in_flight[NAMES[1]].observation = PartitionObservation(
        NAMES[1], PlacementState.MOVING, (1, 4, 0), (1, 0, 4), 1
    )
    assert index.destinations == {2, 3, 5}
    index.queue.remove(NAMES[0])
    del index.unsettled[NAMES[2]]
    assert index.destinations == set()


def test_directories_count_where_no_copy_of_a_broker_may_go_elsewhere() -> None:
    index = sorted_index()
    assert index.named_log_dirs == {2: {"/x"}, 5: {"/y"}}
    index.sort(MoveRecord(move(3, (1, 0), (1, 2)), MoveStatus.MOVING))
    assert index.named_log_dirs == {5: {"/y"}}
    index.sort(MoveRecord(move(4, (1, 0), (1, 5), b5="/w")))
    assert index.named_log_dirs == {5: {"/y", "/w"}}


def test_observed_is_what_may_have_gone_on_first_what_is_in_flight() -> None:
    index = sorted_index()
    assert [*index.to_observe] == [NAMES[1], NAMES[2]]
    index.in_flight[NAMES[1]].status = MoveStatus.FAILED
    assert [*index.to_observe] == [NAMES[2]]


def test_pacing_knows_the_ends_of_a_move_its_bytes_and_what_is_written_to_it() -> None:
    record = MoveRecord(FIRST)
    assert candidate(record) == Candidate(NAMES[0], 1_000, 0, (2, 3), ((2, "/x"),), 7.0, True, 2_000)
    copies = (CopyProgress(2, 900, 100), CopyProgress(3, 400, 600))
    record.see(PartitionObservation(NAMES[0], PlacementState.MOVING, (2, 3, 0, 1), (0, 1), 1, copies), 5)
    assert candidate(record) == Candidate(NAMES[0], 1_000, 1, (2, 3), ((2, "/x"),), 7.0, True, 700)
    assert candidate(MoveRecord(SECOND)) == Candidate(NAMES[1], 1_000, 1, (4,), (), 7.0, False, 1_000)
    assert candidate(MoveRecord(WITHIN)) == Candidate(NAMES[2], 1_000, 5, (), ((5, "/y"),), 7.0, False, 1_000)


def test_of_a_move_in_flight_copies_that_lag_are_left_with_the_largest_of_what_they_miss() -> None:
    record = MoveRecord(FIRST, MoveStatus.MOVING)
    whole = candidate(record)
    assert left_of(record) == whole
    copies = (CopyProgress(2, 900, 100), CopyProgress(3, 400, 600))
    look = PartitionObservation(NAMES[0], PlacementState.MOVING, (2, 3, 0, 1), (0, 1), 0, copies)
    record.see(look, 5)
    assert left_of(record) == replace(whole, size_bytes=600, left_bytes=700)
    record.see(replace(look, isr=(0, 1, 2)), 5)
    assert left_of(record) == replace(whole, size_bytes=600, left_bytes=600, destinations=(3,), log_dirs=())
    record.see(replace(look, isr=(0, 1, 3)), 5)
    assert left_of(record) == replace(whole, size_bytes=100, left_bytes=100, destinations=(2,))
    record.see(replace(look, isr=(0, 1, 2, 3)), 5)
    assert left_of(record) == replace(whole, size_bytes=0, left_bytes=0, destinations=(), log_dirs=())


def test_bytes_to_come_are_summed_by_broker() -> None:
    found = left_by_destination([MoveRecord(FIRST), MoveRecord(move(3, (0,), (2,))), MoveRecord(WITHIN)])
    assert found == {2: 2_000, 3: 1_000, 5: 1_000}
    assert type(found) is dict
    assert left_by_destination([]) == {}
