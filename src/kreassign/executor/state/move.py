"""Follow one partition through a run: its states, and what it has sent, seen and copied.

    planned ──▶ sent ──▶ moving ──▶ complete
       │         │         ├──▶ cancelling ──▶ cancelled
       └─────────┴─────────┴───────┴──▶ failed

A move is `cancelling` once its cancellation is journaled; it may still complete before that takes effect.
Moves that were never begun because the run was cancelled are `cancelled` too. A move that is cancelled only because
a window closed is `planned` again, and so is a stepwise move after each step.

A move whose destination is lost may get a new target. A move in progress is cancelled first, and not overridden: an
override keeps the copies that the first target had begun as if they had been there before (KIP-455), so that
cancelling would no longer lead back to the original, and some overrides never complete. If it completes before it is
cancelled, because the broker is back, the former target has been reached, and the new one is dropped.

A move is `sent` from the journal entry of its submission until an answer or an observation shows more:
after a crash or a lost answer the cluster is observed before anything is sent again. Sending the same target twice
does no harm: the controller has nothing to change. As long as a move may be in progress it has not ended, whatever
single answers report: it fails only once observations, later than the last attempt, show that it had no effect.

What each observation means in each state is the table of `move_rules.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from kreassign.executor.events import CopyProgress, PartitionObservation, PlacementState, PlannedMove
from kreassign.executor.state.attempts import Attempts
from kreassign.executor.state.steps import move_steps
from kreassign.executor.throttle_rates import CopiedPartition
from kreassign.model import NO_LEADER, Reassignment, TopicPartition
from kreassign.model.run import IN_FLIGHT, SOMEONE_ELSE, MoveStatus, blames_others
from kreassign.model.text import format_amount

PACE_MS = 60_000
"""Interval at which a copy's gain on its leader is measured."""


COPYING = frozenset({PlacementState.MOVING, PlacementState.UNCONFIRMED})
"""States in which a replica of the target that is not in sync is being copied."""


TO_TARGET = COPYING | {PlacementState.ARRIVED}
"""States of a partition that is reassigned to the target, or was."""


GONE = frozenset({PlacementState.DELETED, PlacementState.RECREATED})
"""States in which the partition of the plan does not exist."""


class NextAction(StrEnum):
    """Action that a move needs now."""

    NOTHING = "nothing"
    SUBMIT = "submit"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class CopyPace:
    """Progress of all copies of a move at a time."""

    at_ms: int
    done_bytes: int
    left_bytes: int

    def losing_ground_since(self, before: CopyPace) -> tuple[float, float] | None:
        """Bytes per second copied and written since then, if the remaining bytes have not shrunk.

        A copy without writes loses no ground, even if it stands still: no rate would help it.
        """
        if self.left_bytes < before.left_bytes or self.left_bytes == 0:
            return None
        seconds = (self.at_ms - before.at_ms) / 1000
        copied = max(0, self.done_bytes - before.done_bytes) / seconds
        written = copied + (self.left_bytes - before.left_bytes) / seconds
        return (copied, written) if written > 0 else None


@dataclass(frozen=True, slots=True)
class Replan:
    """A change of a move's target after its destinations were lost."""

    at_ms: int
    lost: tuple[int, ...]
    before: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(slots=True)
