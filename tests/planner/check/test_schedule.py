import math

import pytest

from kreassign.errors import InputError
from kreassign.planner.check.schedule import copy_seconds, predict
from tests.planner.worlds import GIGABYTE, brokers, moved, partition, world

LOADS = [partition(0, 1, gigabytes=10), partition(1, 1, gigabytes=20), partition(2, 2, gigabytes=30)]


def test_the_busiest_sender_or_receiver_takes_the_longest() -> None:
    problem = world(brokers(1, 2, 3, 4), LOADS)
    sending = predict(problem, moved(problem, (0, (3,)), (1, (4,))), GIGABYTE)
    assert (sending.seconds, sending.longest_move_s) == (30.0, 20.0)
    receiving = predict(problem, moved(problem, (0, (3,)), (2, (3,))), GIGABYTE)
    assert (receiving.seconds, receiving.longest_move_s) == (40.0, 30.0)


def test_a_copy_has_to_catch_up_with_what_is_written_meanwhile() -> None:
    loads = [partition(0, 1, write_bytes_per_s=5e8), partition(1, 1, write_bytes_per_s=1e9)]
    problem = world(brokers(1, 2), loads)
    assert copy_seconds(problem, moved(problem, (0, (2,)), (1, (2,))), GIGABYTE).tolist() == [20.0, math.inf]


def test_a_plan_that_copies_nothing_takes_no_time() -> None:
    problem = world(brokers(1, 2), [partition(0, 1, 2)])
    assert predict(problem, moved(problem, (0, (2, 1))), 1.0).seconds == 0.0


def test_without_a_rate_there_is_nothing_to_predict() -> None:
    problem = world(brokers(1, 2), LOADS)
    with pytest.raises(InputError, match="copies nothing"):
        predict(problem, moved(problem), 0.0)
