from dataclasses import replace

from kreassign.executor.events import CopyProgress, LogDirTarget, PartitionObservation, PlacementState, PlannedMove
from kreassign.executor.state.move import MoveRecord, MoveStatus, NextAction, conclude
from kreassign.executor.state.move_steps import move_steps
from kreassign.model import TopicPartition

MOVE = PlannedMove(TopicPartition("t", 0), (0, 1), (2, 3), 1_000)


def moving(*copies: CopyProgress) -> PartitionObservation:
    return PartitionObservation(MOVE.topic_partition, PlacementState.MOVING, (2, 3, 0, 1), (0, 1), 0, copies)


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
