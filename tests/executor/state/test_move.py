from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from kreassign.executor.events import CopyProgress, LogDirTarget, PartitionObservation, PlacementState, PlannedMove
from kreassign.executor.state.attempts import LAST_WORD_MS, PATIENCE_MS, Attempts, delay_ms
from kreassign.executor.state.move import (
    DOUBT_MS,
    LEADERLESS_MS,
    PACE_MS,
    MoveRecord,
    MoveStatus,
    NextAction,
    Pace,
    Replan,
    conclude,
)
from kreassign.executor.state.move_index import left_of
from kreassign.executor.state.move_steps import move_steps
from kreassign.executor.throttle.demand import CopiedPartition
from kreassign.model import NO_LEADER, TopicPartition
from tests.executor.state.run_changes import Changes, record_changes

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


# --- what a record says --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("now", "found"), [
    (Pace(11_000, 500, 99), None),
    (Pace(11_000, 500, 100), (40.0, 40.0)),
    (Pace(11_000, 500, 150), (40.0, 45.0)),
    (Pace(11_000, 50, 150), (0.0, 5.0)),
    (Pace(11_000, 100, 100), None),
    (Pace(11_000, 100, 101), (0.0, 0.1)),
    (Pace(11_000, 101, 100), (0.1, 0.1)),
])  # fmt: skip
def test_ground_is_lost_where_no_less_is_left_and_anything_is_written(
    now: Pace, found: tuple[float, float] | None
) -> None:
    assert now.losing_ground_since(Pace(1_000, 100, 100)) == found


@pytest.mark.parametrize(("left_bytes", "found"), [(0, None), (1, (10.0, 10.1))])
def test_where_nothing_is_left_no_ground_is_lost(left_bytes: int, found: tuple[float, float] | None) -> None:
    assert Pace(11_000, 200, left_bytes).losing_ground_since(Pace(1_000, 100, 0)) == found


def observed(
    placement: PlacementState = PlacementState.MOVING,
    *copies: CopyProgress,
    isr: tuple[int, ...] = (0, 1),
    leader: int = 0,
    misplaced: tuple[int, ...] = (),
    offline: tuple[int, ...] = (),
) -> PartitionObservation:
    """A look at `MOVE`."""
    return PartitionObservation(MOVE.topic_partition, placement, (2, 3, 0, 1), isr, leader, copies, misplaced, offline)


ANOTHER = Replan(9, (3,), (2, 3), (2, 4))
NAMED = replace(MOVE, log_dirs=(LogDirTarget(2, "/d1"), LogDirTarget(3, "/d2"), LogDirTarget(4, "/d3")))


def test_wanted_is_the_target_to_come_with_its_directories() -> None:
    record = MoveRecord(NAMED)
    assert (record.wanted, record.is_given_up) == (NAMED, False)
    record.awaited_replan = ANOTHER
    elsewhere = replace(NAMED, target=(2, 4), log_dirs=(NAMED.log_dirs[0], NAMED.log_dirs[2]))
    assert (record.wanted, record.is_given_up, record.step) == (elsewhere, True, NAMED)
    assert MoveRecord(MOVE, given_up="no broker has space").is_given_up


@pytest.mark.parametrize(("observation", "has_leader", "source"), [
    (None, False, 0),
    (observed(leader=NO_LEADER), False, 0),
    (observed(leader=0), True, 0),
    (observed(leader=1), True, 1),
])  # fmt: skip
def test_whether_a_partition_has_a_leader_is_as_last_seen(
    observation: PartitionObservation | None, has_leader: bool, source: int
) -> None:
    record = MoveRecord(MOVE, observation=observation)
    assert (record.has_leader, record.source) == (has_leader, source)


@pytest.mark.parametrize(("observation", "lagging", "offline"), [
    (None, (2, 3), ()),
    (observed(offline=(3, 0)), (2, 3), (3,)),
    (observed(isr=(0, 1, 3), offline=(3,)), (2,), ()),
    (observed(PlacementState.UNCONFIRMED, isr=(0, 1, 2)), (3,), ()),
    (observed(PlacementState.UNTOUCHED, isr=(0, 1, 2, 3)), (2, 3), ()),
])  # fmt: skip
def test_brokers_lag_until_they_are_in_sync_while_they_copy(
    observation: PartitionObservation | None, lagging: tuple[int, ...], offline: tuple[int, ...]
) -> None:
    record = MoveRecord(MOVE, observation=observation)
    assert (record.lagging, record.offline) == (lagging, offline)


