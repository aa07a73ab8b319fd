"""`kafka-reassign-partitions`, ours against Kafka's own, side by side on the same cluster.

The moves go to a fifth broker that asks for more bytes than there are before it takes any, so they stay open until
they are cancelled. Each round runs execute, list, verify and cancel with one tool, then with the other, so that both
meet the same cluster in the same state.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from functools import partial
from pathlib import Path

from bench import topics
from bench.process import Run, Spread, run
from kreassign.admin import AdminClient, client_settings
from kreassign.model.cluster import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan, format_plan
from testbed import ClusterSpec, KafkaCluster
from testbed.waiting import wait_until

JAVA_TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
SOURCES = 4
DESTINATION = 4
NEVER_CATCH_UP = {
    "replica.fetch.min.bytes": "1000000000",
    "replica.fetch.wait.max.ms": "3600000",
    "replica.lag.time.max.ms": "3600000",
    "replica.socket.timeout.ms": "3600000",
}
ACTIONS = ("--execute", "--list", "--verify", "--cancel")


def compare(*, partitions: int, moving: int, runs: int) -> None:
    """Print the table for a cluster of so many partitions, `moving` of which change."""
    spec = ClusterSpec(brokers=SOURCES + 1, broker_config={"broker.session.timeout.ms": "3600000"})
    spec = ClusterSpec(brokers=SOURCES + 1, broker_config=NEVER_CATCH_UP)
    with KafkaCluster.start(spec) as cluster:
        settings = client_settings(bootstrap_servers=cluster.bootstrap_servers)
        with AdminClient.connect(settings) as admin:
            created = topics.create(admin, partitions, SOURCES, replication_factor=1)
            topics.write_one_record_each(cluster.bootstrap_servers, created[:moving])
            plan = cluster.folder / "plan.json"
            plan.write_text(format_plan(_plan(created, moving)))
            measured: dict[tuple[str, str], list[Run]] = defaultdict(list)
            for number in range(runs + 1):
                for tool, prefix in _commands(cluster).items():
                    # A copy that is not deleted yet would be in sync the moment it is wanted again.
                    wait_until(partial(_is_empty, admin), timeout_s=60, what="the fifth broker without copies")
                    finished = _round(prefix, cluster, plan, moving)
                    if number > 0:  # The first round warms the file caches of both.
                        for action, each in finished.items():
                            measured[action, tool].append(each)
        _print(measured, partitions, moving, runs)


def _round(prefix: tuple[str, ...], cluster: KafkaCluster, plan: Path, moving: int) -> dict[str, Run]:
    finished = {action: run([*prefix, *_arguments(action, cluster, plan)]) for action in ACTIONS}
    listed = finished["--list"].output.count("adding:")
    if listed != moving:
        raise RuntimeError(f"{prefix[0]} listed {listed} moves, not {moving}")
    return finished


def _is_empty(admin: AdminClient) -> bool:
    return not any(log_dir.replicas for log_dir in admin.describe_log_dirs([DESTINATION])[DESTINATION])


def _plan(created: list[TopicPartition], moving: int) -> Plan:
    return Plan(
        tuple(
            PartitionAssignment(
                key, (DESTINATION, key.partition % SOURCES) if number < moving else (key.partition % SOURCES,)
            )
            for number, key in enumerate(created)
        )
    )


def _commands(cluster: KafkaCluster) -> dict[str, tuple[str, ...]]:
    ours = str(Path(sys.executable).with_name("kafka-reassign-partitions"))
    # Without the testbed's flags for quick starts: as Kafka's own script would run it, with its 256 MB heap.
    return {"kafka": cluster.java_command(JAVA_TOOL, quick=False), "kreassign": (ours,)}


def _arguments(action: str, cluster: KafkaCluster, plan: Path) -> tuple[str, ...]:
    arguments: tuple[str, ...] = ("--bootstrap-server", cluster.bootstrap(cluster.spec.listeners[0]), action)
    if action == "--list":
        return arguments
    arguments += ("--reassignment-json-file", str(plan))
    return arguments if action == "--execute" else (*arguments, "--preserve-throttles")


def _print(measured: dict[tuple[str, str], list[Run]], partitions: int, moving: int, runs: int) -> None:
    print(f"{partitions} partitions, {moving} of them moving, {runs} rounds; median (least to most)\n")
    print("| action | kafka s | kreassign s | wall ratio | kafka MiB | kreassign MiB | memory ratio |")
    print("|---|---|---|---|---|---|---|")
    for action in ACTIONS:
        kafka, ours = measured[action, "kafka"], measured[action, "kreassign"]
        wall = Spread(tuple(b.wall_s / a.wall_s for a, b in zip(kafka, ours, strict=True)))
        memory = Spread(tuple(b.peak_mib / a.peak_mib for a, b in zip(kafka, ours, strict=True)))
        cells = (
            action,
            Spread(tuple(a.wall_s for a in kafka)),
            Spread(tuple(b.wall_s for b in ours)),
            wall,
            Spread(tuple(a.peak_mib for a in kafka)),
            Spread(tuple(b.peak_mib for b in ours)),
            memory,
        )
        print(f"| {' | '.join(map(str, cells))} |")
