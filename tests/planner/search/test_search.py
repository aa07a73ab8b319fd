from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from bench.random_clusters import random_cluster
from kreassign.errors import Infeasible
from kreassign.planner import Band, BrokerFacts, Budget, Problem, RackRule, Rules, Solution, bytes_bound, solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.goals import DISK, GOALS, LEADERS, POTENTIAL_NET_OUT, REPLICAS, Goal
from kreassign.planner.search.subproblems import attempt, solve_in_subproblems
from tests.planner.small_problems import GIGABYTE, brokers, partition, posed

DISK_ONLY = (Band(DISK),)


def legal(problem: Problem) -> Solution:
    """The solution, after the independent check has found no broken rule and no undone task."""
    solution = solve(problem)
    judged = evaluate(problem, solution.assignment)
    assert (judged.violations, judged.unfinished) == ((), ())
    return solution


def lists(problem: Problem, solution: Solution) -> list[list[int]]:
    ids = problem.brokers.ids
    return [[int(ids[place]) for place in replicas] for replicas in solution.assignment.lists()]


def skewed(count: int = 400, hosts: int = 8, seed: int = 5) -> Problem:
    """Many partitions of uneven sizes on brokers of which the last hold three times as much as the first."""
    chance = np.random.default_rng(seed)
    weights = np.linspace(1, 3, hosts) / np.linspace(1, 3, hosts).sum()
    loads = []
    for number in range(count):
        chosen = chance.choice(hosts, 3, replace=False, p=weights).tolist()
        size = float(chance.lognormal(0, 1))
        facts = {"write_bytes_per_s": size * float(chance.lognormal(0, 0.3)), "read_bytes_per_s": size * 2}
        loads.append(partition(number, *chosen, gigabytes=size, leader_cpu=size, follower_cpu=size * 0.3, **facts))
    return posed(brokers(*range(hosts)), loads)


@pytest.mark.thorough
# Cluster 5 has a broker whose partitions do not fit its disk and must not move.
@pytest.mark.parametrize("seed", sorted(set(range(16)) - {5}))
def test_plans_for_random_clusters_break_no_rule_and_miss_what_they_say(seed: int) -> None:
    problem = random_cluster(seed).problem
    solution = solve(problem)
    judged = evaluate(problem, solution.assignment)
    assert judged.violations == ()
    missed = np.maximum(np.maximum(judged.after - judged.high, judged.low - judged.after), 0)
    assert np.allclose(solution.missed, missed, rtol=1e-4, atol=float(judged.after.max()) * 1e-5)


def test_a_skewed_cluster_comes_into_every_band_at_few_bytes() -> None:
    problem = skewed()
    solution = legal(problem)
    judged = evaluate(problem, solution.assignment)
    assert judged.misses() == ()
    excess = np.maximum(judged.before - judged.high, 0)[:, 0].sum()
    lack = np.maximum(judged.low - judged.before, 0)[:, 0].sum()
    assert judged.moved_bytes <= 1.05 * max(excess, lack)


def test_a_balanced_cluster_stays_as_it_is() -> None:
    problem = posed(brokers(1, 2, 3), [partition(0, 1, 2), partition(1, 2, 3), partition(2, 3, 1)])
    assert lists(problem, legal(problem)) == [[1, 2], [2, 3], [3, 1]]


def test_a_drained_broker_ends_empty_and_only_its_replicas_move() -> None:
    hosts = [*brokers(1, 2, 3), BrokerFacts(4, must_empty=True)]
    problem = posed(hosts, [partition(0, 4, 1), partition(1, 2, 3), partition(2, 3, 4), partition(3, 1, 2)], bands=())
    found = lists(problem, legal(problem))
    assert found[1] == [2, 3]
    assert found[3] == [1, 2]
    assert 4 not in {broker for replicas in found for broker in replicas}
    assert found[2][0] == 3


