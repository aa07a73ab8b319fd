"""Events of a run: facts in the past tense, each with the time it happened.

The journal is a list of events (except `TimePassed`) and nothing else; `machine.py` says what follows from each.
A class that is changed or renamed breaks old journals: add fields with defaults, add classes.

`at_ms` is milliseconds since the epoch by the run's own time, which goes on evenly: it begins as the wall clock's with
each process, is never before what the journal holds, and does not follow when the wall clock is set.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from kreassign.executor.guards import GuardSetting, Health, Verdict
from kreassign.executor.scheduling import NO_LIMITS, Pace, PaceChange
from kreassign.executor.throttle_ledger import ConfigOverride, ConfigValue, FoundThrottles
from kreassign.executor.throttle_rates import AdaptiveThrottle, BrokerTraffic, PartitionWrites, ThrottleRates
from kreassign.model import ConfigResource, Reassignment, TopicPartition, TopicPartitionReplica


@dataclass(frozen=True, slots=True)
class LogDirTarget:
    """In which directory of a broker a copy shall be, and where it was before the run; None where it was not."""

    broker: int
    path: str
    before: str | None = None

    @property
    def is_move(self) -> bool:
        """Whether a copy has to be moved between two directories of its broker."""
        return self.before is not None and self.before != self.path


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """What is intended for one partition: from the list it had to the list it shall have.

    `size_bytes` is what one copy took when the run was prepared, 0 where that is unknown; `write_bytes_per_s` what
    producers wrote to it then, 0.0 where nobody measured. A move that `is_urgent` repairs something. `log_dirs` are the
    copies of which the plan names the directory. `topic_id` tells the topic from another one of its name; None where
    the cluster has none (before Kafka 2.8), or the journal is of a version that did not ask.
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
        """The directory of each copy of which the plan names it."""
        return {TopicPartitionReplica(target.broker, *self.topic_partition): target.path for target in self.log_dirs}

    @property
    def receiving(self) -> tuple[int, ...]:
        """Brokers that make a copy, whether from the leader or from another directory of their own, ascending."""
        return tuple(sorted({*self.adding, *self.rearranging}))


def topic_ids_of_moves(moves: Iterable[PlannedMove]) -> dict[str, str]:
    """The ids of the topics of these moves, by name; without those that have none."""
    return {move.topic_partition.topic: move.topic_id for move in moves if move.topic_id is not None}


class PlacementState(StrEnum):
    """Where a partition stands between its original and its target list."""

    UNTOUCHED = "untouched"  # the original list, and nothing is under way
    MOVING = "moving"  # on its way to our target
    ARRIVED = "arrived"  # the target list, nothing is under way, and that is certain
    UNCONFIRMED = "unconfirmed"  # the same, but a move under way would look so too where its controller is not asked
    SETTLING = "settling"  # nothing is under way, but the brokers still show the list of the move
    REORDERED = "reordered"  # the brokers of the original list in another order: what a cancelled move leaves
    DIVERGED = "diverged"  # another list, or on its way to another target: someone else changed it
    DELETED = "deleted"  # there is no such partition
    RECREATED = "recreated"  # it is one of another topic, which was created under the same name


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """How far the copy on one broker is; `left_bytes` is None when the leader's size is not known."""

    broker: int
    done_bytes: int
    left_bytes: int | None


@dataclass(frozen=True, slots=True)
class PartitionObservation:
    """What one poll of the cluster showed of one partition. Empty lists and leader -1 when it is gone.

    `misplaced` are brokers whose copy is not in the log directory that the plan names; `offline` those that get one and
    cannot go on with it, because they are down or the log directory of their copy is.
    """

    topic_partition: TopicPartition
    placement: PlacementState
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    copies: tuple[CopyProgress, ...] = ()
    misplaced: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A partition that the cluster refused, and its words."""

    topic_partition: TopicPartition
    message: str


@dataclass(frozen=True, slots=True)
class NewTarget:
    """The replicas that a move shall lead to instead of those that it was to lead to `before`."""

    topic_partition: TopicPartition
    before: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A broker that is down, and why nobody took its settings for it."""

    broker: int
    reason: str

    def __str__(self) -> str:
        return f"the throttle of broker {self.broker} could not be written: {self.reason}"


