"""What a run knows at one moment: its phase, its moves, its debts. Changed only by the rows of the table."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kreassign.executor.guards import GuardName, Health, Reaction, Verdict
from kreassign.executor.instructions import Instruction
from kreassign.executor.scheduling import NO_LIMITS, DiskBudget, Pace
from kreassign.executor.state.move import ACTIVE, IN_FLIGHT, MoveRecord
from kreassign.executor.state.move_index import MoveIndex
from kreassign.executor.state.speed import CopySpeed
from kreassign.executor.throttle.adaptive import BrokerTraffic
from kreassign.executor.throttle.ledger import ConfigKey, ConfigOverride
from kreassign.executor.throttle.rates import NO_THROTTLE, ThrottleRates
from kreassign.model import ConfigResource, TopicPartition

Instructions = tuple[Instruction, ...]


class Phase(StrEnum):
    """What a run is doing."""

    NEW = "new"
    PREPARING = "preparing"
    THROTTLING = "throttling"
    MOVING = "moving"
    ELECTING = "electing"
    RESTORING = "restoring"
    VERIFYING = "verifying"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    PAUSED = "paused"


ENDED = frozenset({Phase.DONE, Phase.CANCELLED, Phase.FAILED})
AT_REST = ENDED | {Phase.PAUSED}


class Ending(StrEnum):
    """How a run that was cancelled comes to its end."""

    FINISH = "finish"  # what is in flight goes on to its end; nothing else is started
    RECALL = "recall"  # what is in flight is cancelled (KIP-455)


@dataclass(slots=True)
class Execution:
    """One run. Only `machine.handle` changes it."""

    phase: Phase = Phase.NEW
    run_id: str = ""
    cluster_id: str = ""
    rates: ThrottleRates = NO_THROTTLE
    live_brokers: tuple[int, ...] = ()
    pace: Pace = NO_LIMITS
    speed: CopySpeed = field(default_factory=CopySpeed)
    outlook: tuple[str, ...] = ()
    """What the run waits for, and what its hours will not hold, as of the last look."""
    started_ms: int = 0
    ended_ms: int | None = None
    records: dict[TopicPartition, MoveRecord] = field(default_factory=dict)
    ledger: dict[ConfigKey, ConfigOverride] = field(default_factory=dict)
    """Every setting that this run changed and no one else touched."""
    pending_restores: dict[ConfigKey, ConfigOverride] = field(default_factory=dict)
    """Those that are not known to have their old value again."""
    problems: list[str] = field(default_factory=list)
    findings: tuple[str, ...] = ()
    is_stopping: bool = False
    is_abandoned: bool = False
    is_held: bool = False
    ending: Ending | None = None
    has_just_restored: bool = False
    before: dict[ConfigKey, str | None] = field(default_factory=dict)
    """What every setting of the throttle was before this run touched it."""
    is_unsure: bool = False
    """Whether settings that are owed may not have been written: the run was taken up."""
    awaited: frozenset[int] = frozenset()
    """Brokers that are down and whose rates are to be set when they are back."""
    unset: frozenset[ConfigResource] = frozenset()
    """Topics and brokers that may not have taken their last settings; they are told again."""
    unset_since_ms: int | None = None
    returned: frozenset[int] = frozenset()
    """Those of them that the last inspection showed live."""
    unrestored: tuple[str, ...] = ()
    """Why rates of brokers that are down are not restored, as of the last attempt."""
    index: MoveIndex = field(default_factory=MoveIndex)
    looking_at: tuple[TopicPartition, ...] = ()
    """Moves at which the last look was ordered."""
    looked_ms: int = 0
    most_done_bytes: float = 0.0
    """The most that a broker sent or received between two looks, lately."""
    checking: tuple[TopicPartition, ...] = ()
    """Moves that start if the look under way shows them as they were."""
    starting: tuple[TopicPartition, ...] = ()
    """Moves that are sent as soon as their replicas are listed."""
    to_elect: tuple[TopicPartition, ...] = ()
    """Partitions whose preferred leader is still to be asked for."""
    reactions: dict[GuardName, Reaction] = field(default_factory=dict)
    """What each guard that is on leads to."""
    verdicts: tuple[Verdict, ...] = ()
    """What guards say since the last inspection."""
    first_health: Health | None = None
    inspected_ms: int | None = None
    absent_since_ms: dict[int, int] = field(default_factory=dict)
    """Destinations that are not there, and since when."""
    room: DiskBudget = field(default_factory=lambda: DiskBudget({}))
    """What destinations may still be promised, as of the last inspection; nothing is known before the first one."""
    stuck: tuple[TopicPartition, ...] = ()
    """What waits for room on disks while nothing is in flight that could make some."""
    wants_rollback: bool = False
    recalling: tuple[TopicPartition, ...] = ()
    """Moves that are to be cancelled now."""
    waiting_since_ms: int | None = None
    traffic: dict[int, tuple[int, BrokerTraffic]] = field(default_factory=dict)
    """What each broker carries besides the moves, and when that was measured."""
    writes: dict[TopicPartition, float] = field(default_factory=dict)
    """Bytes per second that producers were last seen to write to partitions that are copied."""
    measured_ms: int | None = None
    last_request: int = 0
    """Number of the last request from another terminal that was taken in."""

    @property
    def active(self) -> tuple[MoveRecord, ...]:
        """Moves that are not at their end."""
        return tuple(record for record in self.records.values() if record.status in ACTIVE)

    @property
    def in_flight(self) -> tuple[MoveRecord, ...]:
        """Moves that were sent and are not finished: they go on whether we watch or not."""
        return tuple(record for record in self.index.in_flight.values() if record.status in IN_FLIGHT)

    @property
    def is_active(self) -> bool:
        """Whether any move is not at its end."""
        return any(record.status in ACTIVE for record in self.records.values())

    @property
    def residue(self) -> tuple[str, ...]:
        """A sentence per setting that is still ours."""
        return tuple(str(override) for override in self.pending_restores.values() if override.is_open)

    def note(self, problem: str) -> None:
        """Remember a problem once."""
        if problem not in self.problems:
            self.problems.append(problem)

    def is_patient(self, at_ms: int, limit_ms: int) -> bool:
        """Whether to try once more; the patience begins with the first failure."""
        self.waiting_since_ms = at_ms if self.waiting_since_ms is None else self.waiting_since_ms
        return at_ms - self.waiting_since_ms < limit_ms
