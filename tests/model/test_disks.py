"""Disks behind the log directories of a broker, as far as their figures show."""

from __future__ import annotations

import pytest

from kreassign.model import LogDir
from kreassign.model.disks import WHILE_READ_BYTES, disks, sum_of_disks

MB, GB = 1_000_000, 1_000_000_000


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


@pytest.mark.parametrize(("total", "usable", "together"), [
    (GB, [GB // 2, GB // 2 - MB, GB // 2 + 2 * MB], [2, 1]),
    (1_000 * GB, [GB, GB + WHILE_READ_BYTES], [2]),
    (1_000 * GB, [GB, GB + WHILE_READ_BYTES + 1], [1, 1]),
])  # fmt: skip
def test_others_may_write_while_a_broker_looks_at_its_directories(
    total: int, usable: list[int], together: list[int]
) -> None:
    dirs = [log_dir(f"/{number}", total, free) for number, free in enumerate(usable)]
    assert [len(each) for each in disks(dirs, lambda _: 0)] == together
    assert [len(each) for each in disks(dirs, lambda _: None)] == [1] * len(dirs), "their replicas may need more"


def test_replicas_that_need_more_than_is_used_are_on_disks_of_their_own() -> None:
    """Disks of a broker that are balanced are as full as each other."""
    dirs = [log_dir(f"/{number}", 1_000 * GB, 400 * GB + number * MB) for number in range(3)]
    assert len(disks(dirs, lambda _: 190 * GB)) == 1
    assert len(disks(dirs, lambda _: 590 * GB)) == 3
    assert len(disks(dirs[:1] * 2, lambda _: 590 * GB)) == 1, "a file system may compress"
