"""Events of an autopilot: facts in the past tense, as its journal has them. Pure.

Add fields with defaults, add classes; rename nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from kreassign.autopilot.policy import Kind
from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.model.text import shortened


class State(StrEnum):
    """How far a finding has come."""

    SEEN = "seen"  # it may pass
    TOLD = "told"  # it lasts, and people know
    PROPOSED = "proposed"  # a repair is planned
    RUNNING = "running"  # the repair runs
    SETTLING = "settling"  # the repair has run; whether it helped shows after a while
    CLOSED = "closed"  # it is over
    GIVEN_UP = "given up"  # it outlasted its repair: people look into it


OPEN = frozenset(State) - {State.CLOSED}

CLUSTER = "cluster"
"""Subject of a finding that is about no broker in particular."""


class Name(NamedTuple):
    """Which finding: its kind, and what it is about (`broker 3`, `broker 3:/data/d0`, `cluster`)."""

    kind: Kind
    subject: str

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"

    @property
    def broker(self) -> int:
        """Id of the broker that it is about; not for clusters."""
        return int(self.subject.removeprefix("broker ").partition(":")[0])

    @property
    def path(self) -> str:
        """Path of the log directory that it is about; empty where it is about none."""
        return self.subject.partition(":")[2]


_SUBJECTS: Mapping[Kind, tuple[str, str]] = MappingProxyType({
    **dict.fromkeys(Kind, ("broker [0-9]+", "broker 3")),
    **dict.fromkeys((Kind.DISK_FILLS, Kind.DIRECTORY_FAILED), ("broker [0-9]+:.+", "broker 3:/data/d0")),
    Kind.SLOW_BROKER: ("broker [0-9]+|cluster", "broker 3"),
    Kind.UNREAD: ("cluster|write times", CLUSTER),
    **dict.fromkeys((Kind.MANY_GONE, Kind.PLACEMENT, Kind.BAND_LEFT, Kind.LEADERS), (CLUSTER, CLUSTER)),
})  # fmt: skip
"""Forms of the subjects of each kind, with an example."""


def parse_name(kind: Kind, subject: str) -> Name:
    """The finding that an operator means. Raises InputError for a subject that findings of the kind never have."""
    form, example = _SUBJECTS[kind]
    if not re.fullmatch(form, subject):
        raise InputError(
            f"{shortened(subject)!r} is no subject of {kind}; write it as {example!r}, as `kreassign autopilot status` "
            "shows it"
        )
    return Name(kind, subject)


@dataclass(frozen=True, slots=True)
class Noted:
    """An event at a time."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class OfFinding(Noted):
    """An event that is about a finding."""

    name: Name


@dataclass(frozen=True, slots=True)
class Began(Noted):
    """The first event of a journal: whose it is."""

    cluster_id: str


@dataclass(frozen=True, slots=True)
class WentOn(Noted):
    """Looks went on after a break, during which nobody knows what happened: all evidence begins again.

    So they did where the clock was set back: what happened later by it happened by now.
    """


@dataclass(frozen=True, slots=True)
class Resumed(Noted):
    """A process goes on with the journal, which is kept in `journal_to`, too: any other writes nothing more."""

    by: str
    journal_to: str | None


@dataclass(frozen=True, slots=True)
class Ended(Noted):
    """The process ended in good order: another host may go on at once."""


