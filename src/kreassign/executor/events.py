"""Events of a run: facts in the past tense, each with the time it happened.

The journal is a list of events (except `TimePassed`) and nothing else; `machine.py` decides what follows from each.
A class that is changed or renamed is another version of the journal (`journal/file.py`).

`at_ms` is milliseconds since the epoch by the run's own time, which is monotonic: it starts with the wall clock in
each process, is never before the journal's last event, and ignores that the wall clock is set.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from kreassign.executor.client_guard import ClientGuard
from kreassign.executor.guards import GuardSetting, Health, Verdict
from kreassign.executor.throttle_ledger import ConfigOverride, ConfigValue, FoundThrottles
from kreassign.executor.throttle_rates import BrokerTraffic, PartitionWrites
from kreassign.model import ConfigResource, Reassignment, TopicPartition, TopicPartitionReplica
from kreassign.model.approvals import SignedApproval
from kreassign.model.pace import NO_LIMITS, Pace, PaceChange
from kreassign.model.run import LogDirTarget, Operator
from kreassign.model.throttle import AdaptiveThrottle, ThrottleRates


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A partition's change: from its original replica list to the target list.

    `size_bytes` is the size of one copy when the run was prepared; `write_bytes_per_s` what producers wrote to it then,
    0.0 if not measured. A move that `is_urgent` repairs something. `log_dirs` are the copies whose directory the plan
    names. `topic_id` tells the topic from another one of the same name; None where the cluster has none (before Kafka
    2.8).
    """

    topic_partition: TopicPartition
    original: tuple[int, ...]
    target: tuple[int, ...]
    size_bytes: int
    write_bytes_per_s: float = 0.0
    is_urgent: bool = False
    log_dirs: tuple[LogDirTarget, ...] = ()
    topic_id: str | None = None

    @property
    def reassignment(self) -> Reassignment:
        """The change as KIP-455 sees it."""
        return Reassignment(self.original, self.target)

    @property
    def adding(self) -> tuple[int, ...]:
        """Brokers that get a copy, ascending."""
        return self.reassignment.adding

    @property
    def rearranging(self) -> tuple[int, ...]:
        """Brokers that move their copy into another log directory."""
        return tuple(target.broker for target in self.log_dirs if target.is_move)

    @property
    def log_dir_paths(self) -> dict[TopicPartitionReplica, str]:
        """Directory of each copy that the plan assigns one to."""
        return {TopicPartitionReplica(target.broker, *self.topic_partition): target.path for target in self.log_dirs}

    @property
    def receiving(self) -> tuple[int, ...]:
        """Brokers that make a copy, from the leader or from another directory of their own, ascending."""
        return tuple(sorted({*self.adding, *self.rearranging}))


def lists_of(
    moves: Iterable[PlannedMove],
) -> tuple[dict[TopicPartition, tuple[int, ...]], dict[TopicPartition, tuple[int, ...]]]:
    """Targets of moves, and the replica lists that they begin with."""
    chosen = tuple(moves)
    return (
        {move.topic_partition: move.target for move in chosen},
        {move.topic_partition: move.original for move in chosen},
    )


def topic_ids_of_moves(moves: Iterable[PlannedMove]) -> dict[str, str]:
    """Ids of the topics of these moves by name; without topics that have none."""
    return {move.topic_partition.topic: move.topic_id for move in moves if move.topic_id is not None}


class PlacementState(StrEnum):
    """State of a partition between its original and its target list."""

    UNTOUCHED = "untouched"  # the original list, and no reassignment in progress
    MOVING = "moving"  # moving to our target
    ARRIVED = "arrived"  # the target list and certainly no reassignment in progress
    UNCONFIRMED = "unconfirmed"  # the target list, but without the controller a move in progress would look the same
    SETTLING = "settling"  # no reassignment in progress, but the brokers still show the list of the move
    REORDERED = "reordered"  # the brokers of the original list in another order: what a cancelled move leaves
    DIVERGED = "diverged"  # another list, or moving to another target: changed by others
    DELETED = "deleted"  # the partition does not exist
    RECREATED = "recreated"  # it belongs to another topic, created under the same name


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """Progress of the copy on one broker; `left_bytes` is None if the leader's size is unknown."""

    broker: int
    done_bytes: int
    left_bytes: int | None


