"""The steps that every way of taking brokers out of service has, and how brokers and partitions are named in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kreassign.executor.brokers.cordon import CORDONED_LOG_DIRS
from kreassign.executor.brokers.readings import Readings
from kreassign.model import TopicPartition
from kreassign.model.authorization import missing_permission

NAMED = 5


@dataclass(frozen=True, slots=True)
class Cordon:
    """Close the log directories of these brokers."""

    brokers: tuple[int, ...]

    def __str__(self) -> str:
        return f"cordon the log directories of {listed(self.brokers)}"


@dataclass(frozen=True, slots=True)
class Await:
    """Read again later: what is under way ends by itself, what `is_brief` in minutes unless somebody is in the way."""

    reason: str
    is_brief: bool = False

    def __str__(self) -> str:
        return f"wait: {self.reason}"


@dataclass(frozen=True, slots=True)
class Blocked:
    """Only the operator can go on: what is in the way, and what to do."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Finished:
    """Nothing is left to do: a sentence per broker that says what was looked at."""

    proof: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(self.proof)


def cordon_open(found: Readings, uncordoned: Collection[int]) -> Cordon | Blocked | None:
    """Cordon those that can be and are not, but for those whose cordon Kafka refused."""
    open_ones = [
        one
        for one in found.brokers
        if one.cordon is not None and one.cordon.is_known and not one.is_closed
        if one.broker not in uncordoned
    ]
    in_part = [f"of broker {one.broker} is {one.cordon.value}" for one in open_ones if one.cordon and one.cordon.value]
    if in_part:
        return Blocked(
            f"{CORDONED_LOG_DIRS} {', '.join(in_part)}: some directories are cordoned already, and closing the "
            "others could not be undone. Set it to * or delete it (kafka-configs), then give the command again"
        )
    return Cordon(tuple(one.broker for one in open_ones)) if open_ones else None


def unseen_on(found: Readings) -> Blocked | None:
    """Who does not see all topics can tell nothing of what is on a broker."""
    if not found.unseen:
        return None
    return Blocked(
        f"what is on {listed(one.broker for one in found.brokers)} cannot be told, for there are replicas of topics "
        f"that this client may not see: {missing_permission('Describe', found.unseen)}, then give the command again"
    )


def listed(brokers: Iterable[int]) -> str:
    """Brokers by name: "broker 3", "brokers 3, 4"."""
    ids = sorted(brokers)
    return f"broker{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids))}"


def some(names: Collection[TopicPartition]) -> str:
    """Partitions by name, and how many more there are."""
    shown = ", ".join(map(str, list(names)[:NAMED]))
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown
