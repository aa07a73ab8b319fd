"""Facts of a look, whatever they mean: what changed since the last one, as events. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kreassign.autopilot import events
from kreassign.autopilot.events import Event, State
from kreassign.autopilot.gates import moved_by_others, others_now
from kreassign.autopilot.growth import use_of
from kreassign.autopilot.memory import Memory
from kreassign.autopilot.observation import Known, Unknown
from kreassign.autopilot.slow_brokers import catching_up, is_sync_unread, sync_changed
from kreassign.autopilot.symptoms import Look
from kreassign.model import TopicPartition
from kreassign.model.text import DAY_MS, HOUR_MS

MISSED_MS = 600_000
"""Longest break between two looks after which evidence still counts."""

SIGN_OF_LIFE_MS = 300_000
"""A look is written down so often, whatever it shows: else one that shows much is taken for a break, and its host for
lost."""

SYNC_EVERY_MS = 180_000
"""Followers that fell out of sync, and are back, are written down at most so often."""

MOST_MOVES = 5_000
"""Moves of others that are written down at once."""


def is_long_ago(last_ms: int | None, at_ms: int, every_ms: float) -> bool:
    """True if the last time is so long ago, or after now: the clock may have been set back."""
    return last_ms is None or not 0 <= at_ms - last_ms < every_ms


def is_sign_due(memory: Memory, looked: events.Looked, interval_s: float) -> bool:
    """True if a look, or one that read the same, was written down so long ago that this one is to be."""
    lasts = [memory.looked_ms]
    lasts += [memory.read_ms] if looked.are_read else []
    lasts += [memory.moves_read_ms] if looked.are_moves_read else []
    return any(is_long_ago(one, looked.at_ms, SIGN_OF_LIFE_MS - interval_s * 1000) for one in lasts)


def facts(look: Look) -> Iterator[Event]:
    """Events of what changed since the last look."""
    now, memory, _ = look
    went_on = memory.looked_ms is not None and abs(now.at_ms - memory.looked_ms) > MISSED_MS
    if went_on:
        yield events.WentOn(now.at_ms)
    if now.are_brokers_read:
        is_witnessed = memory.read_ms is not None and abs(now.at_ms - memory.read_ms) <= MISSED_MS
        if memory.read_ms is not None and not is_witnessed:
            yield from _unseen(memory, now.at_ms, now.at_ms - memory.read_ms, went_on=went_on)
        for broker in sorted(now.down - memory.away.keys()):
            yield events.BrokerWent(now.at_ms, broker, is_witnessed, now.held_by(broker) if is_witnessed else None)
        brokers, racks = tuple(sorted(now.replica_counts)), {**memory.racks, **now.racks}
        held = events.ReplicasHeld(now.at_ms, brokers, tuple(racks.get(one, "") for one in brokers))
        if not now.unread_topics and (memory.held is None or replace(memory.held, at_ms=now.at_ms) != held):
            yield held  # before those that came: they were emptied while they were down
        yield from (events.BrokerCame(now.at_ms, broker) for broker in sorted(memory.away.keys() & now.live))
    planned = now.down & now.in_maintenance
    if now.are_brokers_read and isinstance(now.maintenance, Known) and planned != memory.planned:
        yield events.OutagesPlanned(now.at_ms, tuple(sorted(planned)))
    yield from _others(look)
    if is_long_ago(memory.sync_ms, now.at_ms, SYNC_EVERY_MS) and (change := sync_changed(look)):
        yield change
    yield from _disks(look)


def _disks(look: Look) -> Iterator[events.DisksMeasured]:
    """Use of disks once an hour; what is unread counts as catching up, which hides growth, once it lasts an hour."""
    now, memory, _ = look
    last_ms = memory.disks[-1].at_ms if memory.disks else None
    if not is_long_ago(last_ms, now.at_ms, HOUR_MS):
        return
    uses = [use for broker, dirs in now.directories() for one in dirs if (use := use_of(broker, one)) is not None]
    catching = catching_up(memory, now)
    may_wait = bool(catching) and is_sync_unread(now) and not is_long_ago(last_ms, now.at_ms, 2 * HOUR_MS)
    if uses and not may_wait:
        yield events.DisksMeasured(now.at_ms, tuple(uses), catching)


def _others(look: Look) -> Iterator[events.OthersMoved]:
    now, memory, _ = look
    copying, moves = _copying(look), _moves_of_others(look)
    seen = copying or others_now(now)
    others_ms = memory.others.at_ms if memory.others else None
    last_ms = memory.others_moved_ms if copying else others_ms
    if seen and (moves or is_long_ago(last_ms, now.at_ms, SIGN_OF_LIFE_MS)):
        yield events.OthersMoved(now.at_ms, seen, moves, are_moving=copying is not None)


def _copying(look: Look) -> str | None:
    """Moves of others, as a sentence, or that they may move partitions, for the list was not read for long.

    A single look without an answer hides no growth: the lists before and after it show moves that last.
    """
    now, last_ms = look.now, look.memory.moves_read_ms
    is_long = last_ms is None or now.at_ms - last_ms > MISSED_MS
    if isinstance(now.moves_of_others, Unknown) and is_long:
        return f"whether others move partitions could not be read ({now.moves_of_others.why})"
    return moved_by_others(now)


def _moves_of_others(look: Look) -> tuple[TopicPartition, ...]:
    """Moves of others that were not written down lately; of very many some follow with the next looks.

    One that goes on is written again after a seventh of the rest, but after an hour at least and a day at most. Its
    rest may be short by that: of a rest below seven hours that is more than a seventh, and below an hour all of it.
    """
    now, memory, policy = look
    moves = now.moves_of_others.value if isinstance(now.moves_of_others, Known) else frozenset()
    every_ms = min(DAY_MS, max(HOUR_MS, policy.care.rest * 1000 / 7))
    due = sorted(one for one in moves if is_long_ago(memory.foreign_ms.get(one), now.at_ms, every_ms))
    return tuple(due[:MOST_MOVES])


def _unseen(memory: Memory, at_ms: int, unread_ms: int, *, went_on: bool) -> Iterator[Event]:
    """Take out of the evidence a time in which nothing was read: it shows nothing, not even health.

    Minutes of planning are no break after which evidence begins again, and no time in which anything was seen.
    """
    for finding in memory.open:
        if finding.lost_ms:
            yield events.SightBack(at_ms, finding.name, at_ms)
            yield events.SightLost(at_ms, finding.name, finding.is_gone)
        elif finding.state is not State.RUNNING and not went_on:
            yield events.SightBack(at_ms, finding.name, min(at_ms, finding.since_ms + unread_ms))
