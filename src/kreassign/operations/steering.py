"""Steer a run that another process executes: requests reach it through its journal.

Asks no cluster and loads no client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ExecutionError, InputError
from kreassign.executor.events import (
    CallFailed,
    CancelRequested,
    Event,
    HoldRequested,
    LeadersElected,
    MovesObserved,
    PaceRequested,
    ReleaseRequested,
    Request,
    ThrottleRequested,
    ThrottleRestored,
    ThrottleSet,
    Verified,
)
from kreassign.executor.history.run_history import UnreadableJournal, read_view, refuse_over
from kreassign.executor.journal import (
    BEGINNING,
    JournalReader,
    holding_process,
    post_request,
    stopped_process_in,
    stored_snapshots,
)
from kreassign.executor.preview import rate_advice, starved
from kreassign.model.pace import PaceChange
from kreassign.model.text import least_rate_option, some_of
from kreassign.model.throttle import AdaptiveThrottle, check_rate
from kreassign.operations.run_journals import is_active, status, status_or_problem, stopped_text, this_operator

_GO_ON = "`kreassign resume {}` goes on with it"
NAMED_BROKERS = 20
"""Most brokers that a message names."""

PATIENCE_S = 60.0
"""A run reads requests between two calls; a call to a broker that hangs takes at most this long."""

ASK_EVERY_S = 0.2


def pause(path: Path, clock: Clock = SYSTEM_CLOCK, *, by: str | None = None) -> Request:
    """Pause a run: no new moves start until `release`, those in flight go on. Raises what `ask` raises."""
    name = by or this_operator().name
    return ask(path, lambda number: HoldRequested(clock.now_ms(), number, name), clock)


def release(path: Path, clock: Clock = SYSTEM_CLOCK) -> Request:
    """Go on with a paused run: moves start again. Raises what `ask` raises."""
    return ask(path, lambda number: ReleaseRequested(clock.now_ms(), number), clock)


def cancel(path: Path, clock: Clock = SYSTEM_CLOCK, *, is_now: bool = True, by: str | None = None) -> Request:
    """End a run now, or else when what is in flight is done. Raises what `ask` raises."""
    name = by or this_operator().name
    return ask(path, lambda number: CancelRequested(clock.now_ms(), number, is_now, name), clock)


def set_throttle(
    path: Path,
    bytes_per_s: int | None,
    brokers: Iterable[int] = (),
    auto: AdaptiveThrottle | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Request:
    """Change the throttle of a run: of these brokers, or of all.

    Raises InputError for a rate that no run can have, which would end its process, and for a broker that has no part in
    it; and what `ask` raises.
    """
    if bytes_per_s is not None and bytes_per_s <= 0:
        raise InputError(f"with {bytes_per_s} no move would ever end; give more, or no limit")
    check_rate(bytes_per_s)
    named = tuple(brokers)
    if named:
        of_run = {broker for record in read_view(path).records.values() for broker in record.brokers}
        if strange := sorted(set(named) - of_run):
            who = f"broker {strange[0]} has" if len(strange) == 1 else f"brokers {some_of(strange, NAMED_BROKERS)} have"
            raise InputError(
                f"{who} no part in run {path.stem}; its brokers are {some_of(sorted(of_run), NAMED_BROKERS)}"
            )
    return ask(path, lambda number: ThrottleRequested(clock.now_ms(), number, bytes_per_s, named, auto), clock)


def starved_moves(path: Path) -> tuple[str, ...]:
    """Sentences on moves of a run that never end at its throttle, by what was written when it began; advice first."""
    run = read_view(path)
    moves = [record.wanted for record in run.records.values() if record.ended_ms is None]
    writes = {move.topic_partition: move.write_bytes_per_s for move in moves}
    rates, caps = run.control.rates, run.control.pace.caps
    found = [str(one) for one in starved(moves, writes, rates, caps) if one.is_certain]
    least = least_rate_option(rate_advice(moves, writes, caps).bytes_per_s)
    return (f"the least rate that works for all moves left is {least}", *found) if found else ()


IN_FORCE_S = 10.0
"""A run looks at its moves, and writes settings, within a poll or two, where the cluster answers."""

LOOKS_AGAIN = "as soon as it looks at its moves again"
"""When a request to hold, to go on, or for another pace is in force: what was chosen before it is still sent."""

_AFTER_A_LOOK: tuple[type[Event], ...] = (MovesObserved, LeadersElected, ThrottleRestored, Verified)
"""Events after which nothing follows from what a run chose before; the last ones where no move is left."""


def in_force(path: Path, request: Request, sentence: str, awaited: str, clock: Clock = SYSTEM_CLOCK) -> str:
    """The sentence on an accepted request once it is in force, else that it was asked, and until when."""
    if is_in_force(path, request, clock):
        return sentence
    silence = status(path).silence
    return f"asked; {sentence} {awaited}" + ("" if silence is None else f"; {silence}")


def is_in_force(path: Path, request: Request, clock: Clock = SYSTEM_CLOCK) -> bool:
    """True once the run acts on an accepted request; False if its next call to the cluster fails, or takes long.

    A throttle is in force when its settings are written, or are as they should be; anything else when the run has
    looked at its moves since.
    """
    is_throttle = isinstance(request, ThrottleRequested)
    awaited = (ThrottleSet, MovesObserved) if is_throttle else _AFTER_A_LOOK
    reader = JournalReader(path, next((one.position for one in stored_snapshots(path)), BEGINNING))
    is_accepted, deadline_s = False, clock.monotonic_s() + IN_FORCE_S
    while True:
        for event in reader.new_events():
            is_accepted = is_accepted or (isinstance(event, Request) and event.request == request.request)
            if is_accepted and isinstance(event, CallFailed):
                return False
            if is_accepted and isinstance(event, ThrottleSet) and is_throttle:
                return not event.problems
            if is_accepted and isinstance(event, awaited):
                # Where settings cannot be read, moves are looked at before any is written.
                return not (is_throttle and read_view(path).is_throttle_due)
        if clock.monotonic_s() > deadline_s or not is_active(path):
            return False
        clock.sleep(ASK_EVERY_S)


def change_pace(path: Path, change: PaceChange, clock: Clock = SYSTEM_CLOCK) -> Request:
    """Change order, limits and hours of a run. Raises what `ask` raises, and InputError for an unknown time zone."""
    return ask(path, lambda number: PaceRequested(clock.now_ms(), number, change), clock)


def refuse_if_over(path: Path, deed: str) -> None:
    """Raise InputError if nothing is left to do for the run with the journal at `path`."""
    refuse_over(read_view(path), deed)


def ask(path: Path, make: Callable[[int], Request], clock: Clock) -> Request:
    """Post a request, and wait until the run has accepted it in its journal.

    Raises InputError when no process executes the run, or it ended meanwhile; ExecutionError when its process is
    stopped or gone, or did not answer in time. A request is for the process that executes the run when it is stored:
    whoever is told that this one is gone was not heard, and is not later.
    """
    _refuse_unheard(path)
    process: str | None = None

    def make_for_process(number: int) -> Request:
        nonlocal process
        _refuse_unheard(path)
        process = holding_process(path.parent)
        return make(number)

    # The answer comes after the present events, so events before the latest snapshot need not be read.
    reader = JournalReader(path, next((one.position for one in stored_snapshots(path)), BEGINNING))
    request, deadline_s = post_request(path, make_for_process), clock.monotonic_s() + PATIENCE_S
    while True:
        # Before the events: a process that is gone by then has written all of its own.
        goes_on, is_same = is_active(path), holding_process(path.parent) == process
        # Matched by number: the run records the request by a clock of its own.
        taken_in = (event for event in reader.new_events() if isinstance(event, Request))
        if (heard := next((event for event in taken_in if event.request == request.request), None)) is not None:
            return heard
        if not goes_on:
            refuse_if_over(path, "steer")
            raise ExecutionError(f"run {path.stem} was left before it got the request; {_GO_ON.format(path.stem)}")
        if not is_same:
            raise ExecutionError(
                f"another process resumed run {path.stem} meanwhile, and does not get the request; look at "
                f"`kreassign status {path.stem}`, then ask again"
            )
        if (stopped := stopped_process_in(path.parent)) is not None:
            raise ExecutionError(f"run {path.stem} has not received the request yet: {stopped_text(stopped)}")
        if clock.monotonic_s() > deadline_s:
            raise ExecutionError(
                f"run {path.stem} has not responded for {PATIENCE_S:.0f} s; it will respond when its current call "
                "to the cluster returns"
            )
        clock.sleep(ASK_EVERY_S)


def _refuse_unheard(path: Path) -> None:
    """Raise InputError or ExecutionError unless a process executes the run and is not stopped."""
    if not is_active(path):
        found = status_or_problem(path)
        if isinstance(found, UnreadableJournal):
            raise InputError(f"no process executes run {path.stem}; see `kreassign status {path.stem}`")
        refuse_if_over(path, "steer")
        raise InputError(f"no process executes run {path.stem}; {_GO_ON.format(path.stem)}")
    if (stopped := stopped_process_in(path.parent)) is not None:
        raise ExecutionError(f"run {path.stem} was not asked: {stopped_text(stopped)}, then ask again")
