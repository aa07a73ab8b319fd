"""Judge the health of the cluster and of the moves: guards that may hold or cancel a run.

`GuardName` lists the guards and `Reaction` the reactions to a breach, with `DEFAULTS`. `Health` is one inspection of
the cluster. `evaluate` returns a `Verdict` per guard that is breached: what was seen, and what to do, as sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from kreassign.errors import InputError
from kreassign.executor.client_guard import ClientAnswer, Feeling
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue
from kreassign.executor.throttle_rates import CopiedPartition, demand, least_rate
from kreassign.model import NO_LEADER, ConfigResource, OngoingReassignment, Partition, TopicPartition
from kreassign.model.closures import REFUSES, Closure
from kreassign.model.cluster import named_brokers
from kreassign.model.disks import disks_of_brokers
from kreassign.model.pace import RESERVE
from kreassign.model.replication_factor import required_in_sync
from kreassign.model.text import agreeing, counted, format_amount, least_rate_option, shortened, some_of

# The guards, and the reaction to a breach of each.


class GuardName(StrEnum):
    """Condition that is guarded."""

    OFFLINE = "offline"
    MIN_ISR = "min-isr"
    UNDER_REPLICATED = "under-replicated"
    BROKER = "broker"
    DISK = "disk"
    CORDONED = "cordoned"
    FOREIGN_MOVE = "foreign-move"
    FOREIGN_THROTTLE = "foreign-throttle"
    STALL = "stall"
    RATE = "rate"
    CLIENTS = "clients"


OF_PARTITIONS = (GuardName.OFFLINE, GuardName.MIN_ISR, GuardName.UNDER_REPLICATED)
"""Guards that compare partitions with those in trouble when the run began. What was not read is healthy for none."""


OF_DESTINATIONS = (GuardName.DISK, GuardName.CORDONED)
"""Guards whose breach holds only moves to where it is; unread, each of them holds all."""


class Reaction(StrEnum):
    """Reaction to a breach; the later ones include that it is reported."""

    OFF = "off"
    WARN = "warn"
    HOLD = "hold"  # nothing new is started until the breach is over
    CANCEL = "cancel"  # the run ends, and moves in flight are cancelled
    ROLLBACK = "rollback"  # the run ends as for cancel, and completed moves are undone


ENDS_RUN = frozenset({Reaction.CANCEL, Reaction.ROLLBACK})
"""Reactions that end a run: never to what a single inspection shows."""


@dataclass(frozen=True, slots=True)
class GuardSetting:
    """Reaction of one guard."""

    guard: GuardName
    reaction: Reaction


DEFAULTS: Mapping[GuardName, Reaction] = MappingProxyType({
    GuardName.OFFLINE: Reaction.HOLD,
    GuardName.MIN_ISR: Reaction.HOLD,
    GuardName.UNDER_REPLICATED: Reaction.HOLD,
    GuardName.BROKER: Reaction.WARN,
    GuardName.DISK: Reaction.HOLD,
    GuardName.CORDONED: Reaction.HOLD,
    GuardName.FOREIGN_MOVE: Reaction.WARN,
    GuardName.FOREIGN_THROTTLE: Reaction.HOLD,
    GuardName.STALL: Reaction.WARN,
    GuardName.RATE: Reaction.WARN,
    GuardName.CLIENTS: Reaction.HOLD,
})  # fmt: skip
"""Nothing is cancelled by default; danger to data or disks stops new moves."""


def parse_guard(text: str) -> tuple[GuardName, Reaction]:
    """Parse a guard and its reaction, such as `disk=hold`. Raises InputError."""
    name, _, reaction = text.partition("=")
    try:
        return GuardName(name), Reaction(reaction)
    except ValueError:
        whole, words = (GuardName, "guards") if name not in [*GuardName] else (Reaction, "reactions")
        raise InputError(
            f"{shortened(text)!r} is not a guard and its reaction, such as disk=hold; {words} are {', '.join(whole)}"
        ) from None


def guard_settings(changed: Mapping[GuardName, Reaction] = MappingProxyType({})) -> tuple[GuardSetting, ...]:
    """All guards, with these reactions in place of the defaults."""
    return tuple(GuardSetting(guard, reaction) for guard, reaction in {**DEFAULTS, **changed}.items())


def reactions(chosen: Iterable[GuardSetting]) -> dict[GuardName, Reaction]:
    """Reaction of each guard that is not off."""
    return {setting.guard: setting.reaction for setting in chosen if setting.reaction is not Reaction.OFF}


# One inspection of the cluster, built from its answers.

NAMED = 20
"""At most this many partitions are named; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Troubled:
    """Partitions in trouble: how many, and the first of them; all of them in the first inspection of a run.

    `fresh` are the first of those that were healthy when the run began, `fresh_count` how many; None in the first
    inspection.
    """

    count: int = 0
    first: tuple[TopicPartition, ...] = ()
    fresh_count: int | None = None
    fresh: tuple[TopicPartition, ...] = ()

    @classmethod
    def of(cls, partitions: Iterable[TopicPartition], before: Troubled | None = None) -> Troubled:
        """Build from these partitions; `before` is the first inspection."""
        found = sorted(partitions)
        if before is None:
            return cls(len(found), tuple(found))
        known = set(before.first)
        fresh = [name for name in found if name not in known]
        return cls(len(found), tuple(found[:NAMED]), len(fresh), tuple(fresh[:NAMED]))

    @property
    def news(self) -> str:
        """The fresh partitions as text."""
        return some_of(self.fresh, NAMED, count=self.fresh_count or 0)


