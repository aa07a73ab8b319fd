"""`kreassign decommission` against a twin on real ports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import ServerThread, serving
from testbed.waiting import wait_until
from tests.approved import approve
from tests.twin.asking import cluster

SPEED = 20.0
"""Seconds of the twin in one second of ours."""


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with serving(Twin(cluster({"t": [[0, 3], [3, 2]]}), TwinSettings()), speed=SPEED) as found:
        yield found


def test_decommission_given_again_takes_the_broker_out(server: ServerThread, tmp_path: Path) -> None:
    def type_in(*words: str) -> Result:
        options = ["--bootstrap-server", server.bootstrap_servers, "--state-dir", str(tmp_path)]
        return CliRunner().invoke(kreassign, ["decommission", "3", *words, *options, "--poll-interval", "0.1"])

    priced = type_in("--dry-run").stdout
    approve(priced, "decommission")
    unasked = type_in("--unregister")
    assert (unasked.exit_code, "Add --yes to begin" in unasked.stderr) == (2, True)
    emptied = type_in("--unregister", "--yes", "--format", "json")
    found = json.loads(emptied.stdout)
    assert emptied.exit_code == 5
    assert found["steps"][:2] == ["cordon the log directories of broker 3", "drain broker 3: t-0, t-1"]
    assert found["next"].startswith("broker 3 is empty and still running: stop the process")
    assert [run["state"] for run in found["runs"]] == ["done"]

    blocked = type_in("--unregister", "--dry-run")
    assert blocked.stdout.startswith("blocked: broker 3 is empty and still running: stop the process")
    assert (blocked.exit_code, blocked.stderr) == (5, "")
    reach = f"--bootstrap-server {server.bootstrap_servers} --state-dir {tmp_path}"
    again = type_in("--dry-run")
    assert again.stderr == f"next: kreassign doctor {reach}\n"
    assert again.stdout.startswith("finished: broker 3 is empty: no replica list names it")
    called_off = type_in("--cancel")
    assert called_off.exit_code == 0
    run_id = found["runs"][0]["run_id"]
    approve(called_off.stdout, "decommission-cancelled", RUN=run_id, SERVER=server.bootstrap_servers, STATE=tmp_path)
    server.do(lambda twin: twin.stop(3))
    wait_until(lambda: server.do(lambda twin: twin.metadata.brokers[3].fenced), what="broker 3 to be gone")
    gone = type_in("--unregister", "--yes")
    assert gone.exit_code == 0, gone.output
    assert gone.stderr.startswith("next: kreassign doctor --bootstrap-server ")
    assert gone.stdout.startswith("unregister broker 3\n")
    assert "broker 3 is not registered in this cluster: no replica list names it" in gone.stdout
    assert 3 not in server.do(lambda twin: dict(twin.metadata.brokers))
    assert "broker 3 is not registered in this cluster (live: 0, 1, 2): no" in type_in("--dry-run").stdout


@pytest.mark.parametrize("word", ["--yes", "--dry-run"])
def test_a_broker_that_nothing_names_is_not_decommissioned(server: ServerThread, tmp_path: Path, word: str) -> None:
    where = ["--bootstrap-server", server.bootstrap_servers, "--state-dir", str(tmp_path)]
    refused = CliRunner().invoke(kreassign, ["decommission", "3,9", word, *where])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "broker 9 is not known: not registered, and named by no replica list and no run here" in refused.stderr
    assert not server.do(lambda twin: [one for one in twin.metadata.configs.values() if "cordoned.log.dirs" in one])


def test_what_cannot_be_meant_is_a_usage_error(tmp_path: Path) -> None:
    words = [
        "decommission",
        "3",
        "--cancel",
        "--dry-run",
        "--bootstrap-server",
        "localhost:1",
        "--state-dir",
        str(tmp_path),
    ]
    result = CliRunner().invoke(kreassign, words)
    assert (result.exit_code, "specify either --cancel or --dry-run" in result.stderr) == (2, True)
