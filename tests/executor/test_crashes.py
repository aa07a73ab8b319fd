"""The run dies at every row of its journal, and is resumed: just after a row was written, and just before the next.

In the first case what the row announces was not done; in the second it was done and nobody wrote that down.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kreassign.executor.cluster.readings import partitions_of
from kreassign.executor.events import LeadersElected, RunStarted
from kreassign.executor.history.run_history import rollback_plan
from kreassign.executor.journal import journal_path, read_events
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.model import TopicPartition
from kreassign.model.pace import Pace
from kreassign.model.throttle import ThrottleRates
from kreassign.twin.cluster import Twin
from kreassign.twin.core import Step
from kreassign.twin.metadata import PartitionChanged
from tests.executor.deaths import die
from tests.executor.twin_runs import RATE, TwinRig

pytestmark = pytest.mark.thorough

TARGETS = {0: (2, 1), 1: (3, 0), 2: (1, 0)}
FASTER = 5 * RATE
HOME = {0: (0, 1), 1: (1, 0), 2: (0, 1)}


def new_world(folder: Path) -> tuple[TwinRig, Counter[TopicPartition]]:
    """A rig, and how often each partition was set on its way with a copy to make."""
    rig = TwinRig(folder, [list(replicas) for replicas in HOME.values()])
    starts: Counter[TopicPartition] = Counter()

    def watch(_: Twin, step: Step) -> None:
        starts.update(
            record.topic_partition for record in step.records if isinstance(record, PartitionChanged) and record.adding
        )

    rig.twin.watch(watch)
    return rig, starts


def rows_of_a_whole_run(folder: Path) -> int:
    rig, _ = new_world(folder)
    rig.run(rig.prepared(TARGETS, throttle=FASTER))
    return len(read_events(rig.path()))


@pytest.mark.parametrize("is_written", [True, False], ids=["not done", "done"])
def test_a_run_killed_at_any_row_comes_to_the_same_end(tmp_path: Path, is_written: bool) -> None:
    rows = rows_of_a_whole_run(tmp_path / "whole")
    assert rows > 12
    # The first row is written with the file itself; after the last one there is nothing to resume.
    for row in range(1, rows - is_written):
        rig, starts = new_world(tmp_path / str(row))
        die(rig, rig.prepared(TARGETS, throttle=FASTER), row, is_written=is_written)
        found = rig.resume()
        assert (found.state, found.problems, found.throttle_residue) == ("done", (), ()), row
        assert (rig.replicas, rig.throttles) == (TARGETS, {}), row
        assert set(starts.values()) == {1}, row


def led(rig: TwinRig) -> dict[int, int]:
    return {number: state.leader for number, state in rig.twin.metadata.topics["t"].partitions.items()}


@pytest.mark.parametrize("is_written", [True, False], ids=["not done", "done"])
def test_a_run_that_dies_between_steps_of_elections_elects_all_its_leaders(tmp_path: Path, is_written: bool) -> None:
    one_by_one = Pace(elections_per_step=1)
    reversed_lists = {number: tuple(reversed(replicas)) for number, replicas in HOME.items()}

    def new(folder: str) -> tuple[TwinRig, RunStarted]:
        rig, _ = new_world(tmp_path / folder)
        return rig, rig.prepared(reversed_lists, throttle=None, pace=one_by_one)

    whole, begun = new("whole")
    whole.run(begun)
    events = read_events(whole.path())
    assert sum(isinstance(event, LeadersElected) for event in events) == len(HOME)
    for row in range(1, len(events) - is_written):
        rig, begun = new(str(row))
        die(rig, begun, row, is_written=is_written)
        found = rig.resume()
        assert (found.state, found.problems) == ("done", ()), row
        assert led(rig) == {number: replicas[0] for number, replicas in reversed_lists.items()}, row


def rolling_back(folder: Path) -> tuple[TwinRig, Counter[TopicPartition], RunStarted]:
    """A rig whose run was done, and what undoes it."""
    rig, starts = new_world(folder)
    done = rig.run(rig.prepared(TARGETS, throttle=None))
    back = rollback_plan(done.moves, partitions_of(rig.client.describe_topics(["t"]).ok))
    starts.clear()
    settings = RunSettings("run-2", rig.transport.now_ms(), ThrottleRates(FASTER))
    return rig, starts, prepare(rig.client, back.plan, settings, expected=back.expected)


@pytest.mark.parametrize("is_written", [True, False], ids=["not done", "done"])
def test_a_rollback_killed_at_any_row_brings_everything_back(tmp_path: Path, is_written: bool) -> None:
    whole, starts, begun = rolling_back(tmp_path / "whole")
    whole.run(begun)
    assert starts, "the rollback copies something"
    rows = len(read_events(journal_path(whole.state_dir, whole.twin.cluster_id, "run-2")))
    for row in range(1, rows - is_written):
        rig, starts, begun = rolling_back(tmp_path / str(row))
        die(rig, begun, row, is_written=is_written)
        found = rig.resume("run-2")
        assert (found.state, found.problems, found.throttle_residue) == ("done", (), ()), row
        assert (rig.replicas, rig.throttles) == (HOME, {}), row
        assert set(starts.values()) == {1}, row
