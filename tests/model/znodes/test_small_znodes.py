"""The znodes of controllers, brokers, partition states and configurations: texts seen on Kafka 3.9.1."""

from __future__ import annotations

import json

import pytest

from kreassign.errors import DamagedZnode
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.znodes import (
    BrokerZnode,
    ControllerZnode,
    PartitionStateZnode,
    format_broker,
    format_change,
    format_config,
    format_controller,
    format_controller_epoch,
    format_partition_state,
    parse_broker,
    parse_change,
    parse_config,
    parse_controller,
    parse_controller_epoch,
    parse_partition_state,
    paths,
)

A1 = ConfigResource.topic("a1")


def test_a_partition_state() -> None:
    text = b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":1,"isr":[0,1]}'
    state = PartitionStateZnode(controller_epoch=1, leader=0, leader_epoch=1, isr=(0, 1))
    assert format_partition_state(state) == text
    assert parse_partition_state(TopicPartition("a", 0), text) == state


def test_the_controller() -> None:
    text = b'{"version":2,"brokerid":2,"timestamp":"1795222131347","kraftControllerEpoch":-1}'
    assert format_controller(ControllerZnode(2, 1795222131347)) == text
    assert parse_controller(text) == ControllerZnode(2, 1795222131347)
    assert parse_controller(b'{"version":1,"brokerid":1,"timestamp":"5"}') == ControllerZnode(1, 5)


def test_the_controller_epoch_is_a_plain_number() -> None:
    assert format_controller_epoch(96) == b"96"
    assert parse_controller_epoch(b"96") == 96
    with pytest.raises(DamagedZnode, match="/controller_epoch"):
        parse_controller_epoch(b"x")


def test_a_broker() -> None:
    text = (
        b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        b'"endpoints":["PLAINTEXT://127.0.0.1:39301"],"jmx_port":-1,"port":39301,"host":"127.0.0.1","version":5,'
        b'"timestamp":"7"}'
    )
    assert format_broker(BrokerZnode(0, "127.0.0.1", 39301), 7) == text
    assert parse_broker(0, text) == BrokerZnode(0, "127.0.0.1", 39301, None, ("PLAINTEXT://127.0.0.1:39301",))


def test_a_broker_in_a_rack_and_one_without_a_plain_text_listener() -> None:
    assert json.loads(format_broker(BrokerZnode(0, "h", 1, "r1"), 7))["rack"] == "r1"
    secure = b'{"endpoints":["SSL://h:1"],"host":null,"port":-1,"rack":"r1","version":5}'
    assert parse_broker(3, secure) == BrokerZnode(3, "", -1, "r1", ("SSL://h:1",))


def test_a_configuration_and_its_notification() -> None:
    text = b'{"version":1,"config":{"leader.replication.throttled.replicas":"*"}}'
    assert format_config({"leader.replication.throttled.replicas": "*"}) == text
    assert parse_config(A1, text) == {"leader.replication.throttled.replicas": "*"}
    assert format_config({}) == b'{"version":1,"config":{}}'
    assert format_change(ConfigResource.broker(2)) == b'{"version":2,"entity_path":"brokers/2"}'
    assert parse_change("/config/changes/config_change_0000000002", format_change(A1)) == "topics/a1"


def test_paths() -> None:
    assert paths.config_path(A1) == "/config/topics/a1"
    assert paths.config_path(ConfigResource.broker(1)) == "/config/brokers/1"
    assert paths.partition_state_path(TopicPartition("a", 3)) == "/brokers/topics/a/partitions/3/state"
    assert paths.broker_path(4) == "/brokers/ids/4"


@pytest.mark.parametrize("content", [b'{"config":{"a":1}}', b'{"config":[]}'])
def test_a_damaged_configuration_is_named_by_its_path(content: bytes) -> None:
    with pytest.raises(DamagedZnode, match="/config/topics/a1 is damaged"):
        parse_config(A1, content)


@pytest.mark.parametrize("text", [b"x", b"[]", b"{}", b'{"controller_epoch":1,"leader":"0","leader_epoch":1,"isr":[]}'])
def test_a_damaged_state_is_told_with_the_path_of_its_partition(text: bytes) -> None:
    with pytest.raises(DamagedZnode) as refusal:
        parse_partition_state(TopicPartition("a", 3), text)
    assert refusal.value.path == "/brokers/topics/a/partitions/3/state"