@dataclass(frozen=True, slots=True)
class PartitionObservation:
    """State of one partition at a poll. Empty lists and leader -1 when it is gone.

    `misplaced` are brokers whose copy is not in the log directory that the plan names; `offline` those that get a copy
    and cannot go on, because they are down or the log directory of their copy is offline. `size_bytes` is that of one
    copy now, where a move waits and the size is no longer what was known. `rearranging` are brokers that copy into the
    directory that the plan names, or are up and did not say; `elsewhere` those whose copy others have put, or are
    putting, into another directory than it was in and that which the plan names.
    """

    topic_partition: TopicPartition
    placement: PlacementState
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    copies: tuple[CopyProgress, ...] = ()
    misplaced: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    size_bytes: int | None = None
    rearranging: tuple[int, ...] = ()
    elsewhere: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A partition that the cluster refused, and the error message."""

    topic_partition: TopicPartition
    message: str


@dataclass(frozen=True, slots=True)
class NewTarget:
    """New target of a move, in place of the target `before`."""

    topic_partition: TopicPartition
    before: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A broker that is down, and why its settings were not written by a controller."""

    broker: int
    reason: str

    def __str__(self) -> str:
        return f"the throttle of broker {self.broker} could not be written: {self.reason}"


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run was prepared and its journal begun; nothing has been sent. Always the first event.

    `plan_id` is that of the plan's facts file. `found` tells how to treat throttles that others had set: at the end a
    setting named in `originals` gets the value from there, whatever it was when the run began; `adopted` settings
    are restored by the run, needed or not.
    A destination is lost once it has been down for `lost_after_ms`, None for never. One that `replans` gives moves
    whose destination is lost other destinations, none of them brokers to `avoid`, and one that
    `allows_producer_outage` has the operator's consent to moves while which producers with acks=all are refused. A
    rollback `undoes` the run of this id. `approval` is the signed one that permits this run, and no other. `clients`
    says how the run asks what clients feel. Its journal is kept in `journal_to`, too. The hours of its `pace` have the
    offsets of their time zone, so that other machines replay what its windows decided. Raises InputError for an unknown
    time zone without them.
    """

    at_ms: int
    run_id: str
    cluster_id: str
    moves: tuple[PlannedMove, ...]
    rates: ThrottleRates
    live_brokers: tuple[int, ...]
    guards: tuple[GuardSetting, ...] = ()
    pace: Pace = NO_LIMITS
    plan_id: str = ""
    operator: Operator | None = None
    found: FoundThrottles = FoundThrottles.REFUSE
    originals: tuple[ConfigValue, ...] = ()
    adopted: tuple[ConfigValue, ...] = ()
    replans: bool = False
    allows_producer_outage: bool = False
    undoes: str | None = None
    lost_after_ms: int | None = None
    approval: SignedApproval | None = None
    clients: ClientGuard | None = None
    journal_to: str | None = None
    avoid: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "pace", replace(self.pace, hours=self.pace.hours.dated(self.at_ms)))


@dataclass(frozen=True, slots=True)
class RunResumed:
    """A run that was interrupted was resumed: it was paused, killed, or ended with settings to restore.

    If it `replans`, it does so from now on, as in `RunStarted`, and so with `lost_after_ms` and `clients`; else all is
    as before. Its journal is kept in `journal_to` from now on, too, None for nowhere else. Moves of a rollback that
    wait, and whose lists another run made since, fail with the words of `made_since`.
    """

    at_ms: int
    live_brokers: tuple[int, ...]
    operator: Operator | None = None
    replans: bool = False
    lost_after_ms: int | None = None
    clients: ClientGuard | None = None
    journal_to: str | None = None
    made_since: tuple[Refusal, ...] = ()


SOMEBODY = "an operator"
"""Who makes a request that names nobody."""


@dataclass(frozen=True, slots=True)
class StopRequested:
    """The operator asked to pause."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class ClockStepped:
    """The wall clock is so many ms ahead of the run's own time since it was set, or the process was stopped."""

    at_ms: int
    ahead_ms: int


@dataclass(frozen=True, slots=True)
class HoldRequested:
    """Request to start no moves for now. `request` is its number in the journal's table of requests."""

    at_ms: int
    request: int
    by: str = SOMEBODY


@dataclass(frozen=True, slots=True)
class ReleaseRequested:
    """An operator asked to start moves again."""

    at_ms: int
    request: int


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """Request to cancel the run: moves in flight finish, or are cancelled too (`is_now`)."""

    at_ms: int
    request: int
    is_now: bool
    by: str = SOMEBODY


