"""`kreassign doctor` against a twin on real ports: words for people, a document for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kreassign.model import ConfigChange, ConfigResource
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE
from kreassign.operations.connect import connect
from tests.cli.commands.test_steering import Terminal, serving_terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with serving_terminal(tmp_path) as found:
        yield found


def test_issues_are_a_document_for_programs_and_an_exit_code(terminal: Terminal) -> None:
    healthy = terminal.ask_cluster("doctor", "--format", "json")
    assert (healthy.exit_code, json.loads(healthy.stdout)) == (0, {"ok": True, "lease": None, "issues": []})
    with connect(terminal.bootstrap) as client:
        rate = ConfigChange.set(FOLLOWER_THROTTLED_RATE, "5")
        client.incremental_alter_configs({ConfigResource.broker(3): [rate]}).raise_if_any()
    found = terminal.ask_cluster("doctor", "--format", "json")
    (issue,) = json.loads(found.stdout)["issues"]
    assert (found.exit_code, issue["kind"], issue["subject"]) == (1, "throttle", "broker 3")
    assert "nothing that is being reassigned needs it" in issue["seen"]
    assert "delete it with kafka-configs" in issue["remedy"]
