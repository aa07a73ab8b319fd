"""UnregisterBroker, carried out: the same on a twin as on real brokers, on a cluster that nobody else needs.

And a decommission and a maintenance on that cluster, to their ends: what the twin is asked in
tests/operations/test_decommission.py and test_maintenance.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kreassign.errors import Rejected
from kreassign.executor.brokers import Blocked
from kreassign.model import NewTopic
from kreassign.operations.connect import connect, connect_controllers
from kreassign.operations.decommission import DecommissionRequest, decommission
from kreassign.operations.decommission_undo import cancel_decommission
from kreassign.operations.maintenance import Way, maintain
from kreassign.operations.run import RunContext
from kreassign.wire import api
from testbed import ClusterSpec, KafkaCluster
from tests.conformance.clusters import NEWEST, Answered, Cluster, InProcess, RealKafka, small_twin

BROKERS = 3
GONE = 2
REFUSED = f"The manual partition assignment includes broker {GONE}, but no such broker is registered."


@pytest.fixture(scope="module")
def own_kafka() -> Iterator[KafkaCluster]:
    """Real brokers for this file alone, all of them live at the end of each test."""
    with KafkaCluster.start(ClusterSpec(brokers=BROKERS)) as kafka:
        yield kafka


@pytest.fixture(params=["twin", pytest.param("kafka", marks=pytest.mark.kafka)])
def apart(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A twin, or real brokers."""
    with ExitStack() as stack:
        if request.param == "twin":
            found = Cluster(InProcess(NEWEST, small_twin(NEWEST, BROKERS)), "orders")
        else:
            found = Cluster(RealKafka(request.getfixturevalue("own_kafka")), "orders")
        yield stack.enter_context(found)


def registered(cluster: Cluster) -> set[int]:
    """The brokers that the cluster lists, fenced ones too."""
    return {one.broker_id for one in cluster.ask(api.DESCRIBE_CLUSTER, 2, include_fenced_brokers=True).brokers}


def test_an_unregistered_dead_broker_registers_again_at_its_start(apart: Cluster) -> None:
    led, other = apart.create((GONE, 0), (0, 1))
    apart.backend.kill(GONE)
    apart.becomes(led, (GONE, 0), {0}, 0)
    assert registered(apart) == {0, 1, 2}
    answer = apart.ask(api.UNREGISTER_BROKER, broker_id=GONE)
    assert (answer.error_code, answer.error_message) == (0, "")
    apart.until(lambda: registered(apart) == {0, 1}, "two brokers registered")
    # Lists go on naming it, and no list can name it anew.
    apart.becomes(led, (GONE, 0), {0}, 0)
    assert apart.alter({other: (1, GONE)}) == {other: Answered(39, REFUSED)}
    again = apart.ask(api.UNREGISTER_BROKER, broker_id=GONE)
    assert (again.error_code, again.error_message) == (102, f"Broker ID {GONE} is not currently registered")
    apart.backend.start(GONE)
    apart.becomes(led, (GONE, 0), {0, GONE}, 0)
    assert registered(apart) == {0, 1, 2}


@pytest.mark.kafka
def test_a_broker_is_cordoned_drained_unregistered_and_starts_again(own_kafka: KafkaCluster, tmp_path: Path) -> None:
    said: list[str] = []
    wanted = DecommissionRequest((GONE,), unregisters=True)
    with (
        Cluster(RealKafka(own_kafka), "orders") as cluster,
        connect(own_kafka.bootstrap_servers) as client,
        connect_controllers(own_kafka.bootstrap_controllers) as controllers,
    ):
        context = RunContext(tmp_path, 0.2, controllers, warn=said.append)
        client.create_topics([NewTopic("led", assignments=((GONE, 0), (1, GONE)))]).raise_if_any()
        emptied = decommission(client, wanted, context, said.append)
        assert isinstance(emptied.next_step, Blocked), said
        assert "empty and still running: stop the process" in str(emptied.next_step)
        assert said[0] == f"cordon the log directories of broker {GONE}"
        assert said[1].startswith(f"drain broker {GONE}: ")
        # Automatic placement passes it over, and from Kafka 4.4 on no list can name it.
        with pytest.raises(Rejected, match="have all their log directories cordoned"):
            client.create_topics([NewTopic("wide", 1, BROKERS)]).raise_if_any()
        with pytest.raises(Rejected, match=f"includes broker {GONE}, but all its log directories are cordoned"):
            client.create_topics([NewTopic("late", assignments=((GONE, 0),))]).raise_if_any()

        cluster.backend.stop(GONE)
        cluster.until(lambda: GONE not in client.describe_cluster().broker_ids, "the broker gone")
        said.clear()
        ended = decommission(client, wanted, context, said.append)
        assert ended.is_finished, (said, ended)
        assert said == [
            f"unregister broker {GONE}",
            f"delete cordoned.log.dirs of the id {GONE}, for a broker that may get it later",
        ]
        assert registered(cluster) == {0, 1}

        cluster.backend.start(GONE)
        cluster.until(lambda: registered(cluster) == {0, 1, GONE}, "the broker registered again")
        assert not any(one.is_cordoned for one in client.describe_log_dirs([GONE])[GONE])
        assert cancel_decommission(client, (GONE,), context).steps == (f"broker {GONE} is not cordoned",)


@pytest.mark.kafka
def test_a_broker_restarted_in_maintenance_leads_again_as_before(own_kafka: KafkaCluster, tmp_path: Path) -> None:
    said: list[str] = []
    before = ((GONE, 0), (0, GONE), (1, GONE))
    with Cluster(RealKafka(own_kafka), "kept") as cluster, connect(own_kafka.bootstrap_servers) as client:
        context = RunContext(tmp_path, 0.2, warn=said.append)
        first, *_ = cluster.create(*before)
        entered = maintain(client, (GONE,), Way.ENTER, context, said.append)
        assert entered.is_finished, (said, entered)
        assert cluster.becomes(first, (0, GONE), {0, GONE}, 0) >= 0
        assert all(one.is_cordoned for one in client.describe_log_dirs([GONE])[GONE])
        with pytest.raises(Rejected, match="have all their log directories cordoned"):
            client.create_topics([NewTopic("broad", 1, BROKERS)]).raise_if_any()

        cluster.backend.stop(GONE)
        cluster.backend.start(GONE)
        cluster.until(lambda: GONE in client.describe_cluster().broker_ids, "the broker back")
        left = maintain(client, (GONE,), Way.EXIT, context, said.append)
        assert left.is_finished, (said, left)
        cluster.becomes(first, (GONE, 0), {0, GONE}, GONE)
        (found,) = client.describe_topics(["kept"]).raise_if_any().values()
        assert tuple(partition.replicas for partition in found.partitions) == before
        assert not any(one.is_cordoned for one in client.describe_log_dirs([GONE])[GONE])
