"""Topic spread: the replicas of each topic shared out, after everything else."""

from dataclasses import replace

import numpy as np
import pytest

from bench.random_clusters import random_cluster
from kreassign.planner import Band, Budget, Rules, solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.check.topics import topics_outside
from kreassign.planner.goals import DISK, REPLICAS
from kreassign.planner.problem.holds import Hold
from kreassign.planner.results import Origin, outcome_of
from tests.planner.small_problems import brokers, partition, posed

EVEN = Rules(topic_spread=0.0)
BANDS = (Band(DISK), Band(REPLICAS))


def held(problem, assignment) -> dict[str, list[int]]:
    """Replicas of each topic on each broker."""
    partitions = problem.partitions
    topics = np.repeat(partitions.topics, np.diff(assignment.offsets))
    return {
        name: np.bincount(assignment.replicas[topics == topic], minlength=len(problem.brokers)).tolist()
        for topic, name in enumerate(partitions.topic_names)
    }


def two_topics(**changes):
    """Balanced in every band: a is on brokers 1 and 2 alone, b on 3 and 4."""
    loads = [partition(number, 1 + number % 2, topic="a") for number in range(8)]
    loads += [partition(number, 3 + number % 2, topic="b") for number in range(8)]
    return posed(brokers(1, 2, 3, 4), loads, bands=BANDS, **changes)


def test_topics_are_shared_out_without_leaving_a_band() -> None:
    problem = two_topics(rules=EVEN)
    found = solve(problem).assignment
    assert held(problem, found) == {"a": [2, 2, 2, 2], "b": [2, 2, 2, 2]}
    judged = evaluate(problem, found)
    assert (judged.violations, judged.misses()) == ((), ())


def test_unless_the_policy_asks_for_it_nothing_moves() -> None:
    problem = two_topics()
    assert evaluate(problem, solve(problem).assignment).moves == 0


def test_a_wider_tolerance_moves_less() -> None:
    moves = {
        tolerance: evaluate(problem, solve(problem).assignment).moves
        for tolerance in (0.0, 0.5, 1.0)
        for problem in [two_topics(rules=Rules(topic_spread=tolerance))]
    }
    assert moves[0.0] > moves[0.5] > moves[1.0] == 0


def test_a_budget_and_what_must_stay_are_kept_and_the_rest_is_told() -> None:
    problem = two_topics(rules=EVEN, budget=Budget(moves=2))
    outcome = outcome_of(problem, solve(problem).assignment, Origin("rebalance"))
    assert outcome.evaluation.moves <= 2
    assert any(line.startswith("topic a: broker ") and "of 8 replicas, its share is 2" in line
               for line in outcome.facts.remaining)  # fmt: skip
    fixed = problem.partitions.held(np.ones(len(problem.partitions), bool), Hold.STAYS)
    assert evaluate(problem, solve(replace(problem, partitions=fixed)).assignment).moves == 0


def test_a_move_for_the_spread_says_so() -> None:
    problem = replace(two_topics(rules=EVEN), bands=())
    outcome = outcome_of(problem, solve(problem).assignment, Origin("rebalance"))
    assert {reason.goal for one in outcome.facts.partitions for reason in one.reasons} == {"topic-spread"}


def test_topics_of_a_tenant_are_shared_out_within_its_brokers() -> None:
    hosts = [replace(host, broker_set="one" if host.id < 3 else "two") for host in brokers(1, 2, 3, 4)]
    loads = [partition(number, 1, broker_set="one") for number in range(4)]
    problem = posed(hosts, loads, bands=(), rules=EVEN)
    assert held(problem, solve(problem).assignment) == {"t": [2, 2, 0, 0]}


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(12))
def test_on_random_clusters_rules_hold_and_topics_get_no_worse(seed: int) -> None:
    plain = random_cluster(seed).problem
    spread = replace(plain, rules=replace(plain.rules, topic_spread=0.1))
    before, after = solve(plain).assignment, solve(spread).assignment
    judged = evaluate(spread, after)
    assert judged.violations == ()
    assert judged.imbalance <= evaluate(plain, before).imbalance + 1e-9
    assert len(topics_outside(spread, after)) <= len(topics_outside(spread, before))
