"""KIP-183 on the twin: `elect_preferred_leaders` and what its result says."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import InputError, Rejected
from kreassign.model import Batch, ElectionType, PreferredElectionResult, TopicPartition
from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import format_election
from kreassign.twin.access import Permissions
from kreassign.twin.blueprint import PartitionPlan, TopicPlan, small_cluster
from kreassign.twin.cluster import Twin
from kreassign.twin.controller.leader_and_isr import ElectLeaders
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving
from kreassign.twin.transport import TwinTransport
from kreassign.twin.version import DEFAULT, KafkaVersion, Versions
from kreassign.wire import api
from tests.twin.zookeeper.zookeeper_cluster import ZooKeeperCluster

T0, T1, T2, NOWHERE = (TopicPartition("t", number) for number in (0, 1, 2, 7))
V0_ONLY = replace(DEFAULT, offered={**DEFAULT.offered, api.ELECT_LEADERS.key: Versions(0, 0)})


def cluster(version: KafkaVersion = DEFAULT, permissions: Permissions | None = None) -> Twin:
    """Partition 0 is led by its preferred replica; 1 is not; the preferred replica of 2 is out of sync."""
    plans = (PartitionPlan((0, 1)), PartitionPlan((1, 2), isr=(2, 1)), PartitionPlan((3, 0), isr=(0,)))
    blueprint = replace(small_cluster(4), topics=(TopicPlan("t", plans),))
    twin = Twin(blueprint, TwinSettings(version, permissions=permissions))
    twin.crash(3)
    return twin


@pytest.fixture(params=[DEFAULT, V0_ONLY], ids=["newest version", "version 0 only"])
def twin(request: pytest.FixtureRequest) -> Twin:
    return cluster(request.param)


def client_of(twin: Twin) -> AdminClient:
    transport = TwinTransport(twin)
    settings = client_settings(bootstrap_servers="broker-0:9092")
    return AdminClient.connect(settings, clock=transport, transport=transport)


@pytest.fixture
def client(twin: Twin) -> Iterator[AdminClient]:
    with client_of(twin) as found:
        yield found


def leader(twin: Twin, partition: TopicPartition) -> int:
    state = twin.metadata.partition(partition)
    assert state is not None
    return state.leader


def test_the_preferred_replica_leads_when_the_answer_comes(twin: Twin, client: AdminClient) -> None:
    result = client.elect_preferred_leaders([T1])
    assert leader(twin, T1) == 1
    result.partition_result(T1)
    result.all()
    assert result.partitions() == {T1}


def test_who_is_led_by_the_preferred_replica_already_is_well(client: AdminClient) -> None:
    result = client.elect_preferred_leaders([T0, T1])
    result.partition_result(T0)
    result.all()
    assert result.partitions() == {T0, T1}


def test_a_partition_named_twice_is_no_error(twin: Twin, client: AdminClient) -> None:
    result = client.elect_preferred_leaders([T1, T1, T0, T1])
    result.all()
    assert result.partitions() == {T0, T1}
    assert leader(twin, T1) == 1


def test_none_means_all_and_tells_who_needed_an_election(twin: Twin, client: AdminClient) -> None:
    result = client.elect_preferred_leaders(None)
    assert leader(twin, T1) == 1
    assert result.partitions() == {T1, T2}
    result.partition_result(T1)
    with pytest.raises(Rejected, match=r"The preferred leader was not available\."):
        result.partition_result(T2)


def test_every_partition_has_its_own_outcome(twin: Twin, client: AdminClient) -> None:
    result = client.elect_preferred_leaders([T1, T2, NOWHERE])
    result.partition_result(T1)
    with pytest.raises(Rejected) as unavailable:
        result.partition_result(T2)
    with pytest.raises(Rejected) as unknown:
        result.partition_result(NOWHERE)
    assert (unavailable.value.code, unknown.value.code) == (80, 3)
    with pytest.raises(Rejected):
        result.all()
    assert leader(twin, T1) == 1


def test_no_partitions_are_no_election(twin: Twin, client: AdminClient) -> None:
    result = client.elect_preferred_leaders([])
    result.all()
    assert result.partitions() == frozenset()
    assert leader(twin, T1) == 2


def test_a_partition_that_was_not_asked_for_has_no_result() -> None:
    result = PreferredElectionResult(Batch({T0: None}, {}))
    with pytest.raises(InputError, match="no preferred leader election was attempted for partition t-1"):
        result.partition_result(T1)


def test_a_time_out_of_nothing_elects_nobody(twin: Twin, client: AdminClient) -> None:
    with pytest.raises(Exception, match="time"):
        client.elect_preferred_leaders([T1], timeout_ms=0).all()
    assert leader(twin, T1) == 2


def test_elections_at_the_same_time_are_held_one_after_the_other() -> None:
    twin = cluster()
    with serving(twin) as thread, ThreadPoolExecutor(8) as clients:

        def elect(_: int) -> bool:
            with AdminClient.connect(client_settings(bootstrap_servers=thread.bootstrap_servers)) as client:
                return client.elect_leaders([T1]).failed == {}

        assert sorted(clients.map(elect, range(8))) == [False] * 7 + [True]
    state = twin.metadata.partition(T1)
    assert state is not None
    assert (state.leader, state.leader_epoch) == (1, 1)


# The znode and the request


LED_BY_2 = TopicPartition("foo", 0)


def zookeeper_mode() -> ZooKeeperCluster:
    """Partition foo-0 on 1 and 2 is led by 2, and its preferred replica is back in sync."""
    found = ZooKeeperCluster([1, 2]).begin()
    found.twin.crash(1)
    found.settle().twin.start(1)
    found.settle()
    assert (found.state[0], found.state[2]) == (2, {1, 2})
    return found


def by_znode(cluster: ZooKeeperCluster) -> None:
    """Leave an election in ZooKeeper, as the tool does, which waits for no answer."""
    if paths.PREFERRED_REPLICA_ELECTION not in cluster.tree.znodes:
        cluster.tree.put(paths.PREFERRED_REPLICA_ELECTION, format_election([LED_BY_2]))


@pytest.mark.parametrize(
    ("order", "code"),
    [("znode request handled", 0), ("znode handled request", 84), ("request znode handled", 0),
     ("znode request request handled", 84), ("znode handled znode request handled", 84)],
)  # fmt: skip
def test_an_election_is_held_once_whichever_way_it_is_asked_for(order: str, code: int) -> None:
    """The flag of KIP-183: the unhandled znode and a request are about the same partition."""
    cluster = zookeeper_mode()
    epoch = cluster.state[1]
    codes: list[int] = []
    for step in order.split():
        match step:
            case "znode":
                by_znode(cluster)
            case "handled":
                cluster.controller.process_changes()
            case _:
                command = ElectLeaders(ElectionType.PREFERRED, (("foo", (0,)),))
                codes.append(cluster.controller.elect_leaders(command).topics[0].outcomes[0][1].code)
    assert (cluster.state[0], cluster.state[1], codes[-1]) == (1, epoch + 1, code)
    assert paths.PREFERRED_REPLICA_ELECTION not in cluster.tree.znodes


def test_of_znodes_and_requests_at_the_same_time_one_elects() -> None:
    cluster = zookeeper_mode()
    epoch = cluster.state[1]
    with serving(cluster.twin) as thread, ThreadPoolExecutor(8) as clients:
        together = Barrier(8)

        def ask(number: int) -> set[int]:
            together.wait()
            if number % 2:
                thread.do(lambda _: by_znode(cluster))
                thread.do(lambda _: cluster.controller.process_changes())
                return set()
            with AdminClient.connect(client_settings(bootstrap_servers=thread.bootstrap_servers)) as client:
                failed = client.elect_leaders([LED_BY_2]).failed.values()
                return {error.code for error in failed if isinstance(error, Rejected)} or {0}

        answers = list(clients.map(ask, range(8)))
    assert sum(0 in codes for codes in answers) <= 1
    assert set.union(*answers) <= {0, 84}
    assert (cluster.state[0], cluster.state[1]) == (1, epoch + 1)
    assert paths.PREFERRED_REPLICA_ELECTION not in cluster.tree.znodes