@dataclass(frozen=True, slots=True)
class FileKept(OfFinding):
    """A file about the repair of a finding, as it is beside the journal: its plan, a request, a signature."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class SightLost(OfFinding):
    """A finding is not seen any more: what shows it could not be read, or `is_gone` for now, while its repair runs.

    Of a disk the used share may have been read all the same, and `is_low`: only its growth is not known.
    """

    is_gone: bool
    is_low: bool = False


@dataclass(frozen=True, slots=True)
class SightBack(OfFinding):
    """A finding is seen again; its evidence counts from `since_ms`."""

    since_ms: int


@dataclass(frozen=True, slots=True)
class Looked(Noted):
    """The cluster was looked at; written now and then, as a sign of life.

    Brokers `are_read` if they answered, `are_moves_read` if their list did; not where it planned or rehearsed for
    minutes, and looked at nothing.
    """

    are_read: bool = True
    are_moves_read: bool = True


@dataclass(frozen=True, slots=True)
class BrokerWent(Noted):
    """A broker is not live any more; unless it `is_witnessed`, it went at any time before.

    Its replicas had `held_bytes` then; None where that is not known.
    """

    broker: int
    is_witnessed: bool = True
    held_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class BrokerCame(Noted):
    """A broker is live again."""

    broker: int


@dataclass(frozen=True, slots=True)
class OutagesPlanned(Noted):
    """These brokers are down and in maintenance; written when others are than before."""

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReplicasHeld(Noted):
    """These brokers hold replicas, whether they are live or not; written when others do than before.

    `racks` has the rack of each, empty where it is not known.
    """

    brokers: tuple[int, ...]
    racks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OthersMoved(Noted):
    """Others move partitions or have set throttles; written every few minutes while that goes on.

    `moves` are those of their moves that were not written lately. Unless they `are_moving`, throttles are all there is.
    """

    what: str
    moves: tuple[TopicPartition, ...] = ()
    are_moving: bool = True


class DiskUse(NamedTuple):
    """Bytes used in a log directory, and its size."""

    broker: int
    path: str
    used_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class DisksMeasured(Noted):
    """Use of log directories, once an hour: their growth follows, but for brokers that were catching up."""

    disks: tuple[DiskUse, ...]
    catching_up: tuple[int, ...] = ()


class Follower(NamedTuple):
    """A replica that follows: of this partition, on this broker."""

    topic: str
    partition: int
    broker: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on broker {self.broker}"


@dataclass(frozen=True, slots=True)
class SyncChanged(Noted):
    """Followers fell out of sync, of brokers that are not slow and were not down lately, or are back or gone."""

    fell: tuple[Follower, ...]
    back: tuple[Follower, ...]


@dataclass(frozen=True, slots=True)
class FindingMoved(OfFinding):
    """A finding came into this state, is urgent now, or told late, for this reason; `seen` is the sentence about it.

    `since_ms` is from when on it is there, where that is earlier than the look that showed it first. It `is_calm` where
    it was urgent and is not by this look. The finding, if about the cluster, is about these `brokers`. Of a disk it is
    there only `by_growth`, or urgent only `urgent_by_growth`; None is as before, and at first not known, or not urgent.
    """

    state: State
    why: str
    seen: str
    since_ms: int | None = None
    is_urgent: bool | None = None
    is_told_late: bool = False
    brokers: tuple[int, ...] = ()
    by_growth: bool | None = None
    urgent_by_growth: bool | None = None
    is_calm: bool | None = None


class PlanLoads(NamedTuple):
    """Loads of the tables of the policy: when they were last measured, and the share of partitions with doubtful ones.

    With a `problem` they could not be read.
    """

    measured_ms: int | None
    doubtful_share: float
    problem: str = ""


class Rehearsed(NamedTuple):
    """A rehearsal of a plan on a twin of the cluster: its outcome as a sentence, and the `problem` that it showed.

    It counts until then, for the same plan and while its `basis` (brokers, offline log directories, throttle, windows)
    is the same.
    """

    at_ms: int
    text: str
    problem: str = ""
    until_ms: int = 0
    basis: str = ""


@dataclass(frozen=True, slots=True)
class Planned(OfFinding):
    """A repair was planned: an id of its content, its cost, and what speaks for acting now and against it.

    It takes `seconds` by its prediction, None without one. `loads` is None where the policy names no tables, or the
    plan needs no loads; `rehearsal` where it was not rehearsed in the hours of the policy, `rehearsal_any_time` where
    not for a run outside them, too. It repairs findings of the same kind about the brokers `also`, too.
    """

    plan_id: str
    copied_bytes: int
    moves: tuple[TopicPartition, ...]
    sentences: tuple[str, ...] = ()
    seconds: float | None = None
    loads: PlanLoads | None = None
    rehearsal: Rehearsed | None = None
    also: tuple[int, ...] = ()
    rehearsal_any_time: Rehearsed | None = None

    @property
    def brokers(self) -> frozenset[int]:
        """Brokers that it is about; none where it is about the cluster."""
        return frozenset(() if self.name.subject == CLUSTER else (self.name.broker, *self.also))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Sentences about the plan beside its cost."""
        return self.sentences[1:] + (() if self.last_rehearsal is None else (self.last_rehearsal.text,))

    @property
    def last_rehearsal(self) -> Rehearsed | None:
        """The later of its two rehearsals."""
        made = (one for one in (self.rehearsal, self.rehearsal_any_time) if one is not None)
        return max(made, key=lambda one: one.at_ms, default=None)

    def rehearsal_of(self, *, at_any_time: bool) -> Rehearsed | None:
        """Return the rehearsal of a run that has these hours."""
        return self.rehearsal_any_time if at_any_time else self.rehearsal

    def rehearsed(self, rehearsal: Rehearsed, *, at_any_time: bool) -> Planned:
        """Return the plan with this rehearsal of a run that has these hours."""
        if at_any_time:
            return replace(self, rehearsal_any_time=rehearsal)
        return replace(self, rehearsal=rehearsal)


