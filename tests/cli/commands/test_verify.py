"""`kreassign verify` against a twin on real ports: what its exit code and its document tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.executor.events import RunStarted
from kreassign.executor.journal import Journal
from kreassign.model import ConfigChange, ConfigResource, TopicPartition, TopicPartitionReplica
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts import PlanFacts, Totals, plan_id
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE
from kreassign.operations.connect import connect
from kreassign.operations.plan_files import write_plan
from testbed.waiting import wait_until
from tests.approved import approve
from tests.cli.commands.test_steering import Terminal
from tests.executor.run_events import SUBMITTED

UNTOUCHED = "none of the 2 partitions is where the plan puts it: it was not run, or was cancelled or rolled back\n"
EMPTY = '{"version":1,"partitions":[]}'
RATE = ConfigResource.broker(3), FOLLOWER_THROTTLED_RATE


def set_rate(terminal: Terminal, value: str | None) -> None:
    resource, name = RATE
    change = ConfigChange.delete(name) if value is None else ConfigChange.set(name, value)
    with connect(terminal.bootstrap) as client:
        client.incremental_alter_configs({resource: [change]}).raise_if_any()


def verify(terminal: Terminal, *arguments: object) -> tuple[int, dict[str, Any]]:
    result = terminal.ask_cluster("verify", *arguments, "--format", "json")
    return result.exit_code, json.loads(result.stdout)


def kinds(found: dict[str, Any]) -> list[str]:
    return [finding["kind"] for finding in found["findings"]]


def test_verify_says_in_one_sentence_that_a_plan_is_for_another_cluster(terminal: Terminal) -> None:
    strange = Plan(tuple(PartitionAssignment(TopicPartition(f"x{number}", 0), (3, 2)) for number in range(200)))
    write_plan(terminal.plan, strange, None)
    result = terminal.ask_cluster("verify", terminal.plan)
    assert result.exit_code == 1
    assert result.stdout.startswith("the plan: none of its 200 topics is here (cluster id ")
    assert "x7" not in result.stdout
    write_plan(terminal.plan, strange, PlanFacts(plan_id(strange), "h", "t", Totals(0, 0, 0), cluster_id="other"))
    result = terminal.ask_cluster("verify", terminal.plan)
    assert (result.exit_code, "the plan is for cluster other, and this is cluster" in result.stderr) == (2, True)


def test_a_run_of_another_cluster_is_neither_verified_nor_rolled_back(terminal: Terminal) -> None:
    first = SUBMITTED[0]
    assert isinstance(first, RunStarted)
    with Journal.create(terminal.state, first):
        pass
    for command in (("verify", "run-1"), ("rollback", "run-1", "--yes")):
        result = terminal.ask_cluster(*command)
        assert result.exit_code == 2
        assert "run run-1 is of cluster cluster-1, and this is cluster " in result.stderr


def test_half_a_plan_is_refused_before_the_cluster_is_asked(tmp_path: Path) -> None:
    for content in (EMPTY, f"{EMPTY}{EMPTY}"):
        (tmp_path / "plan.json").write_text(content)
        words = ["verify", str(tmp_path / "plan.json"), "--bootstrap-server", "localhost:1"]
        result = CliRunner().invoke(kreassign, words)
        assert (result.exit_code, str(tmp_path / "plan.json") in result.stderr) == (2, True)


def test_a_plan_that_was_not_run_is_said_in_one_line(terminal: Terminal) -> None:
    proposed = terminal.plan.read_text()
    lists = json.loads(proposed)["partitions"]
    for one in lists:
        one.pop("log_dirs", None)
    current, plan = terminal.plan.with_name("current.json"), terminal.plan
    with connect(terminal.bootstrap) as client:
        (topic,) = client.describe_topics(["t"]).raise_if_any().values()
    now = {one.topic_partition.partition: list(one.replicas) for one in topic.partitions}
    present = json.dumps({"version": 1, "partitions": [{**one, "replicas": now[one["partition"]]} for one in lists]})
    plan.write_text(
        f"Current partition replica assignment\n{present}\nProposed partition reassignment configuration\n{proposed}"
    )
    result = terminal.ask_cluster("verify", plan)
    assert (result.exit_code, result.stdout) == (1, UNTOUCHED)
    assert f"next: kreassign run {plan} --dry-run" in result.stderr
    current.write_text(json.dumps({"version": 1, "partitions": [{**one, "replicas": [1, 3]} for one in lists]}))
    result = terminal.ask_cluster("run", plan, "--yes", "--expect-current", current)
    assert result.exit_code == 2
    said = f"{current} does not describe the cluster, where 2 replica lists are not as it says"
    assert said in result.stderr
    assert "replan" not in result.stderr
    wrong = {one["partition"]: [1, 3] if one is lists[0] else now[one["partition"]] for one in lists}
    current.write_text(
        json.dumps({"version": 1, "partitions": [{**one, "replicas": wrong[one["partition"]]} for one in lists]})
    )
    result = terminal.ask_cluster("run", plan, "--yes", "--expect-current", current)
    assert f"{current} does not describe the cluster, where 1 replica list is not as it says" in result.stderr


def test_verify_exits_by_whether_the_cluster_matches_plan_or_run(terminal: Terminal) -> None:
    code, found = verify(terminal, terminal.plan)
    assert (code, found["ok"], kinds(found)) == (1, False, ["replicas", "replicas"])

    set_rate(terminal, "777")
    options = ("--throttle", "100MB/s", "--measure-for", 0, "--poll-interval", 0.1, "--format", "json")
    refused = terminal.ask_cluster("run", "--yes", terminal.plan, *options)
    assert refused.exit_code == 2
    assert f"{FOLLOWER_THROTTLED_RATE} of broker 3 is '777'" in refused.stderr
    assert "--adopt restore" in refused.stderr
    ended = terminal.ask_cluster("run", "--yes", terminal.plan, *options, "--adopt", "restore")
    assert ended.exit_code == 0, ended.output
    run_id = json.loads(ended.stdout)["run_id"]
    again = terminal.ask_cluster("run", "--yes", terminal.plan, "--adopt", "restore")
    assert f"`kreassign verify {terminal.plan}` checks that" in again.stderr

    # A throttle from before the run stays: with the run that is as it shall be, with the plan it is not.
    code, found = verify(terminal, run_id)
    assert (code, found["ok"], found["partitions"], found["findings"]) == (0, True, 2, [])
    assert {(copy["partition"], copy["broker"]) for copy in found["copies"]} == {(0, 2), (0, 3), (1, 2), (1, 3)}
    assert {copy["size_bytes"] for copy in found["copies"]} == {10_000_000}
    code, found = verify(terminal, terminal.plan)
    assert (code, kinds(found)) == (1, ["throttle"])
    assert verify(terminal, terminal.plan, "--ignore-throttles")[0] == 0

    set_rate(terminal, None)
    assert verify(terminal, terminal.plan)[0] == 0
    code, found = verify(terminal, run_id)
    assert (code, kinds(found)) == (1, ["throttle"])
    told = terminal.ask_cluster("verify", run_id)
    assert told.exit_code == 1
    approve(told.output, "verify", RUN=run_id, SERVER=terminal.bootstrap, STATE=terminal.state)
    (remedy,) = found["remedies"]
    assert remedy in told.stdout


def test_a_rate_of_a_run_that_is_there_again_after_its_end_is_found(terminal: Terminal) -> None:
    """A late request of a process that was frozen, say: the run restored it and has nothing more to restore."""
    options = ("--throttle", "100MB/s", "--measure-for", 0, "--poll-interval", 0.1, "--format", "json")
    ended = terminal.ask_cluster("run", "--yes", terminal.plan, *options)
    assert (ended.exit_code, json.loads(ended.stdout)["throttle_residue"]) == (0, []), ended.output
    run_id = json.loads(ended.stdout)["run_id"]
    assert verify(terminal, run_id)[0] == 0
    set_rate(terminal, "100000000")
    code, found = verify(terminal, run_id)
    assert (code, [(one["kind"], one["subject"]) for one in found["findings"]]) == (1, [("throttle", "broker 3")])
    assert f"--delete-config {FOLLOWER_THROTTLED_RATE}" in found["remedies"][0]


def test_a_copy_that_has_left_the_directory_of_its_run_is_told(terminal: Terminal) -> None:
    assignment = PartitionAssignment(TopicPartition("t", 0), (3, 1), ("/data/3/d1", "any"))
    write_plan(terminal.plan, Plan((assignment,)), None)
    ended = terminal.ask_cluster(
        "run", "--yes", terminal.plan, "--measure-for", 0, "--poll-interval", 0.1, "--format", "json"
    )
    assert ended.exit_code == 0, ended.output
    run_id = json.loads(ended.stdout)["run_id"]
    assert verify(terminal, run_id)[0] == 0

    copy = TopicPartitionReplica(3, "t", 0)
    with connect(terminal.bootstrap) as client:
        client.alter_replica_log_dirs({copy: "/data/3/d0"}).raise_if_any()
    wait_until(lambda: verify(terminal, run_id)[0] == 1, what="the copy to leave its directory")
    (finding,) = verify(terminal, run_id)[1]["findings"]
    assert (finding["kind"], "/data/3/d1" in finding["sentence"]) == ("log_dir", True)


def test_what_cannot_be_asked_is_an_error_of_its_own(terminal: Terminal) -> None:
    impatient = terminal.plan.with_name("client.properties")
    impatient.write_text("default.api.timeout.ms=400\nrequest.timeout.ms=200\n")
    nowhere = terminal.type("verify", terminal.plan, "--bootstrap-server", "localhost:1", "--command-config", impatient)
    assert (nowhere.exit_code, "no node of the cluster can be reached" in nowhere.stderr) == (4, True)
    assert terminal.ask_cluster("verify", "nothing.json").stderr == (
        "error: there is no file nothing.json; a plan is a file of JSON, a run is named by its id\n"
    )
    unknown = terminal.ask_cluster("verify", "run-9")
    assert (unknown.exit_code, "there is no run run-9" in unknown.stderr) == (2, True)


def test_what_comes_after_it_is_named_with_its_arguments(terminal: Terminal) -> None:
    where, state = f"--bootstrap-server {terminal.bootstrap}", f"--state-dir {terminal.state}"
    assert terminal.ask_cluster("verify", terminal.plan).stderr == f"next: kreassign doctor {where}\n"
    quick = ("--measure-for", 0, "--poll-interval", 0.1)
    ended = terminal.ask_cluster("run", "--yes", terminal.plan, *quick)
    (run_id,) = (run["run_id"] for run in terminal.runs)
    assert ended.stdout.endswith(f"next: kreassign verify {run_id} {where} {state}\n")
    for subject, report in ((terminal.plan, "report"), (run_id, f"report --run {run_id}")):
        assert terminal.ask_cluster("verify", subject).stderr == f"next: kreassign {report} {state}\n"
    reported = terminal.type("report", "--out", terminal.state / "report.html")
    assert reported.stderr == "next: kreassign doctor --bootstrap-server HOST:PORT\n"
