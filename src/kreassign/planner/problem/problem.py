"""The problem that the planner solves: brokers, log directories, partitions, goals and limits as frozen arrays.

A million replicas are arrays, not a million objects. Everything is checked when built.
Shapes: N brokers, D log directories, P partitions, S present replicas, R bands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.model.closures import LEADS_NOTHING, Closure
from kreassign.model.cluster import named_brokers
from kreassign.model.placement import usual_factors
from kreassign.model.text import ESTIMATED
from kreassign.planner.arrays import NOWHERE, BoolArray, BytesArray, FloatArray, IndexArray, IntArray, pairs, sums
from kreassign.planner.goals import CPU, GOALS, OPTIONAL_GOALS, Goal, goal_named, is_goal
from kreassign.planner.problem.holds import Hold

# Brokers, log directories, partitions, and the assignment.

_Values = TypeVar("_Values", BoolArray, IntArray, FloatArray)


@dataclass(frozen=True, slots=True, eq=False)
class Brokers:
    """N brokers, by ascending id; every array has shape (N,).

    `racks` are indices into `rack_names`, or NOWHERE. Brokers that are not live or `must_empty` end up without replicas
    and neither receive nor lead. `may_receive` and `may_lead` are False for brokers excluded from it. `closures` has a
    `Closure` for each: a broker with any receives nothing, one in maintenance is not given leadership, and with a
    binding one no changed list may name it.
    `capacity` is a hard limit per goal name, infinite for none; `shares` is each broker's part of the total relative to
    the others, per goal name, unless the capacities decide it.
    """

    ids: IntArray
    racks: IntArray
    rack_names: tuple[str, ...]
    is_live: BoolArray
    may_receive: BoolArray
    may_lead: BoolArray
    must_empty: BoolArray
    closures: IntArray
    broker_sets: IntArray
    capacity: Mapping[str, FloatArray]
    shares: Mapping[str, FloatArray]

    def __post_init__(self) -> None:
        if not len(self.ids):
            raise InputError("there is no broker to plan for")
        if len(np.unique(self.ids)) != len(self.ids):
            repeated = sorted({int(one) for one in self.ids if (self.ids == one).sum() > 1})
            raise InputError(f"given more than once: {named_brokers(repeated)}")

    def __len__(self) -> int:
        return len(self.ids)

    def extended(self, ids: Sequence[int], racks: Sequence[int], *, are_open: bool) -> Brokers:
        """Add brokers without replicas: open ones, or ones to be emptied.

        Open ones are like the median of the open ones that stay; of limits, those count that are known.
        """
        count, like = len(ids), self.staying & (self.closures == Closure.NONE)

        def joined(values: _Values, more: object) -> _Values:
            return np.append(values, np.full(count, more, values.dtype))

        def usual(values: FloatArray, chosen: BoolArray, otherwise: float) -> FloatArray:
            # Limits may be whole numbers: infinity needs floats.
            more = np.median(values[chosen]) if are_open and chosen.any() else otherwise
            return joined(values.astype(np.float64), more)

        return Brokers(
            ids=np.append(self.ids, np.array(ids, np.int32)),
            racks=np.append(self.racks, np.array(racks, np.int32)),
            rack_names=self.rack_names,
            is_live=joined(self.is_live, more=True),
            may_receive=joined(self.may_receive, are_open),
            may_lead=joined(self.may_lead, are_open),
            must_empty=joined(self.must_empty, not are_open),
            closures=joined(self.closures, Closure.NONE),
            broker_sets=joined(self.broker_sets, NOWHERE),
            capacity={
                name: usual(limits, like & np.isfinite(limits), np.inf) for name, limits in self.capacity.items()
            },
            shares={name: usual(shares, like, 0.0) for name, shares in self.shares.items()},
        )

    @property
    def staying(self) -> BoolArray:
        """Mask of brokers that may hold replicas in the end, (N,)."""
        return self.is_live & ~self.must_empty

    @property
    def receiving(self) -> BoolArray:
        """Mask of brokers that may receive copies, (N,)."""
        result: BoolArray = self.staying & self.may_receive & (self.closures == Closure.NONE)
        return result

    @property
    def may_get_leaders(self) -> BoolArray:
        """Mask of brokers to which a plan may give leadership, (N,); others may keep what no other replica can lead."""
        result: BoolArray = self.may_lead & ((self.closures & LEADS_NOTHING) == 0)
        return result

    @property
    def may_be_named(self) -> BoolArray:
        """Mask of brokers that a changed list may name, (N,)."""
        free: BoolArray = (self.closures & Closure.BINDING) == 0
        return free

    def capacity_of(self, goal: str) -> FloatArray:
        """Hard limit of every broker, (N,), infinite where there is none."""
        return self.capacity.get(goal, np.full(len(self), np.inf))

    def weights(self, goal: str) -> FloatArray:
        """Each broker's target part of the total, (N,); sums to 1. Follows the capacities if all brokers have one."""
        limits = self.capacity_of(goal)
        usable = self.staying
        if goal in self.shares:
            weights = np.where(usable, self.shares[goal], 0.0)
        elif np.isfinite(limits[usable]).all():
            weights = np.where(usable, limits, 0.0)
        else:
            weights = usable.astype(float)
        total = weights.sum()
        return weights / total if total else weights


