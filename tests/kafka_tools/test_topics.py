"""`kafka-topics`: streams, exit codes, bad input, and what it does to a twin."""

from dataclasses import replace

import pytest

from kreassign.errors import ClusterError
from kreassign.kafka_tools import topic_options, topics
from kreassign.kafka_tools.command_line import ToolError, parse
from kreassign.model import TopicPartition
from kreassign.model.error_codes import LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION
from kreassign.twin.access import Permissions
from kreassign.twin.blueprint import PartitionPlan, TopicPlan, small_cluster
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.replication.partition_logs import Traffic
from tests.executor.odd_port import OddPort, each_refused
from tests.executor.twin_runs import TwinRig
from tests.kafka_tools.served_twin import served

TOOL = topics.main
SERVER = ("--bootstrap-server", "localhost:9092")
FAILED = "Error while executing topic command : "


def twin(permissions=None):
    plans = (
        TopicPlan("a", (PartitionPlan((0, 1)), PartitionPlan((1, 2), isr=(1,))), {"min.insync.replicas": "2"}),
        TopicPlan("b", (PartitionPlan((3, 0, 2), Traffic(10**12), isr=(0,), adding=(3,), removing=(2,)),)),
        TopicPlan("__consumer_offsets", (PartitionPlan((0,)),)),
    )
    asked = Twin(replace(small_cluster(4), topics=plans), TwinSettings(permissions=permissions))
    asked.crash(2)
    return asked


@pytest.fixture
def cluster():
    asked = twin()
    with served(asked) as address:
        yield asked, ("--bootstrap-server", address)


# Command line


@pytest.mark.parametrize(("words", "said"), [
    ((), "Create, delete, describe, or change a topic."),
    (("--help",), "This tool helps to create, delete, describe, or change a topic."),
    (("--list", "--describe"),
     "Command must include exactly one action: --list, --describe, --create, --alter or --delete"),
    ((*SERVER, "--delete"), 'Missing required argument "[topic]"'),
    ((*SERVER, "--alter", "--topic", "a"), 'Missing required argument "[partitions]"'),
    ((*SERVER, "--list", "--partitions", "2"), 'Option "[partitions]" can\'t be used with option "[list]"'),
    ((*SERVER, "--alter", "--topic", "a", "--partitions", "3", "--replication-factor", "2"),
     'Option "[replication-factor]" can\'t be used with option "[alter]"'),
    ((*SERVER, "--create", "--topic", "a", "--replica-assignment", "0", "--partitions", "1"),
     'Option "[replica-assignment]" can\'t be used with option "[partitions]"'),
    ((*SERVER, "--alter", "--topic", "a", "--replica-assignment", "0", "--replication-factor", "2"),
     'Option "[replica-assignment]" can\'t be used with option "[replication-factor]"'),
    ((*SERVER, "--alter", "--topic", "a", "--partitions", "3", "--dry-run"),
     'Option "[dry-run]" can\'t be used with option "[partitions]"'),
    ((*SERVER, "--alter", "--topic", "a", "--replication-factor", "3", "--if-not-exists"),
     'Option "[if-not-exists]" can\'t be used with option "[alter]"'),
    ((*SERVER, "--delete", "--topic", "a", "--force"), 'Option "[force]" can\'t be used with option "[delete]"'),
    ((*SERVER, "--describe", "--if-exists"), "--topic or --topic-id is required to describe a topic"),
])  # fmt: skip
def test_wrong_usage_is_told_with_the_help_on_stderr(run, words, said):
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert err.startswith(f"{said}\nOption  ")


@pytest.mark.parametrize(("words", "said"), [
    (("--list",), "--bootstrap-server must be specified"),
    (("--nonsense",), "nonsense is not a recognized option"),
    (("--list", "--topic"), "Option topic requires an argument"),
    (("--list", "--bootstrap-server", "foo"),
     "Failed to create new KafkaAdminClient\nCaused by: Invalid url in bootstrap.servers: foo"),
])  # fmt: skip
def test_what_cannot_begin_is_told_on_stderr(run, words, said):
    assert run(*words) == (1, "", f"{said}\n")