@dataclass(frozen=True, slots=True)
class LogDirSpace:
    """Free space of a log directory, in bytes.

    For a broker with several directories, `replica_count` is the number of replicas in it, by which Kafka chooses, and
    `arriving` are the run's partitions whose copy is there; None and empty if unknown. A cordoned directory takes
    only copies that are there already. `held_bytes` are those of all replicas in it; None if unknown.
    """

    broker: int
    path: str
    total_bytes: int
    usable_bytes: int
    replica_count: int | None = None
    arriving: tuple[TopicPartition, ...] = ()
    is_cordoned: bool = False
    held_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ForeignCopy:
    """A copy in flight that another tool started, with the bytes that it still takes on its broker.

    `path` is its log directory, None while Kafka may take any.
    """

    topic_partition: TopicPartition
    broker: int
    left_bytes: int
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """Data that a guard needs and that could not be read, with the reason. It never counts as healthy."""

    guard: GuardName
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Health:
    """One inspection of the cluster.

    Effects of the run itself are not trouble: replicas that it adds are out of sync until they have caught up, and in
    a run that plans moves again, `under_replicated` leaves out replicas on the brokers that it goes on without.
    `foreign_moves` are planned partitions that others move, wherever to; `foreign_configs` are throttle settings
    with another value than ours, `unread_configs` those that could not be read. `foreign_copies` go to
    destinations. `clients` is how they feel, in a run that asks. `cordoned` are destinations in maintenance, and those
    all of whose directories refuse new copies; `refused` are brokers that Kafka takes in no changed list, although they
    may have a replica already; `to_lead_nothing` are in maintenance. `unread` is what could not be read.
    """

    live: tuple[int, ...]
    offline: Troubled = Troubled()
    under_min_isr: Troubled = Troubled()
    under_replicated: Troubled = Troubled()
    log_dir_space: tuple[LogDirSpace, ...] = ()
    cordoned: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    to_lead_nothing: tuple[int, ...] = ()
    foreign_moves: tuple[TopicPartition, ...] = ()
    foreign_copies: tuple[ForeignCopy, ...] = ()
    foreign_configs: tuple[ConfigValue, ...] = ()
    unread_configs: tuple[ConfigResource, ...] = ()
    unread: tuple[Unread, ...] = ()
    clients: tuple[ClientAnswer, ...] = ()


def offline(partitions: Iterable[Partition]) -> tuple[TopicPartition, ...]:
    """Partitions without a leader."""
    return tuple(one.topic_partition for one in partitions if one.leader == NO_LEADER)


def under_replicated(
    partitions: Iterable[Partition],
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    lost: Collection[int] = (),
    expected: Collection[tuple[TopicPartition, int]] = (),
) -> tuple[Partition, ...]:
    """Partitions with a replica out of sync that no reassignment is adding now and that is not on a `lost` broker.

    Nor is it `expected`: copies of moves of the run, which one stale list of reassignments may leave out.
    """
    adding = {name: move.adding for name, move in ongoing.items()}
    return tuple(
        one
        for one in partitions
        if any(
            (one.topic_partition, broker) not in expected
            for broker in set(one.replicas).difference(one.isr, adding.get(one.topic_partition, ()), lost)
        )
    )


def under_min_isr(partitions: Iterable[Partition], minima: Mapping[str, int]) -> tuple[TopicPartition, ...]:
    """Partitions that producers with acks=all cannot write to; `minima` is by topic, 1 by default."""
    return tuple(
        one.topic_partition
        for one in partitions
        if one.leader != NO_LEADER
        and len(one.isr) < required_in_sync(minima.get(one.topic_partition.topic, 1), len(one.replicas))
    )