def test_within_a_broker_a_copy_lags_until_it_is_in_its_directory() -> None:
    within = replace(MOVE, target=(1, 0), log_dirs=(LogDirTarget(1, "/b", "/a"), LogDirTarget(0, "/b", "/b")))
    record = MoveRecord(within)
    assert record.lagging == (1,)
    for misplaced in ((), (0,), (0, 1)):
        record.observation = observed(misplaced=misplaced)
        assert record.lagging == ((1,) if 1 in misplaced else ())


@pytest.mark.parametrize(("copies", "story"), [
    ((), "no copy has begun; in sync are [0, 1]"),
    (
        (CopyProgress(2, 5, 7), CopyProgress(3, 6, None)),
        "broker 2 has 5 bytes, 7 left; broker 3 has 6 bytes, an unknown number left; in sync are [0, 1]",
    ),
])  # fmt: skip
def test_how_far_a_move_is_is_told_by_copy(copies: tuple[CopyProgress, ...], story: str) -> None:
    record = MoveRecord(MOVE)
    record.see(observed(PlacementState.MOVING, *copies), 5)
    assert record.story == story


def test_without_a_look_nobody_is_known_to_be_in_sync() -> None:
    assert MoveRecord(MOVE).story == "no copy has begun; in sync are []"


@pytest.mark.parametrize(("isr", "losing_ground", "copied"), [
    ((0, 1), None, CopiedPartition(8.0, 1, 1, (2, 3))),
    ((0, 1), (5.0, 6.0), CopiedPartition(3.0, 1, 1, (2, 3))),
    ((0, 1, 3), None, CopiedPartition(8.0, 1, 2, (2,))),
    ((), None, CopiedPartition(8.0, 1, 0, (2, 3))),
])  # fmt: skip
def test_what_a_move_takes_of_throttles_is_as_measured_or_as_before_the_run(
    isr: tuple[int, ...], losing_ground: tuple[float, float] | None, copied: CopiedPartition
) -> None:
    record = MoveRecord(replace(MOVE, write_bytes_per_s=8.0))
    record.see(observed(PlacementState.MOVING, CopyProgress(2, 0, 1), CopyProgress(3, 0, 1), isr=isr, leader=1), 5)
    record.losing_ground = losing_ground
    assert record.copied == copied


def test_before_a_look_a_move_takes_what_its_first_replicas_do() -> None:
    record = MoveRecord(replace(MOVE, original=(0, 1, 5)), losing_ground=(5.0, 6.0))
    assert record.copied == CopiedPartition(6.0, 0, 2, (2, 3))


def test_copies_within_a_broker_take_nothing_of_the_throttle_between_brokers() -> None:
    within = replace(MOVE, target=(2, 1), log_dirs=(LogDirTarget(1, "/b", "/a"),))
    assert MoveRecord(within).copied == CopiedPartition(0.0, 0, 1, (2,))


def test_bytes_received_and_left_are_told_by_broker_and_all_of_them_once_the_move_is_complete() -> None:
    record = MoveRecord(MOVE)
    assert (record.bytes_received, record.left_bytes) == ({2: 0, 3: 0}, {2: 1_000, 3: 1_000})
    record.see(observed(PlacementState.MOVING, CopyProgress(2, 1_100, 50), CopyProgress(9, 7, 7)), 5)
    assert (record.bytes_received, record.bytes_copied) == ({2: 1_100, 3: 0}, 1_100)
    assert record.left_bytes == {2: 50, 3: 1_000}
    record.see(observed(PlacementState.MOVING, CopyProgress(3, 5, None), isr=(0, 1, 2)), 6)
    assert (record.bytes_received, record.left_bytes) == ({2: 1_100, 3: 5}, {3: 1_000})
    record.status = MoveStatus.COMPLETE
    assert record.bytes_received == {2: 1_150, 3: 1_000}
    assert MoveRecord(MOVE, MoveStatus.COMPLETE).bytes_received == {2: 1_000, 3: 1_000}
    assert MoveRecord(replace(MOVE, size_bytes=0), MoveStatus.COMPLETE).bytes_received == {2: 0, 3: 0}


# --- what is noted of a move ---------------------------------------------------------------------------------------

RUN = "run-1"


def at(status: MoveStatus, move: PlannedMove = MOVE, **known: Any) -> MoveRecord:
    """A record that was sent after 1 s, taken and cancelled after 2 s, as far as its status says."""
    record = MoveRecord(move)
    if status is not MoveStatus.PLANNED:
        record.sent(1_000, RUN)
    if status in {MoveStatus.MOVING, MoveStatus.CANCELLING}:
        record.accepted()
    if status is MoveStatus.CANCELLING:
        record.cancelling(2_000, RUN)
    return replace(record, **known)


