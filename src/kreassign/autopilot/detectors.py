"""Detectors: a row for each kind of trouble that is or will be, with its evidence, patience and remedy. Pure.

    kind              is there when                                  remedy
    many-gone         brokers went at once, or a whole rack          none: everything stops
    broker-gone       a broker is down, and holds replicas           replace its replicas, no others
    disk-fills        a directory is used so far, or soon            directories of the broker, else other brokers
    directory-failed  a live broker reports one as offline           replace its replicas
    placement         fewer replicas than the topic, or racks        repair
    new-broker        a live broker without replicas                 move replicas to it, between no others
    slow-broker       most that it follows is out of sync            leaders leave it; replicas stay
    band-left         a broker holds much more than the mean         rebalance
    leaders           the preferred replica is in sync, not leader   elect it

A symptom is what one look shows; how long it lasts follows from the journal. Where that which would show it was not
read, the row is blind for it, and says why: an open finding then neither ripens nor closes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from kreassign.autopilot.lifecycle import DiskUse, Memory
from kreassign.autopilot.observation import Known, Observation, Unknown, last_copies
from kreassign.autopilot.policy import Kind, Policy
from kreassign.model import NO_LEADER, LogDir, Partition
from kreassign.model.text import HOUR_MS, counted, format_amount, format_seconds


@dataclass(frozen=True, slots=True)
class Symptom:
    """One thing that a look shows.

    `tell_s` and `propose_s` are how long it must last for that, `act_s` for acting alone. `since_ms` is from when on it
    is there, where that is known by more than the looks. `may_act` is empty, or the reason why people decide.
    """

    subject: str
    seen: str
    tell_s: float
    propose_s: float
    act_s: float = 0.0
    since_ms: int | None = None
    is_urgent: bool = False
    may_act: str = ""


class Look(NamedTuple):
    """One look with all that a detector judges by."""

    now: Observation
    memory: Memory
    policy: Policy


class Detector(NamedTuple):
    """A row: its symptoms, and why it cannot tell that a subject has none ("" is any subject; None: it can)."""

    find: Callable[[Look], Iterator[Symptom]]
    blind: Callable[[Look, str], str | None]


NEVER_S = float("inf")


class Patience(NamedTuple):
    """Seconds for which a trouble must last to be told, to be proposed for repair, and to be repaired by itself."""

    tell_s: float
    propose_s: float
    act_s: float = 0.0


def patience(kind: Kind, policy: Policy) -> Patience:
    """Patience with a kind of trouble; what a look shows of one may shorten or lengthen it."""
    gone, leaders, new = policy.broker_gone, policy.leaders, policy.new_broker
    band, slow = policy.band_left, policy.slow_broker
    return {
        Kind.MANY_GONE: Patience(policy.many_gone.tell_after, NEVER_S),
        Kind.BROKER_GONE: Patience(gone.tell_after, gone.propose_after, gone.act_after),
        Kind.DISK_FILLS: Patience(0, 0),
        Kind.DIRECTORY_FAILED: Patience(0, 0, policy.directory_failed.act_after),
        Kind.PLACEMENT: Patience(120, policy.placement.propose_after),
        Kind.NEW_BROKER: Patience(new.propose_after, new.propose_after),
        Kind.BAND_LEFT: Patience(band.lasting, band.lasting),
        Kind.SLOW_BROKER: Patience(slow.lasting, slow.lasting),
        Kind.LEADERS: Patience(leaders.propose_after, leaders.propose_after),
    }[kind]


# Brokers that are gone: one, or many.


def _many_gone(look: Look) -> Iterator[Symptom]:
    policy, away = look.policy.many_gone, _away(look)
    times = sorted(away.values())
    most = max((sum(0 <= at_ms - first <= policy.within * 1000 for at_ms in times) for first in times), default=0)
    racks = look.now.whole_racks_down
    if most < policy.brokers and not racks:
        return
    gone = f"brokers {sorted(away)} are down" + (f", and with them all of rack {', '.join(racks)}" if racks else "")
    why = "so many at once are the network or a rack, not brokers: nothing is repaired until they are back"
    since_ms = min(times, default=None)
    yield Symptom("cluster", f"{gone}; {why}", *patience(Kind.MANY_GONE, look.policy), since_ms=since_ms)


def _away(look: Look) -> dict[int, int]:
    """Brokers that are down unplanned and hold replicas, with the time from which on."""
    planned = look.now.maintenance.value if isinstance(look.now.maintenance, Known) else frozenset()
    since = look.memory.away
    return {
        broker: since.get(broker, look.now.at_ms)
        for broker in look.now.down - planned
        if look.now.replica_counts.get(broker)
    }


def _broker_gone(look: Look) -> Iterator[Symptom]:
    policy, away = look.policy.broker_gone, _away(look)
    known = len(look.now.live | look.now.down)
    for broker, since_ms in sorted(away.items()):
        price = price_of(look, broker, since_ms)
        is_due = price.waiting_bytes > price.copying_bytes
        share, usual = len(away) / known, patience(Kind.BROKER_GONE, look.policy)
        yield Symptom(
            f"broker {broker}",
            f"it is down since {format_seconds((look.now.at_ms - since_ms) / 1000)}; {price}",
            *(usual._replace(propose_s=usual.tell_s) if is_due else usual),
            since_ms,
            is_urgent=price.last_copies > 0,
            may_act=""
            if share <= policy.most_share or len(away) == 1
            else f"{share:.0%} of the brokers are down, more than the {policy.most_share:.0%} of the policy",
        )


LOSSES_PER_HOUR = 1 / (365 * 24)
"""Assumed losses of a broker: one a year. Only the order of magnitude counts."""

LOSS_COST = 1_000.0
"""Copies that the loss of the last copy of a byte is worth."""

HORIZON_S = 3600.0
"""Waiting is priced for the next hour: it is decided again at each look."""


class Price(NamedTuple):
    """Costs of waiting for a broker, against copying its replicas now.

    `waiting_bytes` is the expected loss of the next hour in copied bytes, `copying_bytes` what copying wastes by the
    probability that the broker returns in that hour.
    """

    replicas: int
    held_bytes: int
    last_copies: int
    hours: float
    returns: float
    waiting_bytes: float
    copying_bytes: float
    outages: int

    def __str__(self) -> str:
        at_risk = f"{counted(self.last_copies, 'partition')} with one copy left" if self.last_copies else "none alone"
        past = f"it came back {self.outages} times before" if self.outages else "it was never down before"
        return (
            f"{counted(self.replicas, 'replica')} ({at_risk}); copying them takes {format_amount(self.held_bytes, 'B')}"
            f" and {self.hours:.1f} h; {past}, so that it is back within the hour with {self.returns:.0%}: waiting for "
            f"that is worth {format_amount(self.copying_bytes, 'B')}, and costs "
            f"{format_amount(self.waiting_bytes, 'B')} of risk"
        )


def price_of(look: Look, broker: int, since_ms: int) -> Price:
    """Price waiting for a broker by what it holds and by its own past outages.

    Of outages that lasted as long as this one does now, a share ended within the next hour. One that returned and
    one that did not are assumed besides, so that no history decides alone.
    """
    held = look.now.holding(broker)
    size = sum(look.now.sizes.get(one.topic_partition, 0) for one in held)
    alone = tuple(one for one in held if one.leader == NO_LEADER or len(one.isr) <= 1)
    alone_bytes = sum(look.now.sizes.get(one.topic_partition, 0) for one in alone)
    age_s = max(0.0, (look.now.at_ms - since_ms) / 1000)  # the clock may have been set back
    past = [(one.to_ms - one.from_ms) / 1000 for one in look.memory.outages if one.broker == broker]
    longer = [seconds for seconds in past if seconds > age_s]
    soon = [seconds for seconds in longer if seconds <= age_s + HORIZON_S]
    # The longer a broker is down, the less is a return assumed without a history.
    prior = HORIZON_S / (HORIZON_S + age_s)
    returns = (len(soon) + prior) / (len(longer) + 1)
    holders = {replica for one in alone for replica in one.isr}
    risk = len(holders) * LOSSES_PER_HOUR * alone_bytes * LOSS_COST
    rate = look.policy.runs.throttle * max(1, len(look.now.live) - 1)
    return Price(
        len(held), size, last_copies(alone), size / max(1, rate) / 3600, returns, risk, returns * size, len(past)
    )


# Disks that fill, and directories that failed.

GROWN_OVER_MS = 6 * HOUR_MS
"""Growth is measured over so long at least."""

CLOSED_BELOW = 0.03
"""An open finding about a share closes only when the share is so much below the limit."""


def _disk_fills(look: Look) -> Iterator[Symptom]:
    policy = look.policy.disk_fills
    open_subjects = {one.name.subject for one in look.memory.open if one.name.kind is Kind.DISK_FILLS}
    past = past_uses(look.memory)
    for broker, dirs in look.now.directories():
        for one in dirs:
            use = use_of(broker, one)
            if use is None:
                continue
            subject = f"broker {broker}:{one.path}"
            share = use.used_bytes / use.total_bytes
            growth = growth_of(use, past[broker, one.path], look.now.at_ms)
            left_s = (use.total_bytes - use.used_bytes) / growth * 3600 if growth > 0 else NEVER_S
            least = policy.tell_share - (CLOSED_BELOW if subject in open_subjects else 0)
            if share < least and left_s > policy.tell_within:
                continue
            is_urgent = share >= policy.urgent_share or left_s <= policy.urgent_within
            is_due = share >= policy.propose_share or is_urgent
            soon = f", full in {left_s / 3600:.0f} h by its growth of {format_amount(growth, 'B')}/h"
            seen = f"it is {share:.0%} full{soon if left_s < NEVER_S else ', and does not grow'}"
            usual = patience(Kind.DISK_FILLS, look.policy)
            yield Symptom(subject, seen, *(usual if is_due else usual._replace(propose_s=NEVER_S)), is_urgent=is_urgent)


def use_of(broker: int, log_dir: LogDir) -> DiskUse | None:
    """Use of a working directory that reports its size."""
    if log_dir.error is not None or not log_dir.total_bytes or log_dir.usable_bytes is None:
        return None
    return DiskUse(broker, log_dir.path, log_dir.total_bytes - log_dir.usable_bytes, log_dir.total_bytes)


def past_uses(memory: Memory) -> Mapping[tuple[int, str], list[tuple[int, int]]]:
    """Times and used bytes of each directory, by broker and path, as they were measured."""
    found: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for measured in memory.disks:
        for disk in measured.disks:
            found[disk.broker, disk.path].append((measured.at_ms, disk.used_bytes))
    return found


def growth_of(use: DiskUse, past: Sequence[tuple[int, int]], at_ms: int) -> float:
    """Bytes an hour by which a directory grows, since the first measurement that counts; 0 where none is old enough.

    Between hours the least growth to the present counts: what was moved there at once does not go on.
    """
    before = [one for one in past if at_ms - one[0] >= HOUR_MS]
    old = [one for one in before if at_ms - one[0] >= GROWN_OVER_MS]
    if not old:
        return 0.0
    rates = [(use.used_bytes - used) / (at_ms - then_ms) * HOUR_MS for then_ms, used in (before[-1], old[-1])]
    return max(0.0, min(rates))


def _directory_failed(look: Look) -> Iterator[Symptom]:
    for broker, dirs in look.now.directories():
        for one in (one for one in dirs if one.error is not None):
            usual = patience(Kind.DIRECTORY_FAILED, look.policy)
            yield Symptom(f"broker {broker}:{one.path}", f"it is offline ({one.error})", *usual, is_urgent=True)


# Placement: factors, racks, brokers without replicas.


def _placement(look: Look) -> Iterator[Symptom]:
    if look.now.down:
        return
    few = [one for one in look.now.at_rest if len(one.replicas) < look.now.usual_factors[one.topic_partition.topic]]
    crowded = [one for one in look.now.at_rest if _is_crowded(look.now, one)]
    parts = (
        f"{counted(len(few), 'partition')} with fewer replicas than the topic" if few else "",
        f"{counted(len(crowded), 'partition')} with more replicas in one rack than needed" if crowded else "",
    )
    if few or crowded:
        seen = f"{' and '.join(filter(None, parts))}, such as {(few or crowded)[0].topic_partition}"
        yield Symptom("cluster", seen, *patience(Kind.PLACEMENT, look.policy))


def _is_crowded(now: Observation, one: Partition) -> bool:
    racks = now.usable_racks
    if len(racks) < 2 or not now.live <= now.racks.keys():
        return False
    return len({now.racks.get(broker, str(broker)) for broker in one.replicas}) < min(len(one.replicas), len(racks))


def _new_broker(look: Look) -> Iterator[Symptom]:
    planned = look.now.maintenance.value if isinstance(look.now.maintenance, Known) else frozenset()
    closed = planned | look.now.cordoned()
    if not look.now.placed:
        return
    for broker in sorted(look.now.live - closed):
        if not look.now.replica_counts.get(broker):
            seen, lasting = "it is live, and has no replicas", patience(Kind.NEW_BROKER, look.policy)
            if broker in look.memory.drained:
                seen += f": others emptied it, and it stays so; `kreassign plan add-brokers {broker}` fills it"
                lasting = lasting._replace(propose_s=NEVER_S)
            yield Symptom(f"broker {broker}", seen, *lasting)


# Load: bands, slow brokers, leaders.


def _band_left(look: Look) -> Iterator[Symptom]:
    policy = look.policy.band_left
    uses = [
        [use for one in dirs if (use := use_of(broker, one)) is not None] for broker, dirs in look.now.directories()
    ]
    held = {found[0].broker: sum(one.used_bytes for one in found) for found in uses if found}
    room = {found[0].broker: sum(one.total_bytes for one in found) for found in uses if found}
    if len(held) < 2 or max(held[broker] / room[broker] for broker in held) < policy.ignore_below:
        return
    mean = sum(held.values()) / sum(room.values())
    over = {broker: held[broker] / room[broker] / mean for broker in held}
    fullest = max(over, key=lambda broker: (over[broker], -broker))
    if over[fullest] >= policy.find_at:
        seen = f"broker {fullest} holds {over[fullest]:.2f} times the mean of {mean:.0%}"
        yield Symptom("cluster", seen, *patience(Kind.BAND_LEFT, look.policy))


def _slow_broker(look: Look) -> Iterator[Symptom]:
    policy, followed, lagging = look.policy.slow_broker, Counter[int](), Counter[int]()
    for one in look.now.at_rest:
        for broker in one.replicas:
            if broker in look.now.live and broker != one.leader:
                followed[broker] += 1
                lagging[broker] += broker not in one.isr
    slow = [broker for broker, count in followed.items() if lagging[broker] / count >= policy.lagging_share]
    share = len(slow) / max(1, len(look.now.live))
    why = "" if share <= policy.most_share or len(slow) == 1 else f"{share:.0%} of the brokers are slow at once"
    for broker in sorted(slow):
        seen = f"{lagging[broker]} of the {followed[broker]} replicas that it follows are out of sync"
        yield Symptom(f"broker {broker}", seen, *patience(Kind.SLOW_BROKER, look.policy), may_act=why)


def astray(now: Observation) -> list[Partition]:
    """Partitions whose preferred replica is live and in sync, and does not lead."""
    return [
        one
        for one in now.at_rest
        if one.leader not in {NO_LEADER, one.preferred_leader}
        and one.preferred_leader in one.isr
        and one.preferred_leader in now.live
    ]


def _leaders(look: Look) -> Iterator[Symptom]:
    planned = look.now.maintenance.value if isinstance(look.now.maintenance, Known) else frozenset()
    wrong = [one for one in astray(look.now) if one.preferred_leader not in planned]
    if wrong:
        seen = f"{counted(len(wrong), 'partition')} not led by the preferred replica, which is in sync"
        yield Symptom("cluster", seen, *patience(Kind.LEADERS, look.policy))


# What each row needs to have been read.


def _sees_placement(look: Look, subject: str) -> str | None:
    """Topics that were not read hide nothing that others show, but what they have may keep a finding open."""
    now = look.now
    for name, asked in (
        ("brokers", now.brokers), ("partitions", now.partitions), ("maintenance", now.maintenance),
        ("moves", now.moves_of_others),
    ):  # fmt: skip
        if isinstance(asked, Unknown):
            return f"{name} could not be read ({asked.why})"
    if subject and now.unread_topics:
        name, why = min(now.unread_topics.items())
        return f"topic {name} could not be read ({why})"
    return None


def _sees_directory(look: Look, subject: str) -> str | None:
    if not subject:
        return None  # a broker that answered shows its own
    broker = int(subject.removeprefix("broker ").partition(":")[0])
    dirs = look.now.log_dirs.get(broker)
    if isinstance(dirs, Known) or (isinstance(look.now.brokers, Known) and broker not in look.now.live | look.now.down):
        return None
    why = dirs.why if isinstance(dirs, Unknown) else "it is not live"
    return f"log directories of broker {broker} could not be read ({why})"


def _sees_all_directories(look: Look, _: str) -> str | None:
    silent = sorted(broker for broker in look.now.live if not isinstance(look.now.log_dirs.get(broker), Known))
    return f"log directories of brokers {silent} could not be read" if silent else None


DETECTORS: Mapping[Kind, Detector] = MappingProxyType({
    Kind.MANY_GONE: Detector(_many_gone, _sees_placement),
    Kind.BROKER_GONE: Detector(_broker_gone, _sees_placement),
    Kind.DISK_FILLS: Detector(_disk_fills, _sees_directory),
    Kind.DIRECTORY_FAILED: Detector(_directory_failed, _sees_directory),
    Kind.PLACEMENT: Detector(_placement, _sees_placement),
    Kind.NEW_BROKER: Detector(_new_broker, _sees_placement),
    Kind.SLOW_BROKER: Detector(_slow_broker, _sees_placement),
    Kind.BAND_LEFT: Detector(_band_left, _sees_all_directories),
    Kind.LEADERS: Detector(_leaders, _sees_placement),
})  # fmt: skip
