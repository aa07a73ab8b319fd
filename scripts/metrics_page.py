#!/usr/bin/env python3
"""Write docs/reference/metrics.md and the dashboard for Grafana from the table of metrics.

python scripts/metrics_page.py
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kreassign.monitoring.metrics import AUTOPILOT_METRICS, METRICS, RUN_LABELS, Gauge

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "metrics.md"
DASHBOARD = ROOT / "src" / "kreassign" / "monitoring" / "files" / "dashboard.json"

_HEAD = """\
# Metrics

What `kreassign run --metrics-port` serves at `/metrics` on 127.0.0.1 (but not to what a proxy forwards), in
Prometheus' text format ([how to use it](../guides/monitor-runs.md)). Every metric of a run is a gauge and has the
labels `{labels}` besides its own. What is not known has no sample: no figure is invented.

KIP-455 names metrics of reassignment as future work: "how many partitions are being reassigned on a given broker,
what write and read bandwidth is being used". They are `kreassign_broker_reassigning_partitions`,
`kreassign_broker_reassignment_write_bytes_per_second` and `kreassign_broker_reassignment_read_bytes_per_second`; unlike
the metrics of brokers they count what this run copies, and no other replication.

This page and the dashboard are written by `python scripts/metrics_page.py` from
`src/kreassign/monitoring/metrics.py`; change that instead.

| Metric | Labels | Means |
|---|---|---|
"""


_AUTOPILOT = """
## Metrics of an autopilot

`kreassign autopilot watch --metrics-port` serves these besides, with those of the repair that it runs. They have the
label `cluster_id` besides their own, and names of counters end with `_total`. `kreassign define-monitoring alerts` has
rules for them.

| Metric | Labels | Means |
|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel of the dashboard: its title, Grafana's unit, its width of 24, and queries with their legends."""

    title: str
    unit: str
    width: int
    queries: tuple[tuple[str, str], ...]
    kind: str = "timeseries"


_RUN = 'cluster_id=~"$cluster", run_id=~"$run"'

PANELS = (
    Panel("Phase", "none", 6, ((f"kreassign_run_phase{{{_RUN}}} == 1", "{{phase}}"),), "stat"),
    Panel("Held", "bool_yes_no", 3, ((f"kreassign_run_held{{{_RUN}}}", "held"),), "stat"),
    Panel("Ends in", "s", 5, ((f"kreassign_run_eta_expected_seconds{{{_RUN}}}", "{{run_id}}"),), "stat"),
    Panel("Left to copy", "decbytes", 5, ((f"kreassign_run_left_bytes{{{_RUN}}}", "{{run_id}}"),), "stat"),
    Panel("Problems", "none", 5, ((f"kreassign_run_problems{{{_RUN}}}", "{{run_id}}"),), "stat"),
    Panel("Moves by state", "none", 12, ((f"sum by (state) (kreassign_run_moves{{{_RUN}}})", "{{state}}"),)),
    Panel(
        "ETA range", "s", 12,
        (
            (f"kreassign_run_eta_earliest_seconds{{{_RUN}}}", "earliest"),
            (f"kreassign_run_eta_expected_seconds{{{_RUN}}}", "expected"),
            (f"kreassign_run_eta_latest_seconds{{{_RUN}}}", "latest"),
        ),
    ),
    Panel(
        "Written to brokers by moves", "Bps", 12,
        (
            (f"kreassign_broker_reassignment_write_bytes_per_second{{{_RUN}}}", "broker {{broker}}"),
            (f"max(kreassign_broker_throttle_bytes_per_second{{{_RUN}}})", "highest throttle"),
        ),
    ),
    Panel(
        "Read from brokers by moves", "Bps", 12,
        (
            (f"kreassign_broker_reassignment_read_bytes_per_second{{{_RUN}}}", "broker {{broker}}"),
            (f"max(kreassign_broker_throttle_bytes_per_second{{{_RUN}}})", "highest throttle"),
        ),
    ),
    Panel(
        "Copied between log directories", "Bps", 12,
        ((f"kreassign_broker_log_dir_copy_bytes_per_second{{{_RUN}}} > 0", "broker {{broker}}"),),
    ),
    Panel(
        "Reassigning partitions by broker", "none", 12,
        ((f"kreassign_broker_reassigning_partitions{{{_RUN}}}", "broker {{broker}}"),),
    ),
    Panel("In-sync lag by broker", "decbytes", 12,
          ((f"kreassign_broker_in_sync_lag_bytes{{{_RUN}}}", "broker {{broker}}"),)),
    Panel(
        "New replicas out of sync by broker", "none", 12,
        ((f"kreassign_broker_out_of_sync_replicas{{{_RUN}}}", "broker {{broker}}"),),
    ),
    Panel("Left to arrive by broker", "decbytes", 12,
          ((f"kreassign_broker_left_bytes{{{_RUN}}}", "broker {{broker}}"),)),
    Panel("Guards breached", "none", 12, ((f"kreassign_run_guard_breached{{{_RUN}}}", "{{guard}}"),), "state-timeline"),
    Panel("Rate left by clients", "percent", 12, ((f"kreassign_run_rate_percent{{{_RUN}}}", "{{run_id}}"),)),
    Panel(
        "Cost of clients that suffer", "s", 12,
        (
            (f"kreassign_run_held_for_clients_seconds{{{_RUN}}}", "held"),
            (f"kreassign_run_slowed_for_clients_seconds{{{_RUN}}}", "slowed"),
        ),
    ),
    Panel("Total rate", "Bps", 12, ((f"kreassign_run_rate_bytes_per_second{{{_RUN}}}", "{{run_id}}"),)),
)  # fmt: skip