def test_a_dead_brokers_replicas_are_placed_elsewhere_and_the_factor_grows() -> None:
    hosts = [*brokers(1, 2, 3), BrokerFacts(4, is_live=False)]
    problem = posed(hosts, [partition(0, 4, 1), partition(1, 2, wanted_factor=3)], bands=())
    found = lists(problem, legal(problem))
    assert sorted(found[1]) == [1, 2, 3]
    assert found[1][0] == 2
    assert 4 not in found[0]


def test_a_lost_copy_is_made_again_on_a_broker_that_did_not_lose_it() -> None:
    problem = posed(brokers(1, 2, 3), [partition(0, 1, 2, lost_on=(1,)), partition(1, 1, 2)], bands=())
    found = lists(problem, legal(problem))
    assert sorted(found[0]) == [2, 3]
    assert found[1] == [1, 2]
    with pytest.raises(Infeasible, match="every other receiver has lost its copy of it"):
        solve(posed(brokers(1, 2), [partition(0, 1, 2, lost_on=(1,))], bands=()))


def test_what_nobody_has_a_copy_of_stays() -> None:
    hosts = [*brokers(1, 2), BrokerFacts(3, is_live=False)]
    problem = posed(hosts, [partition(0, 3, may_move=False), partition(1, 1, 3)], bands=())
    assert lists(problem, solve(problem)) == [[3], [1, 2]]


def test_a_smaller_factor_drops_the_heaviest_followers_uncopied() -> None:
    loads = [partition(0, 1, 2, 3, wanted_factor=2), partition(1, 3), partition(2, 3)]
    problem = posed(brokers(1, 2, 3), loads, bands=DISK_ONLY, rules=Rules(between_brokers=True, leaders=False))
    solution = legal(problem)
    assert lists(problem, solution)[0] == [1, 2]
    assert evaluate(problem, solution.assignment).moved_bytes <= 10 * GIGABYTE


def test_a_demoted_broker_leads_nothing_and_no_byte_moves() -> None:
    hosts = [BrokerFacts(1, may_lead=False), *brokers(2, 3)]
    problem = posed(hosts, [partition(0, 1, 2), partition(1, 1, 3), partition(2, 2, 1)], bands=())
    problem = replace(problem, rules=Rules(between_brokers=False))
    assert lists(problem, legal(problem)) == [[2, 1], [3, 1], [2, 1]]


def test_leadership_alone_copies_nothing() -> None:
    problem = replace(skewed(), rules=Rules(between_brokers=False), bands=(Band(LEADERS),))
    judged = evaluate(problem, legal(problem).assignment)
    assert (judged.moved_bytes, judged.misses()) == (0, ())
    assert judged.leader_changes > 0


def test_without_leader_changes_leaders_stay() -> None:
    problem = replace(skewed(), rules=Rules(leaders=False), bands=DISK_ONLY)
    judged = evaluate(problem, legal(problem).assignment)
    assert judged.leader_changes == 0
    assert judged.misses() == ()


def test_new_brokers_alone_receive_when_the_others_may_not() -> None:
    old = skewed()
    joined = [BrokerFacts(broker, may_receive=broker >= 8) for broker in range(10)]
    problem = replace(old, brokers=posed(joined, []).brokers, bands=DISK_ONLY)
    judged = evaluate(problem, legal(problem).assignment)
    assert judged.bytes_in[:8].sum() == 0
    assert (judged.after[8:, 0] >= judged.low[8:, 0]).all()


def test_crowded_racks_are_repaired_and_only_what_must_moves() -> None:
    loads = [partition(0, 1, 2), partition(1, 1, 3)]
    problem = posed(brokers(1, 2, 3, racks="aab"), loads, bands=(), rules=Rules(repair_racks=True))
    assert lists(problem, legal(problem)) == [[1, 3], [1, 3]]


def test_racks_are_shared_evenly_when_there_are_too_few() -> None:
    hosts = [*brokers(1, 2, 3, 4, racks="aabb"), BrokerFacts(5, rack="b", must_empty=True)]
    problem = posed(hosts, [partition(0, 1, 3, 5)], bands=())
    assert set(lists(problem, legal(problem))[0]) in ({1, 3, 4}, {1, 3, 2})


