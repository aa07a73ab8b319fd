"""How a run is paced: the order of its moves, and the limits of what is in flight."""

from __future__ import annotations

from dataclasses import dataclass, field

from kreassign.executor.pacing.order import Order
from kreassign.executor.pacing.values import Cap, Caps


@dataclass(frozen=True, slots=True)
class Pace:
    """What a run keeps to from its start to its end; it is in the journal, so that a resumed run keeps it too."""

    order: Order = Order.MAKESPAN
    caps: Caps = field(default_factory=Caps)


NO_LIMITS = Pace()


def pace(
    order: Order = Order.MAKESPAN,
    *,
    moves: int | None = None,
    moves_per_broker: int | None = None,
    size_bytes: int | None = None,
    bytes_per_broker: int | None = None,
) -> Pace:
    """A pace with the same limits for what a broker sends and for what it receives; None is no limit."""
    broker = Cap(moves_per_broker, bytes_per_broker)
    return Pace(order, Caps(source=broker, destination=broker, cluster=Cap(moves, size_bytes)))