def test_sending_begins_an_attempt_and_the_first_one_the_move() -> None:
    record = MoveRecord(MOVE)
    assert record_changes(record, lambda: record.sent(1_000, RUN)) == {
        "status": MoveStatus.SENT,
        "submissions.count": 1,
        "submissions.first_ms": 1_000,
        "submissions.last_ms": 1_000,
        "submissions.due_ms": 1_000 + delay_ms(1, RUN),
        "submissions.unanswered": 1,
        "submitted_ms": 1_000,
        "progressed_ms": 1_000,
    }
    assert record_changes(record, lambda: record.sent(5_000, RUN)) == {
        "submissions.count": 2,
        "submissions.last_ms": 5_000,
        "submissions.due_ms": 5_000 + delay_ms(2, RUN),
        "submissions.unanswered": 2,
        "progressed_ms": 5_000,
    }


def test_what_the_controller_takes_is_under_way_whatever_it_answered_before() -> None:
    record = at(MoveStatus.SENT, refusal="not now")
    taken = {"status": MoveStatus.MOVING, "refusal": None, "submissions.unanswered": 0}
    assert record_changes(record, record.accepted) == taken


def test_a_refusal_is_the_end_unless_an_earlier_attempt_has_no_answer() -> None:
    record = at(MoveStatus.SENT)
    record.sent(2_000, RUN)
    answered = {"submissions.answer": "no", "submissions.unanswered": 1, "refusal": "no"}
    assert record_changes(record, lambda: record.refused(3_000, "no")) == answered
    assert record_changes(record, lambda: record.refused(4_000, "never")) == {
        "submissions.answer": "never",
        "submissions.unanswered": 0,
        "status": MoveStatus.FAILED,
        "completed_ms": 4_000,
        "problem": "never",
    }


def test_cancelling_begins_an_attempt_that_has_no_answer() -> None:
    record = at(MoveStatus.MOVING, is_idle=True)
    assert record_changes(record, lambda: record.cancelling(2_000, RUN)) == {
        "status": MoveStatus.CANCELLING,
        "is_idle": False,
        "cancellations.count": 1,
        "cancellations.first_ms": 2_000,
        "cancellations.last_ms": 2_000,
        "cancellations.due_ms": 2_000 + delay_ms(1, RUN),
        "cancellations.unanswered": 1,
    }


COPIES = (CopyProgress(0, 1, 1), CopyProgress(2, 300, 700), CopyProgress(3, 100, 900))
WAITING = {
    "status": MoveStatus.PLANNED,
    **{f"submissions.{what}": 0 for what in ("count", "first_ms", "last_ms", "due_ms")},
    **{f"cancellations.{what}": 0 for what in ("count", "first_ms", "last_ms", "due_ms", "unanswered")},
    "refusal": None,
    "is_idle": False,
    "anchor": None,
    "losing_ground": None,
    "progressed_ms": None,
}
"""A move that was cancelled begins from scratch."""


def under_way(**known: Any) -> MoveRecord:
    """A move that is being cancelled, of which everything is known that can be."""
    anchor = Pace(1, 2, 3)
    more = {"refusal": "no", "is_idle": True, "anchor": anchor, "losing_ground": (1.0, 2.0), "copies": COPIES}
    return at(MoveStatus.CANCELLING, NAMED, **more, **known)


def test_what_was_asked_to_be_cancelled_is_cancelled_for_good() -> None:
    record = under_way()
    over = {"status": MoveStatus.CANCELLED, "completed_ms": 5_000}
    assert record_changes(record, lambda: record.cancelled(5_000)) == over


def test_what_was_given_up_fails_once_it_is_cancelled() -> None:
    record = under_way(given_up="no space", awaited_replan=ANOTHER, is_postponed=True)
    failed = {"status": MoveStatus.FAILED, "completed_ms": 5_000, "problem": "no space"}
    assert record_changes(record, lambda: record.cancelled(5_000)) == failed


def test_what_was_postponed_waits_again_without_what_it_copied() -> None:
    record = under_way(is_postponed=True)
    again = {"is_postponed": False, "was_cancelled": True, "copies": COPIES[:1]}
    assert record_changes(record, lambda: record.cancelled(5_000)) == {**WAITING, **again}


