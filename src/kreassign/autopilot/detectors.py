"""Detectors: a row for each kind of trouble that is or will be, with its evidence and patience. Pure.

The tables of the policy say what each kind is, and `TASKS` of `operations/autopilot_plans.py` how it is repaired.
Where that which would show a symptom was not read, the row is blind for it, and says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from kreassign.autopilot import symptoms
from kreassign.autopilot.events import CLUSTER, Name, Result, State
from kreassign.autopilot.growth import GROWN_OVER_MS, NO_GROWTH, growths_of, use_of, uses_of
from kreassign.autopilot.memory import MOST_REPLACED, OFTEN, OUTAGES_KEPT, UNBEGUN, Memory
from kreassign.autopilot.observation import Observation, Unknown, last_copies
from kreassign.autopilot.policy import DiskFills, Kind
from kreassign.autopilot.slow_brokers import WRITE_TIMES, sees_slow, slow_broker, unread_text
from kreassign.autopilot.symptoms import NEVER_S, Look, Symptom, patience
from kreassign.errors import InputError
from kreassign.model import NO_LEADER, Partition
from kreassign.model.disks import HELD, disks
from kreassign.model.text import DAY_MS, counted, format_amount, format_seconds


class Detector(NamedTuple):
    """A row: its symptoms, and why it cannot tell that a subject has none ("" is any subject; None: it can)."""

    find: Callable[[Look], Iterator[Symptom]]
    blind: Callable[[Look, str], str | None]


# What does not answer.


def _unread(look: Look) -> Iterator[Symptom]:
    """Write times by themselves: a broker without an exporter would keep the finding open, and the next one untold."""
    found = {CLUSTER: look.now.unread(), WRITE_TIMES: unread_text(look.now, look.policy.slow_broker)}
    for subject, unread in found.items():
        if unread:
            seen = f"could not be read: {unread}; what that hides is neither found nor repaired"
            yield Symptom(subject, seen, *patience(Kind.UNREAD, look.policy))


# Brokers that are gone: one, or many.


def _many_gone(look: Look) -> Iterator[Symptom]:
    """Brokers whose time of going is unknown may have gone at once: for a day that counts as if they had."""
    policy, away, racks = look.policy.many_gone, _away(look), _racks_down(look)
    unclear = away.keys() & look.memory.unwitnessed.keys()
    within_ms = policy.within * 1000
    is_clear = racks or at_once(went_ms(look, away.keys() - unclear), within_ms) >= policy.brokers
    if not is_clear and at_once(went_ms(look, away), within_ms) < policy.brokers:
        return
    gone = f"brokers {sorted(away)} are down" + (f", and with them all of rack {', '.join(racks)}" if racks else "")
    why = "so many at once are the network or a rack, not brokers: nothing is repaired until they are back"
    if not is_clear:
        why = (
            f"when brokers {sorted(unclear)} went is not known, for they were down when it looked first, or again; if "
            f"at once, it is the network: nothing is repaired until they are back, or were seen so for "
            f"{format_seconds(UNCLEAR_MS / 1000)}; where they went one by one, "
            "`kreassign autopilot silence many-gone cluster --for 24h --why TEXT`"
        )
    since_ms = min(away.values(), default=None)
    yield Symptom(CLUSTER, f"{gone}; {why}", *patience(Kind.MANY_GONE, look.policy), since_ms=since_ms)


def _racks_down(look: Look) -> tuple[str, ...]:
    """Racks in which two brokers and more hold replicas, unless in maintenance, and none is live.

    Before Kafka 4.0 a cluster names no broker that is down: its rack is that of the look that saw it last.
    """
    racks = {**look.memory.racks, **look.now.racks}
    unplanned = look.now.replica_counts.keys() - in_maintenance(look)
    sizes = Counter(rack for broker, rack in racks.items() if broker in unplanned)
    return tuple(sorted(rack for rack, size in sizes.items() if size > 1 and rack not in look.now.usable_racks))


UNCLEAR_MS = DAY_MS
"""Brokers that went at an unknown time count as gone at once for so long: by then people have seen the message."""


def went_ms(look: Look, brokers: Collection[int]) -> list[tuple[int, int]]:
    """First and last time at which each of these brokers may have gone; without those that are unclear for long."""
    unclear, at_ms = look.memory.unwitnessed, look.now.at_ms
    times = ((one, look.memory.away[one]) for one in brokers if one in look.memory.away)
    return [(unclear.get(one, then), then) for one, then in times if one not in unclear or at_ms - then < UNCLEAR_MS]


def at_once(times: Collection[tuple[int, int]], within_ms: float) -> int:
    """Most brokers that may have gone within this time."""
    ends = [last for _, last in times]
    return max((sum(first <= end + within_ms and end <= last for first, last in times) for end in ends), default=0)


def _away(look: Look) -> dict[int, int]:
    """Brokers that are down unplanned and hold replicas, with the time from which on."""
    since = look.memory.away
    return {broker: since.get(broker, look.now.at_ms) for broker in look.now.missing - in_maintenance(look)}


def in_maintenance(look: Look) -> frozenset[int]:
    """Brokers in maintenance; where that is unknown, those that were down for it at the look before."""
    return look.memory.planned if isinstance(look.now.maintenance, Unknown) else look.now.in_maintenance


def _broker_gone(look: Look) -> Iterator[Symptom]:
    policy, away = look.policy.broker_gone, _away(look)
    known = len(look.now.live | look.now.missing)
    for broker, since_ms in sorted(away.items()):
        price = price_of(look, broker, since_ms)
        is_due = price.waiting_bytes > price.copying_bytes
        share, usual = len(away) / known, patience(Kind.BROKER_GONE, look.policy)
        least = " at least" if broker in look.memory.unwitnessed else ""
        unread = isinstance(look.now.maintenance, Unknown)
        planned = "; whether it is in maintenance could not be read" if unread else ""
        yield Symptom(
            f"broker {broker}",
            f"it is down since {format_seconds((look.now.at_ms - since_ms) / 1000)}{least}{planned}; {price}",
            *(usual._replace(propose_s=usual.tell_s) if is_due else usual),
            max(since_ms, look.memory.overdue.get(broker, since_ms)),  # planned time is no evidence
            is_urgent=price.last_copies > 0,
            may_act=""
            if share <= policy.most_share or len(away) == 1
            else f"{share:.0%} of the brokers are down, more than the {policy.most_share:.0%} of the policy",
            partitions=frozenset(one.topic_partition for one in look.now.holding(broker)),
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
    probability that the broker returns in that hour. Of its past outages, `longer` lasted longer than this one does
    now, and `soon` of those ended within the next hour. Its replicas grew by `catch_up_bytes` since it went, which is
    the least that it copies when it is back; None where that is not known.
    """

    replicas: int
    held_bytes: int
    last_copies: int
    hours: float
    returns: float
    waiting_bytes: float
    copying_bytes: float
    outages: int
    offline: int = 0
    unsized: int = 0
    longer: int = 0
    soon: int = 0
    catch_up_bytes: int | None = None

    def __str__(self) -> str:
        alone = self.last_copies - self.offline
        risks = (
            f"{counted(alone, 'partition')} with one copy left" if alone else "",
            f"{counted(self.offline, 'partition')} offline with no copy left" if self.offline else "",
            f"the size of {self.unsized} unknown" if self.unsized else "",
        )
        at_risk = ", ".join(filter(None, risks)) or "none alone"
        more = " and more" if self.outages >= OUTAGES_KEPT else ""
        least = self.catch_up_bytes
        catch_up = "" if least is None else f", catching up {format_amount(least, 'B')} at least"
        past = (
            f"it came back {counted(self.outages, 'time')}{more} before" if self.outages else "it was never down before"
        )
        return (
            f"{counted(self.replicas, 'replica')} ({at_risk}); copying them takes {format_amount(self.held_bytes, 'B')}"
            f" and {self.hours:.1f} h{catch_up}; {past}, so that it is back within the hour with {self.returns:.0%}: "
            f"waiting for that is worth {format_amount(self.copying_bytes, 'B')}, and costs "
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
    known = [one for one in look.memory.outages if one.broker == broker][-OUTAGES_KEPT:]
    past = [(one.to_ms - one.from_ms) / 1000 for one in known]
    longer = [seconds for seconds in past if seconds > age_s]
    soon = [seconds for seconds in longer if seconds <= age_s + HORIZON_S]
    # The longer a broker is down, the less is a return assumed without a history.
    prior = HORIZON_S / (HORIZON_S + age_s)
    returns = (len(soon) + prior) / (len(longer) + 1)
    # However many brokers hold the last copies: each loss takes those of one.
    risk = LOSSES_PER_HOUR * alone_bytes * LOSS_COST
    rate = look.policy.runs.throttle * max(1, len(look.now.live) - 1)
    hours, offline = size / max(1, rate) / 3600, sum(one.leader == NO_LEADER for one in held)
    unsized = sum(one.topic_partition not in look.now.sizes for one in held)
    waste = returns * size
    before = look.memory.went_with.get(broker)
    catch_up = None if before is None or unsized else max(0, size - before)
    return Price(
        len(held), size, last_copies(alone), hours, returns, risk, waste, len(past), offline, unsized, len(longer),
        len(soon), catch_up,
    )  # fmt: skip


# Disks that fill, and directories that failed.

CLOSED_BELOW = 0.03
"""A finding about a share goes back to the state before only when the share is so much below the limit."""


def due_share(policy: DiskFills, state: State | None) -> float:
    """Used share from which a disk is repaired: a little lower once its finding has a plan, or had a run."""
    return policy.propose_share - (CLOSED_BELOW if state in {State.PROPOSED, State.SETTLING} else 0)


def _disk_fills(look: Look) -> Iterator[Symptom]:
    policy = look.policy.disk_fills
    states = {one.name.subject: one.state for one in look.memory.open if one.name.kind is Kind.DISK_FILLS}
    growths = growths_of(look)
    for broker, dirs in look.now.directories():
        for one in dirs:
            use = use_of(broker, one)
            if use is None:
                continue
            subject = f"broker {broker}:{one.path}"
            share = use.used_bytes / use.total_bytes
            growth, free = growths[broker, one.path], use.total_bytes - use.used_bytes
            left_s = NEVER_S if growth is None else growth.hours_for(free) * 3600
            least = policy.tell_share - (CLOSED_BELOW if subject in states else 0)
            if share < least and left_s > policy.tell_within:
                continue
            is_urgent = share >= policy.urgent_share or left_s <= policy.urgent_within
            is_due = share >= due_share(policy, states.get(subject)) or is_urgent
            steady = "its growth is not known" if growth is None else "and does not grow"
            soon = steady if growth is None or left_s == NEVER_S else growth.text_for(free)
            seen = f"it is {share:.0%} full, {soon}"
            usual = patience(Kind.DISK_FILLS, look.policy)
            lasting = usual if is_due else usual._replace(propose_s=NEVER_S)
            yield Symptom(
                subject,
                seen,
                *lasting,
                is_urgent=is_urgent,
                by_growth=True if share < least else False if share >= policy.tell_share else None,
                urgent_by_growth=share < policy.urgent_share if is_urgent else None,
                is_growth_known=growth is not None,
            )


EASED_BELOW = 0.10
"""A repair brings a directory so much below the share at which it is told."""


def relief_bytes(look: Look, name: Name) -> int:
    """Bytes that are to leave a log directory, so that it is not told again soon; InputError where its use is unknown.

    What leaves takes its part of the growth along.
    """
    use = next(filter(None, uses_of(look, name)), None)
    if use is None:
        raise InputError(f"nobody knows what {name.path} of broker {name.broker} holds")
    policy = look.policy.disk_fills
    growth = growths_of(look)[name.broker, name.path] or NO_GROWTH  # by its share alone where it is not known
    grown = growth.bytes_per_hour * policy.tell_within / 3600
    by_share = (policy.tell_share - EASED_BELOW) * use.total_bytes
    by_growth = use.total_bytes / (1 + grown / max(1, use.used_bytes))
    return max(0, use.used_bytes - round(max(0.0, min(by_share, by_growth))))


def _directory_failed(look: Look) -> Iterator[Symptom]:
    for broker, dirs in look.now.directories():
        lost = look.now.lost.get(broker, frozenset())
        for one in (one for one in dirs if one.error is not None):
            usual = patience(Kind.DIRECTORY_FAILED, look.policy)
            seen = f"it is offline ({one.error}); the broker has lost {counted(len(lost), 'replica')}"
            lasting = usual if lost else usual._replace(propose_s=NEVER_S)
            yield Symptom(f"broker {broker}:{one.path}", seen, *lasting, is_urgent=bool(lost), partitions=lost)


# Placement: factors, racks, brokers without replicas.


def flapping(memory: Memory, at_ms: int) -> frozenset[int]:
    """Brokers that came back several times within a day: none is part of a rolling restart, or a good destination."""
    returns = Counter(one.broker for one in memory.outages if one.to_ms > at_ms - DAY_MS)
    return frozenset(broker for broker, count in returns.items() if count >= OFTEN)


def _placement(look: Look) -> Iterator[Symptom]:
    if look.now.missing:
        return  # it had its say as a broker that is gone
    few = [one for one in look.now.at_rest if len(one.replicas) < look.now.usual_factors[one.topic_partition.topic]]
    crowded = [one for one in look.now.at_rest if _is_crowded(look.now, one)]
    parts = (
        f"{counted(len(few), 'partition')} with fewer replicas than the topic" if few else "",
        f"{counted(len(crowded), 'partition')} with more replicas in one rack than needed" if crowded else "",
    )
    if few or crowded:
        seen = f"{' and '.join(filter(None, parts))}, such as {(few or crowded)[0].topic_partition}"
        wrong = frozenset(one.topic_partition for one in (*few, *crowded))
        thin = thin_racks(look) if 2 * len(crowded) > len(look.now.at_rest) else {}
        people = next((thin[rack] for rack in sorted(thin)), "")
        yield Symptom(CLUSTER, seen, *patience(Kind.PLACEMENT, look.policy), may_act=people, partitions=wrong)


def thin_racks(look: Look) -> Mapping[str, str]:
    """Racks that would hold a replica of most partitions on less than half of their share of the brokers, and why.

    Where a repair took the replicas that a rack held, that is how people want it.
    """
    now, before = look.now, {look.now.racks.get(one.broker) for one in look.memory.replaced}
    hosts = Counter(now.racks[broker] for broker in now.live & now.racks.keys())
    share, most = sum(hosts.values()) / max(1, len(hosts)), max((len(one.replicas) for one in now.placed), default=0)
    is_split = 1 < len(hosts) <= most
    forced = {rack: count for rack, count in hosts.items() if is_split and 2 * count < share and rack not in before}
    return {
        rack: f"rack {rack} has {count} of {sum(hosts.values())} brokers, and would get a replica of every partition"
        for rack, count in forced.items()
    }


def _is_crowded(now: Observation, one: Partition) -> bool:
    """Replicas on a broker without a rack are judged by nobody; those of other partitions are."""
    racks = now.usable_racks
    if len(racks) < 2 or not now.racks.keys() >= set(one.replicas):
        return False
    return len({now.racks[broker] for broker in one.replicas}) < min(len(one.replicas), len(racks))


def _new_broker(look: Look) -> Iterator[Symptom]:
    closed, restless = look.now.in_maintenance | look.now.cordoned(), flapping(look.memory, look.now.at_ms)
    thin = thin_racks(look)
    if not look.now.placed or look.now.unread_topics:
        return  # what looks empty may hold what was not read
    for broker in sorted(look.now.live - closed):
        last = [one for one in look.memory.begun if Name(Kind.NEW_BROKER, f"broker {broker}") in one.names][-1:]
        is_half = bool(last) and last[0].ended_ms is not None and last[0].result not in {Result.DONE, *UNBEGUN}
        if is_half or not look.now.replica_counts.get(broker):
            seen, lasting = "it is live, and has no replicas", patience(Kind.NEW_BROKER, look.policy)
            if look.now.replica_counts.get(broker):
                seen = "it was filled in part, for its repair ended early"
            if broker in look.memory.drained:
                seen += f": others emptied it, and it stays so; `kreassign plan add-brokers {broker}` fills it"
                lasting = lasting._replace(propose_s=NEVER_S)
            elsewhere = frozenset(one.topic_partition for one in look.now.placed if broker not in one.replicas)
            times = look.memory.times_replaced(broker, look.now.at_ms)
            often = f"it was gone, and its replicas copied elsewhere, {counted(times, 'time')} within 30 days"
            people = often if times > MOST_REPLACED else ""
            rack = look.now.racks.get(broker, "")
            if rack not in {look.now.racks.get(one) for one in look.now.replica_counts.keys() - {broker}}:
                people = people or thin.get(rack, "")
            if broker in restless:
                people = f"it came back {OFTEN} times and more within a day"
            yield Symptom(f"broker {broker}", seen, *lasting, may_act=people, partitions=elsewhere)


# Load: bands, slow brokers, leaders.


class Fullest(NamedTuple):
    """The broker that holds most for its room, as a multiple of the mean of all, and the share of the room that is."""

    broker: int
    times: float
    mean: float


def fullest_brokers(look: Look) -> tuple[Fullest, Fullest] | None:
    """The fullest broker now, and as it will be in 24 hours by its growth and that of the others; None for under two.

    Kafka reports what is held, not what comes in: the peak of tomorrow is that of a growth in a straight line. While
    the growth of any directory is not known, tomorrow is taken to be as now: growth of some alone would shift the mean.
    """
    growths, held, ahead, room = growths_of(look), Counter[int](), Counter[int](), Counter[int]()
    unknown = False
    for broker, dirs in look.now.directories():
        for use in (use_of(broker, one) for one, *_ in disks(dirs, HELD)):
            if use is not None:
                held[broker] += use.used_bytes
                growth = growths[broker, use.path]
                unknown = unknown or growth is None
                ahead[broker] += use.used_bytes + round(24 * (growth or NO_GROWTH).bytes_per_hour)
                room[broker] += use.total_bytes
    if len(room) < 2:
        return None
    ahead = held if unknown else ahead
    means = [sum(one.values()) / sum(room.values()) for one in (held, ahead)]
    now, then = (
        {one: each[one] / room[one] / (mean or 1.0) for one in room}
        for each, mean in zip((held, ahead), means, strict=True)
    )
    fullest = max(now, key=lambda broker: (now[broker], -broker))
    return Fullest(fullest, now[fullest], means[0]), Fullest(fullest, then[fullest], means[1])


def _band_left(look: Look) -> Iterator[Symptom]:
    policy, found = look.policy.band_left, fullest_brokers(look)
    if found is None:
        return
    now, tomorrow = found
    if now.times * now.mean < policy.ignore_below or min(now.times, tomorrow.times) < policy.find_at:
        return
    seen = f"broker {now.broker} holds {now.times:.2f} times the mean of {now.mean:.0%}"
    grows = f", and {tomorrow.times:.2f} times tomorrow by what disks grow" if tomorrow.times != now.times else ""
    yield Symptom(CLUSTER, f"{seen}{grows}", *patience(Kind.BAND_LEFT, look.policy))


def astray(look: Look) -> list[Partition]:
    """Partitions not led by the preferred replica, though it is live, in sync, not in maintenance, and not flapping."""
    steady = look.now.live - look.now.in_maintenance - flapping(look.memory, look.now.at_ms)
    return [
        one
        for one in look.now.at_rest
        if one.leader not in {NO_LEADER, one.preferred_leader}
        and one.preferred_leader in one.isr
        and one.preferred_leader in steady
    ]


def _leaders(look: Look) -> Iterator[Symptom]:
    if wrong := astray(look):
        seen = f"{counted(len(wrong), 'partition')} not led by the preferred replica, which is in sync"
        names = frozenset(one.topic_partition for one in wrong)
        yield Symptom(CLUSTER, seen, *patience(Kind.LEADERS, look.policy), partitions=names)


# What the use of disks needs to have been read.


def _sees_use(look: Look, subject: str) -> str | None:
    """A directory may fill still that is offline, or whose file system has no known size.

    So may one whose growth is not known, unless the finding is there, and urgent, by its used share.
    """
    if blind := symptoms.sees_directory(look, subject):
        return blind
    if not subject:
        return None
    name = Name(Kind.DISK_FILLS, subject)
    uses, finding = uses_of(look, name), look.memory.findings.get(name)
    if None in uses:
        return f"{subject} did not report its use"
    if uses and finding is not None and finding.may_be_by_growth and growths_of(look)[name.broker, name.path] is None:
        return growth_text(subject)
    return None


def is_low(look: Look, name: Name) -> bool:
    """True if the used share of a disk was read; where a look shows no symptom of it, that is below the limits."""
    uses = uses_of(look, name) if name.kind is Kind.DISK_FILLS else []
    return bool(uses) and None not in uses


def growth_text(subject: str) -> str:
    """Why the growth of a directory is not known."""
    over = format_seconds(GROWN_OVER_MS / 1000)
    return f"growth of {subject} is not known since copies, or since it looked first or again: that takes {over}"


def _sees_all_directories(look: Look, subject: str) -> str | None:
    """The balance of disks shows where every live broker reports how much its directories hold."""
    if blind := symptoms.sees_whole_placement(look, subject):
        return blind
    known = {
        broker
        for broker, dirs in look.now.directories()
        if all(use_of(broker, one) is not None for one in dirs if one.error is None)
    }
    silent = sorted(look.now.live - known)
    return f"what brokers {silent} hold in their log directories could not be read" if silent else None


DETECTORS: Mapping[Kind, Detector] = MappingProxyType({
    Kind.UNREAD: Detector(_unread, lambda _, __: None),
    Kind.MANY_GONE: Detector(_many_gone, symptoms.sees_brokers),
    Kind.BROKER_GONE: Detector(_broker_gone, symptoms.sees_brokers),
    Kind.DISK_FILLS: Detector(_disk_fills, _sees_use),
    Kind.DIRECTORY_FAILED: Detector(_directory_failed, symptoms.sees_directory),
    Kind.PLACEMENT: Detector(_placement, symptoms.sees_whole_placement),
    Kind.NEW_BROKER: Detector(_new_broker, symptoms.sees_placement),
    Kind.SLOW_BROKER: Detector(slow_broker, sees_slow),
    Kind.BAND_LEFT: Detector(_band_left, _sees_all_directories),
    Kind.LEADERS: Detector(_leaders, symptoms.sees_placement),
})  # fmt: skip
