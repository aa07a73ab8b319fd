"""Requests from the command line and its files, before anything is sent."""

import os
from pathlib import Path

import pytest

from kreassign.errors import InputError
from kreassign.kafka_tools.command_line import ToolError, parse
from kreassign.kafka_tools.reassign import requests
from kreassign.kafka_tools.reassign.options import OPTIONS, Action
from kreassign.model.cluster import TopicPartition, TopicPartitionReplica
from kreassign.model.plan import PartitionAssignment, Plan

DOUBLED = "Partition replica lists may not contain duplicate entries"
FOO_0 = TopicPartition("foo", 0)
PLAN = Plan((PartitionAssignment(FOO_0, (1, 2), ("any", "/d")),))
PLAN_TEXT = '{"partitions":[{"topic":"foo","partition":0,"replicas":[1,2],"log_dirs":["any","/d"]}]}'


@pytest.fixture
def request_of(tmp_path):
    def read(action, text, content=PLAN_TEXT):
        (tmp_path / "file.json").write_text(content)
        words = [str(tmp_path / "file.json") if word == "FILE" else word for word in text.split()]
        return requests.read_request(action, parse(OPTIONS, words))

    return read


def test_execute_without_options_has_kafkas_defaults(request_of):
    assert request_of(Action.EXECUTE, "--reassignment-json-file FILE") == requests.ExecuteRequest(
        plan=PLAN,
        is_additional=False,
        throttle=-1,
        log_dir_throttle=-1,
        timeout_ms=10_000,
        allows_replication_factor_change=True,
    )


def test_execute_takes_all_its_options(request_of):
    text = (
        "--reassignment-json-file FILE --additional --throttle 100 --replica-alter-log-dirs-throttle 0 --timeout 5 "
        "--disallow-replication-factor-change"
    )
    assert request_of(Action.EXECUTE, text) == requests.ExecuteRequest(
        plan=PLAN,
        is_additional=True,
        throttle=100,
        log_dir_throttle=0,
        timeout_ms=5,
        allows_replication_factor_change=False,
    )


def test_verify_and_cancel_take_their_options(request_of):
    text = "--reassignment-json-file FILE --preserve-throttles"
    assert request_of(Action.VERIFY, text) == requests.VerifyRequest(PLAN, preserves_throttles=True)
    assert request_of(Action.CANCEL, text) == requests.CancelRequest(PLAN, preserves_throttles=True, timeout_ms=10_000)


def test_the_rest_of_a_redirected_plan_is_kept_beside_its_file(request_of, tmp_path):
    with (tmp_path / "file.json").open("w") as plan:
        words = f"--reassignment-json-file /dev/fd/{plan.fileno()} --reassignment-batch-size 1"
        assert request_of(Action.EXECUTE, words).beside == tmp_path / "file.json"
    assert request_of(Action.EXECUTE, "--reassignment-json-file FILE").beside is None


def test_the_rest_of_a_piped_plan_is_kept_in_the_working_directory(request_of):
    source, target = os.pipe()
    os.write(target, PLAN_TEXT.encode())
    os.close(target)
    words = f"--reassignment-json-file /dev/fd/{source} --reassignment-batch-size 1"
    assert request_of(Action.EXECUTE, words).beside == Path("plan.json")
    os.close(source)


def test_verify_and_cancel_read_what_execute_refuses(request_of):
    text = '{"partitions":[{"topic":"foo","partition":0,"replicas":[1,1]},{"topic":"foo","partition":0,"replicas":[]}]}'
    assert len(request_of(Action.VERIFY, "--reassignment-json-file FILE", text).plan) == 2
    assert len(request_of(Action.CANCEL, "--reassignment-json-file FILE", '{"partitions":[]}').plan) == 0


def test_cancel_all_needs_no_file(request_of):
    assert request_of(Action.CANCEL, "--all") == requests.CancelAllRequest(
        preserves_throttles=False, timeout_ms=10_000, output=None
    )
    assert request_of(Action.CANCEL, "--all --output x.json").output == Path("x.json")


def test_list_needs_nothing(request_of):
    assert request_of(Action.LIST, "--list") == requests.ListRequest()


def test_generate_reads_topics_and_brokers(request_of):
    text = "--topics-to-move-json-file FILE --broker-list 5,2,3,4"
    content = '{"topics":[{"topic":"foo"},{"topic":"bar"}]}'
    assert request_of(Action.GENERATE, text, content) == requests.GenerateRequest(
        ("foo", "bar"), (5, 2, 3, 4), is_rack_aware=True
    )
    assert not request_of(Action.GENERATE, f"{text} --disable-rack-aware", content).is_rack_aware