_WIDTH, _HEIGHT, _STAT_HEIGHT = 24, 8, 4


def metrics_page(metrics: Sequence[Gauge[Any]] = METRICS) -> str:
    """The page in Markdown."""
    rows = (
        f"| `{one.full_name}` | {', '.join(f'`{label}`' for label in one.labels) or '-'} | {one.meaning} |\n"
        for one in metrics
    )
    own = (
        f"| `{one.full_name}` | {', '.join(f'`{label}`' for label in one.labels) or '-'} | {one.meaning} |\n"
        for one in AUTOPILOT_METRICS
    )
    return _HEAD.format(labels="` and `".join(RUN_LABELS)) + "".join(rows) + _AUTOPILOT + "".join(own)


def dashboard(panels: Sequence[Panel] = PANELS) -> str:
    """The dashboard as JSON, to be imported into Grafana."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    document = {
        "uid": "kreassign-runs",
        "title": "kreassign: runs",
        "tags": ["kafka", "kreassign"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "15s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "",
        "annotations": {"list": []},
        "links": [],
        "templating": {
            "list": [
                {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
                 "refresh": 1},
                _variable("cluster", "Cluster", "label_values(kreassign_run_info, cluster_id)", source),
                _variable("run", "Run", 'label_values(kreassign_run_info{cluster_id=~"$cluster"}, run_id)', source),
            ]
        },
        "panels": list(_placed(panels, source)),
    }  # fmt: skip
    return json.dumps(document, indent=1) + "\n"


def _variable(name: str, label: str, query: str, source: dict[str, str]) -> dict[str, Any]:
    return {
        "name": name, "label": label, "type": "query", "datasource": source,
        "query": {"query": query, "refId": name}, "refresh": 2, "sort": 2, "includeAll": True, "multi": True,
        "allValue": ".*", "current": {"text": "All", "value": "$__all"},
    }  # fmt: skip


def _placed(panels: Sequence[Panel], source: dict[str, str]) -> Sequence[dict[str, Any]]:
    """Panels from left to right, in rows of one height."""
    placed: list[dict[str, Any]] = []
    x = y = row_height = 0
    for number, panel in enumerate(panels, start=1):
        height = _STAT_HEIGHT if panel.kind == "stat" else _HEIGHT
        if x + panel.width > _WIDTH:
            x, y = 0, y + row_height
        row_height = height if x == 0 else max(row_height, height)
        placed.append(_panel(number, panel, {"x": x, "y": y, "w": panel.width, "h": height}, source))
        x += panel.width
    return placed


def _panel(number: int, panel: Panel, place: dict[str, int], source: dict[str, str]) -> dict[str, Any]:
    shown = {"textMode": "name"} if panel.title == "Phase" else {}
    reduced = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, **shown}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "datasource": source,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": reduced if panel.kind == "stat" else {},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": source, "expr": expression, "legendFormat": legend}
            for index, (expression, legend) in enumerate(panel.queries)
        ],
    }


if __name__ == "__main__":
    PAGE.write_text(metrics_page(), encoding="utf-8")
    DASHBOARD.write_text(dashboard(), encoding="utf-8")
