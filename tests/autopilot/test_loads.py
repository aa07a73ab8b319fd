"""Repairs that are planned by the loads of tables: with their age, and not for balance when they are stale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.autopilot.events import Name, State
from kreassign.autopilot.gates import GATES, Case
from kreassign.autopilot.memory import Finding, Memory
from kreassign.autopilot.observation import Known
from kreassign.autopilot.policy import Kind, Policy, parse_policy
from kreassign.autopilot.symptoms import Look, Symptom
from kreassign.model import LogDir
from kreassign.model.text import format_amount
from kreassign.operations.autopilot_looks import observe
from kreassign.operations.autopilot_plans import Repairs, kept, plan_repair
from tests.executor.twin_runs import TwinRig
from tests.operations.test_table_inputs import LOADED_MS, tables

HOUR_MS = 3_600_000
BAND = Name(Kind.BAND_LEFT, "cluster")
LISTS = [[0], [0], [0], [1], [1], [1]]
UNEVEN = {"t": [tuple(one) for one in LISTS]}


class Loads:
    """A cluster whose tables have loads of t that were measured an hour before the load."""

    def __init__(self, folder: Path) -> None:
        self.rig = TwinRig(folder / "state", LISTS, brokers=3)
        self.data = folder / "tables"
        self.data.mkdir()

    def policy(self) -> Policy:
        return parse_policy(f"[loads]\ntables = '{self.data}'\nmost-age = '6h'\n", "policy.toml")

    def write(self, *, is_doubtful: bool = False) -> None:
        loads = {"verdict": "too short"} if is_doubtful else {}
        tables(self.data, UNEVEN, self.rig.twin.cluster_id, knows_ids=False, **loads)

    def planned(self, name: Name, hours: float) -> Repairs:
        """A repair that is planned so long after the load."""
        now = replace(observe(self.rig.client, 0), at_ms=LOADED_MS + round(hours * HOUR_MS))
        return plan_repair(self.rig.client, name, Look(now, Memory(), self.policy()), self.rig.transport)

    def gate(self, repairs: Repairs, hours: float) -> str | None:
        """Gate of the loads, so long after the load."""
        at_ms = LOADED_MS + round(hours * HOUR_MS)
        now = replace(observe(self.rig.client, 0), at_ms=at_ms)
        name = repairs.planned.name
        finding = Finding(name, State.PROPOSED, at_ms, at_ms, "it is uneven", proposal=repairs.planned)
        symptom = Symptom(name.subject, "it is uneven", 0, 0)
        return GATES["loads stale"](Case(finding, symptom, now, Memory(), self.policy()))


@pytest.fixture
def loads(tmp_path: Path) -> Loads:
    return Loads(tmp_path)


def test_a_plan_by_fresh_loads_names_them_and_their_age(loads: Loads) -> None:
    loads.write()
    repairs = loads.planned(BAND, 2)
    assert repairs.planned.sentences[-1] == f"planned by loads of {loads.data}, measured until 3 h ago, 0% doubtful"
    assert repairs.plan is not None
    assert repairs.plan.facts is not None
    assert repairs.plan.facts.loads.source == "mean"
    assert loads.gate(repairs, 2) is None


def test_stale_loads_hold_balance_and_nothing_else(loads: Loads) -> None:
    loads.write()
    repairs = loads.planned(BAND, 9)
    stale = "loads were last measured 10 h ago, and are stale after 6h"
    assert repairs.planned.sentences[-1] == f"{stale}: planned by rates measured in that moment"
    assert loads.gate(repairs, 9) == f"{stale}; `kreassign load` brings them up to date"
    new = loads.planned(Name(Kind.NEW_BROKER, "broker 2"), 9)
    assert new.planned.sentences[-1].startswith(stale)
    assert loads.gate(new, 9) is None
    gone = loads.planned(Name(Kind.BROKER_GONE, "broker 1"), 9)
    assert gone.planned.loads is None, "lost copies do not wait for loads"


def test_loads_grow_stale_while_a_proposal_waits(loads: Loads) -> None:
    loads.write()
    repairs = loads.planned(BAND, 2)
    assert (loads.gate(repairs, 4), loads.gate(repairs, 6) is None) == (None, False)


def test_doubtful_and_unreadable_loads_hold_balance(loads: Loads) -> None:
    unreadable = loads.planned(BAND, 2)
    assert unreadable.planned.loads is not None
    assert f"the loads of {loads.data} could not be read (" in str(loads.gate(unreadable, 2))
    loads.write(is_doubtful=True)
    text = str(loads.gate(loads.planned(BAND, 2), 2))
    assert text.startswith("loads of 100% of the partitions are doubtful, more than 5%")


def test_a_proposal_that_stays_names_the_age_of_now(loads: Loads, tmp_path: Path) -> None:
    loads.write()
    look = Look(observe(loads.rig.client, 0), Memory(), loads.policy())
    first, later = loads.planned(BAND, 2), loads.planned(BAND, 4)
    kept(tmp_path / "plan.json", None, first, look, ())
    stayed = kept(tmp_path / "plan.json", first.planned, later, look, ()).planned
    assert (stayed.plan_id, stayed.sentences[-1]) == (first.planned.plan_id, later.planned.sentences[-1])
    assert "measured until 5 h ago" in stayed.sentences[-1]


def test_a_proposal_stays_for_no_topic_that_was_created_again(loads: Loads, tmp_path: Path) -> None:
    """The fresh plan leaves it alone, so that no id of it is in its facts."""
    loads.write()
    look = Look(observe(loads.rig.client, 0), Memory(), loads.policy())
    first = loads.planned(BAND, 2)
    assert first.plan is not None
    assert first.plan.facts is not None
    facts = replace(first.plan.facts, topic_ids={})
    fresh = replace(first, plan=replace(first.plan, facts=facts), topic_ids=dict.fromkeys(first.topic_ids, "another"))
    kept(tmp_path / "plan.json", None, first, look, ())
    assert kept(tmp_path / "plan.json", first.planned, fresh, look, ()) is fresh


def test_a_proposal_that_stays_costs_the_bytes_of_now(loads: Loads, tmp_path: Path) -> None:
    """Each directory reports twice the bytes, of which a day of the policy allows fewer."""
    loads.write()
    seen, first = observe(loads.rig.client, 0), loads.planned(BAND, 2)
    assert first.plan is not None
    dirs = {broker: Known(tuple(doubled(one) for one in found)) for broker, found in seen.directories()}
    policy = f"[loads]\ntables = '{loads.data}'\n[budget]\nbytes-per-day = '{first.planned.copied_bytes}B'\n"
    look = Look(replace(seen, log_dirs=dirs), Memory(), parse_policy(policy, "policy.toml"))
    kept(tmp_path / "plan.json", None, first, look, ())
    stayed = kept(tmp_path / "plan.json", first.planned, first, look, ()).planned
    now_bytes = sum(seen.sizes[name] * 2 for name in first.plan.plan.replicas)
    assert (stayed.plan_id, stayed.copied_bytes) == (first.planned.plan_id, now_bytes)
    assert f"{format_amount(now_bytes, 'B')} to copy" in stayed.sentences[0]
    assert stayed.sentences[1].endswith("so it never begins by itself")


def doubled(log_dir: LogDir) -> LogDir:
    """The directory with replicas of twice their bytes."""
    copies = tuple(replace(one, size_bytes=2 * one.size_bytes) for one in log_dir.replicas)
    return replace(log_dir, replicas=copies)