@dataclass(frozen=True, slots=True, eq=False)
class LogDirs:
    """D log directories, by broker and path; every array has shape (D,). `brokers` are broker indices."""

    brokers: IntArray
    paths: tuple[str, ...]
    capacity_bytes: FloatArray
    may_receive: BoolArray
    must_empty: BoolArray

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(frozen=True, slots=True, eq=False)
class Partitions:
    """P partitions with S replicas, sorted by topic and number.

    The replicas of partition p are `replicas[offsets[p]:offsets[p + 1]]`, as indices into the brokers, in the order of
    the replica list: the first one is the preferred leader. `log_dirs` (S) are indices into the log directories or
    NOWHERE. `topics` (P) are indices into `topic_names`, `broker_sets` (P) into the problem's sets or NOWHERE.
    `holds` (P) has a `Hold` for each: a partition with any but NONE keeps its replicas, their order and its leader.
    `is_lost` (S) marks copies that are gone from a live broker, `in_sync` (S) those in sync; None if that is not known.
    Loads are per copy; see `PartitionFacts`.
    `follower_reads` (P) is what each follower sends to consumers; None if only leaders do. `coordinated` (P) is the
    number of groups and transactional ids that the leader coordinates, None if not given. `future_log_dirs` (S) is the
    log directory to which the broker is moving its copy, NOWHERE for none; None if none moves or that is not known.
    """

    topic_names: tuple[str, ...]
    topics: IntArray
    numbers: IntArray
    offsets: IntArray
    replicas: IntArray
    log_dirs: IntArray
    size_bytes: BytesArray
    write_bytes_per_s: FloatArray
    read_bytes_per_s: FloatArray
    leader_cpu: FloatArray
    follower_cpu: FloatArray
    wanted_factors: IntArray
    holds: IntArray
    broker_sets: IntArray
    is_lost: BoolArray
    follower_reads: FloatArray | None = None
    coordinated: FloatArray | None = None
    in_sync: BoolArray | None = None
    future_log_dirs: IntArray | None = None

    def __post_init__(self) -> None:
        expected = dict.fromkeys(_PER_PARTITION, len(self.topics)) | dict.fromkeys(_PER_REPLICA, len(self.replicas))
        known = (name for name in ("in_sync", "future_log_dirs") if getattr(self, name) is not None)
        expected |= dict.fromkeys(known, len(self.replicas))
        for name, length in expected.items():
            if (given := len(getattr(self, name))) != length:
                raise InputError(f"partitions: {name} has {given} values, expected {length}")
        if len(self.offsets) != len(self) + 1 or self.offsets[-1] != len(self.replicas):
            raise InputError("partitions: offsets do not fit the replicas")

    def __len__(self) -> int:
        return len(self.topics)

    @property
    def may_move(self) -> BoolArray:
        """Mask of the partitions that nothing holds, (P,)."""
        free: BoolArray = self.holds == Hold.NONE
        return free

    def held(self, chosen: BoolArray, why: Hold) -> Partitions:
        """Hold the chosen partitions (P,) for this reason too."""
        return replace(self, holds=self.holds | np.where(chosen, np.int32(why), np.int32(0)))

    def holds_of(self, chosen: Iterable[int]) -> list[tuple[TopicPartition, Hold]]:
        """Each of these partitions by name, with what holds it."""
        return [(self.name(one), Hold(int(self.holds[one]))) for one in chosen]

    @property
    def follower_read_bytes_per_s(self) -> FloatArray:
        """Bytes/s that each follower sends to consumers, (P,)."""
        return np.zeros(len(self)) if self.follower_reads is None else self.follower_reads

    @property
    def coordinated_count(self) -> FloatArray:
        """Number of groups and transactional ids that the leader coordinates, (P,)."""
        return np.zeros(len(self)) if self.coordinated is None else self.coordinated

    @property
    def factors(self) -> IntArray:
        """Present number of replicas of each partition, (P,)."""
        return np.diff(self.offsets).astype(np.int32)

    @property
    def usual_factors(self) -> IntArray:
        """Usual replication factor of each partition's topic (`model/placement.py`), (P,); 0 where it has none."""
        rows = np.stack([self.topics, self.factors, (self.holds & Hold.MOVING) != 0], axis=1)
        kinds, counts = np.unique(rows, axis=0, return_counts=True)
        seen: dict[tuple[int, int, int], int] = dict(zip(map(tuple, kinds.tolist()), counts.tolist(), strict=True))
        usual = usual_factors(seen)
        return np.array([usual.get(topic, 0) for topic in range(len(self.topic_names))], np.int32)[self.topics]

    @property
    def owners(self) -> IntArray:
        """Index of the partition of each replica, shape (S,)."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.factors)

    @property
    def lags(self) -> BoolArray:
        """Mask of replicas known to be out of sync, (S,)."""
        return np.zeros(len(self.replicas), bool) if self.in_sync is None else ~self.in_sync

    def within_reach(self, is_live: BoolArray) -> BoolArray:
        """Mask of the partitions with at least one copy to replicate from, shape (P,)."""
        usable = is_live[self.replicas] & ~self.is_lost & ~self.lags
        return np.bincount(self.owners[usable], minlength=len(self)) > 0

    def name(self, partition: int) -> TopicPartition:
        """Topic and number of the partition with this index."""
        return TopicPartition(self.topic_names[self.topics[partition]], int(self.numbers[partition]))

    def span(self, partition: int) -> slice:
        """Places of one partition's replicas."""
        return slice(int(self.offsets[partition]), int(self.offsets[partition + 1]))

    def list_of(self, partition: int) -> IntArray:
        """Broker indices of one partition's replicas, preferred leader first."""
        return self.replicas[self.span(partition)]


