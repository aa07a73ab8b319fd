"""What a fault is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.torture.scene import Scene


def _nothing(_: Scene) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault.

    `strike` is asked again and again while moves are in flight until it says, in a sentence, what it did; "" where
    there was nothing to do it to. `prepare` is done before the run begins. `tells` is a word without which the run has
    not told of it: what it set was changed, or what it moves was moved. A fault that `moves` makes replicas differ from
    the plan after all. A `harmless` one is no reason for a move to fail.
    """

    name: str
    strike: Callable[[Scene], str]
    prepare: Callable[[Scene], None] = _nothing
    tells: str | None = None
    moves: bool = False
    harmless: bool = False