def test_brokers_are_looked_at_before_topics(request_of):
    with pytest.raises(ToolError, match=r'^Error: For input string: "x"$'):
        request_of(Action.GENERATE, "--topics-to-move-json-file FILE --broker-list x", "{bad")


def test_a_topic_named_twice_is_refused(request_of):
    content = '{"topics":[{"topic":"foo"},{"topic":"bar"},{"topic":"foo"}]}'
    with pytest.raises(ToolError, match=r"^Error: List of topics to reassign contains duplicate entries: \[foo\]$"):
        request_of(Action.GENERATE, "--topics-to-move-json-file FILE --broker-list 1", content)


@pytest.mark.parametrize(
    ("text", "brokers"), [("0,1,2", (0, 1, 2)), ("5,2", (5, 2)), ("+3,-0", (3, 0)), ("1,,", (1,)), (",", ())]
)
def test_broker_lists_are_split_as_java_splits(text, brokers):
    assert requests.parse_brokers(text) == brokers


@pytest.mark.parametrize(("text", "message"), [
    ("1,1,2", "Broker list contains duplicate entries: [1]"),
    ("5,2,3,4,5,2", "Broker list contains duplicate entries: [2, 5]"),
    ("", 'For input string: ""'),
    (",1", 'For input string: ""'),
    ("0, 1", 'For input string: " 1"'),
    ("2147483648", 'For input string: "2147483648"'),
    ("1_0", 'For input string: "1_0"'),
])  # fmt: skip
def test_wrong_broker_lists_are_refused(text, message):
    with pytest.raises(ToolError) as caught:
        requests.parse_brokers(text)
    assert str(caught.value) == f"Error: {message}"


@pytest.mark.parametrize("action", [Action.EXECUTE, Action.VERIFY, Action.CANCEL])
def test_a_file_that_is_not_there_is_named(action):
    with pytest.raises(ToolError) as caught:
        requests.read_request(action, parse(OPTIONS, ["--reassignment-json-file", "/no/such"]))
    assert str(caught.value) == "Error: Unable to read file /no/such\nCaused by: No such file or directory"


def test_the_file_is_read_before_numbers_and_json(request_of):
    with pytest.raises(ToolError, match="Unable to read file"):
        request_of(Action.EXECUTE, "--reassignment-json-file /no/such --throttle x")
    with pytest.raises(ToolError, match="Cannot parse argument 'x' of option throttle"):
        request_of(Action.EXECUTE, "--reassignment-json-file FILE --throttle x --timeout y", "{bad")
    with pytest.raises(ToolError, match="Cannot parse argument 'y' of option timeout"):
        request_of(Action.CANCEL, "--reassignment-json-file FILE --timeout y", "{bad")


def test_a_file_that_is_not_utf_8_is_still_read(tmp_path):
    path = tmp_path / "latin.json"
    path.write_bytes(b'{"partitions":[{"topic":"\xe9","partition":0,"replicas":[1]}]}')
    request = requests.read_request(Action.VERIFY, parse(OPTIONS, ["--reassignment-json-file", str(path)]))
    assert request.plan.topics == ("\N{REPLACEMENT CHARACTER}",)


def plan_of(*rows):
    return Plan(tuple(PartitionAssignment(TopicPartition("foo", number), replicas) for number, replicas in rows))


@pytest.mark.parametrize(("plan", "message"), [
    (plan_of(), "Partition reassignment list cannot be empty"),
    (plan_of((0, ()), (0, (1, 1))), "Partition replica list cannot be empty"),
    (plan_of((1, (1,)), (0, (1, 1)), (1, (2,)), (0, (3,))),
     "Partition reassignment contains duplicate topic partitions: foo-0,foo-1"),
    (plan_of((0, (0, 0)), (1, (1, 2)), (2, (4, 3, 3, 4))),
     f"{DOUBLED}: foo-0 contains multiple entries for 0. foo-2 contains multiple entries for 3,4"),
], ids=["nothing", "no replicas", "partition twice", "broker twice"])  # fmt: skip
def test_execute_checks_the_plan_in_kafkas_order(plan, message):
    with pytest.raises(ToolError) as caught:
        requests.check_executable(plan)
    assert str(caught.value) == f"Error: {message}"


def test_directories_are_read_per_replica(request_of):
    plan = request_of(Action.EXECUTE, "--reassignment-json-file FILE").plan
    assert plan.log_dirs == {TopicPartitionReplica(2, "foo", 0): "/d"}


def test_malformed_json_is_told_in_the_parsers_words(request_of):
    with pytest.raises(InputError, match=r"^Unexpected character"):
        request_of(Action.EXECUTE, "--reassignment-json-file FILE", "{invalid_json")