_PER_PARTITION = (
    "numbers", "size_bytes", "write_bytes_per_s", "read_bytes_per_s", "leader_cpu", "follower_cpu", "wanted_factors",
    "holds", "broker_sets",
)  # fmt: skip
_PER_REPLICA = ("log_dirs", "is_lost")


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """Target of all replicas: the same shape as in `Partitions`, with factors of its own.

    `replicas` are broker indices, the wanted leader first in each list; `log_dirs` indices of log directories, or
    NOWHERE where the broker chooses.
    """

    offsets: IntArray
    replicas: IntArray
    log_dirs: IntArray

    @classmethod
    def current(cls, partitions: Partitions) -> Assignment:
        """The assignment that changes nothing."""
        return cls(partitions.offsets, partitions.replicas, partitions.log_dirs)

    @property
    def owners(self) -> IntArray:
        """Index of the partition of each replica, as in `Partitions`."""
        factors = np.diff(self.offsets)
        return np.repeat(np.arange(len(factors), dtype=np.int32), factors)

    def list_of(self, partition: int) -> IntArray:
        """Replica list of one partition, as broker indices."""
        return self.replicas[self.offsets[partition] : self.offsets[partition + 1]]

    def lists(self) -> list[list[int]]:
        """Replica list of every partition, as broker indices."""
        replicas, offsets = self.replicas.tolist(), self.offsets.tolist()
        return [replicas[start:end] for start, end in pairwise(offsets)]