@pytest.mark.parametrize("budget", [
    Budget(moved_bytes=40 * GIGABYTE), Budget(moves=7), Budget(leader_changes=3),
    Budget(bytes_in_per_broker=20 * GIGABYTE), Budget(bytes_out_per_broker=20 * GIGABYTE),
])  # fmt: skip
def test_a_budget_is_kept_and_used(budget: Budget) -> None:
    problem = replace(skewed(), budget=budget)
    solution = solve(problem)
    judged = evaluate(problem, solution.assignment)
    assert judged.violations == ()
    before, after = ([abs(miss.amount) for miss in judged.misses(before=one)] for one in (True, False))
    assert sum(after) < sum(before)
    assert (solution.missed > 0).any()


def test_a_repair_is_charged_to_the_brokers_that_send_and_live() -> None:
    hosts = [replace(host, is_live=host.id != 1) for host in brokers(1, 2, 3, 4, 5)]
    loads = [partition(number, 1, number + 2) for number in range(4)]
    problem = posed(hosts, loads, budget=Budget(bytes_out_per_broker=10 * GIGABYTE))
    legal(problem)
    both_from_2 = replace(problem, partitions=posed(hosts, [partition(0, 1, 2), partition(1, 1, 2)]).partitions)
    solution = solve(both_from_2)
    assert len(solution.undone) == 1
    assert evaluate(both_from_2, solution.assignment).violations == ()


def test_what_must_be_but_exceeds_the_budget_remains() -> None:
    hosts = [*brokers(1, 2, 3), BrokerFacts(4, must_empty=True)]
    loads = [partition(0, 4, 1, gigabytes=5), partition(1, 4, 2, gigabytes=50), partition(2, 3, wanted_factor=2)]
    problem = posed(hosts, loads, bands=(), budget=Budget(moved_bytes=20 * GIGABYTE))
    solution = solve(problem)
    assert solution.undone.tolist() == [1]
    assert evaluate(problem, solution.assignment).violations == ()
    assert lists(problem, solution)[1] == [4, 2]


def test_a_new_copy_does_not_crowd_the_rack_that_another_cannot_leave() -> None:
    rack_b = BrokerFacts(3, rack="b", capacity={"disk": 1.0 * GIGABYTE})
    hosts = [BrokerFacts(1, rack="a", must_empty=True), BrokerFacts(2, rack="a"), rack_b]
    problem = posed(hosts, [partition(0, 1, wanted_factor=2)], bands=(), budget=Budget(leader_changes=0))
    solution = solve(problem)
    judged = evaluate(problem, solution.assignment)
    assert (judged.violations, lists(problem, solution)) == ((), [[1]])
    assert len(judged.unfinished) == 2


def test_a_band_of_potential_traffic_counts_followers_as_if_they_led() -> None:
    loads = [partition(number, 1, 2, gigabytes=1, read_bytes_per_s=10.0) for number in range(8)]
    problem = posed(brokers(1, 2, 3, 4), loads, bands=(Band(POTENTIAL_NET_OUT),))
    found = evaluate(problem, legal(problem).assignment)
    assert found.after[:, 0].tolist() == [40.0] * 4
    assert found.misses() == ()


def test_partitions_of_a_broker_set_stay_in_it() -> None:
    hosts = [BrokerFacts(number, broker_set="red" if number < 3 else None) for number in range(6)]
    loads = [partition(number, 0, 1, broker_set="red") for number in range(12)]
    problem = posed(hosts, loads, bands=(Band(REPLICAS, 2.0), Band(DISK, 2.0)))
    assert {broker for replicas in lists(problem, legal(problem)) for broker in replicas} <= {0, 1, 2}


