"""Files that commands read, with odd fields: plans, facts, snapshots, goals, faults, scenarios, profiles and more."""

from __future__ import annotations

import gzip
import json
import os
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

from kreassign.admin.properties import client_settings, read_properties
from kreassign.errors import InputError
from kreassign.kafka_tools import leader_election, reassign_partitions
from kreassign.model.documents import read_toml
from kreassign.model.plan import parse_plan
from kreassign.model.plan_facts import plan_id
from kreassign.model.snapshot import parse_snapshot
from kreassign.model.text import printable
from kreassign.operations.snapshot_files import write_snapshot
from kreassign.operations.twin import scenario_of
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving
from tests.campaigns.campaign import BrokenError
from tests.fuzz.commands import command, tool
from tests.fuzz.documents import JSON, PROPERTIES, TOML, Form, changed, damaged, tree
from tests.fuzz.target import Attempt, Target
from tests.model.test_odd_fields import FACTS, GOALS, PLAN, PROPOSALS, SCENARIO, SNAPSHOT
from tests.model.test_odd_fields import PROPERTIES as SETTINGS
from tests.twin.asking import twin

SMALL_SCENARIO = """
[[brokers]]
count = 3
[[topics]]
name = "t"
partitions = 4
replication_factor = 2
size = "1 MB"
"""
CLUSTER = {**SNAPSHOT, "brokers": [{**SNAPSHOT["brokers"][0], "id": broker} for broker in (1, 2, 3)]}
FITTING_GOALS = GOALS
for its, ours in (('"x.*"', '"t"'), ('"a.*"', '"t"'), ('[ "x" ]', "[]"), ("brokers = [ 1 ]", "brokers = [ 1, 2, 3 ]"),
                  ("[least-topic-leaders]\nt = 1\n", ""), ("disk = 5\n", 'disk = "1TB"\n')):  # fmt: skip
    FITTING_GOALS = FITTING_GOALS.replace(its, ours)
"""Of topics and brokers that the cluster has."""
IMPATIENT = {"client.id": "c", "request.timeout.ms": "2000", "default.api.timeout.ms": "2000",
             "security.protocol": "PLAINTEXT", "retry.backoff.ms": "10"}  # fmt: skip
MOVE = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [3, 2], "log_dirs": ["any", "any"]}]}


def _snapshot(folder: Path) -> Path:
    path = folder / "cluster.json"
    write_snapshot(path, parse_snapshot(json.dumps(CLUSTER), "cluster.json"))
    return path


