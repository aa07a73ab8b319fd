"""A twin whose process is killed has forgotten nothing that it said it had done."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from kreassign.admin import AdminClient
from kreassign.errors import ClusterError
from kreassign.model import NewTopic, TopicPartition
from testbed.waiting import PATIENCE_S, wait_until
from tests.cli.commands.test_twin import serving

pytestmark = pytest.mark.thorough

ENOUGH = 20


class Work:
    """Topics that are created and moved, one after the other: what was asked for, and what was acknowledged."""

    def __init__(self) -> None:
        self.asked: dict[str, tuple[int, ...]] = {}
        self.done: dict[str, tuple[int, ...]] = {}

    def go_on_until_nobody_answers(self, admin: AdminClient, life: int) -> None:
        """Create and move topics whose names nobody has had."""
        for number in count():
            topic, target = f"topic-{life}-{number}", (number % 3, (number + 1) % 3)
            try:
                admin.create_topics([NewTopic(topic, assignments=((0, 1),))]).raise_if_any()
                self.done[topic], self.asked[topic] = (0, 1), target
                admin.alter_partition_reassignments(
                    {TopicPartition(topic, 0): target}, warns_of_overrides=False
                ).raise_if_any()
                self.done[topic] = target
            except ClusterError:
                return


def test_killing_it_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    work = Work()
    for life in range(2):
        with serving("--data-dir", str(tmp_path)) as served, served.admin() as admin, ThreadPoolExecutor(1) as threads:
            worker = threads.submit(work.go_on_until_nobody_answers, admin, life)
            goal = len(work.done) + ENOUGH
            wait_until(lambda goal=goal: len(work.done) >= goal, what="some work")
            served.process.send_signal(signal.SIGKILL)
            served.process.wait(PATIENCE_S)
            worker.result(PATIENCE_S)
    with serving("--data-dir", str(tmp_path)) as served, served.admin() as admin:
        found = admin.describe_topics().raise_if_any()
    assert work.done.keys() <= found.keys()
    for topic, replicas in work.done.items():
        (partition,) = found[topic].partitions
        # Of a change without an answer one cannot know; where a move still goes on, its target stands first.
        assert partition.replicas[:2] in {replicas, work.asked[topic]}, topic
