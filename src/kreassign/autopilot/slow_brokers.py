"""Brokers that are slow as a whole, out of sync or by a metric, and followers that fall back again and again. Pure.

By the metric a broker is slow above a least time, above three times its own 90th percentile of a week, and above three
times the median of the others: what is slow every evening, or everywhere at once, is no broker. What was not read is
not slow, and not well; nor is a broker beside which too few others have times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from kreassign.autopilot.events import CLUSTER, Follower, Name, State, SyncChanged
from kreassign.autopilot.memory import OFTEN, Finding, Memory
from kreassign.autopilot.observation import Known, Observation, Unknown
from kreassign.autopilot.policy import Kind, SlowBroker
from kreassign.autopilot.symptoms import FLAPPING, NEVER_S, Look, Symptom, patience, patience_with, sees_placement
from kreassign.model import TopicPartition
from kreassign.model.cluster import named_brokers
from kreassign.model.text import DAY_MS, counted, format_seconds, some_of


class _Followed(NamedTuple):
    """Of live brokers, on working directories: how many each follows, how many of these are out of sync, and which."""

    followed: Counter[int]
    lagging: Counter[int]
    behind: list[Follower]


def _followed(look: Look) -> _Followed:
    found, lost = _Followed(Counter(), Counter(), []), look.now.lost
    for one in look.now.at_rest:
        for broker in one.replicas:
            if broker in look.now.live and broker != one.leader and one.topic_partition not in lost.get(broker, ()):
                found.followed[broker] += 1
                if broker not in one.isr:
                    found.lagging[broker] += 1
                    found.behind.append(Follower(one.topic_partition.topic, one.topic_partition.partition, broker))
    return found


def sync_changed(look: Look) -> SyncChanged | None:
    """Followers that fell out of sync, and those that are back; None if nothing changed, or that was not read.

    Those of brokers that are slow as a whole, or were down lately, do not count as fallen. Back is what is seen in
    sync, and what is no replica any more: what is merely hidden has not fallen again once it is seen again.
    """
    if sees_placement(look, CLUSTER) is not None:
        return None
    memory = look.memory
    still = _behind_still(look)
    fell = sorted(_fallen(look), key=lambda one: (one not in memory.fell_ms, one))
    known = sum(one in memory.fell_ms for one in fell)
    counted = sum(times[-1] > look.now.at_ms - DAY_MS for times in memory.fell_ms.values())
    # Copies of a broker that is down are behind for as long as that lasts.
    behind = sum(one.broker not in memory.away for one in still)
    most = min(known + MOST_FALLEN - counted, MOST_BEHIND - behind)
    fell, back = fell[: max(0, most)], sorted(memory.behind - still)
    return SyncChanged(look.now.at_ms, tuple(fell), tuple(back)) if fell or back else None


MOST_BEHIND = 200
"""Followers out of sync that are written down at a time."""

MOST_FALLEN = 1000
"""Followers whose falls within a day are counted."""

COUNTED_MS = DAY_MS // 2
"""A follower that fell often is counted no further for so long: it is known to come and go."""


def _behind_still(look: Look) -> frozenset[Follower]:
    """Followers that were out of sync and are not seen in sync, or gone."""
    names = {TopicPartition(one.topic, one.partition) for one in look.memory.behind}
    placed = {one.topic_partition: one for one in look.now.placed if one.topic_partition in names}
    resting = {one.topic_partition for one in look.now.at_rest if one.topic_partition in names}

    def is_behind(follower: Follower) -> bool:
        name = TopicPartition(follower.topic, follower.partition)
        if name not in resting:
            return name in placed
        return follower.broker in set(placed[name].replicas).difference(placed[name].isr)

    return frozenset(one for one in look.memory.behind if is_behind(one))


def _fallen(look: Look) -> Iterator[Follower]:
    memory, at_ms = look.memory, look.now.at_ms
    followed, lagging, behind = _followed(look)
    share = look.policy.slow_broker.lagging_share
    few = {one for one, count in followed.items() if lagging[one] / count < share}
    few -= returned(memory, at_ms) | memory.away.keys()
    for one in behind:
        times = memory.fell_ms.get(one, ())
        is_counted = len(times) == OFTEN and times[0] > at_ms - COUNTED_MS
        if one.broker in few and one not in memory.behind and not is_counted:
            yield one


def _flapping_followers(look: Look) -> Iterator[Symptom]:
    since_ms = look.now.at_ms - DAY_MS
    times = {one: sum(then > since_ms for then in fell) for one, fell in look.memory.fell_ms.items()}
    often = sorted(one for one, count in times.items() if count >= OFTEN)
    many = sum(count > 0 for count in times.values()) >= MOST_FALLEN
    left_out = f"{MOST_FALLEN:,} replicas fell out of sync within a day, and others are not counted"
    texts = [left_out] * many
    if often:
        count = f"{counted(len(often), 'replica')} fell out of sync {OFTEN} times and more within a day"
        texts.insert(0, f"{count}, though their brokers are not slow: {some_of(often, 3)}")
    if texts:
        brokers = frozenset(one.broker for one in often)
        yield Symptom(CLUSTER, "; ".join(texts), *patience_with(FLAPPING, look.policy), brokers=brokers)


def slow_broker(look: Look) -> Iterator[Symptom]:
    """Brokers that are mostly out of sync or slow by a metric, and single followers that fall back again and again."""
    yield from _flapping_followers(look)
    policy, (followed, lagging, _) = look.policy.slow_broker, _followed(look)
    # There is nothing to take from brokers that lead nothing; but one that its leaders left is not well by that.
    told = {one.name.broker for one in slow_brokers(look.memory) if _is_told(one)}
    judged = told | {one.leader for one in look.now.placed}
    slow = {
        broker: f"{lagging[broker]} of the {counted(count, 'replica')} that it follows are out of sync"
        for broker, count in followed.items()
        if broker in judged and lagging[broker] / count >= policy.lagging_share
    }
    by_metric = {one.name.broker for one in slow_brokers(look.memory) if _is_told_by_metric(one)}
    for broker in judged & look.now.live:
        if (text := slow_text(look.now, policy, broker, was_told=broker in by_metric)) is not None:
            slow.setdefault(broker, text)
    share = len(slow) / max(1, len(look.now.live))
    why = "" if share <= policy.most_share or len(slow) == 1 else f"{share:.0%} of the brokers are slow at once"
    back = returned(look.memory, look.now.at_ms)
    for broker in sorted(slow):
        seen = slow[broker]
        people = "it came back within a day, and may be catching up" if broker in back else why
        led = frozenset(one.topic_partition for one in look.now.placed if one.leader == broker)
        lasting = patience(Kind.SLOW_BROKER, look.policy)
        often = _times_begun(look, broker)
        if often >= OFTEN and broker not in back:  # else it is told as a broker that comes and goes
            seen += f"; it was slow {counted(often, 'time')} within a day"
            lasting = lasting._replace(tell_s=0)
        if not led:
            seen += ": it leads nothing, and repairs copy nothing to it until it is well again"
            lasting = lasting._replace(propose_s=NEVER_S)
        yield Symptom(f"broker {broker}", seen, *lasting, may_act=people, partitions=led)


def slow_brokers(memory: Memory) -> tuple[Finding, ...]:
    """Open findings about brokers that are slow as a whole."""
    return tuple(one for one in memory.open if one.name.kind is Kind.SLOW_BROKER and one.name.subject != CLUSTER)


def _times_begun(look: Look, broker: int) -> int:
    finding = look.memory.findings.get(Name(Kind.SLOW_BROKER, f"broker {broker}"))
    return 0 if finding is None else sum(one > look.now.at_ms - DAY_MS for one in finding.begun_ms)


def _is_told(finding: Finding) -> bool:
    return finding.state not in {State.SEEN, State.CLOSED}


def _is_told_by_metric(finding: Finding) -> bool:
    return _is_told(finding) and finding.seen.startswith(WRITES)


def sees_slow(look: Look, subject: str) -> str | None:
    """A broker that was slow is well when it was in sync for as long as it must be slow to be told.

    One that was slow by the metric is seen to be well by that alone.
    """
    if (blind := sees_placement(look, subject)) or subject in {"", CLUSTER}:
        return blind
    finding, lasting = look.memory.findings.get(Name(Kind.SLOW_BROKER, subject)), look.policy.slow_broker.lasting
    if finding is None or not _is_told(finding) or finding.name.broker not in look.now.live:
        return None
    unread = unread_text(look.now, look.policy.slow_broker, finding.name.broker)
    if unread is not None and _is_told_by_metric(finding):
        return unread
    well_s = (look.now.at_ms - finding.lost_ms) / 1000 if finding.lost_ms else 0.0
    is_well = well_s >= lasting
    return None if is_well else f"it is in sync for {format_seconds(well_s)} of {format_seconds(lasting)}"


# Brokers that came back, and catch up.


def catching_up(memory: Memory, now: Observation) -> tuple[int, ...]:
    """Brokers that came back within a day, and have replicas out of sync, as far as those were read."""
    back = returned(memory, now.at_ms) & now.live
    if is_sync_unread(now):
        return tuple(sorted(back))
    behind = {broker for one in now.placed for broker in set(one.replicas) - set(one.isr)}
    return tuple(sorted(back & behind))


def is_sync_unread(now: Observation) -> bool:
    """True if brokers may have replicas out of sync that were not read."""
    return bool(now.unread_topics) or not now.are_brokers_read


def returned(memory: Memory, at_ms: int) -> frozenset[int]:
    """Brokers that came back so lately that they may be out of sync."""
    return frozenset(one.broker for one in memory.outages if one.to_ms > at_ms - CATCHING_UP_MS)


CATCHING_UP_MS = DAY_MS
"""A broker may be out of sync for so long after it came back."""


# Write times, by the metric of the policy.

TIMES = 3.0
"""So many times its usual time, and that of the others, a broker takes that is slow."""

LEAST_OTHERS = 2
"""Other live brokers of which the times must be known."""

WRITES = "its writes"
"""Beginning of the sentence on a broker that is slow by the metric."""

WRITE_TIMES = "write times"
"""Subject of the finding that write times could not be read."""


def slow_text(now: Observation, policy: SlowBroker, broker: int, *, was_told: bool = False) -> str | None:
    """Sentence on a broker that is slow by the metric of the policy; None where it is not, or is not known to be.

    One that `was_told` by it is not compared with its own week: after 17 hours a tenth of that is slow, too.
    """
    times = now.write_times.value if isinstance(now.write_times, Known) else {}
    others = [one.now_s for other, one in times.items() if other != broker and other in now.live]
    if broker not in times or len(others) < LEAST_OTHERS:
        return None
    own, usual = times[broker].now_s, median(others)
    if own <= max(policy.slow_above, 0.0 if was_told else TIMES * times[broker].usual_s, TIMES * usual):
        return None
    return (
        f"{WRITES} take {own:.2g} s, by the metric of the policy; its own 90th percentile of a week is "
        f"{times[broker].usual_s:.2g} s, the median of the other brokers {usual:.2g} s"
    )


def unread_text(now: Observation, policy: SlowBroker, broker: int | None = None) -> str | None:
    """Why the metric of the policy does not tell whether a live broker, or any, is slow; None without a metric."""
    if not policy.metric or (broker is not None and broker not in now.live):
        return None
    match now.write_times:
        case Unknown(why):
            return f"write times of brokers: {why}"
        case Known(times):
            missing = (now.live if broker is None else {broker}) - times.keys()
            if missing:
                return f"write times of {named_brokers(sorted(missing))}: the metric has no value, now or of their week"
            if len(now.live & times.keys()) <= LEAST_OTHERS:
                return f"a broker is compared with {LEAST_OTHERS} others at least that have write times"
            return None
