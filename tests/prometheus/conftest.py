"""promtool, built from the Go module of Prometheus. Run by `make test-prometheus`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.checks.source import ROOT

# Other targets of make have not built it.
collect_ignore_glob = [] if "KREASSIGN_TEST_PROMETHEUS" in os.environ else ["test_*.py"]

PROGRAMS = ROOT / "build" / "prometheus"
COMMAND_S = 120


def promtool(*words: object, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Output of Prometheus' own checker."""
    command = [str(PROGRAMS / "promtool"), *map(str, words)]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=COMMAND_S, check=False)


@pytest.fixture
def alerts(tmp_path: Path) -> Path:
    """The file of alerts, as `kreassign define-monitoring alerts` writes it."""
    found = tmp_path / "alerts.yaml"
    found.write_bytes((ROOT / "src" / "kreassign" / "monitoring" / "files" / "alerts.yaml").read_bytes())
    return found
