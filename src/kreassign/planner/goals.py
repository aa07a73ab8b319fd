"""The goals: loads that replicas put on their brokers, and that should be even.

kreassign's own are in `GOALS` and `OPTIONAL_GOALS`; other packages add theirs by an entry point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points
from operator import attrgetter
from typing import Protocol

import numpy as np

from kreassign.errors import InputError
from kreassign.model.text import did_you_mean
from kreassign.planner.arrays import BytesArray, FloatArray

ENTRY_POINT_GROUP = "kreassign.goals"
"""Entry point group for goals of other packages: `weight = "my_goals:WEIGHT"`, where WEIGHT is a Goal."""

TOPIC_SPREAD = "topic-spread"
TOPIC_LEADERS = "topic-leaders"
FAILOVER = "failover"
"""Goals that are not a load of brokers: see `search/spread.py`."""


class PartitionLoads(Protocol):
    """Properties of P partitions that a goal may read, shape (P,) each; see `problem.problem.Partitions`."""

    @property
    def size_bytes(self) -> BytesArray:
        """Bytes of one replica."""

    @property
    def write_bytes_per_s(self) -> FloatArray:
        """Bytes/s that producers write."""

    @property
    def read_bytes_per_s(self) -> FloatArray:
        """Bytes/s that the leader sends to consumers and followers."""

    @property
    def follower_read_bytes_per_s(self) -> FloatArray:
        """Bytes/s that each follower sends to consumers (KIP-392); 0 unless they fetch from followers."""

    @property
    def coordinated_count(self) -> FloatArray:
        """Groups and transactional ids that the leader coordinates; 0 unless they were given."""

    @property
    def leader_cpu(self) -> FloatArray:
        """CPU use of the leader, in any unit."""

    @property
    def follower_cpu(self) -> FloatArray:
        """CPU use of a follower, in the same unit."""

    def __len__(self) -> int: ...


Column = Callable[[PartitionLoads], FloatArray]
"""Function from the partitions to one number for each: shape (P,)."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One resource to balance.

    A replica adds `leader(partitions)[p]` to its broker while it leads partition p, and `follower(partitions)[p]`
    while it follows. The search knows nothing else of a goal, so users can define their own. `name` is also the key of
    the broker's capacity for it, `unit` the unit shown, `why` the reason shown. `counts` is True if loads are whole
    numbers, so that bands are too.
    """

    name: str
    unit: str
    leader: Column
    follower: Column
    why: str = ""
    counts: bool = False


def nothing(partitions: PartitionLoads) -> FloatArray:
    """Zero load, (P,): for a role that does not use the resource."""
    return np.zeros(len(partitions))


def one_each(partitions: PartitionLoads) -> FloatArray:
    """Load 1 per replica, (P,): for a resource that is counted."""
    return np.ones(len(partitions))


def _size(partitions: PartitionLoads) -> FloatArray:
    return partitions.size_bytes.astype(float)


_WRITTEN, _READ, _COORDINATED = map(attrgetter, ("write_bytes_per_s", "read_bytes_per_s", "coordinated_count"))

# name, unit, load while leading, load while following, why
DISK = Goal("disk", "B", _size, _size, "a replica takes its size, whatever its role")
NET_IN = Goal("net-in", "B/s", _WRITTEN, _WRITTEN, "a leader receives what is written, a follower its copy")
NET_OUT = Goal(
    "net-out",
    "B/s",
    _READ,
    attrgetter("follower_read_bytes_per_s"),
    "leaders send to consumers and followers, followers to consumers nearby",
)
CPU = Goal("cpu", "", attrgetter("leader_cpu"), attrgetter("follower_cpu"), "leading costs more than following")
REPLICAS = Goal("replicas", "", one_each, one_each, "every replica costs open files and fetches", counts=True)
LEADERS = Goal("leaders", "", one_each, nothing, "clients speak to leaders only", counts=True)
POTENTIAL_NET_OUT = Goal(
    "potential-net-out", "B/s", _READ, _READ, "what a broker would send if it led all that it holds"
)

GOALS = (DISK, NET_IN, NET_OUT, CPU, REPLICAS, LEADERS)
"""Default goals, most important first."""

COORDINATORS = Goal(
    "coordinators",
    "",
    _COORDINATED,
    nothing,
    "what a leader of an internal topic coordinates, not its bytes",
    counts=True,
)

OPTIONAL_GOALS = (POTENTIAL_NET_OUT, COORDINATORS)
"""Goals that apply only if named."""

_BY_NAME = {goal.name: goal for goal in (*GOALS, *OPTIONAL_GOALS)}


def is_goal(name: str) -> bool:
    """True if there is a goal of this name."""
    return name in _BY_NAME or bool(entry_points(group=ENTRY_POINT_GROUP, name=name))


def goal_named(name: str, others: Iterable[str] = ()) -> Goal:
    """Return the goal of this name; `others` are further names that may stand in its place.

    Raises InputError if there is none, or if its entry point is not a Goal or cannot be imported.
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    found = entry_points(group=ENTRY_POINT_GROUP, name=name)
    if not found:
        installed = sorted(entry_points(group=ENTRY_POINT_GROUP).names)
        known = [*_BY_NAME, *others, *installed]
        said = (", ".join(known), did_you_mean(name, known))
        raise InputError(f"there is no goal {name!r}; there are {'; '.join(filter(None, said))}")
    (entry, *_) = found
    try:
        goal = entry.load()
    except (ImportError, AttributeError) as error:
        raise InputError(f"goal {name!r} cannot be loaded from {entry.value}: {error}") from error
    if not isinstance(goal, Goal):
        raise InputError(f"{entry.value}, the goal {name!r}, is a {type(goal).__name__}, not a kreassign Goal")
    return goal
