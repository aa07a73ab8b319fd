"""Room on the disks of destinations: what an inspection found free, less what is promised since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kreassign.executor.guards import GuardName, Health
from kreassign.executor.scheduling import Choice, DiskBudget, find_cycle
from kreassign.executor.scheduling.values import Endpoint
from kreassign.executor.state.execution import Execution
from kreassign.executor.state.move import MoveRecord, MoveStatus
from kreassign.executor.state.move_index import candidate, left_of
from kreassign.model import TopicPartition


def take_stock(run: Execution, health: Health) -> tuple[TopicPartition, ...]:
    """Count the room anew, and keep of what is about to start only what finds some.

    Returns what the guard of the disks shall judge: what starts, or if nothing can, what would.
    """
    if GuardName.DISK not in run.reactions:
        return run.starting
    wanted = run.starting or run.stuck
    copying = (left_of(record) for record in run.in_flight)
    run.room = DiskBudget.after(_usable(health, run.pace.disk_reserve), copying, run.rates.slowest_bytes_per_s)
    run.starting = tuple(_fitting(run, run.starting))
    return run.starting if run.starting or run.in_flight else wanted


def promise(run: Execution, record: MoveRecord) -> None:
    """A move is sent: what it needs is no longer free."""
    run.room.promise(candidate(record))


def note_stuck(run: Execution, choice: Choice) -> None:
    """Say once that disks have room for nothing, and which brokers wait for each other."""
    was_stuck, run.stuck = bool(run.stuck), ()
    if choice.starting or run.in_flight:
        return
    waiting = [candidate(run.records[one.topic_partition]) for one in choice.waiting]
    refused = [(move.topic_partition, reason) for move in waiting if (reason := run.room.refuses(move)) is not None]
    run.stuck = tuple(name for name, _ in refused)
    if run.stuck and not was_stuck:
        first, reason = refused[0]
        run.note(
            f"disks have room for none of {len(refused)} moves: {first} waits because "
            f"{reason}{_circle_text(run)}; free space there, or `kreassign cancel` and plan anew"
        )


def _usable(health: Health, reserve: float) -> dict[Endpoint, float]:
    usable: dict[Endpoint, float] = {}
    for room in health.room:
        free = room.usable_bytes - reserve * room.total_bytes
        usable["log_dir", (room.broker, room.path)] = free
        usable["destination", room.broker] = usable.get(("destination", room.broker), 0.0) + max(0.0, free)
    return usable


def _fitting(run: Execution, names: Iterable[TopicPartition]) -> Iterator[TopicPartition]:
    """Of these moves, one after the other, those that find room. What was sent already may well be under way."""
    room = run.room.copy()
    for name in names:
        record = run.records[name]
        if record.status is MoveStatus.SENT or room.refuses(candidate(record)) is None:
            room.promise(candidate(record))
            yield name


def _circle_text(run: Execution) -> str:
    """The brokers that can only be relieved by each other."""
    waiting = [run.records[name] for name in run.stuck]
    ends = [end for record in waiting if (end := run.room.refusing(candidate(record))) is not None]
    full = {broker for _, which in ends for broker in ([which[0]] if isinstance(which, tuple) else [which])}
    waits = {
        broker: {to for record in waiting if broker in record.step.original for to in record.step.adding}
        for broker in full
    }
    found = find_cycle(waits)
    return f"; brokers {' -> '.join(map(str, (*found, found[0])))} wait for each other" if found else ""
