"""What the planner is given: frozen, checked when built, and free of anything that could be asked of a cluster."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kreassign.errors import InputError
from kreassign.model import TopicPartition

DEFAULT_BAND = 0.10


@dataclass(frozen=True, slots=True, order=True)
class PlanningBroker:
    """A broker that may hold replicas; `rack` is None where it names none."""

    id: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """A partition as it is now: its replicas in order, and what each copy weighs.

    `size_bytes` is what one copy takes. `may_move` is False for partitions that must stay as they are, such as
    those that are being moved already; they count for the load of their brokers all the same.
    """

    topic_partition: TopicPartition
    replicas: tuple[int, ...]
    size_bytes: int
    may_move: bool = True

    def __post_init__(self) -> None:
        if self.size_bytes < 0:
            raise InputError(f"partition {self.topic_partition} has a negative size: {self.size_bytes} bytes")
        if not self.replicas or len(set(self.replicas)) != len(self.replicas):
            raise InputError(f"partition {self.topic_partition} has no legal replica list: {list(self.replicas)}")


@dataclass(frozen=True, slots=True)
class ByteBand:
    """The loads that count as balanced, in bytes: from `low` to `high`, both included."""

    low: int
    high: int

    def above(self, load: int) -> int:
        """By how much a load exceeds the band."""
        return max(0, load - self.high)

    def below(self, load: int) -> int:
        """By how much a load falls short of the band."""
        return max(0, self.low - load)

    def missed(self, load: int) -> int:
        """How far a load is from the band."""
        return self.above(load) + self.below(load)


@dataclass(frozen=True, slots=True)
class ByteProblem:
    """Brokers, the partitions on them, and how even they shall be.

    `tolerance` is the half width of the band around the mean load, as a fraction: 0.10 for ±10 %. Partitions are
    kept sorted, so that the same cluster makes the same problem whatever order it was read in. Raises InputError
    when a broker or partition is given twice, or a replica is on a broker that is not there.
    """

    brokers: tuple[PlanningBroker, ...]
    partitions: tuple[PartitionLoad, ...]
    tolerance: float = DEFAULT_BAND

    def __post_init__(self) -> None:
        object.__setattr__(self, "brokers", tuple(sorted(self.brokers, key=lambda broker: broker.id)))
        object.__setattr__(self, "partitions", tuple(sorted(self.partitions, key=lambda load: load.topic_partition)))
        _refuse_repeated("broker", [broker.id for broker in self.brokers])
        _refuse_repeated("partition", [load.topic_partition for load in self.partitions])
        if not self.brokers:
            raise InputError("there is no broker to plan for")
        if not 0 <= self.tolerance < 1:
            raise InputError(f"a tolerance of {self.tolerance} is not between 0 and 1")
        self._refuse_strangers()

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Ids of the brokers, ascending."""
        return tuple(broker.id for broker in self.brokers)

    @property
    def current(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The replica list of every partition as it is now."""
        return {load.topic_partition: load.replicas for load in self.partitions}

    @property
    def racks(self) -> dict[int, str]:
        """The rack per broker; empty unless every broker names one, because half a rack map says nothing."""
        named = {broker.id: broker.rack for broker in self.brokers if broker.rack is not None}
        return named if len(named) == len(self.brokers) else {}

    @property
    def band(self) -> ByteBand:
        """The band around the mean load, rounded to the side of the brokers: whole bytes that fulfil it exactly."""
        total = sum(load.size_bytes * len(load.replicas) for load in self.partitions)
        mean = total / len(self.brokers)
        low = -int(-(mean * (1 - self.tolerance)) // 1)
        return ByteBand(low=low, high=max(low, int(mean * (1 + self.tolerance))))

    def _refuse_strangers(self) -> None:
        known = set(self.broker_ids)
        for load in self.partitions:
            strangers = sorted(set(load.replicas) - known)
            if strangers:
                raise InputError(
                    f"partition {load.topic_partition} has replicas on {strangers}, which are not among the brokers "
                    f"{list(self.broker_ids)}; take a new snapshot with all brokers up"
                )


def _refuse_repeated(what: str, keys: list[int] | list[TopicPartition]) -> None:
    repeated = [str(key) for key, times in Counter(keys).items() if times > 1]
    if repeated:
        raise InputError(f"given more than once: {what} {', '.join(repeated)}")


def least_bytes(problem: ByteProblem) -> int:
    """Bytes that every plan which brings all brokers into the band must copy at the least.

    What stands above the band must leave its broker, what is missing below it must arrive, and one copied byte
    does at most one of each: the larger of the two sums. Whole partitions seldom reach it exactly.
    """
    load = dict.fromkeys(problem.broker_ids, 0)
    for partition in problem.partitions:
        for broker in partition.replicas:
            load[broker] += partition.size_bytes
    band = problem.band
    return max(sum(band.above(size) for size in load.values()), sum(band.below(size) for size in load.values()))
