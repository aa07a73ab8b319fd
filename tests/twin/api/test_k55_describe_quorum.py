from __future__ import annotations

from kreassign.twin.access import Permissions
from kreassign.wire import api
from tests.twin.asking import ask, twin

TOPIC = api.DESCRIBE_QUORUM.request.TopicData


def wanted(name: str = "__cluster_metadata", number: int = 0) -> list[object]:
    return [TOPIC(topic_name=name, partitions=[TOPIC.PartitionData(partition_index=number)])]


def test_the_controller_votes_and_live_brokers_watch() -> None:
    asked = twin()
    asked.stop(3)
    response = ask(asked, api.DESCRIBE_QUORUM, 2, topics=wanted())
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.high_watermark) == (0, 100, asked.metadata.offset)
    assert [one.replica_id for one in partition.current_voters] == [100]
    assert [one.replica_id for one in partition.observers] == [0, 1, 2]
    (node,) = response.nodes
    assert (node.node_id, node.listeners[0].host, node.listeners[0].port) == (100, "controller-100", 9093)


def test_there_is_no_quorum_of_anything_else() -> None:
    response = ask(twin({"orders": [[0]]}), api.DESCRIBE_QUORUM, 2, topics=wanted("orders"))
    assert response.topics[0].partitions[0].error_code == 3


def test_who_may_not_see_is_told_so() -> None:
    response = ask(twin(permissions=Permissions(frozenset())), api.DESCRIBE_QUORUM, 2, topics=wanted())
    assert (response.error_code, response.topics) == (31, [])