def test_what_shall_lead_elsewhere_does_so_once_it_is_cancelled() -> None:
    record = under_way(
        awaited_replan=ANOTHER,
        is_postponed=True,
        doubtful_since_ms=3,
        leaderless_since_ms=4,
        observation=observed(PlacementState.UNTOUCHED, *COPIES, misplaced=(2,), isr=(0,)),
    )
    assert record_changes(record, lambda: record.cancelled(5_000)) == {
        **WAITING,
        "is_postponed": False,
        "was_cancelled": True,
        "move": replace(NAMED, target=(2, 4), log_dirs=(NAMED.log_dirs[0], NAMED.log_dirs[2])),
        "awaited_replan": None,
        "replans": (ANOTHER,),
        "doubtful_since_ms": None,
        "leaderless_since_ms": None,
        "copies": (),
        "observation": observed(PlacementState.UNTOUCHED, isr=(0,)),
    }


def test_what_is_not_under_way_leads_elsewhere_at_once_and_what_is_after_it_is_cancelled() -> None:
    waits = at(MoveStatus.PLANNED, copies=COPIES, replans=(replace(ANOTHER, at_ms=1),))
    assert record_changes(waits, lambda: waits.replan(ANOTHER)) == {
        "move": replace(MOVE, target=(2, 4)),
        "replans": (replace(ANOTHER, at_ms=1), ANOTHER),
        "copies": COPIES[1:2],
    }
    for status in (MoveStatus.SENT, MoveStatus.MOVING, MoveStatus.CANCELLING):
        record = at(status)
        assert record_changes(record, partial(record.replan, ANOTHER)) == {"awaited_replan": ANOTHER}


def test_of_a_move_in_steps_that_leads_elsewhere_those_that_are_made_stay_made() -> None:
    first, last = move_steps(MOVE)
    record = MoveRecord(MOVE, steps=(last,))
    record.replan(ANOTHER)
    elsewhere = replace(MOVE, target=(2, 4))
    assert (record.move, record.steps) == (elsewhere, move_steps(replace(elsewhere, original=first.target)))


def test_the_next_step_begins_where_the_cluster_is() -> None:
    steps = move_steps(MOVE)
    record = replace(under_way(steps=steps, is_postponed=True, was_cancelled=True), move=MOVE)
    assert record_changes(record, record.next_step) == {}
    arrived = observed(PlacementState.ARRIVED, *COPIES, isr=(0, 2))
    record.observation = arrived
    assert record_changes(record, record.next_step) == {
        **WAITING,
        "is_postponed": False,
        "was_cancelled": False,
        "steps": steps[1:],
        "copies": (COPIES[0], CopyProgress(2, 1_000, 0), COPIES[2]),
        "observation": replace(arrived, placement=PlacementState.UNTOUCHED, copies=()),
    }
    assert not record.next_step()
    assert record.steps == steps[1:]


def test_of_a_copy_of_which_nobody_knew_how_much_was_left_what_was_seen_arrived() -> None:
    steps = move_steps(MOVE)
    record = MoveRecord(MOVE, MoveStatus.MOVING, steps=steps, copies=(CopyProgress(2, 300, None),))
    record.observation = observed(PlacementState.ARRIVED)
    assert record.next_step()
    assert record.copies == (CopyProgress(2, 300, 0),)


def test_every_patience_begins_again_with_another_process() -> None:
    record = under_way(doubtful_since_ms=3, leaderless_since_ms=4)
    times = {
        f"{which}.{time}_ms": 9_000 for which in ("submissions", "cancellations") for time in ("first", "last", "due")
    }
    assert record_changes(record, lambda: record.resumed(9_000)) == {
        **times,
        "doubtful_since_ms": None,
        "leaderless_since_ms": None,
        "anchor": None,
        "losing_ground": None,
        "progressed_ms": 9_000,
    }
    never_sent = MoveRecord(MOVE)
    assert record_changes(never_sent, lambda: never_sent.resumed(9_000)) == times


def test_what_is_given_up_before_it_was_begun_fails_at_once() -> None:
    record = MoveRecord(MOVE)
    failed = {"status": MoveStatus.FAILED, "completed_ms": 9, "problem": "no space", "given_up": "no space"}
    assert record_changes(record, lambda: record.give_up(9, "no space")) == failed
    for status in (MoveStatus.SENT, MoveStatus.MOVING, MoveStatus.CANCELLING):
        record = at(status)
        assert record_changes(record, partial(record.give_up, 9, "no space")) == {"given_up": "no space"}


