"""Predictions of short runs on real brokers: some twenty seconds each, at different rates and paces.

Four brokers of one machine; a topic whose second replicas all move on by one broker, and in the next run back.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.eta_told import ALL_AT_ONCE, Told, at_most
from kreassign.admin import AdminClient, client_settings
from kreassign.executor.lease import LeasePolicy
from kreassign.model import TopicPartition
from kreassign.model.pace import NO_LIMITS, Pace
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.run import Phase, RunHistory
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import RunContext, RunRequest, Show
from kreassign.operations.whole_runs import execute_whole
from testbed import ClusterSpec, KafkaCluster
from testbed.producing import Producing
from testbed.records import load_topic

BROKERS, PARTITIONS, RUNS = 4, 12, 3
POLL_S = 1.0
RECORD_BYTES = 5_000


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to run: throttle in bytes per second, size of a partition on the mean, records written per second."""

    name: str
    throttle: int
    mean_bytes: int
    records_per_s: float = 0.0
    pace: Pace = NO_LIMITS


KINDS = (
    Kind("Kafka, throttle 1 MB/s", 1_000_000, 4_000_000),
    Kind("Kafka, throttle 5 MB/s", 5_000_000, 20_000_000),
    Kind("Kafka, throttle 5 MB/s, written to", 5_000_000, 15_000_000, 60.0),
    Kind("Kafka, throttle 5 MB/s, 2 moves at a time", 5_000_000, 10_000_000, 0.0, at_most(2)),
    Kind("Kafka, throttle 5 MB/s, all at once", 5_000_000, 20_000_000, 0.0, ALL_AT_ONCE),
)


def runs() -> Iterator[tuple[str, list[list[Told]]]]:
    """Predictions, by kind of run."""
    with KafkaCluster.start(ClusterSpec(brokers=BROKERS)) as cluster:
        for number, kind in enumerate(KINDS):
            topic = f"moved-{number}"
            cluster.create_topic(topic, [_replicas(partition, 0) for partition in range(PARTITIONS)])
            chance = random.Random(number)
            sizes = {one: int(kind.mean_bytes * chance.lognormvariate(-0.2, 0.6)) for one in range(PARTITIONS)}
            load_topic(cluster.bootstrap_servers, topic, sizes)
            yield kind.name, [_told(cluster, kind, topic, turn % 2) for turn in range(1, RUNS + 1)]


def _replicas(partition: int, side: int) -> tuple[int, int]:
    """On one side, and on the other."""
    leader = partition % BROKERS
    step = 1 + (partition // BROKERS + side) % (BROKERS - 1)
    return leader, (leader + step) % BROKERS


def _told(cluster: KafkaCluster, kind: Kind, topic: str, side: int) -> list[Told]:
    """Predictions of one run until the last of its moves was over."""
    targets = (PartitionAssignment(TopicPartition(topic, one), _replicas(one, side)) for one in range(PARTITIONS))
    request = RunRequest(
        PlanFile(Plan(tuple(targets))),
        ThrottleRates(kind.throttle),
        pace=kind.pace,
        measure_for_s=5.0 if kind.records_per_s else 0.0,
    )
    said: list[RunHistory] = []

    @contextmanager
    def watch(run_id: str, stop: Callable[[], None] | None) -> Iterator[Show]:
        del run_id, stop
        yield said.append

    servers = cluster.bootstrap_servers
    with ExitStack() as stack:
        state_dir = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if kind.records_per_s:
            writes = Producing(
                servers, topic, partitions=PARTITIONS, records_per_s=kind.records_per_s, value_bytes=RECORD_BYTES
            )
            stack.enter_context(writes)
        client = stack.enter_context(AdminClient.connect(client_settings(bootstrap_servers=servers)))
        found = execute_whole(client, request, RunContext(state_dir, POLL_S, watch=watch, lease=LeasePolicy.OFF)).run
    if found.state != "done":
        raise RuntimeError(f"{kind.name}: {found.state}, {found.problems}")
    moving = [each for each in said if each.state is Phase.MOVING]
    begun_ms = moving[0].measured.at_ms
    return [Told((each.measured.at_ms - begun_ms) / 1000, each.measured.end) for each in moving]
