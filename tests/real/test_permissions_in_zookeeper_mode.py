"""Permissions of a principal on Kafka with ZooKeeper: those that the design documents name, and no less."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kreassign.errors import Rejected
from kreassign.model import TopicPartition
from testbed import ClusterSpec, KafkaCluster
from testbed.waiting import wait_until
from tests.real.admin_checks import client_of, created, partitions_of, wait_idle
from tests.real.kip_checks import tool

CLUSTER_AUTHORIZATION_FAILED = 31
_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"


@pytest.fixture(scope="module")
def guarded() -> Iterator[KafkaCluster]:
    """Allow only the ACLs from the first one on; before it everything is allowed."""
    config = {"authorizer.class.name": _AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
    with (
        KafkaCluster.start(ClusterSpec(version="3.9.1", brokers=3, mode="zookeeper", broker_config=config)) as cluster,
        client_of(cluster) as client,
    ):
        created(client, "foo", (0, 1))
        # Brokers have no other name than their clients here, and need this for themselves.
        allow(cluster, "ClusterAction")
        wait_until(lambda: code_of(client.list_partition_reassignments) != 0, what="the ACL")
        yield cluster


def allow(cluster: KafkaCluster, operation: str) -> None:
    """Written into ZooKeeper, which needs no permission of a broker."""
    zookeeper = f"zookeeper.connect={cluster.zookeeper_connect}"
    done = cluster.java_tool(
        "kafka.admin.AclCommand", "--authorizer", _AUTHORIZER, "--authorizer-properties", zookeeper,
        "--add", "--allow-principal", "User:ANONYMOUS", "--operation", operation, "--cluster",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr


def code_of(call: Callable[[], object]) -> int:
    """The code with which a call is refused; 0 when it is not."""
    try:
        call()
    except Rejected as refusal:
        return refusal.code
    return 0


def test_in_zookeeper_mode_each_call_needs_the_permission_of_its_document(guarded: KafkaCluster) -> None:
    partition = TopicPartition("foo", 0)
    with client_of(guarded) as client:
        calls = {
            "list": client.list_partition_reassignments,
            "move": lambda: client.alter_partition_reassignments({partition: (2, 1)}).raise_if_any(),
            "elect": lambda: client.elect_leaders([partition]).raise_if_any(),
        }
        assert [code_of(call) for call in calls.values()] == [CLUSTER_AUTHORIZATION_FAILED] * 3
        done = tool("preferred_replica_election", "--bootstrap-server", guarded.bootstrap_servers)
        assert done.exit_code == 1
        assert "Not authorized to perform leader election" in done.stderr
        assert partitions_of(client, "foo")[0].replicas == (0, 1)

        allow(guarded, "Describe")
        wait_until(lambda: code_of(calls["list"]) == 0, what="listing allowed")
        assert [code_of(calls[name]) for name in ("move", "elect")] == [CLUSTER_AUTHORIZATION_FAILED] * 2

        allow(guarded, "Alter")
        wait_until(lambda: code_of(calls["move"]) == 0, what="moving allowed")
        wait_idle(client, partition)
        assert code_of(calls["elect"]) in {0, 84}
