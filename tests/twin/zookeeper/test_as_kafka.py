"""The twin's controller tells each broker the same, in the same order, as that of a real Kafka 3.9.1 did.

`kafka_3_9_1.jsonl` is what five brokers' request logs (`kafka.request.logger` at DEBUG) had of the controller, while a
topic foo with the replicas [1, 2, 3] went through the steps below. Left out are topic ids, broker epochs and addresses,
which are never the same twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kreassign.model import ElectionType
from kreassign.twin.controller.leader_and_isr import ElectLeaders
from kreassign.twin.zookeeper.control_requests import ControlRequest
from kreassign.twin.zookeeper.controller import Delivery
from kreassign.wire.control import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, Json
from tests.twin.zookeeper.sending import body
from tests.twin.zookeeper.zookeeper_cluster import FOO, ZooKeeperCluster

RECORDED = Path(__file__).with_name("kafka_3_9_1.jsonl")
BROKERS = range(5)

STEPS: dict[str, Callable[[ZooKeeperCluster], object]] = {
    "[1, 2, 3] to [4, 3, 2]": lambda cluster: cluster.submit({FOO: (4, 3, 2)}),
    "to [2, 3, 4]": lambda cluster: cluster.submit({FOO: (2, 3, 4)}),
    "preferred election": lambda cluster: cluster.controller.elect_leaders(
        ElectLeaders(ElectionType.PREFERRED, (("foo", (0,)),))
    ),
    "controller stopped": lambda cluster: cluster.twin.stop(0),
    "to [2, 3, 0], 0 dead": lambda cluster: cluster.submit({FOO: (2, 3, 0)}),
}

Told = tuple[int, int, Json]
"""To whom, by which API, and what."""


def recorded() -> dict[str, list[Told]]:
    """By step, what Kafka's controller sent."""
    found: dict[str, list[Told]] = {step: [] for step in STEPS}
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found[row["step"]].append((row["to"], row["apiKey"], comparable(row["body"])))
    return found


def comparable(shown: Json) -> Json:
    """A body without what is never the same twice, and with brokers as ids, in order where order means nothing."""
    found = {name: value for name, value in shown.items() if name != "brokerEpoch"}
    for name, key in (("liveBrokers", "id"), ("liveLeaders", "brokerId")):
        if name in found:
            ids = (one[key] if isinstance(one, dict) else one for one in found[name])
            found[name] = sorted(one for one in ids if one in BROKERS)
    found["topicStates"] = [
        {
            "topicName": topic["topicName"],
            "partitionStates": [
                {name: sorted(value) if name == "isr" else value for name, value in state.items()}
                for state in topic["partitionStates"]
            ],
        }
        for topic in shown["topicStates"]
    ]
    return found


@pytest.fixture(scope="module")
def sent() -> dict[str, list[Told]]:
    """By step, what the twin's controller sends."""
    cluster, requests, found = ZooKeeperCluster([1, 2, 3]).begin(), list[ControlRequest](), dict[str, list[Told]]()
    cluster.controller.on_messages = Delivery(
        cluster.twin, cluster.controller, lambda _, request: requests.append(request)
    )
    for step, act in STEPS.items():
        requests.clear()
        act(cluster)
        cluster.settle()
        found[step] = [(one.broker_id, one.api_key, comparable(without_default_type(one))) for one in requests]
    return found


def without_default_type(request: ControlRequest) -> Json:
    """Request without fields that have their default: Kafka leaves such a tagged field out of its log."""
    shown = body(request)
    if request.api_key == UPDATE_METADATA.key:
        assert shown.pop("type") == 0
    return shown


def test_the_record_has_all_three_requests_in_all_steps() -> None:
    apis = {api for told in recorded().values() for _, api, _ in told}
    assert apis == {LEADER_AND_ISR.key, STOP_REPLICA.key, UPDATE_METADATA.key}
    assert all(recorded().values())


@pytest.mark.parametrize("broker", BROKERS)
@pytest.mark.parametrize("step", STEPS)
def test_a_broker_is_told_the_same_in_the_same_order(sent: dict[str, list[Told]], step: str, broker: int) -> None:
    assert [one for one in sent[step] if one[0] == broker] == [one for one in recorded()[step] if one[0] == broker]
