"""What each guard says of an inspection: a sentence with what was seen and one with what to do. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from kreassign.executor.guards.health import NAMED, Health, Troubled
from kreassign.executor.guards.settings import GuardName, Reaction
from kreassign.executor.scheduling import RESERVE
from kreassign.executor.throttle.demand import CopiedPartition, demand, least_rate
from kreassign.executor.throttle.ledger import ConfigKey, ConfigValue
from kreassign.model import TopicPartition

STALL_MS = 600_000
"""A move without any progress for so long is reported with its story."""


class Move(Protocol):
    """What guards want to know of a move that is under way."""

    @property
    def name(self) -> TopicPartition:
        """Of which partition."""
        ...

    @property
    def lagging(self) -> tuple[int, ...]:
        """Brokers whose copy has not caught up."""
        ...

    @property
    def progressed_ms(self) -> int | None:
        """When a copy grew last; None before the move was sent."""
        ...

    @property
    def losing_ground(self) -> tuple[float, float] | None:
        """Bytes per second that are copied and that are written, where the former are not more."""
        ...

    @property
    def copied(self) -> CopiedPartition:
        """What it takes of throttles, by what was last measured."""
        ...

    @property
    def story(self) -> str:
        """How far it is, in words."""
        ...


@dataclass(frozen=True, slots=True)
class GuardInputs:
    """What guards judge: this inspection, the first one of the run, the moves in flight, the time.

    `incoming_bytes` is what is still to come in, by destination broker, for moves in flight or about to start;
    `disk_reserve` is the part of every log directory that shall stay free; `our_configs` are the values that the run
    gave to the settings of its throttle; `named_log_dirs` are the directories of brokers where copies arrive nowhere
    else, on the others Kafka chooses.
    """

    health: Health
    first: Health
    moves: tuple[Move, ...]
    destinations: tuple[int, ...]
    at_ms: int
    incoming_bytes: Mapping[int, int] = field(default_factory=dict)
    disk_reserve: float = RESERVE
    our_configs: Mapping[ConfigKey, str | None] = field(default_factory=dict)
    named_log_dirs: Mapping[int, Collection[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A guard is breached: what was seen, what to do, and what the run does about it."""

    guard: GuardName
    reaction: Reaction
    seen: str
    advice: str

    def __str__(self) -> str:
        does = {Reaction.WARN: "", Reaction.HOLD: "; nothing new is started meanwhile"}
        return f"{self.guard}: {self.seen}{does.get(self.reaction, f'; the run does {self.reaction}')}. {self.advice}"


Breach = tuple[str, str]
"""What was seen, and what to do."""


def evaluate(circumstances: GuardInputs, reactions: Mapping[GuardName, Reaction]) -> tuple[Verdict, ...]:
    """What the guards that are on say, in their order; nothing when all is well."""
    return tuple(
        Verdict(guard, reactions[guard], *sight)
        for guard, check in GUARDS.items()
        if guard in reactions
        for sight in check(circumstances)
    )


def _offline(now: GuardInputs) -> Iterator[Breach]:
    yield from _grown(
        now.first.offline, now.health.offline, "have no leader", "Bring back the brokers of their replicas"
    )


def _min_isr(now: GuardInputs) -> Iterator[Breach]:
    what = "have fewer replicas in sync than min.insync.replicas asks for"
    yield from _grown(
        now.first.under_min_isr, now.health.under_min_isr, what, "Producers with acks=all fail: see to their brokers"
    )


def _under_replicated(now: GuardInputs) -> Iterator[Breach]:
    # A copy that loses ground needs more, and with less of it nothing would end: then the throttle is no remedy.
    is_too_low = any(move.losing_ground is not None for move in now.moves)
    relief = "cancel with `kreassign cancel`" if is_too_low else "lower its throttle with `kreassign throttle`"
    gone = _gone(now)
    advice = f"See whether a broker is overloaded; if the run is what overloads it, {relief}"
    if gone:
        advice = (
            f"Start brokers {gone} again. If they are lost for good the run cannot go on: end it with "
            "`kreassign cancel`, and plan what is left without them"
        )
    if set(gone) & set(now.destinations):
        advice += "; a run with `--replan` goes on without a destination that is lost"
    yield from _grown(
        now.first.under_replicated,
        now.health.under_replicated,
        "have replicas out of sync that the run does not explain",
        advice,
    )


def _grown(before: Troubled, after: Troubled, what: str, advice: str) -> Iterator[Breach]:
    """Only what came since the run began: trouble that was there may be the reason for the plan."""
    if after.fresh_count:
        yield f"{after.fresh_count} partitions {what}, which was not so when the run began: {after.news}", advice
    elif after.fresh_count is None and after.count > before.count:
        yield f"{after.count} partitions {what}, {before.count} when the run began: {after}", advice


