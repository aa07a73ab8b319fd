"""Order, patience, budgets and back-off of repairs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from kreassign.autopilot.core import PlanRepair
from kreassign.autopilot.events import Name, NotPlanned, TurnedOff
from kreassign.autopilot.observation import Known, Observation
from kreassign.autopilot.policy import Kind
from kreassign.model import Partition
from tests.autopilot.test_scenarios import ACT, GONE_3, LISTS, outages
from tests.autopilot.values import DAY, HOUR, MINUTE, Watched, cluster

CROWDED = [*LISTS, (0, 3, 1)]
"""The last partition has two of its replicas in one rack."""


def astray(one: Partition) -> Partition:
    """The partition, led by the last of its replicas."""
    return replace(one, leader=one.isr[-1])


def troubled(now_s: float) -> Observation:
    """A cluster with a trouble of each kind that shows beside others, and no broker down."""
    seen = cluster(round(now_s * 1000), CROWDED, brokers=10, used={5: 0.9})
    return replace(seen, partitions=Known(tuple(map(astray, seen.placed))))


def test_repairs_that_are_due_together_begin_with_the_most_urgent() -> None:
    """They become due while acting is off."""
    watched = Watched(f"{ACT}[care]\nsettle = '1m'\nrest = '1m'\n[budget]\nruns-per-day = 9\n", troubled, run_s=MINUTE)
    watched.note(TurnedOff(0, 1, round(8 * HOUR * 1000), "ann", "upgrade"))
    watched.watch(9 * HOUR)
    kinds = list(dict.fromkeys(one.kind for one in watched.runs))
    assert kinds == [Kind.DISK_FILLS, Kind.PLACEMENT, Kind.NEW_BROKER, Kind.BAND_LEFT, Kind.LEADERS]


@pytest.mark.parametrize(("kind", "hours"), [
    (Kind.DISK_FILLS, 0), (Kind.PLACEMENT, 1), (Kind.NEW_BROKER, 0.5), (Kind.BAND_LEFT, 6), (Kind.LEADERS, 0.5),
])  # fmt: skip
def test_a_repair_is_planned_when_its_trouble_has_lasted(kind: Kind, hours: float) -> None:
    watched = Watched(f"[{kind}]\nlevel = 'propose'\n", troubled)
    watched.watch(max(0, hours * HOUR - MINUTE) or MINUTE)
    assert bool(watched.orders) == (hours == 0)
    watched.watch(2 * MINUTE)
    assert {one.name.kind for one in watched.orders if isinstance(one, PlanRepair)} == {kind}


def test_a_dead_broker_beside_another_is_left_to_people() -> None:
    """They died a day apart: two of nine are more than a tenth, and one alone never is."""
    watched = Watched("[broker-gone]\nlevel = 'act'\n", outages((3, 0, 9 * DAY), (7, DAY, 9 * DAY)))
    watched.watch(3 * DAY, every_s=300)
    assert watched.runs == [GONE_3]
    gates = watched.memory.findings[Name(Kind.BROKER_GONE, "broker 7")].gates
    assert gates is not None
    assert dict(gates.closed)["people"] == (
        "22% of the brokers are down, more than the 10% of the policy: people decide"
    )


def test_budgets_of_a_day_and_of_a_week_hold() -> None:
    """Three disks are full, and each repair copies a gigabyte."""
    budget = "[budget]\nbytes-per-day = '1GB'\nbytes-per-week = '2GB'\n"
    full = Watched(
        f"[disk-fills]\nlevel = 'act'\n{budget}", lambda _: cluster(0, LISTS, used=dict.fromkeys((3, 5, 7), 0.9))
    )
    full.watch(9 * DAY, every_s=600)
    days = [one.begun_ms / 1000 / DAY for one in full.memory.acts]
    assert [round(one, 1) for one in days] == [0.0, 1.0, 7.0]


def test_a_repair_that_fails_is_tried_after_one_hour_four_and_twenty_four() -> None:
    watched = Watched(ACT, lambda _: cluster(0, LISTS, down=[3]))
    watched.impossible = frozenset({Kind.BROKER_GONE})
    watched.watch(3 * DAY, every_s=600)
    failed_h = [one.at_ms / 1000 / HOUR for one in watched.events if isinstance(one, NotPlanned) and one.name == GONE_3]
    assert [round(after - before) for before, after in pairwise(failed_h)] == [1, 4, 24, 24]
