"""Files that a command cannot read, given to every parameter that takes one: an error that names the file, always."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.model import Broker
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.operations.snapshot_files import write_snapshot
from tests.cli.test_odd_values import EVERY_OPTION

NOWHERE = "--bootstrap-server localhost:1"
PLAN = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}'
SNAPSHOT = ClusterSnapshot(
    1_767_225_600_000,
    "c",
    (SnapshotBroker(Broker(1, "h", 9092), (SnapshotLogDir("/d", 1000, 500),)),),
    (SnapshotTopic("t", (SnapshotPartition((1,), (1,), 1, 1, ("/d",), (10,)),)),),
)
COMMAND_LINES = {
    "approve plan": "approve {odd}",
    "decommission --goals-file": f"decommission 1 --yes --goals-file {{odd}} {NOWHERE}",
    "import-metrics files": "import-metrics {odd} --data {folder} --cluster c --broker 1",
    "import-samples files": "import-samples {odd} --data {folder} --cluster c",
    "plan --goals-file": "plan rebalance --snapshot {snapshot} --goals-file {odd}",
    "plan --snapshot": "plan rebalance --snapshot {odd}",
    "plan file": "plan restore {odd} --snapshot {snapshot}",
    "plan files": "plan import {odd} --snapshot {snapshot}",
    "plan snapshots": "plan fleet {odd}",
    "rehearse --faults": "rehearse {plan} --snapshot {snapshot} --faults {odd}",
    "rehearse --snapshot": "rehearse {plan} --snapshot {odd}",
    "rehearse plan": "rehearse {odd} --snapshot {snapshot}",
    "report --plan": "report --plan {odd} --out {folder}.html",
    "run --expect-current": f"run {{plan}} --expect-current {{odd}} {NOWHERE}",
    "run plan": f"run {{odd}} {NOWHERE}",
    "twin from-snapshot --faults": "twin from-snapshot {snapshot} --faults {odd} --port 0",
    "twin from-snapshot file": "twin from-snapshot {odd} --port 0",
    "twin start --faults": "twin start --faults {odd} --port 0",
    "twin start --scenario": "twin start --scenario {odd} --port 0",
    "web --certificate": "web --certificate {odd} --key {plan} --listen 127.0.0.1:0",
    "web --key": "web --certificate {plan} --key {odd} --listen 127.0.0.1:0",
}
"""How to call the command, for every parameter that takes a file; `plan` stands for all its tasks.

`--command-config` is not among them: a file of properties is in ISO 8859-1, in which every byte is a character, and
lines that say nothing are passed over as Java does. Nor are files of ids, of which any line of text is one: they have a
test of their own, as files of secrets have.
"""

OF_IDS = ("not UTF-8", "zeros", "nothing", "blanks", "UTF-16", "half merged")
IDS = ("--groups", "--transactional-ids", "--share-groups")
SIGNED = f"{NOWHERE} --webhook https://h.example/ --webhook-secret-file {{odd}}"
SECRETS = {
    "cancel --webhook-secret-file": f"cancel last {SIGNED}",
    "resume --webhook-secret-file": f"resume last {SIGNED}",
    "rollback --webhook-secret-file": f"rollback last {SIGNED}",
    "run --webhook-secret-file": f"run {{plan}} {SIGNED}",
    "web --token-file": "web --listen 127.0.0.1:0 --token-file {odd}",
}

CONTENTS = {
    "not UTF-8": "größer\n".encode("latin-1"),
    "zeros": bytes(64),
    "a list": b"[]",
    "a number": b"7",
    "half an object": b'{"version": 1, ',
    "nested deeply": b"[" * 100_000,
    "half a surrogate": b'{"version": "\\ud800"}',
    "nothing": b"",
    "blanks": b" \n\n",
    "UTF-16": PLAN.encode("utf-16"),
    "two documents": f"{PLAN}\n{PLAN}".encode(),
    "a key twice": PLAN.replace('"version":1', '"version":1,"version":1').encode(),
    "a partition twice": PLAN.replace("[{", '[{"topic":"t","partition":0,"replicas":[2]},{').encode(),
    "half merged": f"{PLAN}\n<<<<<<< HEAD\n".encode(),
    "no partition": b'{"version":1,"partitions":[]}',
    "facts": b'{"version":1,"plan_id":"p","input_hash":"h","partitions":[]}',
}


def files_read() -> set[str]:
    """The parameters that take a file which is there."""
    found = set()
    for name, parameter in EVERY_OPTION.items():
        if isinstance(parameter.type, click.Path) and parameter.type.exists and parameter.type.file_okay:
            words = name.split()[1:]
            found.add(f"{'plan' if words[0] == 'plan' else ' '.join(words[:-1])} {words[-1]}")
    return {name for name in found if not name.endswith(("--command-config", *IDS))} - SECRETS.keys()


def test_every_parameter_that_takes_a_file_is_tried() -> None:
    assert files_read() == COMMAND_LINES.keys()


@pytest.mark.parametrize("option", IDS)
@pytest.mark.parametrize("content", [CONTENTS[name] for name in OF_IDS], ids=OF_IDS)
def test_a_file_of_ids_that_is_no_text_is_named(tmp_path: Path, option: str, content: bytes) -> None:
    (tmp_path / "ids.txt").write_bytes(content)
    write_snapshot(tmp_path / "snapshot.json", SNAPSHOT)
    words = ["plan", "leaders", "--snapshot", str(tmp_path / "snapshot.json"), option, str(tmp_path / "ids.txt")]
    result = CliRunner().invoke(kreassign, words)
    assert (result.exit_code, str(tmp_path / "ids.txt") in result.output) == (2, True)


@pytest.mark.parametrize("content", [CONTENTS["not UTF-8"], b"short\n"], ids=["not UTF-8", "short"])
@pytest.mark.parametrize("line", SECRETS.values(), ids=SECRETS)
def test_a_file_of_a_secret_that_is_no_text_or_can_be_guessed_is_named(
    tmp_path: Path, line: str, content: bytes
) -> None:
    odd, plan = tmp_path / "odd.txt", tmp_path / "plan.json"
    odd.write_bytes(content)
    plan.write_text(PLAN)
    words = [word.format(odd=odd, plan=plan) for word in line.split()]
    result = CliRunner().invoke(kreassign, words)
    assert (result.exit_code, str(odd) in result.output) == (2, True), result.output


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("line", COMMAND_LINES.values(), ids=COMMAND_LINES)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, line: str, content: bytes) -> None:
    odd, plan, snapshot = (tmp_path / f"{name}.json" for name in ("odd", "plan", "snapshot"))
    odd.write_bytes(content)
    plan.write_text(PLAN)
    write_snapshot(snapshot, SNAPSHOT)
    places = {"odd": odd, "plan": plan, "snapshot": snapshot, "folder": tmp_path / "data"}
    words = [word.format(**places) for word in line.split()]
    result = CliRunner().invoke(kreassign, words)
    assert isinstance(result.exception, SystemExit) or result.exception is None, result.exception
    assert str(odd) in result.output
