"""A metadata log that a crash may tear anywhere."""

from __future__ import annotations

from pathlib import Path

from kreassign.twin.cluster import Twin
from kreassign.twin.controller.reassignments import AlterReassignments, Target, TopicTargets, alter_reassignments
from kreassign.twin.store import SIGNATURE, FileLog
from tests.twin.asking import cluster


def move(twin: Twin, target: tuple[int, ...]) -> None:
    requested = tuple(TopicTargets("orders", (Target(number, target),)) for number in range(2))
    twin.commit(alter_reassignments(twin.context, AlterReassignments(requested)))


def test_a_torn_log_loses_at_most_its_last_decision(tmp_path: Path) -> None:
    path, blueprint = tmp_path / "metadata.log", cluster({"orders": [[0, 1], [1, 2]]})
    log = FileLog(path)
    twin = Twin(blueprint, log=log)
    before, whole_before = twin.metadata.copy(), path.stat().st_size
    move(twin, (2, 3))
    log.close()
    whole = path.read_bytes()
    assert len(SIGNATURE) < whole_before < len(whole)
    for length in [*range(whole_before, len(whole), 7), len(whole)]:
        path.write_bytes(whole[:length])
        log = FileLog(path)
        again = Twin(blueprint, log=log)
        assert again.metadata == (twin.metadata if length == len(whole) else before), length
        move(again, (2, 3))
        assert [partition.replicas for partition in again.metadata.topics["orders"].partitions.values()] == [
            (2, 3, 0, 1), (2, 3, 1)
        ]  # fmt: skip
        log.close()
