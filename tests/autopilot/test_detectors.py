"""Signs that look like trouble, or like none: the core over clusters as values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.autopilot.core import symptoms
from kreassign.autopilot.events import FindingMoved, Name, Result, State
from kreassign.autopilot.memory import Outage, memory_of
from kreassign.autopilot.observation import Known, Observation, Unknown
from kreassign.autopilot.policy import Kind
from kreassign.model import LogDirReplica
from tests.autopilot.test_judgement import FULL_3, SLOW_3, lagging
from tests.autopilot.test_scenarios import ACT, GONE_3, LISTS, outages
from tests.autopilot.values import DAY, GIGABYTE, HOUR, MINUTE, Watched, cluster

WEEK_MS = 7 * DAY * 1000
EMPTY_9 = Name(Kind.NEW_BROKER, "broker 9")


@pytest.mark.parametrize(("down_s", "acted"), [(80 * MINUTE, []), (DAY, [81])])
def test_a_broker_that_returns_each_week_is_waited_for(down_s: float, acted: list[int]) -> None:
    """It was away for 80 minutes in each of three weeks; in the next one it comes back as always, or not."""
    past = tuple(Outage(3, at_ms, at_ms + 80 * MINUTE * 1000) for at_ms in range(-3 * WEEK_MS, 0, WEEK_MS))
    watched = Watched(ACT, outages((3, 600, 600 + down_s)))
    watched.memory = replace(watched.memory, outages=past)
    watched.watch(600 + 79 * MINUTE)
    (gone,) = watched.memory.open
    assert gone.gates is not None
    assert gone.gates.closed[0].gate == "returns"
    watched.watch(HOUR)
    assert [(one.begun_ms // 1000 - 600) // MINUTE for one in watched.memory.acts] == acted


def test_a_broker_with_last_copies_is_not_waited_for() -> None:
    past = tuple(Outage(3, at_ms, at_ms + 80 * MINUTE * 1000) for at_ms in range(-3 * WEEK_MS, 0, WEEK_MS))
    watched = Watched(ACT, lambda now_s: cluster(0, [(3, 4), (5, 6)], down=[3] if now_s >= 600 else []))
    watched.memory = replace(watched.memory, outages=past)
    watched.watch(600 + 70 * MINUTE)
    assert watched.runs == [GONE_3]


def test_a_dry_run_leaves_no_broker_filled_in_part() -> None:
    """Others fill the broker after the dry run would have."""
    filled = [*LISTS, (9, 0, 1)]
    watched = Watched(ACT, lambda now_s: cluster(0, LISTS if now_s < 3 * HOUR else filled, brokers=10))
    watched.result, watched.run_s = Result.NOT_BEGUN_DRY, 0
    watched.watch(4 * HOUR)
    assert watched.runs == [EMPTY_9]
    assert watched.memory.findings[EMPTY_9].state is State.CLOSED


def test_time_unread_is_no_time_in_sync() -> None:
    """It was out of sync, then unread for 31 minutes, and is in sync at the first look after that."""

    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS) if now_s >= HOUR + 31 * MINUTE else lagging(cluster(0, LISTS))
        return replace(seen, partitions=Unknown("no answer")) if HOUR <= now_s < HOUR + 31 * MINUTE else seen

    watched = Watched("[care]\n", world)
    watched.watch(HOUR + 31 * MINUTE + 29 * MINUTE)
    assert watched.memory.findings[SLOW_3].state is State.TOLD
    watched.watch(5 * MINUTE)
    assert watched.memory.findings[SLOW_3].state is State.CLOSED


def test_a_disk_that_fills_again_after_its_repair_is_told_as_urgent() -> None:
    """Its repair brings it to 81%, and from there it grows by 1% an hour; a second repair does not help."""

    def world(now_s: float) -> Observation:
        ends_s = next((one.begun_ms / 1000 + 600 for one in watched.memory.acts), now_s)
        used = 0.81 + (now_s - ends_s) / HOUR / 100 if now_s > ends_s else 0.93
        return cluster(0, LISTS, used={3: min(0.97, used)})

    watched = Watched("[disk-fills]\nlevel = 'act'\n", world)
    watched.watch(20 * HOUR)
    assert watched.runs == [FULL_3, FULL_3]
    urgent = [one for one in watched.messages if "it is urgent now" in one.what]
    assert [one.why for one in urgent] == ["it is still there after its repair: look into it"]


def test_a_broker_that_flaps_is_not_filled_and_gets_no_leaders_back() -> None:
    """Every 50 minutes it goes for five; broker 9 is empty, and what broker 3 would lead others lead."""

    def world(now_s: float) -> Observation:
        is_down = now_s % (50 * MINUTE) >= 45 * MINUTE
        seen = cluster(0, LISTS, brokers=10, down=[broker] if is_down else [])
        placed = (replace(one, leader=one.isr[-1]) if one.preferred_leader == 3 else one for one in seen.placed)
        return replace(seen, partitions=Known(tuple(placed))) if broker == 3 else seen

    for broker, kind in ((9, Kind.NEW_BROKER), (3, Kind.LEADERS)):
        watched = Watched(f"[{kind}]\nlevel = 'act'\n", world)
        watched.memory = replace(watched.memory, outages=(Outage(broker, -5, -4),) * 4)
        watched.watch(12 * HOUR)
        assert watched.runs == [], kind


@pytest.mark.parametrize(("grows_too", "is_read"), [(False, True), (True, True), (False, False)])
def test_catching_up_is_no_growth_of_a_disk(*, grows_too: bool, is_read: bool) -> None:
    """The broker comes back empty, and gets half a terabyte in ten hours, most of them unread in one case.

    In another its disk grows on by as much.
    """

    def world(now_s: float) -> Observation:
        hours = (now_s - HOUR) / HOUR
        used = 0.5 if hours < 0 else 0.05 * min(hours, 24 if grows_too else 10)
        seen = cluster(0, LISTS, used={3: used}, down=[3] if 30 * MINUTE <= now_s < HOUR else [])
        seen = lagging(seen) if 0 <= hours < 10 else seen
        return seen if is_read or not 2 <= hours < 10 else replace(seen, partitions=Unknown("no answer"))

    watched = Watched("[disk-fills]\n", world)
    watched.watch(15 * HOUR, every_s=300)
    assert FULL_3 not in watched.memory.findings
    watched.watch(4 * HOUR, every_s=300)
    assert (FULL_3 in watched.memory.findings) is grows_too


def test_a_topic_unread_once_hides_no_growth_of_a_returned_broker() -> None:
    """It is in sync again at once; the topic is unread when disks are measured for the fourth time."""

    def world(now_s: float) -> Observation:
        is_down = 30 * MINUTE <= now_s < 40 * MINUTE
        seen = cluster(0, LISTS, used={3: 0.4 + 0.04 * now_s / HOUR}, down=[3] if is_down else [])
        return replace(seen, unread_topics={"u": "no answer"} if now_s == 3 * HOUR else {})

    watched = Watched("[disk-fills]\n", world)
    watched.watch(6.5 * HOUR, every_s=300)
    assert FULL_3 in watched.memory.findings


def test_moves_unread_for_one_look_hide_no_growth_beside_an_unread_topic() -> None:
    def world(now_s: float) -> Observation:
        seen = replace(cluster(0, LISTS, used={3: 0.4 + 0.04 * now_s / HOUR}), unread_topics={"u": "not allowed"})
        return replace(seen, moves_of_others=Unknown("no answer")) if now_s == 3 * HOUR else seen

    watched = Watched("[disk-fills]\n", world)
    watched.watch(6.5 * HOUR, every_s=300)
    assert FULL_3 in watched.memory.findings


def test_a_disk_that_fills_says_when_with_the_error_of_that() -> None:
    """It grows by 8 and 12 GB, hour by hour in turn."""

    def world(now_s: float) -> Observation:
        hours = int(now_s // HOUR)
        return cluster(0, LISTS, used={3: 0.5 + 0.01 * hours + 0.002 * (hours % 2)})

    watched = Watched("[disk-fills]\n", world)
    watched.watch(8 * HOUR, every_s=300)
    told = "it is 56% full, full in 44 h (37 to 55 h) by its growth of 10 GB/h ± 1.96 GB/h"
    assert watched.memory.findings[FULL_3].seen == told


@pytest.mark.parametrize("is_passing", [False, True])
def test_a_band_that_growth_closes_by_tomorrow_is_left_alone(*, is_passing: bool) -> None:
    """Broker 5 is fullest, and does not grow; the others do, in one case, and will have as much tomorrow."""

    def world(now_s: float) -> Observation:
        others = 0.42 + 0.008 * min(now_s / HOUR, 30) * is_passing
        return cluster(0, LISTS, used={**dict.fromkeys(range(9), others), 5: 0.75})

    watched = Watched("[band-left]\n", world)
    watched.watch(10 * HOUR, every_s=300)
    told = [one for one in watched.messages if one.name == Name(Kind.BAND_LEFT, "cluster")]
    assert len(told) == (not is_passing)


def test_a_dead_broker_shows_what_catching_up_would_copy() -> None:
    def world(now_s: float) -> Observation:
        size_bytes = GIGABYTE + round(now_s / HOUR * GIGABYTE / 10)
        return cluster(0, LISTS, down=[3] if now_s >= HOUR else [], size_bytes=size_bytes)

    watched = Watched("[care]\n", world)
    watched.watch(3 * HOUR, every_s=300)
    assert ", catching up 1.2 GB at least; it was never down before" in symptoms(watched.last_look)[GONE_3].seen


@pytest.mark.parametrize(("fresh", "filled"), [(1, False), (2, True)])
def test_people_decide_about_a_first_broker_in_a_new_rack(fresh: int, *, filled: bool) -> None:
    """Partitions of six brokers in two racks are not to get a replica on one broker each."""
    lists = [(one % 6, (one + 1) % 6, (one + 2) % 6) for one in range(12)]

    def world(_: float) -> Observation:
        seen = cluster(0, lists, brokers=6 + fresh)
        assert isinstance(seen.brokers, Known)
        racked = (replace(one, rack="c" if one.id >= 6 else "ab"[one.id % 2]) for one in seen.brokers.value)
        return replace(seen, brokers=Known(tuple(racked)))

    watched = Watched("[placement]\nlevel = 'act'\n[new-broker]\nlevel = 'act'\n", world)
    watched.watch(4 * HOUR)
    assert bool(watched.runs) is filled
    if not filled:
        gates = [one.gates for one in watched.memory.open if one.gates is not None]
        people = {one.why for judged in gates for one in judged.closed if one.gate == "people"}
        assert people == {"rack c has 1 of 7 brokers, and would get a replica of every partition: people decide"}


def test_a_small_rack_that_comes_back_is_filled_again() -> None:
    """Broker 6 is all of its rack, and held a replica of every partition before it was gone for a day."""
    lists = [(one % 6, (one + 1) % 6, 6) for one in range(12)]
    without_6 = [(*one[:2], (one[1] + 1) % 6) for one in lists]

    def world(now_s: float) -> Observation:
        is_moved = [name.kind for name in watched.runs] == [Kind.BROKER_GONE]
        seen = cluster(0, without_6 if is_moved else lists, brokers=7, down=[6] if now_s < DAY else [])
        assert isinstance(seen.brokers, Known)
        racked = (replace(one, rack="c" if one.id == 6 else "ab"[one.id % 2]) for one in seen.brokers.value)
        return replace(seen, brokers=Known(tuple(racked)))

    policy = "".join(f"[{kind}]\nlevel = 'act'\n" for kind in (Kind.BROKER_GONE, Kind.PLACEMENT, Kind.NEW_BROKER))
    watched = Watched(policy, world)
    watched.watch(2 * DAY, every_s=300)
    assert [name.kind for name in watched.runs] == [Kind.BROKER_GONE, Kind.NEW_BROKER]


def with_sizes_hidden(seen: Observation, broker: int) -> Observation:
    """Return the look without the sizes of the file systems of a broker."""
    dirs = seen.log_dirs[broker]
    assert isinstance(dirs, Known)
    hidden = Known(tuple(replace(one, total_bytes=None, usable_bytes=None) for one in dirs.value))
    return replace(seen, log_dirs={**seen.log_dirs, broker: hidden})


def test_a_full_disk_is_not_over_when_its_size_is_hidden() -> None:
    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS, used={3: 0.88})
        return with_sizes_hidden(seen, 3) if HOUR <= now_s < 2 * HOUR else seen

    watched = Watched("[disk-fills]\nlevel = 'propose'\n", world)
    watched.watch(3 * HOUR)
    states = [one.state for one in watched.events if isinstance(one, FindingMoved) and one.name == FULL_3]
    assert states == [State.SEEN, State.TOLD], "and proposed by its plan"
    assert [one for one in watched.messages if one.is_over] == []


def test_no_band_is_judged_while_a_broker_hides_its_disks() -> None:
    watched = Watched(ACT, lambda _: with_sizes_hidden(cluster(0, LISTS, used={3: 0.75}), 5))
    watched.watch(8 * HOUR)
    assert (watched.messages, watched.runs) == ([], [])


def test_a_broker_is_not_empty_because_topics_were_not_read() -> None:
    unread = {"u": "timed out"}
    watched = Watched(ACT, lambda _: replace(cluster(0, LISTS, brokers=10), unread_topics=unread))
    watched.watch(HOUR)
    assert EMPTY_9 not in watched.memory.findings


def test_a_rack_that_went_broker_by_broker_stops_all_on_every_kafka() -> None:
    """Before Kafka 4.0 a cluster names no broker that is down, nor its rack."""

    def world(now_s: float) -> Observation:
        gone = [broker for broker, at_s in ((0, 600), (3, 600 + 20 * MINUTE), (6, 600 + 40 * MINUTE)) if now_s >= at_s]
        seen = cluster(0, LISTS, down=gone)
        assert isinstance(seen.brokers, Known)
        return replace(seen, brokers=Known(tuple(one for one in seen.brokers.value if not one.is_fenced)))

    watched = Watched(ACT, world)
    watched.watch(3 * HOUR)
    assert watched.runs == []
    (many,) = (one for one in watched.memory.open if one.name.kind is Kind.MANY_GONE)
    assert "and with them all of rack r0" in many.seen


@pytest.mark.parametrize(("most", "is_seen"), [(0.72, False), (0.8, True)])
def test_growth_that_copies_hide_takes_nothing_back(most: float, *, is_seen: bool) -> None:
    """It grows by 40 GB an hour, told and proposed at 70% as full within hours, when others move a partition.

    Where its used share alone shows it, a gate says what is not known.
    """

    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS, used={3: min(most, 0.46 + 0.04 * now_s / HOUR)})
        moves = frozenset({seen.placed[0].topic_partition}) if now_s >= 6.5 * HOUR else frozenset()
        return replace(seen, moves_of_others=Known(moves))

    watched = Watched("[disk-fills]\nlevel = 'propose'\nurgent-within = '12h'\n", world)
    watched.watch(6.5 * HOUR, every_s=300)
    before = watched.memory.findings[FULL_3]
    assert (before.state, before.urgent_ms is not None) == (State.PROPOSED, True)
    watched.watch(3 * HOUR, every_s=300)
    after = watched.memory.findings[FULL_3]
    assert (after.state, after.proposal) == (State.PROPOSED, before.proposal)
    assert after.urgent_ms == before.urgent_ms
    assert after.gates is not None
    assert ("growth of broker 3:/d0 is not known" in str(after.gates.closed)) is is_seen
    assert not [one for one in watched.messages if one.is_over]


@pytest.mark.parametrize(("hours", "is_over"), [(0.5, True), (9, False)])
def test_a_throttle_that_others_left_hides_no_growth(hours: float, *, is_over: bool) -> None:
    """Its disk was full within hours by its growth; others move partitions off it for so long, and leave a throttle."""

    def world(now_s: float) -> Observation:
        used = 0.46 + 0.04 * now_s / HOUR if now_s < 6.5 * HOUR else 0.5
        seen = cluster(0, LISTS, used={3: used})
        is_moving = 6.5 * HOUR <= now_s < (6.5 + hours) * HOUR
        moves = frozenset({seen.placed[0].topic_partition}) if is_moving else frozenset()
        throttles = ("a throttle of broker 3",) if now_s >= 6.5 * HOUR else ()
        return replace(seen, moves_of_others=Known(moves), throttles_of_others=Known(throttles))

    watched = Watched("[disk-fills]\nurgent-within = '12h'\n", world)
    watched.watch(15 * HOUR, every_s=300)
    assert (watched.memory.findings[FULL_3].state is State.CLOSED) is is_over


@pytest.mark.parametrize(("urgent_within", "is_over"), [("6h", True), ("14h", False)])
def test_growth_keeps_no_disk_open_that_was_told_by_its_share(urgent_within: str, *, is_over: bool) -> None:
    """It is told at 81%, and full within 13 hours by then; others move half of it away, and its growth is not known."""

    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS, used={3: 0.81 + 0.01 * now_s / HOUR if now_s < 7 * HOUR else 0.5})
        moves = frozenset({seen.placed[0].topic_partition}) if 7 * HOUR <= now_s < 7.5 * HOUR else frozenset()
        return replace(seen, moves_of_others=Known(moves))

    watched = Watched(f"[disk-fills]\nurgent-within = '{urgent_within}'\n", world)
    watched.watch(8 * HOUR, every_s=300)
    assert (watched.memory.findings[FULL_3].state is State.CLOSED) is is_over


def test_a_disk_that_fills_again_is_repaired_again_behind_copies() -> None:
    """Urgent by its growth at 70%, its repair brings it to 66%; it is at 85% before its growth is known again."""

    def world(now_s: float) -> Observation:
        ended_s = next((one.ended_ms / 1000 for one in watched.memory.acts if one.ended_ms is not None), None)
        hours, least = (now_s / HOUR, 0.46) if ended_s is None else ((now_s - ended_s) / HOUR, 0.66)
        return cluster(0, LISTS, used={3: min(0.9, least + 0.04 * hours)})

    watched = Watched("[disk-fills]\nlevel = 'act'\nurgent-within = '12h'\n", world)
    watched.watch(12.25 * HOUR, every_s=300)
    assert watched.runs == [FULL_3, FULL_3]
    assert State.GIVEN_UP not in watched.states


@pytest.mark.parametrize("hidden", ["between directories", "unread"])
def test_copies_of_others_that_no_list_of_moves_shows_are_no_growth(hidden: str) -> None:
    """Others copy a third of its size to a directory in eight hours, from another one or while moves are unread."""

    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS, used={3: 0.4 + 0.04 * min(8, now_s / HOUR)})
        if now_s >= 8 * HOUR:
            return seen
        if hidden == "unread":
            return replace(seen, moves_of_others=Unknown("no answer"))
        (own,) = dict(seen.directories())[3]
        coming = LogDirReplica(seen.placed[1].topic_partition, GIGABYTE, 0, is_future=True)
        return replace(seen, log_dirs={**seen.log_dirs, 3: Known((replace(own, replicas=(*own.replicas, coming)),))})

    watched = Watched("[disk-fills]\n", world)
    watched.watch(15 * HOUR, every_s=300)
    assert FULL_3 not in watched.memory.findings


@pytest.mark.parametrize(("share", "cut", "urgent_within"), [(0.71, 0.76, "6h"), (0.83, 0.91, "12h")])
def test_growth_that_takes_over_from_the_share_stays_while_hidden(share: float, cut: float, urgent_within: str) -> None:
    """It is told, or urgent, by its share; retention cuts that, growth keeps it so, and others move a partition."""

    def world(now_s: float) -> Observation:
        hours = now_s / HOUR
        seen = cluster(0, LISTS, used={3: share + 0.02 * hours if hours < 7 else cut})
        moves = frozenset({seen.placed[0].topic_partition}) if hours >= 7.25 else frozenset()
        return replace(seen, moves_of_others=Known(moves))

    watched = Watched(f"[disk-fills]\nurgent-within = '{urgent_within}'\n", world)
    watched.watch(7.2 * HOUR, every_s=300)
    before = watched.memory.findings[FULL_3]
    watched.watch(HOUR, every_s=300)
    after = watched.memory.findings[FULL_3]
    assert (after.state, after.urgent_ms) == (State.TOLD, before.urgent_ms)


def test_a_journal_without_the_cause_of_a_full_disk_closes_nothing() -> None:
    """It is full within hours by its growth, which an earlier process did not write; others move a partition."""

    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS, used={3: min(0.72, 0.46 + 0.04 * now_s / HOUR)})
        moves = frozenset({seen.placed[0].topic_partition}) if now_s >= 6.5 * HOUR else frozenset()
        return replace(seen, moves_of_others=Known(moves))

    watched = Watched("[disk-fills]\n", world)
    watched.watch(6.5 * HOUR, every_s=300)
    moved = FindingMoved
    watched.memory = memory_of(
        replace(one, by_growth=None) if isinstance(one, moved) else one for one in watched.events
    )
    watched.watch(HOUR, every_s=300)
    assert watched.memory.findings[FULL_3].state is State.TOLD


def test_a_disk_seen_for_the_first_time_is_not_said_to_stay() -> None:
    watched = Watched("[disk-fills]\n", lambda _: cluster(0, LISTS, used={3: 0.82}))
    watched.look()
    assert watched.memory.findings[FULL_3].seen == "it is 82% full, its growth is not known"


def test_growth_of_some_brokers_alone_closes_no_band() -> None:
    """Broker 3 is fullest and grows as the others do, but it catches up, so that its growth is not known."""

    def world(now_s: float) -> Observation:
        grown = 0.008 * now_s / HOUR
        return lagging(cluster(0, LISTS, used={**dict.fromkeys(range(9), 0.42 + grown), 3: 0.75 + grown}))

    watched = Watched("[band-left]\n", world)
    watched.memory = replace(watched.memory, outages=(Outage(3, -5, -4),))
    watched.watch(10 * HOUR, every_s=300)
    assert [one for one in watched.messages if one.name == Name(Kind.BAND_LEFT, "cluster")]
