"""`kreassign maintenance` against a twin on real ports."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving
from tests.approved import approve
from tests.twin.asking import cluster


def test_a_broker_enters_maintenance_and_leaves_it(tmp_path: Path) -> None:
    with serving(Twin(cluster({"t": [[3, 0], [1, 2]], "alone": [[2]]}), TwinSettings())) as server:

        def type_in(verb: str, broker: int, *words: str) -> Result:
            options = ["--bootstrap-server", server.bootstrap_servers, "--state-dir", str(tmp_path)]
            return CliRunner().invoke(kreassign, ["maintenance", verb, str(broker), *words, *options])

        approve(type_in("enter", 3, "--dry-run").stdout, "maintenance-enter")
        unasked = type_in("enter", 3)
        assert (unasked.exit_code, "Add --yes to begin" in unasked.stderr) == (2, True)
        entered = type_in("enter", 3, "--yes", "--poll-interval", "0.1")
        assert entered.exit_code == 0, entered.output
        assert entered.stdout.splitlines()[-1].startswith(
            "broker 3 may be stopped: it leads nothing, 1 partition keeps"
        )
        assert "warning: the maintenance is recorded on this machine only" in entered.stderr
        reach = f"--bootstrap-server {server.bootstrap_servers} --state-dir {tmp_path}"
        assert entered.stderr.endswith(f"next: kreassign maintenance exit 3 {reach}\n")

        refused = type_in("enter", 2, "--yes", "--format", "json")
        assert refused.exit_code == 5
        assert json.loads(refused.stdout)["next"].startswith(
            "without broker 2 (with broker 3 in maintenance, too), 1 partition would lose min.insync.replicas: alone-0 "
        )

        for words in (("--dry-run",), ("--yes",)):
            blocked = type_in("enter", 2, *words)
            assert blocked.exit_code == 5
            assert "without broker 2 (with broker 3 in maintenance, too), 1 partition would lose" in blocked.stdout
            assert "next: " not in blocked.output, "the command alone would be blocked again"

        approve(type_in("exit", 3, "--dry-run", "--format", "json").stdout, "maintenance-exit.json")
        exited = type_in("exit", 3, "--yes", "--poll-interval", "0.1", "--format", "json")
        assert "on this machine only" not in exited.stderr, "nothing is left to exit from here"
        left = json.loads(exited.stdout)
        assert (left["is_finished"], left["next"]) == (True, "broker 3 is in service")
        again = json.loads(type_in("exit", 3, "--dry-run", "--format", "json").stdout)
        assert again == {"next": left["next"], "due": []}
        assert type_in("exit", 3, "--dry-run").stdout == "finished: broker 3 is in service\n"
