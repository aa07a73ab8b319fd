"""Durations of plans under rules of pacing, over the least time possible: a fluid model, in simulated time.

Every broker sends and receives at most `RATE`; copies in flight share it max-min, as in the twin (`twin.flows`). What
the model leaves out: writes, throttle windows, disks, and how the controller works. A plan is random: broker weights
from 1 to 3 decide who sends, sizes are log-normal, each move has one copy. The bound is the most bytes that a broker
has to send or to receive, or the largest copy, over the rate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

import numpy as np

from kreassign.executor.scheduling.limits import PacedMove
from kreassign.model import TopicPartition
from kreassign.model.pace import Cap, Caps
from kreassign.twin.replication.copy_rates import max_min_rates
from tests.executor.scheduling.choosing import choose

RATE = 50e6
SHAPES = ((12, 300), (60, 600))
SEEDS = range(3)
MEAN_BYTES = 1e9

Pick = Callable[[Sequence[PacedMove], Sequence[PacedMove]], Sequence[PacedMove]]
"""Which of the waiting moves start, given those in flight with the bytes that they have left."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A way to pace, and how often it looks, in seconds; 0 is at every end of a copy."""

    name: str
    pick: Pick
    look_s: float = 1.0


def random_moves(brokers: int, count: int, seed: int) -> tuple[PacedMove, ...]:
    """One copy each, between two brokers."""
    random = Random(seed)
    weights = [1 + 2 * number / (brokers - 1) for number in range(brokers)]
    random.shuffle(weights)
    moves = []
    for number in range(count):
        source = random.choices(range(brokers), weights)[0]
        destination = random.choice([broker for broker in range(brokers) if broker != source])
        size_bytes = max(1, int(MEAN_BYTES * random.lognormvariate(0, 1.2)))
        moves.append(PacedMove(TopicPartition(f"t{number // 20:04}", number % 20), size_bytes, source, (destination,)))
    return tuple(moves)


def least_s(moves: Sequence[PacedMove]) -> float:
    """Least time of any order."""
    work: Counter[tuple[str, int]] = Counter()
    for move in moves:
        work["out", move.source] += move.size_bytes
        work["in", move.destinations[0]] += move.size_bytes
    return max(*work.values(), *(move.size_bytes for move in moves)) / RATE


def simulate(moves: Sequence[PacedMove], brokers: int, rule: Rule) -> tuple[float, float]:
    """Seconds until the last copy ends, and hours that all moves together were in flight."""
    waiting, flying = list(moves), list[PacedMove]()
    now_s = look_at_s = moved_s = 0.0
    while waiting or flying:
        if waiting and now_s >= look_at_s:
            starting = rule.pick(waiting, flying)
            names = {move.topic_partition for move in starting}
            waiting = [move for move in waiting if move.topic_partition not in names]
            flying.extend(starting)
            look_at_s = now_s + rule.look_s
        step_s, still = _step(flying, brokers, look_at_s - now_s if waiting and rule.look_s else np.inf)
        moved_s += step_s * len(flying)
        now_s, flying = now_s + step_s, still
    return now_s, moved_s / 3600


def _step(flying: Sequence[PacedMove], brokers: int, most_s: float) -> tuple[float, list[PacedMove]]:
    """Until the next copy ends, or the next look: how long that is, and what is in flight then."""
    if not flying:
        return most_s, []
    uses = np.array([[move.source, brokers + move.destinations[0]] for move in flying])
    rates = max_min_rates(np.full(2 * brokers, RATE), uses)
    left = np.array([move.size_bytes for move in flying], dtype=float)
    step_s = min(float((left / rates).min()), most_s)
    left -= rates * step_s
    moves = zip(flying, np.ceil(left - 0.5), strict=True)
    return step_s, [replace(move, size_bytes=int(size)) for move, size in moves if size > 0]


def _paced(per_broker: int, waiting: Sequence[PacedMove], flying: Sequence[PacedMove]) -> Sequence[PacedMove]:
    caps = Caps(source=Cap(per_broker), destination=Cap(per_broker))
    starting = set(choose(waiting, flying, caps=caps).starting)
    return [move for move in waiting if move.topic_partition in starting]


def _batches(size: int, waiting: Sequence[PacedMove], flying: Sequence[PacedMove]) -> Sequence[PacedMove]:
    return () if flying else waiting[:size]


def _incremental(most: int, waiting: Sequence[PacedMove], flying: Sequence[PacedMove]) -> Sequence[PacedMove]:
    return waiting[: most - len(flying)]


def _per_broker(most: int, waiting: Sequence[PacedMove], flying: Sequence[PacedMove]) -> Sequence[PacedMove]:
    """Cruise Control's cap: so many moves at a broker, sent and received together; by name."""
    busy = Counter(broker for move in flying for broker in (move.source, *move.destinations))
    starting = []
    for move in waiting:
        ends = (move.source, *move.destinations)
        if all(busy[broker] < most for broker in ends):
            starting.append(move)
            busy.update(ends)
    return starting


RULES = (
    Rule("everything at once", lambda waiting, _: waiting),
    *(Rule(f"KIP-1335, batches of {size}", partial(_batches, size)) for size in (10, 50, 200)),
    *(Rule(f"KIP-1335, incremental, {most}", partial(_incremental, most)) for most in (10, 50, 200)),
    Rule("5 per broker, look every 10 s", partial(_per_broker, 5), 10.0),
    *(Rule(f"makespan, {most} out and {most} in per broker", partial(_paced, most)) for most in (1, 2, 5)),
)


def measure() -> None:
    """Print one table per shape of plan."""
    for brokers, count in SHAPES:
        print(f"{brokers} brokers, {count} moves, {len(SEEDS)} plans\n")
        print("| rule | time over the least | hours in flight, all moves |\n|---|---|---|")
        plans = [random_moves(brokers, count, seed) for seed in SEEDS]
        for rule in RULES:
            ends = [simulate(plan, brokers, rule) for plan in plans]
            ratios = [end_s / least_s(plan) for (end_s, _), plan in zip(ends, plans, strict=True)]
            hours = sum(hours for _, hours in ends) / len(ends)
            print(f"| {rule.name} | {min(ratios):.3f}–{max(ratios):.3f} | {hours:.0f} |")
        print()
