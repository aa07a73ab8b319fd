"""Brokers of one kind of finding that one plan repairs: the next one would wait for the one before to settle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.autopilot.core import EndRun
from kreassign.autopilot.events import Name, Planned, Rehearsed, Result, Silenced, State
from kreassign.autopilot.observation import Known, Observation
from kreassign.autopilot.policy import Kind
from kreassign.autopilot.rehearsals import may_rehearse
from kreassign.autopilot.symptoms import Look
from tests.autopilot.fleet import HOUR_S, Fleet
from tests.autopilot.values import DAY, HOUR, Watched, cluster
from tests.executor.twin_runs import TwinRig

GONE_3, GONE_8 = (Name(Kind.BROKER_GONE, f"broker {one}") for one in (3, 8))
LISTS = [(one % 30, (one + 1) % 30, (one + 2) % 30) for one in range(60)]
AT_NIGHT = "[broker-gone]\nlevel = 'act'\n[runs]\nwindows = ['22:00-06:00']\n"


def without(lists: list[tuple[int, ...]], *gone: int) -> list[tuple[int, ...]]:
    return [tuple(broker + 10 if broker in gone else broker for broker in one) for one in lists]


class Rehearsing(Watched):
    """Plans are rehearsed once they may run, as they are on twins; those for several brokers fail if they are to."""

    fails_together = False

    def _planned(self, name: Name, now: Observation) -> Planned:
        planned, look = super()._planned(name, now), Look(now, self.memory, self.policy)
        planned = replace(planned, plan_id=f"{name} {planned.also}")
        if not may_rehearse(look, self.memory.findings[name]):
            return replace(planned, rehearsal=None, rehearsal_any_time=None)
        problem = "its end is not in sight" if self.fails_together and planned.also else ""
        return planned.rehearsed(Rehearsed(now.at_ms, "tried", problem), at_any_time=False)


def by_day(policy: str = AT_NIGHT, *, back_s: float = 9 * DAY, run_s: float = 600.0) -> Rehearsing:
    """Brokers 3 and 8 of 30 go an hour apart in the morning; their repairs wait for the night."""

    def world(now_s: float) -> Observation:
        ends = [one for one in watched.memory.acts if one.ended_ms is not None]
        moved = frozenset[int]().union(*(one.brokers for one in ends)) if run_s < HOUR else frozenset[int]()
        down = [one for one, at_s, to_s in ((3, 8, 9 * DAY), (8, 9, back_s)) if at_s * HOUR <= now_s < to_s]
        return cluster(0, without(LISTS, *moved), brokers=30, down=down)

    watched = Rehearsing(policy, world, run_s=run_s)
    watched.now_s = 7 * HOUR
    return watched


def test_two_dead_brokers_that_are_due_are_repaired_by_one_run() -> None:
    watched = by_day()
    watched.watch(2 * DAY, every_s=300)
    (act,) = watched.memory.acts
    assert (act.name, act.also) == (GONE_3, (8,))
    assert {watched.memory.findings[one].state for one in (GONE_3, GONE_8)} == {State.CLOSED}
    assert {one.broker for one in watched.memory.replaced} == {3, 8}


def test_a_finding_that_another_repair_covers_says_so() -> None:
    watched = by_day()
    watched.watch(4 * HOUR, every_s=300)
    gates = watched.memory.findings[GONE_8].gates
    assert gates is not None
    assert dict(gates.closed)["together"] == "the repair of broker-gone broker 3 is to repair it, too"


def test_a_run_for_two_brokers_ends_when_one_of_them_is_back() -> None:
    watched = by_day(back_s=23 * HOUR, run_s=5 * HOUR)
    watched.watch(17 * HOUR, every_s=300)
    assert EndRun("run-0") in watched.orders
    (first, second) = watched.memory.acts
    assert (first.also, second.also, second.name) == ((8,), (), GONE_3)


def silenced(at_s: float) -> Silenced:
    return Silenced(round(at_s * 1000), 1, *GONE_8, round((at_s + DAY) * 1000), "ann", "new disk")


def test_a_silence_of_either_broker_ends_the_run_for_both() -> None:
    watched = by_day(run_s=5 * HOUR)
    watched.watch(16 * HOUR, every_s=300)
    watched.note(silenced(watched.now_s))
    watched.watch(HOUR, every_s=300)
    assert EndRun("run-0") in watched.orders
    assert [one.also for one in watched.memory.acts] == [(8,), ()]


def test_a_silenced_broker_is_no_part_of_the_plan_for_another() -> None:
    watched = by_day()
    watched.note(silenced(watched.now_s))
    watched.watch(20 * HOUR, every_s=300)
    assert [(one.name, one.also) for one in watched.memory.acts] == [(GONE_3, ())]


def test_a_covered_broker_that_becomes_urgent_ends_no_run() -> None:
    """Of a partition on broker 8 one copy is left while the run for both goes on."""
    watched, whole = by_day(run_s=5 * HOUR), by_day().world

    def world(now_s: float) -> Observation:
        seen = whole(now_s)
        alone = (replace(one, isr=one.isr[:1]) if 8 in one.replicas else one for one in seen.placed)
        return replace(seen, partitions=Known(tuple(alone))) if watched.runs else seen

    watched.world = world
    watched.watch(18 * HOUR, every_s=300)
    assert EndRun("run-0") not in watched.orders
    assert [one.also for one in watched.memory.acts] == [(8,)]


@pytest.mark.parametrize("back_s", [9 * DAY, 23 * HOUR])
def test_people_who_cancel_a_run_for_two_brokers_stop_both(back_s: float) -> None:
    """Broker 8 may be back by then, and go again."""
    watched = by_day(back_s=back_s, run_s=5 * HOUR)
    watched.result, watched.by = Result.CANCELLED, "an operator"
    watched.watch(32 * HOUR, every_s=300)
    assert watched.runs == [GONE_3]
    silences = [watched.memory.findings[one].silence for one in (GONE_3, GONE_8)]
    assert {one and one.why for one in silences} == {"an operator ended its run run-0"}


def test_a_run_for_two_brokers_that_fails_lets_both_back_off() -> None:
    watched = by_day(run_s=2 * HOUR)
    watched.result = Result.FAILED
    watched.watch(17.5 * HOUR, every_s=300)
    (act,) = watched.memory.acts
    findings = [watched.memory.findings[one] for one in (GONE_3, GONE_8)]
    assert [(one.failures, one.not_before_ms) for one in findings] == [(1, (act.ended_ms or 0) + HOUR * 1000)] * 2


def test_both_brokers_that_outlast_their_repair_go_to_people() -> None:
    watched = by_day(run_s=2 * HOUR)
    watched.watch(23 * HOUR, every_s=300)
    assert [one.also for one in watched.memory.acts] == [(8,)]
    assert {watched.memory.findings[one].state for one in (GONE_3, GONE_8)} == {State.GIVEN_UP}


def test_a_plan_for_two_that_fails_its_rehearsal_is_made_for_each() -> None:
    watched = by_day()
    watched.fails_together = True
    watched.watch(2 * DAY, every_s=300)
    assert [(one.name, one.also) for one in watched.memory.acts] == [(GONE_3, ()), (GONE_8, ())]


@pytest.mark.parametrize(("budget", "brokers"), [("1GB", [(7, 8)]), ("60MB", [(7,)])])
def test_new_brokers_are_filled_by_one_plan_that_the_budget_has(
    tmp_path: Path, budget: str, brokers: list[tuple[int, ...]]
) -> None:
    lists = [[one % 7, (one + 1) % 7, (one + 2) % 7] for one in range(21)]
    care = f"[care]\ninterval = '5m'\n[budget]\nbytes-per-day = '{budget}'\nshare-per-day = 1.0\n"
    rig = TwinRig(tmp_path, lists, brokers=9, size_bytes=8_000_000)
    ours = Fleet(tmp_path, rig, f"[new-broker]\nlevel = 'act'\n{care}[runs]\nthrottle = '1MB/s'\n")
    with ours.opened() as autopilot:
        ours.watch(autopilot, 4 * HOUR_S, 300.0)
        assert [tuple(sorted(one.brokers)) for one in autopilot.memory.acts] == brokers
    held = {broker: sum(broker in one for one in rig.replicas.values()) for broker in (7, 8)}
    assert {broker for broker, count in held.items() if 6 <= count <= 8} == {one for each in brokers for one in each}