# Bands, budget and rules of a plan, and the problem as a whole.

DEFAULT_TOLERANCE = 0.10
ROUNDING = 1e-6  # for counts: tolerance of floating point around a whole number


class RackRule(Enum):
    """Spread of a partition's replicas over racks; a broker without a rack counts as a rack of its own."""

    STRICT = "never two in one rack"
    EVEN = "as evenly as the racks and the number of their brokers allow"
    NONE = "racks do not matter"


WIDEST_TOLERANCE = 100.0
"""Beyond it nothing would be different: a band that wide holds a hundred times a broker's share."""

LEAST_WEIGHT, MOST_WEIGHT = 1e-3, 1e6
"""Beyond them the search would take what a goal gains for rounding."""


@dataclass(frozen=True, slots=True)
class Band:
    """Evenness of one resource: within `tolerance` (0.10 for ±10 %) of each broker's share of the total.

    None means that only the capacity limits it. `weight` is the cost of missing the band, per unit of the mean,
    relative to other goals, if not all can be met. `is_named` is False for a limit that no goal names, `of_log_dirs`
    marks one for partitions of which the log directories of a broker have no room.
    """

    goal: Goal
    tolerance: float | None = DEFAULT_TOLERANCE
    weight: float = 1.0
    is_named: bool = True
    of_log_dirs: bool = False

    def __post_init__(self) -> None:
        if self.tolerance is not None and not 0 <= self.tolerance <= WIDEST_TOLERANCE:
            raise InputError(
                f"goal {self.goal.name}: a tolerance of {self.tolerance} is not from 0 to {WIDEST_TOLERANCE}; "
                "`any` sets no band"
            )
        if not LEAST_WEIGHT <= self.weight <= MOST_WEIGHT:
            raise InputError(
                f"goal {self.goal.name}: a weight of {self.weight:g} is not from {LEAST_WEIGHT:g} to "
                f"{MOST_WEIGHT:,.0f}; leave the goal out, or use `any` as its tolerance"
            )


DEFAULT_BANDS = tuple(Band(goal) for goal in GOALS)