def test_a_move_makes_progress_when_a_copy_grows_or_a_replica_comes_in_sync() -> None:
    record = MoveRecord(MOVE)
    for at_ms, isr, done, progressed_ms in (
        (5, (0,), 0, 5),
        (6, (0,), 0, 5),
        (7, (0,), 1, 7),
        (8, (0, 1), 1, 8),
        (9, (0, 2), 1, 8),
        (10, (0,), 0, 8),
    ):
        record.see(observed(PlacementState.MOVING, CopyProgress(3, done, 1), isr=isr), at_ms)
        assert record.progressed_ms == progressed_ms


def test_copies_are_kept_in_the_order_of_their_brokers_and_the_newest_word_of_each() -> None:
    record = MoveRecord(MOVE)
    record.see(observed(PlacementState.MOVING, CopyProgress(3, 1, 9), CopyProgress(2, 1, 9)), 5)
    assert record.copies == (CopyProgress(2, 1, 9), CopyProgress(3, 1, 9))
    record.see(observed(PlacementState.MOVING, CopyProgress(3, 2, 8)), 6)
    assert record.copies == (CopyProgress(2, 1, 9), CopyProgress(3, 2, 8))
    assert record.observation == observed(PlacementState.MOVING, CopyProgress(3, 2, 8))


def measures(record: MoveRecord) -> tuple[Pace | None, tuple[float, float] | None]:
    """From where it is measured, and what was found last."""
    return record.anchor, record.losing_ground


def test_ground_is_measured_over_a_minute_of_all_copies_and_only_while_all_are_known() -> None:
    record = MoveRecord(MOVE)
    record.see(observed(PlacementState.MOVING, CopyProgress(2, 1, None)), 0)
    assert measures(record) == (None, None)
    record.see(observed(PlacementState.MOVING, CopyProgress(2, 10, 90), CopyProgress(3, 20, 80)), 1_000)
    assert measures(record) == (Pace(1_000, 30, 170), None)
    record.see(observed(PlacementState.MOVING, CopyProgress(2, 610, 95)), 999 + PACE_MS)
    assert measures(record) == (Pace(1_000, 30, 170), None)
    record.see(observed(PlacementState.MOVING), 1_000 + PACE_MS)
    assert measures(record) == (Pace(61_000, 630, 175), (10.0, (600 + 5) / 60))
    record.see(observed(PlacementState.MOVING, CopyProgress(3, 50, None)), 200_000)
    assert measures(record) == (Pace(61_000, 630, 175), (10.0, (600 + 5) / 60))
    record.see(observed(PlacementState.MOVING, CopyProgress(3, 50, 1)), 300_000)
    assert measures(record) == (Pace(300_000, 660, 96), None)
    record.see(observed(PlacementState.ARRIVED), 400_000)
    assert record.losing_ground is None


# --- what follows from an observation ------------------------------------------------------------------------------


def concluded(record: MoveRecord, observation: PartitionObservation, at_ms: int) -> tuple[NextAction, Changes]:
    """What a move needs after such a look, and what that changes of it."""
    record.see(observation, at_ms)
    actions: list[NextAction] = []
    changes = record_changes(record, lambda: actions.append(conclude(record, at_ms)))
    return actions[0], changes


NOTHING, SUBMIT, CANCEL = NextAction
STRANGE = (
    "it was no longer on its way to [2, 3]: the cluster showed the replicas [2, 3, 0, 1]; "
    "someone else cancelled or changed the move"
)
GONE = "the partition no longer exists"
OTHER = "its topic was deleted, and another one created under its name, which is left alone"
DRIFTED = "its replicas were [2, 3, 0, 1] and not [0, 1], from which the plan starts; someone else changed it"


def failed(problem: str) -> Changes:
    return {"status": MoveStatus.FAILED, "completed_ms": 5_000, "problem": problem}


DOUBTED = {"doubtful_since_ms": 5_000}
MADE = {"status": MoveStatus.COMPLETE, "completed_ms": 5_000}
FOUND = {"status": MoveStatus.MOVING}


