"""Instructions of a run. `runner.py` executes them; each ends in one event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kreassign.executor.events import PlannedMove
from kreassign.executor.guards import Health, Verdict
from kreassign.executor.throttle_ledger import ConfigKey, ConfigOverride
from kreassign.model import TopicPartition, TopicPartitionReplica
from kreassign.model.run import Operator
from kreassign.model.throttle import ThrottleRates


@dataclass(frozen=True, slots=True)
class ReadConfigs:
    """Read settings and, if it `asks_for_others`, whether others move partitions. Ends in ConfigsRead or CallFailed."""

    keys: tuple[ConfigKey, ...]
    asks_for_others: bool = False


@dataclass(frozen=True, slots=True)
class SetThrottle:
    """Give settings our values, after writing ThrottleIntended. Ends in ThrottleSet."""

    overrides: tuple[ConfigOverride, ...]


@dataclass(frozen=True, slots=True)
class RestoreThrottle:
    """Restore the old values of settings. Ends in ThrottleRestored.

    Only our own entries are removed from the `shared` lists, because others have entries there, too.
    """

    overrides: tuple[ConfigOverride, ...]
    shared: tuple[ConfigKey, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckThrottle:
    """Check whether settings are still as they were set. Ends in ThrottleChecked or CallFailed.

    Topics whose ids differ now have lost their settings: their settings were not changed by others.
    """

    overrides: tuple[ConfigOverride, ...]
    topic_ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubmitMoves:
    """Start moves, after writing SubmissionIntended. Ends in MovesSubmitted or CallFailed.

    Directories are sent first: a broker remembers them for copies that it does not have yet. Only moves that are
    `changing_factor` may change how many replicas a partition has (KIP-860).
    """

    targets: Mapping[TopicPartition, tuple[int, ...]]
    log_dirs: Mapping[TopicPartitionReplica, str] = field(default_factory=dict)
    changing_factor: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class CancelMoves:
    """Cancel moves (KIP-455), after writing CancelIntended. Ends in MovesCancelled or CallFailed."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ProducerGuard:
    """Withhold moves whose start finds producers with acks=all refused, or has them refused.

    Except partitions that were `short` of replicas in sync when the run began; None before the first inspection, which
    is made before anything starts.
    """

    short: frozenset[TopicPartition] | None = None


@dataclass(frozen=True, slots=True)
class ObserveMoves:
    """Read the progress of moves. Ends in MovesObserved or CallFailed.

    The run has not sent the `unsent` ones, so that their target is as unexpected as anything else; with `producers`
    they are judged by that, too. Their `sizes` are read again where the run keeps space free.
    """

    moves: tuple[PlannedMove, ...]
    unsent: frozenset[TopicPartition] = frozenset()
    producers: ProducerGuard | None = None
    sizes: bool = False


@dataclass(frozen=True, slots=True)
class CheckHealth:
    """Inspect the cluster and check that these settings are still ours. Ends in HealthObserved or CallFailed.

    The run has not sent the `unsent` ones of its moves: reassignments and copies of these are those of others, and so
    are reassignments of those `left_alone`, which were cancelled for the run, or refused. `before`
    is the first inspection of the run. The run goes on without the `lost` brokers: their replicas are expected to be
    out of sync. Moves of a run that `allows_producer_outage` may make the cluster refuse producers. A `second_look`
    decides whether the run ends: trouble that is unclear counts as none.
    """

    moves: tuple[PlannedMove, ...]
    throttle: tuple[ConfigOverride, ...]
    before: Health | None = None
    lost: tuple[int, ...] = ()
    allows_producer_outage: bool = False
    second_look: bool = False
    unsent: frozenset[TopicPartition] = frozenset()
    left_alone: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class MeasureTraffic:
    """Measure the traffic of brokers and the write rates of these partitions. Ends in TrafficMeasured."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class RecordVerdicts:
    """Journal the verdicts of the guards. Ends in VerdictsRecorded."""

    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class ReplanMoves:
    """Find other destinations for moves to brokers that are `lost`. Ends in MovesReplanned or CallFailed.

    Those of the `moves` that are `in_flight` are being made by this run. `plan` is every move made or still to be made,
    including these; `writes` are bytes per second that producers write to their partitions. `known_settings` are those
    whose earlier values the run knows: those that it changes, and those of others that it had to treat. Brokers to
    `avoid` get nothing.
    """

    moves: tuple[PlannedMove, ...]
    lost: tuple[int, ...]
    in_flight: frozenset[TopicPartition]
    plan: tuple[PlannedMove, ...]
    rates: ThrottleRates
    known_settings: frozenset[ConfigKey]
    disk_reserve: float
    writes: Mapping[TopicPartition, float] = field(default_factory=dict)
    operator: Operator | None = None
    avoid: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until the next poll. Ends in TimePassed, or in StopRequested."""


@dataclass(frozen=True, slots=True)
class TakeLease:
    """Try to get the lease of the cluster again. Ends in LeaseTaken, LeaseRefused or LeaseForgone."""


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """Make the first replica of each partition its leader. Ends in LeadersElected or CallFailed.

    Topics whose ids differ now are left alone, and partitions whose first replica, as of `leaders`, is in maintenance.
    """

    partitions: tuple[TopicPartition, ...]
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    leaders: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verify:
    """Compare the cluster with the plan, and check that settings are restored. Ends in Verified or CallFailed."""

    moves: tuple[PlannedMove, ...]
    overrides: tuple[ConfigOverride, ...]


ClusterQuery = (
    ReadConfigs
    | CheckThrottle
    | ObserveMoves
    | CheckHealth
    | MeasureTraffic
    | RecordVerdicts
    | ReplanMoves
    | Verify
    | TakeLease
    | Wait
)
"""Instructions that leave the cluster as it is."""

ClusterChange = SetThrottle | RestoreThrottle | SubmitMoves | CancelMoves | ElectLeaders
"""Instructions that change the cluster."""

Instruction = ClusterQuery | ClusterChange