@dataclass(frozen=True, slots=True)
class Budget:
    """Maximum cost of a plan; None means no limit. Forced moves (drains, factors, repairs) come first.

    `bytes_in_per_broker` and `bytes_out_per_broker` limit what one broker receives, and sends as leader: a predicted
    time, times a rate. With that rate r as `rate_bytes_per_s`, a copy of a partition written at rate w counts r/(r-w)
    times, because it has to catch up.
    """

    moved_bytes: int | None = None
    moves: int | None = None
    leader_changes: int | None = None
    bytes_in_per_broker: int | None = None
    bytes_out_per_broker: int | None = None
    rate_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """Permitted and required changes of a plan.

    `between_brokers`, `leaders` and `between_log_dirs` are the kinds of change allowed. With `repair_racks` present
    violations of the rack rule are repaired; without, no partition gets worse. `least_topic_leaders` is the least
    number of partitions of a topic that every broker has to lead, `leader_racks` the preferred racks of the leaders of
    a topic, most preferred first; no replica moves for it. `topic_spread` is the tolerance of the spread of every
    topic's replicas, after all bands; None to ignore it. `topic_leaders` is the same for the leaders of every topic.
    `consumer_racks` has by topic the part of its reads from each rack, if consumers fetch from followers. With
    `only_forced` bands decide only the targets of forced moves: any other replica keeps its position and log directory,
    and a leader that may stay leads. Others move only if a hard limit would be exceeded. With `failover` the order of
    replicas, and what the bands leave free, prepare for the loss of one more broker or rack: it is the tolerance of the
    survivors' bands, infinite if only capacities count, None if it is no goal. With `is_given` the lists are those of
    the task, and nothing is searched. With `repair_sets` replicas outside of the broker set of their topic leave their
    broker for one of it. With `leaves_rest` a partition whose forced changes find no place stays as it is,
    and keeps no other from its own.
    """

    racks: RackRule = RackRule.EVEN
    repair_racks: bool = False
    between_brokers: bool = True
    leaders: bool = True
    between_log_dirs: bool = False
    least_topic_leaders: Mapping[str, int] = field(default_factory=dict)
    leader_racks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    consumer_racks: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    topic_spread: float | None = None
    topic_leaders: float | None = None
    only_forced: bool = False
    failover: float | None = None
    is_given: bool = False
    repair_sets: bool = False
    leaves_rest: bool = False

    @property
    def may_change_leaders(self) -> bool:
        """True if leaders may change where no rule forces it."""
        return self.leaders and not self.only_forced and not self.is_given


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Bounds per broker and band, shape (N, R): `low` to `high` is the band, `capacity` the hard limit."""

    low: FloatArray
    high: FloatArray
    capacity: FloatArray
    mean: FloatArray


ANY_RACKS = 1 << 15
"""In `RackLimits.full`: more than any cluster has racks."""


class RackLimits(NamedTuple):
    """Per partition, (P,): `most` replicas in a rack, and at most `full` racks with so many."""

    most: IntArray
    full: IntArray

    def of(self, partition: int, held: IntArray | IndexArray, excess: int = 0) -> int:
        """Number of replicas below which a rack may take one more of the partition, of which racks hold `held`, (R,).

        `excess` is how many replicas more than allowed the racks may share.
        """
        most = int(self.most[partition])
        return most + excess - int((held >= most).sum() >= self.full[partition] + excess)


@dataclass(frozen=True, slots=True, eq=False)
class Gone:
    """Unusable parts that a plan leaves in place: `brokers` (N) are down, `replicas` (S) cannot lead."""

    brokers: BoolArray
    replicas: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Brokers, partitions, goals and rules. `cpu_unit` is the unit of measured CPU."""

    brokers: Brokers
    partitions: Partitions
    log_dirs: LogDirs | None = None
    bands: tuple[Band, ...] = DEFAULT_BANDS
    rules: Rules = field(default_factory=Rules)
    budget: Budget = field(default_factory=Budget)
    gone: Gone | None = None
    cpu_unit: str = ESTIMATED
    without_room: BoolArray | None = None  # (S,) a search found no room for it in another directory of its broker

    def __post_init__(self) -> None:
        names = [band.goal.name for band in self.bands]
        if repeated := {name for name in names if names.count(name) > 1}:
            raise InputError(f"given more than once: goal {', '.join(sorted(repeated))}")
        strangers = (self.partitions.replicas < 0) | (self.partitions.replicas >= len(self.brokers))
        if strangers.any():
            name = self.partitions.name(int(self.partitions.owners[np.argmax(strangers)]))
            raise InputError(f"partition {name} has a replica on a broker that is not among the brokers")

    def with_limits(self) -> Problem:
        """Add a band without a tolerance for every limit that no goal names: the search keeps the limits of bands."""
        named = {band.goal.name for band in self.bands}
        limited = (name for name, limits in self.brokers.capacity.items() if np.isfinite(limits).any())
        goals = (goal_named(name) for name in limited if name not in named and is_goal(name))
        more = [Band(one, None, is_named=False) for one in goals if self._has_load(one)]
        return replace(self, bands=(*self.bands, *more)) if more else self

    def _has_load(self, goal: Goal) -> bool:
        return bool(goal.leader(self.partitions).any() or goal.follower(self.partitions).any())

    @property
    def may_leave(self) -> bool:
        """True if forced changes may stay undone: those beyond a budget, or those without a place."""
        return self.rules.leaves_rest or self.budget != Budget()

    @property
    def unnamed(self) -> BoolArray:
        """Mask of present replicas on brokers that no changed list may name, of partitions that may change, (S,)."""
        now = self.partitions
        result: BoolArray = ~self.brokers.may_be_named[now.replicas] & now.may_move[now.owners]
        return result

    @property
    def evicted(self) -> BoolArray:
        """Mask of present replicas in a directory to be drained for which no other of their broker has room, (S,)."""
        now, dirs = self.partitions, self.log_dirs
        if dirs is None or not (self.rules.between_brokers and self.rules.between_log_dirs):
            return np.zeros(len(now.replicas), bool)
        largest = np.full(len(self.brokers), -1.0)
        np.maximum.at(largest, dirs.brokers, np.where(dirs.may_receive & ~dirs.must_empty, dirs.capacity_bytes, -1.0))
        drained = (now.log_dirs != NOWHERE) & dirs.must_empty[now.log_dirs]
        moves = (now.may_move & now.within_reach(self.brokers.is_live))[now.owners]
        found: BoolArray = drained & moves & (largest[now.replicas] < now.size_bytes[now.owners])
        return found if self.without_room is None else found | self.without_room

    @property
    def leaving(self) -> BoolArray:
        """Mask of present replicas that no plan keeps, (S,): drained, dead, lost, or on a broker not to be named."""
        now = self.partitions
        result: BoolArray = ~self.brokers.staying[now.replicas] | now.is_lost | self.unnamed | self.evicted
        return result

    @property
    def strays(self) -> BoolArray:
        """Mask of present replicas on a broker that is not of the broker set of their partition, (S,)."""
        now = self.partitions
        wanted = now.broker_sets[now.owners]
        result: BoolArray = (wanted != NOWHERE) & (self.brokers.broker_sets[now.replicas] != wanted)
        return result

    @property
    def present_leaders(self) -> IntArray:
        """Broker that leads each partition now, (P,): the first usable one of its list, else the first.

        It sends what is copied. NOWHERE for partitions without replicas yet.
        """
        now, leaders = self.partitions, np.full(len(self.partitions), NOWHERE, np.int32)
        usable = self.brokers.is_live[now.replicas] & ~now.is_lost
        if self.gone is not None:
            usable &= ~self.gone.replicas
        placed = now.factors > 0
        heads = now.offsets[:-1][placed]
        first = np.minimum.reduceat(np.where(usable, np.arange(len(usable)), len(usable)), heads)
        leaders[placed] = now.replicas[np.where(first == len(usable), heads, first)]
        return leaders

    def unit_of(self, goal: str) -> str:
        """Unit of loads and limits of this goal; empty if its name is the unit, as for `leaders`."""
        if goal == CPU.name:
            return self.cpu_unit
        known = (*(band.goal for band in self.bands), *GOALS, *OPTIONAL_GOALS)
        return next((one.unit for one in known if one.name == goal), "")

    @property
    def totals(self) -> FloatArray:
        """Load of the whole cluster per band, with the wanted replication factors; shape (R,)."""
        followers = self.partitions.wanted_factors - 1.0
        return np.array(
            [
                band.goal.leader(self.partitions).sum() + (band.goal.follower(self.partitions) * followers).sum()
                for band in self.bands
            ]
        )

    @property
    def present_loads(self) -> FloatArray:
        """Present load of every broker, by band; shape (N, R)."""
        now = self.partitions
        leads = np.zeros(len(now.replicas), bool)
        leads[now.offsets[:-1][now.factors > 0]] = True
        loads = np.zeros((len(self.brokers), len(self.bands)))
        for column, band in enumerate(self.bands):
            brought = np.where(leads, band.goal.leader(now)[now.owners], band.goal.follower(now)[now.owners])
            loads[:, column] = np.bincount(now.replicas, brought, len(self.brokers))
        return loads

    @property
    def limits(self) -> Bounds:
        """Bands and capacities as numbers per broker.

        Bands of counts are whole numbers: those inside the band, and always the two next to the mean.
        """
        count, bands = len(self.brokers), self.bands
        mean = np.zeros((count, len(bands)))
        capacity = np.full((count, len(bands)), np.inf)
        tolerance = np.array([np.inf if band.tolerance is None else band.tolerance for band in bands])
        for column, (band, total) in enumerate(zip(bands, self.totals, strict=True)):
            mean[:, column] = total * self.shares_of(band.goal)
            capacity[:, column] = self.brokers.capacity_of(band.goal.name)
        with np.errstate(invalid="ignore"):
            low = np.nan_to_num(np.maximum(0.0, mean * (1 - tolerance)), nan=0.0)
            high = np.where(
                np.isinf(tolerance)[None, :] & self.brokers.staying[:, None], np.inf, mean * (1 + tolerance)
            )
        high = np.nan_to_num(high, nan=0.0, posinf=np.inf)
        whole = np.array([band.goal.counts for band in bands], bool)
        low = np.where(whole, np.minimum(np.ceil(low - ROUNDING), np.floor(mean + ROUNDING)), low)
        high = np.where(whole, np.maximum(np.floor(high + ROUNDING), np.ceil(mean - ROUNDING)), high)
        high = np.minimum(high, capacity)
        return Bounds(np.minimum(low, high), high, capacity, mean)

    @property
    def failover_bands(self) -> tuple[Band, ...]:
        """Bands of loads that move with leading: the problem's, or if it has none all known ones."""
        known = [band for band in self.bands if band.is_named and self._depends_on_leading(band.goal)]
        return tuple(known or [Band(goal) for goal in GOALS if self._depends_on_leading(goal)])

    def _depends_on_leading(self, goal: Goal) -> bool:
        return bool((goal.leader(self.partitions) != goal.follower(self.partitions)).any())

    @property
    def aimed_goals(self) -> frozenset[str]:
        """Goals whose bands the task tries to meet: none if it is given or makes forced changes only."""
        rules = self.rules
        if rules.is_given or rules.only_forced or not (rules.between_brokers or rules.leaders):
            return frozenset()
        goals = [band.goal for band in self.bands]
        return frozenset(one.name for one in goals if rules.between_brokers or self._depends_on_leading(one))

    @property
    def rack_of_broker(self) -> IntArray:
        """Rack index of each broker, (N,); unique where the broker has no rack or racks do not matter."""
        own = len(self.brokers.rack_names) + np.arange(len(self.brokers), dtype=np.int32)
        if self.rules.racks is RackRule.NONE:
            return own
        return np.where(self.brokers.racks == NOWHERE, own, self.brokers.racks).astype(np.int32)

    @property
    def rack_limits(self) -> RackLimits:
        """Most replicas of each partition that may share a rack, and in how many racks there may be so many.

        Racks fill level by level, each up to the number of its brokers that may take a replica of the partition or
        keep theirs: with `most` replicas in at most `full` racks, every other one has one less, or all that it can.
        """
        wanted = self.partitions.wanted_factors
        limits = RackLimits(np.ones_like(wanted), np.full_like(wanted, ANY_RACKS))
        if self.rules.racks is RackRule.STRICT or not len(wanted):
            return limits
        room = self._room_in_racks(np.arange(int(wanted.max()) + 1))
        enough = room >= wanted[:, None]
        is_met = enough.any(axis=1)
        limits.most[:] = np.maximum(1, np.where(is_met, enough.argmax(axis=1), wanted))
        below = room[np.arange(len(wanted)), limits.most - 1]
        limits.full[:] = np.where(is_met & (limits.most > 1), wanted - below, ANY_RACKS)
        return limits

    def _room_in_racks(self, levels: IndexArray) -> IndexArray:
        """Replicas of each partition that racks can hold with at most so many in each, (P, levels)."""
        now, brokers = self.partitions, self.brokers
        racks = np.unique(self.rack_of_broker, return_inverse=True)[1]
        width = int(racks.max()) + 1
        room = np.zeros((len(now), len(levels)), np.int64)
        # A broker that receives counts unless it loses its copy for good, another one only where it keeps a copy.
        keeps = (brokers.staying & ~brokers.receiving)[now.replicas] & ~self.leaving
        changes = keeps.astype(np.int64) - (brokers.receiving[now.replicas] & self.leaving)
        for broker_set in np.unique(now.broker_sets).tolist():
            members = (broker_set == NOWHERE) | (brokers.broker_sets == broker_set)
            sizes = np.bincount(racks[members & brokers.receiving], minlength=width)
            room[now.broker_sets == broker_set] = np.minimum(sizes[:, None], levels).sum(axis=0)
            chosen = np.flatnonzero((changes != 0) & (now.broker_sets == broker_set)[now.owners])
            chosen = chosen[np.broadcast_to(members, len(brokers))[now.replicas[chosen]]]
            keys = pairs(now.owners[chosen], racks[now.replicas[chosen]], width)
            keys, rows = np.unique(keys, return_inverse=True)
            before = sizes[keys % width][:, None]
            after = before + np.bincount(rows, changes[chosen], len(keys)).astype(np.int64)[:, None]
            np.add.at(room, keys // width, np.minimum(after, levels) - np.minimum(before, levels))
        return room

    def shares_of(self, goal: Goal) -> FloatArray:
        """Each broker's target part of the total, (N,).

        Of a load that only leaders have, brokers that get no leaders keep theirs, and the others share the rest.
        """
        shares, now, loads = self.brokers.weights(goal.name), self.partitions, goal.leader(self.partitions)
        fixed = self.gets_no_leaders
        if goal.follower(now).any() or not fixed.any() or not loads.sum():
            return shares
        led = self.kept_leaders
        kept = sums(now.replicas[now.offsets[:-1][led]], loads[led], len(self.brokers)) / loads.sum()
        rest = np.where(fixed, 0.0, shares)
        return np.asarray(kept + rest / (rest.sum() or 1.0) * max(0.0, 1.0 - kept.sum()))

    @property
    def gets_no_leaders(self) -> BoolArray:
        """Mask of brokers that hold replicas in the end, and may not be given leadership, (N,)."""
        brokers = self.brokers
        fixed: BoolArray = brokers.staying & ~(brokers.may_get_leaders & brokers.may_be_named)
        return fixed if self.gone is None else fixed | self.gone.brokers

    @property
    def kept_leaders(self) -> BoolArray:
        """Mask of partitions that a broker goes on leading although it may not be given any, (P,)."""
        now, brokers, rules = self.partitions, self.brokers, self.rules
        placed = np.flatnonzero(now.factors)
        heads = now.offsets[:-1][placed]
        leaders = now.replicas[heads]
        heirs = (brokers.staying & brokers.may_get_leaders)[now.replicas]
        has_heir = np.bincount(now.owners[heirs], minlength=len(now))[placed] > 0
        stays = ~has_heir & (not rules.between_brokers)
        if not rules.may_change_leaders:  # then maintenance takes no partition from the broker
            stays |= brokers.may_lead[leaders] & ~brokers.may_get_leaders[leaders]
        kept = np.zeros(len(now), bool)
        kept[placed] = self.gets_no_leaders[leaders] & (~now.may_move[placed] | (stays & ~self.leaving[heads]))
        return kept
