"""Times of reading a big cluster: describe, list and log directories, phase by phase."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable

from bench import topics
from bench.process import Spread
from kreassign.admin import AdminClient, client_settings
from testbed import ClusterSpec, KafkaCluster

BROKERS = 4


def measure(*, partitions: int, runs: int) -> None:
    """Print seconds per phase on a cluster of so many partitions, each in a fresh client."""
    with KafkaCluster.start(ClusterSpec(brokers=BROKERS)) as cluster:
        settings = client_settings(bootstrap_servers=cluster.bootstrap_servers)
        with AdminClient.connect(settings) as admin:
            topics.create(admin, partitions, BROKERS, replication_factor=1)
        seconds: dict[str, list[float]] = defaultdict(list)
        for _ in range(runs):
            with AdminClient.connect(settings) as admin:
                phases: dict[str, Callable[[], object]] = {
                    "connect and describe cluster": admin.describe_cluster,
                    "list topics": admin.list_topics,
                    "describe topics": admin.describe_topics,
                    "list reassignments": admin.list_partition_reassignments,
                    "log directories": admin.describe_log_dirs,
                }
                for name, phase in phases.items():
                    started = time.perf_counter()
                    phase()
                    seconds[name].append(time.perf_counter() - started)
        print(f"{partitions} partitions on {BROKERS} brokers, {runs} runs; seconds, median (least to most)\n")
        print("| phase | s |")
        print("|---|---|")
        for name, values in seconds.items():
            print(f"| {name} | {Spread(tuple(values))} |")
        totals = tuple(map(sum, zip(*seconds.values(), strict=True)))
        print(f"| all | {Spread(totals)} |")
