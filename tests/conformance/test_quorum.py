"""Three controllers: what one that is not active answers, on a twin and on real Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kreassign.model import TopicPartition
from kreassign.model.error_codes import NONE, NOT_CONTROLLER
from kreassign.twin.blueprint import small_cluster
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.wire import api
from tests.conformance.clusters import NEWEST, RACKS, Backend, Cluster, InProcess, RealKafka, release_of_twin

CONTROLLERS = (100, 101, 102)
GONE = 1
TO_GONE = (0, (1, 0), (1,), (0,))
"""What a controller lists of a move from broker 0 to one that is down: error, replicas, those added, those removed."""


def _twin_of_three() -> InProcess:
    settings = TwinSettings(release_of_twin(NEWEST), controller_count=len(CONTROLLERS), session_timeout_ms=4_000)
    return InProcess(NEWEST, Twin(small_cluster(2, racks=RACKS), settings))


@pytest.fixture(
    params=[
        "in-process",
        pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.uses_cluster("three_controllers")]),
    ]
)
def quorum(request: pytest.FixtureRequest, topic_name: str) -> Iterator[Cluster]:
    is_real = request.param == "kafka"
    backend: Backend = RealKafka(request.getfixturevalue("three_controllers")) if is_real else _twin_of_three()
    with Cluster(backend, topic_name) as found:
        yield found


def active(quorum: Cluster) -> int:
    """The controller that all of them take for the active one."""
    named: set[int] = set()

    def is_agreed() -> bool:
        answers = (quorum.ask(api.DESCRIBE_CLUSTER, 1, node=node, endpoint_type=2) for node in CONTROLLERS)
        named.clear()
        named.update(answer.controller_id for answer in answers)
        return len(named) == 1 and named <= set(CONTROLLERS)

    quorum.until(is_agreed, "one active controller")
    return named.pop()


def listed(quorum: Cluster, node: int, partition: TopicPartition) -> tuple[object, ...]:
    """Listing of a partition by a node: its error, and the move, if it knows of one."""
    asked = {"name": partition.topic, "partition_indexes": [partition.partition]}
    answer = quorum.ask(api.LIST_PARTITION_REASSIGNMENTS, 0, node=node, timeout_ms=10_000, topics=[asked])
    moves = [one for topic in answer.topics for one in topic.partitions]
    found = [(tuple(one.replicas), tuple(one.adding_replicas), tuple(one.removing_replicas)) for one in moves]
    return (answer.error_code, *(found[0] if found else ()))


def asked_to_move(quorum: Cluster, node: int, partition: TopicPartition) -> list[tuple[int, str | None]]:
    """Code and text that a node gives to a move, then those for its only partition."""
    move = {"partition_index": partition.partition, "replicas": [GONE]}
    asked = {"name": partition.topic, "partitions": [move]}
    answer = quorum.ask(api.ALTER_PARTITION_REASSIGNMENTS, 0, node=node, timeout_ms=30_000, topics=[asked])
    return [(one.error_code, one.error_message) for one in (answer, answer.responses[0].partitions[0])]


def test_an_inactive_controller_refuses_moves_and_lists_what_it_knows(
    quorum: Cluster,
) -> None:
    """So nobody can tell from an answer whether it is the active controller's, nor how old it is."""
    partition = quorum.create_one(0)
    quorum.backend.kill(GONE)
    leader = active(quorum)
    standing_by = [node for node in CONTROLLERS if node != leader]
    assert [listed(quorum, node, partition) for node in CONTROLLERS] == [(NONE,)] * len(CONTROLLERS)
    text = f"The active controller appears to be node {leader}."
    for node in standing_by:
        assert asked_to_move(quorum, node, partition) == [(NOT_CONTROLLER, text)] * 2

    assert quorum.alter({partition: (GONE,)}, node=leader)[partition].code == NONE
    quorum.until(
        lambda: all(listed(quorum, node, partition) == TO_GONE for node in CONTROLLERS), "the move known to all"
    )

    assert quorum.alter({partition: None}, node=leader)[partition].code == NONE
    quorum.until(
        lambda: all(listed(quorum, node, partition) == (NONE,) for node in CONTROLLERS), "the end known to all"
    )
