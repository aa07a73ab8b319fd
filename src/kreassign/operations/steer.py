"""Asking something of a run that another process executes, through its journal; and watching it do so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from kreassign.clock import Clock, SystemClock
from kreassign.errors import ExecutionError, InputError
from kreassign.executor.events import (
    CancelRequested,
    HoldRequested,
    PaceRequested,
    ReleaseRequested,
    Request,
    ThrottleRequested,
)
from kreassign.executor.history.interrupted_runs import UnreadableJournal, read_or_name
from kreassign.executor.history.run_history import RunHistory, history, read_history
from kreassign.executor.history.snapshots import latest_start, read_progress
from kreassign.executor.journal import BEGINNING, JournalReader, post_request, stopped_process_in, stored_snapshots
from kreassign.executor.progress.meter import Progress
from kreassign.executor.scheduling import PaceChange
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


def cancel(path: Path, clock: Clock = SYSTEM_CLOCK, *, is_now: bool = False) -> Request:
    """End a run when what is in flight is done; with `is_now` cancel that too. Raises what `ask` raises."""
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


def _with_stop(path: Path, outlook: tuple[str, ...]) -> tuple[str, ...]:
    """What lies ahead of a run; a stopped process comes first."""
    process = stopped_process_in(path.parent) if is_active(path) else None
    if process is None:
        return outlook
    return (f"{_stopped(process)}; until then its moves in flight go on, throttled but not guarded", *outlook)


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
        progress = meter.progress()
        yield replace(progress, outlook=_with_stop(path, progress.outlook))
        if not goes_on:
            return
        clock.sleep(LOOK_EVERY_S)


def status(path: Path) -> RunHistory:
    """What became of a run so far. Raises JournalDamaged."""
    return read_history(path)


def status_or_problem(path: Path) -> RunHistory | UnreadableJournal:
    """The same, or that the journal cannot be read."""
    return read_or_name(path)


def status_and_progress(path: Path) -> tuple[RunHistory, Progress]:
    """The same, and how far its moves are. Raises JournalDamaged."""
    run, meter = read_progress(path)
    found = history(run)
    return replace(found, outlook=_with_stop(path, found.outlook)), meter.progress()
