import math
from dataclasses import replace

import numpy as np
import pytest

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts import Prediction
from kreassign.planner import Assignment, LogDirFacts, assignment_of, changes_of
from kreassign.planner.arrays import NOWHERE
from kreassign.planner.check.cost import copy_seconds, predict
from kreassign.planner.check.evaluate import evaluate
from tests.planner.small_problems import GIGABYTE, brokers, moved, partition, posed

PROBLEM = posed(
    brokers(1, 2, 3, log_dirs=(LogDirFacts("/a"), LogDirFacts("/b"))),
    [partition(0, 1, 2), partition(1, 2, 3, log_dirs=("/a", "/b")), partition(2, 3, 1)],
)


def test_nothing_differs_from_the_present() -> None:
    found = changes_of(PROBLEM, Assignment.current(PROBLEM.partitions))
    for what in (found.added, found.removed, found.differs, found.leader_changes, found.changes_dir):
        assert not what.any()


def test_what_is_added_and_removed_is_told_from_what_stays() -> None:
    found = changes_of(PROBLEM, moved(PROBLEM, (0, (3, 2))))
    assert found.added.tolist() == [True, False, False, False, False, False]
    assert found.removed.tolist() == [True, False, False, False, False, False]
    assert found.differs.tolist() == [True, False, False]
    assert found.leader_changes.tolist() == [True, False, False]


def test_another_order_differs_but_adds_nothing() -> None:
    found = changes_of(PROBLEM, moved(PROBLEM, (2, (1, 3))))
    assert found.differs.tolist() == found.leader_changes.tolist() == [False, False, True]
    assert not found.added.any()


def test_another_number_of_replicas_shifts_nobody_else() -> None:
    found = changes_of(PROBLEM, moved(PROBLEM, (0, (1,)), (2, (3, 1, 2))))
    assert found.differs.tolist() == [True, False, True]
    assert found.added.tolist() == [False, False, False, False, False, True]
    assert found.removed.tolist() == [False, True, False, False, False, False]


def test_a_change_of_directory_is_no_copy_to_a_broker() -> None:
    entry = PartitionAssignment(TopicPartition("t", 1), (2, 3), ("/b", "/b"))
    found = changes_of(PROBLEM, assignment_of(PROBLEM, Plan((entry,))))
    assert found.changes_dir.tolist() == [False, False, True, False, False, False]
    assert found.differs.tolist() == [False, True, False]
    assert not found.added.any()


def test_every_replica_is_told_its_partition_and_its_place_of_now() -> None:
    found = changes_of(PROBLEM, moved(PROBLEM, (0, (2, 3)), (2, (1, 2))))
    assert found.owners.tolist() == [0, 0, 1, 1, 2, 2]
    assert found.present.tolist() == [1, NOWHERE, 2, 3, 5, NOWHERE]
    assert found.removed.tolist() == [True, False, False, False, True, False]
    assert found.leader_changes.tolist() == [True, False, True]


def test_the_last_partition_may_go_to_the_last_broker() -> None:
    problem = posed(brokers(1, 2, 3), [partition(0, 3), partition(1, 1)])
    assert changes_of(problem, moved(problem, (1, (3,)))).added.tolist() == [False, True]


def test_without_a_named_directory_none_is_changed() -> None:
    anywhere = Assignment.current(PROBLEM.partitions)
    anywhere = Assignment(anywhere.offsets, anywhere.replicas, np.full(6, NOWHERE, np.int32))
    found = changes_of(PROBLEM, anywhere)
    assert (found.changes_dir.tolist(), found.differs.tolist()) == ([False] * 6, [False] * 3)
    entry = PartitionAssignment(TopicPartition("t", 1), (2, 1), ("/a", "/b"))
    copied = changes_of(PROBLEM, assignment_of(PROBLEM, Plan((entry,))))
    assert not copied.changes_dir.any()
    assert copied.added.tolist() == [False, False, False, True, False, False]


