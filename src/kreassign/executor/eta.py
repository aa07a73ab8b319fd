"""Estimate when a copy completes and when a run ends, or give the reason why that is unknown.

A copy of s bytes that proceeds at r bytes/s while producers add w bytes/s to its leader takes **t = s / (r - w)**. A
run ends when its busiest broker is done, which is given as an interval. Without a measurement, or where what is
left does not shrink, the result is a sentence with the reason in place of an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kreassign.executor.guards import STALL_MS
from kreassign.executor.scheduling.windows import local_time, open_interval
from kreassign.executor.state import MoveRecord, RunView, WindDown
from kreassign.model.pace import AtWindowEnd
from kreassign.model.run import ENDED, Estimate, Interval, Phase
from kreassign.model.text import counted, format_amount

# ETA of one copy, or of several as one: t = s / (r - w), because the bytes left shrink only by the difference. r and w
# are measured over a sliding window, so the estimate follows changes of throttles and traffic. Without a measurement,
# or if the remaining bytes do not shrink, the estimate is None, never a guess.

WINDOW_MS = 15_000
"""Window of rates: evens out Kafka's throttle, which passes data in bursts, and still follows a change soon."""

MINIMUM_SPAN_MS = 2_000
"""Shortest span for a rate: below it measurement noise dominates."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Progress of one or more copies at a time; `left_bytes` is None if unknown."""

    at_ms: int
    done_bytes: int
    left_bytes: int | None

    @property
    def total_bytes(self) -> int | None:
        """Total to copy; grows as producers write."""
        return None if self.left_bytes is None else self.done_bytes + self.left_bytes


