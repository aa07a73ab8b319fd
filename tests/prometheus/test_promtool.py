"""promtool takes the alerts and the page of metrics, and finds each alert firing just when it is to fire."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from kreassign.executor.events import Event
from kreassign.monitoring.metrics import exposition
from tests.executor.run_events import SUBMITTED, WHOLE, measured
from tests.prometheus.conftest import promtool

RUN = 'cluster_id="c1",run_id="r1"'


@dataclass(frozen=True, slots=True)
class Case:
    """Series by the minute, when the alert is still silent, and from when on it fires, in minutes.

    `labels` are those that the alert has besides the run's.
    """

    alert: str
    series: dict[str, str]
    silent_at: int
    firing_at: int
    labels: dict[str, str] = field(default_factory=dict)


def metric(name: str, **labels: str) -> str:
    told = ",".join([RUN, *(f'{key}="{value}"' for key, value in labels.items())])
    return f"kreassign_{name}{{{told}}}"


MOVING = {metric("run_phase", phase="moving"): "1x60"}
CASES = (
    Case("KreassignRunFailed", {metric("run_phase", phase="failed"): "0x4 1x60"}, 4, 6, {"phase": "failed"}),
    Case("KreassignMovesFailed", {metric("run_moves", state="failed"): "0x4 2x60"}, 4, 6, {"state": "failed"}),
    Case("KreassignRunHeld", {metric("run_held"): "1x60"}, 14, 16),
    Case("KreassignGuardBreached", {metric("run_guard_breached", guard="disk"): "1x60"}, 4, 6, {"guard": "disk"}),
    Case("KreassignClusterUnreachable", {metric("run_cluster_reachable"): "0x60"}, 1, 3),
    Case("KreassignRunSilent", {metric("run_last_event_time_seconds"): "0x60", **MOVING}, 5, 6),
    Case(
        "KreassignCopyStalled",
        {
            metric("broker_in_sync_lag_bytes", broker="3"): "2048x60",
            metric("broker_reassignment_write_bytes_per_second", broker="3"): "0x60",
            metric("broker_log_dir_copy_bytes_per_second", broker="3"): "0x60",
        },
        14, 16, {"broker": "3"},
    ),
    Case("KreassignNoEnd", MOVING, 29, 31, {"phase": "moving"}),
    Case(
        "KreassignThrottleLeft",
        {metric("run_open_settings"): "4x60", metric("run_phase", phase="paused"): "1x60"}, 9, 11,
    ),
)  # fmt: skip


def test_the_alerts_are_rules(alerts: Path) -> None:
    told = promtool("check", "rules", "--lint=all", "--lint-fatal", alerts)
    assert told.returncode == 0, told.stdout + told.stderr
    assert f"SUCCESS: {len(CASES)} rules found" in told.stdout


def test_every_alert_has_a_case(alerts: Path) -> None:
    (group,) = yaml.safe_load(alerts.read_text())["groups"]
    assert [rule["alert"] for rule in group["rules"]] == [case.alert for case in CASES]


def judged(alerts: Path, series: dict[str, str], **checks: object) -> str:
    """Differences of promtool from the expected alerts of these series; empty if there are none."""
    told = [{"series": name, "values": values} for name, values in series.items()]
    test = {"interval": "1m", "input_series": told, **checks}
    file = alerts.parent / "test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [alerts.name], "tests": [test]}))
    done = promtool("test", "rules", file)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize("case", CASES, ids=[case.alert for case in CASES])
def test_an_alert_fires_when_it_is_to_fire_and_no_sooner(case: Case, alerts: Path) -> None:
    firing = f'ALERTS{{alertname="{case.alert}",alertstate="firing"}}'
    (group,) = yaml.safe_load(alerts.read_text())["groups"]
    (severity,) = (rule["labels"]["severity"] for rule in group["rules"] if rule["alert"] == case.alert)
    labels = {"cluster_id": "c1", "run_id": "r1", "severity": severity, **case.labels}
    told = ",".join(f'{name}="{value}"' for name, value in labels.items())
    sample = {"labels": f'ALERTS{{alertname="{case.alert}",alertstate="firing",{told}}}', "value": 1}
    checks = [
        {"expr": firing, "eval_time": f"{case.silent_at}m", "exp_samples": []},
        {"expr": firing, "eval_time": f"{case.firing_at}m", "exp_samples": [sample]},
    ]
    assert judged(alerts, case.series, promql_expr_test=checks) == ""
    assert "got" in judged(alerts, case.series, promql_expr_test=[checks[1] | {"exp_samples": []}]), "it is judged"


def test_the_text_of_an_alert_names_the_run_the_broker_and_the_amount(alerts: Path) -> None:
    stalled = next(case for case in CASES if case.alert == "KreassignCopyStalled")
    labels = {"cluster_id": "c1", "run_id": "r1", "severity": "warning", "broker": "3"}
    texts = {
        "summary": "Nothing has reached broker 3 for 15 minutes, though 2kiB are left",
        "description": "Look at its fetchers, at the throttle, and at the leaders of the moves in flight.",
    }
    expected = [{"exp_labels": labels, "exp_annotations": texts}]
    check = {"eval_time": "16m", "alertname": stalled.alert, "exp_alerts": expected}
    assert judged(alerts, stalled.series, alert_rule_test=[check]) == ""


@pytest.mark.parametrize("events", [WHOLE, SUBMITTED], ids=["done", "moving"])
def test_the_page_of_metrics_is_one_without_faults(events: tuple[Event, ...]) -> None:
    told = promtool("check", "metrics", given=exposition([measured(events)]).decode())
    assert (told.returncode, told.stdout) == (0, ""), told.stderr
