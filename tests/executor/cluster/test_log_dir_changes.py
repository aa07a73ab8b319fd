"""Asking brokers to have copies in other directories; runs that do so: tests/executor/test_directories_on_twin.py."""

from __future__ import annotations

from kreassign.admin import AdminClient, client_settings
from kreassign.executor.cluster.changes import request_log_dirs
from kreassign.model import TopicPartition, TopicPartitionReplica
from kreassign.twin.access import ALL_TOPICS, ANONYMOUS, Allow, Operation, Permissions
from kreassign.twin.transport import TwinTransport
from tests.twin.asking import twin


def test_a_refusal_names_the_permission_that_it_asks_for() -> None:
    looks = {Allow(ANONYMOUS, Operation.DESCRIBE, topic) for topic in (None, ALL_TOPICS)}
    transport = TwinTransport(twin({"t": [[0, 1]]}, permissions=Permissions(frozenset(looks))))
    settings = client_settings(bootstrap_servers="broker-0:9092")
    with AdminClient.connect(settings, clock=transport, transport=transport) as client:
        answer = request_log_dirs(client, {TopicPartitionReplica(0, "t", 0): "/data/0/d1"})
    (refusal,) = answer.refused
    assert refusal.topic_partition == TopicPartition("t", 0)
    assert refusal.message.startswith("/data/0/d1 on broker 0: permission is missing: Alter on the cluster; allow it")
