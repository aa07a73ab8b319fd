"""First runs on other distributions: the doctor names them, and a run ends well or is refused before it changes any."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kreassign.errors import ClusterError, IllegalPlan, InputError
from kreassign.executor.history.diagnosis import ClusterReadings, notes
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.model import Broker, Cluster, Partition, TopicPartition
from kreassign.model.distributions import balancers, recognise, sure_balancer
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.run import MoveStatus
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.doctor import diagnose_cluster
from kreassign.operations.maintenance import Way, maintain
from kreassign.operations.plan_inputs import inputs_of_cluster
from kreassign.operations.rollback import plan_rollback
from kreassign.operations.run import RunContext
from kreassign.operations.twin import scenario_of
from kreassign.planner.problem.policy import PlanPolicy
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.faults import inject
from kreassign.twin.version import DEFAULT, kafka_version
from tests.executor.twin_runs import TwinRig

Rigs = Callable[[str], TwinRig]
RATE = 50_000_000


@pytest.fixture
def rig_of(tmp_path: Path) -> Rigs:
    def make(name: str) -> TwinRig:
        scenario = scenario_of(f"distribution/{name}")
        settings = TwinSettings(
            kafka_version(scenario.kafka_version or DEFAULT.name), permissions=scenario.security.permissions
        )
        return TwinRig(tmp_path, [], make_twin=lambda _: Twin(scenario.blueprint, settings))

    return make


def planned(rig: TwinRig) -> Plan:
    """Four partitions that give a replica to broker 4: two their last, two their first."""
    found = {TopicPartition("orders", number): number % 2 for number in range(4)}
    present = lists(rig)
    return Plan(
        tuple(
            PartitionAssignment(one, (4, *present[one][1:]) if is_first else (*present[one][:-1], 4))
            for one, is_first in found.items()
        )
    )


def lists(rig: TwinRig) -> dict[object, tuple[int, ...]]:
    topics = rig.client.describe_topics().ok.values()
    return {one.topic_partition: one.replicas for topic in topics for one in topic.partitions}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("redpanda", "Redpanda, by its cluster id redpanda.2d339cd9"),
        ("strimzi", "Strimzi, by its log directory /var/lib/kafka/data-0/kafka-log0"),
        ("msk", "perhaps Amazon MSK, by its topic __amazon_msk_canary"),
        ("msk-express", "perhaps Amazon MSK"),
        ("confluent-platform", "perhaps Confluent Platform, by its topic _confluent-command"),
    ],
)
def test_the_doctor_names_the_distribution_and_how_it_knows(rig_of: Rigs, tmp_path: Path, name: str, text: str) -> None:
    assert str(diagnose_cluster(rig_of(name).client, tmp_path).distribution).startswith(text)


@pytest.mark.parametrize(
    ("cluster_id", "host", "topics", "text"),
    [
        ("M8XbVDmITl6ZTs4WNdt8eg", "kafka-1", ("orders",), "Apache Kafka"),
        ("M8XbVDmITl6ZTs4WNdt8eg", "b-1.prod.x1y2z3.c4.kafka.eu-west-1.amazonaws.com", (), "Amazon MSK, by its host"),
        ("M8XbVDmITl6ZTs4WNdt8eg", "prod-kafka-0.prod-kafka-brokers.ns.svc", (), "Strimzi, by its host"),
        ("lkc-1", "e-0001.westeurope.azure.confluent.cloud", (), "Confluent Cloud, by its cluster id"),
        ("x", "e-0001.westeurope.azure.confluent.cloud", ("__amazon_msk_canary",), "Confluent Cloud, by its host"),
        ("redpanda.1", "x.confluent.cloud", (), "unknown: it shows signs of Redpanda and of Confluent Cloud"),
    ],
)
def test_a_distribution_is_recognised_by_proof_before_hints(
    cluster_id: str, host: str, topics: tuple[str, ...], text: str
) -> None:
    cluster = Cluster(cluster_id, 1, (Broker(1, host, 9092),))
    assert str(recognise(cluster, topics=topics)).startswith(text)


@pytest.mark.parametrize(
    ("host", "topics", "named"),
    [
        ("kafka-1", ("orders", "__KafkaCruiseControl", "cruisecontrol.metrics"), ()),
        ("kafka-1", ("__KafkaCruiseControlModelTrainingSamples",), ("Cruise Control, by its topic __Kafka",)),
        ("p-0.p-kafka-brokers", ("strimzi.cruisecontrol.metrics",), ("a KafkaRebalance of Strimzi", "Cruise Control")),
        ("x.confluent.cloud", (), ("Confluent Cloud, by x.confluent.cloud",)),
        ("kafka-1", ("_confluent-command",), ("Confluent's Self-Balancing, by _confluent-command",)),
        ("b-1.p.c4.kafka.eu-west-1.amazonaws.com", (), ("MSK's intelligent rebalancing, by b-1",)),
    ],
)
def test_what_may_move_partitions_by_itself_is_named_by_its_sign(
    host: str, topics: tuple[str, ...], named: tuple[str, ...]
) -> None:
    seen = balancers(recognise(Cluster("x", 1, (Broker(1, host, 9092),)), topics=topics), topics)
    assert len(seen) == len(named)
    assert all(one.startswith(text) for one, text in zip(seen, named, strict=True))


@pytest.mark.parametrize(("cluster_id", "host", "sure"), [
    ("redpanda.1", "kafka-1", "Redpanda's partition balancer, by redpanda.1"),
    ("x", "x.confluent.cloud", "Confluent Cloud, by x.confluent.cloud"),
    ("x", "p-0.p-kafka-brokers", ""),
    ("x", "kafka-1", ""),
])  # fmt: skip
def test_only_what_always_balances_is_named_as_sure(cluster_id: str, host: str, sure: str) -> None:
    cluster, topics = Cluster(cluster_id, 1, (Broker(1, host, 9092),)), ("_confluent-balancer-x",)
    assert sure_balancer(recognise(cluster, topics=topics)) == sure


def test_the_doctor_names_cruise_control() -> None:
    partition = Partition(TopicPartition("__CruiseControlMetrics", 0), (0,), (0,), 0)
    (note,) = notes(ClusterReadings((0,), (partition,)))
    assert note.startswith("topic __CruiseControlMetrics is one of Cruise Control: where that runs, it may move")


@pytest.mark.parametrize(
    ("name", "throttle"), [("redpanda", None), ("strimzi", RATE), ("msk", RATE), ("confluent-platform", RATE)]
)
def test_a_first_run_ends_well_and_is_taken_back(rig_of: Rigs, name: str, throttle: int | None) -> None:
    rig = rig_of(name)
    before = lists(rig)
    plan = planned(rig)
    started = prepare(rig.client, plan, RunSettings("run-1", rig.transport.now_ms(), ThrottleRates(throttle)))
    if name == "strimzi":
        rig.after(3, lambda: inject(rig.twin, "clear-lists"))
    done = rig.run(started)
    assert [view.status for view in done.moves] == [MoveStatus.COMPLETE] * len(plan)
    back = plan_rollback(rig.client, done)
    settings = RunSettings("run-2", rig.transport.now_ms(), ThrottleRates(throttle))
    rig.run(prepare(rig.client, back.plan, settings))
    assert lists(rig) == before
    assert not any("throttled" in key for values in rig.twin.metadata.configs.values() for key in values)


@pytest.mark.parametrize(
    ("name", "throttle", "text"),
    [
        ("redpanda", RATE, r"refuses replication throttles: Setting broker properties.*This is Redpanda: run without"),
        ("msk-express", None, r"the cluster refuses reassignments: Partitions of this cluster"),
    ],
)
def test_a_run_that_the_distribution_refuses_is_refused_first(
    rig_of: Rigs, name: str, throttle: int | None, text: str
) -> None:
    rig = rig_of(name)
    before = lists(rig), dict(rig.twin.metadata.configs)
    with pytest.raises(IllegalPlan, match=text):
        prepare(rig.client, planned(rig), RunSettings("run-1", 0, ThrottleRates(throttle)))
    assert (lists(rig), dict(rig.twin.metadata.configs)) == before


def test_confluent_cloud_is_refused_with_who_places_its_partitions(rig_of: Rigs, tmp_path: Path) -> None:
    rig = rig_of("confluent-cloud")
    text = "permission is missing: Describe on the cluster.* This is Confluent Cloud: Confluent balances this cluster"
    with pytest.raises(ClusterError, match=text):
        inputs_of_cluster(rig.client, PlanPolicy(), measure_for_s=0.0)
    with pytest.raises(ClusterError, match=text):
        diagnose_cluster(rig.client, tmp_path)


def test_a_hint_explains_a_refusal_too(rig_of: Rigs) -> None:
    rig = rig_of("msk-express")
    with pytest.raises(IllegalPlan, match=r"This is perhaps Amazon MSK: on Express brokers, pause intelligent rebal"):
        prepare(rig.client, planned(rig), RunSettings("run-1", 0, ThrottleRates(None)))


def test_a_maintenance_without_elections_is_refused_first(rig_of: Rigs, tmp_path: Path) -> None:
    rig = rig_of("redpanda")
    before = lists(rig)
    text = "it has no ElectLeaders. This is Redpanda: take leading off a broker with `rpk cluster maintenance enable`"
    with pytest.raises(InputError, match=text):
        maintain(rig.client, (1,), Way.ENTER, RunContext(tmp_path), clock=rig.transport)
    assert lists(rig) == before
