"""Decide what may start now, by guards, free space on disks, and the hours of the run.

Moves to destinations that are down wait. Only where the operator chose how long, they are given up then, or planned
again (`health_check.py`): a large broker takes long to recover, and copies that are cancelled are thrown away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from kreassign.executor import guards
from kreassign.executor.events import HealthObserved, PlannedMove, VerdictsRecorded
from kreassign.executor.scheduling import windows
from kreassign.executor.scheduling.limits import DiskBudget, LogDirKey, PacedMove, find_cycle
from kreassign.executor.scheduling.queue import NextMoves
from kreassign.executor.state import throttling
from kreassign.executor.state.move import MoveRecord
from kreassign.executor.state.phases import Names
from kreassign.executor.state.run import (
    GuardBreach,
    Run,
    WindDown,
    candidate,
    left_by_destination,
    left_by_log_dir,
    left_of,
    startable,
)
from kreassign.model import NO_LEADER, TopicPartition, TopicPartitionReplica
from kreassign.model.cluster import named_brokers
from kreassign.model.disks import disks_of_brokers
from kreassign.model.pace import AtWindowEnd
from kreassign.model.run import MoveStatus

# Free space on the disks of destinations: that of the last inspection, less promises made since.

STUCK = "disk space"
"""Kind of messages about moves for which no disk has space."""


def take_stock(run: Run, starting: Names, health: guards.Health) -> tuple[Names, Names]:
    """Recompute free space. Returns (moves that fit, moves the disk guard checks).

    The guard checks the moves that start, or those that would start if none can.
    """
    if guards.GuardName.DISK not in run.identity.reactions:
        return starting, starting
    wanted = starting or run.health.stuck
    copying = (*map(left_of, run.moves.under_way), *map(_of_others, health.foreign_copies))
    arrived = {
        TopicPartitionReplica(one.broker, *one.topic_partition): one.path
        for one in health.foreign_copies
        if one.path is not None
    }
    spaces = health.log_dir_space
    reserve = run.control.pace.disk_reserve
    run.health.disk_budget = DiskBudget.after(
        {("log_dir", (one.broker, one.path)): one.usable_bytes - reserve * one.total_bytes for one in spaces},
        copying,
        run.control.rates.slowest_bytes_per_s,
        replica_counts={(one.broker, one.path): one.replica_count for one in spaces if not one.is_cordoned},
        places=arrived | _places(spaces),
        shared=dict(_shared(spaces)),
        leaving={
            (one.broker, one.path): {name for name in one.arriving if _leaves(run, name, one.broker, one.path)}
            for one in spaces
        },
    )
    starting = tuple(_admitted(run, starting))
    return starting, starting if starting or run.moves.under_way else wanted


def _places(spaces: Iterable[guards.LogDirSpace]) -> dict[TopicPartitionReplica, str]:
    """Directories of the copies of this run, where known."""
    return {TopicPartitionReplica(one.broker, *name): one.path for one in spaces for name in one.arriving}


def _leaves(run: Run, name: TopicPartition, broker: int, path: str) -> bool:
    """True if a move in flight takes its replica out of this directory, with the broker or to another directory."""
    if (record := run.moves.index.in_flight.get(name)) is None:
        return False
    step = record.step
    is_elsewhere = any(one.broker == broker and one.path != path for one in step.log_dirs)
    return is_elsewhere or broker in step.reassignment.removing


def _shared(spaces: Iterable[guards.LogDirSpace]) -> Iterator[tuple[LogDirKey, tuple[LogDirKey, ...]]]:
    """Directories that share a disk with others of their broker, each with all of them."""
    for alike in disks_of_brokers(spaces):
        places = tuple((one.broker, one.path) for one in alike)
        yield from ((place, places) for place in places if len(places) > 1)


def _of_others(copy: guards.ForeignCopy) -> PacedMove:
    """A copy that another tool started, as pacing sees it; its leader does not matter."""
    place = () if copy.path is None else ((copy.broker, copy.path),)
    return PacedMove(copy.topic_partition, copy.left_bytes, NO_LEADER, () if place else (copy.broker,), place)


def note_stuck(run: Run, choice: NextMoves, at_ms: int) -> None:
    """Report once that disks have space for no move, and which brokers wait for each other."""
    was_stuck, run.health.stuck = bool(run.health.stuck), ()
    held = {one.topic_partition for one in choice.waiting}
    # A submission without an answer may copy, and free space at its end, also where it is not sent again now.
    if choice.starting or any(not (record.is_waiting and record.name in held) for record in run.moves.in_flight):
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
            f"disks have no space for {any_of(len(refused))}: {first} waits because "
            f"{reason}{_circle_text(run)}; free space there, or `kreassign cancel` and replan",
        )
    if not run.health.stuck:
        run.tell(STUCK, at_ms)


def any_of(moves: int) -> str:
    """Text for so many moves of which none can start."""
    return "the move that waits" if moves == 1 else f"any of {moves:,} moves"


def _admitted(run: Run, names: Iterable[TopicPartition]) -> Iterator[TopicPartition]:
    """Moves with free space, in order. Moves sent before have theirs: they may be in progress."""
    budget = run.health.disk_budget.copy()
    for name in names:
        record = run.moves.records[name]
        if budget.refuses(startable(record)) is None:
            budget.promise(startable(record))
            yield name


def _circle_text(run: Run) -> str:
    """Name the brokers that can only be relieved by each other."""
    waiting = [run.moves.records[name] for name in run.health.stuck]
    ends = [end for record in waiting if (end := run.health.disk_budget.refusing(candidate(record))) is not None]
    full = {broker for _, which in ends for broker in ([which[0]] if isinstance(which, tuple) else [which])}
    waits = {
        broker: {to for record in waiting if broker in record.step.original for to in record.step.adding}
        for broker in full
    }
    found = find_cycle(waits)
    return f"; brokers {' -> '.join(map(str, (*found, found[0])))} wait for each other" if found else ""


# Health checks during the moves: verdicts of guards, and destinations that are down.

CHECK_EVERY_MS = 30_000
"""Interval of health checks: they query all topics, so they are not made with every poll."""

FRESH_MS = 10_000
"""Maximum age of the last check before moves are started."""

REPLANNING = "planning moves again"
"""Kind of messages about planning moves again."""

OTHERS = "others"
"""Kind of messages about moves of others that a move waits for."""

REPLAN_AFTER_MS = 60_000
"""Where nothing else was chosen, a run that replans takes a destination for lost that is down for this long."""


def is_health_check_due(run: Run, starting: Names, at_ms: int) -> bool:
    """True if the health of the cluster must be checked before going on."""
    is_wanted = run.identity.reactions or run.throttle.awaited or run.throttle.is_due
    if not (is_wanted or lost_after_ms(run) is not None):
        return False
    if run.health.checked_ms is None or (run.health.suspected and run.control.wind_down is None):
        return True
    patience_ms = FRESH_MS if starting else CHECK_EVERY_MS
    return at_ms - run.health.checked_ms >= patience_ms


def first_look(run: Run) -> guards.Health | None:
    """The inspection with which others are compared: the first that read all, or after which a move was sent.

    Trouble from before the run that was not read would look like trouble of the run; None if no inspection counts yet.
    """
    first = run.health.first
    if first is None or not any(one.guard in guards.OF_PARTITIONS for one in first.unread):
        return first
    return first if any(record.submitted_ms is not None for record in run.moves.records.values()) else None


def judge(run: Run, starting: Names, event: HealthObserved) -> tuple[Names, tuple[guards.Verdict, ...]]:
    """Process an inspection: return the starting moves that have disk space, and the verdicts of the guards."""
    watch, health = run.health, event.health
    watch.checked_ms = event.at_ms
    for breach in watch.breaches:
        breach.last_ms = event.at_ms if breach.until_ms is None else breach.last_ms
    starting, wanted = take_stock(run, starting, health)
    watch.first = first_look(run) or health
    destinations = run.moves.index.destinations
    watched = (setting.key for setting in run.throttle.watched)
    read = dict.fromkeys((*watched, *(present.key for present in health.foreign_configs)))
    throttling.take_in_check(run, event.at_ms, read, health.foreign_configs, health.unread_configs)
    _note_absences(run, event.at_ms, (destinations | watch.replaced).difference(health.live))
    holds = run.identity.reactions.get(guards.GuardName.CORDONED) is guards.Reaction.HOLD
    watch.closed = frozenset(health.cordoned) if holds else frozenset()
    watch.refused = frozenset(health.refused) if holds else frozenset()
    watch.to_lead_nothing = frozenset(health.to_lead_nothing) if holds else frozenset()
    starting = tuple(name for name in starting if not _waits_for_broker(run, run.moves.records[name]))
    is_holding = run.identity.reactions.get(guards.GuardName.CLIENTS, guards.Reaction.WARN) is not guards.Reaction.WARN
    run.clients = run.clients.after(health.clients, event.at_ms, is_holding=is_holding)
    clients = run.clients.readings
    unread = (*health.unread, *guards.unread_clients(clients))
    # What was refused for now copies nothing until it is sent again: it needs no room, and cannot stall.
    under_way = {record.name: record for record in run.moves.under_way}
    coming = (under_way | {name: run.moves.records[name] for name in wanted}).values()
    now = guards.GuardInputs(
        health=replace(health, foreign_configs=run.throttle.foreign, clients=clients, unread=unread),
        first=watch.first,
        moves=tuple(record for record in under_way.values() if record.lagging),
        destinations=tuple(sorted(destinations)),
        at_ms=event.at_ms,
        incoming_bytes=left_by_destination(coming),
        incoming_by_log_dir=left_by_log_dir(coming, _places(health.log_dir_space)),
        disk_reserve=run.control.pace.disk_reserve,
        our_configs={key: override.value for key, override in run.throttle.pending.items()},
        named_log_dirs=run.moves.index.named_log_dirs,
        to_be_named=_to_be_named(run) if health.refused else (),
        to_lead={broker for step in _waiting_steps(run) for broker in _new_leader(step)},
    )
    return starting, _seen_twice(run, guards.evaluate(now, run.identity.reactions))


def _seen_twice(run: Run, verdicts: Iterable[guards.Verdict]) -> tuple[guards.Verdict, ...]:
    """Let only what two inspections in a row have shown end the run; until the second one, it holds."""
    verdicts, before = tuple(verdicts), run.health.suspected
    run.health.suspected = frozenset(verdict.guard for verdict in verdicts if verdict.reaction in guards.ENDS_RUN)
    return tuple(verdict.awaiting_second_look if verdict.guard not in before else verdict for verdict in verdicts)


def _to_be_named(run: Run) -> set[int]:
    """Brokers in lists that are still to be sent."""
    return {broker for step in _waiting_steps(run) if step.target != step.original for broker in step.target}


def _waiting_steps(run: Run) -> Iterator[PlannedMove]:
    return (record.step for record in run.moves.active if record.is_waiting)


def _new_leader(step: PlannedMove) -> tuple[int, ...]:
    """The broker that the list puts first, where another one is first by now."""
    return step.target[:1] if step.target[:1] != step.original[:1] else ()


def are_news(run: Run, verdicts: tuple[guards.Verdict, ...]) -> bool:
    """True if guards, or what is done, differ from before; other figures of the same guard are no news."""
    before, now = (
        [(one.guard, one.reaction, one.is_partial) for one in some] for some in (run.health.verdicts, verdicts)
    )
    return now != before


def take_in_verdicts(run: Run, event: VerdictsRecorded) -> None:
    """Record the verdicts, and cancel the run if one of them demands it."""
    said = {verdict.guard for verdict in event.verdicts}
    open_before = [breach for breach in run.health.breaches if breach.until_ms is None]
    known = {breach.verdict.guard for breach in open_before}
    for breach in open_before:
        same = [verdict for verdict in event.verdicts if verdict.guard is breach.verdict.guard]
        # A second look may make a run end that held until then.
        breach.verdict = next((one for one in same if one.is_harsher_than(breach.verdict)), breach.verdict)
        if not any(map(breach.verdict.covers, same)):
            breach.until_ms = event.at_ms
    still = [breach.verdict for breach in open_before if breach.until_ms is None]
    if guards.GuardName.FOREIGN_THROTTLE in said - known:
        for present in run.throttle.foreign:
            run.throttle.put(replace(run.throttle.of(present.key), told=present))
    run.health.breaches += [
        GuardBreach(verdict, event.at_ms, event.at_ms)
        for verdict in event.verdicts
        if not any(one.covers(verdict) for one in still)
    ]
    run.health.verdicts = event.verdicts
    demanded = {verdict.reaction for verdict in event.verdicts}
    run.control = replace(
        run.control,
        wind_down=WindDown.CANCEL if demanded & guards.ENDS_RUN else run.control.wind_down,
        wants_rollback=run.control.wants_rollback or guards.Reaction.ROLLBACK in demanded,
    )


def is_held_by_guards(run: Run) -> bool:
    """True if no new move may be started now."""
    return run.control.is_held or bool(holding_guards(run))


def holding_guards(run: Run) -> tuple[guards.GuardName, ...]:
    """Guards that let no move start; one that holds single moves only where no other move waits."""
    holding = [verdict for verdict in run.health.verdicts if verdict.reaction is guards.Reaction.HOLD]
    goes_on = all(verdict.is_partial for verdict in holding) and any(
        not _awaited(run, move) and run.health.disk_budget.refuses(move) is None
        for move in (_waiting(run) if holding else ())
    )
    return () if goes_on else tuple(dict.fromkeys(verdict.guard for verdict in holding))


def lost_after_ms(run: Run) -> int | None:
    """Time that a destination is down until it counts as lost, in ms; None if moves to it wait until it is back."""
    chosen = run.control.lost_after_ms
    return REPLAN_AFTER_MS if chosen is None and run.control.replans else chosen


def away_text(run: Run, brokers: Collection[int]) -> str:
    """Text for destinations that are given up."""
    return f"its destination {named_brokers(brokers)} had been down for {(lost_after_ms(run) or 0) / 1000:g} s"


@dataclass(frozen=True, slots=True)
class OpenBrokers:
    """Admits no move to a broker that is down, where it would wait and count as in flight, or that takes no copies.

    A move that may begin already is sent again.
    """

    depends_on_size: ClassVar = False
    run: Run

    def refuses(self, move: PacedMove) -> str | None:
        """Name the broker that the move waits for, or None."""
        health = self.run.health
        if _may_begin(self.run, move):
            return None
        away = sorted((health.down | health.closed).intersection(_destinations(move)))
        return f"broker {away[0]} is down, or takes no copies" if away else None

    def promise(self, move: PacedMove) -> None:
        """Use up nothing."""


@dataclass(frozen=True, slots=True)
class TakenLists:
    """Admits no list with a broker for which Kafka refuses it, or that is to lead nothing and would be first.

    A list that may begin already is sent again.
    """

    depends_on_size: ClassVar = True  # a move between the same ends may keep other replicas
    run: Run

    def refuses(self, move: PacedMove) -> str | None:
        """Name the broker in the list, or None."""
        named = [] if _may_begin(self.run, move) else sorted(_refused(self.run, move))
        return f"broker {named[0]} may not be there in a changed list" if named else None

    def promise(self, move: PacedMove) -> None:
        """Use up nothing."""


def _may_begin(run: Run, move: PacedMove) -> bool:
    return run.moves.records[move.topic_partition].may_begin


def _waiting(run: Run) -> Iterator[PacedMove]:
    """Moves that are still to be sent, or to be sent again after the cluster refused them for now."""
    yield from run.moves.index.queue.moves
    yield from (candidate(record) for record in run.moves.in_flight if record.is_waiting)


def _destinations(move: PacedMove) -> tuple[int, ...]:
    return (*move.destinations, *move.rearranging)


def _awaited(run: Run, move: PacedMove) -> frozenset[int]:
    """Brokers for which a move waits that is still to be sent."""
    return (run.health.down | run.health.closed).intersection(_destinations(move)) | _refused(run, move)


def _refused(run: Run, move: PacedMove) -> frozenset[int]:
    step, health = run.moves.records[move.topic_partition].step, run.health
    named = health.refused.intersection(step.target if step.target != step.original else ())
    return named | health.to_lead_nothing.intersection(_new_leader(step))


def _waits_for_broker(run: Run, record: MoveRecord) -> bool:
    """True if the move is not to be started, because of a broker that it needs; one that may begin is sent again."""
    return not record.may_begin and bool(_awaited(run, candidate(record)))


def waiting_for_brokers(run: Run) -> dict[int, int]:
    """Brokers that are down, or take no copies, and how many moves wait for each."""
    health = run.health
    is_any = health.down or health.closed or health.refused or health.to_lead_nothing
    waiting = _waiting(run) if is_any else ()
    return dict(sorted(Counter(broker for move in waiting for broker in _awaited(run, move)).items()))


def _note_absences(run: Run, at_ms: int, absent: set[int]) -> None:
    """Fail the moves to brokers that are lost, unless they are planned again; other moves go on."""
    watch, limit_ms = run.health, lost_after_ms(run)
    watch.absent_since_ms = {broker: watch.absent_since_ms.get(broker, at_ms) for broker in absent}
    watch.down = frozenset(absent)
    down = {
        broker for broker, since in watch.absent_since_ms.items() if limit_ms is not None and at_ms - since >= limit_ms
    }
    watch.lost = tuple(sorted(down))
    if not down:
        run.tell(REPLANNING, at_ms)
    is_replanned = run.control.replans and run.control.wind_down is None
    for record in run.moves.active if down and not is_replanned else ():
        lost = sorted(down & set(record.lagging))
        if lost and (record.is_waiting or record.status is not MoveStatus.SENT):
            hint = "" if run.control.replans else ", or use `--replan` next time, which chooses other brokers"
            record.give_up(at_ms, f"{away_text(run, lost)}; plan it again{hint}")
            run.moves.index.sort(record)
            run.tell(OTHERS, at_ms, of=record.name)


def watch_leader(run: Run, record: MoveRecord, at_ms: int) -> None:
    """Fail a move that has waited for a leader of its partition for as long as was chosen for brokers that are down.

    Unless that was chosen it waits: there is nothing to copy from, and no other broker could be planned in its place.
    """
    seen, limit_ms = record.observation, run.control.lost_after_ms
    if record.status is not MoveStatus.PLANNED or not record.step.adding or seen is None or not seen.replicas:
        return  # or its topic is gone
    since_ms = at_ms if record.leaderless_since_ms is None else record.leaderless_since_ms
    record.leaderless_since_ms = since_ms if seen.leader == NO_LEADER else None
    if record.leaderless_since_ms is not None and limit_ms is not None and at_ms - since_ms >= limit_ms:
        lost = f"its partition had no leader for {limit_ms / 1000:g} s"
        record.fail(at_ms, f"{lost}, so nothing was sent; bring back one of {list(seen.replicas)}, then replan")


# Hours of a run: moves that end in the remaining time, and the treatment of moves when it is over.
#
# Hours of the day follow the wall clock; durations follow the run's own time.


def take_in_poll(run: Run, at_ms: int, *, has_progress: bool = True) -> None:
    """Measure rates if there is progress, and end the run when no time is left in which a move may be in flight."""
    hours = run.control.pace.hours
    if not hours.are_limited:
        run.moves.outlook = ()
        return
    if has_progress:
        run.moves.speed.measure(run.moves.records.values(), at_ms)
    if windows.open_interval(hours, _wall_ms(run, at_ms)) is None and run.control.wind_down is None:
        end = WindDown.CANCEL if hours.at_end is AtWindowEnd.CANCEL else WindDown.FINISH
        run.control, run.moves.outlook = replace(run.control, wind_down=end), ()
        run.note("its deadline is over: what had not been started by then is left out")


def time_left(run: Run, moving: Iterable[MoveRecord], at_ms: int) -> windows.TimeLeft | None:
    """Time left for pacing, with these moves in flight; None without limits."""
    if not run.control.pace.hours.are_limited:
        return None
    now = _open_now(run, at_ms)
    seconds = 0.0 if now is None else (now.ends_ms - _wall_ms(run, at_ms)) / 1000
    return windows.TimeLeft.after(seconds, slowest_rate(run), map(left_of, moving))


def postponed(run: Run, at_ms: int) -> Names:
    """Moves in flight after a window has closed, if they are to be cancelled then; they restart in the next window."""
    hours = run.control.pace.hours
    if not hours.are_limited or hours.at_end is not AtWindowEnd.CANCEL or _open_now(run, at_ms) is not None:
        return ()
    moving = [record for record in run.moves.in_flight if record.is_under_way]
    for record in moving:
        record.is_postponed = True
    return tuple(record.name for record in moving)


def sleeps_until_window(run: Run, at_ms: int) -> bool:
    """True if there is nothing to observe until a window opens."""
    hours = run.control.pace.hours
    if (
        run.control.wind_down is not None
        or not hours.are_limited
        or run.moves.in_flight
        or _open_now(run, at_ms) is not None
    ):
        return False
    return windows.open_interval(hours, _wall_ms(run, at_ms)) is not None


def closed_window(run: Run, at_ms: int) -> str | None:
    """Text that no window is open, and when the next one opens; None inside a window."""
    hours, wall_ms = run.control.pace.hours, _wall_ms(run, at_ms)
    if not hours.are_limited:
        return None
    next_one = windows.open_interval(hours, wall_ms)
    if next_one is None or next_one.begins_ms <= wall_ms:
        return None
    return f"waits for its window, which opens {windows.local_time(hours, next_one.begins_ms)}"


def foresee(run: Run, at_ms: int) -> None:
    """Update the outlook: waits, and what will not fit. If no waiting move ever fits, all of them are given up.

    Also those that the cluster refused for now: they are never due in time, so no count of attempts gives them up.
    """
    hours = run.control.pace.hours
    if not hours.are_limited:
        return
    run.moves.outlook = ()
    waiting = tuple(_waiting(run))
    if not waiting:
        return
    if (waits := closed_window(run, at_ms)) is not None:
        run.moves.outlook = (waits,)
    wall_ms = _wall_ms(run, at_ms)
    bytes_per_s = slowest_rate(run)
    if bytes_per_s is None:
        return
    under_way = tuple(map(left_of, run.moves.under_way))
    found = windows.forecast((*waiting, *under_way), hours, wall_ms, bytes_per_s, run.control.pace.order)
    run.moves.outlook = (*run.moves.outlook, *windows.shortfalls(found, hours, bytes_per_s))
    if not under_way and len(found.too_long) == len(waiting):
        for record in [run.moves.records[one.topic_partition] for one in waiting]:
            record.give_up(at_ms, "at the rate of the run, no time in which it may be in flight is long enough for it")
            run.moves.index.sort(record)


def slowest_rate(run: Run) -> float | None:
    """Rate per direction of the slowest broker for moves of this run; None while unknown."""
    limit = run.present_rates.slowest_bytes_per_s
    return run.moves.speed.fastest_bytes_per_s if limit is None else limit * windows.REACHED


def _open_now(run: Run, at_ms: int) -> windows.OpenInterval | None:
    wall_ms = _wall_ms(run, at_ms)
    now = windows.open_interval(run.control.pace.hours, wall_ms)
    return now if now is not None and now.begins_ms <= wall_ms else None


def _wall_ms(run: Run, at_ms: int) -> int:
    return at_ms + run.wall_ahead_ms
