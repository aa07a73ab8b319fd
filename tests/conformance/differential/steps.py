"""Steps of a differential test, and the answers of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

Brokers: TypeAlias = tuple[int, ...]
Place: TypeAlias = tuple[str, int]
"""A topic and the number of a partition."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create a topic with these replica lists; a big one has something to copy."""

    topic: str
    replicas: tuple[Brokers, ...]
    is_big: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a topic."""

    topic: str


@dataclass(frozen=True, slots=True)
class Grow:
    """Give a topic more partitions: so many in all, the new ones with these replica lists."""

    topic: str
    count: int
    replicas: tuple[Brokers, ...]


@dataclass(frozen=True, slots=True)
class Alter:
    """Start, override or cancel (None) moves, all in one request."""

    targets: tuple[tuple[Place, Brokers | None], ...]
    may_change_factor: bool = True


@dataclass(frozen=True, slots=True)
class Elect:
    """Elect leaders of these partitions, or (None) of all."""

    is_unclean: bool
    places: tuple[Place, ...] | None


@dataclass(frozen=True, slots=True)
class Configure:
    """Set a key of a topic, or (None) take it back."""

    topic: str
    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Throttle:
    """Copy a topic next to nothing from now on, or as fast as can be again."""

    topic: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """Shut a broker down in order, or kill it."""

    broker: int
    is_clean: bool


@dataclass(frozen=True, slots=True)
class Start:
    """Start a broker that is down."""

    broker: int


@dataclass(frozen=True, slots=True)
class Cordon:
    """Cordon these log directories of a broker, by their places in its configuration, or (None) all by `*`.

    A controller that is asked refuses it.
    """

    broker: int
    log_dirs: tuple[int, ...] | None
    asks_controller: bool = False


@dataclass(frozen=True, slots=True)
class Uncordon:
    """Delete the cordons of a broker; the controller is asked where it is down."""

    broker: int


Step: TypeAlias = Create | Delete | Grow | Alter | Elect | Configure | Throttle | Stop | Start | Cordon | Uncordon


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition at rest. The ISR and the lists of eligible leaders are sorted, since their order says nothing."""

    replicas: Brokers
    isr: Brokers
    leader: int
    leader_epoch: int
    eligible: Brokers
    last_known: Brokers
    offline: Brokers
    adding: Brokers
    removing: Brokers

    @property
    def is_moving(self) -> bool:
        """True if a reassignment is in progress."""
        return bool(self.adding or self.removing)


State: TypeAlias = dict[Place, Partition]


class Shown(NamedTuple):
    """State that a cluster shows: its partitions, the brokers that are not fenced, and its cordons.

    `cordoned` are directories of running brokers, by broker and place in its configuration. `placement` is the refusal
    of a topic that is wider than the cluster: it counts the brokers that the controller knows to be open.
    """

    partitions: State
    live: frozenset[int]
    cordoned: frozenset[tuple[int, int]]
    placement: str | None


Answer: TypeAlias = tuple[object, ...]
"""Codes and texts, with what has no order sorted."""