def test_version_is_kafkas(run):
    assert run("--version") == (0, "4.4.0\n", "")


def test_a_server_that_nobody_reaches_is_told(run, unreached):
    code, out, err = run("--list", "--bootstrap-server", unreached.address, "--command-config", unreached.config)
    assert (code, out, err) == (1, f"{FAILED}Timed out waiting for a node assignment. Call: listTopics\n", "")


# Looking


def test_topics_are_listed_by_name_or_pattern(run, cluster):
    _, server = cluster
    assert run(*server, "--list") == (0, "__consumer_offsets\na\nb\n", "")
    assert run(*server, "--list", "--exclude-internal") == (0, "a\nb\n", "")
    assert run(*server, "--list", "--topic", "b, c") == (0, "b\n", "")
    assert run(*server, "--list", "--topic", "nowhere") == (0, "\n", "")


def test_a_topic_is_described_with_its_partitions(run, cluster):
    _, server = cluster
    code, out, _ = run(*server, "--describe", "--topic", "a")
    head, *lines = out.rstrip("\n").split("\n")
    assert code == 0
    assert head.endswith("\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: min.insync.replicas=2")
    assert lines == [
        "\tTopic: a\tPartition: 0\tLeader: 0\tReplicas: 0,1\tIsr: 0,1\tElr: \tLastKnownElr: ",
        "\tTopic: a\tPartition: 1\tLeader: 1\tReplicas: 1,2\tIsr: 1\tElr: \tLastKnownElr: ",
    ]
    topic_id = head.split("TopicId: ")[1].split("\t")[0]
    for same in (topic_id, f"{topic_id}=="):
        assert run(*server, "--describe", "--topic-id", same) == (0, out, "")
    assert run(*server, "--describe", "--topic-id", "A" * 22, "--topic", "a") == (0, out, "")  # the zero id is none


def test_a_topic_without_an_answer_is_not_called_absent(tmp_path):
    """Its id may be the one that was asked for; a topic that is gone by now has none."""
    options = parse(topic_options.OPTIONS, ("--describe", "--topic-id", f"{'A' * 21}Q"))
    for code, said in ((LEADER_NOT_AVAILABLE, "no leader"), (UNKNOWN_TOPIC_OR_PARTITION, "does not exist as expected")):
        odd = OddPort(TwinRig(tmp_path / str(code), [[0, 1]]).client)
        odd.answer_always("describe_topics", each_refused(code))
        with pytest.raises((ClusterError, ToolError), match=said):
            topics.describe(odd, options)


def test_replicas_being_added_are_not_under_replication(run, cluster):
    _, server = cluster
    _, out, _ = run(*server, "--describe", "--topic", "b")
    head, line = out.rstrip("\n").split("\n")
    assert "\tReplicationFactor: 2\t" in head
    assert "\tReplicas: 3,0,2\tIsr: 0\tAdding Replicas: 3\tRemoving Replicas: 2\t" in line
    _, out, _ = run(*server, "--describe", "--under-replicated-partitions")
    assert [row.split("\t")[1:3] for row in out.rstrip("\n").split("\n")] == [
        ["Topic: a", "Partition: 1"],
        ["Topic: b", "Partition: 0"],  # of its two replicas one is down
    ]


@pytest.mark.parametrize(("option", "partitions"), [
    ("--under-min-isr-partitions", ["a-1"]),
    ("--at-min-isr-partitions", ["__consumer_offsets-0", "a-0", "b-0"]),
    ("--unavailable-partitions", []),
])  # fmt: skip
def test_filters_show_partitions_alone(run, cluster, option, partitions):
    _, server = cluster
    _, out, _ = run(*server, "--describe", option)
    rows = [row.split("\t") for row in out.splitlines()]
    assert [f"{row[1].removeprefix('Topic: ')}-{row[2].removeprefix('Partition: ')}" for row in rows] == partitions