@pytest.mark.parametrize(("status", "placement", "action", "changes"), [
    (MoveStatus.PLANNED, PlacementState.UNTOUCHED, SUBMIT, {}),
    (MoveStatus.PLANNED, PlacementState.MOVING, NOTHING, FOUND | {"submitted_ms": 5_000}),
    (MoveStatus.PLANNED, PlacementState.ARRIVED, NOTHING, MADE),
    (MoveStatus.PLANNED, PlacementState.UNCONFIRMED, NOTHING, FOUND | {"submitted_ms": 5_000}),
    (MoveStatus.PLANNED, PlacementState.SETTLING, NOTHING, DOUBTED),
    (MoveStatus.PLANNED, PlacementState.REORDERED, NOTHING, failed(DRIFTED)),
    (MoveStatus.PLANNED, PlacementState.DIVERGED, NOTHING, failed(DRIFTED)),
    (MoveStatus.PLANNED, PlacementState.DELETED, NOTHING, failed(GONE)),
    (MoveStatus.PLANNED, PlacementState.RECREATED, NOTHING, failed(OTHER)),
    (MoveStatus.SENT, PlacementState.UNTOUCHED, SUBMIT, {}),
    (MoveStatus.SENT, PlacementState.MOVING, NOTHING, FOUND | {"submissions.unanswered": 0}),
    (MoveStatus.SENT, PlacementState.ARRIVED, NOTHING, MADE),
    (MoveStatus.SENT, PlacementState.UNCONFIRMED, NOTHING, FOUND | {"submissions.unanswered": 0}),
    (MoveStatus.SENT, PlacementState.SETTLING, NOTHING, DOUBTED),
    (MoveStatus.SENT, PlacementState.REORDERED, NOTHING, DOUBTED),
    (MoveStatus.SENT, PlacementState.DIVERGED, NOTHING, DOUBTED),
    (MoveStatus.SENT, PlacementState.DELETED, NOTHING, failed(GONE)),
    (MoveStatus.SENT, PlacementState.RECREATED, NOTHING, failed(OTHER)),
    (MoveStatus.MOVING, PlacementState.UNTOUCHED, NOTHING, DOUBTED),
    (MoveStatus.MOVING, PlacementState.MOVING, NOTHING, {}),
    (MoveStatus.MOVING, PlacementState.ARRIVED, NOTHING, MADE),
    (MoveStatus.MOVING, PlacementState.UNCONFIRMED, NOTHING, {}),
    (MoveStatus.MOVING, PlacementState.SETTLING, NOTHING, DOUBTED),
    (MoveStatus.MOVING, PlacementState.REORDERED, NOTHING, DOUBTED),
    (MoveStatus.MOVING, PlacementState.DIVERGED, NOTHING, DOUBTED),
    (MoveStatus.MOVING, PlacementState.DELETED, NOTHING, failed(GONE)),
    (MoveStatus.MOVING, PlacementState.RECREATED, NOTHING, failed(OTHER)),
    (MoveStatus.CANCELLING, PlacementState.UNTOUCHED, NOTHING, {"status": MoveStatus.CANCELLED, "completed_ms": 5_000}),
    (MoveStatus.CANCELLING, PlacementState.MOVING, CANCEL, {}),
    (MoveStatus.CANCELLING, PlacementState.ARRIVED, NOTHING, MADE),
    (MoveStatus.CANCELLING, PlacementState.UNCONFIRMED, CANCEL, {}),
    (MoveStatus.CANCELLING, PlacementState.SETTLING, NOTHING, DOUBTED),
    (MoveStatus.CANCELLING, PlacementState.REORDERED, NOTHING, {"status": MoveStatus.CANCELLED, "completed_ms": 5_000}),
    (MoveStatus.CANCELLING, PlacementState.DIVERGED, NOTHING, DOUBTED),
    (MoveStatus.CANCELLING, PlacementState.DELETED, NOTHING, failed(GONE)),
    (MoveStatus.CANCELLING, PlacementState.RECREATED, NOTHING, failed(OTHER)),
])  # fmt: skip
def test_what_each_observation_means_in_each_state(
    status: MoveStatus, placement: PlacementState, action: NextAction, changes: Changes
) -> None:
    assert concluded(at(status), observed(placement), 5_000) == (action, changes)
    # A doubt ends with whatever is not strange.
    after = {} if "doubtful_since_ms" in changes else changes | {"doubtful_since_ms": None}
    assert concluded(at(status, doubtful_since_ms=4_999), observed(placement), 5_000) == (action, after)


@pytest.mark.parametrize("status", [MoveStatus.COMPLETE, MoveStatus.CANCELLED, MoveStatus.FAILED])
def test_nothing_follows_for_a_move_that_has_ended(status: MoveStatus) -> None:
    record = MoveRecord(MOVE, status)
    assert concluded(record, observed(PlacementState.DELETED), 5_000) == (NOTHING, {})


def test_nothing_follows_before_a_look() -> None:
    assert conclude(MoveRecord(MOVE), 5_000) is NOTHING


