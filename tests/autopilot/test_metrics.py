"""Metrics of an autopilot: what it found and did, and what keeps it from more, as Prometheus reads them."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

from kreassign.autopilot.lifecycle import State
from kreassign.monitoring.metrics import AUTOPILOT_METRICS, METRICS, AutopilotStatus, exposition, serving_metrics
from kreassign.operations.autopilot import Autopilot
from kreassign.operations.autopilot_journal import turn_off
from tests.autopilot.fleet import HOUR_S, Fleet
from tests.executor.twin_runs import TwinRig
from tests.monitoring.pages import Page

LOOKS_S = 300.0
STATUS = AutopilotStatus(
    "c-1", 60_000, (("broker-gone", "told"), ("placement", "told"), ("placement", "told")), (("broker-gone", "done"),),
    5, 7, ("window", "window", "age"), is_stopped=True,
)  # fmt: skip


def test_every_metric_has_the_values_of_the_status() -> None:
    page = Page(exposition((), (STATUS,)).decode())
    assert set(page.families) == {metric.full_name for metric in (*METRICS, *AUTOPILOT_METRICS)}
    assert page.value("autopilot_last_look_time_seconds", cluster_id="c-1") == 60
    assert page.value("autopilot_findings", kind="placement", state="told") == 2
    assert page.value("autopilot_acts", kind="broker-gone", outcome="done") == 1
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
    with Autopilot(
        ours.rig.client, ours.policy, ours.context, ours.messages.append, clock, report=seen.append
    ) as autopilot:
        ours.rig.twin.crash(4)
        ours.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
        assert seen[-1].findings == (("broker-gone", State.PROPOSED.value),)
        assert {"age", "two looks"} >= set(seen[-1].blocked) > set()
        turn_off(tmp_path, ours.rig.twin.cluster_id, HOUR_S / 60, "ann", "why", clock)
        autopilot.look()
        assert seen[-1].is_stopped
        assert "off" in seen[-1].blocked
        ours.watch(autopilot, HOUR_S, LOOKS_S)
        assert seen[-1].repairs == (("broker-gone", "done"),)
        assert seen[-1].day_bytes == seen[-1].week_bytes > 0