def test_every_broker_leads_enough_partitions_of_a_topic() -> None:
    loads = [partition(number, 1, 2) for number in range(6)] + [partition(number, 3, topic="u") for number in range(9)]
    problem = posed(brokers(1, 2, 3), loads, bands=(), rules=Rules(least_topic_leaders={"t": 2}))
    heads = [replicas[0] for replicas in lists(problem, legal(problem))[:6]]
    assert sorted(heads) == [1, 1, 2, 2, 3, 3]


def test_what_does_not_fit_a_disk_goes_elsewhere() -> None:
    hosts = [BrokerFacts(1, capacity={"disk": 30.0 * GIGABYTE}), *brokers(2, 3)]
    problem = posed(hosts, [partition(number, 1, gigabytes=10) for number in range(5)], bands=(Band(DISK, None),))
    judged = evaluate(problem, legal(problem).assignment)
    assert judged.after[0, 0] <= 30 * GIGABYTE
    assert judged.moved_bytes == 20 * GIGABYTE


@pytest.mark.parametrize("goal", [*GOALS, POTENTIAL_NET_OUT], ids=lambda goal: goal.name)
def test_a_limit_of_any_resource_is_kept(goal: Goal) -> None:
    rates = {"write_bytes_per_s": 1.0, "read_bytes_per_s": 1.0, "leader_cpu": 1.0, "follower_cpu": 1.0}
    loads = [partition(number, 1, 2, gigabytes=1e-9, **rates) for number in range(12)]
    hosts = [*brokers(1, 2), BrokerFacts(3, capacity={goal.name: 3.0})]
    problem = posed(hosts, loads, bands=tuple(Band(one) for one in (*GOALS, POTENTIAL_NET_OUT)))
    found = evaluate(problem, legal(problem).assignment)
    assert 0 < found.after[2, found.goals.index(goal.name)] <= 3


@pytest.mark.parametrize("parts", [1, 2])
def test_a_limit_that_no_goal_names_is_kept(parts: int) -> None:
    loads = [partition(number, 1, gigabytes=1) for number in range(6)] + [partition(6, 2, gigabytes=1)]
    hosts = [*brokers(1, 2, capacity={"replicas": 4.0}), BrokerFacts(3, capacity={"replicas": 1.0})]
    problem = posed(hosts, loads, bands=DISK_ONLY)
    found = solve_in_subproblems(problem, parts, 1, lambda posed_parts: [attempt(one) for one in posed_parts])
    held = np.bincount(found.assignment.replicas, minlength=3)
    assert evaluate(problem, found.assignment).violations == ()
    assert held[2] == 1
    assert found.missed.shape == (3, 1)


def test_brokers_share_by_capacity() -> None:
    hosts = [BrokerFacts(number, capacity={"disk": size * 1000.0 * GIGABYTE}) for number, size in enumerate((1, 1, 2))]
    problem = posed(hosts, [partition(number, number % 3) for number in range(80)], bands=DISK_ONLY)
    after = evaluate(problem, legal(problem).assignment).after[:, 0] / GIGABYTE
    assert after == pytest.approx([200, 200, 400], rel=0.11)


LOAD = [partition(0, 1, 2, gigabytes=50)]


