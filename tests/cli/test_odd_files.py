"""Files that a command cannot read, given to every parameter that takes one: an error that names the file, always."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import kreassign as kreassign_api
from kreassign.cli.main import kreassign
from kreassign.errors import MalformedPlan
from kreassign.model import Broker, snapshot
from kreassign.operations.snapshot_files import write_snapshot
from kreassign.web.operations import Served
from kreassign.web.settings import WebSettings
from tests.cli.test_help import EVERY_OPTION

NOWHERE = "--bootstrap-server localhost:1"
PLAN = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}'
GENERATED = f"Current partition replica assignment\n{PLAN}\n\nProposed partition reassignment configuration\n{PLAN}\n"
SNAPSHOT = snapshot.ClusterSnapshot(
    1_767_225_600_000,
    "c",
    (snapshot.SnapshotBroker(Broker(1, "h", 9092), (snapshot.SnapshotLogDir("/d", 1000, 500),)),),
    (snapshot.SnapshotTopic("t", (snapshot.SnapshotPartition((1,), (1,), 1, 1, ("/d",), (10,)),)),),
)
PROPOSAL = {"topicPartition": {"topic": "t", "partition": 0}, "oldReplicas": [1], "newReplicas": [1]}
COMMAND_LINES = {
    "approve plan": "approve {odd}",
    "autopilot check policy": "autopilot check {odd}",
    "autopilot check --against": "autopilot check {odd} --against {odd}",
    "autopilot replay policy": "autopilot replay {odd} --state-dir state",
    "autopilot watch-all policy": "autopilot watch-all {odd}",
    "autopilot watch policy": f"autopilot watch {{odd}} --once {NOWHERE}",
    "autopilot why policy": f"autopilot why {{odd}} {NOWHERE}",
    "decommission --goals-file": f"decommission 1 --yes --goals-file {{odd}} {NOWHERE}",
    "import-metrics files": "import-metrics {odd} --data {folder} --cluster c --broker 1",
    "import-samples files": "import-samples {odd} --data {folder} --cluster c",
    "plan --goals-file": "plan rebalance --snapshot {snapshot} --goals-file {odd}",
    "plan check files": "plan check {odd} --snapshot {snapshot}",
    "plan --snapshot": "plan rebalance --snapshot {odd}",
    "plan file": "plan restore {odd} --snapshot {snapshot}",
    "plan files": "plan import {odd} --snapshot {snapshot}",
    "plan snapshots": "plan fleet {odd}",
    "rehearse --faults": "rehearse {plan} --snapshot {snapshot} --faults {odd}",
    "rehearse --snapshot": "rehearse {plan} --snapshot {odd}",
    "rehearse plan": "rehearse {odd} --snapshot {snapshot}",
    "report --plan": "report --plan {odd} --out {folder}.html",
    "run --allowed-signers": f"run {{plan}} --require-approval --allowed-signers {{odd}} --yes {NOWHERE}",
    "run --expect-current": f"run {{plan}} --expect-current {{odd}} {NOWHERE}",
    "run plan": f"run {{odd}} {NOWHERE}",
    "twin from-snapshot --faults": "twin from-snapshot {snapshot} --faults {odd} --port 0",
    "twin from-snapshot file": "twin from-snapshot {odd} --port 0",
    "twin start --faults": "twin start --faults {odd} --port 0",
    "twin start --scenario": "twin start --scenario {odd} --port 0",
    "verify plan_or_run": f"verify {{odd}} {NOWHERE}",
    "web --certificate": "web --certificate {odd} --key {plan} --listen 127.0.0.1:0",
    "web --key": "web --certificate {certificate} --key {odd} --listen 127.0.0.1:0",
}
"""How to call the command, for every parameter that takes a file; `plan` stands for all its tasks.

