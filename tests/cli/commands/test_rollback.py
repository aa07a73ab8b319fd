"""`kreassign rollback`, and guards that ask for it, against a twin on real ports."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from kreassign.admin import AdminClient
from kreassign.cli.commands.run import report_end, shown_undo
from kreassign.errors import ClusterError
from kreassign.executor.cluster.observations import replica_locations
from kreassign.executor.events import RunStarted
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.journal import find_journals, read_events
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.model import ConfigChange, ConfigResource
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.connect import connect
from kreassign.operations.plan_files import write_plan
from kreassign.operations.rollback import plan_rollback
from kreassign.operations.run import RunContext
from kreassign.operations.whole_runs import undone_if_demanded
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving
from kreassign.twin.version import KAFKA_4_3, KAFKA_4_4
from tests.cli.commands.test_steering import Terminal, serving_terminal
from tests.executor.odd_port import OddPort, not_reached
from tests.executor.twin_runs import TwinRig, tp
from tests.twin.asking import cluster

AT_ONCE = ("--yes", "--poll-interval", 0.1, "--format", "json")


def begun(terminal: Terminal, run_id: str) -> RunStarted:
    (journal,) = find_journals(terminal.state, run_id)
    first = read_events(journal)[0]
    assert isinstance(first, RunStarted)
    return first


def test_rollback_keeps_guards_and_pace_but_not_hours(terminal: Terminal) -> None:
    chosen = ("--guard", "stall=cancel", "--guard", "rate=rollback", "--max-moves", 1, "--deadline", "2099-01-31T06:00")
    done = json.loads(terminal.ask_cluster("run", terminal.plan, *chosen, *AT_ONCE).stdout)
    result = terminal.ask_cluster("rollback", done["run_id"], "--guard", "disk=warn", "--order", "name", *AT_ONCE)
    undone = json.loads(result.stdout)
    assert (result.exit_code, undone["run_id"], undone["rollback_run"]["state"]) == (0, done["run_id"], "done")
    assert (undone["copy_count"], undone["copied_bytes"], undone["left_alone"]) == (4, 40_000_000, [])
    by = begun(terminal, undone["rollback_run"]["run_id"])
    reactions = {setting.guard: setting.reaction for setting in by.guards}
    assert [reactions[guard] for guard in (GuardName.STALL, GuardName.DISK)] == [Reaction.CANCEL, Reaction.WARN]
    # What would roll back the rollback only ends it.
    assert reactions[GuardName.RATE] is Reaction.CANCEL
    assert (by.pace.caps.cluster.moves, by.pace.order, by.pace.hours.are_limited) == (1, "name", False)

    again = json.loads(terminal.ask_cluster("rollback", done["run_id"], *AT_ONCE).stdout)
    assert (again["plan"]["partitions"], again["rollback_run"]) == ([], None)

    # Without an id, the latest run is the rollback: to undo that would move everything forward again.
    for words in ((), ("last",)):
        refused = terminal.ask_cluster("rollback", *words, *AT_ONCE)
        assert refused.exit_code == 2
        assert f"the latest run, {by.run_id}, is itself the rollback of run {done['run_id']}: " in refused.stderr
    shown = terminal.ask_cluster("rollback", by.run_id, "--dry-run").stdout
    assert f"run {by.run_id} was itself the rollback of run {done['run_id']}: this moves everything forward" in shown


def test_a_guard_that_rolls_back_tells_it_in_the_one_document_of_the_run(tmp_path: Path) -> None:
    """Kafka 4.3 takes moves to cordoned brokers; from 4.4 on the run would not begin."""
    with serving_terminal(tmp_path, TwinSettings(version=KAFKA_4_3)) as terminal:
        with connect(terminal.bootstrap) as client:
            directories = client.describe_log_dirs([3]).raise_if_any()[3]
            cordon = ConfigChange.set("cordoned.log.dirs", ",".join(log_dir.path for log_dir in directories))
            client.incremental_alter_configs({ConfigResource.broker(3): [cordon]}).raise_if_any()
        result = terminal.ask_cluster("run", terminal.plan, "--guard", "cordoned=rollback", *AT_ONCE)
    found = json.loads(result.stdout)
    assert (result.exit_code, found["state"], found["wants_rollback"]) == (5, "cancelled", True)
    assert (found["rollback"]["run_id"], found["rollback"]["rollback_run"]) == (found["run_id"], None)


def test_a_demanded_rollback_that_cannot_begin_is_named(tmp_path: Path) -> None:
    rig, warnings = TwinRig(tmp_path, [[0, 1]]), list[str]()
    ended = replace(rig.run(rig.prepared({0: (2, 1)})), wants_rollback=True)
    odd = OddPort(rig.client)
    odd.answer_always("describe_cluster", not_reached)
    client, context = cast(AdminClient, odd), RunContext(tmp_path, warn=warnings.append)
    with pytest.raises(ClusterError):
        report_end(undone_if_demanded(ended, shown_undo(client, context, is_quiet=True)), context, is_quiet=True)
    (warning,) = warnings
    assert "rollback of run run-1, and it was not made: `kreassign rollback run-1` makes it" in warning


def test_copies_that_changed_their_log_directory_go_back_to_it(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [0, 1]])
    found = replica_locations(rig.client.describe_log_dirs([0], partitions=[tp(0)]).ok)
    (home,) = (place.current for place in found.values())
    assert home is not None
    away = "/data/0/d0" if home.endswith("d1") else "/data/0/d1"
    plan = Plan((PartitionAssignment(tp(0), (0, 1), (away, "any")), PartitionAssignment(tp(1), (2, 1))))
    done = rig.run(prepare(rig.client, plan, RunSettings("run-1", rig.transport.now_ms())))
    back = plan_rollback(rig.client, done)
    assert back.plan == Plan((PartitionAssignment(tp(0), (0, 1), (home, "any")), PartitionAssignment(tp(1), (0, 1))))
    assert (back.copy_count, back.skipped) == (2, ())


def cordon(bootstrap: str, broker: int) -> None:
    with connect(bootstrap) as client:
        change = ConfigChange.set("cordoned.log.dirs", "*")
        client.incremental_alter_configs({ConfigResource.broker(broker): [change]}).raise_if_any()


def test_a_run_in_steps_goes_back_in_steps_or_at_once(tmp_path: Path) -> None:
    with serving_terminal(tmp_path, TwinSettings(version=KAFKA_4_4)) as terminal:
        done = json.loads(terminal.ask_cluster("run", terminal.plan, "--stepwise", *AT_ONCE).stdout)
        cordon(terminal.bootstrap, 3)
        left = json.loads(terminal.ask_cluster("rollback", done["run_id"], *AT_ONCE).stdout)
        assert (left["plan"]["partitions"], left["rollback_run"], len(left["left_alone"])) == ([], None, 2)
        assert left["left_alone"][0].startswith("t-0: broker 3 stays in a list between two steps, but ")
        assert "(rollback: --no-stepwise), or take one of them out" in left["left_alone"][0]
        result = terminal.ask_cluster("rollback", done["run_id"], "--no-stepwise", *AT_ONCE)
        undone = json.loads(result.stdout)
        assert (result.exit_code, undone["left_alone"], undone["rollback_run"]["state"]) == (0, [], "done")


def test_a_rollback_to_brokers_that_are_cordoned_by_now_writes_nothing(tmp_path: Path) -> None:
    with serving_terminal(tmp_path, TwinSettings(version=KAFKA_4_4)) as terminal:
        done = json.loads(terminal.ask_cluster("run", terminal.plan, *AT_ONCE).stdout)
        for broker in (0, 1):
            cordon(terminal.bootstrap, broker)
        shown = terminal.ask_cluster("rollback", done["run_id"], "--dry-run")
        assert "left alone: t-0: broker 1 gets a copy, but all its working log directories are cordoned" in shown.stdout
        assert "Kafka 4.4, and 4.3 with KAFKA-20832, refuse every changed list that names it" in shown.stdout
        assert (shown.exit_code, "next:" in shown.output) == (5, False)
        left = json.loads(terminal.ask_cluster("rollback", done["run_id"], *AT_ONCE).stdout)
        assert (left["rollback_run"], len(left["left_alone"])) == (None, 2)


def test_a_rollback_in_steps_leaves_alone_only_what_kafka_refuses(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]], release="4.4")
    done = rig.run(rig.prepared({0: (2, 3), 1: (4, 3)}, throttle=None))
    cordoned = ConfigChange.set("cordoned.log.dirs", "*")
    rig.client.incremental_alter_configs({ConfigResource.broker(2): [cordoned]}).raise_if_any()
    back = plan_rollback(rig.client, done, is_stepwise=True)
    assert [entry.topic_partition for entry in back.plan.assignments] == [tp(1)]
    assert back.skipped[0].startswith("t-0: broker 2 stays in a list between two steps")
    assert plan_rollback(rig.client, done).skipped == ()


def test_a_rollback_can_be_in_steps_where_the_run_was_not(terminal: Terminal) -> None:
    done = json.loads(terminal.ask_cluster("run", terminal.plan, *AT_ONCE).stdout)
    result = terminal.ask_cluster("rollback", done["run_id"], "--stepwise", *AT_ONCE)
    undone = json.loads(result.stdout)
    assert (result.exit_code, undone["rollback_run"]["state"]) == (0, "done")
    assert begun(terminal, undone["rollback_run"]["run_id"]).pace.is_stepwise


def test_refused_producers_are_told_with_consent_and_before_a_rollback(tmp_path: Path) -> None:
    twin = Twin(cluster({"t": [[0], [1]]}), TwinSettings())
    write_plan(tmp_path / "plan.json", Plan((PartitionAssignment(tp(0), (2,)), PartitionAssignment(tp(1), (0,)))), None)
    with serving(twin) as thread:
        terminal = Terminal(thread.bootstrap_servers, tmp_path)
        with connect(terminal.bootstrap) as client:
            two = ConfigChange.set("min.insync.replicas", "2")
            client.incremental_alter_configs({ConfigResource.topic("t"): [two]}).raise_if_any()
        told = "topic t: producers with acks=all would be refused (NOT_ENOUGH_REPLICAS) at 2 of its partitions"
        consent = (terminal.plan, "--allow-producer-outage", "--measure-for", "0s")
        assert told in terminal.ask_cluster("run", *consent, "--dry-run").output
        done = json.loads(terminal.ask_cluster("run", *consent, *AT_ONCE).stdout)
        assert told in terminal.ask_cluster("rollback", done["run_id"], "--dry-run").stdout
        undone = json.loads(terminal.ask_cluster("rollback", done["run_id"], *AT_ONCE).stdout)
        assert [sentence.startswith(told) for sentence in undone["outages"]] == [True]