@dataclass(frozen=True, slots=True)
class Operator:
    """Who executes a run: the user and the host of the process, and the words of its command line."""

    user: str
    host: str
    command: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.user}@{self.host}: {' '.join(self.command)}" if self.command else f"{self.user}@{self.host}"


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run was prepared and its journal begun; nothing has been sent. Always the first event.

    `plan_id` is that of the plan's facts file. `found` tells how to treat throttles that others had set: at the end a
    setting that is named in `originals` gets the value from there, whatever it was when the run began; `adopted` ones
    are the run's to restore, needed or not.
    A run that `rereads_throttle` does so before every batch of moves, one that `guards_to_the_end` checks health also
    while a cancelled run lets its moves finish, and one that `rereads_first` reads what it left when it is resumed,
    before anything is set again. One that `replans` gives moves whose destination is lost other destinations, and one
    that `allows_producer_outage` has the operator's consent to moves while which producers with acks=all are refused.
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
    rereads_throttle: bool = False
    guards_to_the_end: bool = False
    rereads_first: bool = False
    found: FoundThrottles = FoundThrottles.REFUSE
    originals: tuple[ConfigValue, ...] = ()
    adopted: tuple[ConfigValue, ...] = ()
    replans: bool = False
    allows_producer_outage: bool = False


@dataclass(frozen=True, slots=True)
class RunResumed:
    """Someone resumed a run that was interrupted: paused, killed, or ended with settings to restore.

    From now on it `rereads_first`, as in `RunStarted`.
    If it `replans`, it does from now on what `RunStarted` says of that; else all is as before.
    """

    at_ms: int
    live_brokers: tuple[int, ...]
    operator: Operator | None = None
    rereads_first: bool = False
    replans: bool = False


@dataclass(frozen=True, slots=True)
class StopRequested:
    """The operator asked to leave."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class ClockStepped:
    """The wall clock is so many ms ahead of the run's own time since somebody set it, or the process was stopped."""

    at_ms: int
    ahead_ms: int


@dataclass(frozen=True, slots=True)
class HoldRequested:
    """Someone asked to start nothing more for now. `request` is its number in the journal's table of requests."""

    at_ms: int
    request: int


@dataclass(frozen=True, slots=True)
class ReleaseRequested:
    """Someone asked to start moves again."""

    at_ms: int
    request: int


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """Someone asked to come to an end: what is in flight finishes, or is cancelled too (`is_now`)."""

    at_ms: int
    request: int
    is_now: bool


@dataclass(frozen=True, slots=True)
class ThrottleRequested:
    """Someone asked for another throttle, None for none: of these brokers, or where none is named, of all.

    With `adaptive` all brokers shall get what their traffic leaves over.
    """

    at_ms: int
    request: int
    rate_bytes_per_s: int | None
    brokers: tuple[int, ...] = ()
    adaptive: AdaptiveThrottle | None = None


@dataclass(frozen=True, slots=True)
class PaceRequested:
    """Someone asked for another order of moves, or for other limits of what is in flight."""

    at_ms: int
    request: int
    change: PaceChange


@dataclass(frozen=True, slots=True)
class ConfigsRead:
    """Present values of the settings that were asked for; `problems` says what could not be read.

    The settings of brokers that are `down` could not be read either, which is no wonder; topics that are `gone` have
    none any more. With `others_move`, partitions that are no part of the run are being reassigned.
    """

    at_ms: int
    values: tuple[ConfigValue, ...]
    problems: tuple[str, ...] = ()
    down: tuple[int, ...] = ()
    gone: tuple[ConfigResource, ...] = ()
    others_move: bool = False


@dataclass(frozen=True, slots=True)
class ThrottleIntended:
    """These settings are about to be changed. In the journal before anything is sent."""

    at_ms: int
    overrides: tuple[ConfigOverride, ...]


@dataclass(frozen=True, slots=True)
class ThrottleSet:
    """The settings were changed, but for what `problems` says, and those of brokers that are down.

    `failed` are the topics and brokers that may not have taken theirs and are still there. The problems `may_pass`
    where nobody refused for good; earlier journals do not say so.
    """

    at_ms: int
    problems: tuple[str, ...] = ()
    unwritten: tuple[Unwritten, ...] = ()
    failed: tuple[ConfigResource, ...] = ()
    may_pass: bool = False


