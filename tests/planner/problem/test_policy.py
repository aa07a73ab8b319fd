from dataclasses import replace

import numpy as np
import pytest

from kreassign.errors import InputError
from kreassign.planner import Band, RackRule
from kreassign.planner.goals import CPU, DISK, NET_IN
from kreassign.planner.problem.policy import BrokerSet, PlanPolicy, tenant_of, with_policy
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


def test_cores_make_limits_of_cpu_and_without_those_its_shares() -> None:
    def posed_with(**policy: object) -> tuple[object, object]:
        found = with_policy(PROBLEM, PlanPolicy(broker_capacity={2: {"cores": 16.0}}, **policy)).brokers
        assert "cores" not in found.capacity
        return tuple(None if (one := of.get("cpu")) is None else one.tolist() for of in (found.capacity, found.shares))

    assert posed_with(capacity={"cores": 4.0}) == (None, [4.0, 16.0, 4.0])
    assert posed_with(capacity={"cores": 4.0, "cpu": 0.5}) == ([2.0, 8.0, 2.0], None)
    # Shares that are given hold for CPU as for all else; of this cluster none is known, so it is no goal.
    assert posed_with(capacity={"cores": 4.0}, shares={1: 2.0}) == (None, None)
    with pytest.raises(
        InputError, match=r"cores: how many broker 1 has is not known; name it under \[broker-capacity.1"
    ):
        posed_with()


def test_where_only_some_brokers_have_a_limit_of_cpu_it_is_shared_by_cores() -> None:
    limits = {1: {"cpu": 0.5}, 2: {"cores": 16.0}}
    found = with_policy(PROBLEM, PlanPolicy(capacity={"cores": 4.0}, broker_capacity=limits)).brokers
    assert found.capacity["cpu"].tolist() == [2.0, np.inf, np.inf]
    assert found.weights("cpu").tolist() == [4 / 24, 16 / 24, 4 / 24]


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
    (PlanPolicy(shares={1: 0.0, 2: 0.0, 3: 0.0}), "shares: the shares of all live brokers add up to 0"),
    (PlanPolicy(shares={1: 1e308, 2: 1e308, 3: 1e308}), "shares: the shares of all live brokers add up to inf"),
    (PlanPolicy(shares={9: 1.0}), "broker-capacity, capacity or shares: there is no broker 9"),
    (PlanPolicy(broker_capacity={9: {"disk": 1.0}}), "there is no broker 9"),
    (PlanPolicy(excluded_brokers=(9,), source="g.toml"), "g.toml: excluded-brokers or --exclude-brokers: there"),
    (PlanPolicy(broker_racks={9: "a"}, source="g.toml"), "g.toml: broker-racks: there is no broker 9"),
    (PlanPolicy(broker_sets=(BrokerSet("a", (9,), ("users",)),), source="g.toml"), "g.toml: broker-sets: there is no"),
    (PlanPolicy(broker_sets=(BrokerSet("a", (1,), ("none.*",)),)), "no topic matches"),
    (
        PlanPolicy(broker_sets=(BrokerSet("a", (1,), ("u.*",)), BrokerSet("b", (2,), ("users",)))),
        "topic users is in the broker sets a and b",
    ),
    (PlanPolicy(least_topic_leaders={"user": 1}), "there is no topic 'user' in this cluster; did you mean 'users'"),
    (PlanPolicy(least_topic_leaders={"x": 1}), "least-topic-leaders: there is no topic 'x'"),
])  # fmt: skip
def test_what_is_not_in_the_cluster_is_refused(policy: PlanPolicy, words: str) -> None:
    with pytest.raises(InputError, match=words):
        with_policy(PROBLEM, policy)


def test_a_new_topic_belongs_to_one_broker_set_or_is_refused() -> None:
    sets = (BrokerSet("a", (1,), ("pay-.*",)), BrokerSet("b", (2,), ("pay-new", "u.*")))
    assert [tenant_of(PlanPolicy(broker_sets=sets), topic) for topic in ("pay-c", "u-1", "v")] == [0, 1, -1]
    with pytest.raises(InputError, match=r"g\.toml: broker-sets: topic pay-new is in the broker sets a and b"):
        tenant_of(PlanPolicy(broker_sets=sets, source="g.toml"), "pay-new")
