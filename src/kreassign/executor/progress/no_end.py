"""Why nobody can say when a run ends: one sentence, from its state and from what was measured. Pure.

What keeps copies from going on comes before what keeps them from being measured. That a process is stopped, or gone, is
in no journal: who looks at a run from outside says it instead (`Progress.without_end`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kreassign.executor.guards.verdicts import STALL_MS
from kreassign.executor.progress.eta_interval import Interval, Side
from kreassign.executor.scheduling import AtWindowEnd
from kreassign.executor.scheduling.windows import moment, open_interval
from kreassign.executor.state import ENDED, MoveRecord, MoveStatus, Phase, RunView, WindDown
from kreassign.model.amount import format_amount

CALCULATING = "calculating"
"""With this begins what is only a matter of seconds."""

HAS_ENDED = "the run has ended"
"""With this begins that there is no end to wait for."""

STILL_MS = 30_000
"""A throttle lets copies pass in bursts, with pauses of eleven seconds at most (`eta_interval.QUOTA_MS`)."""

BEFORE_MOVING: Mapping[str, str] = {
    "New": f"{CALCULATING}; nothing was sent yet",
    "Resuming": "what the run had set is read again before it goes on",
    "Preparing": f"{CALCULATING}; the settings of its throttle are read first",
    "Throttling": f"{CALCULATING}; its throttle is set first",
}
"""By state."""

Endpoint = tuple[str, int]
DOES = {"out": "sends", "in": "gets", "within": "copies between its log directories"}


def hindrance(run: RunView, at_ms: int, measured_ms: int | None) -> str | None:
    """What keeps the run from its end, whatever its copies did before; their progress was last read at `measured_ms`.

    None where nothing does.
    """
    return next(_hindrances(run, at_ms, measured_ms), None)


def _hindrances(run: RunView, at_ms: int, measured_ms: int | None) -> Iterator[str]:
    yield from _not_moving(run)
    if run.in_flight and run.wind_down is WindDown.CANCEL:
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
        yield f"nothing is changed without the lease of the cluster: {run.lease}"
    if run.unreachable_since_ms is not None:
        yield f"the cluster has not answered since {run.time_of_day(run.unreachable_since_ms)}"
    if run.step in BEFORE_MOVING:
        yield BEFORE_MOVING[run.step]


def _sources_and_destinations(run: RunView) -> Iterator[str]:
    yield from run.lost_destinations
    lagging = _lagging(run)
    offline = sorted({broker for record in lagging for broker in record.offline if broker not in run.absent})
    for broker in offline:
        count = sum(broker in record.offline for record in lagging)
        yield f"a log directory of broker {broker} is offline, and {count} moves copy to it"
    for record in lagging:
        if not record.has_leader and record.observation is not None:
            yield f"{record.name} has no leader, so there is nothing to copy from"


def _lagging(run: RunView) -> tuple[MoveRecord, ...]:
    return tuple(record for record in run.in_flight if record.lagging)


def _standstill(run: RunView, measured_ms: int) -> Iterator[str]:
    """Copies share what their brokers let through, so one of them may wait for long; all of them do not."""
    since = {record.name: at_ms for record in _lagging(run) if (at_ms := record.progressed_ms) is not None}
    latest = max(since.values(), default=measured_ms)
    if measured_ms - latest >= STILL_MS:
        yield f"no copy has made progress since {run.time_of_day(latest)}"
    for name, at_ms in since.items():
        if measured_ms - at_ms >= STALL_MS:
            yield f"{name} has made no progress since {run.time_of_day(at_ms)}"


def beyond_hours(run: RunView, at_ms: int, end: Interval) -> str | None:
    """That what is left does not fit into the time in which moves may be in flight; None where it does."""
    hours, wall_ms = run.pace.hours, at_ms + run.wall_ahead_ms
    if not hours.are_limited or (now := open_interval(hours, wall_ms)) is None:
        return None
    goes_on = hours.at_end is AtWindowEnd.FINISH and not any(
        record.status is MoveStatus.PLANNED for record in run.records.values()
    )
    if goes_on or wall_ms + 1000 * end.expected_s <= now.ends_ms:
        return None
    takes = f"at the present rate what is left takes {max(1, round(end.expected_s / 60))} min"
    return f"{takes}, and moves may be in flight only until {moment(hours, now.ends_ms)}"


def unmeasured(sides: Mapping[Endpoint, Side], *, has_begun: bool, unknown_count: int, best_bytes_per_s: float) -> str:
    """Why there is no number though nothing hinders the run; the sizes of `unknown_count` copies are not known."""
    if not has_begun:
        return f"{CALCULATING}; no copy has begun yet"
    if unknown_count:
        return f"the sizes of {unknown_count} copies are not known"
    return next(_outrun(sides.items(), best_bytes_per_s), f"{CALCULATING}; copies have only just begun")


def _outrun(sides: Iterable[tuple[Endpoint, Side]], best_bytes_per_s: float) -> Iterator[str]:
    for (kind, broker), side in sides:
        measured, written = side.rate_bytes_per_s, side.write_bytes_per_s
        rate = best_bytes_per_s if measured is None else measured
        if side.left_bytes > 0 and written > 0 and written >= rate:
            does = f"broker {broker} {DOES[kind]} {format_amount(rate, 'B/s')}"
            yield f"copies grow as fast as they are made: {does}, and producers write {format_amount(written, 'B/s')}"
