"""Free space on the disks of destinations: what an inspection found free, less what is promised since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kreassign.executor.guards import GuardName, Health
from kreassign.executor.scheduling import Choice, DiskBudget, find_cycle
from kreassign.executor.scheduling.candidate import Endpoint
from kreassign.executor.state.move import MoveStatus
from kreassign.executor.state.move_index import candidate, left_of
from kreassign.executor.state.phases import Names
from kreassign.executor.state.run import Run
from kreassign.model import TopicPartition

STUCK = "disk space"
"""The kind of what is told of moves for which no disk has space."""


def take_stock(run: Run, starting: Names, health: Health) -> tuple[Names, Names]:
    """Count the free space again. Which of the moves about to start have some, and what the disk guard judges.

    That is what starts, or if nothing can, what would.
    """
    if GuardName.DISK not in run.identity.reactions:
        return starting, starting
    wanted = starting or run.health.stuck
    copying = (left_of(record) for record in run.moves.in_flight)
    usable = _usable(health, run.control.pace.disk_reserve)
    run.health.disk_budget = DiskBudget.after(usable, copying, run.control.rates.slowest_bytes_per_s)
    starting = tuple(_admitted(run, starting))
    return starting, starting if starting or run.moves.in_flight else wanted


def note_stuck(run: Run, choice: Choice, at_ms: int) -> None:
    """Say once that disks have free space for nothing, and which brokers wait for each other."""
    was_stuck, run.health.stuck = bool(run.health.stuck), ()
    if choice.starting or run.moves.in_flight:
        run.tell(STUCK, at_ms)
        return
    waiting = [candidate(run.moves.records[one.topic_partition]) for one in choice.waiting]
    refused = [
        (move.topic_partition, reason)
        for move in waiting
        if (reason := run.health.disk_budget.refuses(move)) is not None
    ]
    run.health.stuck = tuple(name for name, _ in refused)
    if run.health.stuck and not was_stuck:
        first, reason = refused[0]
        run.tell(
            STUCK,
            at_ms,
            f"disks have no space for any of {len(refused)} moves: {first} waits because "
            f"{reason}{_circle_text(run)}; free space there, or `kreassign cancel` and replan",
        )
    if not run.health.stuck:
        run.tell(STUCK, at_ms)


def _usable(health: Health, reserve: float) -> dict[Endpoint, float]:
    usable: dict[Endpoint, float] = {}
    for space in health.log_dir_space:
        free = space.usable_bytes - reserve * space.total_bytes
        usable["log_dir", (space.broker, space.path)] = free
        usable["destination", space.broker] = usable.get(("destination", space.broker), 0.0) + max(0.0, free)
    return usable


def _admitted(run: Run, names: Iterable[TopicPartition]) -> Iterator[TopicPartition]:
    """Of these moves, one after the other, those with free space. What was sent already may well be under way."""
    budget = run.health.disk_budget.copy()
    for name in names:
        record = run.moves.records[name]
        if record.status is MoveStatus.SENT or budget.refuses(candidate(record)) is None:
            budget.promise(candidate(record))
            yield name


def _circle_text(run: Run) -> str:
    """The brokers that can only be relieved by each other."""
    waiting = [run.moves.records[name] for name in run.health.stuck]
    ends = [end for record in waiting if (end := run.health.disk_budget.refusing(candidate(record))) is not None]
    full = {broker for _, which in ends for broker in ([which[0]] if isinstance(which, tuple) else [which])}
    waits = {
        broker: {to for record in waiting if broker in record.step.original for to in record.step.adding}
        for broker in full
    }
    found = find_cycle(waits)
    return f"; brokers {' -> '.join(map(str, (*found, found[0])))} wait for each other" if found else ""