def recent(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """Samples that an estimate uses: the last `WINDOW_MS`, and the sample before, so that the window is full."""
    if not samples:
        return ()
    begin = samples[-1].at_ms - WINDOW_MS
    first = max((index for index, sample in enumerate(samples) if sample.at_ms <= begin), default=0)
    return tuple(samples[first:])


def estimate(samples: Sequence[Sample], limit_bytes_per_s: float | None = None) -> Estimate:
    """Estimate from samples of one copy, oldest first. Raises ValueError without samples.

    A throttle lets the first answers through at once: a rate above its limit is shown, but the ETA does not rely on it.
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
    """Sum of several copies; the remaining bytes are known only if known for all."""
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
    # Retention may delete more than producers add; that shortens no copy in progress, so it counts as no writes.
    rate = max(0.0, (last.done_bytes - first.done_bytes) * 1000 / span_ms)
    if first.total_bytes is None or last.total_bytes is None:
        return rate, None
    return rate, max(0.0, (last.total_bytes - first.total_bytes) * 1000 / span_ms)


def _eta(left_bytes: int | None, rate: float | None, writes: float | None) -> float | None:
    if left_bytes is None or rate is None or writes is None or rate <= writes:
        return None
    return left_bytes / (rate - writes)


# ETA of a run, as an interval, from what each broker still has to send and to receive.
#
# A run ends when its busiest broker is done, because pacing always gives that broker enough to do, including waiting
# moves. Its end is t = s / (r - w): s is all that it still has to send (or to receive), with moves not yet started,
# r its recent rate while it had copies in flight, and w the rate at which producers added to that. What other brokers
# have left by then goes at the full rate. The earliest end assumes that every broker reaches the best rate that any has
# reached, or the throttle; the latest, that the busiest broker is as slow as in its slowest recent quarter.

INTERVAL_WINDOW_MS = 60_000
"""Window of broker rates: several windows of Kafka's throttle."""

QUOTA_MS = 11_000
"""Averaging time of a throttle (`replication.quota.window.num` samples of a second)."""

CRITICAL = 0.9
"""Share of the longest remaining time from which a broker may turn out to be the last."""

UNCERTAIN = 0.1
"""Uncertainty that cannot be measured: how well the last moves use their brokers."""

WIDEST = 2.5
"""How much later than the earliest end the latest may be for an end to be told. Wider ranges were 50 % and more off."""

PARTS = 4


@dataclass(frozen=True, slots=True)
class ProgressSample:
    """Sample of a broker or the whole run: bytes done, left, and written to copies in progress since the run began.

    It `is_busy` while copies are in flight there.
    """

    at_ms: int
    done_bytes: int
    left_bytes: int
    written_bytes: int
    is_busy: bool = True


@dataclass(frozen=True, slots=True)
class Side:
    """Work that one broker has to send, or to receive: samples, oldest first, and write rate of the waiting moves.

    Waiting moves have grown by `grown_bytes` since their size was taken. `limit_bytes_per_s` is the throttle of this
    end, if any.
    """

    samples: Sequence[ProgressSample]
    waiting_write_bytes_per_s: float = 0.0
    grown_bytes: float = 0.0
    limit_bytes_per_s: float | None = None

    @property
    def left_bytes(self) -> float:
        """Remaining bytes of all moves, where known."""
        return self.samples[-1].left_bytes + self.grown_bytes

    @property
    def ahead_bytes(self) -> float:
        """Bytes that passed ahead of the throttle, as first answers do; a pause makes up for them."""
        if self.limit_bytes_per_s is None:
            return 0.0
        last = self.samples[-1]
        before = [one for one in self.samples if one.at_ms <= last.at_ms - QUOTA_MS]
        begun_ms, done_bytes = (before[-1].at_ms, before[-1].done_bytes) if before else (self.samples[0].at_ms, 0)
        return max(0.0, last.done_bytes - done_bytes - self.limit_bytes_per_s * (last.at_ms - begun_ms) / 1000)

    @property
    def rate_bytes_per_s(self) -> float | None:
        """Recent rate, at most the long-run rate of the throttle; None if unmeasured."""
        measured = _rate_of(self._busy)
        if measured is None or self.limit_bytes_per_s is None:
            return measured
        return min(measured, self.limit_bytes_per_s)

    @property
    def present_bytes_per_s(self) -> float | None:
        """Rate since the broker began to copy, also of the time in which it waited; None if unmeasured."""
        return _rate_of(self._begun)

    @property
    def slowest_bytes_per_s(self) -> float | None:
        """Rate in the slowest part of that time."""
        busy = self._busy
        if len(busy) < 2 * PARTS:
            return self.rate_bytes_per_s
        cuts = [round(part * len(busy) / PARTS) for part in range(PARTS + 1)]
        rates = (_rate_of(busy[begin:end]) for begin, end in pairwise(cuts))
        return min((rate for rate in rates if rate is not None), default=None)

    @property
    def _begun(self) -> Sequence[tuple[ProgressSample, ProgressSample]]:
        """Times between two samples since the first bytes: what was in flight before does not count."""
        pairs = list(pairwise(self.samples))
        grows = (index for index, (one, after) in enumerate(pairs) if after.done_bytes > one.done_bytes)
        return pairs[next(grows, len(pairs)) :]

    @property
    def _busy(self) -> Sequence[tuple[ProgressSample, ProgressSample]]:
        """Pairs of samples between which the broker copied: one that waits for others is not slow."""
        return [(one, after) for one, after in self._begun if one.is_busy or after.done_bytes > one.done_bytes]

    @property
    def write_bytes_per_s(self) -> float:
        """Writes to moves in progress, plus half of those to waiting moves: these start in between."""
        first, last = self.samples[0], self.samples[-1]
        seconds = (last.at_ms - first.at_ms) / 1000
        written = last.written_bytes - first.written_bytes
        return (written / seconds if seconds > 0 else 0.0) + self.waiting_write_bytes_per_s / 2

    def takes_s(self, rate_bytes_per_s: float | None) -> float | None:
        """Seconds for the remaining bytes at this rate; None if it never ends."""
        gain = 0.0 if rate_bytes_per_s is None else rate_bytes_per_s - self.write_bytes_per_s
        return (self.left_bytes + self.ahead_bytes) / gain if gain > 0 else None


def interval(sides: Iterable[Side], together: Side, best_bytes_per_s: float) -> Interval | None:
    """End of all sides, given the best rate that a broker can reach; None if unknown.

    `together` is the whole run; it covers cluster-wide limits, which may hold it back more than its busiest broker.
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
    """End of this side at the present rate for `seconds`, then at the best rate."""
    if side.takes_s(side.rate_bytes_per_s) is None:
        return seconds
    gain = (side.rate_bytes_per_s or 0.0) - side.write_bytes_per_s
    return seconds + max(0.0, side.left_bytes + side.ahead_bytes - gain * seconds) / best_bytes_per_s


def _last(ends: Iterable[float | None]) -> float | None:
    return max((end for end in ends if end is not None), default=None)


def _rate_of(pairs: Sequence[tuple[ProgressSample, ProgressSample]]) -> float | None:
    span_ms = sum(after.at_ms - one.at_ms for one, after in pairs)
    if span_ms < MINIMUM_SPAN_MS:
        return None
    return max(0.0, sum(after.done_bytes - one.done_bytes for one, after in pairs) * 1000 / span_ms)


# Why the ETA of a run is unknown: one sentence, from its state and its measurements.
#
# Reasons that stop copies come before reasons that stop measurements. No journal shows that its process is stopped or
# gone: a reader from outside adds that (`Progress.without_end`).

CALCULATING = "calculating"
"""Prefix of reasons that pass within seconds."""

HAS_ENDED = "the run has ended"
"""Prefix of the reason of a run that is over."""

STILL_MS = 30_000
"""Longer than pauses of a throttle: copies pass in bursts, at most eleven seconds apart (`QUOTA_MS`)."""

BEFORE_MOVING: Mapping[str, str] = {
    "New": f"{CALCULATING}; nothing was sent yet",
    "Resuming": "what the run had set is read again before it goes on",
    "Preparing": f"{CALCULATING}; the settings of its throttle are read first",
    "Throttling": f"{CALCULATING}; its throttle is set first",
}
"""Reasons by state."""

Endpoint = tuple[str, int]
"""A broker as a sender, as a receiver, or with copies between its own directories: out, in, within."""

DOES = {"out": "sends", "in": "gets", "within": "copies between its log directories"}


def reasons_without_end(run: RunView, at_ms: int, measured_ms: int | None) -> Iterator[str]:
    """Reasons why the run cannot end, whatever its copies did before; their progress was last read at `measured_ms`."""
    yield from _not_moving(run)
    if run.in_flight and run.control.wind_down is WindDown.CANCEL:
        yield "its moves in flight are being cancelled"
    yield from _sources_and_destinations(run)
    if (held := run.hindrance(at_ms)) is not None:
        yield held
    if measured_ms is not None:
        yield from _standstill(run, measured_ms)


def _not_moving(run: RunView) -> Iterator[str]:
    if run.phase in ENDED:
        yield f"{HAS_ENDED}: {run.phase}"
    if run.phase is Phase.PAUSED:
        yield f"it was paused, and no process executes it; go on with `kreassign resume {run.run_id}`"
    if run.phase is Phase.AWAITING_LEASE:
        yield f"nothing is changed without the lease of the cluster: {run.control.lease}"
    if run.silence is not None:
        yield run.silence
    if run.step in BEFORE_MOVING:
        yield BEFORE_MOVING[run.step]


def _sources_and_destinations(run: RunView) -> Iterator[str]:
    yield from run.lost_destinations
    lagging = _lagging(run)
    offline = sorted({broker for record in lagging for broker in record.offline if broker not in run.absent})
    for broker in offline:
        count = sum(broker in record.offline for record in lagging)
        copy = "copies" if count == 1 else "copy"
        yield f"a log directory of broker {broker} is offline, and {counted(count, 'move')} {copy} to it"
    for record in lagging:
        if not record.has_leader and record.observation is not None:
            yield f"{record.name} has no leader, so there is nothing to copy from"


def _lagging(run: RunView) -> tuple[MoveRecord, ...]:
    return tuple(record for record in run.in_flight if record.lagging)


def _standstill(run: RunView, measured_ms: int) -> Iterator[str]:
    """Reason if no copy progresses: copies share the throttle of their brokers, so a single one may wait for long."""
    since = {record.name: at_ms for record in _lagging(run) if (at_ms := record.progressed_ms) is not None}
    latest = max(since.values(), default=measured_ms)
    if measured_ms - latest >= STILL_MS:
        yield f"no copy has made progress since {run.time_of_day(latest)}"
    for name, at_ms in since.items():
        if measured_ms - at_ms >= STALL_MS:
            yield f"{name} has made no progress since {run.time_of_day(at_ms)}"


def beyond_hours(run: RunView, at_ms: int, end: Interval) -> str | None:
    """Report that the remaining work does not fit into the hours in which moves may be in flight; None if it does."""
    hours, wall_ms = run.control.pace.hours, at_ms + run.wall_ahead_ms
    goes_on = hours.at_end is AtWindowEnd.FINISH and not any(record.is_waiting for record in run.records.values())
    if not hours.are_limited or goes_on:
        return None
    now = open_interval(hours, wall_ms)
    if now is None or wall_ms + 1000 * end.expected_s <= now.ends_ms:
        return None
    takes = f"at the present rate what is left takes {max(1, round(end.expected_s / 60))} min"
    return f"{takes}, and moves may be in flight only until {local_time(hours, now.ends_ms)}"


def too_wide(end: Interval) -> str | None:
    """Give the range in place of an end, while what was measured leaves too much open; None if it does not."""
    if end.latest_s <= WIDEST * end.earliest_s:
        return None
    return f"what was measured so far allows anything from {_rounded(end.earliest_s)} to {_rounded(end.latest_s)}"


def _rounded(seconds: float) -> str:
    return f"{round(seconds)} s" if seconds < 120 else f"{round(seconds / 60)} min"


def reason_unmeasured(
    sides: Mapping[Endpoint, Side], *, has_begun: bool, unknown_count: int, best_bytes_per_s: float
) -> str:
    """Reason for a missing estimate when nothing hinders the run; the sizes of `unknown_count` copies are not known."""
    if not has_begun:
        return f"{CALCULATING}; no copy has begun yet"
    if unknown_count:
        return f"the size of {counted(unknown_count, 'copy', 'copies')} is not known"
    return next(_outrun(sides.items(), best_bytes_per_s), f"{CALCULATING}; copies have only just begun")


def _outrun(sides: Iterable[tuple[Endpoint, Side]], best_bytes_per_s: float) -> Iterator[str]:
    for (kind, broker), side in sides:
        measured, written = side.rate_bytes_per_s, side.write_bytes_per_s
        rate = best_bytes_per_s if measured is None else measured
        if side.left_bytes > 0 and written > 0 and written >= rate:
            does = f"broker {broker} {DOES[kind]} {format_amount(rate, 'B/s')}"
            yield f"copies grow as fast as they are made: {does}, and producers write {format_amount(written, 'B/s')}"
