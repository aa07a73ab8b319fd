"""The state of a run: one class per phase and per step of moving, each with the data that only it needs.

    New ─▶ Preparing ─▶ Throttling ─▶ moving ─▶ Electing ─▶ restoring ─▶ Verifying ─▶ Done | Cancelled | Failed
                                        └─▶ Paused ◀── (stop, cluster out of reach) ── resume leads back

Verifying leads back to Electing where a leader was lost after its move was complete.
AwaitingLease is entered from every state when the lease of the cluster was lost, and leads back. Resuming comes before
Preparing if a throttle was left. Moving is a cycle of steps, and restoring one of three. `phase` is the name of a
state for operators, journals and reports. Data that outlives a phase (moves, throttle, health) is in `run.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from kreassign.executor.throttle_ledger import ConfigKey
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.run import Phase

Names = tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class New:
    """Nothing has happened yet."""

    phase: ClassVar = Phase.NEW


@dataclass(frozen=True, slots=True)
class Preparing:
    """The settings of the throttle are read, since `failing_since_ms` without success."""

    phase: ClassVar = Phase.PREPARING
    failing_since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Resuming:
    """The throttle that was left is read before any of it is set again, since `failing_since_ms` without success.

    In a run that has the lease again it is read once, to report which of `were_set` have changed.
    """

    phase: ClassVar = Phase.PREPARING
    failing_since_ms: int | None = None
    were_set: tuple[ConfigKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Throttling:
    """The rates of the throttle are set."""

    phase: ClassVar = Phase.THROTTLING


# --- steps of moving -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Observing:
    """These `moves` are observed; the `chosen` ones start if they are found unchanged."""

    phase: ClassVar = Phase.MOVING
    moves: Names
    chosen: Names = ()


@dataclass(frozen=True, slots=True)
class CheckingHealth:
    """The health of the cluster is read before `starting` moves are sent and others `cancelling`."""

    phase: ClassVar = Phase.MOVING
    starting: Names
    cancelling: Names


@dataclass(frozen=True, slots=True)
class RecordingVerdicts:
    """The verdicts of the guards are being journaled. Brokers that have `returned` are throttled next."""

    phase: ClassVar = Phase.MOVING
    starting: Names
    cancelling: Names
    returned: frozenset[int]


@dataclass(frozen=True, slots=True)
class Replanning:
    """Moves whose destination is lost are planned again. Brokers that have `returned` are throttled next."""

    phase: ClassVar = Phase.MOVING
    returned: frozenset[int]


@dataclass(frozen=True, slots=True)
class CheckingThrottle:
    """The throttle is read again before `starting` moves are sent or lists of `topics` changed, or while in doubt."""

    phase: ClassVar = Phase.MOVING
    starting: Names
    topics: frozenset[ConfigResource] = frozenset()


@dataclass(frozen=True, slots=True)
class SettingLists:
    """The lists of throttled replicas are changed; `starting` moves are sent once they are in force."""

    phase: ClassVar = Phase.MOVING
    starting: Names


@dataclass(frozen=True, slots=True)
class Submitting:
    """Moves are sent to the controller; `remaining` ones follow in further requests."""

    phase: ClassVar = Phase.MOVING
    remaining: Names


@dataclass(frozen=True, slots=True)
class Cancelling:
    """Moves are cancelled (KIP-455)."""

    phase: ClassVar = Phase.MOVING


@dataclass(frozen=True, slots=True)
class Waiting:
    """Time passes until the next poll."""

    phase: ClassVar = Phase.MOVING


@dataclass(frozen=True, slots=True)
class MeasuringTraffic:
    """The traffic of brokers is measured, for a throttle that adapts to it."""

    phase: ClassVar = Phase.MOVING


# --- without the lease ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AwaitingLease:
    """Another one may be changing the cluster, so nothing is changed until the lease is had again."""

    phase: ClassVar = Phase.AWAITING_LEASE
    asked_ms: int


# --- the end -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Electing:
    """Preferred leaders are elected: those `asked` for now, then the `remaining` ones.

    `refused` has the time of each first refusal; no call has been answered since `silent_since_ms`. Where leaders were
    lost after their election, the cluster differs from the plan since `differs_since_ms`.
    """

    phase: ClassVar = Phase.ELECTING
    remaining: Names
    asked: Names = ()
    refused: Mapping[TopicPartition, int] = field(default_factory=dict)
    silent_since_ms: int | None = None
    differs_since_ms: int | None = None


class Afterwards(StrEnum):
    """Next step once the throttle is restored."""

    VERIFY = "verify"
    PAUSE = "pause"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class RestoreProgress:
    """State of restoring: what follows, since when it fails, and why brokers that are down could not be written to."""

    afterwards: Afterwards
    failing_since_ms: int | None = None
    unwritten: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Restoring:
    """The settings that the run changed are read; what differs from before is written next."""

    phase: ClassVar = Phase.RESTORING
    restore: RestoreProgress


@dataclass(frozen=True, slots=True)
class WritingBack:
    """The values from before the run are written."""

    phase: ClassVar = Phase.RESTORING
    restore: RestoreProgress


@dataclass(frozen=True, slots=True)
class ConfirmingRestore:
    """The values were written and are read to confirm it."""

    phase: ClassVar = Phase.RESTORING
    restore: RestoreProgress


@dataclass(frozen=True, slots=True)
class Verifying:
    """The cluster is compared with the plan; it differs, or does not answer, since these times."""

    phase: ClassVar = Phase.VERIFYING
    differs_since_ms: int | None = None
    silent_since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """All moves were made."""

    phase: ClassVar = Phase.DONE
    ended_ms: int


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Some moves were cancelled on request; none failed."""

    phase: ClassVar = Phase.CANCELLED
    ended_ms: int


@dataclass(frozen=True, slots=True)
class Failed:
    """Something is not as planned."""

    phase: ClassVar = Phase.FAILED
    ended_ms: int


@dataclass(frozen=True, slots=True)
class Paused:
    """The process has left the run; moves in flight go on in the cluster."""

    phase: ClassVar = Phase.PAUSED


RunState = (
    New
    | Resuming
    | Preparing
    | Throttling
    | Observing
    | CheckingHealth
    | RecordingVerdicts
    | Replanning
    | CheckingThrottle
    | SettingLists
    | Submitting
    | Cancelling
    | Waiting
    | MeasuringTraffic
    | AwaitingLease
    | Electing
    | Restoring
    | WritingBack
    | ConfirmingRestore
    | Verifying
    | Paused
    | Done
    | Cancelled
    | Failed
)

STATES: tuple[type[RunState], ...] = RunState.__args__
"""Every state, in the order of a run."""


def within(since_ms: int | None, at_ms: int, limit_ms: int) -> tuple[int, bool]:
    """Time of the first failure, and whether to retry within the limit."""
    since_ms = at_ms if since_ms is None else since_ms
    return since_ms, at_ms - since_ms < limit_ms
