"""Metrics of an autopilot: what it found and did, and what keeps it from more, as Prometheus reads them."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

from kreassign.autopilot.events import FindingMoved, Name, Result, RunBegan, RunEnded, State
from kreassign.autopilot.memory import memory_of, remember
from kreassign.autopilot.messages import digest
from kreassign.autopilot.policy import Kind
from kreassign.model.text import HOUR_MS
from kreassign.monitoring.metrics import (
    AUTOPILOT_METRICS,
    METRICS,
    AutopilotStatus,
    RepairAccount,
    exposition,
    serving_metrics,
)
from kreassign.operations.autopilot import Autopilot
from kreassign.operations.autopilot_decisions import Decisions
from kreassign.operations.autopilot_journal import Requests
from tests.autopilot.fleet import HOUR_S, Fleet
from tests.executor.twin_runs import TwinRig
from tests.monitoring.pages import Page

LOOKS_S = 300.0
REPAIRS = (
    RepairAccount("broker-gone", "run-1", 100, 90, 60.0, 75.0),
    RepairAccount("placement", "run-2", 5, None, None, None),
)
STATUS = AutopilotStatus(
    "c-1", 60_000, (("broker-gone", "told"), ("placement", "told"), ("placement", "told")), REPAIRS,
    {"broker-gone": 3}, {("broker-gone", "done"): 2}, 190,
    5, 7, ("window", "window", "age"), is_stopped=True,
)  # fmt: skip


def test_every_metric_has_the_values_of_the_status() -> None:
    page = Page(exposition((), (STATUS,)).decode())
    names = {metric.full_name.removesuffix("_total") for metric in (*METRICS, *AUTOPILOT_METRICS)}
    assert set(page.families) == names
    assert page.value("autopilot_last_look_time_seconds", cluster_id="c-1") == 60
    assert page.value("autopilot_findings", kind="placement", state="told") == 2
    assert page.value("autopilot_findings_told_total", kind="broker-gone") == 3
    assert page.value("autopilot_acts_total", kind="broker-gone", outcome="done") == 2
    assert page.value("autopilot_copied_bytes_total") == 190
    accounts = [
        page.by("repair", f"autopilot_repair_{name}")
        for name in ("promised_bytes", "copied_bytes", "promised_seconds", "spent_seconds")
    ]
    assert accounts == [{"run-1": 100, "run-2": 5}, {"run-1": 90}, {"run-1": 60}, {"run-1": 75}], "unknown has none"
    assert page.by("reason", "autopilot_blocked") == {"window": 2, "age": 1}
    assert [page.value(f"autopilot_{name}") for name in ("day_copied_bytes", "week_copied_bytes", "stopped")] == [
        5,
        7,
        1,
    ]


def test_they_are_served_beside_those_of_runs() -> None:
    with serving_metrics(0, tuple, lambda: (STATUS,)) as address, urlopen(address) as answer:
        text = answer.read().decode()
    assert 'kreassign_autopilot_stopped{cluster_id="c-1"} 1.0' in text
    assert "kreassign_run_phase" in text


def test_an_autopilot_reports_after_each_look(tmp_path: Path) -> None:
    policy = "[broker-gone]\nlevel = 'act'\n[care]\ninterval = '5m'\n"
    ours = Fleet(tmp_path, TwinRig(tmp_path, [[0, 1, 2], [1, 2, 3], [2, 3, 4]]), policy)
    seen: list[AutopilotStatus] = []
    clock = ours.rig.transport
    tell = ours.messages.append
    with Autopilot(Decisions(ours.rig.client, ours.policy, ours.context, tell, clock, report=seen.append)) as autopilot:
        ours.rig.twin.crash(4)
        ours.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
        assert seen[-1].findings == (("broker-gone", State.PROPOSED.value),)
        assert {"age", "two looks"} >= set(seen[-1].blocked) > set()
        Requests(tmp_path, ours.rig.twin.cluster_id, clock).off(HOUR_S / 60, "ann", "why")
        autopilot.look()
        assert seen[-1].is_stopped
        assert "off" in seen[-1].blocked
        ours.watch(autopilot, HOUR_S, LOOKS_S)
        assert seen[-1].told == {"broker-gone": 1}
        assert seen[-1].ended == {("broker-gone", "done"): 1}
        (repair,) = seen[-1].repairs
        assert repair.promised_bytes == repair.copied_bytes == seen[-1].copied_bytes > 0
        assert (repair.promised_s or 0) > 0
        assert (repair.spent_s or 0) > 0
        assert seen[-1].day_bytes == seen[-1].week_bytes > 0


def test_the_digest_says_what_a_repair_promised_and_achieved() -> None:
    gone = Name(Kind.BROKER_GONE, "broker 3")
    began = RunBegan(HOUR_MS, gone, "run-1", 5_000_000, (), seconds=600.0)
    found = FindingMoved(0, gone, State.SEEN, "it is there", "it is down")
    memory = memory_of((found, began))
    promise = "repair of broker-gone broker 3, run run-1: runs; 5 MB and 10 min promised"
    assert promise in digest(memory, 2 * HOUR_MS).why
    memory = remember(memory, RunEnded(2 * HOUR_MS, gone, Result.DONE, 4_000_000))
    account = "repair of broker-gone broker 3, run run-1: done; 4 MB copied in 1 h, 5 MB and 10 min promised"
    assert account in digest(memory, 2 * HOUR_MS).why


def test_outcomes_are_counted_without_their_reasons() -> None:
    """An error text in a label would be a new time series each time."""
    gone = Name(Kind.BROKER_GONE, "broker 3")
    memory = memory_of((FindingMoved(0, gone, State.SEEN, "it is there", "it is down"),))
    ends = (
        (Result.NOT_BEGUN, "broker 2 is silent"),
        (Result.NOT_BEGUN, ""),
        (Result.IN_PART, "done without 3 of 4 leaders, such as t-0 (x)"),
        (Result.DONE, ""),
    )
    for result, outcome in ends:
        memory = remember(memory, RunBegan(1, gone, "run-1", 7, ()))
        memory = remember(memory, RunEnded(2, gone, result, 7, outcome=outcome))
    results = {Result.NOT_BEGUN: 2, Result.IN_PART: 1, Result.DONE: 1}
    assert memory.totals.acts == {(Kind.BROKER_GONE, result): count for result, count in results.items()}
    assert memory.totals.copied_bytes == 14, "what did not begin copied nothing"