`--command-config` is not among them: a file of properties is in ISO 8859-1, in which every byte is a character, and
lines that say nothing are passed over as Java does. Nor are files of ids, of which any line of text is one: they have a
test of their own, as files of secrets have. Keys are read by ssh-keygen alone, where a request is signed.
"""

OF_IDS = ("not UTF-8", "zeros", "nothing", "blanks", "UTF-16", "half merged")
IDS = ("--groups", "--transactional-ids", "--share-groups")
SIGNED = f"{NOWHERE} --webhook https://h.example/ --webhook-secret-file {{odd}}"
ASKING = f"{NOWHERE} --guard-query max(p)<1 --guard-url https://h.example"
READ_TOO = {"plan check files", "verify plan_or_run"}
"""Arguments that also take what is no file yet, or no file: a file to write, the id of a run."""

SECRETS = {
    "cancel --webhook-secret-file": f"cancel last {SIGNED}",
    "resume --webhook-secret-file": f"resume last {SIGNED}",
    "rollback --webhook-secret-file": f"rollback last {SIGNED}",
    "run --webhook-secret-file": f"run {{plan}} {SIGNED}",
    **{
        f"{command.split()[0]} {option}": f"{command} {ASKING} {option} {{odd}}"
        for command in ("run {plan}", "resume last", "rollback last", "decommission 3")
        for option in ("--guard-login", "--guard-ca")
    },
    "web --users": "web --listen 127.0.0.1:0 --users {odd}",
    "web --token-file": "web --listen 127.0.0.1:0 --token-file {odd}",
}

CONTENTS = {
    "not UTF-8": "größer\n".encode("latin-1"),
    "zeros": bytes(64),
    "a list": b"[]",
    "a number": b"7",
    "half an object": b'{"version": 1, ',
    "nested deeply": b"[" * 100_000,
    "TOML nested deeply": b"a = " + b"[" * 100_000,
    "TOML with more digits than any number": b"a = " + b"9" * 5_000,
    "half a surrogate": b'{"version": "\\ud800"}',
    "nothing": b"",
    "blanks": b" \n\n",
    "UTF-16": PLAN.encode("utf-16"),
    "two documents": f"{PLAN}\n{PLAN}".encode(),
    "a key twice": PLAN.replace('"version":1', '"version":1,"version":1').encode(),
    "a partition twice": PLAN.replace("[{", '[{"topic":"t","partition":0,"replicas":[2]},{').encode(),
    "half merged": f"{PLAN}\n<<<<<<< HEAD\n".encode(),
    "no partition": b'{"version":1,"partitions":[]}',
    "no proposal": b'{"proposals":[],"goalSummary":[]}',
    "half merged above": f"<<<<<<< HEAD\n{GENERATED}".encode(),
    "a plan above an output": f"{PLAN}\n{GENERATED}".encode(),
    "a form feed": f"{PLAN}\f\n".encode(),
    "facts": b'{"version":1,"plan_id":"p","input_hash":"h","partitions":[]}',
    "UTF-16 without a mark": PLAN.encode("utf-16-be"),
    "NaN": PLAN.replace("[1]", "[NaN]").encode(),
    "an infinity": PLAN.replace("[1]", "[-Infinity]").encode(),
    "a number that overflows": PLAN.replace("[1]", "[1e999]").encode(),
    "a broker beyond its field": PLAN.replace("[1]", "[2147483648]").encode(),
    "more digits than any number": PLAN.replace("[1]", f"[{'9' * 5_000}]").encode(),
    "a plan of a newer format": PLAN.replace('"version":1', '"version":2').encode(),
    "a snapshot of a newer format": b'{"format":"kreassign-snapshot-99","cluster_id":"c","brokers":[],"topics":[]}',
    "a plan that names no text as its cluster": PLAN.replace('"version":1', '"version":1,"cluster_id":7').encode(),
    "an approval": b'{"plan_id":"p","approved_by":"ann","approved_ms":1,"note":""}',
    "topics": b'{"version":1,"topics":[{"topic":"t"}]}',
    "the current assignment": f"Current partition replica assignment\n{PLAN}\n".encode(),
    "half an answer of Cruise Control": b'{"proposals":[{"topicPartition":{"topic":"t"}}]}',
    "proposals that name a partition twice": json.dumps({"proposals": [PROPOSAL, PROPOSAL]}).encode(),
    "a journal": b"SQLite format 3\0",
    "columns": b"PAR1PAR1",
    "compressed": b"\x1f\x8b\x08\0",
    "an archive": b"PK\x03\x04",
    "CSV": b'topic,partition,replicas\nt,0,"1,2"\n',
    "YAML": b"# moves\nversion: 1\npartitions:\n  - topic: t\n",
    "properties": b"bootstrap.servers=localhost:9092\n",
    "a page": b"<!doctype html>\n<p>no</p>\n",
    "a note": b"Move orders away, please.\n",
}
BY_ITS_KIND = {
    "a byte order mark": b"\xef\xbb\xbf" + PLAN.encode(),
    "a plan": PLAN.encode(),
    "proposals": json.dumps({"proposals": [PROPOSAL]}).encode(),
    "an output of --generate": GENERATED.encode(),
    "a snapshot": snapshot.format_snapshot(SNAPSHOT).encode(),
}
"""Files that some commands take, and others name: what they are does not end any in a traceback."""


def files_read() -> set[str]:
    """The parameters that take a file which is there."""
    found = set()
    for name, parameter in EVERY_OPTION.items():
        if isinstance(parameter.type, click.Path) and parameter.type.exists and parameter.type.file_okay:
            words = name.split()
            found.add(f"{'plan' if words[0] == 'plan' else ' '.join(words[:-1])} {words[-1]}")
    return {name for name in found if not name.endswith(("--command-config", "approve --key", *IDS))} - SECRETS.keys()


def test_every_parameter_that_takes_a_file_is_tried() -> None:
    assert files_read() | READ_TOO == COMMAND_LINES.keys()


@pytest.mark.parametrize("option", IDS)
@pytest.mark.parametrize("content", [CONTENTS[name] for name in OF_IDS], ids=OF_IDS)
def test_a_file_of_ids_that_is_no_text_is_named(tmp_path: Path, option: str, content: bytes) -> None:
    (tmp_path / "ids.txt").write_bytes(content)
    write_snapshot(tmp_path / "snapshot.json", SNAPSHOT)
    words = ["plan", "leaders", "--snapshot", str(tmp_path / "snapshot.json"), option, str(tmp_path / "ids.txt")]
    result = CliRunner().invoke(kreassign, words)
    assert (result.exit_code, str(tmp_path / "ids.txt") in result.output) == (2, True)


@pytest.mark.parametrize("content", [CONTENTS["not UTF-8"], b"hunter2\n"], ids=["not UTF-8", "short"])
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
    assert content.decode("latin-1").strip() not in result.output


def invoke(tmp_path: Path, line: str) -> Result:
    places = {name: tmp_path / f"{name}.json" for name in ("odd", "plan", "snapshot", "certificate")}
    places["plan"].write_text(PLAN)
    places["certificate"].write_text("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
    write_snapshot(places["snapshot"], SNAPSHOT)
    places["folder"] = tmp_path / "data"
    result = CliRunner().invoke(kreassign, [word.format(**places) for word in line.split()])
    assert isinstance(result.exception, SystemExit) or result.exception is None, result.exception
    return result


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("line", COMMAND_LINES.values(), ids=COMMAND_LINES)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, line: str, content: bytes) -> None:
    (tmp_path / "odd.json").write_bytes(content)
    assert str(tmp_path / "odd.json") in invoke(tmp_path, line).output


UNREADABLE = "/proc/self/mem"
"""A file whose reading fails, as on a disk or a share that is broken."""


@pytest.mark.parametrize(
    "name", ["run plan", "plan --goals-file", "plan --snapshot", "autopilot check policy", "twin start --faults"]
)
def test_a_file_whose_reading_fails_is_named(tmp_path: Path, name: str) -> None:
    result = invoke(tmp_path, COMMAND_LINES[name].replace("{odd}", UNREADABLE))
    assert (result.exit_code, f"{UNREADABLE} cannot be read: " in result.output) == (2, True), result.output


SECRET = "7e4567hunter2horse"
KEPT = {
    "a token": f"{SECRET}\n",
    "a token of digits first": f"41{SECRET}\n",
    "a file of passwords": f"db:5432:*:app:{SECRET}\n",
    "a file of passwords by address": f"10.0.0.1:5432:*:app:{SECRET}\n",
    "a login": f"machine db login app password {SECRET}\n",
    "a key": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n",
    "properties": f"ssl.key.password={SECRET}\n",
    "credentials": f"[default]\naws_secret_access_key = {SECRET}\n",
    "a text in quotes": f'"{SECRET}" and more\n',
    "a conflict": f"<<<<<<< {SECRET}\n",
    "a plan above it": f"{PLAN}\n{SECRET}\n",
}
"""Files that are named by mistake, and served by mistake beside plans."""


@pytest.mark.parametrize("content", KEPT.values(), ids=KEPT)
@pytest.mark.parametrize("line", COMMAND_LINES.values(), ids=COMMAND_LINES)
def test_no_message_about_a_file_quotes_its_content(tmp_path: Path, line: str, content: str) -> None:
    (tmp_path / "odd.json").write_text(content)
    output = "".join(invoke(tmp_path, line).output.split())
    assert not [at for at in range(len(SECRET) - 5) if SECRET[at : at + 6] in output], output


@pytest.mark.parametrize("content", KEPT.values(), ids=KEPT)
def test_no_plan_that_is_served_quotes_a_file_that_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "odd.json").write_text(content)
    (found,) = Served(WebSettings(tmp_path, plans=tmp_path)).plans().plans
    assert found.problem is not None
    assert not [at for at in range(len(SECRET) - 5) if SECRET[at : at + 6] in found.problem], found.problem


OF_PLANS = (
    "approve plan",
    "plan check files",
    "plan file",
    "plan files",
    "rehearse plan",
    "report --plan",
    "run --expect-current",
    "run plan",
    "verify plan_or_run",
)


@pytest.mark.parametrize("kind", [kind for kind in CONTENTS if kind != "a journal"])  # which verify takes
def test_what_is_no_plan_is_refused_in_the_same_words_everywhere(tmp_path: Path, kind: str) -> None:
    """By every command that reads plans, for programs, and on the page."""
    odd = tmp_path / "odd.json"
    odd.write_bytes(CONTENTS[kind])
    readers: tuple[Callable[[Path], object], ...] = (
        kreassign_api.plan_page,
        lambda path: kreassign_api.read_assignments([path]),
    )
    for read in readers:
        with pytest.raises(MalformedPlan) as refused:
            read(odd)
        words = str(refused.value)
        assert words.startswith(f"{odd}: ")
    for name in OF_PLANS:
        result = invoke(tmp_path, COMMAND_LINES[name])
        said = " ".join(result.output.split())
        assert (result.exit_code, " ".join(words.split()) in said) == (2, True), (name, words, said)
    served = Served(WebSettings(tmp_path, plans=tmp_path))
    assert {one.name: one.problem for one in served.plans().plans}["odd.json"] == words


KINDS = {
    "CSV": "it looks like CSV",
    "YAML": "it looks like YAML",
    "properties": "it looks like TOML or a file of properties",
    "a page": "it looks like HTML or XML",
    "a note": "it is a text of another kind",
}
MAKERS = {**dict.fromkeys(OF_PLANS, "kreassign plan --out FILE"), "plan --snapshot": "kreassign snapshot --out FILE"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["run plan", "verify plan_or_run", "plan files", "plan --snapshot"])
def test_a_file_that_is_no_json_is_named_with_the_next_command(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / "odd.json").write_bytes(CONTENTS[kind])
    said = " ".join(invoke(tmp_path, COMMAND_LINES[name]).output.split())
    assert f"this is not JSON: {KINDS[kind]}; " in said
    assert f"`{MAKERS[name]}`" in said


@pytest.mark.parametrize(("kind", "looks"), [("YAML", "YAML"), ("CSV", "CSV"), ("a plan", "JSON")])
@pytest.mark.parametrize("name", ["autopilot check policy", "plan --goals-file", "twin start --faults"])
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, name: str, kind: str, looks: str) -> None:
    (tmp_path / "odd.json").write_bytes({**CONTENTS, **BY_ITS_KIND}[kind])
    assert f"; it looks like {looks}" in " ".join(invoke(tmp_path, COMMAND_LINES[name]).output.split())


TAKES = {
    "a snapshot": ("plan --snapshot", "plan snapshots", "rehearse --snapshot", "twin from-snapshot file"),
    **dict.fromkeys(("a byte order mark", "a plan", "proposals", "an output of --generate"), OF_PLANS),
}


@pytest.mark.parametrize("kind", BY_ITS_KIND)
@pytest.mark.parametrize("name", [name for name in COMMAND_LINES if not name.startswith("twin from-snapshot file")])
def test_a_file_of_another_kind_is_named(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / "odd.json").write_bytes(BY_ITS_KIND[kind])
    result = invoke(tmp_path, COMMAND_LINES[name])
    assert name in TAKES[kind] or (result.exit_code > 0 and str(tmp_path / "odd.json") in result.output), result.output


@pytest.mark.parametrize("line", [*COMMAND_LINES.values(), *SECRETS.values()], ids=[*COMMAND_LINES, *SECRETS])
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere")],
                         ids=["a folder", "a pipe without a writer", "a broken link"])  # fmt: skip
def test_what_is_no_file_is_named(tmp_path: Path, line: str, make: Callable[[Path], None]) -> None:
    make(tmp_path / "odd.json")
    result = invoke(tmp_path, line)
    named = "odd.json" in result.output or "is neither a file nor one of the scenarios" in result.output
    assert (result.exit_code, named) == (2, True), result.output
