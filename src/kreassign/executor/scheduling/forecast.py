"""Whether all moves can be made in their hours, told before they are, and meanwhile. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, inf

from kreassign.executor.scheduling.order import Order, in_order
from kreassign.executor.scheduling.time_left import Side, TimeLeft, sides
from kreassign.executor.scheduling.values import Candidate
from kreassign.executor.scheduling.windows import Schedule, longest_s, moment, open_intervals
from kreassign.model import TopicPartition
from kreassign.model.amount import format_amount

REACHED = 11 / 12
"""Part of its throttle that a broker reaches; see docs/concepts/throttles.md."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What fits into the hours of a run.

    `fitting` of `count` moves fit before the deadline, at most; the `least_bytes_per_s` would let all of them, as far
    as their sums go. `endless` are moves for which no opening to come is long enough.
    """

    count: int
    fitting: int
    fitting_bytes: int
    least_bytes_per_s: int
    endless: tuple[TopicPartition, ...]


def forecast(
    moves: Iterable[Candidate], hours: Schedule, at_ms: float, rate_bytes_per_s: float, order: Order = Order.MAKESPAN
) -> Forecast:
    """What fits if brokers send and receive at this rate from now on. The sizes of the moves are what is left."""
    every = in_order(moves, (), order)
    seconds = inf if hours.deadline_ms is None else sum(one.seconds for one in open_intervals(hours, at_ms))
    longest = longest_s(hours, at_ms)
    time = TimeLeft(seconds, rate_bytes_per_s)
    endless, fitting, fitting_bytes = [], 0, 0
    for move in every:
        if any(size_bytes > longest * rate_bytes_per_s for _, size_bytes in sides(move, rate_bytes_per_s)):
            endless.append(move.topic_partition)
        elif time.refuses(move) is None:
            time.promise(move)
            fitting, fitting_bytes = fitting + 1, fitting_bytes + move.total_bytes
    return Forecast(len(every), fitting, fitting_bytes, _least_rate(every, seconds), tuple(endless))


def told(found: Forecast, hours: Schedule, rate_bytes_per_s: float) -> tuple[str, ...]:
    """What is wrong with the hours, a sentence each; none when everything fits."""
    rate = format_amount(rate_bytes_per_s, "B/s")
    sentences = []
    if found.endless:
        names = ", ".join(map(str, found.endless[:10])) + (", …" if len(found.endless) > 10 else "")
        sentences.append(
            f"at {rate} per broker no time to come is long enough for {len(found.endless)} moves ({names}): give a "
            f"higher rate or longer windows"
        )
    if hours.deadline_ms is not None and found.fitting < found.count:
        least = format_amount(found.least_bytes_per_s, "B/s") if found.least_bytes_per_s else "no rate"
        sentences.append(
            f"at {rate} per broker at most {found.fitting} of {found.count} moves "
            f"({format_amount(found.fitting_bytes, 'B')}) end by {moment(hours, hours.deadline_ms)}; all need at least "
            f"{least}, or more time"
        )
    return tuple(sentences)


def _least_rate(moves: Iterable[Candidate], seconds: float) -> int:
    """The busiest end over the time that there is; 0 where there is none."""
    busy: Counter[Side] = Counter()
    for move in moves:
        for side, size_bytes in sides(move, None):
            busy[side] += ceil(size_bytes)
    return ceil(max(busy.values(), default=0) / seconds) if seconds else 0