@dataclass(frozen=True, slots=True)
class ThrottleRequested:
    """An operator asked for another throttle, None for none: of these brokers, or of all if none is named.

    With `adaptive` all brokers get the rate that their traffic leaves free.
    """

    at_ms: int
    request: int
    rate_bytes_per_s: int | None
    brokers: tuple[int, ...] = ()
    adaptive: AdaptiveThrottle | None = None


@dataclass(frozen=True, slots=True)
class PaceRequested:
    """An operator asked for another order of moves, or for other limits of moves in flight.

    Raises InputError for hours of an unknown time zone, unless they have its offsets.
    """

    at_ms: int
    request: int
    change: PaceChange

    def __post_init__(self) -> None:
        if self.change.hours is not None:
            object.__setattr__(self, "change", replace(self.change, hours=self.change.hours.dated(self.at_ms)))


@dataclass(frozen=True, slots=True)
class ConfigsRead:
    """Present values of the settings that were read; `problems` says what could not be read.

    Settings of brokers that are `down` are not read; topics that are `gone` have none any more. With `others_move`,
    partitions that are not part of the run are being reassigned.
    """

    at_ms: int
    values: tuple[ConfigValue, ...]
    problems: tuple[str, ...] = ()
    down: tuple[int, ...] = ()
    gone: tuple[ConfigResource, ...] = ()
    others_move: bool = False


@dataclass(frozen=True, slots=True)
class ThrottleIntended:
    """These settings are about to be changed. Journaled before anything is sent."""

    at_ms: int
    overrides: tuple[ConfigOverride, ...]


@dataclass(frozen=True, slots=True)
class ThrottleSet:
    """The settings were changed, except those in `problems` and those of brokers that are down.

    `failed` are existing topics and brokers whose settings may not have been changed. The problems `may_pass` if none
    is a final refusal; what had no answer `may_be_made` later.
    """

    at_ms: int
    problems: tuple[str, ...] = ()
    unwritten: tuple[Unwritten, ...] = ()
    failed: tuple[ConfigResource, ...] = ()
    may_pass: bool = False
    may_be_made: bool = False


@dataclass(frozen=True, slots=True)
class ThrottleRestored:
    """The old values were written, except those in `problems` and those of brokers that are down.

    They are read afterwards, except for brokers that are down and whose values the controller took, and for
    brokers that are `unregistered`: the cluster does not know them any more.
    """

    at_ms: int
    problems: tuple[str, ...] = ()
    unwritten: tuple[Unwritten, ...] = ()
    by_controller: tuple[int, ...] = ()
    unregistered: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokersForgotten:
    """The operator declared these brokers lost for good: no settings are restored on them any more."""

    at_ms: int
    brokers: tuple[int, ...]
    operator: Operator | None = None


@dataclass(frozen=True, slots=True)
class ThrottleChecked:
    """Throttle settings were read again: those that `differ` from our values, and those that could not be read.

    Settings of brokers that are down count as neither, nor do those of topics that are `gone`: deleted, or created
    again under their names.
    """

    at_ms: int
    differ: tuple[ConfigValue, ...] = ()
    unread: tuple[ConfigResource, ...] = ()
    gone: tuple[ConfigResource, ...] = ()


@dataclass(frozen=True, slots=True)
class SubmissionIntended:
    """These moves are about to be sent. Journaled before they are."""

    at_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class MovesSubmitted:
    """Outcome of the moves that were sent.

    `unknown` got no answer, or an error after which they may have been made all the same. `deferred` were refused for
    now: Kafka's own client would retry. Of `begun` ones a broker may be copying into another directory, though the rest
    was refused.
    """

    at_ms: int
    accepted: tuple[TopicPartition, ...]
    refused: tuple[Refusal, ...] = ()
    unknown: tuple[TopicPartition, ...] = ()
    deferred: tuple[Refusal, ...] = ()
    begun: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class CancelIntended:
    """These moves are about to be cancelled. Journaled before they are."""

    at_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class MovesCancelled:
    """Outcome of the moves to cancel; the next poll shows the rest.

    For `idle` ones the controller reported no reassignment in progress.
    """

    at_ms: int
    accepted: tuple[TopicPartition, ...]
    refused: tuple[Refusal, ...] = ()
    idle: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class MovesObserved:
    """A poll of the unfinished moves; `observations` has only what changed since the last one.

    About `unread` partitions the cluster did not answer this time, with the reason, which goes on after the name:
    nothing follows from that. Of the `withheld` among them the move is not started, though the partition was read.
    `absent` are brokers that get copies and are down; None if unchanged.

    Without progress (`has_progress`), moves are left out for which only the bytes copied have changed: they are in a
    later poll.
    """

    at_ms: int
    observations: tuple[PartitionObservation, ...]
    unread: tuple[Refusal, ...] = ()
    has_progress: bool = True
    absent: tuple[int, ...] | None = None
    withheld: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class HealthObserved:
    """The cluster was inspected."""

    at_ms: int
    health: Health