def _clear(folder: Path, *keep: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and path not in keep:
            path.unlink()


def lines(
    name: str, form: Form, document: Any, *choices: str, odd_name: str = "", is_served: bool = False, **of_target: Any
) -> Target:
    """A kind of file, and command lines that read it, of which each example takes one; perhaps on a served twin."""
    also = of_target.pop("also", ())

    def opened(folder: Path, stack: ExitStack) -> Attempt:
        snapshot, plan = _snapshot(folder), folder / "plan.json"
        odd = folder / (odd_name or f"odd{'.toml' if form is TOML else '.json'}")
        plan.write_text(json.dumps(MOVE))
        shape = tree(document)
        os.environ["KREASSIGN_STATE_DIR"] = str(folder / "state")
        places = {"odd": odd, "plan": plan, "snapshot": snapshot, "folder": folder}
        if is_served:
            server = stack.enter_context(serving(twin({"t": [[1, 2], [2, 3]]})))
            places["cluster"] = f"--bootstrap-server {server.bootstrap_servers}"

        def attempt(chance: Random) -> bool:
            _clear(folder, snapshot, plan)
            odd.write_bytes(changed(shape, form, chance))
            return command(chance.choice(choices).format(**places).split(), odd, also=also)

        return attempt

    return Target(name, opened, **of_target)


def _placements(folder: Path, stack: ExitStack) -> Attempt:
    """A directory of files that together say where partitions are, as a repository keeps them."""
    snapshot, inside = _snapshot(folder), folder / "odd"
    inside.mkdir()
    shape = tree(PLAN)

    def attempt(chance: Random) -> bool:
        _clear(inside)
        for number in range(chance.randint(1, 3)):
            whole = json.dumps(PLAN).replace('"partition": 0', f'"partition": {number}').encode()
            (inside / f"{number}.json").write_bytes(changed(shape, JSON, chance) if number == 0 else whole)
        return command(["plan", "check", str(inside), "--snapshot", str(snapshot)], inside / "0.json", also=(1,))

    return attempt


def _compressed(folder: Path, stack: ExitStack) -> Attempt:
    """Snapshot files in gzip: cut off, damaged, in several members, with more behind them."""
    odd = folder / "odd.json.gz"
    shape = tree(CLUSTER)

    def attempt(chance: Random) -> bool:
        whole = changed(shape, JSON, chance) if chance.random() < 0.5 else json.dumps(CLUSTER).encode()
        content = gzip.compress(whole, mtime=0)
        content = damaged(content, chance) if chance.random() < 0.6 else content
        odd.write_bytes(content + chance.choice((b"", b"", bytes(100), content, b"more")))
        return command(["plan", "rebalance", "--snapshot", str(odd)], odd)

    return attempt


def _settings(folder: Path, stack: ExitStack) -> Attempt:
    """Files of properties: read, and made into the settings of a client; nobody is connected to."""
    odd = folder / "client.properties"

    def attempt(chance: Random) -> bool:
        names = chance.sample(sorted(SETTINGS), chance.randint(1, len(SETTINGS)))
        odd.write_bytes(changed(tree({name: SETTINGS[name] for name in names}), PROPERTIES, chance))
        try:
            client_settings(read_properties(odd), bootstrap_servers="h:1")
        except InputError as error:
            if not str(error).strip():
                raise BrokenError("refused without a word") from error
            return False
        return True

    return attempt


def _profiles(folder: Path, stack: ExitStack) -> Attempt:
    """The file of clusters by name."""
    odd, before = folder / "config.toml", os.environ.get("KREASSIGN_CONFIG")
    shape = tree({
        "default": "prod",
        "clusters": {
            "prod": {
                "bootstrap-server": "localhost:1", "state-dir": str(folder / "state"), "data": str(folder / "data"),
                "properties": {"request.timeout.ms": "100"}, "run": {"throttle": "5MB/s", "max-moves": 3},
                "plan": {"goal": ["disk"], "tolerance": 5},
            },
            "test": {"bootstrap-server": "localhost:1", "state-dir": str(folder / "state")},
        },
    })  # fmt: skip

    def attempt(chance: Random) -> bool:
        odd.write_bytes(changed(shape, TOML, chance))
        words = chance.choice(("status", "status --cluster prod", "status --cluster test", "show-load --data /nowhere"))
        return command(words.split(), odd)

    os.environ["KREASSIGN_CONFIG"] = str(odd)
    os.environ.pop("KREASSIGN_STATE_DIR", None)
    stack.callback(os.environ.__setitem__, "KREASSIGN_CONFIG", before or os.devnull)
    return attempt


def _scenarios(folder: Path, stack: ExitStack) -> Attempt:
    """Scenarios, small ones and one with all keys: what is accepted becomes a twin that lives for a minute."""
    odd = folder / "odd.toml"
    shapes = [tree(read_toml(text)) for text in (SCENARIO, SMALL_SCENARIO)]

    def attempt(chance: Random) -> bool:
        odd.write_bytes(changed(chance.choice(shapes), TOML, chance))
        try:
            found = scenario_of(odd)
            Twin(found.blueprint, TwinSettings()).advance(60_000)
        except InputError as error:
            if odd.name not in printable(str(error)):
                raise BrokenError(f"{error} does not name the file") from error
            return False
        return True

    return attempt


def _tools(folder: Path, stack: ExitStack) -> Attempt:
    """Files of the drop-in tools, on a twin: plans, topics to move, elections."""
    odd = folder / "odd.json"
    shapes = {
        "reassignment": tree(json.loads(json.dumps(PLAN).replace('"/d"', '"any"'))),
        "topics": tree({"version": 1, "topics": [{"topic": "t"}, {"topic": "u"}]}),
        "election": tree({"partitions": [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]}),
    }
    asked = twin({"t": [[1, 2], [2, 3]], "u": [[0, 1]]})
    server = stack.enter_context(serving(asked))
    place = ["--bootstrap-server", server.bootstrap_servers]

    def attempt(chance: Random) -> bool:
        kind = chance.choice(sorted(shapes))
        odd.write_bytes(changed(shapes[kind], JSON, chance))
        if kind == "election":
            words = ["--path-to-json-file", str(odd), "--election-type", "preferred"]
            accepted = tool(leader_election.main, [*place, *words])
        elif kind == "topics":
            words = ["--generate", "--topics-to-move-json-file", str(odd), "--broker-list", "0,1,2,3"]
            accepted = tool(reassign_partitions.main, [*place, *words])
        else:
            deed = chance.choice(("--execute", "--verify", "--cancel"))
            accepted = tool(reassign_partitions.main, [*place, deed, "--reassignment-json-file", str(odd)])
        if server.server.failures:
            raise BrokenError(f"the twin failed: {server.server.failures.pop()}")
        return accepted

    return attempt


FILES = (
    lines("plan files", JSON, MOVE, "plan check {odd} --snapshot {snapshot}", "rehearse {odd} --snapshot {snapshot}",
          "report --plan {odd} --out {folder}/page.html", "plan restore {odd} --snapshot {snapshot}", "approve {odd}",
          "plan import {odd} --snapshot {snapshot}", also=(1,)),
    lines("plan files, run on a cluster", JSON, MOVE, "run {odd} --dry-run {cluster} --measure-for 0",
          "run {plan} --expect-current {odd} --dry-run {cluster} --measure-for 0", "verify {odd} {cluster}",
          is_served=True, also=(1,), quick=6),
    lines("facts beside a plan", JSON, {**FACTS, "plan_id": plan_id(parse_plan(json.dumps(MOVE)))},
          "report --plan {plan} --out {folder}/page.html", "rehearse {plan} --snapshot {snapshot}", "approve {plan}",
          odd_name="plan.facts.json"),
    lines("proposals of Cruise Control", JSON, PROPOSALS, "plan import {odd} --snapshot {snapshot}",
          "plan restore {odd} --snapshot {snapshot}"),
    Target("placement in git", _placements),
    Target("plans, topics to move and elections of Kafka's tools", _tools),
    lines("snapshots in JSON", JSON, CLUSTER, "plan rebalance --snapshot {odd}", "plan fleet {odd}",
          "plan check {plan} --snapshot {odd}", "rehearse {plan} --snapshot {odd}", "plan what-if --snapshot {odd}",
          also=(1,)),
    Target("snapshots in gzip", _compressed, quick=6),
    lines("goals files: limits, broker sets, rules", TOML, read_toml(FITTING_GOALS),
          "plan rebalance --snapshot {snapshot} --goals-file {odd}"),
    lines("faults files", TOML, {"faults": read_toml(SCENARIO)["faults"]},
          "rehearse {plan} --snapshot {snapshot} --faults {odd}"),
    Target("scenario files", _scenarios),
    Target("profiles in config.toml", _profiles),
    Target("properties files", _settings),
    lines("properties files, connecting", PROPERTIES, IMPATIENT, "snapshot --out {folder}/made.json {cluster} "
          "--command-config {odd}", odd_name="client.properties", is_served=True, quick=6, share=0.5),
)  # fmt: skip