@pytest.mark.parametrize("status", [MoveStatus.SENT, MoveStatus.MOVING, MoveStatus.CANCELLING])
def test_what_is_strange_is_believed_after_so_long_and_not_one_ms_before(status: MoveStatus) -> None:
    record = at(status, doubtful_since_ms=5_000)
    assert concluded(record, observed(PlacementState.DIVERGED), 4_999 + DOUBT_MS) == (NOTHING, {})
    over = failed(STRANGE) | {"completed_ms": 5_000 + DOUBT_MS}
    assert concluded(record, observed(PlacementState.DIVERGED), 5_000 + DOUBT_MS) == (NOTHING, over)


def test_a_partition_is_waited_for_until_it_has_a_leader_and_for_a_minute() -> None:
    record = MoveRecord(MOVE)
    silent = replace(observed(PlacementState.UNTOUCHED, leader=NO_LEADER), replicas=(0, 1))
    assert concluded(record, silent, 5_000) == (NOTHING, {"leaderless_since_ms": 5_000})
    assert concluded(record, silent, 4_999 + LEADERLESS_MS) == (NOTHING, {})
    led = concluded(replace(record), observed(PlacementState.UNTOUCHED), 6_000)
    assert led == (SUBMIT, {"leaderless_since_ms": None})
    lost = "its partition had no leader for 60 s, so nothing was sent; bring back one of [0, 1], then replan"
    over = failed(lost) | {"completed_ms": 5_000 + LEADERLESS_MS}
    assert concluded(record, silent, 5_000 + LEADERLESS_MS) == (NOTHING, over)


def test_a_move_that_copies_nothing_needs_no_leader() -> None:
    record = MoveRecord(replace(MOVE, target=(1, 0)))
    assert concluded(record, observed(PlacementState.UNTOUCHED, leader=NO_LEADER), 5_000) == (SUBMIT, {})


def test_what_was_sent_is_sent_again_when_that_is_due() -> None:
    due_ms = 1_000 + delay_ms(1, RUN)
    untouched = observed(PlacementState.UNTOUCHED)
    assert concluded(at(MoveStatus.SENT), untouched, due_ms - 1) == (NOTHING, {})
    assert concluded(at(MoveStatus.SENT), untouched, due_ms) == (SUBMIT, {})


def test_what_was_refused_ends_once_earlier_attempts_had_their_time() -> None:
    record = at(MoveStatus.SENT, refusal="no such broker")
    untouched = observed(PlacementState.UNTOUCHED)
    assert concluded(record, untouched, 999 + LAST_WORD_MS) == (NOTHING, {})
    over = failed("no such broker") | {"completed_ms": 1_000 + LAST_WORD_MS}
    assert concluded(record, untouched, 1_000 + LAST_WORD_MS) == (NOTHING, over)


@pytest.mark.parametrize(("answer", "told"), [("", ""), ("not now", "; it answered: not now")])
def test_what_was_sent_in_vain_fails_with_how_often_and_how_long_and_the_last_answer(answer: str, told: str) -> None:
    tried = Attempts(3, 10_000, 120_000, 130_000, 3, answer)
    untouched, vain_ms = observed(PlacementState.UNTOUCHED), 10_000 + PATIENCE_MS
    due = concluded(at(MoveStatus.SENT, submissions=replace(tried, last_ms=0)), untouched, vain_ms - 1)
    assert due == (SUBMIT if tried.due_ms <= vain_ms - 1 else NOTHING, {})
    # The last attempt was at 120 s, and has its time.
    record = at(MoveStatus.SENT, submissions=tried)
    assert concluded(record, untouched, 119_999 + LAST_WORD_MS) == (SUBMIT, {})
    text = f"it was sent 3 times in 125 s and the cluster showed no effect{told}"
    over = failed(text) | {"completed_ms": 120_000 + LAST_WORD_MS}
    assert concluded(record, untouched, 120_000 + LAST_WORD_MS) == (NOTHING, over)


IN_SYNC = observed(PlacementState.UNCONFIRMED, isr=(0, 1, 2, 3))


def test_an_empty_list_is_believed_once_all_new_replicas_were_in_sync_for_a_while() -> None:
    record = at(MoveStatus.MOVING)
    assert concluded(record, observed(PlacementState.UNCONFIRMED, isr=(0, 2)), 4_000) == (NOTHING, {})
    assert concluded(record, IN_SYNC, 5_000) == (NOTHING, DOUBTED)
    assert concluded(record, IN_SYNC, 4_999 + DOUBT_MS) == (NOTHING, {})
    lags = concluded(replace(record), observed(PlacementState.UNCONFIRMED, isr=(0, 2)), 4_999 + DOUBT_MS)
    assert lags == (NOTHING, {"doubtful_since_ms": None})
    over = {"status": MoveStatus.COMPLETE, "completed_ms": 5_000 + DOUBT_MS}
    assert concluded(record, IN_SYNC, 5_000 + DOUBT_MS) == (NOTHING, over)


