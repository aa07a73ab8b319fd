"""Disks behind the log directories of a broker, as far as their figures show."""

from __future__ import annotations

import pytest

from kreassign.model import LogDir
from kreassign.model.disks import disks, sum_of_disks
from kreassign.model.snapshot import SnapshotLogDir
from kreassign.operations.plan_inputs import disk_bytes


def log_dir(path: str, total: int | None, usable: int | None) -> LogDir:
    return LogDir(path, None, total, usable, is_cordoned=False, replicas=())


@pytest.mark.parametrize(("figures", "together", "total", "usable"), [
    ([(100, 40), (100, 40)], [2], 100, 40),
    ([(100, 40), (100, 41), (100, 40)], [2, 1], 200, 81),
    ([(100, 40), (200, 40)], [1, 1], 300, 80),
    ([(100, 90), (100, 90)], [2], 100, 90),
    # New disks of one model are alike to the byte.
    ([(100, 91), (100, 91)], [1, 1], 200, 182),
    ([(100, None), (100, None)], [1, 1], 200, None),
    ([(None, None), (100, 40)], [1, 1], None, None),
    ([], [], None, None),
])  # fmt: skip
def test_directories_with_the_same_figures_share_a_disk(
    figures: list[tuple[int | None, int | None]], together: list[int], total: int | None, usable: int | None
) -> None:
    dirs = [log_dir(f"/{number}", *each) for number, each in enumerate(figures)]
    assert [len(each) for each in disks(dirs)] == together
    assert sum_of_disks(dirs) == (total, usable)


def test_a_plan_counts_a_disk_with_two_directories_once() -> None:
    assert disk_bytes([SnapshotLogDir("/a", 100, 40), SnapshotLogDir("/b", 100, 40)]) == 100
    assert disk_bytes([SnapshotLogDir("/a", 100, 40), SnapshotLogDir("/b", 100, 39)]) == 200
