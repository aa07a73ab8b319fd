"""One partition's way through a run: what each look means, what a record tells, and what is noted of it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from kreassign.executor.events import CopyProgress, PartitionObservation, PlacementState, PlannedMove
from kreassign.executor.state.attempts import LAST_WORD_MS, PATIENCE_MS, Attempts, delay_ms
from kreassign.executor.state.move import PACE_MS, CopyPace, MoveRecord, NextAction, Replan
from kreassign.executor.state.move_rules import DOUBT_MS, conclude
from kreassign.executor.state.steps import move_steps
from kreassign.executor.throttle_rates import CopiedPartition
from kreassign.model import NO_LEADER, TopicPartition
from kreassign.model.run import LogDirTarget, MoveStatus
from tests.executor.state.played import ARRIVED, MOVING, UNTOUCHED

MOVE = PlannedMove(TopicPartition("t", 0), (0, 1), (2, 3), 1_000)
NAMED = replace(MOVE, log_dirs=(LogDirTarget(2, "/d1"), LogDirTarget(3, "/d2"), LogDirTarget(4, "/d3")))
WITHIN = replace(MOVE, target=(2, 1), log_dirs=(LogDirTarget(1, "/b", "/a"), LogDirTarget(2, "/b")))
"""Broker 1 only changes the directory of its copy."""
STEPS = move_steps(MOVE)
ANOTHER = Replan(9, (3,), (2, 3), (2, 4))
UNCONFIRMED, SETTLING, DIVERGED, REORDERED = (
    PlacementState.UNCONFIRMED, PlacementState.SETTLING, PlacementState.DIVERGED, PlacementState.REORDERED,
)  # fmt: skip
PLANNED, SENT, UNDER_WAY, CANCELLING = (
    MoveStatus.PLANNED, MoveStatus.SENT, MoveStatus.MOVING, MoveStatus.CANCELLING,
)  # fmt: skip
RUN = "run-1"
AGAIN_MS = 1_000 + delay_ms(1, RUN)
"""When a move is sent again that was sent after a second."""


def observed(
    placement: PlacementState = MOVING,
    *copies: CopyProgress,
    isr: tuple[int, ...] = (0, 1),
    leader: int = 0,
    replicas: tuple[int, ...] = (2, 3, 0, 1),
    **more: Any,
) -> PartitionObservation:
    return PartitionObservation(MOVE.topic_partition, placement, replicas, isr, leader, copies, **more)


def at(status: MoveStatus, move: PlannedMove = MOVE, **known: Any) -> MoveRecord:
    """A record that was sent after 1 s, taken, and cancelled after 2 s with an answer, as far as its status says."""
    record = MoveRecord(move)
    if status is not PLANNED:
        record.sent(1_000, RUN)
    if status in {UNDER_WAY, CANCELLING}:
        record.accepted()
    if status is CANCELLING:
        record.cancelling(2_000, RUN)
        record.cancellations.unanswered = 0
    return replace(record, **known)


def after(record: MoveRecord, observation: PartitionObservation, at_ms: int = 5_000) -> str:
    """The next action of a move after this look; without one, its status."""
    record.see(observation, at_ms)
    action = conclude(record, at_ms)
    return record.status if action is NextAction.NOTHING else action


RULES = """
              planned    sent       moving     cancelling