def test_a_replica_that_leaves_need_not_be_in_sync_for_that() -> None:
    only_new = observed(PlacementState.UNCONFIRMED, isr=(2, 3))
    assert concluded(at(MoveStatus.MOVING), only_new, 5_000) == (NOTHING, DOUBTED)


def test_where_the_controller_has_nothing_to_cancel_the_move_is_over() -> None:
    lagging = observed(PlacementState.UNCONFIRMED, isr=(0, 1, 2))
    assert concluded(at(MoveStatus.CANCELLING), lagging, 5_000) == (CANCEL, {})
    assert concluded(at(MoveStatus.CANCELLING, is_idle=True), lagging, 5_000) == (NOTHING, MADE)
    given_up = at(MoveStatus.CANCELLING, is_idle=True, given_up="no space", awaited_replan=ANOTHER)
    assert concluded(given_up, lagging, 5_000) == (NOTHING, failed("no space"))
    ended = (
        "it ended with brokers [3], which are not in sync, before it could be cancelled; use `kreassign plan repair`"
    )
    elsewhere = at(MoveStatus.CANCELLING, is_idle=True, awaited_replan=ANOTHER)
    assert concluded(elsewhere, lagging, 5_000) == (NOTHING, failed(ended))
    arrived = at(MoveStatus.CANCELLING, is_idle=True, awaited_replan=ANOTHER)
    assert concluded(arrived, IN_SYNC, 5_000) == (NOTHING, MADE | {"awaited_replan": None})


def test_a_cancellation_is_tried_again_when_that_is_due() -> None:
    due_ms = 2_000 + delay_ms(1, RUN)
    assert concluded(at(MoveStatus.CANCELLING), observed(), due_ms - 1) == (NOTHING, {})
    assert concluded(at(MoveStatus.CANCELLING), observed(), due_ms) == (CANCEL, {})


def test_an_order_that_our_own_cancelling_left_is_no_hindrance_to_send_again() -> None:
    back = observed(PlacementState.REORDERED)
    assert concluded(at(MoveStatus.SENT, was_cancelled=True), back, 5_000) == (SUBMIT, {})
    assert concluded(at(MoveStatus.PLANNED, was_cancelled=True), back, 5_000) == (SUBMIT, {})


def test_a_directory_that_was_forgotten_is_named_again_only_where_the_replicas_are_those_of_the_target() -> None:
    there = replace(observed(PlacementState.UNTOUCHED), replicas=(2, 3))
    assert concluded(at(MoveStatus.MOVING, NAMED), there, 5_000) == (SUBMIT, {"status": MoveStatus.SENT})
    assert concluded(at(MoveStatus.MOVING, NAMED), observed(PlacementState.UNTOUCHED), 5_000) == (NOTHING, DOUBTED)
    assert concluded(at(MoveStatus.MOVING), there, 5_000) == (NOTHING, DOUBTED)


def test_a_step_that_is_made_is_followed_by_the_next_one_at_once_and_the_last_ends_the_move() -> None:
    steps = move_steps(MOVE)
    record = at(MoveStatus.MOVING, steps=steps)
    action, changes = concluded(record, observed(PlacementState.ARRIVED), 5_000)
    assert (action, changes["steps"], changes["status"]) == (SUBMIT, steps[1:], MoveStatus.PLANNED)
    leaderless = at(MoveStatus.MOVING, steps=steps)
    action, changes = concluded(leaderless, observed(PlacementState.ARRIVED, leader=NO_LEADER), 5_000)
    assert (action, changes["leaderless_since_ms"]) == (NOTHING, 5_000)
    last = at(MoveStatus.MOVING, steps=steps[1:])
    assert concluded(last, observed(PlacementState.ARRIVED), 5_000) == (NOTHING, MADE)


def test_a_step_that_is_over_though_no_controller_says_so_is_followed_by_the_next_one_too() -> None:
    steps = move_steps(MOVE)
    in_sync_for_a_while = at(MoveStatus.MOVING, steps=steps, doubtful_since_ms=0)
    nothing_to_cancel = at(MoveStatus.CANCELLING, steps=steps, is_idle=True)
    for record in (in_sync_for_a_while, nothing_to_cancel):
        action, changes = concluded(record, IN_SYNC, DOUBT_MS)
        assert (action, changes["steps"]) == (SUBMIT, steps[1:])
