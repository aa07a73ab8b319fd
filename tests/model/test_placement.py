from __future__ import annotations

import pytest

from kreassign.model import TopicPartition
from kreassign.model.placement import Drift, DriftKind, Placed, drifts, format_placement, undeclared_topics
from kreassign.model.plan import PartitionAssignment, Plan

ORDERS_0, ORDERS_1, USERS_0 = (TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("users", 0))


def declared(*replicas: int, log_dirs: tuple[str, ...] = ()) -> Plan:
    return Plan((PartitionAssignment(ORDERS_0, replicas, log_dirs),))


def told(plan: Plan, here: Placed | None) -> list[tuple[DriftKind, str]]:
    return [(one.kind, str(one)) for one in drifts(plan, {} if here is None else {ORDERS_0: here})]


def test_a_cluster_that_is_as_declared_does_not_drift() -> None:
    assert told(declared(1, 2), Placed((1, 2))) == []
    assert told(declared(1, 2, log_dirs=("/a", "any")), Placed((1, 2), log_dirs={1: "/a", 2: "/z"})) == []


def test_missing_and_undeclared_partitions_are_told() -> None:
    placed = {ORDERS_1: Placed((4,)), USERS_0: Placed((1,))}
    assert [(one.topic_partition, one.kind) for one in drifts(declared(1), placed)] == [
        (ORDERS_0, DriftKind.MISSING),
        (ORDERS_1, DriftKind.UNDECLARED),
    ]
    assert undeclared_topics(declared(1), ("orders", "users", "users")) == ("users",)


MOVES = "it is being reassigned"


@pytest.mark.parametrize(("plan", "here", "kind", "how"), [
    (declared(1, 2), None, DriftKind.MISSING, "is declared on 1,2, but not in the cluster"),
    (declared(1, 2, 3), Placed((4, 3, 5)), DriftKind.REPLICAS,
     "is on 4,3,5, declared on 1,2,3: brokers 1,2 missing, brokers 4,5 not declared"),
    (declared(1, 2), Placed((1,)), DriftKind.REPLICAS,
     "is on 1, declared on 1,2: broker 2 missing, replication factor 1, declared 2"),
    (declared(1), Placed((2, 1)), DriftKind.REPLICAS,
     "is on 2,1, declared on 1: broker 2 not declared, replication factor 2, declared 1"),
    (declared(1), Placed((2,), is_moving=True), DriftKind.REPLICAS,
     "is on 2, declared on 1: broker 1 missing, broker 2 not declared; it is being reassigned"),
    (declared(1, 2), Placed((2, 1), is_moving=True, leaving=(3, 4)), DriftKind.ORDER,
     f"is on 2,1, declared on 1,2: broker 2 is its preferred leader, not 1; {MOVES}, brokers 3,4 still to leave"),
    (declared(1, 2, 3), Placed((1, 3, 2)), DriftKind.ORDER,
     "is on 1,3,2, declared on 1,2,3: only the order of followers differs"),
    (declared(1, 2), Placed((1, 2), is_moving=True, leaving=(3,)), DriftKind.MOVING,
     "is being reassigned to 1,2, as declared, broker 3 still to leave"),
    (declared(1, 2, log_dirs=("/a", "any")), Placed((1, 2), is_moving=True, log_dirs={1: "/b"}), DriftKind.MOVING,
     "is being reassigned to 1,2, as declared"),
    (declared(1, 2, log_dirs=("/a", "/b")), Placed((1, 2), log_dirs={1: "/c", 2: "/b"}), DriftKind.LOG_DIR,
     "on broker 1 it is in /c, declared in /a"),
    (declared(1, 2, log_dirs=("any", "/b")), Placed((1, 2)), DriftKind.LOG_DIR,
     "on broker 2 it is in a log directory that is not known, declared in /b"),
    (declared(1, 2, log_dirs=("/a", "/b")), Placed((1, 2), log_dirs={1: "/b", 2: "/a"}), DriftKind.LOG_DIR,
     "on broker 1 it is in /b, declared in /a; on broker 2 it is in /a, declared in /b"),
])  # fmt: skip
def test_a_drift_says_in_what_a_partition_differs(plan: Plan, here: Placed | None, kind: DriftKind, how: str) -> None:
    (wanted,) = plan.replicas.values()
    found = None if here is None else here.replicas
    assert drifts(plan, {} if here is None else {ORDERS_0: here}) == (Drift(ORDERS_0, kind, wanted, found, how),)


def test_who_leaves_is_no_drift_where_nothing_moves() -> None:
    assert drifts(declared(1, 2), {ORDERS_0: Placed((1, 2), leaving=(3,))}) == ()


def test_a_partition_that_is_not_declared_is_told_with_where_it_is() -> None:
    how = "is in the cluster on 4,5, but not declared"
    placed = {ORDERS_0: Placed((1,)), ORDERS_1: Placed((4, 5), is_moving=True)}
    assert drifts(declared(1), placed) == (Drift(ORDERS_1, DriftKind.UNDECLARED, None, (4, 5), how),)


LAST, FIRST = "\N{REPLACEMENT CHARACTER}", "\N{GRINNING FACE}"
"""Java has them in this order, Python in the other."""


def test_drifts_are_in_kafkas_order_whatever_they_are() -> None:
    plan = Plan(tuple(PartitionAssignment(TopicPartition(topic, 5), (1,)) for topic in (LAST, FIRST)))
    placed = {TopicPartition(topic, number): Placed((1,)) for topic in (LAST, FIRST) for number in (10, 2)}
    assert [one.topic_partition for one in drifts(plan, placed)] == [
        TopicPartition(topic, number) for topic in (FIRST, LAST) for number in (2, 5, 10)
    ]


def test_a_placement_is_written_in_kafkas_order_with_names_as_they_are() -> None:
    placed = {TopicPartition(topic, number): Placed((2, 1)) for topic in (LAST, "ü", FIRST) for number in (10, 2)}
    lines = ",\n".join(
        f'{{"topic": "{topic}", "partition": {number}, "replicas": [2, 1]}}'
        for topic in ("ü", FIRST, LAST) for number in (2, 10)
    )  # fmt: skip
    assert format_placement(placed) == f'{{"version": 1, "partitions": [\n{lines}\n]}}'
    assert format_placement({}) == '{"version": 1, "partitions": []}'


def test_topics_of_which_nothing_is_declared_are_sorted_and_told_once() -> None:
    assert undeclared_topics(declared(1), iter(("b", "orders", "a", "b"))) == ("a", "b")
