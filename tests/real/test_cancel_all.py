"""`kafka-reassign-partitions --cancel --all`, which Kafka's own tool does not have."""

import json

import pytest

from kreassign.kafka_tools.reassign_partitions import main
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.cluster import ConfigSource
from kreassign.model.plan import parse_plan
from kreassign.model.throttle import BROKER_THROTTLES, LOG_DIR_RATE, TOPIC_THROTTLES
from testbed.waiting import wait_until
from tests.real.tool_comparison import OURS, Tool

PLAN = "--reassignment-json-file"


@pytest.fixture
def tool(kafka, tmp_path):
    started = Tool(kafka, OURS, "cancel-all", tmp_path)
    started.topic("foo", [0, 1], [1, 0], megabytes=8)
    started.topic("bar", [2], megabytes=8)
    yield started
    started.clean_up()


@pytest.fixture
def run(kafka, capsys):
    def run_with(*words, via="--bootstrap-server"):
        addresses = kafka.bootstrap_controllers if via == "--bootstrap-controller" else kafka.bootstrap_servers
        code = main([via, addresses, *words])
        return code, capsys.readouterr().out

    return run_with


def hold_everything(tool, run):
    """Start a reassignment of both partitions of foo and a move of bar-0 to another directory, none of which ends."""
    there = tool.other_dir("bar-0", 2)
    plan = tool.plan({"foo-0": [2, 1], "foo-1": [1, 3, 0], "bar-0": [2]}, {"bar-0": [there]})
    code, _out = run("--execute", PLAN, plan, "--throttle", "1", "--replica-alter-log-dirs-throttle", "1")
    assert code == 0
    # Each broker answers for itself, and hears of its rates one after the other.
    rates = {(f"broker {broker}", name) for broker in range(4) for name in BROKER_THROTTLES[:2]}
    wait_until(lambda: throttles(tool) >= rates | {("broker 2", LOG_DIR_RATE)}, what="throttles at every broker")
    return there


def throttles(tool):
    admin = tool.admin
    resources = [
        *map(ConfigResource.broker, range(4)),
        *(ConfigResource.topic(tool.real_name(name)) for name in ("foo", "bar")),
    ]
    described = admin.describe_configs(resources, names=(*BROKER_THROTTLES, *TOPIC_THROTTLES)).raise_if_any()
    return {
        (str(resource), name)
        for resource, entries in described.items()
        for name, entry in entries.items()
        if entry.source < ConfigSource.STATIC_BROKER
    }


def test_everything_stops_and_the_file_starts_it_again(tool, run, tmp_path):
    there = hold_everything(tool, run)
    file = tmp_path / "again.json"
    code, out = run("--cancel", "--all", "--output", str(file))
    foo, bar = tool.real_name("foo"), tool.real_name("bar")
    assert code == 0
    plan = parse_plan(file.read_text())
    assert plan.replicas == {
        TopicPartition(bar, 0): (2,),
        TopicPartition(foo, 0): (2, 1),
        TopicPartition(foo, 1): (1, 3, 0),
    }
    assert list(plan.log_dirs.values()) == [there]
    lines = out.split("\n")
    assert lines[0] == "Partition reassignments to be cancelled"
    assert json.loads(lines[2]) == json.loads(file.read_text())
    assert f"Successfully cancelled partition reassignments for: {foo}-0,{foo}-1" in lines
    assert (
        f"Successfully started moving log directory to {tool.dir_of('bar-0', 2)} for replica {bar}-0 with broker 2 "
        in lines
    )
    tool.settle()
    assert not tool.admin.list_partition_reassignments()
    wait_until(lambda: not throttles(tool), what="every broker to know that nothing is throttled")
    assert run("--execute", PLAN, str(file))[0] == 0
    tool.settle()
    code, out = run("--verify", PLAN, str(file))
    assert [line.rpartition(" ")[2] for line in out.split("\n")[1:5]] == [
        "completed.",
        "completed.",
        "completed.",
        "successfully.",
    ]


def test_controllers_cancel_reassignments_but_know_no_directories(tool, run):
    there = hold_everything(tool, run)
    code, out = run("--cancel", "--all", via="--bootstrap-controller")
    assert code == 0
    assert tool.real_name("bar") not in out
    assert not tool.admin.list_partition_reassignments()
    directories = tool.admin.describe_log_dirs([2])[2]
    assert [path.path for path in directories for copy in path.replicas if copy.is_future] == [there]