@dataclass(frozen=True, slots=True)
class NotPlanned(OfFinding):
    """A repair could not be planned, or begun; `is_passing` if the cluster did not answer, or refused for now.

    Its proposal and signatures stay then. One that `is_repeated` counts as a failure all the same.
    """

    why: str
    is_passing: bool = False
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalAsked(OfFinding):
    """People are asked to sign the proposal of a finding: this request."""

    request_id: str


@dataclass(frozen=True, slots=True)
class ApprovalsJudged(OfFinding):
    """Signatures were read: those that count, why the request permits nothing any more, and what is lacking."""

    approved_by: tuple[str, ...]
    dead: str = ""
    lacking: str = ""


class ClosedGate(NamedTuple):
    """A gate that keeps a repair from running: its name, and why it is closed and what opens it."""

    gate: str
    why: str


@dataclass(frozen=True, slots=True)
class GatesJudged(OfFinding):
    """The gates that are closed for the repair of a finding; none is closed where it may run.

    It has been kept since then by gates that do not open by themselves, and people may have been told of that.
    """

    closed: tuple[ClosedGate, ...]
    kept_since_ms: int | None = None
    is_told: bool = False


@dataclass(frozen=True, slots=True)
class RunBegan(OfFinding):
    """The run of a repair is about to begin, in windows or `at_any_time`; written before anything is sent.

    It repairs findings of the same kind about the brokers `also`, too. `before` is the amount that it is to change.
    """

    run_id: str
    copied_bytes: int
    moves: tuple[TopicPartition, ...]
    at_any_time: bool = False
    seconds: float | None = None
    also: tuple[int, ...] = ()
    before: str = ""


@dataclass(frozen=True, slots=True)
class Gained(OfFinding):
    """The amount that the last repair of a finding was to change, before it and now that it has settled."""

    text: str


@dataclass(frozen=True, slots=True)
class WindowsLifted(OfFinding):
    """The run of a repair goes on outside the windows from now on: its finding became urgent."""


@dataclass(frozen=True, slots=True)
class DigestTold(Noted):
    """The daily digest was told."""


@dataclass(frozen=True, slots=True)
class EndAsked(OfFinding):
    """The autopilot asks the run of a repair to end once its moves in flight are done."""

    why: str


@dataclass(frozen=True, slots=True)
class HoldAsked(OfFinding):
    """The autopilot asks the run of a repair to start nothing, by this gate; without one, to go on."""

    by: ClosedGate | None


@dataclass(frozen=True, slots=True)
class PeopleHeld(OfFinding):
    """People paused the run of a repair, or (`by` is empty) let it go on."""

    by: str


class Result(StrEnum):
    """How a repair ended, as counts have it."""

    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    STOPPED = "stopped"  # an election, between two steps
    NOT_BEGUN = "not begun"  # it sent nothing: its process was killed, or others were first; no failure
    NOT_BEGUN_DRY = "not begun in a dry run"  # a dry run would have begun it, once for each finding
    IN_PART = "in part"


@dataclass(frozen=True, slots=True)
class RunEnded(OfFinding):
    """The run of a repair is at rest, with its result; `by` says who ended it, if people did.

    `moved` has the partitions that it moved; None where that is not known, and so may be all. `outcome` is a sentence
    where there is more to say than the result.
    """

    result: Result
    copied_bytes: int
    by: str = ""
    moved: tuple[TopicPartition, ...] | None = None
    outcome: str = ""

    @property
    def text(self) -> str:
        """The outcome in words."""
        return self.outcome or self.result


@dataclass(frozen=True, slots=True)
class TurnedOff(Noted):
    """An operator turned acting off until then. Requests have numbers, as those to runs do."""

    number: int
    until_ms: int
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class TurnedOn(Noted):
    """An operator turned acting on again."""

    number: int
    by: str


@dataclass(frozen=True, slots=True)
class Silenced(Noted):
    """An operator wants nothing done about a finding until then."""

    number: int
    kind: Kind
    subject: str
    until_ms: int
    by: str
    why: str


Request = TurnedOff | TurnedOn | Silenced
Event = (
    Began | WentOn | Looked | BrokerWent | BrokerCame | OutagesPlanned | ReplicasHeld | OthersMoved | DisksMeasured
    | FindingMoved | SightLost | SightBack | Planned | NotPlanned | ApprovalAsked | ApprovalsJudged | GatesJudged
    | RunBegan | EndAsked | HoldAsked | PeopleHeld | WindowsLifted | RunEnded | TurnedOff | TurnedOn | Silenced
    | DigestTold | Resumed | Ended | FileKept | SyncChanged | Gained
)  # fmt: skip
