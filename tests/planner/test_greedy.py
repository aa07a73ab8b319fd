import random

from hypothesis import given

from kreassign.model import TopicPartition
from kreassign.planner import ByteProblem, PartitionLoad, PlanningBroker, least_bytes, rebalance
from kreassign.planner.thin_evaluate import evaluate
from tests.planner.thin_problems import problem, problems


@given(problems())
def test_a_plan_is_always_legal_and_never_makes_the_imbalance_worse(random_problem: ByteProblem) -> None:
    evaluation = evaluate(random_problem, rebalance(random_problem))
    assert evaluation.violations == ()
    missed = random_problem.band.missed
    before, after = (sum(missed(f.size_bytes) for f in side) for side in (evaluation.before, evaluation.after))
    assert after <= before


@given(problems())
def test_a_plan_names_only_partitions_that_change(random_problem: ByteProblem) -> None:
    targets = rebalance(random_problem)
    assert evaluate(random_problem, targets).legal
    assert all(target != random_problem.current[partition] for partition, target in targets.items())


@given(problems())
def test_a_plan_that_reaches_the_band_copies_at_least_the_lower_bound(random_problem: ByteProblem) -> None:
    evaluation = evaluate(random_problem, rebalance(random_problem))
    assert evaluation.legal
    if not evaluation.out_of_band:
        assert evaluation.copied_bytes >= least_bytes(random_problem)


@given(problems())
def test_the_order_in_which_the_cluster_was_read_does_not_matter(random_problem: ByteProblem) -> None:
    shuffled = ByteProblem(random_problem.brokers[::-1], random_problem.partitions[::-1], random_problem.tolerance)
    targets = rebalance(random_problem)
    assert evaluate(random_problem, targets).legal
    assert rebalance(shuffled) == targets


def test_an_empty_broker_is_filled_up_to_the_band_with_few_bytes() -> None:
    uneven = problem(*[((number % 4, (number + 1) % 4), 10) for number in range(40)], brokers=5)
    evaluation = evaluate(uneven, rebalance(uneven))
    assert evaluation.legal
    assert evaluation.out_of_band == ()
    assert evaluation.copied_bytes <= 1.10 * least_bytes(uneven)
    assert {broker for broker, size in evaluation.bytes_in.items() if size} == {4}


def test_an_even_cluster_is_left_alone() -> None:
    even = problem(((0, 1), 10), ((1, 2), 10), ((2, 3), 10), ((3, 0), 10))
    targets = rebalance(even)
    assert evaluate(even, targets).legal
    assert targets == {}


def test_a_replica_does_not_join_the_rack_of_its_sibling() -> None:
    # Broker 3 is empty, but it shares the rack of broker 1, which holds the other copy of all that broker 0 could give.
    crowded = problem(((0, 1), 10), ((0, 1), 10), ((0, 1), 10), ((2,), 5), brokers=4, racks="abbb")
    targets = rebalance(crowded)
    evaluation = evaluate(crowded, targets)
    assert evaluation.legal
    assert all(0 in target for partition, target in targets.items() if partition.partition < 3)


def test_a_partition_that_must_not_move_stays_but_counts() -> None:
    brokers = (PlanningBroker(0), PlanningBroker(1))
    pinned = PartitionLoad(TopicPartition("pinned", 0), (0,), 100, may_move=False)
    free = PartitionLoad(TopicPartition("free", 0), (0,), 100)
    stuck = ByteProblem(brokers, (pinned, free))
    targets = rebalance(stuck)
    assert targets == {TopicPartition("free", 0): (1,)}
    evaluation = evaluate(stuck, targets)
    assert evaluation.legal
    assert evaluation.out_of_band == ()


def test_a_partition_too_large_for_any_broker_is_reported_not_juggled() -> None:
    lopsided = problem(((0,), 100), ((1,), 1), brokers=2)
    targets = rebalance(lopsided)
    evaluation = evaluate(lopsided, targets)
    assert evaluation.legal
    assert targets == {}
    assert evaluation.out_of_band == (0, 1)


def test_a_thousand_uneven_partitions_come_into_the_band_near_the_bound() -> None:
    source = random.Random(7)
    lists = [(tuple(source.sample(range(9), 3)), source.randint(1, 400)) for _ in range(1000)]
    large = problem(*lists, brokers=10, racks="abcabcabca")
    evaluation = evaluate(large, rebalance(large))
    assert evaluation.legal
    assert evaluation.out_of_band == ()
    assert evaluation.copied_bytes <= 1.05 * least_bytes(large)
    leaders = [figures.preferred_leader_count for figures in evaluation.after]
    assert max(leaders) - min(leaders) <= 1
