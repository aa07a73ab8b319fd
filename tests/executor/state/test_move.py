from dataclasses import replace

import pytest

from kreassign.executor.events import CopyProgress, LogDirTarget, PartitionObservation, PlacementState, PlannedMove
from kreassign.executor.state.move import DOUBT_MS, MoveRecord, MoveStatus, NextAction, conclude
from kreassign.executor.state.move_index import left_of
from kreassign.executor.state.move_steps import move_steps
from kreassign.model import NO_LEADER, TopicPartition

MOVE = PlannedMove(TopicPartition("t", 0), (0, 1), (2, 3), 1_000)


def moving(*copies: CopyProgress) -> PartitionObservation:
    return PartitionObservation(MOVE.topic_partition, PlacementState.MOVING, (2, 3, 0, 1), (0, 1), 0, copies)


def shown(placement: PlacementState, *replicas: int) -> PartitionObservation:
    """A look at a partition of which nobody copies anything."""
    return PartitionObservation(MOVE.topic_partition, placement, replicas, replicas, replicas[0])


def test_a_move_that_is_under_way_before_its_run_sent_it_is_not_sent() -> None:
    record = MoveRecord(MOVE)
    record.see(moving(), 5)
    assert (conclude(record, 5), record.status, record.submitted_ms) == (NextAction.NOTHING, MoveStatus.MOVING, 5)


def test_a_move_that_somebody_cancelled_is_not_sent_again_and_fails_once_it_looks_so_for_a_while() -> None:
    record = MoveRecord(MOVE, MoveStatus.MOVING)
    record.see(shown(PlacementState.REORDERED, 1, 0), 5)
    assert (conclude(record, 5), record.status) == (NextAction.NOTHING, MoveStatus.MOVING)
    assert (conclude(record, 5 + DOUBT_MS), record.status) == (NextAction.NOTHING, MoveStatus.FAILED)
    assert record.problem is not None
    assert "someone else cancelled or changed the move" in record.problem


def test_a_move_whose_cancellation_shows_is_cancelled_and_not_sent_again() -> None:
    record = MoveRecord(MOVE, MoveStatus.CANCELLING)
    record.see(shown(PlacementState.UNTOUCHED, 0, 1), 5)
    assert (conclude(record, 5), record.status, record.completed_ms) == (NextAction.NOTHING, MoveStatus.CANCELLED, 5)


@pytest.mark.parametrize(("was_cancelled", "action", "status"), [
    (True, NextAction.SUBMIT, MoveStatus.PLANNED),
    (False, NextAction.NOTHING, MoveStatus.FAILED),
], ids=["by this run", "by somebody"])  # fmt: skip
def test_another_order_of_the_replicas_is_no_hindrance_where_cancelling_made_it(
    was_cancelled: bool, action: NextAction, status: MoveStatus
) -> None:
    record = MoveRecord(MOVE, was_cancelled=was_cancelled)
    record.see(shown(PlacementState.REORDERED, 1, 0), 5)
    assert (conclude(record, 5), record.status) == (action, status)


@pytest.mark.parametrize(("left_bytes", "losing_ground"), [
    (699, None),
    (700, (10.0, 10.0)),
    (760, (10.0, 11.0)),
    (0, None),
])  # fmt: skip
def test_a_copy_loses_ground_when_in_a_minute_no_less_is_left(
    left_bytes: int, losing_ground: tuple[float, float] | None
) -> None:
    record = MoveRecord(MOVE)
    record.see(moving(CopyProgress(2, 300, 700)), 0)
    record.see(moving(CopyProgress(2, 890, 900)), 59_000)
    assert record.losing_ground is None
    record.see(moving(CopyProgress(2, 900, left_bytes)), 60_000)
    assert record.losing_ground == losing_ground


def test_a_copy_to_which_nothing_is_written_stands_still_without_losing_ground() -> None:
    record = MoveRecord(MOVE)
    record.see(moving(CopyProgress(2, 300, 700)), 0)
    record.see(moving(CopyProgress(2, 300, 700)), 60_000)
    assert record.losing_ground is None


def test_bytes_copied_are_those_seen_so_far() -> None:
    record = MoveRecord(MOVE)
    record.see(moving(CopyProgress(2, 300, 700), CopyProgress(3, 100, 900)), 5)
    assert record.bytes_copied == 400


def test_a_copy_of_which_no_broker_told_this_time_is_as_far_as_it_was() -> None:
    record = MoveRecord(MOVE)
    record.see(moving(CopyProgress(2, 300, 700), CopyProgress(3, 100, 900)), 5)
    record.see(moving(CopyProgress(3, 200, 800)), 5)
    assert record.bytes_copied == 500


