"""A partition on its way from one replica list to another: the arithmetic of KIP-455, in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OngoingReassignment:
    """What the controller stores of a partition that is being reassigned (KIP-455, ListPartitionReassignments).

    `replicas` is the full list: the target in its order, then the replicas being removed.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """Where the partition is going: the full list without what is being removed, order kept."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def sources(self) -> tuple[int, ...]:
        """The full list without what is being added: the replicas from before this move, and what a cancel leaves.

        After an override on KRaft, copies for the target before that are among them.
        """
        return tuple(broker for broker in self.replicas if broker not in self.adding)

    @property
    def can_never_complete(self) -> bool:
        """Whether Kafka 4.3 would keep this move open for ever.

        An override that adds nothing keeps the old `adding`; a broker that is then both adding and removing can
        never satisfy the completion rule. Only a cancel, or a target with a new broker, frees such a partition.
        """
        return bool(set(self.adding) & set(self.removing))

    def __str__(self) -> str:
        adding = f" adding: {_ids(self.adding)}." if self.adding else ""
        removing = f" removing: {_ids(self.removing)}." if self.removing else ""
        return f"replicas: {_ids(self.replicas)}.{adding}{removing}"


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
        """Replicas that go away once the new ones are in sync, ascending."""
        return tuple(sorted(self.removing_in_order))

    @property
    def adding_in_order(self) -> tuple[int, ...]:
        """Replicas that must be copied, in the order of the target."""
        return tuple(dict.fromkeys(broker for broker in self.target if broker not in self.original))

    @property
    def removing_in_order(self) -> tuple[int, ...]:
        """Replicas that go away, in the order of the list before."""
        return tuple(dict.fromkeys(broker for broker in self.original if broker not in self.target))

    @property
    def replicas(self) -> tuple[int, ...]:
        """The list that the controller shows while the change is under way."""
        return self.target + self.removing


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))
