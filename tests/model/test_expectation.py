"""Expectations of a cluster before a plan runs."""

from __future__ import annotations

import pytest

from kreassign.errors import Drifted
from kreassign.model import OngoingReassignment, TopicPartition
from kreassign.model.reassignment import check_expected, missing_expectations
from tests.approved import approve

A, B, C, D = (TopicPartition("foo", number) for number in range(4))


def test_what_is_as_expected_passes() -> None:
    check_expected({A: (0, 1)}, {A: (0, 1), B: (9,)}, {B: OngoingReassignment((9, 1), (9,), (1,))})
    check_expected({A: (0, 1)}, {A: (0, 1)})
    check_expected({}, {})


def test_a_moving_partition_is_never_as_expected() -> None:
    with pytest.raises(Drifted, match=r"  foo-0: expected at rest on 1,2, but it is on its way to 1$"):
        check_expected({A: (1, 2)}, {A: (1, 2)}, {A: OngoingReassignment((1, 2), (), (2,))})


def test_every_difference_is_told() -> None:
    expected = {A: (0, 1), B: (0, 1), C: (0, 1), D: (0, 1)}
    with pytest.raises(Drifted) as caught:
        check_expected(expected, {A: (0, 1), B: (1, 0), C: (2, 1, 0)}, {C: OngoingReassignment((2, 1, 0), (2,), (0,))})
    approve([caught.value], "drifted")


def test_partitions_of_which_nothing_is_expected_are_found() -> None:
    assert missing_expectations({A: (0,)}, [B, A, C]) == (B, C)
