"""Consumers that fetch from followers: reads are counted where they go."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from kreassign.errors import InputError
from kreassign.planner import Assignment, Band, BrokerFacts, PlanPolicy, Problem, Rules, evaluate, solve, with_policy
from kreassign.planner.check.evaluate import bytes_sent_by_brokers
from kreassign.planner.goals import CPU, NET_OUT
from kreassign.planner.problem.goals_file import parse_policy
from kreassign.planner.problem.problem import RackRule
from kreassign.planner.results import Origin, outcome_of
from kreassign.planner.search.subproblems import attempt, solve_in_subproblems
from kreassign.planner.tasks.placement import add_partitions, placed_lists
from kreassign.planner.tasks.what_if import scaled
from tests.planner.small_problems import brokers, partition, posed

EVEN = {"t": {"a": 1.0, "b": 1.0, "c": 1.0}}
BANDS = (Band(NET_OUT), Band(CPU))


def read(number: int, *replicas: int, written: float = 10.0, consumed: float = 90.0):
    sent = written * (len(replicas) - 1) + consumed
    return partition(number, *replicas, write_bytes_per_s=written, read_bytes_per_s=sent, leader_cpu=100.0)


def with_consumers(problem: Problem, weights: dict[str, dict[str, float]]) -> Problem:
    return with_policy(problem, PlanPolicy(bands=BANDS, consumer_racks=weights))


def test_each_third_of_the_consumers_reads_in_its_own_rack() -> None:
    problem = with_consumers(posed(brokers(1, 2, 3, racks="abc"), [read(0, 1, 2, 3)]), EVEN)
    # The leader sends 2 x 10 to followers, and 30 to consumers in its rack; each follower 30.
    assert bytes_sent_by_brokers(problem, Assignment.current(problem.partitions)).tolist() == pytest.approx(
        [50, 30, 30]
    )
    now = problem.partitions
    assert (now.read_bytes_per_s[0], now.follower_read_bytes_per_s[0]) == pytest.approx((50, 30))
    assert NET_OUT.follower(now).tolist() == pytest.approx([30])


def test_racks_without_a_replica_read_from_the_leader() -> None:
    hosts = brokers(1, 2, 3, 4, racks="aabc")
    problem = posed(hosts, [read(0, 1, 2, 3)], rules=Rules(racks=RackRule.NONE))
    problem = with_policy(problem, PlanPolicy(bands=BANDS, racks=RackRule.NONE, consumer_racks=EVEN))
    # a: the leader, although 2 is there too. b: broker 3. c: nobody, so the leader.
    assert bytes_sent_by_brokers(problem, Assignment.current(problem.partitions)).tolist() == pytest.approx(
        [80, 0, 30, 0]
    )


def test_without_consumers_that_may_nothing_changes() -> None:
    plain = posed(brokers(1, 2, 3, racks="abc"), [read(0, 1, 2, 3)])
    same = with_policy(plain, PlanPolicy())
    assert same.partitions.follower_reads is None
    assert same.partitions.read_bytes_per_s.tolist() == plain.partitions.read_bytes_per_s.tolist()


def test_what_is_sent_in_all_stays_the_same_and_so_does_the_cpu() -> None:
    plain = posed(brokers(1, 2, 3, racks="abc"), [read(0, 1, 2, 3), read(1, 2, 3, 1)])
    problem = with_consumers(plain, {"t": {"a": 1.0, "b": 3.0}})
    assert problem.totals.tolist() == pytest.approx(replace(plain, bands=BANDS).totals.tolist())
    # Of the leader's, what the reads that went take of what all its bytes cost, whatever the unit of its CPU.
    moved = 0.15 * (plain.partitions.read_bytes_per_s - problem.partitions.read_bytes_per_s)
    cost = 0.7 * plain.partitions.write_bytes_per_s + 0.15 * plain.partitions.read_bytes_per_s
    assert moved.min() > 0
    assert problem.partitions.leader_cpu.tolist() == pytest.approx((100 * (1 - moved / cost)).tolist())


def test_the_plan_is_judged_by_the_reads_and_limits_of_the_search() -> None:
    loads = [read(number, 1, 2, 3) for number in range(6)]
    problem = with_consumers(posed(brokers(1, 2, 3, racks="abc"), loads), EVEN)
    outcome = outcome_of(problem, solve(problem).assignment, Origin("rebalance"))
    before, after = ({one.broker: one.before["net-out"] for one in outcome.facts.brokers},
                     {one.broker: one.after["net-out"] for one in outcome.facts.brokers})  # fmt: skip
    assert before == pytest.approx({1: 300, 2: 180, 3: 180})
    assert after == pytest.approx({1: 220, 2: 220, 3: 220})
    assert outcome.evaluation.misses() == ()


@pytest.mark.parametrize(("weights", "words"), [
    ({"t": {"x": 1.0}}, "consumer-racks: there is no rack 'x'"), ({"z": {"a": 1.0}}, "no topic matches 'z'"),
])  # fmt: skip
def test_racks_and_topics_that_are_not_there_are_refused(weights: dict[str, dict[str, float]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        with_consumers(posed(brokers(1, 2, 3, racks="abc"), [read(0, 1, 2, 3)]), weights)


def test_the_goals_file_says_it_by_topic_and_rack() -> None:
    assert parse_policy("[consumer-racks]\n'o.*' = { a = 1, b = 3 }").consumer_racks == {"o.*": {"a": 1.0, "b": 3.0}}
    for wrong in ("{}", "{ a = 0 }", "3", "{ a = -1 }"):
        with pytest.raises(InputError, match=r"consumer-racks\.t"):
            parse_policy(f"[consumer-racks]\nt = {wrong}")


def test_parts_more_traffic_and_more_partitions_keep_reads_with_followers() -> None:
    problem = with_consumers(posed(brokers(1, 2, 3, racks="abc"), [read(n, 1, 2, 3) for n in range(6)]), EVEN)
    in_parts = solve_in_subproblems(problem, 2, 1, lambda parts: [attempt(part) for part in parts])
    assert evaluate(problem, in_parts.assignment).violations == ()
    assert scaled(problem, rates=2).partitions.follower_read_bytes_per_s.tolist() == pytest.approx([60] * 6)
    grown = add_partitions(problem, "t", 12)
    assert grown.partitions.follower_read_bytes_per_s.tolist() == pytest.approx([15] * 12)
    assert len(placed_lists(grown, solve(grown).assignment)) == 6


def one_by_one(problem: Problem, weights: dict[str, float], consumed: float, written: float) -> Counter[int]:
    """Broker by broker, as each consumer would choose."""
    racks = dict(zip(range(len(problem.brokers)), problem.brokers.racks.tolist(), strict=True))
    names = problem.brokers.rack_names
    sent: Counter[int] = Counter()
    for replicas in Assignment.current(problem.partitions).lists():
        leader, *followers = replicas
        sent[leader] += written * len(followers)
        for rack, weight in weights.items():
            near = [one for one in followers if racks[one] >= 0 and names[racks[one]] == rack]
            is_leaders = racks[leader] >= 0 and names[racks[leader]] == rack
            for one in [leader] if is_leaders or not near else near:
                sent[one] += consumed * weight / sum(weights.values()) / (1 if is_leaders or not near else len(near))
    return sent


@pytest.mark.parametrize("seed", range(10))
def test_every_consumer_reads_as_kafka_lets_it(seed: int) -> None:
    random = Random(seed)
    count = random.randint(3, 8)
    hosts = [
        BrokerFacts(one, rack=random.choice(("a", "b", "c", None)) if one > 2 else "abc"[one]) for one in range(count)
    ]
    loads = [read(n, *random.sample(range(count), random.randint(1, 3))) for n in range(random.randint(1, 20))]
    weights = {rack: random.uniform(0, 2) for rack in "abc"}
    plain = posed(hosts, loads, rules=Rules(racks=RackRule.NONE))
    problem = with_policy(plain, PlanPolicy(bands=BANDS, racks=RackRule.NONE, consumer_racks={"t": weights}))
    wanted = one_by_one(problem, weights, 90.0, 10.0)
    found = bytes_sent_by_brokers(problem, Assignment.current(problem.partitions))
    assert found.tolist() == pytest.approx([wanted[one] for one in range(count)])
    solution = solve(problem).assignment
    assert evaluate(problem, solution).violations == ()
    assert bytes_sent_by_brokers(problem, solution).sum() == pytest.approx(found.sum())
