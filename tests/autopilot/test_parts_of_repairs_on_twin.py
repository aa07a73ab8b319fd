"""Repairs that are impossible for some partitions: the others get their copies, and people hear of what is left."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kreassign.autopilot.events import Name
from kreassign.autopilot.gates import resting
from kreassign.autopilot.observation import Known, Observation
from kreassign.autopilot.policy import Kind
from kreassign.autopilot.symptoms import Look
from kreassign.model import TopicPartition
from kreassign.operations.autopilot_journal import remembered
from kreassign.operations.autopilot_plans import TASKS
from kreassign.operations.plan_tasks import AddBrokers, Rebalance
from kreassign.twin.blueprint import Blueprint
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.replication.partition_logs import Traffic
from kreassign.twin.version import DEFAULT
from tests.autopilot.fleet import HOUR_S, Fleet
from tests.autopilot.values import DAY, Watched, cluster
from tests.executor.twin_runs import TwinRig, tp

LOOKS_S = 300.0
LISTS = [[one, (one + 1) % 5, (one + 2) % 5] for one in range(5)]
DISKS_BYTES = 4_000_000_000_000
"""Size of both log directories of a broker of the twin, of which a tenth is kept free."""

CARE = (
    "[care]\ninterval = '5m'\n[runs]\nthrottle = '1GB/s'\n"
    "[budget]\nbytes-per-day = '90TB'\nbytes-per-week = '90TB'\nshare-per-day = 1.0\n"
)
ACT = f"[broker-gone]\nlevel = 'act'\nact-after = '30m'\n{CARE}"


def texts(ours: Fleet) -> str:
    return "\n".join(map(str, ours.messages))


def test_what_finds_room_is_copied_the_last_copies_first(tmp_path: Path) -> None:
    """Disks are three quarters full, so that four brokers have no room for what five held. Of u-0 one copy is left."""
    rig = TwinRig(tmp_path, LISTS * 6, brokers=5, size_bytes=DISKS_BYTES // 24, others={"u": [[3, 4]]})
    ours = Fleet(tmp_path, rig, ACT)
    with ours.opened() as autopilot:
        rig.twin.crash(3)
        ours.watch(autopilot, 1.2 * HOUR_S, LOOKS_S)
        act, *_ = autopilot.memory.acts
    assert act.outcome == "done"
    assert tp(0, "u") in act.moves
    assert 4 < len(act.moves) < 15
    assert "broker 3 is not live, but is to have a copy: " in texts(ours)
    assert re.search(r"when it was planned: .*waiting for that is worth .*, and costs .* of risk", texts(ours))
    assert re.search(r"its facts file says \d+ more of what it leaves", texts(ours))


@pytest.mark.parametrize("is_alone", [False, True])
def test_a_partition_too_large_for_a_window_keeps_no_other_back(tmp_path: Path, *, is_alone: bool) -> None:
    """The window is long enough for 1.2 TB, and u-0 has 1.5."""

    def with_giant(blueprint: Blueprint) -> Twin:
        few, giant = blueprint.topics
        (whole,) = giant.partitions
        traffic = Traffic(size_bytes=1_500_000_000_000, write_bytes_per_s=0.0)
        giant = replace(giant, partitions=(replace(whole, traffic=traffic),))
        return Twin(replace(blueprint, topics=(few, giant)), TwinSettings(DEFAULT))

    lists = [[0, 1, 2]] if is_alone else LISTS
    rig = TwinRig(tmp_path, lists, brokers=5, others={"u": [[3, 4]]}, make_twin=with_giant)
    at_ms = rig.transport.now_ms()
    begins, ends = (
        datetime.fromtimestamp(at_ms / 1000 + after, tz=UTC).strftime("%H:%M") for after in (0, 1.2 * HOUR_S)
    )
    ours = Fleet(tmp_path, rig, ACT.replace("'1GB/s'", f"'300MB/s'\nwindows = ['{begins}-{ends}']"))
    with ours.opened() as autopilot:
        rig.twin.crash(3)
        ours.watch(autopilot, HOUR_S, LOOKS_S)
        acts = autopilot.memory.acts
    assert [(one.outcome, tp(0, "u") in one.moves) for one in acts] == ([] if is_alone else [("done", False)])
    assert 3 not in ours.holders()
    assert "u-0: no window is long enough for a copy at this throttle" in texts(ours)


def test_copies_are_added_where_not_all_that_lack_find_room(tmp_path: Path) -> None:
    lists = [*(LISTS * 4), *([one[:2] for one in LISTS] * 2)]
    policy = f"[placement]\nlevel = 'act'\npropose-after = '30m'\n{CARE}"
    ours = Fleet(tmp_path, TwinRig(tmp_path, lists, brokers=5, size_bytes=205_000_000_000), policy)
    with ours.opened() as autopilot:
        ours.watch(autopilot, 1.2 * HOUR_S, LOOKS_S)
        act, *_ = autopilot.memory.acts
    assert act.outcome == "done"
    assert 4 < len(act.moves) < 10
    assert " has 2 replicas, not 3: " in texts(ours)


# What was moved lately rests.


def acted(ours: Fleet, kind: Kind) -> list[tuple[TopicPartition, ...]]:
    """Partitions of topic t of each repair of this kind."""
    acts = remembered(ours.state_dir, ours.rig.twin.cluster_id).acts
    return [tuple(name for name in one.moves if name.topic == "t") for one in acts if one.name.kind is kind]


def test_racks_are_repaired_after_the_copies_of_a_lost_broker(tmp_path: Path) -> None:
    """Broker 1 is all of rack b: its copies go to rack a, and go back to b when it is there again."""
    rig = TwinRig(tmp_path, [[0, 1], [2, 1]] * 3, brokers=3)
    ours = Fleet(tmp_path, rig, f"{ACT}[placement]\nlevel = 'act'\npropose-after = '30m'\n")
    with ours.opened() as autopilot:
        rig.twin.crash(1)
        ours.watch(autopilot, 1.5 * HOUR_S, LOOKS_S)
        assert 1 not in ours.holders()
        rig.twin.start(1)
        ours.watch(autopilot, 4 * HOUR_S, LOOKS_S)
    assert acted(ours, Kind.PLACEMENT) == [tuple(map(tp, range(6)))]
    assert all(1 in one for one in rig.replicas.values())


def test_only_what_was_moved_lately_rests(tmp_path: Path) -> None:
    """Of t-0 somebody takes the copy again that it just got, and of t-1 another one."""
    rig = TwinRig(tmp_path, [LISTS[0][:2], *LISTS[1:]], brokers=5)
    ours = Fleet(tmp_path, rig, f"[placement]\nlevel = 'act'\npropose-after = '30m'\n{CARE}")
    with ours.opened() as autopilot:
        ours.watch(autopilot, 1.5 * HOUR_S, LOOKS_S)
        fewer = {tp(number): rig.replicas[number][:2] for number in (0, 1)}
        rig.client.alter_partition_reassignments(fewer).raise_if_any()
        ours.watch(autopilot, 5 * HOUR_S, LOOKS_S)
    assert acted(ours, Kind.PLACEMENT) == [(tp(0),), (tp(1),)]
    assert len(rig.replicas[0]) == 2
    assert "left to rest, for they were moved within 7d: t-0" in texts(ours)


def test_a_refilled_broker_gets_nothing_that_was_moved_for_it(tmp_path: Path) -> None:
    """Of 30 partitions 18 leave broker 3, then an internal topic; it comes back, and gets some of the others."""
    rig = TwinRig(tmp_path, LISTS * 6, brokers=5)
    ours = Fleet(tmp_path, rig, f"{ACT}[new-broker]\nlevel = 'act'\n")
    with ours.opened() as autopilot:
        rig.twin.crash(3)
        ours.watch(autopilot, 3 * HOUR_S, LOOKS_S)
        rig.twin.start(3)
        ours.watch(autopilot, 3 * HOUR_S, LOOKS_S)
    (gone, *_), (filled,) = (acted(ours, kind) for kind in (Kind.BROKER_GONE, Kind.NEW_BROKER))
    assert len(gone) == 18
    assert 9 <= len(filled) <= 12
    assert not {*gone} & {*filled}
    assert "left to rest, for they were moved within 7d: " in texts(ours)


def test_what_others_moved_lately_is_moved_for_no_balance() -> None:
    band, fresh = Name(Kind.BAND_LEFT, "cluster"), Name(Kind.NEW_BROKER, "broker 2")
    theirs = Known(frozenset({tp(0)}))

    def world(now_s: float) -> Observation:
        seen = cluster(0, [(0, 1), (1, 2)])
        return replace(seen, moves_of_others=theirs) if now_s < 2 * HOUR_S else seen

    watched = Watched("[care]\nrest = '2d'\n", world)
    watched.watch(3 * HOUR_S, every_s=300)
    look = watched.last_look
    assert TASKS[Kind.BAND_LEFT](band, look, ()) == (Rebalance(without=frozenset({tp(0)})),)
    assert TASKS[Kind.NEW_BROKER](fresh, look, ())[0] == AddBrokers((2,), without=frozenset({tp(0)}))
    assert resting(look, Kind.PLACEMENT) == frozenset(), "racks are repaired all the same"
    watched.watch(2 * DAY, every_s=600)
    assert TASKS[Kind.NEW_BROKER](fresh, watched.last_look, ()) == (AddBrokers((2,)),)


def test_balance_leaves_alone_what_was_moved_lately() -> None:
    band = Name(Kind.BAND_LEFT, "cluster")
    watched = Watched("[band-left]\nlevel = 'act'\n", lambda _: cluster(0, [(0, 1), (1, 2)], used={1: 0.9}))
    watched.watch(8 * HOUR_S, every_s=300)
    assert watched.runs == [band]
    look = Look(cluster(round(watched.now_s * 1000), [(0, 1)]), watched.memory, watched.policy)
    assert TASKS[Kind.BAND_LEFT](band, look, ()) == (Rebalance(without=frozenset({tp(0)})),)
