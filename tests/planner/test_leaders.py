from collections import Counter

from hypothesis import given

from kreassign.model import TopicPartition
from kreassign.planner import ByteProblem
from kreassign.planner.leaders import spread_leaders
from kreassign.planner.thin_evaluate import evaluate
from tests.planner.thin_problems import problem, problems


def lists(*orders: tuple[int, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition("t", number): order for number, order in enumerate(orders)}


@given(problems())
def test_replicas_stay_and_only_their_order_changes(random_problem: ByteProblem) -> None:
    before = random_problem.current
    pinned = {load.topic_partition for load in random_problem.partitions if not load.may_move}
    after = spread_leaders(before, random_problem.broker_ids, pinned)
    evaluation = evaluate(random_problem, after)
    assert evaluation.legal
    assert evaluation.copied_bytes == 0
    assert all(sorted(after[partition]) == sorted(before[partition]) for partition in before)


def spread(counts: Counter[int]) -> int:
    return max(counts.values()) - min(counts.values())


@given(problems())
def test_leaders_never_become_less_even(random_problem: ByteProblem) -> None:
    before = Counter(dict.fromkeys(random_problem.broker_ids, 0))
    after = before.copy()
    targets = spread_leaders(random_problem.current, random_problem.broker_ids)
    before.update(order[0] for order in random_problem.current.values())
    after.update(order[0] for order in targets.values())
    assert spread(after) <= spread(before)


def test_one_broker_that_leads_all_shares_evenly() -> None:
    orders = lists((0, 1), (0, 2), (0, 1), (0, 2), (0, 1), (0, 2))
    after = spread_leaders(orders, range(3))
    assert evaluate(problem(*[(order, 1) for order in orders.values()]), after).legal
    assert Counter(order[0] for order in after.values()) == {0: 2, 1: 2, 2: 2}


def test_leadership_is_handed_along_a_chain_when_no_single_swap_helps() -> None:
    # Broker 0 shares partitions with 1 only, and 1 with 2: to relieve 0, broker 1 must give one on.
    orders = lists((0, 1), (0, 1), (1, 2))
    after = spread_leaders(orders, range(3))
    assert evaluate(problem(*[(order, 1) for order in orders.values()]), after).legal
    assert Counter(order[0] for order in after.values()) == {0: 1, 1: 1, 2: 1}


def test_followers_keep_their_places() -> None:
    orders = lists((0, 1, 2), (0, 3, 2))
    after = spread_leaders(orders, range(4))
    assert evaluate(problem(*[(order, 1) for order in orders.values()]), after).legal
    assert after == lists((1, 0, 2), (0, 3, 2))


def test_a_pinned_partition_keeps_its_order() -> None:
    orders = lists((0, 1), (0, 1))
    after = spread_leaders(orders, range(2), {TopicPartition("t", 0)})
    assert evaluate(problem(*[(order, 1) for order in orders.values()]), after).legal
    assert after == lists((0, 1), (1, 0))