def test_a_complete_move_copied_every_copy_in_full_with_what_was_written_meanwhile() -> None:
    record = MoveRecord(MOVE)
    record.see(moving(CopyProgress(2, 1_000, 200)), 5)
    record.status = MoveStatus.COMPLETE
    assert record.bytes_copied == 1_200 + 1_000


def test_a_copy_whose_directory_its_broker_has_forgotten_in_a_restart_is_sent_there_again() -> None:
    named = replace(MOVE, log_dirs=(LogDirTarget(2, "/d1"),))
    record = MoveRecord(named, MoveStatus.MOVING)
    record.see(
        PartitionObservation(named.topic_partition, PlacementState.UNTOUCHED, (2, 3), (2, 3), 2, misplaced=(2,)), 5
    )
    assert (conclude(record, 5), record.status) == (NextAction.SUBMIT, MoveStatus.SENT)


def test_only_copies_that_a_broker_makes_within_itself_lag_for_their_directory() -> None:
    named = replace(MOVE, target=(2, 1), log_dirs=(LogDirTarget(1, "/d1", "/d0"), LogDirTarget(2, "/d1")))
    record = MoveRecord(named)
    assert record.lagging == (1, 2)
    record.see(
        PartitionObservation(named.topic_partition, PlacementState.MOVING, (2, 0, 1), (0, 1, 2), 0, misplaced=(1,)), 5
    )
    assert record.lagging == (1,)
    record.see(
        PartitionObservation(named.topic_partition, PlacementState.MOVING, (2, 0, 1), (0, 1), 0, misplaced=(2,)), 5
    )
    assert record.lagging == (2,)


def test_a_step_that_is_over_is_not_taken_for_the_next_one_too() -> None:
    record = MoveRecord(MOVE, MoveStatus.MOVING, steps=move_steps(MOVE))
    first, last = record.steps
    record.see(PartitionObservation(MOVE.topic_partition, PlacementState.ARRIVED, first.target, first.target, 0), 5)
    assert (conclude(record, 5), record.step) == (NextAction.SUBMIT, last)
    # A look at which no broker told of the partition brings no sighting.
    assert (conclude(record, 6), record.step, record.status) == (NextAction.SUBMIT, last, MoveStatus.PLANNED)


def test_a_move_that_is_given_up_fails_with_that_once_there_is_nothing_to_cancel() -> None:
    record = MoveRecord(MOVE, MoveStatus.CANCELLING)
    record.give_up(3, "no broker has space")
    assert record.status is MoveStatus.CANCELLING
    record.see(shown(PlacementState.UNCONFIRMED, 2, 3), 5)
    assert (conclude(record, 5), record.status) == (NextAction.CANCEL, MoveStatus.CANCELLING)
    record.is_idle = True
    assert conclude(record, 5) is NextAction.NOTHING
    assert (record.status, record.completed_ms, record.problem) == (MoveStatus.FAILED, 5, "no broker has space")


def test_a_doubt_of_before_does_not_shorten_the_one_after_a_cancellation() -> None:
    """The move under way was in doubt while its copies were in sync; then brokers lag behind its cancellation."""
    record = MoveRecord(MOVE, MoveStatus.CANCELLING, doubtful_since_ms=0)
    record.see(shown(PlacementState.UNCONFIRMED, 2, 3), 14_000)
    conclude(record, 14_000)
    record.see(shown(PlacementState.SETTLING, 2, 3, 0, 1), DOUBT_MS)
    assert (conclude(record, DOUBT_MS), record.status) == (NextAction.NOTHING, MoveStatus.CANCELLING)


def test_of_a_move_in_flight_the_copies_that_lag_are_left() -> None:
    record = MoveRecord(MOVE, MoveStatus.MOVING)
    copies = (CopyProgress(2, 900, 100), CopyProgress(3, 400, 600))
    record.see(replace(moving(*copies), isr=(0, 1, 2)), 5)
    left = left_of(record)
    assert (left.destinations, left.size_bytes) == ((3,), 600)


def test_copies_come_from_the_leader_as_last_seen_and_from_the_first_replica_while_none_is_known() -> None:
    record = MoveRecord(MOVE)
    assert record.source == 0
    record.see(shown(PlacementState.REORDERED, 1, 0), 5)
    assert record.source == 1
    record.see(replace(shown(PlacementState.REORDERED, 1, 0), leader=NO_LEADER), 6)
    assert record.source == 0
