"""Doubtful loads and their priors, from arrays: what is taken in the place of what."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kreassign.model import TopicPartition
from kreassign.model.load import MOST_NAMED, PRIORS, DoubtfulLoad, DoubtfulShare, LoadBasis
from kreassign.model.replica_columns import ReplicaColumns
from kreassign.pipeline.load.doubt import NO_RATE, heed

NAN = math.nan
REASONS = ("gaps", "short", "unknown")


class Load(NamedTuple):
    """A partition: topic, number, rate and size (NaN where unknown), why it is doubtful, its brokers."""

    topic: str
    number: int
    rate: float
    size: float = 100.0
    reason: str | None = None
    brokers: tuple[int, ...] = (1, 2)


def columns_of(names: list[str], rows: list[tuple[Load, int]]) -> ReplicaColumns:
    """A row for each load on each of its brokers, as columns."""
    return ReplicaColumns(
        topic_names=names,
        topics=np.array([names.index(load.topic) for load, _ in rows], np.int32),
        partitions=np.array([load.number for load, _ in rows], np.int32),
        brokers=np.array([broker for _, broker in rows], np.int32),
        positions=np.array([load.brokers.index(broker) for load, broker in rows], np.int32),
        is_reassigning=np.zeros(len(rows), bool),
        size_bytes=np.array([load.size for load, _ in rows], np.float64),
        write_bytes_per_s=np.array([load.rate for load, _ in rows], np.float64),
    )


def heeded(*loads: Load) -> tuple[dict[tuple[str, int], float], LoadBasis]:
    """The rate of each partition to plan with, and what the rates rest on."""
    rows = [(load, broker) for load in loads for broker in load.brokers]
    names = sorted({load.topic for load in loads})
    reasons = np.array([-1 if load.reason is None else REASONS.index(load.reason) for load, _ in rows], np.int32)
    rates, basis = heed(columns_of(names, rows), "mean", 0, REASONS, reasons)
    return {(load.topic, load.number): rate for (load, _), rate in zip(rows, rates.tolist(), strict=True)}, basis


def test_loads_that_are_enough_are_taken_as_they_are() -> None:
    rates, basis = heeded(Load("a", 0, 0.1), Load("a", 1, 0.0), Load("b", 0, 1e10))
    assert rates == {("a", 0): 0.1, ("a", 1): 0.0, ("b", 0): 1e10}
    assert (basis.partitions, basis.doubtful_count, basis.doubtful, basis.brokers) == (3, 0, (), ())


def test_a_few_absurd_partitions_get_the_median_of_their_topic() -> None:
    enough = [Load("t", number, float(number)) for number in range(1, 6)]
    rates, basis = heeded(*enough, Load("t", 8, 1.91e14, reason="short"), Load("t", 9, NAN, reason="unknown"))
    assert (rates["t", 8], rates["t", 9]) == (3.0, 3.0)
    assert (basis.reasons, basis.priors) == ({"short": 1, "unknown": 1}, {"topic": 2})


def test_the_median_of_an_even_number_is_between_the_middle_two() -> None:
    four = [Load("t", number, rate) for number, rate in enumerate((9.0, 1.0, 2.0, 4.0))]
    same = [Load("u", number, 5.0) for number in range(4)]
    rates, _ = heeded(*four, Load("t", 9, NAN, reason="unknown"), *same, Load("u", 9, 7.0, reason="gaps"))
    assert (rates["t", 9], rates["u", 9]) == (3.0, 5.0)


def test_a_lone_partition_keeps_its_doubtful_rate_unless_implausible() -> None:
    known = Load("a", 0, 50.0, size=1000.0)
    rates, basis = heeded(
        known, Load("new", 0, 50.0, reason="short"), Load("absurd", 0, 51.0, size=200.0, reason="short")
    )
    assert (rates["new", 0], rates["absurd", 0]) == (50.0, 10.0)
    assert basis.priors == {"measured": 1, "size": 1}


def test_without_rate_and_siblings_the_size_tells_or_nothing() -> None:
    known = Load("a", 0, 30.0, size=100.0), Load("a", 1, 10.0, size=300.0)
    rates, basis = heeded(
        *known,
        Load("b", 0, NAN, size=1000.0, reason="unknown"),
        Load("c", 0, NAN, size=0.0, reason="unknown"),
        Load("d", 0, NAN, size=NAN, reason="unknown"),
        Load("e", 0, 1e9, size=NAN, reason="short"),
    )
    assert [rates[topic, 0] for topic in "bcde"] == [100.0, 0.0, 0.0, 0.0]
    assert basis.priors == {"size": 2, "unknown": 2}
    assert basis.unsized == 2


def test_without_an_enough_load_each_keeps_its_measured_rate() -> None:
    rates, basis = heeded(
        Load("a", 0, 7.0, reason="short"), Load("a", 1, 0.0, reason="short"), Load("b", 0, NAN, reason="unknown")
    )
    assert rates == {("a", 0): 7.0, ("a", 1): 0.0, ("b", 0): 0.0}
    assert basis.priors == {"measured": 2, "unknown": 1}


def test_a_cluster_of_which_nothing_is_known_is_all_unknown() -> None:
    loads = [Load("t", number, NAN, size=NAN, reason="unknown") for number in range(3)]
    rates, basis = heeded(*loads)
    assert set(rates.values()) == {0.0}
    assert (basis.reasons, basis.priors, basis.unsized) == ({"unknown": 3}, {"unknown": 3}, 3)
    assert [(one.write_share, one.size_share, one.replicas) for one in basis.brokers] == [(0.0, 0.0, 3)] * 2


def test_an_idle_or_empty_cluster_divides_nothing_by_zero() -> None:
    rates, basis = heeded(Load("a", 0, 0.0, size=0.0), Load("b", 0, NAN, size=9.0, reason="unknown"))
    assert (rates["b", 0], basis.priors) == (0.0, {"unknown": 1})


def test_a_rate_that_is_no_rate_is_doubtful_whatever_its_verdict() -> None:
    for rate in (NAN, -1.0, math.inf):
        rates, basis = heeded(Load("t", 0, 4.0), Load("t", 1, rate))
        assert (rates["t", 1], basis.reasons, basis.priors) == (4.0, {NO_RATE: 1}, {"topic": 1})


def test_a_size_that_is_no_size_makes_no_rate() -> None:
    for size in (-5.0, math.inf):
        rates, basis = heeded(Load("a", 0, 4.0), Load("b", 0, NAN, size=size), Load("c", 0, 4.0, size=size))
        assert (rates["b", 0], basis.priors, basis.unsized) == (0.0, {"unknown": 1}, 2)
        assert all(0 <= one.size_share <= 1 for one in basis.brokers)


def test_shares_are_of_the_present_writes_and_bytes_of_each_broker() -> None:
    _, basis = heeded(
        Load("t", 0, 30.0, size=100.0, brokers=(1, 2)),
        Load("t", 1, NAN, size=300.0, reason="unknown", brokers=(2,)),
        Load("u", 0, 90.0, size=100.0, brokers=(2, 3)),
    )
    (share,) = basis.brokers
    assert (share.broker, share.replicas, share.write_share, share.size_share) == (2, 1, 30 / 150, 300 / 500)


def test_the_largest_are_named_first_then_by_name() -> None:
    loads = [Load("b", 1, NAN, size=1.0), Load("a", 1, NAN, size=1.0), Load("a", 0, NAN, size=2.0), Load("c", 0, 5.0)]
    _, basis = heeded(*(load._replace(reason="short") for load in loads))
    assert [one.topic_partition for one in basis.doubtful] == [
        TopicPartition("c", 0), TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 1)
    ]  # fmt: skip
    _, many = heeded(*(Load("t", number, NAN, reason="unknown") for number in range(MOST_NAMED + 1)))
    assert (len(many.doubtful), many.doubtful_count) == (MOST_NAMED, MOST_NAMED + 1)


ANY_LOADS = st.lists(
    st.builds(
        Load,
        st.sampled_from("abc"),
        st.integers(0, 3),
        st.sampled_from((NAN, 0.0, 1.0, 2.5, 1e10)),
        st.sampled_from((NAN, 0.0, 10.0, 1e15)),
        st.sampled_from((None, *REASONS)),
        st.sampled_from(((1,), (2, 1), (3, 1, 2))),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda load: (load.topic, load.number),
)


@given(ANY_LOADS, st.randoms(use_true_random=False))
def test_doubtful_loads_count_once_and_row_order_is_irrelevant(loads, random) -> None:
    rates, basis = heeded(*loads)
    assert all(math.isfinite(rate) and rate >= 0 for rate in rates.values())
    doubtful = {load for load in loads if load.reason is not None or math.isnan(load.rate)}
    assert basis.doubtful_count == sum(basis.priors.values()) == len(doubtful)
    assert all(rates[load.topic, load.number] == load.rate for load in loads if load not in doubtful)
    assert set(basis.priors) <= set(PRIORS)
    assert all(0 <= one.write_share <= 1 and 0 <= one.size_share <= 1 for one in basis.brokers)
    again, same = heeded(*random.sample(loads, len(loads)))
    assert (again, same) == (rates, basis)


def test_loads_without_a_reason_are_doubtful_only_without_a_rate() -> None:
    rows = [(Load("t", 0, 5.0), 1), (Load("t", 1, NAN), 1)]
    rates, basis = heed(columns_of(["t"], rows), "mean", 0)
    assert (rates.tolist(), len(basis.doubtful)) == ([5.0, 5.0], 1)


def test_a_basis_says_all_that_rates_rest_on() -> None:
    loads = (
        Load("a", 0, 0.25, size=1.0, brokers=(1, 2)),
        Load("a", 1, 0.75, size=0.0, brokers=(2,)),
        Load("b", 3, 0.5, size=2.0, reason="short", brokers=(3, 2)),
        Load("b", 7, NAN, size=NAN, reason="gaps", brokers=(3,)),
        Load("c", 0, 9.0, size=0.5, reason="short", brokers=(4,)),
    )
    rates, basis = heeded(*loads)
    # Where it is known, a byte is written to once a second: 0.25 + 0.75 for 1 + 0 bytes.
    assert rates == {("a", 0): 0.25, ("a", 1): 0.75, ("b", 3): 0.5, ("b", 7): 0.0, ("c", 0): 0.5}
    assert basis == LoadBasis(
        "mean",
        0,
        5,
        reasons={"gaps": 1, "short": 2},
        priors={"measured": 1, "size": 1, "unknown": 1},
        unsized=1,
        doubtful=(
            DoubtfulLoad(TopicPartition("b", 3), "short", "measured", 0.5),
            DoubtfulLoad(TopicPartition("c", 0), "short", "size", 0.5),
            DoubtfulLoad(TopicPartition("b", 7), "gaps", "unknown", 0.0),
        ),
        brokers=(
            DoubtfulShare(2, 1, 0.5 / 1.5, 2.0 / 3.0),
            DoubtfulShare(3, 2, 1.0, 1.0),
            DoubtfulShare(4, 1, 1.0, 1.0),
        ),
    )


def test_medians_are_those_of_each_topic_whatever_topics_lie_between() -> None:
    loads = [Load("a", n, rate) for n, rate in enumerate((5.0, 1.0, 3.0))] + [Load("c", 0, 8.0), Load("c", 1, 2.0)]
    doubtful = [Load(topic, 9, NAN, size=NAN, reason="unknown") for topic in "abcd"]
    rates, basis = heeded(*loads, *doubtful)
    assert [rates[topic, 9] for topic in "abcd"] == [3.0, 0.0, 5.0, 0.0]
    assert basis.priors == {"topic": 2, "unknown": 2}


def test_without_partitions_nothing_is_doubtful() -> None:
    rates, basis = heed(columns_of([], []), "peak", 7)
    assert (rates.tolist(), basis) == ([], LoadBasis("peak", 7, 0))