class MoveRecord:
    """State of one move in its run. Changed only by this module, the rules of `move_rules.py`, and `machine.py`."""

    move: PlannedMove
    status: MoveStatus = MoveStatus.PLANNED
    submissions: Attempts = field(default_factory=Attempts)
    cancellations: Attempts = field(default_factory=Attempts)
    refusal: str | None = None
    """The error of an attempt while an earlier one may still take effect."""
    is_idle: bool = False
    """True if the controller answered the last cancellation with nothing in progress."""
    step_sent_ms: int | None = None
    """When the present step was first sent; None if never, or if nothing of it is the run's."""
    earlier_sent_ms: int | None = None
    """When the first of the steps before it was sent, of those that the run made."""
    ended_ms: int | None = None
    """When it was complete, cancelled or failed."""
    doubtful_since_ms: int | None = None
    leaderless_since_ms: int | None = None
    observation: PartitionObservation | None = None
    copies: tuple[CopyProgress, ...] = ()
    vanished: dict[int, int] = field(default_factory=dict)
    """Bytes that a broker had received and that were deleted since, by retention or by DeleteRecords."""
    problem: str | None = None
    progressed_ms: int | None = None
    given_up: str | None = None
    is_failing: bool = False
    """True if it has failed but for its copies between directories, which are still to be cancelled."""
    theirs: frozenset[int] = frozenset()
    """Brokers whose copy others make, or made: none of its bytes is the run's."""
    made_by_others: tuple[int, ...] = ()
    """List to which others led it last, as the plan does; () if they never did. A rollback goes no further back."""
    is_postponed: bool = False
    is_list_cancelled: bool = False
    """True once the controller has cancelled its list for us, or is to be cancelled after it refused it: from then on
    others lead the partition to the target.
    """
    was_cancelled: bool = False
    cancelled_to: tuple[tuple[int, ...], ...] = ()
    """Lists that the cancellation of what was sent of this step leaves: the one that was seen then, if it was."""
    waits_unsent: bool = False
    """True if it waits again and nothing that the run has sent leads to its target: the controller has cancelled its
    list for us, or it has another target since.
    """
    anchor: CopyPace | None = None
    losing_ground: tuple[float, float] | None = None
    steps: tuple[PlannedMove, ...] = ()
    """Unfinished steps of a stepwise move, the present one first."""
    awaited_replan: Replan | None = None
    """The change of target that takes effect once the move in progress is cancelled."""
    replans: tuple[Replan, ...] = ()
    """Changes of target so far."""

    @property
    def name(self) -> TopicPartition:
        """Its partition."""
        return self.move.topic_partition

    @property
    def submitted_ms(self) -> int | None:
        """When the run first sent what it may have to undo; None if there is nothing."""
        return self.step_sent_ms if self.earlier_sent_ms is None else self.earlier_sent_ms

    @property
    def step(self) -> PlannedMove:
        """The reassignment in progress or next: a step of the move, or all of it."""
        return self.steps[0] if self.steps else self.move

    @property
    def wanted(self) -> PlannedMove:
        """The move with its final target: the awaited one, if there is one."""
        return self.move if self.awaited_replan is None else self._with(self.awaited_replan)

    @property
    def brokers(self) -> frozenset[int]:
        """Brokers of its replicas before and after it, also of targets that it had or awaits."""
        lists = (self.move.original, self.wanted.target, self.move.target, *(one.before for one in self.replans))
        return frozenset(broker for brokers in lists for broker in brokers)

    @property
    def has_leader(self) -> bool:
        """True if the partition had a leader at the last observation."""
        return self.observation is not None and self.observation.leader != NO_LEADER

    @property
    def is_lost(self) -> bool:
        """True if its partition is gone, or is another one, by the last observation."""
        return self.observation is not None and self.observation.placement in GONE

    @property
    def is_of_others(self) -> bool:
        """True if others move its partition to its target, by the last observation."""
        seen = self.observation
        return self.status is MoveStatus.PLANNED and seen is not None and seen.placement in COPYING

    @property
    def is_list_staying(self) -> bool:
        """True if its step moves nothing but directories: there is no list to send, refuse or cancel."""
        return self.step.target == self.step.original

    @property
    def was_refused(self) -> bool:
        """True if each submission of its list was refused; directories, asked for before, may have been taken.

        A list that stays as it is has nothing to refuse: what copies then are its directories.
        """
        return not self.is_list_staying and self.status in IN_FLIGHT and self.submissions.was_refused

    @property
    def may_begin(self) -> bool:
        """True if it was sent, and a submission without an answer may begin it at any time."""
        return self.status is MoveStatus.SENT and self.submissions.unanswered > 0

    @property
    def is_waiting(self) -> bool:
        """True if nothing of it is under way: it was not sent, or was refused for now."""
        was_refused = self.status is MoveStatus.SENT and self.was_refused and not self.rearranging
        return self.status is MoveStatus.PLANNED or was_refused

    @property
    def is_under_way(self) -> bool:
        """True if there is something to cancel: its list, or beside a refused list copies between directories."""
        return self.status is MoveStatus.MOVING or (self.status is MoveStatus.SENT and bool(self.rearranging))

    @property
    def is_unsent(self) -> bool:
        """True if nothing that the run has sent can lead the list of its partition to the target of its step."""
        waits = self.submissions.count == 0 and (self.waits_unsent or not self.was_cancelled)
        return waits or self.is_list_cancelled or self.submissions.was_refused

    @property
    def may_have_made_target(self) -> bool:
        """True if what the run has sent led the list of its partition to its target, or may have, or still may."""
        is_last = self.step.target == self.move.target and self.step_sent_ms is not None
        may_lead = is_last and self.status is not MoveStatus.CANCELLED and not self.is_unsent
        return self.status is MoveStatus.COMPLETE or may_lead

    @property
    def left(self) -> tuple[tuple[int, ...], ...]:
        """Lists that the run left the partition in, or may have: its target, a step, and what a cancellation leaves.

        Never by the set of replicas: another order of these is of others.
        """
        if self.status is MoveStatus.COMPLETE:
            return (self.move.target,)
        # What others cancelled led to no target: they have made that list since.
        may_be_made = self.may_have_made_target and not blames_others(self.problem)
        sent_in_vain = self.submissions.was_refused and not self.was_cancelled
        cancelled_to = () if sent_in_vain else self.cancelled_to
        return ((self.move.target,) if may_be_made else ()) + (self.step.original, *cancelled_to)

    @property
    def between(self) -> tuple[tuple[int, ...], ...]:
        """Lists that the partition has while what the run has sent goes on."""
        if self.status not in IN_FLIGHT:
            return ()
        shown = (Reassignment(one, self.step.target).possible_replicas for one in self.cancelled_to)
        return tuple(dict.fromkeys(one for lists in shown for one in lists))

    @property
    def wait_for_others(self) -> str:
        """Text about the move of others that it waits for, to go on after its name."""
        if self.observation is not None and not self.step.adding:
            return "is copied between directories of its brokers, or they do not say; the run waits for the end of that"
        return f"is moved by {SOMEONE_ELSE}, as the plan does; the run leaves that alone until it ends"

    @property
    def is_diverged(self) -> bool:
        """True if others have sent its partition elsewhere, by the last observation."""
        return self.observation is not None and self.observation.placement is PlacementState.DIVERGED

    @property
    def rearranging(self) -> tuple[int, ...]:
        """Brokers that copy between their directories, or may, by the last observation."""
        return () if self.observation is None else self.observation.rearranging

    @property
    def left_behind(self) -> dict[int, str]:
        """Directories into which brokers may go on copying that are down, or whose own directory of the copy is."""
        seen, paths = self.observation, {target.broker: target.path for target in self.step.log_dirs}
        if seen is None or self.step_sent_ms is None:
            return {}
        return {one: paths[one] for one in self.step.rearranging if one in seen.misplaced and one in seen.offline}

    @property
    def is_list_over(self) -> bool:
        """True if nothing of its list is left to cancel: it stays, or was refused, cancelled, or changed by others."""
        is_moving = self.observation is not None and self.observation.placement is PlacementState.MOVING
        return self.is_list_staying or self.is_diverged or self.is_list_cancelled or (self.is_failing and not is_moving)

    @property
    def is_begun_again(self) -> bool:
        """True if others lead its partition to its target since it was cancelled, by the last observation."""
        return self.is_list_cancelled and self.observation is not None and self.observation.placement in TO_TARGET

    @property
    def is_list_left_alone(self) -> bool:
        """True if copies for its list, if any, are of others: the list was cancelled, or refused while others lead it.

        Brokers may go on for a moment with a list that the controller has cancelled.
        """
        seen = None if self.observation is None else self.observation.placement
        return (self.is_list_cancelled and seen is not PlacementState.SETTLING) or (
            self.was_refused and seen in COPYING
        )

    @property
    def offline(self) -> tuple[int, ...]:
        """Brokers that lag and are down, or whose new copy is in an offline log directory."""
        broken = () if self.observation is None else self.observation.offline
        return tuple(broker for broker in self.lagging if broker in broken)

    @property
    def is_given_up(self) -> bool:
        """True if it is to be cancelled though its run goes on."""
        return self.given_up is not None or self.awaited_replan is not None

    @property
    def story(self) -> str:
        """Its progress, in words."""
        isr = list(self.observation.isr) if self.observation is not None else []
        copies = "; ".join(
            f"broker {copy.broker} has {format_amount(copy.done_bytes, 'B')}, "
            f"{'an unknown amount' if copy.left_bytes is None else format_amount(copy.left_bytes, 'B')} left"
            for copy in self.copies
        )
        return f"{copies or 'no copy has begun'}; in sync are {isr}"

    @property
    def copied(self) -> CopiedPartition:
        """Demand for throttle rates, by the last measurement: while it loses ground, or before the run."""
        written = self.move.write_bytes_per_s
        if self.losing_ground is not None:
            # The measured rate counts writes once per copy.
            written = self.losing_ground[1] / max(1, len(self.copies))
        in_sync = self.step.original if self.observation is None else self.observation.isr
        return CopiedPartition(written, self.source, max(0, len(in_sync) - 1), self.joining)

    @property
    def joining(self) -> tuple[int, ...]:
        """New brokers that still have to catch up in this step, ascending."""
        return tuple(broker for broker in self.lagging if broker in self.step.adding)

    @property
    def source(self) -> int:
        """Broker that sends the copies: the leader at the last observation."""
        leader = NO_LEADER if self.observation is None else self.observation.leader
        return self.step.original[0] if leader == NO_LEADER else leader

    @property
    def bytes_received(self) -> dict[int, int]:
        """Bytes that reached each new copy, by broker, also those deleted since; all of them once the move is complete.

        What became smaller was not copied: of a complete copy counts what was seen of it, and the size from before
        the run only where nothing was seen.
        """
        whole = self.move.size_bytes if self.status is MoveStatus.COMPLETE else 0
        received = {broker: 0 if broker in self.theirs else whole for broker in self.move.receiving}
        for copy in self.copies:
            if copy.broker not in received or copy.broker in self.theirs:
                continue
            done = copy.done_bytes + self.vanished.get(copy.broker, 0)
            if self.status is MoveStatus.COMPLETE:
                done = max(done, received[copy.broker]) if copy.left_bytes is None else done + copy.left_bytes
            received[copy.broker] = done
        return received

    @property
    def bytes_copied(self) -> int:
        """Bytes that reached the new brokers, summed."""
        return sum(self.bytes_received.values())

    @property
    def lagging(self) -> tuple[int, ...]:
        """Brokers that still have to catch up in this step, where known, ascending."""
        observation = self.observation
        in_sync = observation.isr if observation is not None and observation.placement in COPYING else ()
        joining = set() if self.is_list_left_alone else set(self.step.adding).difference(in_sync)
        away = self.step.rearranging if observation is None else observation.misplaced
        return tuple(sorted(joining | set(self.step.rearranging) & set(away)))

    @property
    def left_bytes(self) -> dict[int, int]:
        """Bytes still to come at each broker that lags; a whole copy if no broker reported its progress."""
        known = {copy.broker: copy.left_bytes for copy in self.copies}
        lefts = {broker: known.get(broker) for broker in self.lagging}
        return {broker: self.step.size_bytes if left is None else left for broker, left in lefts.items()}

    def sent(self, at_ms: int, seed: str) -> None:
        """Record that the move is about to be sent; the `seed` determines when it may be sent again."""
        self.status = MoveStatus.SENT
        self.submissions.begin(at_ms, seed)
        self._note_what_cancelling_leaves()
        self.theirs = self.theirs.difference(self.step.receiving)
        self.step_sent_ms = self.step_sent_ms or at_ms
        self.progressed_ms = at_ms

    def _note_what_cancelling_leaves(self) -> None:
        found = (self.step.original, *self.cancelled_to)
        leaves = (Reassignment(one, self.step.target).left_by_cancelling for one in found)
        self.cancelled_to = tuple(dict.fromkeys((*self.cancelled_to, *(one for lists in leaves for one in lists))))

    def accepted(self) -> None:
        """Record that the controller accepted the move."""
        self.status, self.refusal = MoveStatus.MOVING, None
        self.submissions.accepted()

    def leave_to_others(self) -> None:
        """Wait for what others have begun."""
        self._wait()
        self.disown()

    def disown(self) -> None:
        """Count the copies of this step as those of others, who have made or make them: nothing of it is undone.

        Except between directories, if the run has asked for these.
        """
        ours = () if self.step_sent_ms is None else self.step.rearranging
        theirs = set(self.step.receiving).difference(ours)
        self.theirs = self.theirs.union(theirs)
        self.copies = tuple(copy for copy in self.copies if copy.broker not in theirs)
        self._forget_sending()

    def _forget_sending(self) -> None:
        """Leave nothing of this step to undo but copies between directories."""
        if not self.step.rearranging:
            self.step_sent_ms = None

    def refused(self, at_ms: int, message: str, *, is_begun: bool = False) -> None:
        """Record a refusal: the move fails, unless an earlier attempt may still take effect.

        A move that `is_begun` copies between directories, and fails once these copies are cancelled.
        """
        self.submissions.answered(message)
        if self.submissions.unanswered:
            self.refusal = message
        elif is_begun:
            self._fail_later(message)
        else:
            self.fail(at_ms, message)

    def cancelling(self, at_ms: int, seed: str) -> None:
        """Record that the move is about to be cancelled; the `seed` determines when to retry."""
        if self.status is not MoveStatus.CANCELLING:
            self.doubtful_since_ms = None
        self.status, self.is_idle = MoveStatus.CANCELLING, False
        self._leave_refused_list()
        self.cancellations.begin(at_ms, seed)

    def _leave_refused_list(self) -> None:
        """Cancel no list that is of others, as each of the run's was refused."""
        self.is_list_cancelled = self.is_list_cancelled or self.was_refused

    def cancelled(self, at_ms: int) -> None:
        """Record that the move was cancelled: on request, until later, or because it was given up."""
        seen = () if self.observation is None else self.observation.replicas
        # A broker that is behind shows the list of before still.
        if self.cancelled_to and seen != self.step.original and set(seen) == set(self.step.original):
            self.cancelled_to = (seen,)
        if self.given_up is not None:
            self.fail(at_ms, self.given_up)
        elif self.awaited_replan is not None:
            self._wait_again()
            self._change_target(self.awaited_replan)
        elif self.is_postponed:
            self._wait_again()
        else:
            self._end(MoveStatus.CANCELLED, at_ms)

    def begun_again(self, at_ms: int) -> None:
        """Record that others lead it to its target since it was cancelled: none of that is the run's."""
        self._forget_sending()
        self.cancelled(at_ms)

    def _wait_again(self) -> None:
        """Restart the step: its copies are discarded, and the order of the replicas may have changed."""
        self.waits_unsent = self.is_list_cancelled
        self._wait()
        self.copies = tuple(copy for copy in self.copies if copy.broker in self.step.original)
        self.was_cancelled = True

    def replan(self, replan: Replan) -> None:
        """Change the target: at once if nothing is in progress, else after the cancellation."""
        if not self.is_waiting:
            self.awaited_replan = replan
            return
        self.unsend()
        self._change_target(replan)

    def unsend(self) -> None:
        """Wait as before it was sent, if it was: the cluster refused it for now."""
        if self.status is MoveStatus.SENT:
            self._forget_sending()
            self._wait()

    def _with(self, replan: Replan) -> PlannedMove:
        log_dirs = tuple(one for one in self.move.log_dirs if one.broker in replan.target)
        return replace(self.move, target=replan.target, log_dirs=log_dirs)

    def _change_target(self, replan: Replan) -> None:
        """Start from the present replicas: completed steps of a stepwise move stay."""
        is_stepwise, former = bool(self.steps), self.step
        self.move = self._with(replan)
        self.steps = move_steps(replace(self.move, original=former.original)) if is_stepwise else ()
        self.waits_unsent = self.waits_unsent or self.step.target != former.target
        self.replans, self.awaited_replan = (*self.replans, replan), None
        self.copies = tuple(copy for copy in self.copies if copy.broker in replan.target)
        self.doubtful_since_ms = self.leaderless_since_ms = None
        if self.observation is not None:
            self.observation = replace(self.observation, placement=PlacementState.UNTOUCHED, copies=(), misplaced=())

    def next_step(self) -> bool:
        """Go on to the next step, if there is one; the cluster shows where it begins."""
        if len(self.steps) < 2 or self.observation is None:
            return False
        done, self.steps = self.steps[0], self.steps[1:]
        self._wait()
        self.was_cancelled = self.waits_unsent = False
        self.cancelled_to = ()
        self.earlier_sent_ms, self.step_sent_ms = self.submitted_ms, None
        self.copies = tuple(_arrived(copy) if copy.broker in done.adding else copy for copy in self.copies)
        self.observation = replace(self.observation, placement=PlacementState.UNTOUCHED, copies=())
        return True

    def _wait(self) -> None:
        self.status, self.submissions, self.cancellations = MoveStatus.PLANNED, Attempts(), Attempts()
        self.refusal, self.is_idle, self.is_failing = None, False, False
        self.anchor, self.losing_ground, self.progressed_ms = None, None, None
        self.is_postponed = self.is_list_cancelled = False

    def resumed(self, at_ms: int) -> None:
        """Restart every timeout: time without a process says nothing about the move."""
        self.doubtful_since_ms, self.leaderless_since_ms = None, None
        self.anchor, self.losing_ground = None, None
        self.progressed_ms = None if self.progressed_ms is None else at_ms
        for attempts in (self.submissions, self.cancellations):
            attempts.restart(at_ms)

    def give_up(self, at_ms: int, problem: str) -> None:
        """Make it fail: at once if it was not begun, else once it is cancelled."""
        self.given_up = problem
        if self.is_waiting:
            self.fail(at_ms, problem)

    def fail(self, at_ms: int, problem: str) -> None:
        """Record that the move failed, or will once its copies between directories are cancelled."""
        if self.rearranging and self.status in {MoveStatus.SENT, MoveStatus.MOVING}:
            self._fail_later(problem)
        else:
            self._end(MoveStatus.FAILED, at_ms, problem)

    def _end(self, status: MoveStatus, at_ms: int, *problem: str) -> None:
        if self.was_refused:
            self._forget_sending()
        left = (
            f"broker {broker} or its directory was down: it may go on copying into {path} later, without a throttle"
            for broker, path in self.left_behind.items()
        )
        self.status, self.ended_ms, self.problem = status, at_ms, "; ".join((*problem, *left)) or None

    def _fail_later(self, problem: str) -> None:
        self.status, self.given_up, self.is_failing = MoveStatus.CANCELLING, problem, True
        self._leave_refused_list()
        # One that is still to be answered, for a poll may have been before the copies began.
        self.cancellations, self.doubtful_since_ms = Attempts(unanswered=1), None

    def see(self, observation: PartitionObservation, at_ms: int) -> None:
        """Process an observation. A copy that no broker reported this time keeps its last progress."""
        if self.observation is not None and self.observation.placement is not observation.placement:
            self.doubtful_since_ms = None
        if observation.size_bytes is not None:
            self._resize(observation.size_bytes)
        has_grown = self.observation is None or len(observation.isr) > len(self.observation.isr)
        self.observation = observation
        theirs = self.step.adding if self.is_list_cancelled or self.was_refused else ()
        ours = (copy for copy in observation.copies if copy.broker not in theirs)
        known = {copy.broker: copy for copy in (*self.copies, *ours)}
        done_before = sum(copy.done_bytes for copy in self.copies)
        for before in self.copies:
            deleted = _deleted_bytes(before, known[before.broker])
            if deleted:
                self.vanished[before.broker] = self.vanished.get(before.broker, 0) + deleted
        self.copies = tuple(known[broker] for broker in sorted(known))
        if has_grown or sum(copy.done_bytes for copy in self.copies) > done_before:
            self.progressed_ms = at_ms
        self._measure(at_ms)

    def _resize(self, size_bytes: int) -> None:
        self.move = replace(self.move, size_bytes=size_bytes)
        self.steps = tuple(replace(step, size_bytes=size_bytes) for step in self.steps)

    def _measure(self, at_ms: int) -> None:
        """Check after each minute of copying whether more is copied than written, if all remaining bytes are known."""
        lefts = [copy.left_bytes for copy in self.copies]
        known = [left for left in lefts if left is not None]
        if not known or len(known) < len(lefts):
            return
        now = CopyPace(at_ms, sum(copy.done_bytes for copy in self.copies), sum(known))
        if self.anchor is not None and now.done_bytes <= self.anchor.done_bytes:
            self.anchor = now  # It waits in its broker's queue, or stands still: no rate follows from that.
        if self.anchor is None or at_ms - self.anchor.at_ms >= PACE_MS:
            self.losing_ground = None if self.anchor is None else now.losing_ground_since(self.anchor)
            self.anchor = now


def _deleted_bytes(before: CopyProgress, now: CopyProgress) -> int:
    """Received bytes that are gone: the whole log became smaller too, else the progress was only measured again."""
    if before.left_bytes is None or now.left_bytes is None:
        return 0
    shrunk = before.done_bytes + before.left_bytes - now.done_bytes - now.left_bytes
    return max(0, min(before.done_bytes - now.done_bytes, shrunk))


def _arrived(copy: CopyProgress) -> CopyProgress:
    return CopyProgress(copy.broker, copy.done_bytes + (copy.left_bytes or 0), 0)
