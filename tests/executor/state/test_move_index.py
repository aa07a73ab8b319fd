"""State of every unfinished move, and the sums that pacing needs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.executor.events import CopyProgress, PartitionObservation, PlannedMove
from kreassign.executor.scheduling.limits import PacedMove
from kreassign.executor.state.move import MoveRecord, NextAction
from kreassign.executor.state.run import MoveIndex, candidate, left_by_destination, left_of
from kreassign.model import TopicPartition
from kreassign.model.run import LogDirTarget, MoveStatus
from tests.executor.state.played import MOVING


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
SUBMIT, NOTHING = NextAction.SUBMIT, NextAction.NOTHING


def places(index: MoveIndex) -> dict[str, list[TopicPartition]]:
    """The names in each place that has any."""
    whole = {"queue": [*index.queue], "in flight": [*index.in_flight], "unsettled": [*index.unsettled]}
    return {place: names for place, names in whole.items() if names}


def observed(record: MoveRecord, *copies: CopyProgress, isr: tuple[int, ...] = (0, 1), leader: int = 0) -> MoveRecord:
    record.see(PartitionObservation(record.name, MOVING, (2, 3, 0, 1), isr, leader, copies), 5)
    return record


@pytest.mark.parametrize("before", [
    (MoveStatus.PLANNED, SUBMIT), (MoveStatus.PLANNED, NOTHING), (MoveStatus.MOVING, NOTHING),
], ids=["queued", "unsettled", "in flight"])  # fmt: skip
@pytest.mark.parametrize(("status", "action", "place"), [
    (MoveStatus.PLANNED, SUBMIT, "queue"),
    (MoveStatus.PLANNED, NOTHING, "unsettled"),
    (MoveStatus.PLANNED, NextAction.CANCEL, "unsettled"),
    (MoveStatus.SENT, SUBMIT, "in flight"),
    (MoveStatus.MOVING, NOTHING, "in flight"),
    (MoveStatus.CANCELLING, NextAction.CANCEL, "in flight"),
    (MoveStatus.COMPLETE, SUBMIT, None),
    (MoveStatus.CANCELLED, NOTHING, None),
    (MoveStatus.FAILED, NOTHING, None),
])  # fmt: skip
def test_a_move_is_in_one_place_wherever_it_was_before(
    before: tuple[MoveStatus, NextAction], status: MoveStatus, action: NextAction, place: str | None
) -> None:
    index, record = MoveIndex(), MoveRecord(FIRST, before[0])
    index.sort(record, before[1])
    record.status = status
    index.sort(record, action)
    assert places(index) == ({} if place is None else {place: NAMES[:1]})
    assert index.queue.moves == ((candidate(record),) if place == "queue" else ())


def sorted_index() -> MoveIndex:
    """The first waits, the second is under way, the third was not seen."""
    index = MoveIndex.unseen([MoveRecord(SECOND, MoveStatus.MOVING), MoveRecord(WITHIN)])
    index.sort(MoveRecord(FIRST), SUBMIT)
    return index


def test_before_a_look_planned_moves_are_unsettled_and_sent_ones_in_flight() -> None:
    records = [MoveRecord(FIRST), MoveRecord(SECOND, MoveStatus.SENT), MoveRecord(WITHIN, MoveStatus.FAILED)]
    assert places(MoveIndex.unseen(records)) == {"unsettled": NAMES[:1], "in flight": NAMES[1:2]}


def test_destinations_are_brokers_that_still_get_a_copy() -> None:
    index = sorted_index()
    assert index.destinations == {2, 3, 4, 5}
    observed(index.in_flight[NAMES[1]], isr=(1, 0, 4))
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


def test_moves_in_flight_are_observed_first() -> None:
    index = sorted_index()
    assert [*index.to_observe] == [NAMES[1], NAMES[2]]
    index.in_flight[NAMES[1]].status = MoveStatus.FAILED
    assert [*index.to_observe] == [NAMES[2]]


COPIES = (CopyProgress(2, 900, 100), CopyProgress(3, 400, 600))


@pytest.mark.parametrize(("record", "expected"), [
    (MoveRecord(FIRST), PacedMove(NAMES[0], 1_000, 0, (2, 3), ((2, "/x"),), 7.0, True, 2_000)),
    (observed(MoveRecord(FIRST), *COPIES, leader=1),
     PacedMove(NAMES[0], 1_000, 1, (2, 3), ((2, "/x"),), 7.0, True, 700)),
    (MoveRecord(SECOND), PacedMove(NAMES[1], 1_000, 1, (4,), (), 7.0, False, 1_000)),
    (MoveRecord(WITHIN), PacedMove(NAMES[2], 1_000, 5, (), ((5, "/y"),), 7.0, False, 1_000)),
], ids=["unseen", "under way", "one copy", "within a broker"])  # fmt: skip
def test_pacing_knows_the_ends_the_bytes_and_the_writes_of_a_move(record: MoveRecord, expected: PacedMove) -> None:
    assert candidate(record) == expected


WHOLE = candidate(MoveRecord(FIRST))


@pytest.mark.parametrize(("isr", "expected"), [
    (None, WHOLE),
    ((0, 1), replace(WHOLE, size_bytes=600, left_bytes=700)),
    ((0, 1, 2), replace(WHOLE, size_bytes=600, left_bytes=600, destinations=(3,), log_dirs=())),
    ((0, 1, 3), replace(WHOLE, size_bytes=100, left_bytes=100, destinations=(2,))),
    ((0, 1, 2, 3), replace(WHOLE, size_bytes=0, left_bytes=0, destinations=(), log_dirs=())),
])  # fmt: skip
def test_a_move_in_flight_has_its_lagging_copies_left(isr: tuple[int, ...] | None, expected: PacedMove) -> None:
    record = MoveRecord(FIRST, MoveStatus.MOVING)
    assert left_of(record if isr is None else observed(record, *COPIES, isr=isr)) == expected


def test_bytes_to_come_are_summed_by_broker() -> None:
    found = left_by_destination([MoveRecord(FIRST), MoveRecord(move(3, (0,), (2,))), MoveRecord(WITHIN)])
    assert found == {2: 2_000, 3: 1_000, 5: 1_000}
    assert left_by_destination([]) == {}
