"""The znodes of controllers, brokers, partition states and configurations: texts seen on Kafka 3.9.1."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import pytest

from kreassign.errors import DamagedZnode
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.znodes import contents, paths

A1 = ConfigResource.topic("a1")


def refusal(read: Callable[[], object]) -> tuple[str, str]:
    """The path and the reason of what is told of a damaged znode."""
    with pytest.raises(DamagedZnode) as refused:
        read()
    told = str(refused.value).removeprefix(f"znode {refused.value.path} is damaged: ")
    return refused.value.path, told.removesuffix("; look at it with zookeeper-shell before anything else")


def test_a_partition_state() -> None:
    text = b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":1,"isr":[0,1]}'
    state = contents.PartitionStateZnode(controller_epoch=1, leader=0, leader_epoch=1, isr=(0, 1))
    assert contents.format_partition_state(state) == text
    assert contents.parse_partition_state(TopicPartition("a", 0), text) == state


def test_the_controller() -> None:
    text = b'{"version":2,"brokerid":2,"timestamp":"1795222131347","kraftControllerEpoch":-1}'
    assert contents.format_controller(2, 1795222131347) == text


def test_the_controller_epoch_is_a_plain_number() -> None:
    assert contents.format_controller_epoch(96) == b"96"
    assert contents.parse_controller_epoch(b"96") == 96
    assert refusal(lambda: contents.parse_controller_epoch(b"x")) == ("/controller_epoch", "b'x' is not a number")
    assert refusal(lambda: contents.parse_controller_epoch(b"-1")) == ("/controller_epoch", "b'-1' is not a number")
    assert refusal(lambda: contents.parse_controller_epoch(b"9" * 5_000))[0] == "/controller_epoch"


def test_the_name_of_a_broker_is_its_id() -> None:
    assert contents.parse_broker_id("3") == 3
    for name in ("x", "-1", "1_0", "9" * 5_000):
        assert refusal(partial(contents.parse_broker_id, name))[0] == "/brokers/ids"


def test_a_broker() -> None:
    text = (
        b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        b'"endpoints":["PLAINTEXT://127.0.0.1:39301"],"jmx_port":-1,"port":39301,"host":"127.0.0.1","version":5,'
        b'"timestamp":"7"}'
    )
    assert contents.format_broker(contents.BrokerZnode(0, "127.0.0.1", 39301), 7) == text
    assert contents.parse_broker(0, text) == contents.BrokerZnode(
        0, "127.0.0.1", 39301, None, ("PLAINTEXT://127.0.0.1:39301",)
    )


def test_a_broker_in_a_rack_and_one_without_a_plain_text_listener() -> None:
    in_a_rack = json.loads(contents.format_broker(contents.BrokerZnode(0, "h", 1, "r1", ("SSL://h:2",)), 7))
    assert (in_a_rack["rack"], in_a_rack["endpoints"]) == ("r1", ["SSL://h:2"])
    secure = b'{"endpoints":["SSL://h:1"],"host":null,"port":-1,"rack":"r1","version":5}'
    assert contents.parse_broker(3, secure) == contents.BrokerZnode(3, "", -1, "r1", ("SSL://h:1",))


def test_a_configuration_and_its_notification() -> None:
    text = b'{"version":1,"config":{"leader.replication.throttled.replicas":"*"}}'
    assert contents.format_config({"leader.replication.throttled.replicas": "*"}) == text
    assert contents.parse_config(A1, text) == {"leader.replication.throttled.replicas": "*"}
    assert contents.format_config({}) == b'{"version":1,"config":{}}'
    assert contents.format_change(ConfigResource.broker(2)) == b'{"version":2,"entity_path":"brokers/2"}'


def test_paths() -> None:
    assert paths.config_path(A1) == "/config/topics/a1"
    assert paths.config_path(ConfigResource.broker(1)) == "/config/brokers/1"
    assert paths.partition_state_path(TopicPartition("a", 3)) == "/brokers/topics/a/partitions/3/state"
    assert paths.config_path(ConfigResource.all_brokers()) == "/config/brokers/<default>"
    assert paths.config_entity(A1) == "topics/a1"
    assert paths.topic_path("a") == "/brokers/topics/a"
    assert paths.broker_path(4) == "/brokers/ids/4"


STATE = b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":1,"isr":[0,1]}'


@pytest.mark.parametrize("name", ["controller_epoch", "leader", "leader_epoch", "isr"])
def test_every_field_of_a_state_must_be_there_and_be_of_its_kind(name: str) -> None:
    path = "/brokers/topics/a/partitions/3/state"
    document = json.loads(STATE)
    wrong = json.dumps(document | {name: "x"}).encode()
    missing = json.dumps({key: value for key, value in document.items() if key != name}).encode()
    kind = "list of brokers" if name == "isr" else "whole number"
    partition = TopicPartition("a", 3)
    assert refusal(lambda: contents.parse_partition_state(partition, missing)) == (path, f"it has no '{name}'")
    assert refusal(lambda: contents.parse_partition_state(partition, wrong)) == (path, f"'x' is not a {kind}")


@pytest.mark.parametrize(("content", "reason"), [
    (b"[]", "it is not a JSON object"),
    (b'{"host":5}', "5 is not a text"),
    (b'{"port":"9092"}', "'9092' is not a whole number"),
    (b'{"rack":5}', "5 is not a text"),
    (b'{"endpoints":[5]}', "5 is not a text"),
])  # fmt: skip
def test_a_damaged_broker_is_told_with_what_is_wrong(content: bytes, reason: str) -> None:
    assert refusal(lambda: contents.parse_broker(3, content)) == ("/brokers/ids/3", reason)


@pytest.mark.parametrize(("content", "reason"), [
    (b"[]", "it is not a JSON object"), (b'{"config":[]}', "[] does not map names to texts"),
    (b'{"config":{"a":"b","c":1}}', "1 is not a text"),
])  # fmt: skip
def test_a_damaged_configuration_is_told_with_what_is_wrong(content: bytes, reason: str) -> None:
    assert refusal(lambda: contents.parse_config(ConfigResource.broker(2), content)) == ("/config/brokers/2", reason)


def test_a_configuration_without_values_has_none() -> None:
    assert contents.parse_config(A1, b"{}") == {}
