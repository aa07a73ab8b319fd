"""The dashboard and the alerts that come with kreassign: they can be read, and what they name is there."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from kreassign.autopilot.events import State
from kreassign.autopilot.gates import GATES
from kreassign.autopilot.policy import Kind
from kreassign.cli.main import kreassign
from kreassign.executor.guards import GuardName
from kreassign.model.run import MoveStatus, Phase
from kreassign.monitoring.metrics import AUTOPILOT_LABELS, AUTOPILOT_METRICS, METRICS, RUN_LABELS
from scripts.metrics_page import DASHBOARD, PAGE, PANELS, dashboard, metrics_page
from tests.monitoring.queries import Selected, selected

LABELS = {metric.full_name: {*RUN_LABELS, *metric.labels} for metric in METRICS} | {
    metric.full_name: {*AUTOPILOT_LABELS, *metric.labels} for metric in AUTOPILOT_METRICS
}
VALUES = {"state": {*MoveStatus, *State}, "phase": set(Phase), "guard": set(GuardName), "kind": set(Kind),
          "reason": set(GATES)}  # fmt: skip


def written(which: str) -> str:
    done = CliRunner().invoke(kreassign, ["define-monitoring", which])
    assert done.exit_code == 0, done.output
    return done.stdout


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(written("alerts"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(written("dashboard"))["panels"]
    return found


QUERIES = {rule["alert"]: rule["expr"] for rule in rules()} | {
    f"{panel['title']} {target['refId']}": target["expr"] for panel in panels() for target in panel["targets"]
}


def wrong(one: Selected) -> list[str]:
    if one.metric not in LABELS:
        return [f"there is no metric {one.metric}"]
    missing = [f"{one.metric} has no label {label}" for label in sorted(one.labels - LABELS[one.metric])]
    odd = [f"{label} is never {value}" for label, value in one.values if value not in VALUES.get(label, {value})]
    return missing + odd


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_prometheus_reads_every_query_and_its_metrics_are_documented(query: str) -> None:
    found = selected(query)
    assert found
    assert not [problem for one in found for problem in wrong(one)]


@pytest.mark.parametrize(("query", "problem"), [
    ("kreassign_run_movs", "there is no metric kreassign_run_movs"),
    ('kreassign_run_moves{status="failed"}', "kreassign_run_moves has no label status"),
    ("sum by (broker) (kreassign_run_moves)", "kreassign_run_moves has no label broker"),
    ('kreassign_run_phase{phase=~"done|finished"}', "phase is never finished"),
    ("kreassign_run_held unless on (broker) kreassign_broker_left_bytes", "kreassign_run_held has no label broker"),
])  # fmt: skip
def test_a_query_that_would_never_find_anything_is_found(query: str, problem: str) -> None:
    assert [text for one in selected(query) for text in wrong(one)] == [problem]


def test_every_metric_is_used_or_a_plain_fact() -> None:
    """A metric that nobody shows is one that nobody notices to be wrong."""
    shown = {one.metric for query in QUERIES.values() for one in selected(query)}
    facts = {f"kreassign_run_{name}" for name in ("info", "start_time_seconds", "end_time_seconds", "copied_bytes")}
    facts |= {f"kreassign_autopilot_{name}_copied_bytes" for name in ("day", "week")}
    facts |= {"kreassign_autopilot_copied_bytes_total"}
    assert set(LABELS) - shown == facts


def test_alerts_are_rules_as_prometheus_takes_them_and_say_what_to_do() -> None:
    found = rules()
    names = [rule["alert"] for rule in found]
    assert len(names) == len(set(names)) > 5
    for rule in found:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}, rule
        assert re.fullmatch(r"[0-9]+[smhd]", rule.get("for", "1m")), rule
        assert rule["labels"]["severity"] in {"critical", "warning"}
        text = " ".join(rule["annotations"].values())
        used = set(re.findall(r"\$labels\.(\w+)", text))
        assert used <= LABELS[selected(rule["expr"])[0].metric], rule
        assert rule["annotations"].keys() == {"summary", "description"}


def test_grafana_knows_everything_that_the_dashboard_says() -> None:
    said = json.loads(written("dashboard"))
    understood = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(said)))
    assert not list(lost(said, understood, ""))


def lost(said: Any, understood: Any, where: str) -> list[str]:
    """Messages about places with missing or wrong content."""
    if isinstance(said, dict) and isinstance(understood, dict):
        return [text for key, value in said.items() for text in lost(value, understood.get(key), f"{where}/{key}")]
    if isinstance(said, list) and isinstance(understood, list) and len(said) == len(understood):
        pairs = enumerate(zip(said, understood, strict=True))
        return [text for number, (one, other) in pairs for text in lost(one, other, f"{where}/{number}")]
    return [] if said == understood else [f"{where}: {said!r} is {understood!r}"]


def test_panels_do_not_overlap_nor_leave_the_page() -> None:
    places = [(panel["title"], panel["gridPos"]) for panel in panels()]
    assert len({title for title, _ in places}) == len(places) == len(PANELS)
    assert all(place["x"] + place["w"] <= 24 for _, place in places)
    for (one, a), (other, b) in combinations(places, 2):
        is_apart = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        assert is_apart or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"], (one, other)


def test_the_page_and_the_dashboard_are_what_the_script_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == metrics_page(), "run `python scripts/metrics_page.py`"
    assert DASHBOARD.read_text(encoding="utf-8") == dashboard(), "run `python scripts/metrics_page.py`"
