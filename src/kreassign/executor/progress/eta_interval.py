"""When a whole run ends, as an interval: from what each broker still has to send and to receive. Pure.

A run ends when its busiest broker is done: pacing sees to it that this one always has enough to do, also of the moves
that wait. So its end is what counts, **t = s / (r - w)**: s is all that it has still to send (or to receive), moves
not yet started included, r what it has sent lately and w what producers added to that meanwhile. What other brokers
have left by then goes at the full rate. The earliest end supposes that every broker reaches the best rate that
any has reached, or the throttle; the latest, that the busiest one is as slow as in its slowest quarter lately.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kreassign.executor.progress.eta import MINIMUM_SPAN_MS

WINDOW_MS = 60_000
"""Rates of brokers are measured over so long: several windows of Kafka's throttle."""

QUOTA_MS = 11_000
"""A throttle is a mean over so long (`replication.quota.window.num` samples of a second)."""

CRITICAL = 0.9
"""Brokers with at least this part of the longest time before them may turn out to be the last."""

UNCERTAIN = 0.1
"""What cannot be measured: how well the last moves fill their brokers."""

PARTS = 4


@dataclass(frozen=True, slots=True)
class Interval:
    """Seconds from now; the end is expected after `expected_s`, and between the other two."""

    earliest_s: float
    expected_s: float
    latest_s: float


@dataclass(frozen=True, slots=True)
class ProgressSample:
    """A broker, or the whole run, at one time: bytes done, left, and written to what is under way since it began."""

    at_ms: int
    done_bytes: int
    left_bytes: int
    written_bytes: int


@dataclass(frozen=True, slots=True)
class Side:
    """What one broker has to send, or to receive: samples of that, oldest first, and what is written to what waits.

    That has grown by `grown_bytes` since its size was taken. `limit_bytes_per_s` is the throttle of this end, if any.
    """

    samples: Sequence[ProgressSample]
    waiting_write_bytes_per_s: float = 0.0
    grown_bytes: float = 0.0
    limit_bytes_per_s: float | None = None

    @property
    def left_bytes(self) -> float:
        """What is left of all moves, as far as is known."""
        return self.samples[-1].left_bytes + self.grown_bytes

    @property
    def ahead_bytes(self) -> float:
        """What passed before the throttle would let it, as first answers do; a pause makes up for it."""
        if self.limit_bytes_per_s is None:
            return 0.0
        last = self.samples[-1]
        before = [one for one in self.samples if one.at_ms <= last.at_ms - QUOTA_MS]
        begun_ms, done_bytes = (before[-1].at_ms, before[-1].done_bytes) if before else (self.samples[0].at_ms, 0)
        return max(0.0, last.done_bytes - done_bytes - self.limit_bytes_per_s * (last.at_ms - begun_ms) / 1000)

    @property
    def rate_bytes_per_s(self) -> float | None:
        """What went through lately, no more than the throttle lets in the long run; None if not watched."""
        measured = _rate(self._busy_samples)
        if measured is None or self.limit_bytes_per_s is None:
            return measured
        return min(measured, self.limit_bytes_per_s)

    @property
    def slowest_bytes_per_s(self) -> float | None:
        """The same in the slowest part of that time."""
        samples = self._busy_samples
        if len(samples) <= 2 * PARTS:
            return self.rate_bytes_per_s
        cuts = [round(part * (len(samples) - 1) / PARTS) for part in range(PARTS + 1)]
        rates = (_rate(samples[begin : end + 1]) for begin, end in pairwise(cuts))
        return min((rate for rate in rates if rate is not None), default=None)

    @property
    def _busy_samples(self) -> Sequence[ProgressSample]:
        """Those since it began to copy: a broker that had nothing to do until lately is not slow."""
        grows = (
            index for index, (one, after) in enumerate(pairwise(self.samples)) if after.done_bytes > one.done_bytes
        )
        return self.samples[next(grows, len(self.samples) - 1) :]

    @property
    def write_bytes_per_s(self) -> float:
        """What producers add to what is under way, and half of what they add to what waits: that starts in between."""
        first, last = self.samples[0], self.samples[-1]
        seconds = (last.at_ms - first.at_ms) / 1000
        written = last.written_bytes - first.written_bytes
        return (written / seconds if seconds > 0 else 0.0) + self.waiting_write_bytes_per_s / 2

    def takes_s(self, rate_bytes_per_s: float | None) -> float | None:
        """How long what is left takes at this rate; None where it never ends."""
        gain = 0.0 if rate_bytes_per_s is None else rate_bytes_per_s - self.write_bytes_per_s
        return (self.left_bytes + self.ahead_bytes) / gain if gain > 0 else None


def interval(sides: Iterable[Side], together: Side, best_bytes_per_s: float) -> Interval | None:
    """When all sides are done, given the best rate that a broker can reach; None where that is unknown.

    `together` is the whole run: where limits hold it back rather than its busiest broker, that shows there.
    """
    busy = [side for side in sides if side.left_bytes > 0]
    if not busy:
        return Interval(0.0, 0.0, 0.0)
    at_best = [(side, side.takes_s(best_bytes_per_s)) for side in busy]
    known = [seconds for _, seconds in at_best if seconds is not None]
    if len(known) < len(at_best):
        return None
    earliest = max(known)
    critical = [side for side, seconds in at_best if seconds is not None and seconds >= CRITICAL * earliest]
    measured = [side.takes_s(side.rate_bytes_per_s) for side in (*critical, together)]
    slowest = [side.takes_s(side.slowest_bytes_per_s) for side in critical]
    if (expected := _last(measured)) is None:
        return None
    expected = max(earliest, *(_after(side, expected, best_bytes_per_s) for side in busy), expected)
    latest = max(expected, _last(slowest) or 0.0)
    return Interval((1 - UNCERTAIN) * earliest, expected, (1 + UNCERTAIN) * latest)


def _after(side: Side, seconds: float, best_bytes_per_s: float) -> float:
    """When a side is done that goes on as now for so long, and at the best rate from then on."""
    if side.takes_s(side.rate_bytes_per_s) is None:
        return seconds
    gain = (side.rate_bytes_per_s or 0.0) - side.write_bytes_per_s
    return seconds + max(0.0, side.left_bytes + side.ahead_bytes - gain * seconds) / best_bytes_per_s


def _last(ends: Iterable[float | None]) -> float | None:
    return max((end for end in ends if end is not None), default=None)


def _rate(samples: Sequence[ProgressSample]) -> float | None:
    first, last = samples[0], samples[-1]
    if last.at_ms - first.at_ms < MINIMUM_SPAN_MS:
        return None
    return max(0.0, (last.done_bytes - first.done_bytes) * 1000 / (last.at_ms - first.at_ms))
