"""Instructions of a run: what to do next. `runner.py` executes them; each ends in one event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kreassign.executor.events import Operator, PlannedMove
from kreassign.executor.guards import Health, Verdict
from kreassign.executor.throttle_ledger import ConfigKey, ConfigOverride
from kreassign.executor.throttle_rates import ThrottleRates
from kreassign.model import TopicPartition, TopicPartitionReplica


@dataclass(frozen=True, slots=True)
class ReadConfigs:
    """Read settings, and if it `asks_for_others`, whether they move partitions. Ends in ConfigsRead or CallFailed."""

    keys: tuple[ConfigKey, ...]
    asks_for_others: bool = False


@dataclass(frozen=True, slots=True)
class SetThrottle:
    """Give settings our values, after writing ThrottleIntended. Ends in ThrottleSet."""

    overrides: tuple[ConfigOverride, ...]


@dataclass(frozen=True, slots=True)
class RestoreThrottle:
    """Give settings their old values. Ends in ThrottleRestored.

    Of the `shared` lists only our own entries are taken out, for others have entries there, too.
    """

    overrides: tuple[ConfigOverride, ...]
    shared: tuple[ConfigKey, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckThrottle:
    """See whether settings are still as they were set. Ends in ThrottleChecked or CallFailed.

    Topics that do not have these ids any more have lost their settings: nobody changed them.
    """

    overrides: tuple[ConfigOverride, ...]
    topic_ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubmitMoves:
    """Start moves, after writing SubmissionIntended. Ends in MovesSubmitted or CallFailed.

    Directories are named first: a broker remembers them for copies that it does not have yet. Only moves that are
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
class ObserveMoves:
    """See how far moves are. Ends in MovesObserved or CallFailed."""

    moves: tuple[PlannedMove, ...]


@dataclass(frozen=True, slots=True)
class CheckHealth:
    """See how the cluster is, and whether these settings are still ours. Ends in HealthObserved or CallFailed.

    `before` is what the first inspection of the run found. The run goes on without the `lost` brokers: that replicas
    there are out of sync is known. Moves of one that `allows_producer_outage` may have producers refused.
    """

    moves: tuple[PlannedMove, ...]
    throttle: tuple[ConfigOverride, ...]
    before: Health | None = None
    lost: tuple[int, ...] = ()
    allows_producer_outage: bool = False


@dataclass(frozen=True, slots=True)
class MeasureTraffic:
    """Measure what brokers send and receive, and what is written to these partitions. Ends in TrafficMeasured."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class RecordVerdicts:
    """Write down what the guards say. Ends in VerdictsRecorded."""

    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class ReplanMoves:
    """Find other destinations for moves to brokers that are `lost`. Ends in MovesReplanned or CallFailed.

    Those of the `moves` that are `in_flight` are being made by this run. `plan` is every move that was made or still
    shall be, these among them; `writes` are bytes per second that producers write to their partitions. `known` are
    settings of which the run knows what they were: those that it changes, and those that it found and was to deal with.
    """

    moves: tuple[PlannedMove, ...]
    lost: tuple[int, ...]
    in_flight: frozenset[TopicPartition]
    plan: tuple[PlannedMove, ...]
    rates: ThrottleRates
    known: frozenset[ConfigKey]
    disk_reserve: float
    writes: Mapping[TopicPartition, float] = field(default_factory=dict)
    operator: Operator | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Let the time between two polls pass. Ends in TimePassed, or in StopRequested."""


@dataclass(frozen=True, slots=True)
class TakeLease:
    """Try to become the only writer of the cluster again. Ends in LeaseTaken, LeaseRefused or LeaseForgone."""


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """Make the first replica of each partition its leader. Ends in LeadersElected or CallFailed.

    Topics that do not have these ids any more are left alone.
    """

    partitions: tuple[TopicPartition, ...]
    topic_ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verify:
    """Compare the cluster with the plan, and see whether settings are restored. Ends in Verified or CallFailed."""

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
"""Instructions that change it."""

Instruction = ClusterQuery | ClusterChange
