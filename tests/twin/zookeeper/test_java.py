"""Our control requests, read and written by Kafka 3.9.1's own classes."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from kreassign.twin.zookeeper.control_requests import ControlRequest, build
from kreassign.wire import control
from kreassign.wire.api import Message
from testbed import JarsMissing, JavaMissing
from testbed.java import tool_command
from tests.twin.java_tools import REQUIRE_VARIABLE
from tests.twin.zookeeper.sending import SENDER, TOPIC_ID, live, step

pytestmark = pytest.mark.kafka

PROGRAM = Path(__file__).with_name("Convert.java")


def converted(requests: list[tuple[control.ControlApi, int, bytes]]) -> Iterator[tuple[control.Json, bytes]]:
    """Request as Kafka's classes read and write it."""
    try:
        command = tool_command("3.9.1", str(PROGRAM))
    except (JarsMissing, JavaMissing) as missing:
        if os.environ.get(REQUIRE_VARIABLE):
            raise
        pytest.skip(str(missing))
    told = "".join(f"{api.name} {version} {body.hex()}\n" for api, version, body in requests)
    done = subprocess.run(command, input=told, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2 * len(requests)
    for shown, written in zip(lines[::2], lines[1::2], strict=True):
        yield json.loads(shown), bytes.fromhex(written)


def every_version() -> Iterator[tuple[control.ControlApi, int, bytes]]:
    """Each request in each version that there ever was, with something in every field."""
    for version in range(control.LEADER_AND_ISR.max_version + 1):
        yield control.LEADER_AND_ISR, version, control.encode_body(version, leader_and_isr(is_grouped=version >= 2))
    for version in range(control.STOP_REPLICA.max_version + 1):
        yield control.STOP_REPLICA, version, control.encode_body(version, stop_replica())
    for version in range(control.UPDATE_METADATA.max_version + 1):
        yield control.UPDATE_METADATA, version, control.encode_body(version, update_metadata())


def leader_and_isr(*, is_grouped: bool) -> Message:
    request = control.LEADER_AND_ISR.request
    state = request.LeaderAndIsrPartitionState(
        topic_name="foo", partition_index=1, controller_epoch=2, leader=3, leader_epoch=4, isr=[3, 5],
        partition_epoch=6, replicas=[3, 5, 7, 9], adding_replicas=[7], removing_replicas=[9, 5], is_new=True,
        leader_recovery_state=1,
    )  # fmt: skip
    return request(
        controller_id=1, is_k_raft_controller=True, controller_epoch=2, broker_epoch=1 << 40, request_type=1,
        ungrouped_partition_states=[] if is_grouped else [state],
        topic_states=[
            request.LeaderAndIsrTopicState(topic_name="foo", topic_id=uuid.UUID(TOPIC_ID), partition_states=[state])
        ],
        live_leaders=[request.LeaderAndIsrLiveLeader(broker_id=3, host_name="ürgendwo", port=9)],
    )  # fmt: skip


def stop_replica() -> Message:
    request = control.STOP_REPLICA.request
    state = request.StopReplicaTopicState
    order = state.StopReplicaPartitionState(partition_index=1, leader_epoch=-2, delete_partition=True)
    return request(
        controller_id=1, is_k_raft_controller=True, controller_epoch=2, broker_epoch=3, delete_partitions=True,
        ungrouped_partitions=[request.StopReplicaPartitionV0(topic_name="foo", partition_index=1)],
        topics=[request.StopReplicaTopicV1(name="foo", partition_indexes=[1, 2])],
        topic_states=[state(topic_name="foo", partition_states=[order])],
    )  # fmt: skip


def update_metadata() -> Message:
    request = control.UPDATE_METADATA.request
    state = request.UpdateMetadataPartitionState(
        topic_name="foo", partition_index=1, controller_epoch=2, leader=-2, leader_epoch=4, isr=[3], zk_version=5,
        replicas=[3, 4], offline_replicas=[4],
    )  # fmt: skip
    broker = request.UpdateMetadataBroker
    endpoint = broker.UpdateMetadataEndpoint(port=9093, host="there", listener="INSIDE", security_protocol=3)
    return request(
        controller_id=1, is_k_raft_controller=True, request_type=2, controller_epoch=2, broker_epoch=3,
        ungrouped_partition_states=[state],
        topic_states=[
            request.UpdateMetadataTopicState(topic_name="foo", topic_id=uuid.UUID(TOPIC_ID), partition_states=[state])
        ],
        live_brokers=[
            broker(id=3, v0_host="there", v0_port=9093, endpoints=[endpoint], rack="a"),
            broker(id=4, v0_host="here", v0_port=9094, endpoints=[], rack=None),
        ],
    )  # fmt: skip


def built() -> Iterator[ControlRequest]:
    """Messages that `build` makes of a move."""
    steps = (
        step(told=(1, 2, 3), stopped=((1, False),)), step(told=(4,), is_new=True), step(topic="bar", partition=8)
    )  # fmt: skip
    yield from build(SENDER, steps, live(0, 1, 2, 4))
    yield from build(SENDER, (), live(0))


def test_kafka_reads_and_writes_every_version_as_the_twin_does() -> None:
    requests = [*every_version(), *((one.api, one.version, one.body) for one in built())]
    for (api, version, body), (read, written) in zip(requests, converted(requests), strict=True):
        ours = control.as_json(control.decode_body(api, version, body))
        if api is control.UPDATE_METADATA and version >= 8:
            read.setdefault("type", 0)  # Kafka leaves a tagged field that has its default value out of its log
        assert read == ours, (api, version)
        assert written == body, (api, version)