def _gone(now: GuardInputs) -> list[int]:
    """Brokers that were there when the run began."""
    return sorted(set(now.first.live) - set(now.health.live))


def _broker(now: GuardInputs) -> Iterator[Breach]:
    if gone := _gone(now):
        yield f"brokers {gone}, which were there when the run began, are gone", "Start them, or remove them from plans"


def _disk(now: GuardInputs) -> Iterator[Breach]:
    named = now.named_log_dirs
    filled = [space for space in now.health.log_dir_space if space.path in named.get(space.broker, {space.path})]
    for space in filled:
        if space.broker in now.destinations and space.usable_bytes < now.disk_reserve * space.total_bytes:
            seen = f"{space.path} of broker {space.broker} has {space.usable_bytes} of {space.total_bytes} bytes left"
            yield seen, "Free space there, or cancel what moves to it with `kreassign cancel`"
    for broker, incoming in now.incoming_bytes.items():
        spaces = [space for space in filled if space.broker == broker]
        left = sum(max(0, int(space.usable_bytes - now.disk_reserve * space.total_bytes)) for space in spaces)
        if spaces and incoming > left:
            seen = f"broker {broker} has {left} bytes left above the reserve in its log directories, "
            yield (
                f"{seen}and {incoming} are to come in",
                "Free space there, or plan less for it: a full log directory goes offline with all its copies",
            )


def _cordoned(now: GuardInputs) -> Iterator[Breach]:
    for broker in sorted(set(now.health.cordoned) & set(now.destinations)):
        yield (
            f"broker {broker} shall get copies, but is in maintenance, or its log directories are cordoned or offline",
            "Kafka accepts such moves in silence; wait for the end of its maintenance, open it, or plan without it",
        )


def _foreign_move(now: GuardInputs) -> Iterator[Breach]:
    if now.health.foreign_moves:
        names = ", ".join(map(str, now.health.foreign_moves))
        yield f"somebody else is reassigning partitions of this plan: {names}", "Agree with them; those moves fail here"


def _foreign_throttle(now: GuardInputs) -> Iterator[Breach]:
    if now.health.foreign_configs:
        changes = "; ".join(_changed(present, now.our_configs) for present in now.health.foreign_configs[:NAMED])
        more = len(now.health.foreign_configs) - NAMED
        moving = [move.name for move in now.moves]
        copies = f"; what is in flight goes on without it: {_some(moving)}" if moving else ""
        yield (
            f"somebody else changed throttles of this run: {changes}{f' and {more} more' if more > 0 else ''}{copies}",
            "Set it again with `kreassign throttle RUN_ID RATE`, or end the run with `kreassign cancel RUN_ID`",
        )


def _changed(present: ConfigValue, ours: Mapping[ConfigKey, str | None]) -> str:
    return f"{present}, and the run had set it to {ours[present.key]!r}" if ours.get(present.key) else str(present)


def _some(names: Sequence[TopicPartition]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(map(str, names[:NAMED])) + more


def _stall(now: GuardInputs) -> Iterator[Breach]:
    for move in now.moves:
        since = move.progressed_ms
        if since is not None and now.at_ms - since >= STALL_MS:
            minutes = (now.at_ms - since) // 60_000
            advice = (
                f"Look at the logs of brokers {list(move.lagging)} and of the leader, and at the throttle; "
                "`kreassign doctor` tells what holds it, remote storage too"
            )
            yield f"{move.name} has made no progress for {minutes} minutes: {move.story}", advice


def _rate(now: GuardInputs) -> Iterator[Breach]:
    # One rate for all: moves share the budgets of their brokers, also with those that do not lose ground.
    least = least_rate(demand(move.copied for move in now.moves).most_bytes_per_s)
    for move in now.moves:
        pace = move.losing_ground
        if pace is not None:
            copied, written = pace
            yield (
                f"{move.name} is copied at {copied:.0f} B/s while producers write {written:.0f} B/s: it never ends",
                f"Give every broker at least {least} B/s with `kreassign throttle`",
            )


GUARDS: Mapping[GuardName, Callable[[GuardInputs], Iterator[Breach]]] = MappingProxyType({
    GuardName.OFFLINE: _offline,
    GuardName.MIN_ISR: _min_isr,
    GuardName.UNDER_REPLICATED: _under_replicated,
    GuardName.BROKER: _broker,
    GuardName.DISK: _disk,
    GuardName.CORDONED: _cordoned,
    GuardName.FOREIGN_MOVE: _foreign_move,
    GuardName.FOREIGN_THROTTLE: _foreign_throttle,
    GuardName.STALL: _stall,
    GuardName.RATE: _rate,
})  # fmt: skip
