from kreassign.model import TopicPartition
from kreassign.planner import least_bytes
from kreassign.planner.thin_evaluate import evaluate
from tests.planner.thin_problems import MEGABYTE, problem


def test_what_an_empty_broker_lacks_must_be_copied() -> None:
    # Mean 20 MB, band 18 to 22: two brokers stand 8 MB above it, the empty one lacks 18 MB, which is more.
    three = problem(((0,), 10), ((0,), 20), ((1,), 10), ((1,), 20), brokers=3)
    assert evaluate(three, {TopicPartition("t", 0): (2,), TopicPartition("t", 2): (2,)}).out_of_band == ()
    assert least_bytes(three) == 18 * MEGABYTE


def test_what_stands_above_the_band_must_leave() -> None:
    # Mean 15, band 13.5 to 16.5: broker 0 stands 13.5 above it, the others lack 3.5 each, 10.5 in all.
    four = problem(((0,), 10), ((0,), 20), ((1,), 10), ((2,), 10), ((3,), 10))
    assert evaluate(four, {}).out_of_band == (0, 1, 2, 3)
    assert least_bytes(four) == 13_500_000


def test_a_balanced_cluster_needs_no_bytes() -> None:
    even = problem(((0, 1), 10), ((1, 0), 10), brokers=2)
    assert evaluate(even, {}).legal
    assert least_bytes(even) == 0
