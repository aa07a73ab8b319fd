"""Asking something of a run that another process executes, through its journal; and watching it do so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from kreassign.clock import Clock, SystemClock
from kreassign.errors import ExecutionError, InputError, JournalDamaged
from kreassign.executor.events import (
    CancelRequested,
    HoldRequested,
    PaceRequested,
    ReleaseRequested,
    Request,
    ThrottleRequested,
)
from kreassign.executor.history.interrupted_runs import UnreadableJournal
from kreassign.executor.history.run_history import RunHistory, history, read_history
from kreassign.executor.history.snapshots import latest_start, read_progress
from kreassign.executor.journal import BEGINNING, JournalReader, post_request, stopped_process_in, stored_snapshots
from kreassign.executor.progress.meter import Progress
from kreassign.executor.scheduling import PaceChange
from kreassign.executor.state import AT_REST
from kreassign.executor.throttle.adaptive import AdaptiveThrottle
from kreassign.operations.journals import is_active

PATIENCE_S = 60.0
"""A run hears requests between two calls; a call to a broker that hangs takes so long at most."""

ASK_EVERY_S = 0.2
LOOK_EVERY_S = 0.5
SYSTEM_CLOCK = SystemClock()


def pause(path: Path, clock: Clock = SYSTEM_CLOCK) -> Request:
    """Pause a run: no new moves start until `release`, those in flight go on. Raises what `ask` raises."""
    return ask(path, lambda number: HoldRequested(clock.now_ms(), number), clock)


def release(path: Path, clock: Clock = SYSTEM_CLOCK) -> Request:
    """Go on with a paused run: moves start again. Raises what `ask` raises."""
    return ask(path, lambda number: ReleaseRequested(clock.now_ms(), number), clock)


def cancel(path: Path, clock: Clock = SYSTEM_CLOCK, *, is_now: bool = True) -> Request:
    """End a run now, or else when what is in flight is done. Raises what `ask` raises."""
    return ask(path, lambda number: CancelRequested(clock.now_ms(), number, is_now), clock)


def set_throttle(
    path: Path,
    bytes_per_s: int | None,
    brokers: Iterable[int] = (),
    auto: AdaptiveThrottle | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Request:
    """Change the throttle of a run: of these brokers, or of all. Raises what `ask` raises."""
    return ask(path, lambda number: ThrottleRequested(clock.now_ms(), number, bytes_per_s, tuple(brokers), auto), clock)


def change_pace(path: Path, change: PaceChange, clock: Clock = SYSTEM_CLOCK) -> Request:
    """Change order, limits and hours of a run. Raises what `ask` raises."""
    return ask(path, lambda number: PaceRequested(clock.now_ms(), number, change), clock)


def ask(path: Path, make: Callable[[int], Request], clock: Clock) -> Request:
    """Ask, and wait until the run has answered by writing the request into its journal.

    Raises InputError when no process executes the run, ExecutionError when its process is stopped, the run ended, or it
    did not answer in time. What was not heard is void once another process resumes the run.
    """
    if not is_active(path):
        raise InputError(f"no process executes run {path.stem}; see `kreassign status {path.stem}`")
    if (process := stopped_process_in(path.parent)) is not None:
        raise ExecutionError(f"run {path.stem} was not asked: {_stopped(process)}, then ask again")
    # The answer comes after what is there now, so that nothing before the latest snapshot need be read.
    reader = JournalReader(path, next((one.position for one in stored_snapshots(path)), BEGINNING))
    request, deadline_s = post_request(path, make), clock.monotonic_s() + PATIENCE_S
    while True:
        goes_on = is_active(path)
        # By its number: the run notes when it took the request in, by a clock of its own.
        taken_in = (event for event in reader.new_events() if isinstance(event, Request))
        if (heard := next((event for event in taken_in if event.request == request.request), None)) is not None:
            return heard
        if not goes_on:
            raise ExecutionError(
                f"run {path.stem} finished before receiving the request; see `kreassign status {path.stem}`"
            )
        if (process := stopped_process_in(path.parent)) is not None:
            raise ExecutionError(f"run {path.stem} has not received the request yet: {_stopped(process)}")
        if clock.monotonic_s() > deadline_s:
            raise ExecutionError(
                f"run {path.stem} has not responded for {PATIENCE_S:.0f} s; it will respond when its current call "
                "to the cluster returns"
            )
        clock.sleep(ASK_EVERY_S)


def _stopped(process: int) -> str:
    return f"its process {process} is stopped; continue it with `fg` in its terminal, or with `kill -CONT {process}`"


def seen_from_outside(path: Path, progress: Progress, *, is_executed: bool) -> Progress:
    """The progress of a run as somebody sees it who knows, too, whether its process is there and goes on."""
    if not is_executed:
        left = replace(progress, outlook=())
        return left if progress.phase in AT_REST else left.without_end(_nobody(path))
    if (process := stopped_process_in(path.parent)) is None:
        return progress
    stop = f"{_stopped(process)}; until then its moves in flight go on, throttled but not guarded"
    return replace(progress, outlook=(stop, *progress.outlook)).without_end(stop)


def _nobody(path: Path) -> str:
    return (
        f"no process executes it; its moves in flight go on, and `kreassign resume {path.stem}` goes on with the rest"
    )


def watch(path: Path, clock: Clock = SYSTEM_CLOCK) -> Iterator[Progress]:
    """The progress of a run, whenever it may have changed, until no process executes it any more."""
    machine, meter, position = latest_start(path)
    reader = JournalReader(path, position)
    while True:
        # Asked before reading: whatever a process wrote before it went is then among the new events.
        goes_on = is_active(path)
        for event in reader.new_events():
            machine.replay(event)
            meter.follow(event)
        yield seen_from_outside(path, meter.progress(), is_executed=goes_on)
        if not goes_on:
            return
        clock.sleep(LOOK_EVERY_S)


def status(path: Path) -> RunHistory:
    """What became of a run so far. Raises JournalDamaged."""
    # Asked before reading: a process that ends in between has written how.
    return read_history(path, is_left=not is_active(path))


def status_or_problem(path: Path) -> RunHistory | UnreadableJournal:
    """The same, or that the journal cannot be read."""
    try:
        return status(path)
    except JournalDamaged as error:
        return UnreadableJournal(path, str(error))


def status_and_progress(path: Path) -> tuple[RunHistory, Progress]:
    """The same, and how far its moves are. Raises JournalDamaged."""
    is_executed = is_active(path)
    run, meter = read_progress(path)
    progress = seen_from_outside(path, meter.progress(), is_executed=is_executed)
    found = history(run if is_executed else run.as_left)
    return replace(found, outlook=progress.outlook), progress
