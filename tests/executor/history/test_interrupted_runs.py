"""Runs that were left stand in the way of others as long as something of them is in the cluster."""

from __future__ import annotations

import sqlite3

import pytest

from kreassign.errors import InputError, JournalDamaged
from kreassign.executor.events import HoldRequested
from kreassign.executor.history.run_history import left_behind, refuse_if_interrupted_runs
from kreassign.model.run import RunHistory
from tests.executor.twin_runs import RATE, TwinRig

AWAY = {0: (2, 1), 1: (3, 0)}


def left(rig: TwinRig) -> list[str]:
    found = left_behind(rig.state_dir, rig.twin.cluster_id)
    return [one.run_id for one in found if isinstance(one, RunHistory)]


def test_an_interrupted_run_with_open_moves_blocks_others(
    rig: TwinRig,
) -> None:
    rig.stop_after(4)
    rig.run(rig.prepared(AWAY, throttle=RATE // 2))
    assert left(rig) == ["run-1"]
    with pytest.raises(InputError, match=r"run-1 was left .* with 2 moves under way and 6 settings of a throttle"):
        refuse_if_interrupted_runs(rig.state_dir, rig.twin.cluster_id, "run-2")
    refuse_if_interrupted_runs(rig.state_dir, rig.twin.cluster_id, "run-1")
    assert rig.resume().state == "done"
    assert left(rig) == []
    refuse_if_interrupted_runs(rig.state_dir, rig.twin.cluster_id)


def test_a_run_that_was_left_before_it_did_anything_is_in_nobodys_way(rig: TwinRig) -> None:
    rig.stop_after(3)
    assert rig.run(rig.prepared(AWAY), lambda number: HoldRequested(0, number)).state == "paused"
    assert left(rig) == ["run-1"]
    refuse_if_interrupted_runs(rig.state_dir, rig.twin.cluster_id)


def test_a_run_that_ended_but_has_a_setting_to_restore_stands_in_the_way(rig: TwinRig) -> None:
    rig.after(3, lambda: rig.twin.crash(1))
    found = rig.run(rig.prepared({0: (0, 2)}))
    assert (found.state, len(found.throttle_residue)) == ("failed", 1)
    with pytest.raises(InputError, match="with 0 moves under way and 1 setting of a throttle"):
        refuse_if_interrupted_runs(rig.state_dir, rig.twin.cluster_id)


def test_journals_of_other_clusters_are_in_nobodys_way(rig: TwinRig) -> None:
    rig.stop_after(4)
    rig.run(rig.prepared(AWAY, throttle=RATE // 2))
    refuse_if_interrupted_runs(rig.state_dir, "another")
    rig.path().write_bytes(b"no journal")
    refuse_if_interrupted_runs(rig.state_dir, "another")


def test_a_journal_that_cannot_be_read_stands_in_the_way(rig: TwinRig) -> None:
    rig.stop_after(4)
    rig.run(rig.prepared(AWAY, throttle=RATE // 2))
    rig.path().write_bytes(b"no journal")
    with pytest.raises(JournalDamaged, match=f"{rig.path().name}.*kreassign doctor.*kreassign forget"):
        refuse_if_interrupted_runs(rig.state_dir, rig.twin.cluster_id)
    refuse_if_interrupted_runs(rig.state_dir, rig.twin.cluster_id, "run-1")
    assert left(rig) == []


def test_a_damaged_journal_with_a_good_end_blocks_nobody(rig: TwinRig) -> None:
    assert rig.run(rig.prepared(AWAY)).state == "done"
    with sqlite3.connect(rig.path()) as connection:
        connection.execute("UPDATE events SET body = '{}' WHERE sequence = 3")
    connection.close()
    refuse_if_interrupted_runs(rig.state_dir, rig.twin.cluster_id)
