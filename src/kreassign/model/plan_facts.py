"""What is known about a plan besides its replica lists: the values behind the facts file of a plan.

Kafka's reassignment JSON has room for nothing but target replica lists. The facts say what they were made from, why,
and what it costs to reach them; whoever executes the plan can check that the cluster is still the one it was made for.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from kreassign.model.load_basis import LoadBasis
from kreassign.model.partition import TopicPartition
from kreassign.model.plan import Plan
from kreassign.model.plan_json import format_plan

ID_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a replica moves or a leader changes.

    `goal` is the name of a goal, or one of `drain`, `factor`, `racks`, `repair`, `demote`, `log-dirs`, `together`
    (only the changes as a whole relieve something), or `capacity:` and a resource (the task does not demand the change,
    but without it the source would exceed its limit of that). `amount` in `unit` is what would miss the bands again, or
    break the rule, if this change alone were taken back. `source` is the broker relieved, `destination` the one that
    takes over; None where there is none. `leading` tells a change of leader from a copy.
    """

    goal: str
    source: int | None = None
    destination: int | None = None
    amount: float = 0.0
    unit: str = ""
    leading: bool = False

    @property
    def limit(self) -> str:
        """The resource of which a broker would exceed its limit without; empty for other reasons."""
        kind, _, resource = self.goal.partition(":")
        return resource if kind == "capacity" else ""


@dataclass(frozen=True, slots=True)
class PlannedPartition:
    """One partition of the plan as it was when the plan was made; `log_dirs` is empty where they were not known."""

    topic_partition: TopicPartition
    replicas: tuple[int, ...]
    size_bytes: int
    log_dirs: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedBroker:
    """One broker: its load per goal before and after, what it receives and sends, and its fullest moment."""

    broker: int
    before: Mapping[str, float]
    after: Mapping[str, float]
    bytes_in: int = 0
    bytes_out: int = 0
    peak_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Prediction:
    """How long the plan takes at a rate that each broker may send and receive: no order of its copies is faster.

    `longest_move_s` is the longest single copy; infinite if its partition grows faster than it is copied. `least_s` is
    what any plan takes that brings about as much, 0 where that is not known.
    """

    rate_bytes_per_s: float
    seconds: float
    longest_move_s: float
    least_s: float = 0.0

    @property
    def gap(self) -> float | None:
        """By what fraction the time exceeds the bound; None where the bound is 0, or it never ends."""
        return self.seconds / self.least_s - 1 if self.least_s and math.isfinite(self.seconds) else None


@dataclass(frozen=True, slots=True)
class Totals:
    """What the plan costs. `moves` are replicas copied to another broker; `least_bytes` is the lower bound.

    `binding` says what the bound counts: copies that are `forced`, the `excess` that brokers cannot keep, or the `lack`
    of others that has to arrive there; empty where it is 0.
    """

    moved_bytes: int
    moves: int
    leader_changes: int
    log_dir_bytes: int = 0
    log_dir_moves: int = 0
    least_bytes: int = 0
    binding: str = ""

    @property
    def gap(self) -> float | None:
        """By what fraction the copied bytes exceed the bound; None where the bound is 0."""
        return self.moved_bytes / self.least_bytes - 1 if self.least_bytes else None


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """The facts file of a plan. `remaining` says in sentences what the plan leaves undone.

    `topic_ids` are those of its topics, by name, as far as the cluster reported them; a recreated topic has another.
    `loads` is what its loads rest on; None where nobody said.
    """

    plan_id: str
    input_hash: str
    task: str
    totals: Totals
    cluster_id: str | None = None
    snapshot_id: str | None = None
    partitions: tuple[PlannedPartition, ...] = ()
    brokers: tuple[PlannedBroker, ...] = ()
    prediction: Prediction | None = None
    remaining: tuple[str, ...] = field(default=())
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    loads: LoadBasis | None = None

    @property
    def expected(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The replica list that each partition of the plan must still have when the plan is begun."""
        return {fact.topic_partition: fact.replicas for fact in self.partitions}


def plan_id(plan: Plan) -> str:
    """The same for the same assignments, whatever file they come from: of the SHA-256 of the plan as written."""
    return hashlib.sha256(format_plan(plan).encode()).hexdigest()[:ID_LENGTH]
