"""The least rate on real Kafka: a quarter of what is needed is refused with one advice, and with that the run ends.

Producers write 300 kB/s to a partition of two replicas, 200 kB/s to one of three, and 300 kB/s to three of two
replicas with one leader: each of these needs 600 kB/s of its leader, and with that its copies would gain nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kreassign.executor.throttle_rates import HEADROOM
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.text import parse_amount
from kreassign.operations.plan_files import write_plan
from testbed import KafkaCluster
from testbed.producing import Producing
from testbed.records import load_topic
from testbed.waiting import wait_until
from tests.real.test_run import assignments, invoke, run_to_the_end, throttles

pytestmark = pytest.mark.usefixtures("calm")

NEEDED = 600_000
RECORD_BYTES = 10_000
# By the end of a topic's name: replicas before and after, what producers write per second.
WRITTEN = {
    "-two": ([(0, 3)], [(0, 2)], 300_000),
    "-three": ([(1, 0, 2)], [(1, 0, 3)], 200_000),
    "-many": ([(2, 0)] * 3, [(2, 1), (2, 3), (2, 1)], 300_000),
}
# The first megabyte of a partition passes any throttle at once.
SIZE = {"-two": 2_000_000, "-three": 2_000_000, "-many": 1_400_000}


@contextmanager
def produced(cluster: KafkaCluster, topic: str) -> Iterator[None]:
    """Producers at work on all topics."""
    with ExitStack() as stack:
        for end, (before, _, bytes_per_s) in WRITTEN.items():
            stack.enter_context(
                Producing(
                    cluster.bootstrap_servers,
                    topic + end,
                    partitions=len(before),
                    records_per_s=bytes_per_s / RECORD_BYTES,
                    value_bytes=RECORD_BYTES,
                )
            )
        yield


def plan_of(folder: Path, topic: str) -> Path:
    moves = [
        PartitionAssignment(TopicPartition(topic + end, number), replicas)
        for end, (_, after, _) in WRITTEN.items()
        for number, replicas in enumerate(after)
    ]
    path = folder / "plan.json"
    write_plan(path, Plan(tuple(moves)), None)
    return path


def test_a_quarter_of_the_need_is_refused_with_a_working_rate(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    for end, (before, _, _) in WRITTEN.items():
        kafka.create_topic(topic_name + end, before)
        # Of records like those that are written meanwhile, for rates are measured in records.
        sizes = dict.fromkeys(range(len(before)), SIZE[end])
        load_topic(kafka.bootstrap_servers, topic_name + end, sizes, value_bytes=(RECORD_BYTES, RECORD_BYTES))
    plan, advised = plan_of(tmp_path, topic_name), 0

    def is_advised_well() -> bool:
        """False where the machine kept the producers from their work during the measurement."""
        nonlocal advised
        words = ("--throttle", f"{NEEDED // 4}B/s", "--measure-for", 3, "--state-dir", tmp_path / "refused")
        refused = invoke(kafka, "run", "--yes", plan, *words)
        assert refused.exit_code == 2, refused.output
        assert f"{topic_name}-three-0: at 150 kB/s it never ends" in refused.stderr
        (rate,) = re.findall(r"the least rate that works for all moves is (\d\S*B/s)", refused.stderr)
        advised = parse_amount(rate)
        return 0.9 * HEADROOM * NEEDED <= advised <= 1.2 * HEADROOM * NEEDED

    with produced(kafka, topic_name):
        wait_until(is_advised_well, what="a reading of steady producers")
        assert all(throttles(kafka, topic_name + end) == {} for end in WRITTEN)
        found = run_to_the_end(kafka, tmp_path, plan, "--throttle", f"{advised}B/s")
    assert (found["state"], found["throttle_residue"]) == ("done", [])
    for end, (_, after, _) in WRITTEN.items():
        assert assignments(kafka, topic_name + end) == dict(enumerate(after))
        assert throttles(kafka, topic_name + end) == {}
