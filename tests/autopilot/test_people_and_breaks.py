"""Unread time, people who stop a repair, brokers that come and go: the core over clusters as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kreassign.autopilot.core import EndRun, HoldRun, PauseRun, PlanRepair, ReleaseRun, ResumeRun, RunRepair
from kreassign.autopilot.events import (
    ApprovalAsked,
    ApprovalsJudged,
    DisksMeasured,
    DiskUse,
    EndAsked,
    FindingMoved,
    GatesJudged,
    Name,
    NotPlanned,
    OthersMoved,
    PeopleHeld,
    Planned,
    ReplicasHeld,
    Result,
    Resumed,
    RunBegan,
    RunEnded,
    Silenced,
    State,
    TurnedOff,
    WentOn,
)
from kreassign.autopilot.gates import many_text, resting
from kreassign.autopilot.growth import NO_GROWTH, growth_of
from kreassign.autopilot.memory import BACK_OFF_MS, Act, Finding, Memory, Outage, Replaced, memory_of, remember
from kreassign.autopilot.observation import US, Known, Observation, RunSeen, Unknown
from kreassign.autopilot.policy import Kind, parse_policy
from kreassign.autopilot.symptoms import Look
from kreassign.errors import InputError
from kreassign.executor.maintenance.record import Entered
from kreassign.model import Broker, LogDir, LogDirReplica, TopicPartition
from tests.autopilot.test_scenarios import ACT, GONE_3, LISTS, WITHOUT_3, outages
from tests.autopilot.values import DAY, GIGABYTE, HOUR, MINUTE, Watched, cluster

ENTERED = Entered(0, "ann", is_cordoned=False)
EMPTY_9 = Name(Kind.NEW_BROKER, "broker 9")


def dirs_of(now: Observation, broker: int) -> tuple[LogDir, ...]:
    """Log directories of a broker that answered."""
    dirs = now.log_dirs[broker]
    assert isinstance(dirs, Known)
    return dirs.value


# Time for which nobody saw a finding.


def test_time_without_an_answer_is_no_evidence() -> None:
    def world(now_s: float) -> Observation:
        seen = outages((3, 0, DAY))(now_s)
        return replace(seen, partitions=Unknown("no answer")) if 5 * MINUTE < now_s < 55 * MINUTE else seen

    watched = Watched(ACT, world)
    watched.watch(1.8 * HOUR)
    assert watched.runs == []
    watched.watch(0.5 * HOUR)
    assert watched.runs == [GONE_3]


def test_one_look_without_an_answer_costs_no_evidence() -> None:
    def world(now_s: float) -> Observation:
        seen = outages((3, 0, DAY))(now_s)
        return replace(seen, partitions=Unknown("no answer")) if now_s == 30 * MINUTE else seen

    watched = Watched(ACT, world)
    watched.watch(1.2 * HOUR)
    assert watched.runs == [GONE_3]


@pytest.mark.parametrize(("silent", "what"), [
    ({"brokers": Unknown("refused"), "partitions": Unknown("refused")}, "brokers, partitions: refused"),
    ({"partitions": Unknown("timed out")}, "partitions: timed out"),
    ({"unread_topics": {"t": "not allowed"}}, "topic t: not allowed"),
    ({"log_dirs": {3: Unknown("timed out")}}, "log directories of broker 3: timed out"),
    ({"partitions": Unknown("refused"), "log_dirs": {3: Unknown("gone")}},
     "partitions: refused; log directories of broker 3: gone"),
])  # fmt: skip
def test_what_does_not_answer_is_told_once_and_again_when_it_does(silent: Mapping[str, Any], what: str) -> None:
    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS)
        return replace(seen, **silent) if HOUR <= now_s < 3 * HOUR else seen

    watched = Watched(ACT, world)
    watched.watch(HOUR + 14 * MINUTE)
    assert watched.messages == []
    watched.watch(10 * MINUTE)
    noted = watched.memory.findings[Name(Kind.UNREAD, "cluster")].gates
    assert noted is not None
    assert [tuple(one) for one in noted.closed] == [("level", "there is no repair of it: people see to it")]
    watched.watch(3 * HOUR)
    told, over = watched.messages
    assert told.why == "it is only told"
    assert told.what == f"unread cluster: could not be read: {what}; what that hides is neither found nor repaired"
    assert (over.what, over.is_over) == ("unread cluster: it is over", True)


def test_a_band_that_was_gone_during_its_repair_must_last_again() -> None:
    """The repair fails an hour after the band is left again."""

    def world(now_s: float) -> Observation:
        acts = watched.memory.acts
        is_gone = bool(acts) and now_s - acts[0].begun_ms / 1000 < 2 * HOUR
        return cluster(0, LISTS[:9], used={3: 0.5 if is_gone else 0.9})

    watched = Watched("[band-left]\nlevel = 'act'\n[care]\nrest = '1h'\n", world, run_s=3 * HOUR)
    watched.result = Result.FAILED
    watched.watch(14 * HOUR, every_s=300)
    assert len(watched.runs) == 1
    watched.watch(HOUR, every_s=300)
    assert len(watched.runs) == 2


@pytest.mark.parametrize("is_down", [False, True])
def test_a_band_is_not_over_while_nobody_sees_its_broker(*, is_down: bool) -> None:
    """After five hours the fullest broker restarts, or no broker is read."""

    def world(now_s: float) -> Observation:
        is_hidden = 5 * HOUR <= now_s < 5 * HOUR + 4 * MINUTE
        seen = cluster(0, LISTS, used={3: 0.9}, down=[3] if is_hidden and is_down else [])
        return replace(seen, brokers=Unknown("no answer"), log_dirs={}) if is_hidden and not is_down else seen

    watched = Watched("[band-left]\nlevel = 'propose'\n", world)
    watched.watch(6.5 * HOUR)
    assert Name(Kind.BAND_LEFT, "cluster") in {one.name for one in watched.orders if isinstance(one, PlanRepair)}


def test_a_break_makes_no_two_losses_one() -> None:
    """Brokers 1 and 5 died ten hours apart; then the autopilot itself was down for a day."""
    watched = Watched(ACT.replace("level = 'act'", "level = 'tell'"), outages((1, 0, 9 * DAY), (5, 10 * HOUR, 9 * DAY)))
    watched.watch(12 * HOUR, every_s=300)
    watched.now_s += DAY
    watched.watch(HOUR, every_s=300)
    assert not [one for one in watched.memory.findings if one.kind is Kind.MANY_GONE]


def test_people_who_know_better_silence_that_many_are_gone() -> None:
    watched = Watched(ACT, outages((1, 0, 9 * DAY), (2, 0, 9 * DAY)))
    watched.watch(HOUR, every_s=300)
    watched.note(Silenced(HOUR * 1000, 1, Kind.MANY_GONE, "cluster", DAY * 1000, "ann", "both are scrapped"))
    watched.watch(HOUR, every_s=300)
    assert any(isinstance(one, PlanRepair) for one in watched.orders)


@pytest.mark.parametrize("passing", [
    [NotPlanned(HOUR * 1000, GONE_3, "no answer", is_passing=True)],
    [NotPlanned(HOUR * 1000, GONE_3, "no answer", is_passing=True, is_repeated=True)],
    [RunBegan(HOUR * 1000, GONE_3, "run", GIGABYTE, ()), RunEnded(HOUR * 1000, GONE_3, Result.NOT_BEGUN, 0)],
])  # fmt: skip
def test_what_passes_leaves_a_proposal_and_its_signatures(passing: list[Any]) -> None:
    watched = Watched(
        "[broker-gone]\nlevel = 'ask'\n[approvals]\nallowed-signers = 'signers'\n", outages((3, 0, 9 * DAY))
    )
    watched.watch(HOUR)
    watched.note(ApprovalAsked(HOUR * 1000, GONE_3, "request"))
    watched.note(ApprovalsJudged(HOUR * 1000, GONE_3, ("ann",), lacking="1 of 2"))
    before = watched.memory.findings[GONE_3]
    for event in passing:
        watched.note(event)
    after = watched.memory.findings[GONE_3]
    assert (after.state, after.proposal, after.asked, after.judged) == (
        State.PROPOSED, before.proposal, before.asked, before.judged,
    )  # fmt: skip
    assert after.not_before_ms > HOUR * 1000


@pytest.mark.parametrize(("others", "is_stopped"), [((), False), ((5,), False), ((5, 7), True)])
def test_a_silence_of_lost_brokers_is_none_of_others(others: tuple[int, ...], *, is_stopped: bool) -> None:
    """Brokers 1 and 2 are back before two others go; before one goes, only broker 1."""
    went = ((one, 2 * HOUR, 9 * DAY) for one in others)
    watched = Watched(ACT, outages((1, 0, 1.5 * HOUR), (2, 0, 9 * DAY if len(others) < 2 else 1.5 * HOUR), *went))
    watched.watch(HOUR, every_s=300)
    watched.note(Silenced(HOUR * 1000, 1, Kind.MANY_GONE, "cluster", DAY * 1000, "ann", "both are scrapped"))
    watched.watch(1.6 * HOUR, every_s=300)
    assert (many_text(watched.last_look) is not None) is is_stopped


def test_what_came_to_a_disk_in_a_break_is_no_growth() -> None:
    """Others may have moved it there while the autopilot was down, from 2 to 9 hours."""
    watched = Watched(ACT, lambda now_s: cluster(0, LISTS, used={3: 0.5 if now_s < 3 * HOUR else 0.78}))
    watched.watch(2 * HOUR, every_s=300)
    watched.now_s = 9 * HOUR
    watched.watch(HOUR, every_s=300)
    assert (watched.orders, watched.messages) == ([], [])


@pytest.mark.parametrize(("first_s", "is_stopped"), [(5 * MINUTE, False), (25 * MINUTE, True)])
def test_a_broker_that_went_unseen_may_have_gone_with_another(first_s: float, *, is_stopped: bool) -> None:
    """The autopilot is down from 30 to 60 minutes, and broker 5 goes meanwhile."""
    watched = Watched(ACT, outages((1, first_s, 9 * DAY), (5, 45 * MINUTE, 9 * DAY)))
    watched.watch(30 * MINUTE)
    watched.now_s = HOUR
    watched.watch(10 * MINUTE)
    assert (many_text(watched.last_look) is not None) is is_stopped


@pytest.mark.parametrize(("apart_s", "is_stopped"), [(5 * MINUTE, True), (6 * HOUR, False)])
def test_a_silence_stops_only_for_others_that_went_at_once(apart_s: float, *, is_stopped: bool) -> None:
    others = (5, 2 * HOUR, 9 * DAY), (7, 2 * HOUR + apart_s, 9 * DAY)
    watched = Watched(ACT, outages((1, 0, 9 * DAY), (2, 0, 9 * DAY), *others))
    watched.watch(HOUR, every_s=300)
    watched.note(Silenced(HOUR * 1000, 1, Kind.MANY_GONE, "cluster", 2 * DAY * 1000, "ann", "both are scrapped"))
    watched.watch(apart_s + 2 * HOUR, every_s=300)
    assert (many_text(watched.last_look) is not None) is is_stopped


@pytest.mark.parametrize(("most", "others", "is_stopped"), [
    (1, (5,), True), (3, (5, 7), False), (3, (5, 7, 0), True),
])  # fmt: skip
def test_a_silence_stops_for_as_many_others_as_the_policy_has(
    most: int, others: tuple[int, ...], *, is_stopped: bool
) -> None:
    went = ((one, 2 * HOUR, 9 * DAY) for one in others)
    watched = Watched(f"[many-gone]\nbrokers = {most}\n", outages(*((one, 0, 9 * DAY) for one in (1, 2, 3)), *went))
    watched.watch(HOUR, every_s=300)
    watched.note(Silenced(HOUR * 1000, 1, Kind.MANY_GONE, "cluster", DAY * 1000, "ann", "all are scrapped"))
    watched.watch(1.2 * HOUR, every_s=300)
    assert (many_text(watched.last_look) is not None) is is_stopped


def test_a_silence_stops_for_no_broker_in_maintenance() -> None:
    def world(now_s: float) -> Observation:
        seen = outages(*((one, 0, 9 * DAY) for one in (1, 2)), (3, 2 * HOUR, 9 * DAY))(now_s)
        return replace(seen, maintenance=Known({3: Entered(0, "ann", is_cordoned=False)}))

    watched = Watched("[many-gone]\nbrokers = 1\n", world)
    watched.watch(HOUR, every_s=300)
    watched.note(Silenced(HOUR * 1000, 1, Kind.MANY_GONE, "cluster", DAY * 1000, "ann", "both are scrapped"))
    watched.watch(1.2 * HOUR, every_s=300)
    assert many_text(watched.last_look) is None


# People, and others, during a repair.


@pytest.mark.parametrize(("lists", "is_waited_for"), [(LISTS, True), (WITHOUT_3, False)])
def test_a_broker_that_others_cordoned_keeps_repairs_waiting(
    lists: list[tuple[int, ...]], *, is_waited_for: bool
) -> None:
    """An empty one does not."""

    def world(now_s: float) -> Observation:
        seen = cluster(0, lists, brokers=10)
        shut = Known(tuple(replace(one, is_cordoned=True) for one in dirs_of(seen, 3)))
        return replace(seen, log_dirs={**seen.log_dirs, 3: shut})

    watched = Watched(ACT, world)
    watched.watch(6 * HOUR, every_s=300)
    finding = watched.memory.findings[EMPTY_9]
    waits = [one.why for one in (finding.gates.closed if finding.gates else ()) if one.gate == "brokers down"]
    assert bool(watched.runs) is not is_waited_for
    assert bool(waits) is is_waited_for
    assert not is_waited_for or "brokers [3] are cordoned by others" in waits[0]


def paused(now_s: float) -> Observation:
    is_paused = 70 * MINUTE <= now_s < 100 * MINUTE
    return replace(outages((3, 0, DAY))(now_s), run=RunSeen("ann@host" if is_paused else ""))


def test_a_pause_of_people_stays_and_is_told_once() -> None:
    watched = Watched(f"{ACT}[runs]\nwindows = ['00:00-01:20']\n", paused, run_s=DAY)
    watched.watch(69 * MINUTE)
    orders = len(watched.orders)
    watched.watch(30 * MINUTE)
    assert watched.orders[orders:] == [], "neither released, nor left at the end of the window"
    told = [one.what for one in watched.messages if "ann@host" in one.what]
    assert told == ["broker-gone broker 3: ann@host paused its repair, and it stays so"]
    watched.watch(5 * MINUTE)
    assert watched.orders[orders:] == [PauseRun("run-0")], "theirs is over, and so is the window"


def test_a_journal_that_cannot_be_read_ends_no_pause_of_people() -> None:
    watched = Watched(ACT, paused, run_s=DAY)
    watched.watch(80 * MINUTE)
    watched.world, watched.run = outages((3, 0, DAY)), RunSeen(is_left=True, is_unread=True)
    orders = len(watched.orders)
    watched.watch(MINUTE)
    assert watched.orders[orders:] == [], "it is not resumed"
    watched.world, watched.run = paused, RunSeen()
    watched.watch(5 * MINUTE)
    assert [one.by for one in watched.events if isinstance(one, PeopleHeld)] == ["ann@host"]


def test_a_release_of_the_brake_releases_no_pause_of_people() -> None:
    def world(now_s: float) -> Observation:
        silent = replace(paused(now_s), brake=Unknown("no answer"))
        return silent if 65 * MINUTE < now_s < 80 * MINUTE else paused(now_s)

    watched = Watched(ACT, world, run_s=DAY)
    watched.watch(99 * MINUTE)
    assert not {ReleaseRun("run-0"), ResumeRun("run-0")} & {*watched.orders[-30:]}
    watched.watch(5 * MINUTE)
    assert watched.orders[-1] == ResumeRun("run-0")


@pytest.mark.parametrize(
    ("stop", "order"), [("silence", EndRun("run-0")), ("level", EndRun("run-0")), ("others", HoldRun("run-0"))]
)
def test_a_running_repair_stops_when_it_may_not_begin_any_more(stop: str, order: object) -> None:
    theirs = Known(frozenset({TopicPartition("t", 7)}))

    def world(now_s: float) -> Observation:
        seen = outages((3, 0, DAY))(now_s)
        return replace(seen, moves_of_others=theirs) if stop == "others" and now_s > 70 * MINUTE else seen

    watched = Watched(ACT, world, run_s=DAY)
    watched.watch(70 * MINUTE)
    assert watched.runs == [GONE_3]
    if stop == "silence":
        watched.note(Silenced(70 * MINUTE * 1000, 1, *GONE_3, DAY * 1000, "ann", "new disk"))
    elif stop == "level":
        watched.policy = parse_policy("[care]", "policy.toml")
    watched.watch(2 * MINUTE)
    assert order in watched.orders


THEIRS = {"moves_of_others": Known(frozenset({TopicPartition("t", 7)}))}


@pytest.mark.parametrize(("stop", "silent"), [
    (THEIRS, {"moves_of_others": Unknown("no answer")}),
    ({}, {"partitions": Unknown("no answer")}),
    ({}, {"brokers": Unknown("no answer"), "log_dirs": {}}),
    ({"maintenance": Known({5: ENTERED})}, {"maintenance": Unknown("no answer")}),
])  # fmt: skip
def test_a_look_without_an_answer_releases_no_repair(stop: Mapping[str, Any], silent: Mapping[str, Any]) -> None:
    """The repair that fills broker 9 is held; then what it is held for, such as broker 5 down, cannot be read."""

    def world(now_s: float) -> Observation:
        is_stopped = HOUR <= now_s < 2 * HOUR
        seen = cluster(0, LISTS, brokers=10, down=[5] if is_stopped and not stop else [])
        return replace(seen, **{**(stop if is_stopped else {}), **(silent if 1.2 * HOUR <= now_s < 1.5 * HOUR else {})})

    watched = Watched(ACT, world, run_s=DAY)
    watched.watch(HOUR)
    assert watched.runs == [EMPTY_9]
    watched.watch(HOUR)
    assert not {type(one) for one in watched.orders} & {ReleaseRun, ResumeRun}
    watched.watch(20 * MINUTE)
    assert watched.orders[-1] == ResumeRun("run-0")


@pytest.mark.parametrize("trouble", ["others", "restarts"])
def test_a_repair_does_not_go_on_between_two_moves_or_restarts(trouble: str) -> None:
    """Every ten minutes another broker restarts for five, or another tool makes a move; each is over at a look."""

    def world(now_s: float) -> Observation:
        is_on = HOUR <= now_s < 2 * HOUR and now_s % (10 * MINUTE) < 5 * MINUTE
        down = [round(now_s // (10 * MINUTE)) % 9] if is_on and trouble == "restarts" else []
        seen = cluster(0, LISTS, brokers=10, down=down)
        return replace(seen, **THEIRS) if is_on and trouble == "others" else seen

    watched = Watched(ACT, world, run_s=DAY)
    watched.watch(2 * HOUR)
    assert watched.runs == [EMPTY_9]
    assert not {type(one) for one in watched.orders} & {ReleaseRun, ResumeRun}
    watched.watch(20 * MINUTE)
    assert watched.orders[-1] == ResumeRun("run-0")


def with_copy_to_a_directory(seen: Observation) -> Observation:
    """The look with a copy of others to another directory of broker 5."""
    (own,) = dirs_of(seen, 5)
    coming = LogDirReplica(seen.placed[7].topic_partition, GIGABYTE, 0, is_future=True)
    return replace(seen, log_dirs={**seen.log_dirs, 5: Known((replace(own, replicas=(*own.replicas, coming)),))})


@pytest.mark.parametrize("begins_h", [0.25, 1])
def test_copies_of_others_between_directories_hold_repairs(begins_h: float) -> None:
    """They last an hour, and are written down each five minutes; moves of others would hold for two minutes more."""

    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS, brokers=10)
        return with_copy_to_a_directory(seen) if begins_h <= now_s / HOUR < 2 else seen

    watched = Watched(f"{ACT}[care]\nquiet = '2m'\n", world, run_s=DAY)
    watched.watch(2 * HOUR)
    assert (watched.runs, HoldRun("run-0") in watched.orders) == (([EMPTY_9], True) if begins_h == 1 else ([], False))
    watched.watch(30 * MINUTE)
    assert watched.runs == [EMPTY_9]
    assert isinstance(watched.orders[-1], ResumeRun if begins_h == 1 else RunRepair)


def test_a_silent_broker_ends_no_hold_for_copies_between_directories() -> None:
    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS, brokers=10)
        if HOUR <= now_s < 1.5 * HOUR:
            return with_copy_to_a_directory(seen)
        silent = {broker: Unknown("timed out") for broker in seen.log_dirs}
        return replace(seen, log_dirs=silent) if 1.5 * HOUR <= now_s < 3 * HOUR else seen

    watched = Watched(f"{ACT}[care]\nquiet = '2m'\n", world, run_s=DAY)
    watched.watch(2.9 * HOUR)
    assert (watched.runs, HoldRun("run-0") in watched.orders, ResumeRun("run-0") in watched.orders) == (
        [EMPTY_9], True, False,
    )  # fmt: skip
    watched.watch(30 * MINUTE)
    assert watched.orders[-1] == ResumeRun("run-0")


def test_lost_copies_wait_for_no_broker_that_is_silent_about_directories() -> None:
    """Others copy between directories of broker 5 for 20 minutes; from then on broker 7 reports none of its own."""

    def world(now_s: float) -> Observation:
        seen = outages((3, 0, DAY))(now_s)
        if 70 * MINUTE <= now_s < 90 * MINUTE:
            return with_copy_to_a_directory(seen)
        is_silent = now_s >= 90 * MINUTE
        return replace(seen, log_dirs={**seen.log_dirs, 7: Unknown("timed out")}) if is_silent else seen

    watched = Watched(ACT, world, run_s=DAY)
    watched.watch(3 * HOUR)
    assert (watched.runs, HoldRun("run-0") in watched.orders) == ([GONE_3], True)
    assert watched.orders[-1] == ResumeRun("run-0")


def test_a_repair_goes_on_when_the_brake_is_released_whatever_is_unread() -> None:
    """Its hold is by people then, and by others who move partitions after them."""

    def world(now_s: float) -> Observation:
        seen = replace(cluster(0, LISTS, brokers=10), unread_topics={"u": "no answer"} if now_s > HOUR else {})
        if HOUR < now_s <= 2 * HOUR:
            return replace(seen, brake=Known("stop"))
        return replace(seen, **THEIRS) if 3 * HOUR < now_s <= 4 * HOUR else seen

    watched = Watched(ACT, world, run_s=DAY)
    watched.watch(2 * HOUR, every_s=300)
    assert watched.runs == [EMPTY_9]
    assert ResumeRun("run-0") not in watched.orders
    watched.watch(10 * MINUTE)
    assert watched.orders[-1] == ResumeRun("run-0")
    watched.watch(3 * HOUR, every_s=300)
    assert isinstance(watched.orders[-1], HoldRun | PauseRun), "what others move may be what could not be read"


def test_a_silent_broker_keeps_no_needless_repair_of_another_going() -> None:
    """Broker 3 is back with all that it had; one that holds none of it hangs."""
    names = [TopicPartition("t", number) for number, one in enumerate(LISTS) if 3 in one]
    holders = {broker for one in LISTS if 3 in one for broker in one}
    now = cluster(0, LISTS)
    hanging = next(broker for broker in now.log_dirs if broker not in holders)
    seen = replace(now, log_dirs={**now.log_dirs, hanging: Unknown("timed out")})
    assert seen.caught_up(3, names) == now.caught_up(3, names) == 1.0


@pytest.mark.parametrize("others", [{}, {one: Unknown("timed out") for one in range(9) if one != 3}])
def test_a_broker_that_returns_empty_does_not_end_its_repair(others: Mapping[int, Unknown]) -> None:
    """How much it has to copy shows by the others, whether they answer or not."""

    def world(now_s: float) -> Observation:
        seen = outages((3, 0, 70 * MINUTE))(now_s)
        if now_s < 70 * MINUTE:
            return seen
        (dir_3,) = dirs_of(seen, 3)
        empty = tuple(replace(one, size_bytes=0) for one in dir_3.replicas)
        return replace(seen, log_dirs={**seen.log_dirs, 3: Known((replace(dir_3, replicas=empty),)), **others})

    lists = [TopicPartition("t", number) for number, one in enumerate(LISTS) if 3 in one]
    watched = Watched(ACT, world, run_s=DAY)
    watched.moves = tuple(lists)
    watched.watch(2 * HOUR)
    assert watched.runs == [GONE_3]
    assert not any(isinstance(one, EndRun) for one in watched.orders)


# Brokers that are empty, or come and go.


def with_empty_broker(now: Observation) -> Observation:
    """The cluster with broker 9 registered, fenced and without replicas, in a rack of its own with broker 10."""
    assert isinstance(now.brokers, Known)
    others = tuple(Broker(one, f"b{one}", 9092, "spare", is_fenced=True) for one in (9, 10))
    return replace(now, brokers=Known((*now.brokers.value, *others)))


def test_empty_brokers_that_are_down_block_no_repair() -> None:
    def world(_: float) -> Observation:
        return with_empty_broker(cluster(0, LISTS[:9], used={3: 0.9} if not watched.runs else {}))

    watched = Watched(ACT, world)
    watched.watch(8 * HOUR, every_s=300)
    assert watched.runs
    assert not [one for one in watched.memory.findings if one.kind is Kind.MANY_GONE]


def test_a_broker_that_flaps_is_told_four_times_a_day_and_blocks_nobody() -> None:
    def world(now_s: float) -> Observation:
        down = {5} if now_s >= 4 * HOUR else set()
        return cluster(0, LISTS, down=down | ({3} if now_s % (12 * MINUTE) < 5 * MINUTE else set()))

    watched = Watched(ACT.replace("[new-broker]", "[many-gone]\nbrokers = 3\n[new-broker]"), world)
    watched.watch(9 * HOUR)
    told = [one for one in watched.messages if one.name == GONE_3]
    assert [one.is_over for one in told] == [False, True] * 4
    assert "it comes and goes, 4 times within a day" in told[-2].why
    assert Name(Kind.BROKER_GONE, "broker 5") in {one.name for one in watched.orders if isinstance(one, PlanRepair)}
    assert watched.memory.running is not None or watched.runs, "broker 3 is no rolling restart"


# Disks, directories, placement.


def test_a_full_disk_is_told_again_when_it_is_urgent() -> None:
    watched = Watched("[care]", lambda now_s: cluster(0, LISTS, used={3: 0.82 if now_s < HOUR else 0.99}))
    watched.watch(2 * HOUR)
    first, second = (one.what for one in watched.messages)
    assert "it is 82% full" in first
    assert second.startswith("disk-fills broker 3:/d0: it is urgent now: it is 99% full")


def test_a_disk_at_the_limit_is_proposed_once() -> None:
    watched = Watched(
        "[disk-fills]\nlevel = 'propose'\n",
        lambda now_s: cluster(0, LISTS, used={3: 0.855 if now_s % 600 < 300 else 0.845}),
    )
    watched.watch(5 * HOUR)
    full = Name(Kind.DISK_FILLS, "broker 3:/d0")
    states = [one.state for one in watched.events if isinstance(one, FindingMoved) and one.name == full]
    assert states == [State.SEEN, State.TOLD], "and proposed by its plan"
    assert watched.memory.findings[full].state is State.PROPOSED


@pytest.mark.parametrize("step_at_h", range(1, 9))
def test_one_step_is_no_growth(step_at_h: int) -> None:
    past = [(hour * 3_600_000, 100 * GIGABYTE * (1 + (hour >= step_at_h))) for hour in range(8)]
    use = DiskUse(3, "/d0", 200 * GIGABYTE, 1000 * GIGABYTE)
    assert growth_of(use, past, 8 * 3_600_000) == NO_GROWTH
    steady = [(hour * 3_600_000, hour * GIGABYTE) for hour in range(8)]
    assert growth_of(use._replace(used_bytes=8 * GIGABYTE), steady, 8 * 3_600_000) == (GIGABYTE, 0.0)


@pytest.mark.parametrize("hours", [(0, 6), (0, 4, 6)])
def test_growth_measured_too_seldom_has_no_error(hours: tuple[int, ...]) -> None:
    past = [(hour * 3_600_000, hour * GIGABYTE) for hour in hours]
    use = DiskUse(3, "/d0", 7 * GIGABYTE, 1000 * GIGABYTE)
    growth = growth_of(use, past, 7 * 3_600_000)
    assert growth is not None
    assert growth.text_for(5 * GIGABYTE).endswith("1 GB/h (measured too seldom for an error)")


def offline(now: Observation, broker: int, isr_of: Mapping[int, tuple[int, ...]]) -> Observation:
    """Broker with its only working directory empty, another offline, and partitions out of sync there."""
    assert isinstance(now.partitions, Known)
    lists = tuple(
        replace(one, isr=isr_of.get(one.topic_partition.partition, one.isr), leader=one.isr[-1])
        for one in now.partitions.value
    )
    dirs = (LogDir("/d0", "KAFKA_STORAGE_ERROR", None, None, is_cordoned=False, replicas=()),)
    (whole,) = dirs_of(now, broker)
    return replace(
        now, partitions=Known(lists), log_dirs={**now.log_dirs, broker: Known((*dirs, replace(whole, path="/d1")))}
    )


def test_a_failed_directory_is_repaired_as_long_as_copies_are_lost() -> None:
    def world(_: float) -> Observation:
        if watched.runs:
            return offline(cluster(0, WITHOUT_3), 3, {})
        seen = cluster(0, LISTS)
        (dir_3,) = dirs_of(seen, 3)
        bare = replace(seen, log_dirs={**seen.log_dirs, 3: Known((replace(dir_3, replicas=()),))})
        lost = {number: tuple(b for b in one if b != 3) for number, one in enumerate(LISTS) if 3 in one}
        return offline(bare, 3, lost)

    watched = Watched("[directory-failed]\nlevel = 'act'\n", world)
    watched.watch(5 * HOUR, every_s=300)
    name = Name(Kind.DIRECTORY_FAILED, "broker 3:/d0")
    assert watched.runs == [name]
    found = watched.memory.findings[name]
    assert (found.state, found.failures) == (State.TOLD, 0)
    assert not [one for one in watched.messages if "look into it" in one.what]


@pytest.mark.parametrize("silent", [
    {"moves_of_others": Unknown("no answer")}, {"partitions": Unknown("no answer")},
    {"partitions": Known(()), "unread_topics": {"t": "no answer"}},
])  # fmt: skip
def test_a_look_without_an_answer_takes_no_proposal_back(silent: Mapping[str, Any]) -> None:
    """The losses of a failed directory follow from partitions and moves."""

    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS)
        (dir_3,) = dirs_of(seen, 3)
        bare = replace(seen, log_dirs={**seen.log_dirs, 3: Known((replace(dir_3, replicas=()),))})
        lost = {number: tuple(b for b in one if b != 3) for number, one in enumerate(LISTS) if 3 in one}
        return replace(offline(bare, 3, lost), **(silent if 70 * MINUTE <= now_s < 75 * MINUTE else {}))

    watched = Watched("[directory-failed]\nlevel = 'propose'\n", world)
    watched.watch(80 * MINUTE)
    name = Name(Kind.DIRECTORY_FAILED, "broker 3:/d0")
    assert {one.name for one in watched.events if isinstance(one, Planned)} == {name}
    found = watched.memory.findings[name]
    assert (found.state, found.urgent_ms) == (State.PROPOSED, 0)
    assert not [one for one in watched.messages if "it is urgent now" in one.what]


def test_placement_is_not_over_while_a_broker_restarts() -> None:
    few = [one[:2] if number == 4 else one for number, one in enumerate(LISTS)]
    watched = Watched("[care]", lambda now_s: cluster(0, few, down=[7] if HOUR < now_s < 1.1 * HOUR else []))
    watched.watch(2 * HOUR)
    told = [one for one in watched.messages if one.name is not None and one.name.kind is Kind.PLACEMENT]
    assert [one.is_over for one in told] == [False]


@pytest.mark.parametrize(("used", "kinds"), [(0.75, []), (0.9, [Kind.DISK_FILLS])])
def test_maintenance_delays_balance_and_no_full_disk(used: float, kinds: list[Kind]) -> None:
    def world(_: float) -> Observation:
        return replace(cluster(0, LISTS[:9], used={3: used}), maintenance=Known({7: ENTERED}))

    watched = Watched(ACT, world)
    watched.watch(9 * HOUR, every_s=300)
    assert sorted({name.kind for name in watched.runs}) == kinds


def test_a_clock_that_was_ahead_holds_nothing_up_when_it_is_set_back() -> None:
    """A month ahead broker 5 was repaired and came back, which keeps repairs waiting for an hour."""
    down = {5}
    watched = Watched(ACT, lambda _: cluster(0, LISTS, down=down))
    watched.now_s = 30 * DAY
    watched.watch(2 * HOUR)
    down.clear()
    watched.watch(10 * MINUTE)
    watched.now_s = 0.0
    watched.look()
    assert memory_of(watched.events) == replace(watched.memory, cluster_id="")
    down.add(3)
    watched.watch(2 * HOUR)
    assert watched.runs == [Name(Kind.BROKER_GONE, "broker 5"), GONE_3]
    assert resting(Look(cluster(8 * DAY * 1000, LISTS), watched.memory, watched.policy), Kind.BAND_LEFT) == frozenset()


def test_a_broker_that_went_before_the_clock_was_set_back_went_unseen() -> None:
    down: set[int] = set()
    watched = Watched(ACT, lambda _: cluster(0, LISTS, down=down))
    watched.now_s = 30 * DAY
    watched.look()
    watched.now_s = 0.0
    down.add(3)
    watched.look()
    assert 3 in watched.memory.unwitnessed


def test_no_time_that_is_remembered_is_later_than_a_set_back() -> None:
    late, later, name = 987_654_321, 1_000_000_000, Name(Kind.PLACEMENT, "cluster")
    finding = Finding(
        name, State.PROPOSED, late, late, "", proposal=Planned(late, name, "plan", 0, ()), told_ms=(late,),
        gates=GatesJudged(late, name, (), late), not_before_ms=late, silence=Silenced(late, 1, *name, later, "ann", ""),
    )  # fmt: skip
    memory = Memory(
        looked_ms=late, read_ms=late, findings={name: finding}, away={1: late}, overdue={1: late}, drained={2: late},
        replaced=(Replaced(1, late),), outages=(Outage(1, late, late),), held=ReplicasHeld(late, (1,)),
        disks=(DisksMeasured(late, ()),), others=OthersMoved(late, ""), others_moved_ms=late,
        acts=(Act(name, "run", late, 0, (), late),), digest_ms=late, off=TurnedOff(late, 1, later, "ann", ""),
        keeper=Resumed(late, "ann", None),
    )  # fmt: skip
    after = remember(memory, WentOn(1000))
    assert str(late) not in repr(after)
    assert (after.off, after.findings[name].silence) == (
        TurnedOff(1000, 1, later - late + 1000, "ann", ""),
        Silenced(1000, 1, *name, later - late + 1000, "ann", ""),
    )


@pytest.mark.parametrize("ahead_s", [0, 30 * DAY])
def test_a_silence_of_an_hour_lasts_an_hour_though_the_clock_is_set_back(ahead_s: int) -> None:
    """It was given while the clock was right, or ahead; so was `off`, and broker 3 had failed once."""
    watched = Watched(ACT, outages((3, 0, 90 * DAY)))
    watched.impossible = frozenset({Kind.BROKER_GONE})
    watched.now_s = ahead_s
    watched.watch(32 * MINUTE)
    given_ms = round(watched.now_s * 1000)
    watched.note(Silenced(given_ms, 1, *EMPTY_9, given_ms + HOUR * 1000, "ann", "a new disk"))
    watched.note(TurnedOff(given_ms, 2, given_ms + HOUR * 1000, "ann", "a release"))
    watched.now_s = 30 * DAY + 34 * MINUTE
    watched.watch(10 * MINUTE)
    watched.now_s = 44 * MINUTE
    watched.look()
    silence, off = watched.memory.findings[EMPTY_9].silence, watched.memory.off
    assert silence is not None
    assert off is not None
    ends = (silence.until_ms, off.until_ms, watched.memory.findings[GONE_3].not_before_ms)
    assert all(abs(ends_ms / MINUTE / 1000 - 92) <= 8 for ends_ms in ends), "what a look writes down is 5 min old"


# What a repair leaves.


def test_a_dry_run_would_repair_a_finding_once() -> None:
    watched = Watched(ACT, outages((3, 0, 9 * DAY)))
    watched.result = Result.NOT_BEGUN_DRY
    watched.watch(4 * DAY, every_s=300)
    assert watched.runs == [GONE_3]


def test_a_cluster_that_outlasted_one_repair_gets_another_after_a_day() -> None:
    few = [one[:2] if number == 4 else one for number, one in enumerate(LISTS)]
    watched = Watched(f"{ACT}[care]\nrest = '1h'\n", lambda _: cluster(0, few))
    watched.watch(4 * HOUR, every_s=300)
    assert [name.kind for name in watched.runs] == [Kind.PLACEMENT]
    watched.watch(DAY, every_s=300)
    assert [name.kind for name in watched.runs] == [Kind.PLACEMENT] * 2


def test_a_finding_of_which_all_rests_is_a_no_and_no_failure() -> None:
    """Partition 4 stays without its third replica; while that rests, broker 9 is new, and is filled."""
    few = [one[:2] if number == 4 else one for number, one in enumerate(LISTS)]
    placement = Name(Kind.PLACEMENT, "cluster")

    def world(now_s: float) -> Observation:
        return cluster(0, few, brokers=10 if now_s >= 36 * HOUR else 9)

    watched = Watched(f"{ACT}[care]\nrest = '2d'\n", world, run_s=3 * HOUR)
    watched.watch(41 * HOUR, every_s=600)
    assert [*watched.runs, watched.memory.findings[placement].failures] == [placement, EMPTY_9, 0]
    assert EndRun("run-1") not in watched.orders
    noted = watched.memory.findings[placement].gates
    assert noted is not None
    assert [tuple(one) for one in noted.closed if one.gate in {"rest", "back-off"}] == [
        ("rest", "all of t-4 were moved within 48h, and rest for so long after they were")
    ]
    watched.watch(2 * DAY, every_s=600)
    assert watched.runs.count(placement) == 2


def test_what_an_ended_repair_did_not_move_does_not_rest() -> None:
    moves = (TopicPartition("t", 0), TopicPartition("t", 1))
    band = Name(Kind.BAND_LEFT, "cluster")
    watched = Watched(ACT, lambda _: cluster(0, LISTS[:9], used={3: 0.9}))
    watched.watch(7 * HOUR, every_s=300)
    watched.note(RunBegan(0, band, "run", GIGABYTE, moves))
    watched.note(RunEnded(1, band, Result.FAILED, 0, moved=moves[:1]))
    assert memory_of(watched.events).acts[-1].moves == moves[:1]
    assert BACK_OFF_MS[0] == watched.memory.findings[band].not_before_ms - 1


def test_a_rest_of_a_month_outlasts_later_repairs() -> None:
    policy = parse_policy("[care]\nrest = '30d'\n", "policy.toml")
    band, memory = Name(Kind.BAND_LEFT, "cluster"), Memory(findings={GONE_3: Finding(GONE_3, State.TOLD, 0, 0, "")})
    for day in (0, 20):
        at_ms, moves = day * DAY * 1000, (TopicPartition("t", day),)
        memory = remember(memory, RunBegan(at_ms, GONE_3, f"run-{day}", GIGABYTE, moves))
        memory = remember(memory, RunEnded(at_ms + 1, GONE_3, Result.DONE, GIGABYTE))
    tired = [resting(Look(cluster(day * DAY * 1000, LISTS), memory, policy), band.kind) for day in (29, 31)]
    assert [len(one) for one in tired] == [2, 1]
    with pytest.raises(InputError, match=r"'rest' is '31d'; it must be a duration up to \"30d\""):
        parse_policy("[care]\nrest = '31d'\n", "policy.toml")


def test_elections_use_up_no_repairs_of_the_day() -> None:
    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS, down=[3] if now_s > 5 * HOUR else [])
        lists = tuple(
            replace(one, leader=one.isr[-1]) if one.topic_partition.partition == 5 else one for one in seen.placed
        )
        return replace(seen, partitions=Known(lists)) if now_s < 5 * HOUR else seen

    watched = Watched(f"{ACT}[care]\nsettle = '1m'\n[budget]\nruns-per-day = 1\n", world, run_s=MINUTE)
    watched.watch(8 * HOUR)
    assert [name.kind for name in watched.runs][-1] is Kind.BROKER_GONE
    assert watched.runs[0].kind is Kind.LEADERS


# What runs, and what else is there.


@pytest.mark.parametrize(("run", "order"), [(RunSeen(US), ReleaseRun("run-0")), (RunSeen(), EndRun("run-0"))])
def test_an_order_that_was_lost_is_given_again(run: RunSeen, order: object) -> None:
    """The run is as it was before the order, whatever was decided."""
    watched = Watched(ACT, outages((3, 0, DAY)), run_s=DAY)
    watched.watch(70 * MINUTE)
    if order == EndRun("run-0"):
        watched.policy = parse_policy("[care]", "policy.toml")
    for _ in range(3):
        watched.run = run
        watched.look()
        assert watched.orders[-1] == order
        watched.orders.clear()


def test_a_finding_that_people_look_into_ends_no_other_repair() -> None:
    """Broker 3 stays full whatever is moved; broker 9 is new."""
    watched = Watched(ACT, lambda _: cluster(0, LISTS[:9], brokers=10, used={3: 0.9}), run_s=HOUR)
    watched.watch(12 * HOUR, every_s=300)
    assert watched.memory.findings[Name(Kind.DISK_FILLS, "broker 3:/d0")].state is State.GIVEN_UP
    assert EMPTY_9 in watched.runs
    assert not any(isinstance(one, EndRun) for one in watched.orders)


def test_a_repair_is_not_ended_for_one_that_copies_more_than_the_budget() -> None:
    """Broker 3 held six gigabytes."""
    policy = f"{ACT}[budget]\nbytes-per-day = '3GB'\n"
    watched = Watched(policy, lambda now_s: cluster(0, LISTS, brokers=10, down=[3] if now_s > HOUR else []), run_s=DAY)
    watched.watch(8 * HOUR, every_s=300)
    assert watched.runs == [EMPTY_9]
    assert not any(isinstance(one, EndRun) for one in watched.orders)


@pytest.mark.parametrize("is_unread", [False, True])
def test_a_repair_that_people_paused_rests_when_a_more_urgent_one_ends_it(is_unread: bool) -> None:
    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS, brokers=10, down=[3] if now_s > 3 * HOUR else [])
        is_paused = now_s > HOUR and [one.name for one in watched.memory.acts] == [EMPTY_9]
        return replace(seen, run=RunSeen("ann@host" if is_paused and not watched.run.is_unread else ""))

    watched = Watched(ACT, world, run_s=DAY)
    watched.watch(3 * HOUR, every_s=300)
    watched.run = RunSeen(is_unread=is_unread)
    watched.watch(5 * HOUR, every_s=300)
    assert watched.runs == [EMPTY_9, GONE_3]
    silence = watched.memory.findings[EMPTY_9].silence
    assert silence is not None
    assert (silence.by, silence.why) == ("ann@host", "ann@host had paused its repair")


def test_a_paused_repair_rests_after_a_process_died_at_its_end() -> None:
    """That process had written that the repair ends, and nothing else."""
    watched = Watched(ACT, paused, run_s=DAY)
    watched.watch(80 * MINUTE)
    watched.note(EndAsked(80 * MINUTE * 1000, GONE_3, "another is more urgent"))
    watched.watch(3 * HOUR)
    assert watched.runs == [GONE_3]


def test_people_take_back_the_rest_of_a_repair_that_they_had_paused() -> None:
    """It ends while it is paused, and its move in flight takes half an hour more, in which they take that back."""
    watched = Watched(ACT, outages((3, 0, DAY)), run_s=DAY)
    watched.watch(70 * MINUTE)
    watched.run = RunSeen("ann@host")
    watched.look()
    watched.policy = parse_policy("[care]", "policy.toml")
    for minute in range(71, 100):
        if minute == 80:
            at_ms = minute * MINUTE * 1000
            watched.note(Silenced(at_ms, 1, *GONE_3, at_ms, "ann@host", "repair it"))
        watched.run, watched.now_s = RunSeen("ann@host"), minute * MINUTE
        watched.look()
        silence = watched.memory.findings[GONE_3].silence
        assert silence is not None
        assert (silence.until_ms > watched.now_s * 1000) is (minute < 80)


def test_a_cancel_of_people_shortens_no_silence_of_theirs() -> None:
    watched = Watched(ACT, outages((3, 0, DAY)), run_s=DAY)
    watched.watch(70 * MINUTE)
    week_ms = 7 * DAY * 1000
    watched.note(Silenced(70 * MINUTE * 1000, 1, *GONE_3, week_ms, "ann@host", "a new disk comes"))
    watched.by = "ann@host"
    watched.watch(10 * MINUTE)
    assert watched.memory.running is None
    silence = watched.memory.findings[GONE_3].silence
    assert silence is not None
    assert silence.until_ms == week_ms


@pytest.mark.parametrize("by", ["pause", "cancel"])
def test_a_silence_that_people_gave_a_repair_is_not_made_longer(by: str) -> None:
    """They silence it for ten minutes; it ends for that, but its move in flight takes half an hour more."""
    watched = Watched(ACT, outages((3, 0, DAY)), run_s=DAY)
    watched.watch(70 * MINUTE)
    until_ms = 80 * MINUTE * 1000
    watched.note(Silenced(70 * MINUTE * 1000, 1, *GONE_3, until_ms, "ann@host", "a new disk comes"))
    for _ in range(15):
        watched.run = RunSeen("ann@host" if by == "pause" else US)
        watched.look()
        watched.now_s += 2 * MINUTE
    watched.run, watched.by = RunSeen(is_ending=True), "ann@host" * (by == "cancel")
    watched.look()
    silence = watched.memory.findings[GONE_3].silence
    assert silence is not None
    assert (watched.memory.running, silence.until_ms) == (None, until_ms)


def test_a_cancel_counts_after_a_silence_that_was_taken_back() -> None:
    watched = Watched(ACT, outages((3, 0, DAY)), run_s=DAY)
    watched.watch(70 * MINUTE)
    for number, (at, until) in enumerate([(70, 310), (71, 71)], 1):
        watched.note(Silenced(at * MINUTE * 1000, number, *GONE_3, until * MINUTE * 1000, "ann@host", "by mistake"))
        watched.run = RunSeen(US)
        watched.watch(MINUTE)
    watched.run, watched.by = RunSeen(is_ending=True), "ann@host"
    watched.result = Result.CANCELLED
    watched.look()
    silence = watched.memory.findings[GONE_3].silence
    assert silence is not None
    assert (watched.memory.running, silence.until_ms) == (None, round(watched.now_s * 1000) + DAY * 1000)


def test_a_cancel_of_people_counts_after_a_silence_that_ended_nothing() -> None:
    """It was over before the next look, and the repair went on."""
    watched = Watched(ACT, outages((3, 0, DAY)), run_s=DAY)
    watched.watch(70 * MINUTE)
    silent_ms = 69 * MINUTE * 1000 + 30_000
    watched.note(Silenced(silent_ms, 1, *GONE_3, silent_ms + 1000, "ann@host", "a moment"))
    watched.watch(10 * MINUTE)
    watched.run, watched.by = RunSeen(is_ending=True), "ann@host"
    watched.result = Result.CANCELLED
    watched.look()
    silence = watched.memory.findings[GONE_3].silence
    assert silence is not None
    assert silence.until_ms == round(watched.now_s * 1000) + DAY * 1000


def test_a_cancel_of_people_counts_though_its_end_was_asked_for() -> None:
    watched = Watched(ACT, outages((3, 0, HOUR + 10 * MINUTE)), run_s=DAY)
    watched.watch(70 * MINUTE)
    watched.by = "ann@host"
    watched.watch(10 * MINUTE)
    assert watched.orders[-1] == EndRun("run-0")
    silence = watched.memory.findings[GONE_3].silence
    assert silence is not None
    assert silence.by == "ann@host"


def test_a_broker_that_people_emptied_long_after_its_repair_stays_empty() -> None:
    def world(now_s: float) -> Observation:
        return cluster(0, WITHOUT_3 if now_s > 3 * DAY else LISTS, down=[3] if now_s < 1.1 * HOUR else [])

    watched = Watched(ACT, world, run_s=DAY)
    watched.watch(4 * DAY, every_s=300)
    assert watched.runs == [GONE_3]
    assert set(watched.memory.drained) == {3}


def test_a_new_broker_that_was_filled_in_part_is_filled_on() -> None:
    filled = [*LISTS[:17], (LISTS[17][0], 9, LISTS[17][2])]
    watched = Watched(ACT, lambda _: cluster(0, filled if watched.runs else LISTS, brokers=10))
    watched.result = Result.FAILED
    watched.watch(2 * HOUR, every_s=300)
    assert watched.runs == [EMPTY_9]
    watched.result = Result.DONE
    watched.watch(2 * HOUR, every_s=300)
    assert watched.runs == [EMPTY_9] * 2


def test_copies_of_a_repair_are_no_growth_of_a_disk() -> None:
    """For six hours broker 9 gets 60 GB an hour, and holds them."""

    def world(now_s: float) -> Observation:
        acts = watched.memory.acts
        hours = min(6.0, (now_s - acts[0].begun_ms / 1000) / HOUR) if acts else 0.0
        lists = [*LISTS[:17], (LISTS[17][0], 9, LISTS[17][2])] if acts else LISTS
        return cluster(0, lists, brokers=10, used={9: 0.3 + 0.06 * hours})

    watched = Watched(
        f"{ACT}[band-left]\nfind-at = 3.0\n".replace("[band-left]\nlevel = 'act'\n", "", 1), world, run_s=6 * HOUR
    )
    watched.watch(16 * HOUR, every_s=300)
    assert not [one for one in watched.memory.findings if one.kind is Kind.DISK_FILLS]


def test_a_broker_that_flaps_and_then_stays_away_is_told() -> None:
    """Five times within hours it comes and goes; the sixth time it is gone for good."""

    def world(now_s: float) -> Observation:
        flaps = now_s < 60 * MINUTE and now_s % (12 * MINUTE) < 5 * MINUTE
        return cluster(0, LISTS, down={3} if flaps or 2 * HOUR <= now_s < 9 * HOUR else ())

    watched = Watched("[many-gone]\nbrokers = 3\n", world)
    watched.watch(2 * HOUR)
    told = len([one for one in watched.messages if one.name == GONE_3])
    watched.watch(8 * HOUR)
    late = [one for one in watched.messages if one.name == GONE_3][told:]
    assert [one.is_over for one in late] == [False, True]
    assert "it comes and goes, 4 times within a day" not in late[0].what


@pytest.mark.parametrize("results", [4, 1])
def test_a_repair_that_was_not_begun_is_none(results: int) -> None:
    """Killed between decision and act, or another had the lease: nothing was sent, so nothing settles or counts."""
    watched = Watched(ACT, lambda now_s: cluster(0, LISTS, down={3} if now_s > 0 else ()), run_s=0)
    watched.result = Result.NOT_BEGUN
    while len([one for one in watched.events if isinstance(one, RunEnded)]) < results:
        watched.watch(10 * MINUTE)
    watched.result, ended_s = Result.DONE, watched.now_s
    watched.watch(HOUR)
    done = [one for one in watched.memory.acts if one.result is Result.DONE]
    assert done
    assert done[0].begun_ms / 1000 - ended_s < 20 * MINUTE


def test_maintenance_of_a_broker_ends_its_repair_that_waits() -> None:
    def world(now_s: float) -> Observation:
        now = cluster(0, LISTS, down={3} if now_s > 0 else ())
        return replace(now, maintenance=Known({3: ENTERED})) if now_s >= 12 * HOUR else now

    watched = Watched(ACT + "[runs]\nwindows = ['22:00-02:00']\n", world, run_s=10 * HOUR)
    watched.watch(2 * DAY)
    ended = [one for one in watched.events if isinstance(one, RunEnded)]
    assert [one.result for one in ended] == [Result.CANCELLED]


def test_a_dead_broker_is_told_while_the_record_of_maintenance_is_silent() -> None:
    """The record may be on the broker that died; a repair waits until it can be read."""
    silent = Unknown("the coordinator does not answer")
    watched = Watched(ACT, lambda _: replace(cluster(0, LISTS, down={3}), maintenance=silent))
    watched.watch(3 * HOUR)
    told = next(one for one in watched.messages if one.name == GONE_3)
    assert "whether it is in maintenance could not be read" in told.what
    assert not watched.runs


def test_a_broker_with_last_copies_comes_before_one_without() -> None:
    """Broker 5 dies, with one copy left of a partition, while the repair of broker 3 runs for a day."""
    lists = [(3, 1, 2), (5, 6)]

    def world(now_s: float) -> Observation:
        return cluster(0, lists, down={3, 5} if now_s >= 2 * HOUR else {3})

    policy = ACT.replace("[broker-gone]\n", "[broker-gone]\nmost-share = 0.5\n")
    watched = Watched(policy, world, run_s=30 * HOUR)
    watched.watch(5 * HOUR)
    asked = [one.name.subject for one in watched.events if isinstance(one, EndAsked)]
    assert asked == ["broker 3"]


def test_a_broker_without_a_rack_hides_no_crowded_rack() -> None:
    """Brokers 0, 3 and 6 are in one rack; broker 8 is new, and its rack was forgotten."""

    def world(_: float) -> Observation:
        now = cluster(0, [*LISTS, (0, 3, 6)])
        assert isinstance(now.brokers, Known)
        brokers = tuple(replace(one, rack=None if one.id == 8 else one.rack) for one in now.brokers.value)
        return replace(now, brokers=Known(brokers))

    watched = Watched("[care]", world)
    watched.watch(2 * HOUR)
    assert "1 partition with more replicas in one rack" in watched.memory.findings[Name(Kind.PLACEMENT, "cluster")].seen
