"""Command lines and files that Kafka's tool refuses before it asks the cluster, given to both tools."""

import pytest

from tests.real.tool_comparison import answers

SERVER, CONTROLLER = "--bootstrap-server", "--bootstrap-controller"


def one(topic="foo", partition="0", replicas="[0,1]", more=""):
    return f'{{"partitions":[{{"topic":"{topic}","partition":{partition},"replicas":{replicas}{more}}}]}}'


# The words, and by which option the tool is told where the cluster is.
COMMAND_LINES = {
    "no words": ([], None),
    "help": (["--help"], None),
    "version": (["--version"], None),
    "version and help": (["--version", "--list", "--help"], None),
    "blank word": ([" "], None),
    "no action": ([], SERVER),
    "two actions": (["--execute", "--verify"], None),
    "no bootstrap": (["--list"], None),
    "two bootstraps": (["--list", CONTROLLER, "a:1"], SERVER),
    "no plan": (["--execute", "--broker-list", "1"], SERVER),
    "no broker list": (["--generate", "--topics-to-move-json-file", "x"], SERVER),
    "controller for generate": (["--generate", "--topics-to-move-json-file", "x", "--broker-list", "1"], CONTROLLER),
    "throttle for verify": (["--verify", "--reassignment-json-file", "x", "--throttle", "5"], SERVER),
    "preserve for execute": (["--execute", "--reassignment-json-file", "x", "--preserve-throttles"], SERVER),
    "abbreviation": (["--exec"], SERVER),
    "single dash": (["-list", "-x"], SERVER),
    "no value": (["--list", "--command-config"], SERVER),
    "no address": (["--list", SERVER], None),
    "address without port": (["--list", SERVER, "localhost"], None),
    "two addresses": (["--list", SERVER, "localhost:1"], SERVER),
    "no properties file": (["--list", "--command-config", "/no/such"], SERVER),
    "no plan file": (["--verify", "--reassignment-json-file", "/no/such"], SERVER),
}

# The content of a plan file, and the options that go with --execute.
PLANS = {
    "malformed": ("{invalid_json", []),
    "cut off": ('{"version":1,\n "partitions":[', []),
    "comma too many": ('{"version":1,"partitions":[],}', []),
    "wrong bracket": (one(replicas="[0,1}"), []),
    "bare word": (one(topic='", "x":foo, "y":"'), []),
    "empty": ("", []),
    "blank": (" \n", []),
    "no object": ("[1]", []),
    "version 2": ('{"version":2}', []),
    "version as text": ('{"version":"1"}', []),
    "no topic": ('{"partitions":[{"partition":0,"replicas":[1]}]}', []),
    "partition as text": (one(partition='"0"'), []),
    "partition as double": (one(partition="1e10"), []),
    "replicas as number": (one(replicas="5"), []),
    "partitions as object": ('{"partitions":{}}', []),
    "too few directories": (one(more=',"log_dirs":["/a"]'), []),
    "no partitions": ("{} trailing", []),
    "no replicas": (one(replicas="[]"), []),
    "partition twice": ('{"partitions":[%s,%s]}' % ((one()[15:-2],) * 2), []),
    "broker twice": (one(replicas="[1,0,1]"), []),
    "throttle as text": (one(), ["--throttle", "abc"]),
    "throttle twice": (one(), ["--throttle", "1", "--throttle=2"]),
    "timeout too large": ("{bad", ["--timeout", "9223372036854775808"]),
}

# The content of a topics file and the broker list.
TOPICS = {
    "malformed": ("{bad", "0"),
    "version 2": ('{"version":2}', "0"),
    "no topic": ('{"topics":[{}]}', "0"),
    "topic twice": ('{"topics":[{"topic":"foo"},{"topic":"foo"}]}', "0"),
    "brokers twice": ("{bad", "1,1,2,2"),
    "no number": ("{bad", "0,a"),
    "empty list": ("{bad", ""),
}


def check(conformance, tmp_path, scenario):
    theirs, ours = answers(conformance, scenario, tmp_path)
    assert ours == theirs


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_both_tools_refuse_the_same_command_lines_in_the_same_words(conformance, tmp_path, name):
    words, via = COMMAND_LINES[name]
    check(conformance, tmp_path, lambda tool: tool(*words, via=via))


@pytest.mark.parametrize("name", PLANS)
def test_both_tools_refuse_the_same_plans_in_the_same_words(conformance, tmp_path, name):
    text, options = PLANS[name]
    check(conformance, tmp_path, lambda tool: tool("--execute", "--reassignment-json-file", tool.file(text), *options))


@pytest.mark.parametrize("name", TOPICS)
def test_both_tools_refuse_the_same_topics_files_in_the_same_words(conformance, tmp_path, name):
    text, brokers = TOPICS[name]
    check(
        conformance,
        tmp_path,
        lambda tool: tool("--generate", "--topics-to-move-json-file", tool.file(text), "--broker-list", brokers),
    )
