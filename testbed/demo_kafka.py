"""`make demo-kafka`: the whole workflow on a real cluster, one `kreassign` command per step.

Four brokers with unevenly placed data and a producer that keeps writing; a fifth, empty broker joins; then
snapshot → samples → load model → plan → run → verify → snapshot → report, and at the end every record that was ever
acknowledged is read back.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed import ClusterSpec, JarsMissing, JavaMissing, KafkaCluster, RecordsLost
from testbed.producing import Producing
from testbed.records import Ledger, load_topic, verify_readable
from testbed.releases import DEFAULT

OUTPUT = Path("build/demo")
THROTTLE = "12MB/s"
# Placed by a careless hand: brokers 0 and 1 hold most, 3 next to nothing.
TOPICS: dict[str, tuple[tuple[int, ...], ...]] = {
    "orders": ((0, 1), (0, 1), (1, 0), (0, 2), (1, 2), (0, 1), (1, 0), (0, 3)),
    "payments": ((1, 0), (0, 1), (2, 0), (1, 2)),
    "clicks": ((0, 2), (1, 0), (0, 1), (1, 3), (2, 1), (0, 1)),
}
MEGABYTES_PER_PARTITION = {"orders": 20, "payments": 12, "clicks": 16}
PRODUCED_TOPIC = "orders"
BOOTSTRAP_VARIABLE = "KREASSIGN_BOOTSTRAP_SERVER"


def main() -> None:
    """Run the workflow; ends with 1 and one line if a prerequisite is missing or a step fails."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)
    started = time.monotonic()
    try:
        _walk()
    except (JarsMissing, JavaMissing, RecordsLost) as error:
        sys.exit(f"demo: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"demo: `{_words(error.cmd)}` ended with exit code {error.returncode}")
    print(f"\nThe workflow took {time.monotonic() - started:.0f} s. Open {(OUTPUT / 'report.html').resolve()}")


def _walk() -> None:
    with _step(f"Start four brokers of Kafka {DEFAULT} on this machine"):
        cluster = KafkaCluster.start(ClusterSpec(brokers=4, racks=("a", "b", "c", "d", "e")))
    with cluster:
        with _step("Create topics and load them with real records, unevenly placed"):
            ledgers = _load(cluster)
        partitions = len(TOPICS[PRODUCED_TOPIC])
        with Producing(cluster.bootstrap_servers, PRODUCED_TOPIC, partitions=partitions, records_per_s=60) as producing:
            with _step("A fifth, empty broker joins; a producer keeps writing"):
                cluster.add_broker()
                cluster.wait_ready()
            _move(cluster.bootstrap_servers)
        with _step("Read back every acknowledged record"):
            if producing.failures:
                raise RecordsLost(f"{len(producing.failures)} records were refused, first {producing.failures[0]}")
            ledgers.append(producing.ledger)
            verify_readable(cluster.bootstrap_servers, *ledgers)
            count, size = (sum(each) for each in zip(*((one.count, one.size_bytes) for one in ledgers), strict=True))
            print(f"all {count} acknowledged records ({size / 1e6:.0f} MB) are there, unchanged")


def _load(cluster: KafkaCluster) -> list[Ledger]:
    ledgers: list[Ledger] = []
    for number, (topic, assignments) in enumerate(TOPICS.items()):
        cluster.create_topic(topic, assignments)
        sizes = dict.fromkeys(range(len(assignments)), MEGABYTES_PER_PARTITION[topic] * 1_000_000)
        ledgers.append(load_topic(cluster.bootstrap_servers, topic, sizes, seed=number))
        print(f"{topic}: {len(assignments)} partitions, {ledgers[-1].count} records")
    return ledgers


def _move(bootstrap_servers: str) -> None:
    os.environ[BOOTSTRAP_VARIABLE] = bootstrap_servers
    print(f"\n$ export {BOOTSTRAP_VARIABLE}={bootstrap_servers}", flush=True)
    data, plan, state = OUTPUT / "data", OUTPUT / "plan.json", OUTPUT / "state"
    with _step("Snapshot: what is where"):
        _kreassign("snapshot", "--data", data)
    with _step("Samples: how fast it grows"):
        _kreassign("collect", "--data", data, "--interval", "2s", "--rounds", "4")
    with _step("Load model: sizes and rates per partition, on Spark"):
        _kreassign("load", "--data", data)
    with _step("Plan: even brokers for few bytes"):
        _kreassign("plan", "--data", data, "--out", plan)
    with _step(f"Run: paced at {THROTTLE} per broker"):
        _kreassign("run", plan, "--yes", "--throttle", THROTTLE, "--state-dir", state)
    with _step("Verify: replicas, order, ISR, leaders, throttles"):
        _kreassign("verify", plan)
    with _step("Report: before and after"):
        _kreassign("snapshot", "--data", data)
        journal = next(state.rglob("*.sqlite"))
        _kreassign("report", "--data", data, "--run", journal, "--out", OUTPUT / "report.html")


@contextmanager
def _step(title: str) -> Iterator[None]:
    """Print the title of a step, and how long it took."""
    print(f"\n── {title}", flush=True)
    started = time.monotonic()
    yield
    print(f"   ({time.monotonic() - started:.1f} s)", flush=True)


def _kreassign(*arguments: str | Path) -> None:
    """Show a `kreassign` command as it could be typed, and run it; CalledProcessError if it fails."""
    command = [str(Path(sys.executable).with_name("kreassign")), *map(str, arguments)]
    print(f"$ {_words(command)}", flush=True)
    subprocess.run(command, check=True)


def _words(command: list[str]) -> str:
    return " ".join([Path(command[0]).name, *command[1:]])


if __name__ == "__main__":
    main()
