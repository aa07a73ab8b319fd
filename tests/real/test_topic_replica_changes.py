"""`kafka-topics --alter --replication-factor` and `--replica-assignment` on real Kafka."""

from __future__ import annotations

import pytest

from kreassign.kafka_tools.topics import main
from kreassign.model import TopicPartition
from testbed import KafkaCluster
from testbed.waiting import wait_until
from tests.real.admin_checks import client_of, created, partitions_of, wait_everywhere, wait_idle, wait_replicas


def test_factor_and_assignment_are_announced_and_reached(
    kafka: KafkaCluster, topic_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--bootstrap-server", kafka.bootstrap_servers, "--alter", "--topic", topic_name)
    with client_of(kafka) as client:
        first, second = created(client, topic_name, (0, 1), (1, 2))

        def replicas() -> list[tuple[int, ...]]:
            return [one.replicas for one in partitions_of(client, topic_name)]

        def reported() -> set[tuple[int, TopicPartition]]:
            found = client.describe_log_dirs([0, 1, 2]).ok.items()
            return {(broker, one.topic_partition) for broker, dirs in found for held in dirs for one in held.replicas}

        copies = {(0, first), (1, first), (1, second), (2, second)}
        wait_until(lambda: copies <= reported(), what="log directories that name all copies")
        assert main([*words, "--replication-factor", "3", "--dry-run"]) == 0
        assert "2 to be copied (0 B), 0 to be deleted" in capsys.readouterr().out
        assert replicas() == [(0, 1), (1, 2)]

        assert main([*words, "--replication-factor", "3"]) == 0
        wait_everywhere(
            client, topic_name, lambda found: [len(one.isr) for one in found] == [3, 3], what="three in sync each"
        )
        wait_idle(client, first, second)
        assert main([*words, "--replica-assignment", "2:0,1:2"]) == 0, capsys.readouterr()
        wait_replicas(client, first, (2, 0))
        wait_replicas(client, second, (1, 2))
        assert main([*words, "--replica-assignment", "2:0,1:77"]) == 1
        assert "broker 77, but no such broker is registered" in capsys.readouterr().out