@pytest.mark.parametrize(("hosts", "loads", "rules", "goal", "words"), [
    (brokers(1, 2), [partition(0, 1, wanted_factor=3)], Rules(), "replication factor", "3 .* there are 2: t-0"),
    (brokers(1, 2, 3, racks="aab"), [partition(0, 1, 3, wanted_factor=3)], Rules(racks=RackRule.STRICT), "racks",
     "as many racks, there are 2"),
    ([BrokerFacts(1, must_empty=True), *brokers(2, 3)], [partition(0, 1, may_move=False)], Rules(), "drain",
     r"broker 1 cannot be emptied.*t-0"),
    ([BrokerFacts(1, is_live=False), *brokers(2, 3)], LOAD, Rules(between_brokers=False), "drain", "nothing may move"),
    (brokers(1, 2, 3, capacity={"disk": 40.0 * GIGABYTE}), [partition(0, 1, 2, gigabytes=50, wanted_factor=3)], Rules(),
     "disk", "exceeds the capacity .* by 10 GB"),
    ([*brokers(1, 2, broker_set="red"), *brokers(3)], [partition(n, 1, 2, broker_set="red") for n in range(6)],
     Rules(least_topic_leaders={"t": 2}), "leaders of a topic", "broker 3 leads 0 partitions of topic t, not 2"),
    (brokers(1, 2, 3), [partition(n, 1, 2) for n in range(6)],
     Rules(least_topic_leaders={"t": 1}, between_brokers=False), "leaders of a topic",
     "broker 3 leads 0 partitions of topic t, not 1"),
    ([BrokerFacts(1, must_empty=True), *brokers(2, 3, may_receive=False)], LOAD, Rules(), "receivers", "t-0"),
    ([BrokerFacts(1, must_empty=True), *brokers(2), BrokerFacts(3, capacity={"disk": 60.0 * GIGABYTE})],
     [*LOAD, partition(1, 3, gigabytes=20, may_move=False)], Rules(), "disk", "no receiver has enough disk left"),
    ([BrokerFacts(1, must_empty=True), *brokers(2), BrokerFacts(3, capacity={"disk": 1.0 * GIGABYTE})], LOAD, Rules(),
     "disk", "t-0: a replica of 50 GB is larger than any disk that may take it; the largest may hold 1 GB"),
    ([*brokers(*range(1, 5), racks="aabb"), *brokers(7, 8, racks="cc", may_receive=False)],
     [partition(0, 1, wanted_factor=3)], Rules(racks=RackRule.STRICT), "racks",
     "every receiver is in a rack that has as many as may"),
    (brokers(1, 2, may_lead=False), LOAD, Rules(), "leaders", "no broker is left that may lead"),
    (brokers(1, 2), LOAD, Rules(least_topic_leaders={"t": 1}), "leaders of a topic", "1 partition, 1 too few"),
    ([BrokerFacts(1, must_empty=True, broker_set="red"), BrokerFacts(2, broker_set="red"), *brokers(3)],
     [partition(0, 1, 2, broker_set="red")], Rules(), "replication factor", "of its broker set, there are 1"),
])  # fmt: skip
def test_what_cannot_be_is_refused_with_the_rule_the_place_and_the_amount(hosts, loads, rules, goal, words) -> None:
    with pytest.raises(Infeasible, match=words) as refusal:
        solve(posed(hosts, loads, rules=rules))
    assert goal in refusal.value.goals


@pytest.mark.parametrize(("racks", "present", "wanted", "counts"), [
    ("abbbbb", (1,), 4, [1, 3]),  # rack a has a single broker
    ("aabbcc", (1,), 4, [1, 1, 2]),
    ("aabbcc", (1, 2, 3, 4), 4, [1, 1, 2]),
    ("aaaabc", (1,), 6, [1, 1, 4]),
])  # fmt: skip
def test_racks_are_as_even_as_their_brokers_allow(racks: str, present: tuple[int, ...], wanted: int, counts) -> None:
    # The bands alone would fill the last rack last.
    full = [partition(number, 5, 6, topic="u", gigabytes=100, may_move=False) for number in range(2)]
    loads = [partition(0, *present, wanted_factor=wanted), *full]
    rules = Rules(repair_racks=True, only_forced=True)
    problem = posed(brokers(*range(1, 7), racks=racks), loads, bands=DISK_ONLY, rules=rules)
    solution = legal(problem)
    assert sorted(Counter(racks[broker - 1] for broker in lists(problem, solution)[0]).values()) == counts
    assert evaluate(problem, solution.assignment).moved_bytes == bytes_bound(problem).forced


