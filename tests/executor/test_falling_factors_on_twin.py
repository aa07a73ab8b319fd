"""A falling replication factor is told first and needs consent, and costs no replica in sync."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.errors import IllegalPlan
from kreassign.executor.cluster.requests import min_isr_of, read_factors, read_moves
from kreassign.model import Batch, ConfigChange, ConfigResource
from kreassign.operations.rollback import plan_rollback
from tests.executor.odd_port import OddPort
from tests.executor.twin_runs import TwinRig


def refused(rig: TwinRig, targets: dict[int, tuple[int, ...]], **consent: bool) -> tuple[str, ...]:
    with pytest.raises(IllegalPlan) as refusal:
        rig.prepared(targets, **consent)
    return refusal.value.violations


def test_a_falling_factor_is_refused_without_consent(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1, 2], [1, 2, 3], [0, 1]])
    told = refused(rig, {0: (1, 2), 1: (2, 3), 2: (3, 4)})
    assert told == (
        "replication factor of 2 partitions falls from 3 to 2: t-0, t-1",
        "if that is meant, say so with --allow-factor-change",
    )
    assert rig.run(rig.prepared({0: (1, 2), 1: (2, 3), 2: (3, 4)}, allows_factor_change=True)).state == "done"


def test_a_factor_below_min_insync_replicas_is_told_with_what_it_means(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1, 2]])
    rig.client.incremental_alter_configs({ConfigResource.topic("t"): [ConfigChange.set("min.insync.replicas", "2")]})
    falls, below, _ = refused(rig, {0: (0,)})
    assert falls == "replication factor of 1 partition falls from 3 to 1: t-0"
    assert below.startswith("topic t: min.insync.replicas 2 is more than the replication factor 1")


def test_a_rising_factor_needs_no_consent(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0]])
    assert rig.run(rig.prepared({0: (0, 1)})).state == "done"


def test_a_rollback_tells_the_factor_that_it_lowers(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]])
    back = plan_rollback(rig.client, rig.run(rig.prepared({0: (0, 1, 2)})))
    told = read_factors(rig.client, back.plan.replicas, back.expected).sentences
    assert told == ("replication factor of 1 partition falls from 3 to 2: t-0",)


@pytest.mark.parametrize("behind", range(3))
def test_a_replica_is_in_sync_only_where_two_brokers_say_so(tmp_path: Path, behind: int) -> None:
    rig = TwinRig(tmp_path, [[0, 1, 2]])
    rig.twin.views.hold_back(behind)  # it goes on showing all three in sync
    out = next(broker for broker in (2, 1) if broker != behind)
    rig.twin.crash(out)
    rig.transport.sleep(60)
    told = refused(rig, {0: (0, out)}, allows_factor_change=True)
    assert [one for one in told if f"in sync, would go, and broker {out}, which is not, would stay" in one]


def test_a_waiting_move_keeps_the_replicas_that_are_in_sync_by_then(tmp_path: Path) -> None:
    """A replica that was in sync at the beginning need not be when the turn of its move comes."""
    rig = TwinRig(tmp_path, [[0, 1, 2]])
    (move,) = rig.prepared({0: (0, 2)}, allows_factor_change=True).moves
    waiting = {move.topic_partition}
    assert not read_moves(rig.client, [move], waiting).unread
    rig.twin.crash(2)
    rig.transport.sleep(60)
    (words,) = (str(one) for one in read_moves(rig.client, [move], waiting).unread.values())
    assert words.startswith("is not started: broker 1, in sync, would go, and broker 2, which is not, would stay")
    rig.twin.start(2)
    rig.transport.sleep(60)
    assert not read_moves(rig.client, [move], waiting).unread


@pytest.mark.parametrize("behind", range(3))
def test_a_raised_min_insync_replicas_is_seen_beside_a_broker_that_lags(tmp_path: Path, behind: int) -> None:
    rig = TwinRig(tmp_path, [[1], [0, 1, 2]])
    rig.twin.views.hold_back(behind)
    raised = [ConfigChange.set("min.insync.replicas", "2")]
    rig.client.incremental_alter_configs({ConfigResource.topic("t"): raised}).raise_if_any()
    rig.transport.sleep(60)
    assert min_isr_of(rig.client, ["t"]).known == {"t": 2}


def test_a_min_insync_replicas_that_is_not_shown_is_not_one(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]])
    odd = OddPort(rig.client)
    topic = ConfigResource.topic("t")
    odd.answer_always("describe_configs", lambda *_, **__: Batch({topic: {}}))
    known, _, unknown = min_isr_of(odd.port, ["t"])
    assert (known, list(unknown)) == ({}, ["t"])
