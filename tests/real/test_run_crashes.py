"""Runs on real Kafka that are killed at random moments, again and again, and carried on."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from kreassign.executor.events import Event, MovesSubmitted, SubmissionIntended
from kreassign.executor.journal import find_journals, read_events
from testbed import KafkaCluster
from testbed.fork_server import Forked
from testbed.records import verify_readable
from tests.real.run_processes import start_run
from tests.real.test_run import MEGABYTE, assignments, loaded, plan_file, run_to_the_end, status, throttles

pytestmark = pytest.mark.usefixtures("calm")

KILLS = 30
HOME = {0: (0, 1), 1: (1, 2), 2: (2, 0)}
AWAY = {0: (2, 1), 1: (3, 2), 2: (1, 0)}


def sent_in_vain(events: tuple[Event, ...]) -> int:
    """How often moves were sent though an answer to an earlier sending was in the journal."""
    answered: set[object] = set()
    repeated = 0
    for event in events:
        if isinstance(event, SubmissionIntended):
            repeated += sum(partition in answered for partition in event.partitions)
        elif isinstance(event, MovesSubmitted):
            answered |= set(event.accepted)
    return repeated


def kill_within(process: Forked, seconds: float) -> bool:
    """Whether the run was still at work when it was killed."""
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return True
    return False


def test_runs_that_are_killed_thirty_times_come_to_the_same_end_and_leave_no_throttle(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    acknowledged = loaded(kafka, topic_name, list(HOME.values()), 2 * MEGABYTE)
    moments, kills, legs = random.Random(7), 0, 0
    while kills < KILLS:
        folder = tmp_path / str(legs)
        folder.mkdir()
        target = AWAY if legs % 2 == 0 else HOME
        arguments: tuple[object, ...] = (plan_file(folder, topic_name, target), "--throttle", "700kB/s")
        is_over = False
        while not is_over and kills < KILLS:
            is_killed = kill_within(start_run(kafka, folder, *arguments), moments.uniform(0.6, 2.5))
            kills += is_killed
            left = status(folder)
            if left is not None:
                arguments = ("--resume", left["run_id"])
            # It may have been killed after its end.
            is_over = not is_killed or (left is not None and left["state"] == "done")
        if not is_over:
            run_to_the_end(kafka, folder, *arguments)
        found = status(folder)
        assert found is not None
        assert (found["state"], found["throttle_residue"]) == ("done", [])
        assert assignments(kafka, topic_name) == target
        assert throttles(kafka, topic_name) == {}
        (journal,) = find_journals(folder / "state")
        events = read_events(journal)
        assert sent_in_vain(events) == 0
        legs += 1
    verify_readable(kafka.bootstrap_servers, acknowledged)
