"""How fast a copy goes and when it will be there. Pure.

A copy of s bytes that proceeds at r bytes/s while producers add w bytes/s to its leader takes **t = s / (r - w)**:
what is left shrinks only by the difference. r and w are measured over a sliding window, so the answer follows
throttles that change and traffic that comes and goes. When there is nothing to measure with, or what is left does
not shrink, the answer is None: never a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WINDOW_MS = 15_000
"""Long enough to even out Kafka's throttle, which lets data through in bursts; short enough to follow a change."""

MINIMUM_SPAN_MS = 2_000
"""Rates over less than this say more about the measuring than about the copy."""


@dataclass(frozen=True, slots=True)
class Sample:
    """How far one or more copies were at a time; `left_bytes` is None when it is not known."""

    at_ms: int
    done_bytes: int
    left_bytes: int | None

    @property
    def total_bytes(self) -> int | None:
        """What there is to copy in all: grows as producers write."""
        return None if self.left_bytes is None else self.done_bytes + self.left_bytes


@dataclass(frozen=True, slots=True)
class Estimate:
    """The state of a copy and its near future.

    `rate_bytes_per_s` is what arrives, `write_bytes_per_s` what producers add meanwhile; each is None until the
    samples span long enough. `eta_s` is None also when what is left does not shrink.
    """

    done_bytes: int
    left_bytes: int | None
    rate_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    eta_s: float | None = None

    @property
    def fraction(self) -> float | None:
        """Done over total, 0 to 1; None when the total is not known."""
        if self.left_bytes is None:
            return None
        total = self.done_bytes + self.left_bytes
        return self.done_bytes / total if total else 1.0


def recent(samples: Sequence[Sample], window_ms: int = WINDOW_MS) -> tuple[Sample, ...]:
    """The samples that an estimate uses: the last `window_ms`, and the one before so that the window is full."""
    if not samples:
        return ()
    begin = samples[-1].at_ms - window_ms
    first = max((index for index, sample in enumerate(samples) if sample.at_ms <= begin), default=0)
    return tuple(samples[first:])


def estimate(samples: Sequence[Sample], limit_bytes_per_s: float | None = None) -> Estimate:
    """What samples of one thing, oldest first, say of it. Raises ValueError when there is none.

    A throttle lets the first answers through at once: what lies beyond its limit is shown, and not counted on.
    """
    if not samples:
        raise ValueError("nothing can be said of a copy that was never observed")
    first, last = samples[0], samples[-1]
    if last.left_bytes == 0:
        return Estimate(last.done_bytes, 0, *_rates(first, last), eta_s=0.0)
    rate, writes = _rates(first, last)
    lasting = rate if rate is None or limit_bytes_per_s is None else min(rate, limit_bytes_per_s)
    return Estimate(last.done_bytes, last.left_bytes, rate, writes, _eta(last.left_bytes, lasting, writes))


def total(samples: Sequence[Sample]) -> Sample:
    """Several copies as one; what is left is known only if it is known of all."""
    lefts = [sample.left_bytes for sample in samples]
    known = [left for left in lefts if left is not None]
    return Sample(
        at_ms=max((sample.at_ms for sample in samples), default=0),
        done_bytes=sum(sample.done_bytes for sample in samples),
        left_bytes=sum(known) if len(known) == len(lefts) else None,
    )


def _rates(first: Sample, last: Sample) -> tuple[float | None, float | None]:
    span_ms = last.at_ms - first.at_ms
    if span_ms < MINIMUM_SPAN_MS:
        return None, None
    # Retention may take more away than producers add; that shortens no copy under way, so it counts as no writing.
    rate = max(0.0, (last.done_bytes - first.done_bytes) * 1000 / span_ms)
    if first.total_bytes is None or last.total_bytes is None:
        return rate, None
    return rate, max(0.0, (last.total_bytes - first.total_bytes) * 1000 / span_ms)


def _eta(left_bytes: int | None, rate: float | None, writes: float | None) -> float | None:
    if left_bytes is None or rate is None or writes is None or rate <= writes:
        return None
    return left_bytes / (rate - writes)