# Verdicts of the guards on an inspection.

STALL_MS = 600_000
"""A move without progress for this long is reported with its story."""


class GuardedMove(Protocol):
    """A move in flight, as guards see it."""

    @property
    def name(self) -> TopicPartition:
        """Its partition."""
        ...

    @property
    def lagging(self) -> tuple[int, ...]:
        """Brokers whose copy has not caught up."""
        ...

    @property
    def progressed_ms(self) -> int | None:
        """Time at which a copy last grew; None before the move was sent."""
        ...

    @property
    def losing_ground(self) -> tuple[float, float] | None:
        """Bytes per second copied and written, if writes are at least as fast as the copy."""
        ...

    @property
    def copied(self) -> CopiedPartition:
        """Its demand for throttle rates, by the last measurement."""
        ...

    @property
    def story(self) -> str:
        """Its progress, in words."""
        ...


@dataclass(frozen=True, slots=True)
class GuardInputs:
    """Input of the guards: this inspection, the first one of the run, the moves in flight, the time.

    `incoming_bytes` is what is still to come in, by destination broker, for moves in flight or about to start;
    `incoming_by_log_dir` the part of it that goes into known directories;
    `disk_reserve` is the share of every log directory that must stay free; `our_configs` are the values that the run
    gave to its throttle settings; `named_log_dirs` are the only directories where copies arrive on their brokers; on
    other brokers Kafka chooses. `to_be_named` are the brokers in lists that are still to be sent, `to_lead` those that
    get leadership by them.
    """

    health: Health
    first: Health
    moves: tuple[GuardedMove, ...]
    destinations: tuple[int, ...]
    at_ms: int
    incoming_bytes: Mapping[int, int] = field(default_factory=dict)
    incoming_by_log_dir: Mapping[tuple[int, str], int] = field(default_factory=dict)
    disk_reserve: float = RESERVE
    our_configs: Mapping[ConfigKey, str | None] = field(default_factory=dict)
    named_log_dirs: Mapping[int, Collection[str]] = field(default_factory=dict)
    to_be_named: Collection[int] = ()
    to_lead: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A guard is breached: what was seen, what to do, and what the run does about it.

    A hold that `is_partial` is for the moves that need what was seen; the others go on.
    """

    guard: GuardName
    reaction: Reaction
    seen: str
    advice: str
    is_partial: bool = False

    def __str__(self) -> str:
        held = (
            "moves that need it wait, and the others go on" if self.is_partial else "nothing new is started meanwhile"
        )
        does = {Reaction.WARN: "", Reaction.HOLD: f"; {held}"}
        return f"{self.guard}: {self.seen}{does.get(self.reaction, f'; the run does {self.reaction}')}. {self.advice}"

    @property
    def awaiting_second_look(self) -> Verdict:
        """A verdict that ends the run, as one that holds it until a second inspection shows the same."""
        if self.reaction not in ENDS_RUN:
            return self
        advice = f"The run does {self.reaction} if a second look, at other brokers, shows the same. {self.advice}"
        return replace(self, reaction=Reaction.HOLD, advice=advice, is_partial=False)

    def is_harsher_than(self, earlier: Verdict) -> bool:
        """True for the same guard with a reaction that ends the run, where it held before."""
        return self.guard is earlier.guard and self.reaction in ENDS_RUN and earlier.reaction not in ENDS_RUN

    def covers(self, later: Verdict) -> bool:
        """True for the same guard, unless one holds single moves and the other all; an end of the run covers both."""
        is_as_wide = self.is_partial is later.is_partial or self.reaction in ENDS_RUN
        return self.guard is later.guard and is_as_wide


Breach = tuple[str, str]
"""What was seen, and what to do."""


def evaluate(circumstances: GuardInputs, reactions: Mapping[GuardName, Reaction]) -> tuple[Verdict, ...]:
    """Verdicts of the guards that are on, in their order; empty if all is well.

    Data that could not be read holds the run at most: a missing answer never cancels or undoes anything.
    """
    return tuple(
        verdict
        for guard, check in GUARDS.items()
        if guard in reactions
        for verdict in (
            *(
                Verdict(guard, reactions[guard], *sight, is_partial=guard in OF_DESTINATIONS)
                for sight in check(circumstances)
            ),
            *_unread_verdicts(guard, reactions[guard], circumstances.health.unread),
        )
    )


def _unread_verdicts(guard: GuardName, reaction: Reaction, unread: Iterable[Unread]) -> Iterator[Verdict]:
    missing = [one for one in unread if one.guard is guard]
    if missing:
        what = some_of((one.what for one in missing), NAMED)
        yield Verdict(
            guard,
            Reaction.WARN if reaction is Reaction.WARN else Reaction.HOLD,
            f"{what} could not be read: {missing[0].why}",
            "It is read again with every check; see why it does not answer",
        )


def _under_replicated_breaches(now: GuardInputs) -> Iterator[Breach]:
    # A copy that loses ground needs a higher rate; a lower one would never end, so the throttle is no remedy then.
    is_too_low = any(move.losing_ground is not None for move in now.moves)
    relief = "cancel with `kreassign cancel`" if is_too_low else "lower its throttle with `kreassign throttle`"
    gone = _gone(now)
    advice = f"See whether a broker is overloaded; if the run is what overloads it, {relief}"
    if gone:
        advice = (
            f"Start {named_brokers(gone)} again. If that is impossible the run cannot go on: end it with "
            "`kreassign cancel`, and plan what is left without what is lost"
        )
    if set(gone) & set(now.destinations):
        advice += "; a run with `--replan` goes on without a destination that is lost"
    yield from _fresh(now.health.under_replicated, "have replicas out of sync that the run does not explain", advice)


def _fresh(troubled: Troubled, what: str, advice: str) -> Iterator[Breach]:
    """Report what is new since the run began: trouble that existed before may be the reason for the plan.

    `what` is so of the partitions: a text that begins with "have".
    """
    if count := troubled.fresh_count:
        told = what if count != 1 else what.replace("have", "has", 1)
        yield f"{counted(count, 'partition')} {told}, which was not so when the run began: {troubled.news}", advice


def _gone(now: GuardInputs) -> list[int]:
    """Brokers that were live when the run began and are down now."""
    return sorted(set(now.first.live) - set(now.health.live))


def _broker(now: GuardInputs) -> Iterator[Breach]:
    if gone := _gone(now):
        were, are = (agreeing(len(gone), verb) for verb in ("were", "are"))
        seen = f"{named_brokers(gone)}, which {were} there when the run began, {are} gone"
        yield seen, "Start what is gone, or remove it from plans"


def _bytes(amount: float) -> str:
    return format_amount(amount, "B")


_FREE_OR_CANCEL = "Free space there, or cancel what moves to it with `kreassign cancel`"


def _disk(now: GuardInputs) -> Iterator[Breach]:
    named = now.named_log_dirs
    filled = [space for space in now.health.log_dir_space if space.path in named.get(space.broker, {space.path})]
    for space in filled:
        if space.broker in now.destinations and space.usable_bytes < now.disk_reserve * space.total_bytes:
            share = f"{_bytes(space.usable_bytes)} of {_bytes(space.total_bytes)}"
            seen = f"{space.path} of broker {space.broker} has {share} left"
            yield seen, _FREE_OR_CANCEL
    for broker, incoming in now.incoming_bytes.items():
        disks = [*disks_of_brokers(space for space in filled if space.broker == broker)]
        lefts = [max(0, int(one.usable_bytes - now.disk_reserve * one.total_bytes)) for one, *_ in disks]
        left = sum(lefts)
        if disks and incoming > left:
            seen = f"broker {broker} has {_bytes(left)} left above the reserve in its log directories, "
            yield (
                f"{seen}and {_bytes(incoming)} are to come in",
                "Free space there, or plan less for it: a full log directory goes offline with all its copies",
            )
            continue
        for disk, left_there in zip(disks, lefts, strict=True):
            coming = sum(now.incoming_by_log_dir.get((broker, one.path), 0) for one in disk)
            if coming > left_there:
                seen = f"{disk[0].path} of broker {broker} has {_bytes(left_there)} left above the reserve, "
                yield f"{seen}and {_bytes(coming)} are to come into it", f"{_FREE_OR_CANCEL}: a full one goes offline"


def _cordoned(now: GuardInputs) -> Iterator[Breach]:
    refused = set(now.health.refused) & set(now.to_be_named)
    for broker in sorted(set(now.health.cordoned) & set(now.destinations)):
        does = "refuses such moves from here on" if broker in refused else "accepts such moves in silence"
        yield (
            f"broker {broker} shall get copies, but is in maintenance, or its log directories are cordoned or offline",
            f"Kafka {does}; wait for the end of its maintenance, open it, or plan without it",
        )
    for broker in sorted(refused.difference(now.health.cordoned)):
        yield (
            f"broker {broker} is to keep replicas of partitions that wait, but its log directories are cordoned",
            f"{REFUSES}, so that these moves would fail; open it, or plan without it",
        )
    for broker in sorted(set(now.health.to_lead_nothing) & set(now.to_lead)):
        yield (
            f"broker {broker} is to become the leader of partitions that wait, but {Closure.MAINTENANCE.why}",
            "Its lists are sent when that has ended (`kreassign maintenance exit`); or plan without it",
        )


def _foreign_move(now: GuardInputs) -> Iterator[Breach]:
    if now.health.foreign_moves:
        names = ", ".join(map(str, now.health.foreign_moves))
        yield (
            f"somebody else is reassigning partitions of this plan: {names}",
            "Agree with them: moves to another target fail here; others are awaited. `kreassign cancel` ends the run",
        )


def _foreign_throttle(now: GuardInputs) -> Iterator[Breach]:
    if now.health.foreign_configs:
        changes = "; ".join(_changed(present, now.our_configs) for present in now.health.foreign_configs[:NAMED])
        more = len(now.health.foreign_configs) - NAMED
        moving = [move.name for move in now.moves]
        copies = f"; what is in flight goes on without it: {some_of(moving, NAMED)}" if moving else ""
        brokers = {one.key.broker for one in now.health.foreign_configs}
        or_lags = [f"; if nobody did, broker {one} lags behind the controller: restart it" for one in brokers - {None}]
        end = "Set it again with `kreassign throttle RUN_ID RATE`, or end the run with `kreassign cancel RUN_ID`"
        yield (
            f"somebody else changed throttles of this run: {changes}{f' and {more} more' if more > 0 else ''}{copies}",
            f"{end}{''.join(or_lags) if len(brokers) == 1 else ''}",
        )


def _changed(present: ConfigValue, ours: Mapping[ConfigKey, str | None]) -> str:
    return f"{present}, and the run had set it to {ours[present.key]!r}" if ours.get(present.key) else str(present)


def _stall(now: GuardInputs) -> Iterator[Breach]:
    for move in now.moves:
        since = move.progressed_ms
        if since is not None and now.at_ms - since >= STALL_MS:
            minutes = (now.at_ms - since) // 60_000
            advice = (
                f"Look at the logs of {named_brokers(move.lagging)} and of the leader, and at the throttle; "
                "`kreassign doctor` tells what holds it, remote storage too"
            )
            yield f"{move.name} has made no progress for {counted(minutes, 'minute')}: {move.story}", advice


def _rate(now: GuardInputs) -> Iterator[Breach]:
    # One rate for all: moves share the budgets of their brokers, also with those that do not lose ground.
    least = least_rate(demand(move.copied for move in now.moves).most_bytes_per_s)
    for move in now.moves:
        pace = move.losing_ground
        if pace is not None:
            copied, written = (format_amount(rate, "B/s") for rate in pace)
            yield (
                f"{move.name} is copied at {copied} while producers write {written}: at this rate it never ends",
                f"Give every broker at least {least_rate_option(least)} with `kreassign throttle`",
            )


def _clients(now: GuardInputs) -> Iterator[Breach]:
    for reading in now.health.clients:
        if reading.feeling is Feeling.BAD:
            yield reading.seen, "Copies are slowed meanwhile, and get their rate back as clients feel well again"


def unread_clients(readings: Iterable[ClientAnswer]) -> tuple[Unread, ...]:
    """Sentences about client figures that are unknown."""
    unknown = (reading for reading in readings if reading.feeling is Feeling.UNKNOWN)
    return tuple(Unread(GuardName.CLIENTS, reading.source, reading.seen) for reading in unknown)


GUARDS: Mapping[GuardName, Callable[[GuardInputs], Iterator[Breach]]] = MappingProxyType({
    GuardName.OFFLINE: lambda now: _fresh(
        now.health.offline, "have no leader", "Bring back the brokers of their replicas"
    ),
    GuardName.MIN_ISR: lambda now: _fresh(
        now.health.under_min_isr,
        "have fewer replicas in sync than min.insync.replicas asks for",
        "Producers with acks=all fail: see to their brokers",
    ),
    GuardName.UNDER_REPLICATED: _under_replicated_breaches,
    GuardName.BROKER: _broker,
    GuardName.DISK: _disk,
    GuardName.CORDONED: _cordoned,
    GuardName.FOREIGN_MOVE: _foreign_move,
    GuardName.FOREIGN_THROTTLE: _foreign_throttle,
    GuardName.STALL: _stall,
    GuardName.RATE: _rate,
    GuardName.CLIENTS: _clients,
})  # fmt: skip
