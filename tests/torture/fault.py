"""What a fault is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from testbed import Listener
from tests.torture.scene import Scene


def _nothing(_: Scene) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault.

    `strike` is asked again and again while moves are in flight (from the start of the run, if it `is_early`) until it
    says, in a sentence, what it did; "" where there was nothing to do it to. `prepare` is done before the run begins.
    `listener` is by which the run has to come to its brokers for it. `tells` is a word without which the run has not
    told of it: what it set was changed, or what it moves was moved. A fault that `moves` makes replicas differ from
    the plan after all. A `harmless` one is no reason for a move to fail. What takes minutes is struck `once` in a
    campaign.
    """

    name: str
    strike: Callable[[Scene], str]
    prepare: Callable[[Scene], None] = _nothing
    listener: Listener | None = None
    tells: str | None = None
    moves: bool = False
    harmless: bool = False
    is_early: bool = False
    once: bool = False

    def goes_with(self, other: Fault) -> bool:
        """Whether both can be struck at one run."""
        if self.listener is None or other.listener is None:
            return True
        # A proxy does one thing at a time.
        return self.listener is other.listener and self.listener is not Listener.PROXIED