untouched     submit     submit     doubt      cancelled
moving        planned    moving     moving     cancel
arrived       complete   complete   complete   complete
unconfirmed   planned    moving     moving     cancel
settling      unsettled  unsettled  unsettled  settled
reordered     drifted    doubt      doubt      cancelled
diverged      drifted    doubt      doubt      doubt
deleted       gone       gone       gone       gone
recreated     recreated  recreated  recreated  recreated
"""
"""By where the partition is and how far the move: what the move needs, what it is from then on, or why it failed."""
PROBLEMS = {
    "drifted": (
        "its replicas were [2, 3, 0, 1] and not [0, 1], from which the plan starts; someone else changed it"
    ),
    "gone": "its partition was deleted",
    "recreated": "its topic was deleted, and another one created under its name, which is left alone",
    "doubt": (
        "it was no longer on its way to [2, 3]: the cluster showed the replicas [2, 3, 0, 1]; "
        "someone else cancelled or changed the move"
    ),
    "unsettled": (
        "it was no longer on its way to [2, 3]: the cluster showed the replicas [2, 3, 0, 1]; "
        "someone else cancelled or changed the move, or deleted its topic"
    ),
}  # fmt: skip
_HEAD, *_LINES = (line.split() for line in RULES.split("\n") if line)
assert [line[0] for line in _LINES] == [*PlacementState]
CELLS = [
    (PlacementState(where), MoveStatus(status), cell)
    for where, *cells in _LINES
    for status, cell in zip(_HEAD, cells, strict=True)
]


@pytest.mark.parametrize(("where", "status", "cell"), CELLS)
def test_each_look_means_what_the_table_says(where: PlacementState, status: MoveStatus, cell: str) -> None:
    record = at(status)
    found = after(record, observed(where))
    if cell in {"submit", "cancel"}:
        assert (found, record.status) == (cell, status)
    elif cell == "settled":
        assert found == after(record, observed(where), 4_999 + DOUBT_MS) == status
        assert (after(record, observed(where), 5_000 + DOUBT_MS), record.problem) == ("cancelled", None)
    elif cell in PROBLEMS:
        assert found == after(record, observed(where), 4_999 + DOUBT_MS) == status
        assert after(record, observed(where), 5_000 + DOUBT_MS) == "failed"
        assert (record.problem, record.ended_ms) == (PROBLEMS[cell], 5_000 + DOUBT_MS)
    else:
        assert (found, record.problem) == (cell, None)
        assert record.ended_ms == (None if cell in {"planned", "moving"} else 5_000)


@pytest.mark.parametrize(
    ("where", "status"), [(where, status) for where, status, cell in CELLS if cell in {"submit", "cancel", "moving"}]
)
def test_a_doubt_ends_with_whatever_is_not_strange(where: PlacementState, status: MoveStatus) -> None:
    record = at(status)
    after(record, observed(SETTLING), 4_000)
    after(record, observed(where), 5_000)
    assert after(record, observed(SETTLING), 4_500 + DOUBT_MS) != "failed"


@pytest.mark.parametrize("where", [UNTOUCHED, REORDERED])
def test_a_cancellation_without_an_answer_is_believed_later(where: PlacementState) -> None:
    record = at(CANCELLING)
    record.cancellations.unanswered = 1
    assert after(record, observed(where)) == "cancel"
    assert after(record, observed(where), 5_000 + DOUBT_MS) == "cancelled"


@pytest.mark.parametrize("where", [UNTOUCHED, REORDERED])
def test_nothing_to_cancel_ends_no_move_that_may_begin_later(where: PlacementState) -> None:
    record = at(SENT)
    record.cancelling(2_000, RUN)
    record.cancellations.unanswered, record.is_idle = 0, True
    assert after(deepcopy(replace(record, is_idle=False)), observed(where)) == "cancelled"
    assert after(record, observed(where), 999 + LAST_WORD_MS) == "cancelling"
    assert after(record, observed(where), 1_000 + LAST_WORD_MS) == "cancel"
    record.cancelling(1_000 + LAST_WORD_MS, RUN)
    record.cancellations.unanswered, record.is_idle = 0, True
    assert after(record, observed(where), 2_000 + LAST_WORD_MS) == "cancelled"


def test_a_cancelled_move_is_watched_while_a_lost_request_may_begin_it() -> None:
    record = at(SENT)
    record.sent(2_000, RUN)
    record.accepted()
    record.cancelling(3_000, RUN)
    record.cancellations.unanswered = 0
    assert after(record, UNSENT) == "cancelling"
    assert after(record, observed(MOVING), 9_000) == "cancel"
    assert after(record, UNSENT, 1_999 + LAST_WORD_MS) == "cancelling"
    assert after(record, UNSENT, 2_000 + LAST_WORD_MS) == "cancelled"


def test_nothing_is_sent_while_a_lost_cancellation_may_cancel_it() -> None:
    record = at(CANCELLING, awaited_replan=ANOTHER)
    record.cancellations.unanswered = 1
    record.cancelling(3_000, RUN)
    record.cancellations.unanswered = 0
    assert after(record, UNSENT, 2_999 + LAST_WORD_MS) == "cancelling"
    assert after(record, UNSENT, 3_000 + LAST_WORD_MS) == PLANNED
    assert record.move.target == ANOTHER.target


def test_doubts_of_two_kinds_do_not_add_up() -> None:
    record = at(UNDER_WAY)
    after(record, observed(SETTLING))
    assert after(record, observed(PlacementState.DELETED), 5_000 + DOUBT_MS) == "moving"
    assert after(record, observed(PlacementState.DELETED), 5_000 + 2 * DOUBT_MS) == "failed"


@pytest.mark.parametrize("status", [MoveStatus.COMPLETE, MoveStatus.CANCELLED, MoveStatus.FAILED])
def test_a_move_that_has_ended_stays_as_it_is(status: MoveStatus) -> None:
    assert after(MoveRecord(MOVE, status), observed(PlacementState.DELETED)) == status


def test_a_move_that_was_never_observed_needs_nothing() -> None:
    assert conclude(MoveRecord(MOVE), 5_000) == "nothing"


CANCELLED: dict[str, Any] = {"was_cancelled": True, "cancelled_to": ((1, 0),)}


@pytest.mark.parametrize(("record", "observation", "found"), [
    (at(PLANNED), observed(REORDERED), "planned"),
    (at(PLANNED, **CANCELLED), observed(REORDERED), "planned"),
    (at(PLANNED, **CANCELLED), observed(REORDERED, replicas=(1, 0)), "submit"),
    (at(SENT, **CANCELLED), observed(REORDERED, replicas=(1, 0)), "submit"),
    (at(UNDER_WAY, **CANCELLED), observed(REORDERED, replicas=(1, 0)), "moving"),
    # A broker that was restarted has forgotten the directory of its copy.
    (at(UNDER_WAY, NAMED), observed(UNTOUCHED, replicas=(2, 3)), "submit"),
    (at(UNDER_WAY, NAMED, refusal="no"), observed(UNTOUCHED), "moving"),
    (at(UNDER_WAY), observed(UNTOUCHED, replicas=(2, 3)), "moving"),
    # What copies nothing needs no leader.
    (at(PLANNED), observed(UNTOUCHED, leader=NO_LEADER), "planned"),
    (at(PLANNED, replace(MOVE, target=(1, 0))), observed(UNTOUCHED, leader=NO_LEADER), "submit"),
    # One that is given up while it is cancelled, or is to lead elsewhere, where the controller has nothing to cancel.
    (at(CANCELLING), observed(UNCONFIRMED), "cancel"),
    (at(CANCELLING, is_idle=True), observed(UNCONFIRMED), "complete"),
    (at(CANCELLING, is_idle=True, awaited_replan=ANOTHER), observed(UNCONFIRMED), "failed"),
    (at(CANCELLING, is_idle=True, awaited_replan=ANOTHER), observed(UNCONFIRMED, isr=(2, 3)),
     "complete"),
    (at(CANCELLING, given_up="full"), observed(UNCONFIRMED), "cancel"),
    (at(CANCELLING, is_idle=True, given_up="full"), observed(UNCONFIRMED, isr=(2, 3)), "failed"),
])  # fmt: skip
def test_the_history_of_a_move_changes_what_a_look_means(
    record: MoveRecord, observation: PartitionObservation, found: str
) -> None:
    record = deepcopy(record)
    assert after(record, observation) == found
    assert record.ended_ms == (5_000 if record.status in {"failed", "complete"} else None)


def test_a_move_of_others_is_never_one_that_the_run_sent() -> None:
    record = at(PLANNED)
    assert after(record, observed(MOVING, CopyProgress(2, 400, 600))) == PLANNED
    assert (record.submitted_ms, record.bytes_copied, record.is_of_others) == (None, 0, True)
    assert after(record, observed(ARRIVED, replicas=(2, 3))) == "complete"
    assert record.submitted_ms is None


def test_a_move_whose_submissions_were_all_refused_is_of_others() -> None:
    refused, unanswered = at(SENT), at(SENT)
    refused.submissions.answered("not now")
    assert (after(refused, observed()), refused.submitted_ms, refused.is_of_others) == (PLANNED, None, True)
    unanswered.sent(2_000, RUN)
    unanswered.submissions.answered("not now")
    assert (after(unanswered, observed()), unanswered.submitted_ms) == (UNDER_WAY, 1_000)


def test_a_target_others_reached_after_refusals_is_theirs() -> None:
    refused, accepted = at(SENT), at(UNDER_WAY)
    accepted.sent(2_000, RUN)
    for record, submitted_ms, copied in ((refused, None, 0), (accepted, 1_000, 2_000)):
        record.submissions.answered("not now")
        assert after(record, observed(ARRIVED, replicas=(2, 3))) == "complete"
        assert (record.submitted_ms, record.bytes_copied) == (submitted_ms, copied)


def test_a_move_that_was_refused_for_good_leaves_nothing_to_undo() -> None:
    record = at(SENT)
    record.refused(2_000, "no")
    assert (record.status, record.submitted_ms) == ("failed", None)


def test_bytes_of_a_list_others_lead_beside_our_directories_are_theirs() -> None:
    record = at(SENT, WITHIN)
    record.submissions.answered("not now")
    look = observed(MOVING, CopyProgress(1, 300, 700), CopyProgress(2, 400, 600), rearranging=(1,), misplaced=(1,))
    assert (after(record, look), record.bytes_received) == (SENT, {1: 300, 2: 0})
    record.cancelling(6_000, RUN)
    assert (after(record, look), record.bytes_received) == (CANCELLING, {1: 300, 2: 0})


def failed_between_steps() -> MoveRecord:
    """The first step is made; the second one was not sent."""
    record = at(UNDER_WAY, steps=STEPS)
    after(record, observed(ARRIVED))
    record.fail(6_000, "lost")
    return record


def failed_at_last_step() -> MoveRecord:
    record = at(UNDER_WAY, steps=STEPS)
    after(record, observed(ARRIVED))
    record.sent(6_000, RUN)
    record.refused(6_000, "no")
    return record


def failed_with_refused_list() -> MoveRecord:
    """Its copy between directories was given up."""
    record = at(SENT, WITHIN)
    record.refused(2_000, "no", is_begun=True)
    record.cancelled(6_000)
    return record


def failed_after_others_began_again() -> MoveRecord:
    record = at(CANCELLING, WITHIN, is_list_cancelled=True, given_up="lost")
    after(record, observed())
    after(record, observed(), 5_000 + DOUBT_MS)
    return record


def failed_after_postponement() -> MoveRecord:
    record = postponed()
    record.cancelled(5_000)
    record.fail(6_000, "lost")
    return record


def failed_beside_others() -> MoveRecord:
    """Its list was refused while others led it; its directories may have been taken."""
    record = at(SENT, WITHIN)
    record.submissions.answered("not now")
    after(record, observed())
    record.give_up(6_000, "lost")
    return record


@pytest.mark.parametrize("failed", [
    failed_between_steps, failed_at_last_step, failed_with_refused_list, failed_after_others_began_again,
    failed_after_postponement, failed_beside_others,
])  # fmt: skip
def test_a_failed_move_claims_no_target_to_which_nothing_led(failed: Callable[[], MoveRecord]) -> None:
    record = failed()
    assert record.status == MoveStatus.FAILED
    assert record.submitted_ms is not None
    assert not record.may_have_made_target


@pytest.mark.parametrize("status", [SENT, UNDER_WAY])
def test_a_failed_move_may_have_made_its_target_after_all(status: MoveStatus) -> None:
    record = at(status)
    record.fail(5_000, "lost")
    assert record.may_have_made_target


def test_a_move_that_others_cancel_after_all_is_sent() -> None:
    record = at(PLANNED)
    assert after(record, observed()) == PLANNED
    assert after(record, UNSENT, 6_000) == NextAction.SUBMIT
    assert not record.is_of_others


def postponed(move: PlannedMove = MOVE) -> MoveRecord:
    """A move whose cancellation at the end of a window the controller has accepted."""
    return at(CANCELLING, move, is_postponed=True, is_list_cancelled=True)


@pytest.mark.parametrize("looks", [(UNTOUCHED, ARRIVED), (MOVING, MOVING, ARRIVED), (ARRIVED, ARRIVED, ARRIVED)])
def test_a_target_others_reached_after_a_postponement_is_theirs(looks: tuple[PlacementState, ...]) -> None:
    record = postponed()
    found = [after(record, observed(look, replicas=(2, 3)), number * DOUBT_MS) for number, look in enumerate(looks)]
    assert found[-2:] == [PLANNED, "complete"]
    assert (record.submitted_ms, record.bytes_copied) == (None, 0)


def test_a_target_reached_after_an_idle_cancellation_is_ours() -> None:
    record = at(CANCELLING, is_postponed=True, is_idle=True)
    assert (after(record, UNSENT), after(record, observed(ARRIVED))) == (PLANNED, "complete")
    assert (record.submitted_ms, record.bytes_copied) == (1_000, 2_000)


def test_a_new_target_others_made_after_an_idle_cancellation_is_theirs() -> None:
    record = at(CANCELLING, awaited_replan=ANOTHER, is_idle=True)
    made = observed(ARRIVED, replicas=(2, 4))
    assert (after(record, UNSENT), after(record, made)) == (PLANNED, "complete")
    assert (record.submitted_ms, record.bytes_copied, record.made_by_others) == (None, 0, (2, 4))


def test_a_step_that_a_new_plan_keeps_may_be_ours_after_idle_cancelling() -> None:
    record = at(CANCELLING, awaited_replan=ANOTHER, is_idle=True, steps=STEPS)
    assert (after(record, UNSENT), record.step.target) == (PLANNED, STEPS[0].target)
    assert after(record, observed(ARRIVED, replicas=STEPS[0].target)) == NextAction.SUBMIT
    assert (record.submitted_ms, record.made_by_others) == (1_000, ())


def test_a_move_begun_again_tells_which_copy_may_go_on_unthrottled() -> None:
    record = at(CANCELLING, WITHIN, is_list_cancelled=True)
    look = observed(MOVING, misplaced=(1,), offline=(1,))
    assert (after(record, look), after(record, look, 5_000 + DOUBT_MS)) == (CANCELLING, "cancelled")
    assert record.problem == (
        "broker 1 or its directory was down: it may go on copying into /b later, without a throttle"
    )
    assert record.submitted_ms == 1_000


def test_a_step_that_was_not_sent_leaves_no_copy_to_go_on() -> None:
    record = at(UNDER_WAY, WITHIN, steps=move_steps(replace(WITHIN, target=(2, 3, 1))))
    assert after(record, observed(ARRIVED)) == NextAction.SUBMIT
    after(record, observed(misplaced=(1,), offline=(1,)), 6_000)
    record.give_up(7_000, "lost")
    assert (record.status, record.problem) == (MoveStatus.FAILED, "lost")


def test_a_cancelled_list_is_not_changed_by_others_while_brokers_lag() -> None:
    record = at(CANCELLING, is_list_cancelled=True, is_idle=True)
    assert (after(record, observed(SETTLING)), after(record, observed(SETTLING), 5_000 + DOUBT_MS)) == (
        CANCELLING, "cancelled"
    )  # fmt: skip


IN_SYNC = observed(UNCONFIRMED, isr=(2, 3))
"""A replica that leaves need not be in sync."""
IN_PLACE = observed(UNCONFIRMED, isr=(1, 2))
UNSENT, SILENT = observed(UNTOUCHED), observed(UNTOUCHED, leader=NO_LEADER, replicas=(0, 1))
TRIED = Attempts(3, 10_000, 120_000, 130_000, 3, "not now")
VAIN = "it was sent 3 times in 125 s and the cluster showed no effect"
ENDED = "it ended with broker 3 not in sync, before it could be cancelled; use `kreassign plan repair`"
NOTHING_TO_CANCEL = {"is_idle": True, "awaited_replan": ANOTHER}


@pytest.mark.parametrize(("record", "looks", "problem"), [
    (at(SENT), [(AGAIN_MS - 1, UNSENT, "sent"), (AGAIN_MS, UNSENT, "submit")], None),
    (at(CANCELLING), [(999 + AGAIN_MS, observed(), "cancelling"), (1_000 + AGAIN_MS, observed(), "cancel")], None),
    (at(SENT, refusal="no"), [(999 + LAST_WORD_MS, UNSENT, "sent"), (1_000 + LAST_WORD_MS, UNSENT, "failed")], "no"),
    (at(SENT, submissions=replace(TRIED, last_ms=0, due_ms=0)), [(9_999 + PATIENCE_MS, UNSENT, "submit")], None),
    (at(SENT, submissions=TRIED), [(119_999 + LAST_WORD_MS, UNSENT, "submit"),
                                   (120_000 + LAST_WORD_MS, UNSENT, "failed")], f"{VAIN}; it answered: not now"),
    (at(SENT, submissions=replace(TRIED, answer="")), [(120_000 + LAST_WORD_MS, UNSENT, "failed")], VAIN),
    (at(PLANNED), [(1_000, SILENT, "planned"), (2_000, UNSENT, "submit"), (5_000, SILENT, "planned"),
                   (3_600_000, SILENT, "planned"), (3_601_000, UNSENT, "submit")], None),
    (at(UNDER_WAY), [(1_000, IN_SYNC, "moving"), (2_000, observed(UNCONFIRMED, isr=(0, 2)), "moving"),
                     (5_000, IN_SYNC, "moving"), (4_999 + DOUBT_MS, IN_SYNC, "moving"),
                     (5_000 + DOUBT_MS, IN_SYNC, "complete")], None),
    (at(UNDER_WAY, WITHIN), [(1_000, IN_PLACE, "moving"), (2_000, replace(IN_PLACE, misplaced=(1,)), "moving"),
                             (5_000, IN_PLACE, "moving"), (4_999 + DOUBT_MS, IN_PLACE, "moving"),
                             (5_000 + DOUBT_MS, IN_PLACE, "complete")], None),
    (at(CANCELLING, **NOTHING_TO_CANCEL), [(5_000, observed(UNCONFIRMED, isr=(0, 1, 2)), "failed")], ENDED),
    (at(CANCELLING, **NOTHING_TO_CANCEL, given_up="full"), [(5_000, observed(UNCONFIRMED), "failed")], "full"),
], ids=["sent again", "cancelled again", "refused", "patience", "in vain", "in vain, unanswered", "no leader",
        "empty list", "in another directory", "not in sync", "given up"])  # fmt: skip
def test_timeouts_complete_retry_or_fail_a_move(
    record: MoveRecord, looks: list[tuple[int, PartitionObservation, str]], problem: str | None
) -> None:
    record = deepcopy(record)
    for at_ms, look, found in looks:
        assert after(record, look, at_ms) == found
    assert record.problem == problem
    assert record.ended_ms == (looks[-1][0] if record.status in {"failed", "complete"} else None)


def test_a_doubt_of_before_does_not_shorten_the_one_after_a_cancellation() -> None:
    """The move under way was in doubt while its copies were in sync; then brokers lag behind its cancellation."""
    record = at(CANCELLING, doubtful_since_ms=0)
    after(record, IN_SYNC, 14_000)
    assert after(record, observed(SETTLING), DOUBT_MS) == "cancelling"


def test_resume_restarts_every_timeout_of_a_move() -> None:
    known = {"doubtful_since_ms": 3, "leaderless_since_ms": 4, "anchor": CopyPace(1, 2, 3), "losing_ground": (1.0, 2.0)}
    record = at(CANCELLING, **known)
    record.resumed(9_000)
    now = Attempts(1, 9_000, 9_000, 9_000)
    attempts = {"submissions": replace(now, was_accepted=True), "cancellations": replace(now, unanswered=0)}
    assert record == at(CANCELLING, **attempts, progressed_ms=9_000)
    never_sent = MoveRecord(MOVE)
    never_sent.resumed(9_000)
    assert never_sent.progressed_ms is None


def test_a_move_begins_when_it_is_sent_first() -> None:
    record = at(SENT)
    record.sent(5_000, RUN)
    assert (record.submitted_ms, record.progressed_ms, record.submissions.count) == (1_000, 5_000, 2)


def test_a_refusal_is_the_end_unless_an_earlier_attempt_has_no_answer() -> None:
    record = at(SENT)
    record.sent(2_000, RUN)
    record.refused(3_000, "no")
    assert (record.status, record.problem) == (SENT, None)
    unseen = deepcopy(record)
    assert (after(unseen, observed(UNTOUCHED), 2_000 + LAST_WORD_MS), unseen.problem) == ("failed", "no")
    record.refused(4_000, "never")
    assert (record.status, record.ended_ms, record.problem) == (MoveStatus.FAILED, 4_000, "never")


def test_a_move_that_was_taken_forgets_refusals_of_before() -> None:
    record = at(SENT, NAMED, refusal="not now")
    record.sent(2_000, RUN)
    record.accepted()
    assert after(record, observed(UNTOUCHED, replicas=(2, 3)), 60_000) == "submit"
    record.sent(60_000, RUN)
    record.refused(61_000, "no")
    assert record.status is MoveStatus.FAILED


def test_a_cancellation_that_is_sent_again_has_no_answer() -> None:
    record = at(UNDER_WAY, is_idle=True)
    record.cancelling(2_000, RUN)
    assert after(record, observed(UNCONFIRMED)) == "cancel"
    assert (record.cancellations.count, record.cancellations.unanswered) == (1, 1)


COPIES = (CopyProgress(0, 1, 1), CopyProgress(2, 300, 700), CopyProgress(3, 100, 900))


def under_way(**known: Any) -> MoveRecord:
    """A move that is being cancelled, of which everything is known that can be."""
    more = {
        "refusal": "no",
        "is_idle": True,
        "anchor": CopyPace(1, 2, 3),
        "losing_ground": (1.0, 2.0),
        "copies": COPIES,
    }
    return at(CANCELLING, NAMED, **more, **known)


BACK: dict[str, Any] = {"was_cancelled": True, "cancelled_to": ((0, 1),)}


@pytest.mark.parametrize(("known", "expected"), [
    ({}, lambda was: replace(was, status=MoveStatus.CANCELLED, ended_ms=5_000)),
    ({"given_up": "full", "awaited_replan": ANOTHER, "is_postponed": True},
     lambda was: replace(was, status=MoveStatus.FAILED, ended_ms=5_000, problem="full")),
    # What is made again begins from scratch, without what it copied.
    ({"is_postponed": True}, lambda _: MoveRecord(NAMED, step_sent_ms=1_000, **BACK, copies=COPIES[:1])),
    ({"is_postponed": True, "awaited_replan": ANOTHER, "doubtful_since_ms": 3, "leaderless_since_ms": 4},
     lambda _: MoveRecord(
         replace(NAMED, target=(2, 4), log_dirs=(NAMED.log_dirs[0], NAMED.log_dirs[2])),
         step_sent_ms=1_000, **BACK, waits_unsent=True, replans=(ANOTHER,),
     )),
], ids=["asked for", "given up", "postponed", "led elsewhere"])  # fmt: skip
def test_a_cancelled_move_ends_or_waits_by_why_it_was_cancelled(
    known: dict[str, Any], expected: Callable[[MoveRecord], MoveRecord]
) -> None:
    record = under_way(**known)
    found = expected(replace(record))
    record.cancelled(5_000)
    assert record == found


def test_a_new_target_forgets_where_copies_were() -> None:
    seen = observed(UNTOUCHED, *COPIES, misplaced=(2,), isr=(0,))
    record = under_way(awaited_replan=ANOTHER, observation=seen)
    record.cancelled(5_000)
    assert record.observation == observed(UNTOUCHED, isr=(0,))


def test_a_move_in_flight_gets_its_new_target_once_it_is_cancelled() -> None:
    earlier = replace(ANOTHER, at_ms=1)
    record = at(PLANNED, copies=COPIES, replans=(earlier,))
    record.replan(ANOTHER)
    elsewhere = replace(MOVE, target=(2, 4))
    assert record == MoveRecord(elsewhere, copies=COPIES[1:2], replans=(earlier, ANOTHER), waits_unsent=True)
    for status in (SENT, UNDER_WAY, CANCELLING):
        record = at(status)
        record.replan(ANOTHER)
        assert (record.move, record.wanted.target, record.is_given_up) == (MOVE, (2, 4), True)


def test_a_move_in_flight_is_given_up_once_it_is_cancelled() -> None:
    for status in (PLANNED, SENT, UNDER_WAY, CANCELLING):
        record = at(status)
        record.give_up(9, "full")
        ended = (MoveStatus.FAILED, 9, "full") if status is PLANNED else (status, None, None)
        assert (record.status, record.ended_ms, record.problem) == ended
        assert record.is_given_up


def test_a_new_target_keeps_the_steps_that_are_made() -> None:
    record = MoveRecord(MOVE, steps=STEPS[1:])
    record.replan(ANOTHER)
    elsewhere = replace(MOVE, target=(2, 4))
    assert (record.move, record.steps) == (elsewhere, move_steps(replace(elsewhere, original=STEPS[0].target)))


def test_the_next_step_begins_from_scratch_where_the_cluster_is() -> None:
    steps = {"steps": STEPS, "is_postponed": True, "was_cancelled": True}
    record = replace(under_way(**steps), move=MOVE)
    assert not record.next_step()
    record.observation = observed(ARRIVED, *COPIES, isr=(0, 2))
    assert record.next_step()
    arrived = (COPIES[0], CopyProgress(2, 1_000, 0), COPIES[2])
    began = observed(UNTOUCHED, isr=(0, 2))
    assert record == MoveRecord(MOVE, earlier_sent_ms=1_000, steps=STEPS[1:], copies=arrived, observation=began)
    assert not record.next_step()


@pytest.mark.parametrize(("record", "observation", "found"), [
    (at(UNDER_WAY, steps=STEPS), observed(ARRIVED), "submit"),
    (at(UNDER_WAY, steps=STEPS), observed(ARRIVED, leader=NO_LEADER), "planned"),
    (at(UNDER_WAY, steps=STEPS, doubtful_since_ms=0), IN_SYNC, "submit"),
    (at(CANCELLING, steps=STEPS, is_idle=True), IN_SYNC, "submit"),
    (at(UNDER_WAY, steps=STEPS[1:]), observed(ARRIVED), "complete"),
])  # fmt: skip
def test_a_step_that_is_over_is_followed_by_the_next_one_at_once(
    record: MoveRecord, observation: PartitionObservation, found: str
) -> None:
    record = deepcopy(record)
    assert (after(record, observation, DOUBT_MS), record.step) == (found, STEPS[1])


def test_one_look_completes_only_one_step() -> None:
    record = at(UNDER_WAY, steps=STEPS)
    after(record, observed(ARRIVED, CopyProgress(2, 300, None)))
    assert record.copies == (CopyProgress(2, 300, 0),)
    # A look at which no broker told of the partition brings no observation.
    assert (conclude(record, 6_000), record.step) == ("submit", STEPS[1])


def test_the_wanted_target_has_its_directories() -> None:
    record = MoveRecord(NAMED)
    assert (record.wanted, record.step, record.is_given_up) == (NAMED, NAMED, False)
    record.awaited_replan = ANOTHER
    elsewhere = replace(NAMED, target=(2, 4), log_dirs=(NAMED.log_dirs[0], NAMED.log_dirs[2]))
    assert (record.wanted, record.step, record.is_given_up) == (elsewhere, NAMED, True)


@pytest.mark.parametrize(("observation", "has_leader", "source"), [
    (None, False, 0),
    (observed(leader=NO_LEADER), False, 0),
    (observed(leader=0), True, 0),
    (observed(leader=1), True, 1),
])  # fmt: skip
def test_copies_come_from_the_leader_or_else_the_first_replica(
    observation: PartitionObservation | None, has_leader: bool, source: int
) -> None:
    record = MoveRecord(MOVE, observation=observation)
    assert (record.has_leader, record.source) == (has_leader, source)


@pytest.mark.parametrize(("move", "observation", "lagging", "offline"), [
    (MOVE, None, (2, 3), ()),
    (MOVE, observed(offline=(3, 0)), (2, 3), (3,)),
    (MOVE, observed(isr=(0, 1, 3), offline=(3,)), (2,), ()),
    (MOVE, observed(UNCONFIRMED, isr=(0, 1, 2)), (3,), ()),
    (MOVE, observed(UNTOUCHED, isr=(0, 1, 2, 3)), (2, 3), ()),
    (WITHIN, None, (1, 2), ()),
    (WITHIN, observed(isr=(0, 1, 2), misplaced=(0, 1)), (1,), ()),
    (WITHIN, observed(misplaced=(2,)), (2,), ()),
    (replace(WITHIN, log_dirs=(LogDirTarget(1, "/b", "/b"),)), observed(misplaced=(1,)), (2,), ()),
])  # fmt: skip
def test_brokers_lag_until_they_are_in_sync_and_in_their_directory(
    move: PlannedMove, observation: PartitionObservation | None, lagging: tuple[int, ...], offline: tuple[int, ...]
) -> None:
    record = MoveRecord(move, observation=observation)
    assert (record.lagging, record.offline) == (lagging, offline)


@pytest.mark.parametrize(("record", "story"), [
    (MoveRecord(MOVE), "no copy has begun; in sync are []"),
    (MoveRecord(MOVE, observation=observed()), "no copy has begun; in sync are [0, 1]"),
    (MoveRecord(MOVE, observation=observed(), copies=(CopyProgress(2, 5, 7), CopyProgress(3, 6, None))),
     "broker 2 has 5 B, 7 B left; broker 3 has 6 B, an unknown amount left; in sync are [0, 1]"),
])  # fmt: skip
def test_the_story_of_a_move_names_each_copy(record: MoveRecord, story: str) -> None:
    assert record.story == story


WRITTEN = replace(MOVE, write_bytes_per_s=8.0)
BOTH = (CopyProgress(2, 0, 1), CopyProgress(3, 0, 1))


@pytest.mark.parametrize(("record", "copied"), [
    (MoveRecord(WRITTEN, copies=BOTH, observation=observed(leader=1)), CopiedPartition(8.0, 1, 1, (2, 3))),
    (MoveRecord(WRITTEN, copies=BOTH, observation=observed(leader=1), losing_ground=(5.0, 6.0)),
     CopiedPartition(3.0, 1, 1, (2, 3))),
    (MoveRecord(WRITTEN, observation=observed(isr=(0, 1, 3), leader=1)), CopiedPartition(8.0, 1, 2, (2,))),
    (MoveRecord(WRITTEN, observation=observed(isr=())), CopiedPartition(8.0, 0, 0, (2, 3))),
    (MoveRecord(replace(MOVE, original=(0, 1, 5)), losing_ground=(5.0, 6.0)), CopiedPartition(6.0, 0, 2, (2, 3))),
    (MoveRecord(WITHIN), CopiedPartition(0.0, 0, 1, (2,))),
], ids=["as planned", "as measured", "one lags", "nothing in sync", "unseen", "within a broker"])  # fmt: skip
def test_a_move_needs_a_rate_for_what_is_written_to_it(record: MoveRecord, copied: CopiedPartition) -> None:
    assert record.copied == copied


def test_bytes_received_and_left_are_told_by_broker() -> None:
    record = MoveRecord(MOVE)
    assert (record.bytes_received, record.left_bytes) == ({2: 0, 3: 0}, {2: 1_000, 3: 1_000})
    record.see(observed(MOVING, CopyProgress(9, 7, 7), CopyProgress(2, 1_100, 50)), 5)
    assert (record.bytes_received, record.bytes_copied, record.left_bytes) == (
        {2: 1_100, 3: 0},
        1_100,
        {2: 50, 3: 1_000},
    )
    # Of broker 2 nothing was told this time.
    record.see(observed(MOVING, CopyProgress(3, 5, None), isr=(0, 1, 2)), 6)
    assert (record.bytes_received, record.left_bytes) == ({2: 1_100, 3: 5}, {3: 1_000})
    assert [copy.broker for copy in record.copies] == [2, 3, 9]
    record.status = MoveStatus.COMPLETE
    assert record.bytes_received == {2: 1_150, 3: 1_000}
    assert MoveRecord(MOVE, MoveStatus.COMPLETE).bytes_received == {2: 1_000, 3: 1_000}
    assert MoveRecord(replace(MOVE, size_bytes=0), MoveStatus.COMPLETE).bytes_received == {2: 0, 3: 0}


@pytest.mark.parametrize(
    ("seen", "copied"),
    [
        ([(400, 600), (500, 500)], 1_000),
        ([(400, 600), (0, 0)], 400),  # All records are deleted.
        ([(400, 600), (0, 300), (300, 0)], 700),  # Retention takes what was copied, and more.
        ([(400, 600), (350, 650)], 1_000),  # Only measured again.
        ([(400, 600), (900, 200)], 1_100),  # Producers write.
        ([(400, 300)], 700),  # Smaller than before the run.
        ([(400, None)], 1_000),
    ],
)
def test_bytes_copied_are_those_that_passed(seen: list[tuple[int, int | None]], copied: int) -> None:
    record = MoveRecord(replace(MOVE, target=(0, 3), original=(0, 1)))
    for second, (done, left) in enumerate(seen):
        record.see(observed(MOVING, CopyProgress(3, done, left)), 1_000 * second)
    record.status = MoveStatus.COMPLETE
    assert record.bytes_copied == copied


def test_a_move_progresses_when_a_copy_grows_or_comes_in_sync() -> None:
    record = MoveRecord(MOVE)
    for at_ms, isr, done, progressed_ms in (
        (5, (0,), 0, 5),
        (6, (0,), 0, 5),
        (7, (0,), 1, 7),
        (8, (0, 1), 1, 8),
        (9, (0, 2), 1, 8),
        (10, (0,), 0, 8),
    ):
        record.see(observed(MOVING, CopyProgress(3, done, 1), isr=isr), at_ms)
        assert record.progressed_ms == progressed_ms


@pytest.mark.parametrize(("before", "now", "found"), [
    (CopyPace(1_000, 100, 100), CopyPace(11_000, 500, 99), None),
    (CopyPace(1_000, 100, 100), CopyPace(11_000, 500, 100), (40.0, 40.0)),
    (CopyPace(1_000, 100, 100), CopyPace(11_000, 500, 150), (40.0, 45.0)),
    (CopyPace(1_000, 100, 100), CopyPace(11_000, 50, 150), (0.0, 5.0)),
    (CopyPace(1_000, 100, 100), CopyPace(11_000, 100, 100), None),
    (CopyPace(1_000, 100, 100), CopyPace(11_000, 100, 101), (0.0, 0.1)),
    (CopyPace(1_000, 100, 100), CopyPace(11_000, 101, 100), (0.1, 0.1)),
    (CopyPace(1_000, 100, 0), CopyPace(11_000, 200, 0), None),
    (CopyPace(1_000, 100, 0), CopyPace(11_000, 200, 1), (10.0, 10.1)),
])  # fmt: skip
def test_a_copy_loses_ground_when_writes_outrun_it(
    before: CopyPace, now: CopyPace, found: tuple[float, float] | None
) -> None:
    assert now.losing_ground_since(before) == found


def test_a_copy_that_waits_in_its_brokers_queue_loses_no_ground() -> None:
    """A minute is measured from the last time that it stood still, so that a wait does not count as slowness."""
    record = MoveRecord(MOVE)
    for at_ms in range(0, 5 * PACE_MS, 1_000):
        record.see(observed(MOVING, CopyProgress(2, 0, 100 + at_ms)), at_ms)
        assert record.losing_ground is None
    for second in range(1, PACE_MS // 1_000 - 1):
        record.see(observed(MOVING, CopyProgress(2, 1_000 * second, 1_000_000)), 5 * PACE_MS + 1_000 * second)
    assert record.losing_ground is None
    record.see(observed(MOVING, CopyProgress(2, 60_000, 1_000_000)), 6 * PACE_MS)
    assert record.losing_ground is not None


def test_a_copy_that_stands_still_begins_its_next_minute_then() -> None:
    record = MoveRecord(MOVE)
    for at_ms, done, losing_ground in (
        (0, 100, None),
        (50_000, 100, None),
        (49_000 + PACE_MS, 159, None),
        (50_000 + PACE_MS, 160, (1.0, 1.0 + 900 / 60)),
        (60_000 + PACE_MS, 160, (1.0, 1.0 + 900 / 60)),
    ):
        record.see(observed(MOVING, CopyProgress(2, done, 1_000 if done > 150 else 100)), at_ms)
        assert record.losing_ground == losing_ground


def test_lost_ground_is_measured_each_minute_over_all_copies() -> None:
    record, losing = MoveRecord(MOVE), (10.0, (600 + 5) / 60)
    for at_ms, copies, losing_ground in (
        (0, [CopyProgress(2, 1, None)], None),
        (1_000, [CopyProgress(2, 10, 90), CopyProgress(3, 20, 80)], None),
        (999 + PACE_MS, [CopyProgress(2, 610, 95)], None),
        (1_000 + PACE_MS, [], losing),
        (200_000, [CopyProgress(3, 50, None)], losing),
        (300_000, [CopyProgress(3, 50, 1)], None),
        (400_000, [CopyProgress(3, 51, 1)], (0.01, 0.01)),
    ):
        record.see(observed(MOVING, *copies), at_ms)
        assert record.losing_ground == losing_ground
