"""A cluster whose nodes are all gone, or all hang, in the middle of a run: it is told within 15 seconds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.errors import Unreachable
from kreassign.executor.lease import ClusterLease, Held, LeaseHolder, LeasePolicy
from kreassign.operations import run_journals
from kreassign.twin.api.connection import AffectedResponses, Delayed
from kreassign.twin.cluster import Twin
from kreassign.wire import api
from tests.executor.twin_runs import RATE, TwinRig

pytestmark = pytest.mark.thorough

TOLD_S = 15
SILENT = "the cluster has not answered since 00:0"
CRASH, FREEZE = (Twin.crash, Twin.start), (Twin.freeze, Twin.unfreeze)


@pytest.mark.parametrize("ways", [CRASH, FREEZE], ids=["crash", "freeze"])
@pytest.mark.parametrize("is_leased", [False, True], ids=["", "leased"])
@pytest.mark.parametrize("at_s", [0.5, 3, 5.3, 10.5])
def test_a_run_whose_brokers_are_all_gone_says_so_within_15_seconds(
    tmp_path: Path, ways: tuple[Callable[[Twin, int], object], ...], is_leased: bool, at_s: float
) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]], size_bytes=20 * RATE)
    brokers = rig.twin.processes.ids
    if is_leased:
        lease = ClusterLease(rig.client, rig.transport, LeaseHolder("run-1", "alice", "a", 0), LeasePolicy.REQUIRE)
        assert isinstance(lease.take(), Held)
        rig.lease = lease
    told: list[str] = []

    def look() -> None:
        assert rig.runner is not None
        seen = (rig.runner.run.silence, run_journals.status_and_progress(rig.path()).silence)
        told.extend(str(one) for one in (*seen, next(run_journals.watch(rig.path())).silence))
        told.append(CliRunner().invoke(kreassign, ["status", "--state-dir", str(tmp_path)]).output)

    rig.after(at_s, lambda: [ways[0](rig.twin, broker) for broker in brokers])
    rig.after(at_s + TOLD_S, look)
    rig.after(at_s + 60, lambda: [ways[1](rig.twin, broker) for broker in brokers])
    rig.end_within(600)
    ended = rig.run(rig.prepared({0: (2, 1), 1: (3, 0)}))
    assert [SILENT in one for one in told] == [True] * 4, told
    assert ended.state == "done"


def test_a_large_cluster_that_hangs_is_noticed_and_found_again(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[number, number + 1] for number in range(19)], brokers=20)
    rig.client.describe_log_dirs(range(20))  # so that all are known
    for broker in range(20):
        rig.twin.freeze(broker)
    begun_s = rig.transport.monotonic_s()
    with pytest.raises(Unreachable, match="no node of the cluster can be reached"):
        rig.client.list_partition_reassignments()
    assert rig.transport.monotonic_s() - begun_s < TOLD_S
    rig.twin.unfreeze(17)
    for _ in range(12):
        with suppress(Unreachable):
            rig.client.list_partition_reassignments(timeout_ms=20_000)
    assert 17 in rig.client.describe_cluster().broker_ids


def test_a_cluster_whose_nodes_answer_in_two_seconds_is_found_again(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]])
    rig.client.describe_log_dirs(range(5))  # so that all are known
    rig.twin.response_faults.add(Delayed(2_000), AffectedResponses(api.DESCRIBE_CLUSTER.key), hits_once=False)
    rig.twin.freeze(0)
    assert rig.client.list_partition_reassignments() == {}