INTS = np.int32
BAD = (
    (Assignment(np.array([0, 1], INTS), np.array([0], INTS), np.array([-1], INTS)), "of 1 partition "),
    (
        Assignment(np.array([0, 2, 2, 4], INTS), np.array([0, 1, 0, 1], INTS), np.full(4, -1, INTS)),
        "t-1 without replicas",
    ),
    (Assignment(np.array([0, 1, 2, 3], INTS), np.array([0, 1, 3], INTS), np.full(3, -1, INTS)), "names a broker"),
    (Assignment(np.array([0, 1, 2, 3], INTS), np.array([0, 1, -1], INTS), np.full(3, -1, INTS)), "names a broker"),
    (Assignment(np.array([0, 1, 2, 3], INTS), np.array([0, 1, 2], INTS), np.full(3, 6, INTS)), "names a log directory"),
    (
        Assignment(np.array([0, 1, 2, 3], INTS), np.array([0, 1, 2], INTS), np.full(3, -2, INTS)),
        "names a log directory",
    ),
    (
        Assignment(np.array([0, 1, 2, 3], INTS), np.array([0, 1], INTS), np.full(3, -1, INTS)),
        "names a broker .*one per",
    ),
    (Assignment(np.array([0, 1, 2, 3], INTS), np.zeros(4, INTS), np.full(3, -1, INTS)), "names a broker"),
    (Assignment(np.array([0, 1, 2, 3], INTS), np.zeros(3, INTS), np.full(2, -1, INTS)), "names a log directory"),
)


@pytest.mark.parametrize(("assignment", "words"), BAD)
def test_an_assignment_of_another_problem_is_refused(assignment: Assignment, words: str) -> None:
    with pytest.raises(InputError, match=words):
        changes_of(PROBLEM, assignment)


def test_without_log_directories_none_can_be_named() -> None:
    plain = posed(brokers(1), [partition(0, 1)])
    first = Assignment(np.array([0, 1], INTS), np.array([0], INTS), np.array([0], INTS))
    with pytest.raises(InputError, match="names a log directory"):
        changes_of(plain, first)


LOADS = [partition(0, 1, gigabytes=10), partition(1, 1, gigabytes=20), partition(2, 2, gigabytes=30)]


def test_the_busiest_sender_or_receiver_takes_the_longest() -> None:
    problem = posed(brokers(1, 2, 3, 4), LOADS)
    sending = predict(problem, moved(problem, (0, (3,)), (1, (4,))), GIGABYTE)
    assert (sending.seconds, sending.longest_move_s) == (30.0, 20.0)
    receiving = predict(problem, moved(problem, (0, (3,)), (2, (3,))), GIGABYTE)
    assert (receiving.seconds, receiving.longest_move_s) == (40.0, 30.0)


def test_a_dead_broker_sends_nothing_and_the_next_of_its_lists_does() -> None:
    hosts = [replace(host, is_live=host.id != 1) for host in brokers(1, 2, 3, 4, 5)]
    problem = posed(hosts, [partition(0, 1, 2), partition(1, 1, 3)])
    repaired = moved(problem, (0, (2, 4)), (1, (3, 5)))
    assert predict(problem, repaired, GIGABYTE).seconds == 10.0
    assert evaluate(problem, repaired).bytes_out.tolist() == [0, 10 * GIGABYTE, 10 * GIGABYTE, 0, 0]


def test_a_copy_has_to_catch_up_with_what_is_written_meanwhile() -> None:
    loads = [partition(0, 1, write_bytes_per_s=5e8), partition(1, 1, write_bytes_per_s=1e9)]
    problem = posed(brokers(1, 2), loads)
    assert copy_seconds(problem, moved(problem, (0, (2,)), (1, (2,))), GIGABYTE).tolist() == [20.0, math.inf]


def test_without_a_rate_there_is_nothing_to_predict() -> None:
    problem = posed(brokers(1, 2), LOADS)
    with pytest.raises(InputError, match="copies nothing"):
        predict(problem, moved(problem), 0.0)


def test_faster_writes_than_copies_never_arrive() -> None:
    busy = [partition(0, 1, write_bytes_per_s=20.0), partition(1, 1, gigabytes=0, write_bytes_per_s=20.0)]
    problem = posed(brokers(1, 2), [*busy, partition(2, 1, write_bytes_per_s=5.0)])
    there = moved(problem, (0, (2,)), (1, (2,)), (2, (2,)))
    assert copy_seconds(problem, there, 10.0).tolist() == [float("inf"), 0.0, 2e9]


def test_the_last_byte_of_a_small_copy_takes_its_time_too() -> None:
    slow = [partition(0, 1, gigabytes=1, write_bytes_per_s=0.5), partition(1, 1, gigabytes=1e-9, write_bytes_per_s=2.0)]
    problem = posed(brokers(1, 2), slow)
    there = moved(problem, (0, (2,)), (1, (2,)))
    assert copy_seconds(problem, there, 1.0).tolist() == [2e9, math.inf]
    assert predict(problem, there, 4.0) == Prediction(4.0, 1e9 / 3.5 + 0.5, 1e9 / 3.5)
