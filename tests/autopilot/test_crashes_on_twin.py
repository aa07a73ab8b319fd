"""A second broker dies while the first one is repaired, and no controller takes the settings of brokers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kreassign.autopilot.gates import others_now
from kreassign.autopilot.memory import BACK_OFF_MS
from kreassign.executor.history.run_history import explained_settings, read_history
from kreassign.executor.journal import find_journals, journal_path
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.state import RunView
from kreassign.operations.autopilot_looks import observe, why
from kreassign.operations.left_throttles import find_left_throttles, remove_left_throttles
from kreassign.operations.run_journals import forget_journal
from tests.autopilot.fleet import HOUR_S, Fleet
from tests.executor.twin_runs import TwinRig

LOOKS_S = 300.0
LISTS = [[one, (one + 1) % 7, (one + 2) % 7] for one in range(7)]
ACT = """
[broker-gone]
level = 'act'
propose-after = '10m'
act-after = '10m'
most-share = 0.5
[care]
interval = '5m'
settle = '10m'
[runs]
throttle = '300kB/s'
"""


def test_a_second_crash_during_a_repair_keeps_no_repair_back(tmp_path: Path) -> None:
    """The rate of broker 5 cannot be restored when the repair of broker 3 ends."""
    ours = Fleet(tmp_path, TwinRig(tmp_path, LISTS, brokers=7, size_bytes=60_000_000), ACT)
    twin, warnings, crashed = ours.rig.twin, list[str](), list[str]()

    def crash(run: RunView, _: ProgressMeter) -> None:
        if not crashed and run.in_flight and any("broker 5 " in one for one in ours.rig.throttles):
            crashed.append(run.run_id)
            twin.crash(5)

    ours.context = replace(ours.context, poll_s=20.0, observers=(crash,), warn=warnings.append)
    with ours.opened() as autopilot:
        twin.crash(3)
        ours.watch(autopilot, HOUR_S, LOOKS_S)
        acts = [(one.run_id, one.name.subject, one.outcome) for one in autopilot.memory.acts]
        (journal,) = find_journals(tmp_path, crashed[0])
        assert acts == [(crashed[0], "broker 3", "failed"), (acts[-1][0], "broker 5", "done")]
        assert not {3, 5} & ours.holders()
        assert read_history(journal).throttle_residue
        twin.start(5)
        explain = partial(explained_settings, (tmp_path,), twin.cluster_id, left_by=crashed)
        now = observe(ours.rig.client, ours.rig.transport.now_ms(), explain=explain)
        assert (others_now(now), bool(ours.rig.throttles)) == (None, True)
        ours.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
    assert (ours.rig.throttles, read_history(journal).throttle_residue) == ({}, ())
    assert "restored what it had left" in warnings[-1]


def test_a_damaged_journal_of_a_repair_holds_repairs_and_no_messages(tmp_path: Path) -> None:
    """The process of a repair is killed, and its journal is damaged; then broker 6 dies as well."""
    rig = TwinRig(tmp_path, LISTS, brokers=7)
    ours = Fleet(tmp_path, rig, ACT)
    alone = ours.context

    def leave(run: RunView, _: ProgressMeter) -> None:
        if run.in_flight:
            raise KeyboardInterrupt  # stands for the end of its process

    ours.context = replace(alone, observers=(leave,))
    rig.twin.crash(3)
    with ours.opened() as autopilot, pytest.raises(KeyboardInterrupt):
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
    (path,) = find_journals(tmp_path)
    path.write_bytes(bytes(1000))
    ours.context = alone
    rig.twin.crash(6)
    with ours.opened() as autopilot:
        ours.watch(autopilot, HOUR_S, LOOKS_S)
        (act,) = autopilot.memory.acts
        assert act.ended_ms is None
        gates = [one.gates for one in why(rig.client, ours.policy, autopilot.memory, tmp_path, rig.transport)]
        own = "; its journal cannot be read: moves of its partitions, and throttles, may be its own"
        assert all(str(one["running"]).endswith(own) for one in gates)
        assert [one["others"] for one in gates] == [None] * len(gates)
    told = "\n".join(map(str, ours.messages))
    assert told.count("cannot go on") == 1
    assert f"`kreassign forget {path}`" in told
    assert "broker-gone broker 6" in told
    assert "others" not in told

    forget_journal(path)
    left = find_left_throttles(rig.client, tmp_path).left
    remove_left_throttles(rig.client, alone, left, rig.transport)
    with ours.opened() as autopilot:
        ours.watch(autopilot, BACK_OFF_MS[0] / 1000 + HOUR_S, LOOKS_S)
        first, *later = autopilot.memory.acts
    assert (first.result, first.outcome) == ("failed", "failed: its journal was set aside")
    assert first.copied_bytes == first.promised_bytes > 0, "for the budget"
    assert [one.outcome for one in later] == ["done"] * len(later)
    assert not {3, 6} & ours.holders()


def test_a_journal_of_people_that_cannot_be_read_is_told_of_seldom(tmp_path: Path) -> None:
    """No gate sees it, and each run is refused beside it."""
    rig = TwinRig(tmp_path, LISTS, brokers=7)
    ours = Fleet(tmp_path, rig, ACT)
    theirs = journal_path(tmp_path, rig.twin.cluster_id, "20260101T000000Z-0000")
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"SQLite format 3\0" + bytes(1000))
    rig.twin.crash(3)
    with ours.opened() as autopilot:
        ours.watch(autopilot, 12 * HOUR_S, 590.0)
        assert autopilot.memory.acts == ()
    told = [one for one in map(str, ours.messages) if "broker 3" in one]
    assert any("its run cannot begin" in one for one in told)
    assert len(told) < 12


def test_a_broker_that_dies_again_is_told_as_not_repaired_again(tmp_path: Path) -> None:
    """Both times a journal of people that cannot be read keeps its repair from beginning."""
    rig = TwinRig(tmp_path, LISTS, brokers=7)
    ours = Fleet(tmp_path, rig, ACT)
    theirs = journal_path(tmp_path, rig.twin.cluster_id, "20260101T000000Z-0000")
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"SQLite format 3\0" + bytes(1000))
    with ours.opened() as autopilot:
        for times in (1, 2):
            rig.twin.crash(3)
            ours.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
            assert sum("it is not repaired" in one.what for one in ours.messages) == times
            rig.twin.start(3)
            ours.watch(autopilot, 0.5 * HOUR_S, LOOKS_S)