def test_a_min_isr_that_is_no_number_is_named_where_it_decides(tmp_path, capsys):
    def odd_number(real, *args, **named):
        found = real(*args, **named)
        return found.map(
            lambda entries: {
                name: replace(one, value="2x") if name == "min.insync.replicas" else one
                for name, one in entries.items()
            }
        )

    odd = OddPort(TwinRig(tmp_path, [[0, 1]]).client)
    odd.answer_always("describe_configs", odd_number)
    for option in ("--under-min-isr-partitions", "--at-min-isr-partitions"):
        with pytest.raises(ClusterError, match=r"no broker tells a number as min\.insync\.replicas of topic t"):
            topics.describe(odd, parse(topic_options.OPTIONS, ("--describe", option)))
    topics.describe(odd, parse(topic_options.OPTIONS, ("--describe",)))
    assert "Topic: t\tPartition: 0" in capsys.readouterr().out


def test_topics_with_settings_are_shown_without_their_partitions(run, cluster):
    _, server = cluster
    _, out, _ = run(*server, "--describe", "--topics-with-overrides", "--topic", "a")
    (line,) = out.splitlines()
    assert line.startswith("Topic: a\t")


# Changing


def test_a_topic_is_created_grown_and_deleted(run, cluster):
    asked, server = cluster
    created = run(*server, "--create", "--topic", "c", "--replica-assignment", "0:1,1:3", "--config", "retention.ms=5")
    assert created == (0, "Created topic c.\n", "")
    grown = ("--alter", "--topic", "c", "--partitions", "3", "--replica-assignment", "0:1,1:3,3:0")
    assert run(*server, *grown) == (0, "", "")
    state = asked.metadata.partition(TopicPartition("c", 2))
    assert state is not None
    assert state.replicas == (3, 0)
    assert run(*server, "--delete", "--topic", "c") == (0, "", "")
    assert "c" not in asked.metadata.topics


def test_an_assignment_may_end_in_separators(run, cluster):
    """Java drops empty words at the end; an assignment of nothing else is none."""
    asked, server = cluster
    for name, text in (("c", "0:1:,1:3,,"), ("d", ",")):
        words = ("--create", "--topic", name, "--replica-assignment", text)
        assert run(*server, *words) == (0, f"Created topic {name}.\n", "")
    state = asked.metadata.partition(TopicPartition("c", 1))
    assert state is not None
    assert state.replicas == (1, 3)
    assert [len(asked.metadata.topics[name].partitions) for name in "cd"] == [2, 1]


def test_a_topic_that_is_there_is_an_error_unless_that_is_fine(run, cluster):
    _, server = cluster
    words = (*server, "--create", "--topic", "a", "--partitions", "1", "--replication-factor", "1")
    assert run(*words) == (1, f"{FAILED}Topic 'a' already exists.\n", "")
    assert run(*words, "--if-not-exists") == (0, "", "")


def test_names_that_may_collide_are_warned_of(run, cluster):
    _, server = cluster
    code, out, _ = run(*server, "--create", "--topic", "x.y", "--partitions", "1", "--replication-factor", "1")
    assert (code, out.splitlines()[1]) == (0, "Created topic x.y.")
    assert out.startswith("WARNING: Due to limitations in metric names")


NOT_SIXTEEN = "which is not equal to the expected 16 bytes of a base64-encoded UUID"
TWO_READINGS = (
    "has a set of characters within a set, or &&, ||, -- or ~~ in one: tools read that differently; write it without"
)


