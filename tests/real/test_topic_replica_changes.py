"""`kafka-topics --alter --replication-factor` and `--replica-assignment` on real Kafka."""

from __future__ import annotations

import pytest

from kreassign.kafka_tools.topics import main
from kreassign.model import NewTopic, TopicPartition
from testbed import KafkaCluster
from testbed.waiting import wait_until
from tests.real.admin_checks import client_of


def test_factor_and_assignment_are_announced_and_reached(
    kafka: KafkaCluster, topic_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [TopicPartition(topic_name, number) for number in (0, 1)]
    words = ("--bootstrap-server", kafka.bootstrap_servers, "--alter", "--topic", topic_name)
    with client_of(kafka) as client:
        client.create_topics([NewTopic(topic_name, assignments=((0, 1), (1, 2)))]).raise_if_any()

        def replicas() -> list[tuple[int, ...]]:
            # A broker may not know the topic yet: its metadata lags behind the controller's answer.
            described = client.describe_topics([topic_name]).ok.get(topic_name)
            if described is None or client.list_partition_reassignments(both):
                return []
            return [one.replicas for one in described.partitions]

        wait_until(lambda: len(replicas()) == 2, what="the topic is there")
        assert main([*words, "--replication-factor", "3", "--dry-run"]) == 0
        assert "2 to be copied (0 B), 0 to be deleted" in capsys.readouterr().out
        assert replicas() == [(0, 1), (1, 2)]

        assert main([*words, "--replication-factor", "3"]) == 0
        wait_until(lambda: [len(one) for one in replicas()] == [3, 3], what="three replicas each")
        assert main([*words, "--replica-assignment", "2:0,1:2"]) == 0, capsys.readouterr()
        wait_until(lambda: replicas() == [(2, 0), (1, 2)], what="the assignment is reached")
        assert main([*words, "--replica-assignment", "2:0,1:77"]) == 1
        assert "broker 77, but no such broker is registered" in capsys.readouterr().out
