"""The core in situations that went wrong elsewhere, tick by tick, over clusters as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kreassign.autopilot.core import EndRun, HoldRun, PauseRun, PlanRepair, ResumeRun, RunRepair
from kreassign.autopilot.events import ClosedGate, Name, Result, Silenced, State, TurnedOff, TurnedOn, WentOn
from kreassign.autopilot.memory import memory_of
from kreassign.autopilot.observation import Known, Observation, Unknown
from kreassign.autopilot.policy import Kind, Policy
from kreassign.autopilot.replay import replay
from kreassign.model import TopicPartition
from kreassign.operations.autopilot_plans import avoided
from tests.autopilot.values import DAY, HOUR, MINUTE, Watched, cluster

ACT = "".join(f"[{kind}]\nlevel = 'act'\n" for kind in Kind if Policy().has_remedy(kind))
LISTS = [(one % 9, (one + 1) % 9, (one + 2) % 9) for one in range(18)]
WITHOUT_3 = [tuple(broker if broker != 3 else 6 for broker in one) for one in LISTS]
GONE_3 = Name(Kind.BROKER_GONE, "broker 3")


def outages(*times: tuple[int, float, float]) -> Callable[[float], Observation]:
    """A cluster of nine brokers, each down from a time until another."""
    return lambda now_s: cluster(0, LISTS, down=[broker for broker, begin, end in times if begin <= now_s < end])


def test_scenario_1_a_rolling_restart_is_told_at_most() -> None:
    watched = Watched(ACT, outages(*((one % 9, one * 360.0, one * 360.0 + 240) for one in range(30))))
    watched.watch(4 * HOUR)
    assert watched.orders == []
    assert watched.states <= {State.SEEN, State.TOLD, State.CLOSED}


def test_scenario_1_a_rolling_restart_of_two_copies_is_told_at_most() -> None:
    lists = [(one % 30, (one + 1 + one // 30) % 30) for one in range(600)]

    def world(now_s: float) -> Observation:
        down = [one for one in range(30) if one * 360 <= now_s < one * 360 + 240]
        return cluster(0, lists, brokers=30, down=down)

    watched = Watched(ACT, world)
    watched.watch(HOUR)
    assert watched.orders == []


def test_scenario_2_a_broker_that_is_back_in_time_is_not_copied_for() -> None:
    watched = Watched(ACT, outages((3, 600, 600 + 25 * MINUTE)))
    watched.watch(3 * HOUR)
    assert watched.orders == []
    assert watched.memory.findings[GONE_3].state is State.CLOSED


def test_scenario_2_a_broker_that_stays_away_is_repaired_once() -> None:
    watched = Watched(ACT, lambda _: cluster(0, WITHOUT_3 if watched.runs else LISTS, down=[3]))
    watched.watch(26 * HOUR, every_s=300)
    assert watched.runs == [GONE_3]
    began = next(one.begun_ms for one in watched.memory.acts)
    assert HOUR * 1000 <= began <= HOUR * 1000 + 10 * MINUTE * 1000
    assert watched.memory.findings[GONE_3].state is State.CLOSED


def test_scenario_3_a_broker_that_comes_back_empty_is_filled_three_times() -> None:
    def world(now_s: float) -> Observation:
        fills = sum(name.kind is Kind.NEW_BROKER for name in watched.runs)
        repairs = sum(name.kind is Kind.BROKER_GONE for name in watched.runs)
        is_down = now_s % (2 * DAY) < DAY
        return cluster(0, LISTS if fills >= repairs else WITHOUT_3, down=[3] if is_down else [])

    watched = Watched(ACT, world)
    watched.watch(6 * DAY, every_s=300)
    kinds = [name.kind for name in watched.runs]
    assert kinds == [Kind.BROKER_GONE, Kind.NEW_BROKER] * 3
    watched.watch(9 * DAY, every_s=300)
    assert [name.kind for name in watched.runs] == [*kinds, Kind.BROKER_GONE], "then people decide"
    empty = watched.memory.findings[Name(Kind.NEW_BROKER, "broker 3")]
    assert empty.gates is not None
    people = next(one.why for one in empty.gates.closed if one.gate == "people")
    assert people == "it was gone, and its replicas copied elsewhere, 4 times within 30 days: people decide"
    at_ms, band = round(watched.now_s * 1000), Name(Kind.BAND_LEFT, "cluster")
    looks = (cluster(at_ms, WITHOUT_3), cluster(at_ms, LISTS))
    assert [avoided(watched.memory, band, now) for now in looks] == [(3,), ()], "until people filled it"


def test_a_broker_that_others_emptied_while_it_was_live_stays_empty() -> None:
    """On any version of Kafka, whether it is cordoned or not, and after a restart of the broker."""

    def world(now_s: float) -> Observation:
        is_drained = HOUR <= now_s < 2 * DAY
        return cluster(0, WITHOUT_3 if is_drained else LISTS, down=[3] if DAY <= now_s < DAY + 2 * HOUR else [])

    watched = Watched(ACT, world)
    watched.watch(2 * DAY, every_s=300)
    assert watched.orders == []
    (told,) = {one.what for one in watched.messages if not one.is_over}
    assert "others emptied it, and it stays so; `kreassign plan add-brokers 3` fills it" in told
    assert replay(watched.events, watched.policy).acts == ()
    watched.watch(HOUR, every_s=300)
    assert watched.memory.drained == {}


@pytest.mark.parametrize("down", [(0, 4, 8), (0, 3, 6), (1, 2)], ids=["three", "a rack", "two"])
def test_scenario_4_many_brokers_at_once_stop_everything(down: tuple[int, ...]) -> None:
    watched = Watched(ACT, outages(*((one, 600 + one, 600 + 50 * MINUTE) for one in down)))
    watched.watch(5 * HOUR)
    assert watched.orders == []
    assert any("the network or a rack" in one.what for one in watched.messages)
    assert not watched.memory.open


def test_scenario_4_the_last_of_many_to_return_is_not_copied_for() -> None:
    watched = Watched(ACT, outages((0, 600, 90 * MINUTE), (4, 600, 90 * MINUTE), (8, 600, 115 * MINUTE)))
    watched.watch(4 * HOUR)
    assert watched.orders == []


def test_scenario_4_a_broker_that_stays_away_after_many_were_is_repaired() -> None:
    gone_8 = Name(Kind.BROKER_GONE, "broker 8")
    watched = Watched(ACT, outages((0, 600, 90 * MINUTE), (4, 600, 90 * MINUTE), (8, 600, 9 * DAY)))
    watched.watch(149 * MINUTE)
    assert gone_8 not in watched.runs
    watched.watch(20 * MINUTE)
    assert watched.runs == [gone_8]


def test_scenario_5_a_broker_that_dies_while_off_is_repaired_later() -> None:
    watched = Watched(ACT, lambda _: cluster(0, WITHOUT_3 if watched.runs else LISTS, down=[3]))
    watched.note(TurnedOff(0, 1, 4 * HOUR * 1000, "ann", "upgrade"))
    watched.watch(3 * HOUR)
    assert watched.runs == []
    assert watched.memory.findings[GONE_3].state is State.PROPOSED
    watched.note(TurnedOn(3 * HOUR * 1000, 2, "ann"))
    watched.watch(HOUR)
    assert watched.runs == [GONE_3]


def test_scenario_7_a_spike_each_hour_moves_nothing_in_a_month() -> None:
    def world(now_s: float) -> Observation:
        return cluster(0, LISTS[:9], used={3: 0.75 if now_s % HOUR < 20 * MINUTE else 0.5})

    watched = Watched(ACT, world)
    watched.watch(30 * DAY, every_s=600)
    assert watched.runs == []


def test_scenario_9_others_are_waited_for_and_named() -> None:
    theirs = Known(frozenset({TopicPartition("t", 7)}))
    watched = Watched(ACT, lambda now_s: replace(outages((3, 0, DAY))(now_s), moves_of_others=theirs))
    watched.watch(3 * HOUR, every_s=300)
    assert watched.runs == []
    assert not [one for one in watched.events if isinstance(one, WentOn)], "looks that show much are no break"
    assert watched.memory.others is not None
    assert watched.memory.others.what == "others move 1 partition, such as t-7"


@pytest.mark.parametrize("kind", [Kind.BAND_LEFT, Kind.NEW_BROKER, Kind.LEADERS])
def test_where_others_balance_for_sure_balance_is_left_to_them(kind: Kind) -> None:
    """A dead broker is repaired all the same."""

    def world(now_s: float) -> Observation:
        seen = cluster(0, LISTS, brokers=10 if kind is Kind.NEW_BROKER else 9, down=[3] if now_s > DAY else [],
                       used={5: 0.75 if kind is Kind.BAND_LEFT else 0.5})  # fmt: skip
        placed = tuple(replace(one, leader=one.isr[-1]) for one in seen.placed)
        named = replace(seen, partitions=Known(placed)) if kind is Kind.LEADERS else seen
        return replace(named, sure_balancer="Redpanda's partition balancer, by redpanda.1")

    watched = Watched(ACT, world)
    watched.watch(DAY, every_s=300)
    assert watched.runs == []
    (told,) = watched.memory.open
    assert (told.name.kind, told.state) == (kind, State.PROPOSED)
    assert told.gates is not None
    assert any(one.gate == "people" and "balance" in one.why for one in told.gates.closed)
    watched.watch(2 * HOUR, every_s=300)
    assert watched.runs == [GONE_3]


def kept(watched: Watched) -> list[str]:
    return [one.why for one in watched.messages if "its repair has been kept" in one.what]


def test_a_repair_that_others_keep_for_an_hour_is_told_once() -> None:
    """A move of others to the broker that is down never ends, and so the broker is never replaced."""
    theirs = Known(frozenset({TopicPartition("t", 7)}))
    watched = Watched(ACT, lambda now_s: replace(outages((3, 0, 5 * DAY))(now_s), moves_of_others=theirs))
    watched.watch(HOUR, every_s=300)
    assert kept(watched) == []
    watched.watch(10 * HOUR, every_s=300)
    (why,) = kept(watched)
    assert why.startswith("others: others move 1 partition, such as t-7")


def test_what_people_closed_themselves_is_not_told_to_them() -> None:
    theirs = Known(frozenset({TopicPartition("t", 7)}))
    watched = Watched(ACT, lambda now_s: replace(outages((3, 0, 5 * DAY))(now_s), moves_of_others=theirs))
    watched.watch(HOUR, every_s=300)
    watched.note(TurnedOff(round(watched.now_s * 1000), 1, round((watched.now_s + 5 * HOUR) * 1000), "ann", "look"))
    watched.watch(4 * HOUR, every_s=300)
    assert kept(watched) == []


def test_scenario_10_a_cancelled_repair_rests_for_a_day() -> None:
    watched = Watched(ACT, outages((3, 0, 5 * DAY)))
    watched.result, watched.by = Result.CANCELLED, "an operator"
    watched.watch(25 * HOUR, every_s=300)
    assert watched.runs == [GONE_3]
    silence = watched.memory.findings[GONE_3].silence
    assert silence is not None
    assert silence.why == "an operator ended its run run-0"
    watched.watch(3 * HOUR, every_s=300)
    assert watched.runs == [GONE_3, GONE_3]


def test_scenario_12_an_impossible_repair_blocks_no_possible_one() -> None:
    used = {5: 0.9}
    watched = Watched(ACT, lambda _: cluster(0, LISTS, down=[3], used=used))
    watched.impossible = frozenset({Kind.BROKER_GONE})
    watched.watch(6 * HOUR)
    assert watched.runs[0] == Name(Kind.DISK_FILLS, "broker 5:/d0")
    tries = [one for one in watched.orders if one == PlanRepair(GONE_3)]
    assert len(tries) == 3, "again after an hour, and after four more"
    assert len([one for one in watched.messages if one.name == GONE_3]) == 1, "by the core; the reason is told once"
    assert watched.memory.findings[GONE_3].problem == "no plan repairs it"


def test_a_cluster_that_did_not_answer_is_no_failure_of_a_repair() -> None:
    watched = Watched(ACT, outages((3, 0, 9 * HOUR)))
    watched.impossible, watched.is_silent = frozenset({Kind.BROKER_GONE}), True
    watched.watch(2 * HOUR)
    tries = [one for one in watched.orders if one == PlanRepair(GONE_3)]
    assert len(tries) >= 15, "every five minutes"
    watched.impossible = frozenset()
    watched.watch(0.5 * HOUR)
    assert watched.runs == [GONE_3]


@pytest.mark.parametrize("ahead_s", [3600.0, 7200.0, 100_000.0])
def test_a_clock_that_is_set_back_ends_no_look(ahead_s: float) -> None:
    watched = Watched(ACT, outages((3, 0, 9 * DAY)))
    watched.now_s = ahead_s
    watched.look()
    watched.now_s = 0.0
    watched.watch(50 * MINUTE)
    assert watched.runs == []
    watched.watch(HOUR)
    assert watched.runs == [GONE_3]


@pytest.mark.parametrize("unread", ["brokers", "partitions", "moves_of_others", "maintenance", "throttles_of_others",
                                    "lease", "brake"])  # fmt: skip
def test_what_could_not_be_read_permits_nothing(unread: str) -> None:
    lost = Unknown("no answer")
    fields: dict[str, Any] = {unread: lost}
    watched = Watched(ACT, lambda now_s: replace(outages((3, 0, DAY))(now_s), **fields))
    watched.watch(3 * HOUR)
    assert watched.runs == []


def test_an_unread_look_closes_no_finding() -> None:
    def world(now_s: float) -> Observation:
        seen = outages((3, 0, DAY))(now_s)
        return replace(seen, partitions=Unknown("no answer")) if now_s >= HOUR / 2 else seen

    watched = Watched("[care]", world)
    watched.watch(HOUR)
    assert watched.memory.findings[GONE_3].state is State.TOLD


def test_the_brake_stops_what_is_to_begin_and_holds_what_runs() -> None:
    brake = Known("pulled")

    def world(now_s: float) -> Observation:
        seen = outages((3, 0, DAY))(now_s)
        return replace(seen, brake=brake) if pulled else seen

    pulled = True
    watched = Watched(ACT, world)
    watched.watch(2 * HOUR)
    assert watched.runs == []
    pulled = False
    watched.watch(2 * MINUTE)
    assert watched.runs == [GONE_3]
    pulled = True
    watched.watch(2 * MINUTE)
    assert watched.orders[-2:] == [HoldRun("run-0"), PauseRun("run-0")]
    pulled = False
    watched.watch(2 * MINUTE)
    assert watched.orders[-1] == ResumeRun("run-0")
    watched.watch(10 * MINUTE)
    assert [one.outcome for one in watched.memory.acts] == ["done"]


def test_a_repair_gives_way_to_a_more_urgent_one_and_is_planned_again() -> None:
    """A band waits for its next window when a broker goes: what is left of it is cancelled, and is no failure."""

    def world(now_s: float) -> Observation:
        is_gone = now_s > 20 * HOUR and GONE_3 not in watched.runs
        return cluster(0, LISTS if is_gone else WITHOUT_3, down=[3] if now_s > 20 * HOUR else [], used={5: 0.75})

    policy = "[broker-gone]\nlevel = 'act'\n[band-left]\nlevel = 'act'\n"
    watched = Watched(f"{policy}[runs]\nwindows = ['00:00-08:00']\n", world, run_s=3 * HOUR)
    watched.watch(28 * HOUR, every_s=300)
    band, gone = watched.memory.acts
    assert (band.name.kind, band.outcome) == (Kind.BAND_LEFT, "cancelled")
    assert gone.name == GONE_3
    assert gone.begun_ms < 24.5 * HOUR * 1000
    left = watched.memory.findings[band.name]
    assert (left.state, left.failures) == (State.PROPOSED, 0)


def test_a_broker_that_returns_ends_its_own_repair() -> None:
    watched = Watched(ACT, outages((3, 0, HOUR + 10 * MINUTE)), run_s=DAY)
    watched.watch(2 * HOUR)
    assert watched.orders[-1] == EndRun("run-0")
    assert watched.memory.findings[GONE_3].state is State.CLOSED


def test_a_new_broker_is_filled_to_the_end_of_the_plan() -> None:
    """The first copy ends what was found, not what it is for."""
    filled = [*LISTS[:17], (LISTS[17][0], 9, LISTS[17][2])]
    watched = Watched(ACT, lambda _: cluster(0, filled if watched.runs else LISTS, brokers=10), run_s=4 * HOUR)
    watched.watch(8 * HOUR, every_s=300)
    assert watched.runs == [Name(Kind.NEW_BROKER, "broker 9")]
    assert not any(isinstance(one, EndRun) for one in watched.orders)


def test_evidence_begins_again_after_a_break() -> None:
    watched = Watched(ACT, outages((3, 0, DAY)))
    watched.watch(50 * MINUTE)
    watched.now_s += HOUR
    watched.watch(50 * MINUTE)
    assert watched.runs == []
    watched.watch(20 * MINUTE)
    assert watched.runs == [GONE_3]


def test_a_repair_that_did_not_help_is_given_to_people() -> None:
    watched = Watched(ACT, outages((3, 0, 5 * DAY)))
    watched.watch(2 * DAY, every_s=300)
    assert watched.runs == [GONE_3]
    assert watched.memory.findings[GONE_3].state is State.GIVEN_UP


def test_windows_and_budgets_hold() -> None:
    night = ACT + "[runs]\nwindows = ['22:00-06:00']\n"
    watched = Watched(night, outages((3, 8 * HOUR, DAY)))
    watched.watch(21 * HOUR, every_s=300)
    assert watched.runs == []
    watched.watch(2 * HOUR, every_s=300)
    assert watched.runs == [GONE_3]
    poor = Watched(ACT + "[budget]\nbytes-per-day = '100MB'\n", outages((3, 0, DAY)))
    poor.watch(3 * HOUR, every_s=300)
    assert poor.runs == []
    small = Watched(ACT + "[budget]\nshare-per-day = 0.01\n", outages((3, 0, DAY)))
    small.watch(3 * HOUR, every_s=300)
    assert small.runs == []
    judged = small.memory.findings[GONE_3].gates
    assert judged is not None
    assert judged.closed == (ClosedGate("budget", "0 B of 540 MB a day are spent, and it copies 1 GB"),)


def test_a_silenced_finding_is_left_alone() -> None:
    watched = Watched(ACT, outages((3, 0, DAY)))
    watched.note(Silenced(0, 1, *GONE_3, 5 * HOUR * 1000, "ann", "new disk"))
    watched.watch(4 * HOUR, every_s=300)
    assert watched.orders == []


def test_the_default_policy_only_tells_and_tells_once() -> None:
    watched = Watched("[care]", outages((3, 0, DAY)))
    watched.watch(DAY, every_s=300)
    assert watched.orders == []
    assert [one.name for one in watched.messages] == [GONE_3]


def test_the_events_are_all_that_is_remembered() -> None:
    watched = Watched(ACT, outages((3, 0, 3 * HOUR), (7, 30 * HOUR, 31 * HOUR)))
    watched.watch(40 * HOUR, every_s=300)
    assert memory_of(watched.events) == replace(watched.memory, cluster_id="")
    assert any(isinstance(one, RunRepair) for one in watched.orders)


def test_an_outage_counts_once_however_many_runs_it_takes() -> None:
    watched = Watched(ACT, outages((3, HOUR, 4 * DAY)))
    watched.result = Result.FAILED
    watched.watch(3 * DAY, every_s=300)
    assert len(watched.runs) > 3
    assert [one.broker for one in watched.memory.replaced] == [3]