@pytest.mark.parametrize(("words", "said"), [
    (("--describe", "--topic", "nowhere"), "Topic 'nowhere' does not exist as expected"),
    (("--delete", "--topic", "nowhere"), "Topic 'nowhere' does not exist as expected"),
    (("--alter", "--topic", "nowhere", "--partitions", "3"), "Topic 'nowhere' does not exist as expected"),
    (("--describe", "--topic-id", f"{'A' * 21}Q"), f"TopicId '{'A' * 21}Q' does not exist as expected"),
    (("--describe", "--topic-id", f"{'A' * 21}Q=="), f"TopicId '{'A' * 21}Q' does not exist as expected"),
    (("--describe", "--topic-id", "A" * 25),
     f"Input string with prefix `{'A' * 24}` is too long to be decoded as a base64 UUID"),
    (("--describe", "--topic-id", "orders"), f"Input string `orders` decoded as 4 bytes, {NOT_SIXTEEN}"),
    (("--describe", "--topic-id", "a.b"), "Illegal base64 character 2e"),
    (("--describe", "--topic-id", "aé"), "Illegal base64 character -17"),
    (("--describe", "--topic-id", "\u0660"), "Input byte[] should at least have 2 bytes for base64 bytes"),
    (("--describe", "--topic-id", "orders_of"), "Last unit does not have enough valid bits"),
    (("--list", "--topic", "["), "[ is an invalid regex."),
    (("--list", "--topic", "a{99999999999}"), "a{99999999999} is an invalid regex."),
    (("--list", "--topic", "(" * 5_000), f"{'(' * 5_000} is an invalid regex."),
    *((("--delete", "--topic", regex), f"'{regex}' {TWO_READINGS}") for regex in ("[a-z&&b]+", "[[a]b]", "[a-z--b]+")),
    (("--alter", "--topic", "a", "--partitions", "1"),
     "The topic a currently has 2 partition(s); 1 would not be an increase."),
    (("--create", "--topic", "c", "--partitions", "0"), "The partitions must be greater than 0"),
    (("--create", "--topic", "c", "--partitions", "x"), "Cannot parse argument 'x' of option partitions"),
    (("--create", "--topic", "c", "--replication-factor", "40000"),
     "The replication factor must be between 1 and 32767 inclusive"),
    (("--create", "--topic", "c", "--replica-assignment", "0:x"), 'For input string: "x"'),
    (("--create", "--topic", "c", "--replica-assignment", "0:0"),
     "Partition replica lists may not contain duplicate entries: 0"),
    (("--create", "--topic", "c", "--replica-assignment", "0:1,2"),
     "Partition 1 has different replication factor: [2]"),
    (("--create", "--topic", "c", "--replica-assignment", "0:1,2,2:2"),
     "Partition 1 has different replication factor: [2]"),
    (("--create", "--topic", "c", "--replica-assignment", ",0:1"), 'For input string: ""'),
    (("--create", "--topic", "c", "--replica-assignment", "0::1"), 'For input string: ""'),
    (("--create", "--topic", "c", "--config", "x=1"), "Unknown topic config name: x"),
    (("--create", "--topic", "c", "--config", "x"),
     'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".'),
])  # fmt: skip
def test_what_fails_is_one_line_and_changes_nothing(run, cluster, words, said):
    asked, server = cluster
    assert run(*server, *words) == (1, f"{FAILED}{said}\n", "")
    assert {name: len(topic.partitions) for name, topic in asked.metadata.topics.items()} == {
        "a": 2,
        "b": 1,
        "__consumer_offsets": 1,
    }


def test_if_exists_makes_a_missing_topic_fine(run, cluster):
    _, server = cluster
    for words in (("--describe",), ("--delete",), ("--alter", "--partitions", "3")):
        assert run(*server, *words, "--topic", "nowhere", "--if-exists") == (0, "", "")


def test_who_may_not_create_is_told_so(run):
    asked = twin(Permissions(frozenset()))
    with served(asked) as address:
        code, out, _ = run("--bootstrap-server", address, "--create", "--topic", "c", "--partitions", "1")
    assert code == 1
    assert out.startswith(FAILED)
    assert "c" not in asked.metadata.topics
