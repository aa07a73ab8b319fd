"""A new target for a partition that is being reassigned: what a KRaft controller makes of it. Pure.

Unlike KIP-455 has it, the controller starts from the full list, abandoned copies included, and keeps the former
`adding` (or `removing`) where nothing new is added (or removed). A controller of ZooKeeper mode does as the document
says, and none of the risks here is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kreassign.model.reassignment import OngoingReassignment, Reassignment


@dataclass(frozen=True, slots=True)
class Override:
    """`target` submitted while a partition is on its way as `ongoing` says."""

    ongoing: OngoingReassignment
    target: tuple[int, ...]

    @property
    def listed(self) -> OngoingReassignment:
        """The lists that the controller stores."""
        move = Reassignment(self.ongoing.replicas, self.target)
        return OngoingReassignment(
            move.replicas, move.adding or self.ongoing.adding, move.removing or self.ongoing.removing
        )

    @property
    def can_never_complete(self) -> bool:
        """Whether Kafka 4.3 would keep the move open for ever."""
        return self.listed.can_never_complete

    @property
    def dropped(self) -> tuple[int, ...]:
        """Brokers of the target whose replicas go at its end nevertheless, ascending."""
        return tuple(sorted(set(self.target) & set(self.listed.removing)))

    @property
    def left_over(self) -> tuple[int, ...]:
        """Brokers, ascending, with copies for the former target: they stay until the move ends, even if cancelled."""
        return tuple(sorted(set(self.listed.sources) - set(self.ongoing.sources)))

    @property
    def is_risky(self) -> bool:
        """Whether it would not do what was asked for, or leave what nobody asked for."""
        return bool(self.can_never_complete or self.dropped or self.left_over)

    def __str__(self) -> str:
        return "; ".join(self._risks())

    def _risks(self) -> Iterator[str]:
        if self.can_never_complete:
            both = set(self.listed.adding) & set(self.listed.removing)
            yield f"it can never end (Kafka 4.3): {_brokers(both)} would be both added and removed"
        if self.dropped:
            yield f"it ends without the target's replicas on {_brokers(self.dropped)}"
        if self.left_over:
            yield f"copies for the former target stay on {_brokers(self.left_over)} until it ends, even if cancelled"


def _brokers(ids: Collection[int]) -> str:
    return f"broker{'' if len(ids) == 1 else 's'} {','.join(map(str, sorted(ids)))}"
