"""PURE. What a run copied when: bytes per slot of time, by who received and who sent, and how much was growth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kreassign.report.records import ArrivalRecord, MoveRecord, ThrottleStepRecord

SLOTS = 120
"""Into so many slots the time of a run is cut: more would be less than a pixel on a phone."""

Slots = dict[int, list[float]]
"""Bytes of each slot, by broker."""


@dataclass(frozen=True, slots=True)
class CopyRates:
    """Bytes by slot of `slot_s` seconds: `received` and `sent` by broker, and of all that is `growth`.

    Growth is what of a copy goes beyond the size that it had before the run. `flows` sums bytes by source and
    destination.
    """

    slot_s: float
    received: Mapping[int, Sequence[float]]
    sent: Mapping[int, Sequence[float]]
    growth: Sequence[float]
    flows: Mapping[tuple[int, int], float] = field(default_factory=dict)

    def busiest(self, of: Mapping[int, Sequence[float]]) -> list[float]:
        """The rate of the busiest broker in each slot, in bytes per second."""
        return [max(slot, default=0.0) / self.slot_s for slot in zip(*of.values(), strict=True)]

    @property
    def total(self) -> list[float]:
        """Bytes that all brokers together received in each slot."""
        return [sum(slot) for slot in zip(*self.received.values(), strict=True)]


def copy_rates(
    arrivals: Iterable[ArrivalRecord], moves: Iterable[MoveRecord], started_ms: int, end_s: float, slots: int = SLOTS
) -> CopyRates:
    """Cut what arrived into slots; what came between two looks came evenly."""
    sizes = {(move.topic, move.partition): move.size_bytes for move in moves}
    slot_s = max(end_s, 0.001) / slots
    received: Slots = defaultdict(lambda: [0.0] * slots)
    sent: Slots = defaultdict(lambda: [0.0] * slots)
    growth, flows = [0.0] * slots, defaultdict[tuple[int, int], float](float)
    before: dict[tuple[str, int, int], tuple[float, int]] = {}
    for one in arrivals:
        at_s, copy = (one.at_ms - started_ms) / 1000, (one.topic, one.partition, one.broker)
        since_s, done = before.get(copy, (at_s, 0))
        before[copy] = at_s, one.done_bytes
        # A copy that was begun again adds from nothing.
        more = one.done_bytes - (done if one.done_bytes >= done else 0)
        if more <= 0:
            continue
        share = min(1.0, max(0, one.done_bytes - max(done, sizes.get(copy[:2], 0))) / more)
        flows[one.source, one.broker] += more
        for slot, part in _parts(since_s, at_s, slot_s, slots):
            received[one.broker][slot] += more * part
            sent[one.source][slot] += more * part
            growth[slot] += more * part * share
    return CopyRates(slot_s, dict(received), dict(sent), growth, dict(flows))


def throttle_over_time(
    steps: Iterable[ThrottleStepRecord], started_ms: int, end_s: float
) -> tuple[list[tuple[float, float | None]], list[tuple[float, float | None]]]:
    """The lowest and the highest throttle of any broker, each as a stair: (from when on, rate or None)."""
    rates: dict[int, int | None] = {}
    by_time: dict[float, list[ThrottleStepRecord]] = defaultdict(list)
    for step in steps:
        by_time[(step.at_ms - started_ms) / 1000].append(step)
    lowest: list[tuple[float, float | None]] = []
    highest: list[tuple[float, float | None]] = []
    for at_s, changed in sorted(by_time.items()):
        rates |= {step.broker: step.bytes_per_s for step in changed}
        known = [rate for rate in rates.values() if rate is not None]
        lowest.append((at_s, min(known, default=None)))
        highest.append((at_s, max(known) if len(known) == len(rates) else None))
    for stair in (lowest, highest):
        if stair and stair[-1][0] < end_s:
            stair.append((end_s, stair[-1][1]))
    return lowest, highest


def _parts(since_s: float, until_s: float, slot_s: float, slots: int) -> Iterable[tuple[int, float]]:
    """Which part of the time between falls into which slot."""
    first, last = _slot(since_s, slot_s, slots), _slot(until_s, slot_s, slots)
    if first == last or until_s <= since_s:
        return [(last, 1.0)]
    whole = until_s - since_s
    edges = [since_s, *((place + 1) * slot_s for place in range(first, last)), until_s]
    return [
        (place, max(0.0, edges[place - first + 1] - edges[place - first]) / whole) for place in range(first, last + 1)
    ]


def _slot(at_s: float, slot_s: float, slots: int) -> int:
    return min(slots - 1, max(0, int(at_s / slot_s)))
