"""`kreassign doctor` against a twin on real ports: words for people, a document for programs."""

from __future__ import annotations

import json
import re
from pathlib import Path

from kreassign.model import ConfigChange, ConfigResource
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE
from kreassign.operations.connect import connect
from kreassign.twin.access import ALL_TOPICS, ANONYMOUS, Allow, Operation, Permissions
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving
from tests.approved import approve
from tests.cli.commands.test_steering import Terminal
from tests.twin.asking import cluster

TIME = re.compile(r"(?<=removed-throttles-)[\dT.]+Z")
AT_ONCE = ("--measure-for", "0")


def test_issues_are_a_document_for_programs_and_an_exit_code(terminal: Terminal) -> None:
    healthy = terminal.ask_cluster("doctor", *AT_ONCE, "--format", "json")
    unknown = "Apache Kafka (no sign of another)"
    nothing = {"ok": True, "lease": None, "issues": [], "notes": []}
    nothing["distribution"] = {"name": None, "sign": None, "text": unknown}
    assert (healthy.exit_code, json.loads(healthy.stdout)) == (0, nothing)
    approve(terminal.ask_cluster("doctor", *AT_ONCE).output, "doctor-of-a-healthy-cluster", SERVER=terminal.bootstrap)
    with connect(terminal.bootstrap) as client:
        rate = ConfigChange.set(FOLLOWER_THROTTLED_RATE, "5")
        client.incremental_alter_configs({ConfigResource.broker(3): [rate]}).raise_if_any()
    found = terminal.ask_cluster("doctor", *AT_ONCE, "--format", "json")
    (issue,) = json.loads(found.stdout)["issues"]
    assert (found.exit_code, issue["kind"], issue["subject"]) == (1, "throttle", "broker 3")
    shown = terminal.ask_cluster("doctor", *AT_ONCE)
    approve(shown.output, "doctor-with-a-throttle", SERVER=terminal.bootstrap, STATE=terminal.state)
    (command,) = issue["commands"]
    assert command in shown.stdout
    removed = terminal.ask_cluster("throttle", "--remove-left", "--yes")
    approve(removed.output, "throttle-remove-left", SERVER=terminal.bootstrap, STATE=terminal.state, TIME=TIME)
    assert (removed.exit_code, terminal.ask_cluster("doctor", *AT_ONCE).exit_code) == (0, 0)


def test_doctor_names_the_commands_that_grant_missing_permissions(tmp_path: Path) -> None:
    looks = (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)
    rules = frozenset(Allow(ANONYMOUS, one, topic) for one in looks for topic in (None, ALL_TOPICS))
    settings = TwinSettings(permissions=Permissions(rules))
    with serving(Twin(cluster({"t": [[0, 1]]}), settings), speed=1.0) as thread:
        told = Terminal(thread.bootstrap_servers, tmp_path).ask_cluster("doctor", *AT_ONCE)
    assert told.exit_code == 1, told.output
    approve(told.output, "doctor-without-permissions", SERVER=thread.bootstrap_servers, DIR=tmp_path)