@dataclass(frozen=True, slots=True)
class TrafficMeasured:
    """The traffic of brokers and the write rates of moving partitions were measured; empty where that failed."""

    at_ms: int
    brokers: tuple[BrokerTraffic, ...]
    writes: tuple[PartitionWrites, ...] = ()


@dataclass(frozen=True, slots=True)
class VerdictsRecorded:
    """Verdicts of the guards on the last inspection, if they changed; empty when all is well."""

    at_ms: int
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class MovesReplanned:
    """Moves to brokers that are `lost` were planned again; for those that are `refused` there is no other destination.

    `operator` is the one who executed the run then. Moves in progress to the former target are still to be cancelled.
    """

    at_ms: int
    lost: tuple[int, ...]
    targets: tuple[NewTarget, ...]
    refused: tuple[Refusal, ...] = ()
    operator: Operator | None = None


@dataclass(frozen=True, slots=True)
class LeaseTaken:
    """The run holds the lease of its cluster, in this generation of the group: it is the only writer."""

    at_ms: int
    generation: int


@dataclass(frozen=True, slots=True)
class LeaseForgone:
    """The run goes on without the lease of its cluster, with the reason why it may."""

    at_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """The run lost the lease, noticed before another change was made."""

    at_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class LeaseRefused:
    """The run asked for the lease again, and it was refused."""

    at_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A query or request got no usable answer, and nothing is known to have changed.

    `asked_ms` is when the run began to ask after its last answer or pause.
    """

    at_ms: int
    message: str
    asked_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TimePassed:
    """A wait is over. The one event that is not journaled: it only changes what is done next."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class LeadersElected:
    """Preferred leaders were elected: `elected` lead now, or did already; others were refused.

    `spared` were left as they are: their preferred leader is in maintenance.
    """

    at_ms: int
    elected: tuple[TopicPartition, ...]
    refused: tuple[Refusal, ...] = ()
    spared: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class Verified:
    """The cluster was compared with the plan; `findings` is empty when it matches.

    `led_by_others` are partitions that another broker than their first replica leads.
    """

    at_ms: int
    findings: tuple[str, ...]
    led_by_others: tuple[TopicPartition, ...] = ()


Event = (
    RunStarted
    | RunResumed
    | StopRequested
    | ClockStepped
    | HoldRequested
    | ReleaseRequested
    | CancelRequested
    | ThrottleRequested
    | PaceRequested
    | ConfigsRead
    | ThrottleIntended
    | ThrottleSet
    | ThrottleRestored
    | BrokersForgotten
    | ThrottleChecked
    | SubmissionIntended
    | MovesSubmitted
    | CancelIntended
    | MovesCancelled
    | MovesObserved
    | HealthObserved
    | TrafficMeasured
    | VerdictsRecorded
    | MovesReplanned
    | LeaseTaken
    | LeaseForgone
    | LeaseLost
    | LeaseRefused
    | CallFailed
    | TimePassed
    | LeadersElected
    | Verified
)

Request = HoldRequested | ReleaseRequested | CancelRequested | ThrottleRequested | PaceRequested
"""Events that another process may cause."""


def is_answer(event: Event) -> bool:
    """True if the cluster answered. Calls about many items may get no answer for any, which is told as problems."""
    match event:
        case RunResumed() | MovesObserved() | HealthObserved() | ThrottleChecked():
            return True
        case ConfigsRead() | ThrottleSet() | ThrottleRestored():
            return not event.problems
        case MovesSubmitted() | MovesCancelled():
            return bool(event.accepted or event.refused)
        case LeadersElected():
            return bool(event.elected)
    return False
