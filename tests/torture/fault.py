"""Faults as values, and the order in which a campaign strikes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from testbed import Listener
from tests.torture.scene import Scene

Strike = Callable[[Scene], str]
ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault.

    `strike` is called again and again while moves are in flight (from the start of the run, if it `is_early`) until it
    says, in a sentence, what it did; it raises MissedError where there is nothing to do it to. `prepare` is done before
    the run begins. `listener` is by which the run has to come to its brokers for it. `tells` is a word that the run has
    to say of it, because its settings or moves were changed. A fault that `moves` makes replicas differ from the plan.
    A `harmless` one is no reason for a move to fail. What takes minutes is struck `once` in a campaign.
    """

    name: str
    strike: Strike
    prepare: Callable[[Scene], None] = lambda _: None
    listener: Listener | None = None
    tells: str | None = None
    moves: bool = False
    harmless: bool = False
    is_early: bool = False
    once: bool = False

    def goes_with(self, others: Sequence[Fault]) -> bool:
        """True if the fault can be struck at a run beside these."""
        if others and (self.once or others[0].once):
            return False
        taken = {other.listener for other in others if other.listener is not None}
        # A proxy does one thing at a time.
        return not self.listener or not taken or (taken == {self.listener} and self.listener is not Listener.PROXIED)


class Order:
    """All kinds in turn, each turn in another order; what is struck `once` at the first runs only.

    What could not be struck is drawn again, up to four times.
    """

    def __init__(self, faults: Sequence[Fault], chance: Random) -> None:
        self._faults = faults
        self._chance = chance
        self._left: list[Fault] = []
        self._is_first_turn = True
        self._put_off: Counter[str] = Counter()

    def next(self, most: int, *, harmless: bool) -> list[Fault]:
        """Draw up to so many faults for the next run that can be struck together, early ones first.

        Only `harmless` ones if so wanted, as long as there are any in this turn.
        """
        self._left = self._left or self._next_turn()
        chosen: list[Fault] = []
        wanted = [fault for fault in self._left if fault.harmless] if harmless else []
        for fault in wanted or self._left:
            if len(chosen) < most and fault.goes_with(chosen):
                chosen.append(fault)
        self._left = [fault for fault in self._left if fault not in chosen]
        return sorted(chosen, key=lambda fault: not fault.is_early)

    def put_off(self, fault: Fault) -> None:
        """Draw it again for the next run."""
        self._put_off[fault.name] += 1
        if self._put_off[fault.name] < ATTEMPTS and fault not in self._left:
            self._left.insert(0, fault)

    def _next_turn(self) -> list[Fault]:
        drawn = self._chance.sample(self._faults, len(self._faults))
        first = [fault for fault in self._faults if fault.once and self._is_first_turn]
        self._is_first_turn = False
        return [*first, *(fault for fault in drawn if not fault.once)]
