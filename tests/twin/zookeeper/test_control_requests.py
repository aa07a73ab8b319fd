"""Requests of a controller in ZooKeeper mode, by receiver and in order."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kreassign.errors import ProtocolViolation
from kreassign.twin.zookeeper.control_requests import BEING_DELETED, trace_line
from tests.twin.zookeeper.sending import TOPIC_ID, body, order, sent, states, step

EVERYBODY = [("UpdateMetadata", broker) for broker in range(5)]


def test_replicas_are_told_first_and_given_up_last() -> None:
    requests = sent(step(stopped=((1, False),)), step(told=(4, 3, 2)))
    assert order(requests) == [
        *(("LeaderAndIsr", broker) for broker in (2, 3, 4)), *EVERYBODY, ("StopReplica", 1)
    ]  # fmt: skip


def test_whoever_is_not_alive_gets_nothing_and_is_known_to_be_offline() -> None:
    requests = sent(step(told=(4, 3, 2, 1), stopped=((1, True),)), alive=(0, 2, 3))
    assert order(requests) == [
        ("LeaderAndIsr", 2), ("LeaderAndIsr", 3), *(("UpdateMetadata", broker) for broker in (0, 2, 3))
    ]  # fmt: skip
    assert states(requests[2])[0]["offlineReplicas"] == [4, 1]
    assert body(requests[0])["liveLeaders"] == []


def test_replicas_of_a_deleted_topic_go_at_an_epoch_of_their_own() -> None:
    """`LeaderAndIsr.EpochDuringDelete`: whatever a broker has heard before, it gives the replica up."""
    (*_, stopped) = sent(step(stopped=((1, True),), leader=BEING_DELETED, leader_epoch=9), alive=(1,))
    ((state,),) = [one["partitionStates"] for one in body(stopped)["topicStates"]]
    assert (stopped.api.name, state["leaderEpoch"], state["deletePartition"]) == ("StopReplica", -2, True)
    (*_, stopped) = sent(step(stopped=((1, True),), leader_epoch=9), alive=(1,))
    ((state,),) = [one["partitionStates"] for one in body(stopped)["topicStates"]]
    assert state["leaderEpoch"] == 9


def test_leader_and_isr_has_the_lists_of_the_move_and_where_its_leader_is() -> None:
    request = sent(step(told=(2,)))[0]
    assert body(request) == {
        "controllerId": 0,
        "isKRaftController": False,
        "controllerEpoch": 3,
        "brokerEpoch": 92,
        "type": 0,
        "topicStates": [
            {
                "topicName": "foo",
                "topicId": "DWuwzx9cSj6KDj9PfPsvEA",
                "partitionStates": [
                    {
                        "partitionIndex": 0, "controllerEpoch": 2, "leader": 1, "leaderEpoch": 1, "isr": [1, 2, 3],
                        "partitionEpoch": 7, "replicas": [4, 3, 2, 1], "addingReplicas": [4],
                        "removingReplicas": [1], "isNew": False, "leaderRecoveryState": 0,
                    }
                ],
            }
        ],
        "liveLeaders": [{"brokerId": 1, "hostName": "host1", "port": 9093}],
    }  # fmt: skip
    assert TOPIC_ID == "0d6bb0cf-1f5c-4a3e-8a0e-3f4f7cfb2f10"


def test_a_broker_gets_one_request_for_all_its_partitions_of_all_topics() -> None:
    requests = sent(step(told=(1,), partition=1), step(told=(1,), topic="bar"), step(told=(1,)), alive=(1,))
    assert order(requests) == [("LeaderAndIsr", 1), ("UpdateMetadata", 1)]
    told = [(one["topicName"], len(one["partitionStates"])) for one in body(requests[0])["topicStates"]]
    assert told == [("bar", 1), ("foo", 2)]


def test_the_last_step_of_a_partition_counts_but_a_new_replica_stays_new() -> None:
    (told, known) = sent(
        step(told=(4,), is_new=True), step(told=(4,), leader=4, leader_epoch=2), alive=(4,)
    )  # fmt: skip
    assert (states(told)[0]["leaderEpoch"], states(told)[0]["isNew"]) == (2, True)
    assert states(known)[0]["leader"] == 4


def test_original_replicas_are_not_new_where_added_ones_are() -> None:
    requests = sent(step(told=(1, 2, 3)), step(told=(4,), is_new=True))
    told = {one.broker_id: states(one)[0]["isNew"] for one in requests if one.api.name == "LeaderAndIsr"}
    assert told == {1: False, 2: False, 3: False, 4: True}


def test_a_replica_that_is_only_deleted_is_nobody_elses_business() -> None:
    requests = sent(step(stopped=((1, True), (2, False))))
    assert order(requests) == [("StopReplica", 1), ("StopReplica", 2)]
    assert [states(one) for one in requests] == [
        [{"partitionIndex": 0, "leaderEpoch": 1, "deletePartition": True}],
        [{"partitionIndex": 0, "leaderEpoch": 1, "deletePartition": False}],
    ]


def test_what_is_to_be_deleted_is_deleted_whatever_is_said_later() -> None:
    (request,) = sent(step(stopped=((1, True),)), step(stopped=((1, False),), leader_epoch=2))
    assert states(request) == [{"partitionIndex": 0, "leaderEpoch": 2, "deletePartition": True}]


def test_without_steps_all_learn_who_is_alive() -> None:
    requests = sent(alive=(0, 3))
    assert order(requests) == [("UpdateMetadata", 0), ("UpdateMetadata", 3)]
    endpoint = {"host": "host0", "listener": "PLAINTEXT", "port": 9092, "securityProtocol": 0}
    assert body(requests[1])["liveBrokers"][0] == {"id": 0, "endpoints": [endpoint], "rack": None}


def test_a_request_has_the_version_of_kafka_3_9() -> None:
    requests = sent(step(told=(2,), stopped=((1, False),)))
    assert {(one.api.name, one.version) for one in requests} == {
        ("LeaderAndIsr", 7), ("UpdateMetadata", 8), ("StopReplica", 4)
    }  # fmt: skip


@pytest.mark.parametrize("end", [-3, 1, 0])
def test_bytes_that_were_cut_off_are_refused(end: int) -> None:
    request = sent(step(told=(2,)))[0]
    with pytest.raises(ProtocolViolation, match="LeaderAndIsr"):
        replace(request, body=request.body[:end]).decode()


def test_bytes_that_go_on_are_refused() -> None:
    request = sent(step(told=(2,)))[0]
    with pytest.raises(ProtocolViolation, match="has more than its fields"):
        replace(request, body=request.body + b"\0").decode()


def test_a_line_of_a_trace_says_when_from_whom_to_whom_and_what() -> None:
    request = sent(step(stopped=((1, True),)))[0]
    assert json.loads(trace_line(17, request)) == {
        "time": 17, "controllerId": 0, "controllerEpoch": 3, "to": 1, "api": "StopReplica", "apiKey": 5, "version": 4,
        "body": body(request),
    }  # fmt: skip
