"""Runs that were left stand in the way of others as long as something of them is in the cluster."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from kreassign.errors import InputError, JournalDamaged
from kreassign.executor.events import HoldRequested
from kreassign.executor.history.interrupted_runs import interrupted_runs, refuse_if_interrupted_runs
from tests.executor.twin_runs import RATE, World

AWAY = {0: (2, 1), 1: (3, 0)}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, [[0, 1], [1, 0]])


def left(world: World) -> list[str]:
    return [found.run_id for found in interrupted_runs(world.state_dir, world.twin.cluster_id)]


def test_a_run_that_was_left_with_moves_under_way_stands_in_the_way_of_others_until_it_is_at_its_end(
    world: World,
) -> None:
    world.after(4, lambda: world.runner and world.runner.request_stop())
    world.run(world.prepared(AWAY, throttle=RATE // 2))
    assert left(world) == ["run-1"]
    with pytest.raises(InputError, match=r"run-1 was left .* with 2 moves under way and 6 settings of a throttle"):
        refuse_if_interrupted_runs(world.state_dir, world.twin.cluster_id, "run-2")
    refuse_if_interrupted_runs(world.state_dir, world.twin.cluster_id, "run-1")
    assert world.resume().state == "done"
    assert left(world) == []
    refuse_if_interrupted_runs(world.state_dir, world.twin.cluster_id)


def test_a_run_that_was_left_before_it_did_anything_is_in_nobodys_way(world: World) -> None:
    world.after(3, lambda: world.runner and world.runner.request_stop())
    assert world.run(world.prepared(AWAY), lambda number: HoldRequested(0, number)).state == "paused"
    assert left(world) == ["run-1"]
    refuse_if_interrupted_runs(world.state_dir, world.twin.cluster_id)


def test_a_run_that_ended_but_has_a_setting_to_restore_stands_in_the_way(world: World) -> None:
    world.after(3, lambda: world.twin.crash(1))
    found = world.run(world.prepared({0: (0, 2)}))
    assert (found.state, len(found.throttle_residue)) == ("failed", 1)
    with pytest.raises(InputError, match="with 0 moves under way and 1 settings of a throttle"):
        refuse_if_interrupted_runs(world.state_dir, world.twin.cluster_id)


def test_journals_of_other_clusters_are_in_nobodys_way(world: World) -> None:
    world.after(4, lambda: world.runner and world.runner.request_stop())
    world.run(world.prepared(AWAY, throttle=RATE // 2))
    refuse_if_interrupted_runs(world.state_dir, "another")
    world.path().write_bytes(b"no journal")
    refuse_if_interrupted_runs(world.state_dir, "another")


def test_a_journal_that_cannot_be_read_stands_in_the_way(world: World) -> None:
    world.after(4, lambda: world.runner and world.runner.request_stop())
    world.run(world.prepared(AWAY, throttle=RATE // 2))
    world.path().write_bytes(b"no journal")
    with pytest.raises(JournalDamaged, match=f"{world.path().name}.*kreassign doctor.*kreassign forget"):
        refuse_if_interrupted_runs(world.state_dir, world.twin.cluster_id)
    refuse_if_interrupted_runs(world.state_dir, world.twin.cluster_id, "run-1")
    assert left(world) == []


def test_a_journal_that_is_damaged_but_ends_in_all_being_well_is_in_nobodys_way(world: World) -> None:
    assert world.run(world.prepared(AWAY)).state == "done"
    with sqlite3.connect(world.path()) as connection:
        connection.execute("UPDATE events SET body = '{}' WHERE sequence = 3")
    connection.close()
    refuse_if_interrupted_runs(world.state_dir, world.twin.cluster_id)
