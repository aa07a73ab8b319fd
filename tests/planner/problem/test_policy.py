from dataclasses import replace

import numpy as np
import pytest

from kreassign.errors import InputError
from kreassign.planner import Band, RackRule
from kreassign.planner.goals import CPU, DISK, NET_IN
from kreassign.planner.problem.policy import BrokerSet, PlanPolicy, with_policy
from tests.planner.small_problems import brokers, partition, posed

PROBLEM = posed(
    [replace(host, capacity={"disk": 10.0}) for host in brokers(1, 2, 3)],
    [partition(0, 1, topic="pay-a"), partition(0, 2, topic="pay-b"), partition(0, 3, topic="users")],
)


def test_goals_of_which_nothing_is_known_are_left_out() -> None:
    assert with_policy(PROBLEM, PlanPolicy(bands=(Band(DISK), Band(CPU), Band(NET_IN)))).bands == (Band(DISK),)


def test_limits_of_all_and_of_single_brokers_replace_those_of_the_snapshot() -> None:
    def limits(**policy: object) -> dict[str, list[float]]:
        found = with_policy(PROBLEM, PlanPolicy(**policy)).brokers.capacity
        return {name: values.tolist() for name, values in found.items()}

    assert limits() == {"disk": [10.0, 10.0, 10.0]}
    assert limits(capacity={"disk": 5.0}) == {"disk": [5.0, 5.0, 5.0]}
    assert limits(broker_capacity={2: {"disk": 7.0}}) == {"disk": [10.0, 7.0, 10.0]}
    assert limits(capacity={"cpu": 1.0}, broker_capacity={3: {"cpu": 2.0}})["cpu"] == [1.0, 1.0, 2.0]
    assert limits(broker_capacity={3: {"cpu": 2.0}})["cpu"] == [np.inf, np.inf, 2.0]


def test_shares_hold_for_every_goal() -> None:
    found = with_policy(PROBLEM, PlanPolicy(shares={2: 3.0})).brokers
    assert found.shares.keys() == {"disk", "replicas", "leaders"}
    assert all(part.tolist() == [1.0, 3.0, 1.0] for part in found.shares.values())


def test_broker_sets_are_made_of_brokers_and_topics_that_match() -> None:
    found = with_policy(PROBLEM, PlanPolicy(broker_sets=(BrokerSet("pay", (1, 2), ("pay-.*",)),)))
    assert found.brokers.broker_sets.tolist() == [0, 0, -1]
    assert found.partitions.broker_sets.tolist() == [0, 0, -1]


def test_excluded_topics_stay_and_excluded_brokers_receive_nothing() -> None:
    found = with_policy(PROBLEM, PlanPolicy(excluded_topics=("pay.*",), excluded_brokers=(3,)))
    assert found.partitions.may_move.tolist() == [False, False, True]
    assert found.brokers.may_receive.tolist() == [True, True, False]


def test_racks_are_given_to_brokers_that_say_none() -> None:
    hosts = [replace(host, rack="b") if host.id == 2 else host for host in brokers(1, 2, 3)]
    problem = posed(hosts, [partition(0, 1)])
    found = with_policy(problem, PlanPolicy(broker_racks={1: "c", 2: "b"})).brokers
    assert (found.rack_names, found.racks.tolist()) == (("b", "c"), [1, 0, -1])
    with pytest.raises(InputError, match="broker 2 itself says that it is in rack b, not in a"):
        with_policy(problem, PlanPolicy(broker_racks={2: "a"}))


def test_racks_and_least_leaders_become_rules() -> None:
    rules = with_policy(PROBLEM, PlanPolicy(racks=RackRule.STRICT, least_topic_leaders={"users": 1})).rules
    assert (rules.racks, dict(rules.least_topic_leaders)) == (RackRule.STRICT, {"users": 1})


@pytest.mark.parametrize(("policy", "words"), [
    (PlanPolicy(shares={9: 1.0}), "there is no broker 9"),
    (PlanPolicy(broker_capacity={9: {"disk": 1.0}}), "there is no broker 9"),
    (PlanPolicy(excluded_brokers=(9,)), "there is no broker 9"),
    (PlanPolicy(broker_racks={9: "a"}), "there is no broker 9"),
    (PlanPolicy(broker_sets=(BrokerSet("a", (9,), ("users",)),)), "there is no broker 9"),
    (PlanPolicy(broker_sets=(BrokerSet("a", (1,), ("none.*",)),)), "no topic matches"),
    (PlanPolicy(least_topic_leaders={"x": 1}), "least-topic-leaders: there is no topic 'x'"),
])  # fmt: skip
def test_what_is_not_in_the_cluster_is_refused(policy: PlanPolicy, words: str) -> None:
    with pytest.raises(InputError, match=words):
        with_policy(PROBLEM, policy)
