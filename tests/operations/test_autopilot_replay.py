"""A policy over snapshots in tables: what it would have repaired before any autopilot watched."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.autopilot.events import Name
from kreassign.autopilot.policy import Kind, parse_policy
from kreassign.errors import InputError
from kreassign.operations.autopilot_replay import replayed_by_tables
from kreassign.operations.connect import tell_nobody
from kreassign.operations.snapshot import SnapshotOutputs, store_snapshot
from tests.executor.twin_runs import TwinRig

GONE_3 = Name(Kind.BROKER_GONE, "broker 3")
LISTS = [[one, (one + 1) % 6, (one + 2) % 6] for one in range(6)]
SIZE_BYTES = 10_000_000
HOUR_MS = 3_600_000


@pytest.fixture
def snapshots(tmp_path: Path) -> Path:
    """Hourly snapshots of a cluster whose broker 3 goes after the second one, and is back before the seventh."""
    rig, data = TwinRig(tmp_path / "state", LISTS, brokers=6, size_bytes=SIZE_BYTES), tmp_path / "data"
    for hour in range(8):
        store_snapshot(rig.client, SnapshotOutputs(data), rig.transport, tell_nobody)
        if hour == 1:
            rig.twin.crash(3)
        if hour == 5:
            rig.twin.start(3)
        rig.transport.sleep(3600.0)
    return data


def test_a_replay_over_snapshots_says_what_would_have_been_repaired(snapshots: Path) -> None:
    played = replayed_by_tables(snapshots, parse_policy("[broker-gone]\nlevel = 'act'\n", "policy.toml"))
    (act,) = played.acts
    assert (act.name, act.copied_bytes) == (GONE_3, 3 * SIZE_BYTES)
    assert 3 * HOUR_MS <= act.at_ms - played.from_ms <= 3.3 * HOUR_MS
    assert played.not_repaired == {}


def test_a_replay_over_snapshots_says_what_kept_a_repair(snapshots: Path) -> None:
    poor = "[broker-gone]\nlevel = 'act'\n[budget]\nbytes-per-day = '1MB'\n"
    played = replayed_by_tables(snapshots, parse_policy(poor, "policy.toml"))
    assert played.acts == ()
    assert list(played.not_repaired) == [GONE_3]
    assert "budget" in played.not_repaired[GONE_3]


def test_a_replay_over_snapshots_waits_for_signatures(snapshots: Path) -> None:
    signed = "[broker-gone]\nlevel = 'ask'\n[approvals]\nallowed-signers = 'ops'\n"
    played = replayed_by_tables(snapshots, parse_policy(signed, "policy.toml"))
    assert played.acts == ()
    assert "no signature has been read" in played.not_repaired[GONE_3]["approvals"]


def test_a_replay_of_a_cluster_without_snapshots_is_refused(snapshots: Path) -> None:
    with pytest.raises(InputError, match="choose with --of one of the clusters in"):
        replayed_by_tables(snapshots, parse_policy("[care]", "policy.toml"), "another")