@dataclass(frozen=True, slots=True)
class ThrottleRestored:
    """The old values were written, but for what `problems` says, and those of brokers that are down.

    Whether they are there is read afterwards; not those of brokers that are down too, but whose values the controller
    took, nor those of brokers that are `unregistered`: the cluster does not know them any more.
    """

    at_ms: int
    problems: tuple[str, ...] = ()
    unwritten: tuple[Unwritten, ...] = ()
    by_controller: tuple[int, ...] = ()
    unregistered: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokersForgotten:
    """The operator said that these brokers are lost for good: nothing is restored on them any more."""

    at_ms: int
    brokers: tuple[int, ...]
    operator: Operator | None = None


@dataclass(frozen=True, slots=True)
class ThrottleChecked:
    """Settings of the throttle were read again: those that `differ` from what they were set to, and what is unread.

    The settings of brokers that are down count as neither, nor do those of topics that are `gone`: deleted, or others
    that were created under their names.
    """

    at_ms: int
    differ: tuple[ConfigValue, ...] = ()
    unread: tuple[ConfigResource, ...] = ()
    gone: tuple[ConfigResource, ...] = ()


@dataclass(frozen=True, slots=True)
class SubmissionIntended:
    """These moves are about to be sent. In the journal before they are."""

    at_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class MovesSubmitted:
    """What became of moves that were sent.

    `unknown` got no answer, or one after which they may have been carried out all the same. `deferred` were refused for
    now: Kafka's own client would try again.
    """

    at_ms: int
    accepted: tuple[TopicPartition, ...]
    refused: tuple[Refusal, ...] = ()
    unknown: tuple[TopicPartition, ...] = ()
    deferred: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class CancelIntended:
    """These moves are about to be cancelled. In the journal before they are."""

    at_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class MovesCancelled:
    """What became of moves that were to be cancelled; the next poll shows the rest.

    Of the `idle` ones the controller said that nothing is under way.
    """

    at_ms: int
    accepted: tuple[TopicPartition, ...]
    refused: tuple[Refusal, ...] = ()
    idle: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class MovesObserved:
    """A poll of the unfinished moves; only what changed since the last one is in `observations`.

    Of the `unread` ones the cluster said nothing this time, and why: nothing follows from that. `absent` are brokers
    that get copies and are not live; None where that is as it was.

    Without progress (`has_progress`), those are left out of which only the bytes copied have changed: they are in a
    later poll.
    """

    at_ms: int
    observations: tuple[PartitionObservation, ...]
    unread: tuple[Refusal, ...] = ()
    has_progress: bool = True
    absent: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class HealthObserved:
    """The cluster was inspected."""

    at_ms: int
    health: Health


@dataclass(frozen=True, slots=True)
class TrafficMeasured:
    """The traffic of brokers was measured, and what is written to partitions that move; empty where that failed."""

    at_ms: int
    brokers: tuple[BrokerTraffic, ...]
    writes: tuple[PartitionWrites, ...] = ()


@dataclass(frozen=True, slots=True)
class VerdictsRecorded:
    """What the guards said of the last inspection, where it is not what they said before; empty when all is well."""

    at_ms: int
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class MovesReplanned:
    """Moves to brokers that are `lost` were planned again; of those that are `refused` nobody found a way.

    `operator` is who executed the run then. What is under way to the target of before is still to be cancelled.
    """

    at_ms: int
    lost: tuple[int, ...]
    targets: tuple[NewTarget, ...]
    refused: tuple[Refusal, ...] = ()
    operator: Operator | None = None


@dataclass(frozen=True, slots=True)
class LeaseTaken:
    """The run is the only writer of its cluster: it holds the lease, in this generation of the group."""

    at_ms: int
    generation: int


@dataclass(frozen=True, slots=True)
class LeaseForgone:
    """The run goes on without the lease of its cluster, and why it may."""

    at_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """The run does not hold the lease any more, which was found out before anything else was changed."""

    at_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class LeaseRefused:
    """The run asked for the lease again and did not get it."""

    at_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A question or request got no usable answer, and nothing is known to have changed."""

    at_ms: int
    message: str


@dataclass(frozen=True, slots=True)
class TimePassed:
    """A wait is over. The one event that is not kept in the journal: it changes nothing but what is done next."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class LeadersElected:
    """Preferred leaders were asked for: these lead now, or did already; others were refused."""

    at_ms: int
    elected: tuple[TopicPartition, ...]
    refused: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class Verified:
    """The cluster was compared with the plan; `findings` is empty when all is as it shall be."""

    at_ms: int
    findings: tuple[str, ...]


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
"""Events that another terminal may bring about."""
