from dataclasses import replace

import pytest

from kreassign.errors import InputError
from kreassign.planner import Band, LogDirFacts
from kreassign.planner.goals import DISK, LEADERS
from kreassign.planner.tasks import balance_disks
from tests.planner.worlds import brokers, partition, world

PROBLEM = world(brokers(1, 2, log_dirs=(LogDirFacts("/a"),)), [partition(0, 1)])


def test_replicas_change_directories_alone_or_along_with_brokers() -> None:
    alone, together = balance_disks(PROBLEM).rules, balance_disks(PROBLEM, between_brokers=True).rules
    assert (alone.between_log_dirs, alone.between_brokers, alone.leaders) == (True, False, False)
    assert (together.between_log_dirs, together.between_brokers, together.leaders) == (True, True, True)


def test_directories_have_a_band_even_if_the_goals_have_none() -> None:
    assert balance_disks(replace(PROBLEM, bands=())).bands == (Band(DISK),)
    assert balance_disks(replace(PROBLEM, bands=(Band(DISK, None), Band(LEADERS)))).bands == (Band(DISK), Band(LEADERS))
    assert balance_disks(replace(PROBLEM, bands=(Band(DISK, 0.2),))).bands == (Band(DISK, 0.2),)


def test_without_any_directory_known_it_is_refused() -> None:
    with pytest.raises(InputError, match="nothing is known of log directories"):
        balance_disks(world(brokers(1), [partition(0, 1)]))
