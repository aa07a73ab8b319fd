"""A reassignment: a partition that moves from one replica list to another (KIP-455).

Also the two checks before submitting a target: what a KRaft controller does with a second target for a partition that
moves already, and whether the partition still has the replicas that the plan expects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kreassign.errors import Drifted
from kreassign.model.cluster import TopicPartition, listed_ids, named_brokers, without

DOCTOR_TELLS = "`kreassign doctor` says whose it may be, and how"
WAIT_OR_CANCEL = f"wait for that or cancel it ({DOCTOR_TELLS})"
"""The way to move a partition elsewhere that is being reassigned."""

# The arithmetic of KIP-455, in one place.


@dataclass(frozen=True, slots=True)
class OngoingReassignment:
    """The controller's state of a partition that is being reassigned (KIP-455, ListPartitionReassignments).

    `replicas` is the full list: the target in its order, then the replicas being removed.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The target: the full list without the replicas being removed, order kept."""
        return without(self.replicas, self.removing)

    @property
    def sources(self) -> tuple[int, ...]:
        """The full list without the replicas being added: the replicas before this move, which a cancel restores.

        After an override on KRaft, it includes copies for the previous target.
        """
        return without(self.replicas, self.adding)

    @property
    def can_never_complete(self) -> bool:
        """True if Kafka 4.3 would keep this move open for ever.

        An override that adds nothing keeps the old `adding`; a broker that is then both adding and removing can
        never satisfy the completion rule. Only a cancel, or a target with a new broker, frees such a partition.
        """
        return bool(set(self.adding) & set(self.removing))

    def __str__(self) -> str:
        adding = f" adding: {listed_ids(self.adding)}." if self.adding else ""
        removing = f" removing: {listed_ids(self.removing)}." if self.removing else ""
        return f"replicas: {listed_ids(self.replicas)}.{adding}{removing}"


@dataclass(frozen=True, slots=True)
class Reassignment:
    """The change from one replica list to another.

    `original` is the list shown when the change is submitted, `target` the list asked for.
    """

    original: tuple[int, ...]
    target: tuple[int, ...]

    @property
    def adding(self) -> tuple[int, ...]:
        """Replicas that must be copied, ascending."""
        return tuple(sorted(self.adding_in_order))

    @property
    def removing(self) -> tuple[int, ...]:
        """Replicas to be deleted once the new ones are in sync, ascending."""
        return tuple(sorted(self.removing_in_order))

    @property
    def adding_in_order(self) -> tuple[int, ...]:
        """Replicas that must be copied, in the order of the target."""
        return tuple(dict.fromkeys(broker for broker in self.target if broker not in self.original))

    @property
    def removing_in_order(self) -> tuple[int, ...]:
        """Replicas to be deleted, in the order of the list before."""
        return tuple(dict.fromkeys(broker for broker in self.original if broker not in self.target))

    @property
    def replicas(self) -> tuple[int, ...]:
        """The list that the controller shows during the change."""
        return self.target + self.removing

    @property
    def possible_replicas(self) -> tuple[tuple[int, ...], ...]:
        """Lists that controllers of any release show during the change: of ZooKeeper mode, it keeps the order."""
        return tuple(dict.fromkeys((self.replicas, self.target + self.removing_in_order)))

    @property
    def left_by_cancelling(self) -> tuple[tuple[int, ...], ...]:
        """Lists that may be left when the change is cancelled: those during the change without the added replicas."""
        lists = (tuple(one for one in shown if one in self.original) for shown in self.possible_replicas)
        return tuple(dict.fromkeys(lists))


# The effect of a new target on a KRaft controller for a partition that is being reassigned. Pure.
#
# Unlike KIP-455, the controller starts from the full list, abandoned copies included, and keeps the former
# `adding` (or `removing`) if nothing new is added (or removed). A controller of ZooKeeper mode follows the KIP, so none
# of these risks exists there.


@dataclass(frozen=True, slots=True)
class Override:
    """The submission of `target` while a partition moves as in `ongoing`."""

    ongoing: OngoingReassignment
    target: tuple[int, ...]

    @property
    def listed(self) -> OngoingReassignment:
        """The state that the controller stores after the override."""
        move = Reassignment(self.ongoing.replicas, self.target)
        return OngoingReassignment(
            move.replicas, move.adding or self.ongoing.adding, move.removing or self.ongoing.removing
        )

    @property
    def can_never_complete(self) -> bool:
        """True if Kafka 4.3 would keep the move open for ever."""
        return self.listed.can_never_complete

    @property
    def dropped(self) -> tuple[int, ...]:
        """Brokers of the target whose replicas are still removed at the end, ascending."""
        return tuple(sorted(set(self.target) & set(self.listed.removing)))

    @property
    def left_over(self) -> tuple[int, ...]:
        """Brokers, ascending, with copies for the former target: these stay until the move ends, even if cancelled."""
        return tuple(sorted(set(self.listed.sources) - set(self.ongoing.sources)))

    @property
    def is_risky(self) -> bool:
        """True if the result would differ from the target, or copies would be left behind."""
        return bool(self.can_never_complete or self.dropped or self.left_over)

    def __str__(self) -> str:
        return "; ".join(self._risks())

    def _risks(self) -> Iterator[str]:
        if self.can_never_complete:
            both = sorted(set(self.listed.adding) & set(self.listed.removing))
            yield f"it can never end (Kafka 4.3): {named_brokers(both)} would be both added and removed"
        if self.dropped:
            yield f"it ends without the target's replicas on {named_brokers(self.dropped)}"
        if self.left_over:
            where = named_brokers(self.left_over)
            yield f"copies for the former target stay on {where} until it ends, even if cancelled"


# Compare-and-set for reassignments: the replica lists that a plan was made for, against the present ones.
#
# KIP-860 rejected comparing whole lists as too complex for the controller, and settled for their length. On the
# client it is a comparison right before submitting, so that a plan made from stale metadata never runs.

Replicas = Mapping[TopicPartition, tuple[int, ...]]


def check_expected(
    expected: Replicas, current: Replicas, ongoing: Mapping[TopicPartition, OngoingReassignment] | None = None
) -> None:
    """Raise `Drifted` with a line for each unexpected partition: another list, being reassigned, or missing."""
    if differences := tuple(_differences(expected, current, ongoing or {})):
        lines = "\n".join(differences)
        raise Drifted(
            f"nothing was submitted, because the cluster is not what was expected:\n{lines}", differences=differences
        )


def missing_expectations(expected: Replicas, wanted: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """Plan partitions without an expected replica list."""
    return tuple(sorted(set(wanted) - expected.keys()))


def _differences(
    expected: Replicas, current: Replicas, ongoing: Mapping[TopicPartition, OngoingReassignment]
) -> Iterator[str]:
    for partition in sorted(expected):
        wanted = listed_ids(expected[partition])
        if partition in ongoing:
            target = listed_ids(ongoing[partition].target)
            yield f"  {partition}: expected at rest on {wanted}, but it is on its way to {target}"
        elif partition not in current:
            yield f"  {partition}: expected on {wanted}, but there is no such partition"
        elif current[partition] != expected[partition]:
            yield f"  {partition}: expected on {wanted}, but it is on {listed_ids(current[partition])}"
