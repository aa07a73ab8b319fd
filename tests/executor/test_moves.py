from kreassign.executor.events import CopySeen, PlannedMove, Sighting, Whereabouts
from kreassign.executor.moves import MoveRecord, MoveStatus
from kreassign.model import TopicPartition

MOVE = PlannedMove(TopicPartition("t", 0), (0, 1), (2, 3), 1_000)


def moving(*copies: CopySeen) -> Sighting:
    return Sighting(MOVE.topic_partition, Whereabouts.MOVING, (2, 3, 0, 1), (0, 1), 0, copies)


def test_bytes_copied_are_those_seen_so_far() -> None:
    record = MoveRecord(MOVE)
    record.see(moving(CopySeen(2, 300, 700), CopySeen(3, 100, 900)), 5)
    assert record.bytes_copied == 400


def test_a_copy_of_which_no_broker_told_this_time_is_as_far_as_it_was() -> None:
    record = MoveRecord(MOVE)
    record.see(moving(CopySeen(2, 300, 700), CopySeen(3, 100, 900)), 5)
    record.see(moving(CopySeen(3, 200, 800)), 5)
    assert record.bytes_copied == 500


def test_a_complete_move_copied_every_copy_in_full_with_what_was_written_meanwhile() -> None:
    record = MoveRecord(MOVE)
    record.see(moving(CopySeen(2, 1_000, 200)), 5)
    record.status = MoveStatus.COMPLETE
    assert record.bytes_copied == 1_200 + 1_000
