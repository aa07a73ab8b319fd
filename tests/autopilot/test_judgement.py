"""Judgement of repairs, who lets one go on, and brokers found down: the core over clusters as values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from kreassign.autopilot.core import EndRun, HoldRun, PauseRun, ReleaseRun, ResumeRun, symptoms, tick
from kreassign.autopilot.events import (
    ApprovalAsked,
    ApprovalsJudged,
    BrokerCame,
    BrokerWent,
    Event,
    Looked,
    Name,
    OthersMoved,
    Result,
    State,
    SyncChanged,
    WindowsLifted,
)
from kreassign.autopilot.gates import Case, gates_of
from kreassign.autopilot.memory import OUTAGES_KEPT, Act, Memory, Outage, remember
from kreassign.autopilot.observation import US, Known, Observation, RunSeen, Unknown
from kreassign.autopilot.policy import Kind, parse_policy
from kreassign.autopilot.replay import replay
from kreassign.autopilot.symptoms import Look
from kreassign.executor.maintenance.record import Entered
from kreassign.model import TopicPartition
from kreassign.operations.autopilot_plans import avoided
from tests.autopilot.test_scenarios import ACT, GONE_3, LISTS, WITHOUT_3, outages
from tests.autopilot.values import DAY, HOUR, MINUTE, Watched, cluster

FULL_3 = Name(Kind.DISK_FILLS, "broker 3:/d0")


# A repair is judged by the partitions that it moved.


def test_new_partitions_on_a_dead_broker_are_planned_again() -> None:
    """The lease creates a topic of its own while broker 3 is replaced."""

    def world(_: float) -> Observation:
        lists = (LISTS, [*WITHOUT_3, (2, 3, 4)], WITHOUT_3)[min(2, len(watched.runs))]
        return cluster(0, lists, down=[3])

    watched = Watched(ACT, world)
    watched.watch(5 * HOUR)
    assert watched.runs == [GONE_3] * 2
    assert watched.memory.findings[GONE_3].state is State.CLOSED
    assert not [one for one in watched.messages if "look into it" in one.what]


def test_a_repair_that_did_not_help_is_told_as_it_is_now() -> None:
    left = [*WITHOUT_3[:17], next(one for one in LISTS if 3 in one)]
    lists = [*LISTS[:17], left[-1]]
    watched = Watched(ACT, lambda _: cluster(0, left if watched.runs else lists, down=[3]))
    watched.watch(5 * HOUR)
    assert watched.runs == [GONE_3]
    (told,) = [one for one in watched.messages if "look into it" in one.what]
    assert "; 1 replica (" in told.why
    assert told.why.startswith(watched.memory.findings[GONE_3].seen)


# Windows, levels and processes of people, while a repair runs.

NIGHT = "[disk-fills]\nlevel = 'act'\nurgent-any-time = true\n[runs]\nwindows = ['00:00-01:00']\n"


def test_a_repair_whose_disk_becomes_urgent_leaves_its_window() -> None:
    watched = Watched(NIGHT, lambda now_s: cluster(0, LISTS, used={3: 0.88 if now_s < 3 * HOUR else 0.95}), run_s=DAY)
    watched.watch(3 * HOUR)
    assert watched.orders[-1] == PauseRun("run-0")
    watched.watch(2 * MINUTE)
    assert watched.orders[-1] == ResumeRun("run-0")
    assert [one.name for one in watched.events if isinstance(one, WindowsLifted)] == [FULL_3]
    watched.policy = parse_policy(NIGHT.replace("true", "false"), "policy.toml")
    watched.watch(2 * MINUTE)
    assert watched.orders[-1] == PauseRun("run-0"), "what the policy takes back holds for a repair that runs"


def test_an_urgent_disk_waits_for_no_repair_that_waits_for_its_window() -> None:
    def world(now_s: float) -> Observation:
        return cluster(0, LISTS, used={3: 0.88} if now_s < 3 * HOUR else {3: 0.88, 5: 0.95})

    watched = Watched(NIGHT, world, run_s=DAY)
    watched.watch(4 * HOUR)
    assert watched.runs == [FULL_3, Name(Kind.DISK_FILLS, "broker 5:/d0")]
    assert watched.memory.acts[0].outcome == "cancelled"


def test_a_repair_of_an_urgent_disk_is_not_ended_for_another_one() -> None:
    """Its disk is full within hours by its growth, which nobody knows while the repair copies."""

    def world(now_s: float) -> Observation:
        used = min(0.8, 0.46 + 0.04 * now_s / HOUR)
        return cluster(0, LISTS, used={3: used, 5: 0.95 if now_s >= 9.5 * HOUR else 0.5})

    watched = Watched("[disk-fills]\nlevel = 'act'\nurgent-within = '12h'\n", world, run_s=DAY)
    watched.watch(11 * HOUR, every_s=300)
    assert watched.runs == [FULL_3]
    assert EndRun("run-0") not in watched.orders


def test_an_urgent_disk_waits_for_no_disk_that_was_urgent_by_its_share() -> None:
    """Broker 3 was told by its growth, urgent at 93%, and is at 85% while its repair runs; broker 5 is at 95%."""

    def world(now_s: float) -> Observation:
        hours = now_s / HOUR
        used = 0.51 + 0.04 * hours if hours < 10.5 else 0.85
        return cluster(0, LISTS, used={3: used, 5: 0.95 if hours >= 11 else 0.5})

    watched = Watched("[disk-fills]\nlevel = 'act'\nurgent-within = '1h'\n", world, run_s=DAY)
    watched.watch(13 * HOUR, every_s=300)
    assert watched.runs[:2] == [FULL_3, Name(Kind.DISK_FILLS, "broker 5:/d0")]


def test_an_urgent_disk_does_not_wait_for_the_night_of_a_dead_broker() -> None:
    """The repair of broker 3 is paused by day; a disk that may be relieved at any time is full within hours."""
    policy = f"[broker-gone]\nlevel = 'act'\n{NIGHT.replace('01:00', '02:00')}"

    def world(now_s: float) -> Observation:
        return cluster(0, LISTS, down=[3], used={5: 0.5 if now_s < 3 * HOUR else 0.95})

    watched = Watched(policy, world, run_s=DAY)
    watched.watch(3 * HOUR)
    assert (watched.runs, watched.orders[-1]) == ([GONE_3], PauseRun("run-0"))
    watched.watch(30 * MINUTE)
    assert watched.runs == [GONE_3, Name(Kind.DISK_FILLS, "broker 5:/d0")]


def test_leaders_that_were_elected_keep_no_lost_copies_waiting() -> None:
    at_ms = 55 * MINUTE * 1000
    elected = Act(Name(Kind.LEADERS, "cluster"), "election", at_ms, 0, (), at_ms, Result.DONE, "done")
    watched = Watched("[broker-gone]\nlevel = 'act'\n", outages((3, 0, DAY)))
    watched.memory = replace(watched.memory, acts=(elected,))
    watched.watch(75 * MINUTE)
    assert watched.runs == [GONE_3]


def test_a_run_that_nobody_approved_ends_when_approval_is_wanted() -> None:
    watched = Watched("[broker-gone]\nlevel = 'act'\n", outages((3, 0, DAY)), run_s=DAY)
    watched.watch(70 * MINUTE)
    watched.policy = parse_policy("[broker-gone]\nlevel = 'ask'\n[approvals]\nallowed-signers = 'a'\n", "policy.toml")
    watched.watch(3 * MINUTE)
    assert EndRun("run-0") in watched.orders
    assert watched.runs == [GONE_3]
    (told,) = [one for one in watched.messages if "ends early" in one.what]
    assert told.why == 'the policy has level = "ask" for broker-gone now, and nobody approved this run'


def test_a_run_that_people_approved_goes_on() -> None:
    ask = "[broker-gone]\nlevel = 'ask'\n[approvals]\nallowed-signers = 'a'\n"
    watched = Watched(ask, outages((3, 0, DAY)), run_s=DAY)
    watched.watch(40 * MINUTE)
    watched.note(ApprovalAsked(watched.memory.findings[GONE_3].state_ms, GONE_3, "request"))
    watched.note(ApprovalsJudged(40 * MINUTE * 1000, GONE_3, ("bob",)))
    watched.watch(HOUR)
    assert watched.runs == [GONE_3]
    watched.watch(HOUR)
    assert EndRun("run-0") not in watched.orders


@pytest.mark.parametrize(("stop", "order"), [("brake", HoldRun("run-0")), ("window", HoldRun("run-0")),
                                             ("level", EndRun("run-0"))])  # fmt: skip
def test_a_repair_that_people_let_go_on_is_steered(stop: str, order: object) -> None:
    """It was paused for the brake; since then a process of people executes it."""

    def world(now_s: float) -> Observation:
        is_pulled = 70 * MINUTE <= now_s < 80 * MINUTE or (stop == "brake" and 100 * MINUTE <= now_s < 110 * MINUTE)
        seen = outages((3, 0, DAY))(now_s)
        return replace(seen, brake=Known("pulled")) if is_pulled else seen

    windows = "[runs]\nwindows = ['00:00-01:40', '01:50-23:00']\n" if stop == "window" else ""
    watched = Watched(ACT + windows, world, run_s=DAY)
    watched.watch(75 * MINUTE)
    assert watched.run.is_at_rest
    watched.run = RunSeen(is_elsewhere=True)
    watched.watch(25 * MINUTE)
    watched.orders.clear()
    if stop == "level":
        watched.policy = parse_policy("[care]", "policy.toml")
    watched.watch(2 * MINUTE)
    assert watched.orders[:1] == [order]
    if order == HoldRun("run-0"):
        watched.run = RunSeen(US, is_elsewhere=True)
        watched.watch(10 * MINUTE)
        assert watched.orders[-1] == ReleaseRun("run-0")


# Brokers that are down since nobody knows when.


def unread(now: Observation) -> Observation:
    return replace(now, brokers=Unknown("no answer"))


@pytest.mark.parametrize("since", ["first look", "break", "no answer"])
def test_brokers_found_down_stop_everything_for_a_day_at_most(since: str) -> None:
    begin_s = 0 if since == "first look" else HOUR

    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS, down=[1, 5], used={3: 0.95}) if now_s >= begin_s else cluster(0, LISTS)
        return unread(seen) if since == "no answer" and HOUR <= now_s < 1.5 * HOUR else seen

    watched = Watched("[disk-fills]\nlevel = 'act'\n", world)
    watched.watch(begin_s, every_s=300)
    watched.now_s += HOUR if since == "break" else 0
    watched.watch(23 * HOUR, every_s=300)
    assert watched.runs == []
    (told,) = [one for one in watched.messages if "many-gone" in one.what]
    assert "when brokers [1, 5] went is not known" in told.what
    watched.watch(3 * HOUR, every_s=300)
    assert watched.runs == [FULL_3]
    over = [one.what for one in watched.messages if one.is_over and "many-gone" in one.what]
    assert over == ["many-gone cluster: it is over: broker 1 is down still, broker 5 is down still"]


def test_brokers_seen_to_go_at_once_stop_everything_until_they_are_back() -> None:
    def world(now_s: float) -> Observation:
        return cluster(0, LISTS, down=[1, 5], used={3: 0.95}) if now_s >= HOUR else cluster(0, LISTS)

    watched = Watched("[disk-fills]\nlevel = 'act'\n", world)
    watched.watch(3 * DAY, every_s=300)
    assert watched.runs == []


def test_a_broker_found_down_is_down_since_then_at_least() -> None:
    watched = Watched("[care]", outages((3, 0, DAY), (7, 2 * HOUR, DAY)))
    watched.watch(3 * HOUR)
    first, second = (one.what for one in watched.messages)
    assert "down since 2m at least; " in first
    assert "down since 2m; " in second


def test_partitions_without_a_live_copy_are_told_as_offline() -> None:
    lists = [(0, 1), (2,), (1, 2)]
    watched = Watched("[care]", lambda _: cluster(0, lists, brokers=3, racks=1, down=[2]))
    watched.watch(HOUR)
    told = watched.messages[0].what
    assert (
        "2 replicas (1 partition with one copy left, 1 partition offline with no copy left, the size of 1 unknown)"
        in told
    )


# Ends of findings that are none.


SLOW_3 = Name(Kind.SLOW_BROKER, "broker 3")


def lagging(seen: Observation) -> Observation:
    """Broker 3 is out of sync wherever it follows."""
    assert isinstance(seen.partitions, Known)
    partitions = (
        one if one.leader == 3 else replace(one, isr=tuple(broker for broker in one.isr if broker != 3))
        for one in seen.partitions.value
    )
    return replace(seen, partitions=Known(tuple(partitions)))


def test_time_without_a_look_is_no_time_in_sync() -> None:
    watched = Watched("[care]\n", lambda now_s: cluster(0, LISTS) if now_s >= HOUR else lagging(cluster(0, LISTS)))
    watched.watch(HOUR + 10 * MINUTE)
    watched.now_s += 2 * HOUR
    watched.watch(25 * MINUTE)
    assert watched.memory.findings[SLOW_3].state is State.TOLD
    watched.watch(10 * MINUTE)
    assert watched.memory.findings[SLOW_3].state is State.CLOSED


def test_leaders_come_back_to_a_slow_broker_only_when_it_is_well() -> None:
    """It is out of sync for two days, but for ten minutes of each two hours; leaders go to any broker not avoided."""
    left = [(*(broker for broker in one if broker != 3), 3) if 3 in one else one for one in LISTS]
    times_led: list[float] = []

    def world(now_s: float) -> Observation:
        is_shut = bool(watched.runs) and 3 in avoided(
            watched.memory, Name(Kind.BAND_LEFT, "cluster"), cluster(0, LISTS)
        )
        is_led = not is_shut and now_s >= HOUR
        times_led.extend([now_s] if watched.runs and is_led else [])
        seen = cluster(0, left if is_shut else LISTS)
        is_well = not HOUR <= now_s < 2 * DAY or now_s % (2 * HOUR) < 10 * MINUTE
        return seen if is_well else lagging(seen)

    watched = Watched("[slow-broker]\nlevel = 'act'\n", world)
    watched.watch(2 * DAY, every_s=300)
    assert watched.runs == [SLOW_3]
    assert times_led == []
    assert "it leads nothing" in watched.memory.findings[SLOW_3].seen
    watched.watch(DAY, every_s=300)
    assert watched.runs == [SLOW_3]
    assert times_led[0] >= 2 * DAY + 20 * MINUTE, "in sync for as long as the policy wants it"
    assert [one.is_over for one in watched.messages if one.name == SLOW_3].count(True) == 1


def test_a_slow_broker_that_is_well_is_told_to_lead_nothing_since() -> None:
    left = [(*(broker for broker in one if broker != 3), 3) if 3 in one else one for one in LISTS]

    def world(now_s: float) -> Observation:
        seen = cluster(0, left if watched.runs else LISTS)
        return lagging(seen) if HOUR <= now_s < 6 * HOUR else seen

    watched = Watched("[slow-broker]\nlevel = 'act'\n", world)
    watched.watch(DAY, every_s=300)
    assert watched.runs == [SLOW_3]
    over = next(one for one in watched.messages if one.name == SLOW_3 and one.is_over)
    assert over.what == "slow-broker broker 3: it is in sync again, and leads nothing any more"
    assert over.commands == ("kreassign plan leaders --out plan.json",)


def test_a_broker_that_is_briefly_slow_again_and_again_is_told() -> None:
    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS)
        return lagging(seen) if now_s >= HOUR and now_s % (20 * MINUTE) < 5 * MINUTE else seen

    watched = Watched("[slow-broker]\nlevel = 'act'\n", world)
    watched.watch(6 * HOUR)
    (told,) = [one for one in watched.messages if one.name == SLOW_3]
    assert "it was slow 4 times within a day" in told.what
    assert (watched.runs, watched.memory.findings[SLOW_3].state) == ([], State.TOLD)


@pytest.mark.parametrize(("times", "is_told"), [(3, False), (4, True)])
def test_a_replica_that_falls_out_of_sync_again_and_again_is_told(times: int, is_told: bool) -> None:
    """One of the six replicas that broker 3 follows, of which half would make it slow."""

    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS)
        assert isinstance(seen.partitions, Known)
        is_behind = HOUR <= now_s < HOUR + times * 20 * MINUTE and now_s % (20 * MINUTE) < 5 * MINUTE
        chosen = next(one for one in seen.partitions.value if 3 in one.replicas[1:])
        fallen = replace(chosen, isr=tuple(one for one in chosen.isr if one != 3))
        lists = (fallen if one == chosen and is_behind else one for one in seen.partitions.value)
        return replace(seen, partitions=Known(tuple(lists)))

    watched = Watched("[slow-broker]\nlevel = 'act'\n", world)
    watched.watch(6 * HOUR)
    assert len(watched.messages) == is_told
    assert avoided(watched.memory, Name(Kind.BAND_LEFT, "cluster"), world(0)) == ()
    watched.watch(DAY, every_s=300)
    assert watched.runs == []
    if is_told:
        told, over = watched.messages
        assert told.what.startswith("slow-broker cluster: 1 replica fell out of sync 4 times and more within a day")
        assert told.what.endswith(" on broker 3")
        assert (over.is_over, over.what) == (True, "slow-broker cluster: it is over")


def fallen(seen: Observation, names: Collection[TopicPartition]) -> Observation:
    """Of these partitions only the leaders are in sync."""
    assert isinstance(seen.partitions, Known)
    lists = (replace(one, isr=one.isr[:1]) if one.topic_partition in names else one for one in seen.partitions.value)
    return replace(seen, partitions=Known(tuple(lists)))


FLAPPING = Name(Kind.SLOW_BROKER, "cluster")


@pytest.mark.parametrize("hidden_by", ["move", "slow broker"])
def test_a_replica_that_is_hidden_has_not_fallen_again(hidden_by: str) -> None:
    """It is out of sync for hours; others move its partition at times, or its broker is slow as a whole."""

    def world(now_s: float) -> Observation:
        seen = fallen(cluster(0, LISTS), {TopicPartition("t", 0)})
        if now_s % (20 * MINUTE) >= 5 * MINUTE:
            return seen
        if hidden_by == "move":
            return replace(seen, moves_of_others=Known(frozenset({TopicPartition("t", 0)})))
        return fallen(seen, {one.topic_partition for one in seen.placed})

    watched = Watched("[care]\n", world)
    watched.watch(6 * HOUR)
    assert len(watched.memory.behind) == 2
    assert [one.what for one in watched.messages if one.name == FLAPPING] == []


def test_falls_of_many_replicas_are_counted_up_to_a_limit() -> None:
    """Of 1,800 partitions others fall out of sync at each look, for hours."""
    calm = cluster(0, [LISTS[one % len(LISTS)] for one in range(1800)])

    def world(now_s: float) -> Observation:
        first = round(now_s / 300) * 40
        return fallen(calm, {TopicPartition("t", one % 1800) for one in range(first, first + 40)})

    watched = Watched("[care]\n", world)
    watched.watch(4 * HOUR, every_s=300)
    told = next(one for one in watched.messages if one.name == FLAPPING)
    assert told.what.endswith(": 1,000 replicas fell out of sync within a day, and others are not counted")
    assert len(watched.memory.fell_ms) == 1000
    assert sum(len(one.fell) for one in watched.events if isinstance(one, SyncChanged)) < 4000


def test_falls_are_counted_again_a_day_after_many_of_them() -> None:
    calm = cluster(0, [LISTS[one % len(LISTS)] for one in range(1801)])

    def world(now_s: float) -> Observation:
        first = round(now_s / 300) * 40
        falling = {TopicPartition("t", one % 1800) for one in range(first, first + 40)} if now_s < 4 * HOUR else set()
        if now_s > 2 * DAY and now_s % (20 * MINUTE) < 5 * MINUTE:
            falling.add(TopicPartition("t", 1800))
        return fallen(calm, falling)

    watched = Watched("[care]\n", world)
    watched.watch(2 * DAY + 3 * HOUR, every_s=300)
    assert {len(times) for one, times in watched.memory.fell_ms.items() if one.partition == 1800} == {4}


def flapping(now_s: float) -> Observation:
    """Partition 0 falls out of sync for five of each twenty minutes, and from the second day on partition 3, too."""
    names = {TopicPartition("t", one) for one in ([0, 3] if now_s >= DAY else [0])}
    seen = cluster(0, LISTS)
    return fallen(seen, names) if now_s % (20 * MINUTE) < 5 * MINUTE else seen


def test_replicas_that_fall_again_and_again_are_only_told() -> None:
    watched = Watched("[slow-broker]\nlevel = 'act'\n", flapping)
    watched.watch(6 * HOUR)
    (told,) = watched.messages
    assert told.why == "it is only told"
    look = watched.last_look
    case = Case(watched.memory.findings[FLAPPING], symptoms(look)[FLAPPING], *look)
    assert gates_of(case) == {"level": "there is no repair of it: people see to it"}
    played = replay(watched.events, watched.policy)
    assert (played.acts, dict(played.not_repaired)) == ((), {})


def test_replicas_that_fall_are_told_again_with_another_broker() -> None:
    watched = Watched("[care]\n", flapping)
    watched.watch(DAY)
    (told,) = watched.messages
    watched.watch(DAY)
    _, again = watched.messages
    assert again.what.startswith(f"{FLAPPING}: it is about ")
    assert "t-3 on broker" in again.what
    assert "t-3 on broker" not in told.what


def test_a_broker_in_maintenance_is_not_told_as_over() -> None:
    entered = Entered(40 * MINUTE * 1000, "ann", is_cordoned=False)

    def world(now_s: float) -> Observation:
        seen = outages((3, 600, DAY))(now_s)
        return replace(seen, maintenance=Known({3: entered})) if now_s >= 40 * MINUTE else seen

    watched = Watched("[care]", world)
    watched.watch(HOUR)
    assert watched.messages[-1].what == (
        "broker-gone broker 3: the broker is in maintenance since 1970-01-01 00:40 UTC, by ann; not repaired"
    )


def test_a_rack_in_maintenance_is_not_many_gone() -> None:
    """The record of maintenance is on a broker of that rack: for ten minutes it does not answer."""
    entered = Known(dict.fromkeys((0, 3, 6), Entered(0, "ann", is_cordoned=False)))

    def world(now_s: float) -> Observation:
        is_read = not 40 * MINUTE <= now_s < 50 * MINUTE
        seen = outages(*((one, 600, DAY) for one in (0, 3, 6)))(now_s)
        return replace(seen, maintenance=entered if is_read else Unknown("no answer"))

    watched = Watched("[care]", world)
    watched.watch(HOUR)
    assert watched.messages == []


def test_time_in_maintenance_is_no_evidence_against_a_broker() -> None:
    entered = Entered(0, "ann", is_cordoned=False)

    def world(now_s: float) -> Observation:
        seen = outages((3, 600, DAY))(now_s)
        return replace(seen, maintenance=Known({3: entered})) if now_s < 5 * HOUR else seen

    watched = Watched(ACT, world)
    watched.watch(5.9 * HOUR)
    assert watched.runs == []
    watched.watch(0.4 * HOUR)
    assert watched.runs == [GONE_3]


# Time.


def test_signs_of_life_go_on_when_the_clock_is_set_back() -> None:
    """A host that decides nothing for seven minutes is taken for lost."""
    watched = Watched("[care]", lambda _: cluster(0, LISTS))
    watched.watch(5 * HOUR)
    watched.now_s -= 2 * HOUR
    watched.events.clear()
    watched.watch(20 * MINUTE)
    assert len([one for one in watched.events if isinstance(one, Looked)]) >= 4


# Outages that are remembered.


def whole(memory: Memory, events: list[Event]) -> Memory:
    """The memory with all outages that there were."""
    went: dict[int, int] = {}
    all_outages = []
    for event in events:
        if isinstance(event, BrokerWent):
            went[event.broker] = event.at_ms
        elif isinstance(event, BrokerCame):
            all_outages.append(Outage(event.broker, went[event.broker], event.at_ms))
    return replace(memory, outages=tuple(all_outages))


def test_the_last_outages_of_a_broker_decide_as_all_do() -> None:
    """Broker 5 restarts every 40 minutes for days, broker 3 twice, and for good at the end."""
    rounds = ((5, one * 40.0 * MINUTE, one * 40.0 * MINUTE + 240) for one in range(1, 150))
    world = outages((3, 2 * HOUR, 3 * HOUR), (3, 20 * HOUR, 21 * HOUR), (3, 3 * DAY, 9 * DAY), *rounds)
    watched = Watched(ACT, world)
    memory, events = Memory("c"), list[Event]()
    while watched.now_s < 3.5 * DAY:
        memory = watched.memory
        now = replace(world(watched.now_s), at_ms=round(watched.now_s * 1000))
        remembers_all = whole(memory, events)
        shown, all_shown = (symptoms(Look(now, one, watched.policy)) for one in (memory, remembers_all))
        assert all_shown == shown
        ours, theirs = tick(memory, now, watched.policy), tick(remembers_all, now, watched.policy)
        assert (theirs.events, theirs.messages, theirs.order) == (ours.events, ours.messages, ours.order)
        watched.watch(600, every_s=300)
        events = watched.events
    assert len(memory.outages) == OUTAGES_KEPT + 2
    assert watched.runs == [one.name for one in replay(watched.events, watched.policy).acts] == [GONE_3]


def test_a_long_move_of_others_is_written_down_once_a_day() -> None:
    theirs = frozenset(TopicPartition("t", number) for number in range(5))
    watched = Watched("[care]\n", lambda _: replace(cluster(0, LISTS), moves_of_others=Known(theirs)))
    watched.watch(30 * HOUR, every_s=300)
    assert [len(one.moves) for one in watched.events if isinstance(one, OthersMoved) and one.moves] == [5, 5]


def test_moves_of_others_are_forgotten_while_only_their_throttle_is_seen() -> None:
    memory = Memory(foreign_ms={TopicPartition("t", 0): 0})
    assert remember(memory, OthersMoved(round(60 * DAY * 1000), "others have set throttles", ())).foreign_ms == {}
