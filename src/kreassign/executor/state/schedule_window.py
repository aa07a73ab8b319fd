"""The hours of a run: what may be started in the time that is left, and how to treat moves when it is over.

Hours of the day are the wall clock's, as it is now; how long something takes is a matter of the run's own time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kreassign.executor.scheduling import AtWindowEnd, Candidate, TimeLeft, forecast
from kreassign.executor.scheduling.windows import REACHED, OpenInterval, moment, open_interval, shortfalls
from kreassign.executor.state.move import MoveRecord, MoveStatus
from kreassign.executor.state.move_index import left_of
from kreassign.executor.state.phases import Names
from kreassign.executor.state.run import Run, WindDown


def take_in(run: Run, at_ms: int, *, has_progress: bool = True) -> None:
    """Measure if there is progress, and end the run when no time is left in which a move may be in flight."""
    hours = run.control.pace.hours
    if not hours.are_limited:
        run.moves.outlook = ()
        return
    if has_progress:
        run.moves.speed.measure(run.moves.records.values(), at_ms)
    if open_interval(hours, _wall_ms(run, at_ms)) is None and run.control.wind_down is None:
        run.control.wind_down, run.moves.outlook = (
            WindDown.CANCEL if hours.at_end is AtWindowEnd.CANCEL else WindDown.FINISH,
            (),
        )
        run.note("its deadline is over: what had not been started by then is left out")


def time_left(run: Run, moving: Iterable[MoveRecord], at_ms: int) -> TimeLeft | None:
    """What pacing wants to know of the time; None where it does not matter. Says what will not fit."""
    if not run.control.pace.hours.are_limited:
        return None
    in_flight = [left_of(record) for record in moving]
    _foresee(run, in_flight, at_ms)
    now = _open_now(run, at_ms)
    seconds = 0.0 if now is None else (now.ends_ms - _wall_ms(run, at_ms)) / 1000
    return TimeLeft.after(seconds, rate(run), in_flight)


def postponed(run: Run, at_ms: int) -> Names:
    """Moves in flight after a window has closed, if they are to be cancelled then; they start again in the next one."""
    hours = run.control.pace.hours
    if not hours.are_limited or hours.at_end is not AtWindowEnd.CANCEL or _open_now(run, at_ms) is not None:
        return ()
    moving = [record for record in run.moves.in_flight if record.status is MoveStatus.MOVING]
    for record in moving:
        record.is_postponed = True
    return tuple(record.name for record in moving)


def sleeps(run: Run, at_ms: int) -> bool:
    """Whether there is nothing to see until a window opens."""
    hours = run.control.pace.hours
    if (
        run.control.wind_down is not None
        or not hours.are_limited
        or run.moves.in_flight
        or _open_now(run, at_ms) is not None
    ):
        return False
    return open_interval(hours, _wall_ms(run, at_ms)) is not None


def closed(run: Run, at_ms: int) -> str | None:
    """That no window is open, and when the next one opens."""
    hours, wall_ms = run.control.pace.hours, _wall_ms(run, at_ms)
    if not hours.are_limited:
        return None
    next_one = open_interval(hours, wall_ms)
    if next_one is None or next_one.begins_ms <= wall_ms:
        return None
    return f"waits for its window, which opens {moment(hours, next_one.begins_ms)}"


def _foresee(run: Run, in_flight: Sequence[Candidate], at_ms: int) -> None:
    """Say what the run waits for, and what will not fit. Where nothing is left that will, it does not wait for ever."""
    hours, waiting = run.control.pace.hours, run.moves.index.queue.moves
    run.moves.outlook = ()
    if not waiting:
        return
    if (waits := closed(run, at_ms)) is not None:
        run.moves.outlook = (waits,)
    wall_ms = _wall_ms(run, at_ms)
    bytes_per_s = rate(run)
    if bytes_per_s is None:
        return
    found = forecast((*waiting, *in_flight), hours, wall_ms, bytes_per_s, run.control.pace.order)
    run.moves.outlook = (*run.moves.outlook, *shortfalls(found, hours, bytes_per_s))
    if not run.moves.in_flight and len(found.too_long) == len(waiting):
        for record in [run.moves.records[one.topic_partition] for one in waiting]:
            record.give_up(at_ms, "at the rate of the run, no time in which it may be in flight is long enough for it")
            run.moves.index.sort(record)


def rate(run: Run) -> float | None:
    """What the slowest broker sends, or receives, for the moves of this run; None as long as nobody knows."""
    limit = run.control.rates.slowest_bytes_per_s
    return run.moves.speed.fastest_bytes_per_s if limit is None else limit * REACHED


def _open_now(run: Run, at_ms: int) -> OpenInterval | None:
    wall_ms = _wall_ms(run, at_ms)
    now = open_interval(run.control.pace.hours, wall_ms)
    return now if now is not None and now.begins_ms <= wall_ms else None


def _wall_ms(run: Run, at_ms: int) -> int:
    return at_ms + run.wall_ahead_ms