@pytest.mark.parametrize(("rules", "closed"), [
    (Rules(only_forced=True), {"may_receive": False}),
    (Rules(only_forced=True, repair_racks=True), {"may_receive": False}),
    (Rules(only_forced=True), {"capacity": {"disk": 5.0 * GIGABYTE}}),
])  # fmt: skip
def test_a_closed_rack_leaves_the_others_as_full_as_they_are(rules: Rules, closed) -> None:
    hosts = [replace(host, must_empty=host.id == 2, **(closed if host.id == 5 else {}))
             for host in brokers(*range(1, 7), racks="aabbca")]  # fmt: skip
    problem = posed(hosts, [partition(0, 1, 2, 3, 4)], bands=DISK_ONLY, rules=rules)
    assert lists(problem, legal(problem)) == [[1, 6, 3, 4]]


def test_leaders_of_a_topic_that_must_stay_are_not_demanded() -> None:
    problem = posed(brokers(1, 2), LOAD, rules=Rules(least_topic_leaders={"t": 1}, leaders=False))
    assert evaluate(problem, legal(problem).assignment).leader_changes == 0


def test_a_budget_leaves_leaders_of_a_topic_unfinished() -> None:
    rules, loads = Rules(least_topic_leaders={"t": 1}), [partition(number, 1) for number in range(6)]
    problem = posed(brokers(1, 2, 3), loads, bands=DISK_ONLY, rules=rules, budget=Budget(moves=1))
    judged = evaluate(problem, solve(problem).assignment)
    (left,) = judged.unfinished
    assert judged.violations == ()
    assert "leads 0 partitions of topic t, not 1" in left


@pytest.mark.parametrize("rules", [Rules(), Rules(between_brokers=False)])
def test_brokers_above_a_limit_before_the_plan_only_get_less(rules: Rules) -> None:
    hosts = brokers(1, 2, 3, capacity={"disk": 25.0 * GIGABYTE})
    loads = [partition(n, 1, 2) for n in range(4)] + [partition(4, 2)]
    problem = posed(hosts, loads, rules=rules)
    judged = evaluate(problem, legal(problem).assignment)
    disk = judged.goals.index("disk")
    assert (judged.after[:2, disk] <= judged.before[:2, disk]).all()
    assert judged.after[2, disk] == (20 * GIGABYTE if rules.between_brokers else 0)


def test_where_a_band_cannot_be_met_the_miss_is_shared() -> None:
    # Broker 3 is alone in its rack and must hold all; what is left for the others is 0.75 of the mean each.
    loads = [partition(number, 1, 3) for number in range(60)]
    problem = posed(brokers(1, 2, 3, racks="aab"), loads, bands=DISK_ONLY)
    judged = evaluate(problem, legal(problem).assignment)
    assert judged.after[:, 0] / judged.after[:, 0].mean() == pytest.approx([0.75, 0.75, 1.5], rel=0.08)
    assert judged.bytes_in[2] == 0


def test_counts_are_as_even_as_whole_numbers_can_be() -> None:
    # 10 replicas on four brokers: 2.25 to 2.75 each has no whole number in it, 2 and 3 are what there is.
    loads = [partition(number, 1 if number < 6 else 2, gigabytes=1) for number in range(10)]
    problem = posed(brokers(1, 2, 3, 4), loads, bands=(Band(REPLICAS), Band(LEADERS)))
    found = evaluate(problem, solve(problem).assignment)
    assert found.misses() == ()
    assert sorted(found.after[:, 0].tolist()) == [2, 2, 3, 3]
    assert found.moved_bytes == 4 * GIGABYTE == bytes_bound(problem).total


def test_leaders_of_a_small_cluster_are_even() -> None:
    # The first two of four brokers hold nearly all of 24 partitions and lead most of them.
    lists = [(1, 2)] * 14 + [(2, 1)] * 6 + [(3, 4)] * 4
    loads = [partition(number, *chosen, gigabytes=1 + number % 3) for number, chosen in enumerate(lists)]
    problem = posed(brokers(1, 2, 3, 4), loads, bands=(Band(DISK), Band(REPLICAS), Band(LEADERS)))
    found = evaluate(problem, legal(problem).assignment)
    assert found.misses() == ()
    assert found.after[:, 2].tolist() == [6, 6, 6, 6]
