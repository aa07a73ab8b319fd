"""In which order kinds of faults are struck, and which of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from tests.torture.fault import Fault

ATTEMPTS = 4


class Order:
    """All kinds in turn, each turn in another order; what is struck `once` at the first runs only.

    What could not be struck is drawn again, up to four times.
    """

    def __init__(self, faults: Sequence[Fault], chance: Random) -> None:
        self._faults = faults
        self._chance = chance
        self._left: list[Fault] = []
        self._turns = 0
        self._put_off: Counter[str] = Counter()

    def next(self, most: int, *, harmless: bool) -> list[Fault]:
        """Faults for the next run, up to so many: those that can be struck together, early ones first.

        Only `harmless` ones if so wanted, as long as there are any in this turn.
        """
        if not self._left:
            self._left = self._next_turn()
        chosen: list[Fault] = []
        wanted = [each for each in self._left if each.harmless] if harmless else []
        for fault in wanted or self._left:
            if len(chosen) < most and all(fault.goes_with(each) for each in chosen) and not _clash(fault, chosen):
                chosen.append(fault)
        self._left = [each for each in self._left if each not in chosen]
        return sorted(chosen, key=lambda fault: not fault.is_early)

    def put_off(self, fault: Fault) -> None:
        """Draw it again for the next run."""
        self._put_off[fault.name] += 1
        if self._put_off[fault.name] < ATTEMPTS and fault not in self._left:
            self._left.insert(0, fault)

    def _next_turn(self) -> list[Fault]:
        self._turns += 1
        drawn = self._chance.sample(self._faults, len(self._faults))
        first = [each for each in self._faults if each.once] if self._turns == 1 else []
        return [*first, *(each for each in drawn if not each.once)]


def _clash(fault: Fault, chosen: Sequence[Fault]) -> bool:
    """What takes minutes has a run for itself."""
    return bool(chosen) and (fault.once or chosen[0].once)
