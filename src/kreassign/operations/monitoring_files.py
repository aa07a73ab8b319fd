"""The files for those who monitor runs: alert rules for Prometheus, a dashboard for Grafana."""

from __future__ import annotations

from enum import StrEnum
from importlib.resources import files


class MonitoringFile(StrEnum):
    """What there is, and the name of its file."""

    ALERTS = "alerts.yaml"
    DASHBOARD = "dashboard.json"


def monitoring_file(which: MonitoringFile) -> str:
    """The text of a file that comes with kreassign."""
    return (files("kreassign.monitoring") / "files" / which).read_text(encoding="utf-8")
