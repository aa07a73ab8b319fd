from __future__ import annotations

import json

from kreassign.model import TopicPartition
from kreassign.model.placement import DriftKind, Placed, drifts, format_placement, undeclared_topics
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_json import parse_plan

ORDERS_0, ORDERS_1, USERS_0 = (TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("users", 0))


def declared(*replicas: int, log_dirs: tuple[str, ...] = ()) -> Plan:
    return Plan((PartitionAssignment(ORDERS_0, replicas, log_dirs),))


def told(plan: Plan, here: Placed | None) -> list[tuple[DriftKind, str]]:
    return [(one.kind, str(one)) for one in drifts(plan, {} if here is None else {ORDERS_0: here})]


def test_a_cluster_that_is_as_declared_does_not_drift() -> None:
    assert told(declared(1, 2), Placed((1, 2))) == []
    assert told(declared(1, 2, log_dirs=("/a", "any")), Placed((1, 2), log_dirs={1: "/a", 2: "/z"})) == []


def test_other_replicas_are_named_with_what_is_missing_and_what_is_not_declared() -> None:
    assert told(declared(1, 2), Placed((1, 3))) == [
        (DriftKind.REPLICAS, "orders-0: is on 1,3, declared on 1,2: broker 2 missing, broker 3 not declared")
    ]
    assert told(declared(1, 2, 3), Placed((1,)))[0][1].endswith(": brokers 2,3 missing")


def test_another_order_says_whether_the_preferred_leader_is_another() -> None:
    assert told(declared(1, 2, 3), Placed((2, 1, 3))) == [
        (DriftKind.ORDER, "orders-0: is on 2,1,3, declared on 1,2,3: broker 2 is its preferred leader, not 1")
    ]
    assert told(declared(1, 2, 3), Placed((1, 3, 2)))[0][1].endswith("only the order of followers differs")


def test_a_move_is_drift_until_it_is_complete_and_says_who_leaves() -> None:
    assert told(declared(1, 2), Placed((1, 2), is_moving=True, leaving=(3,))) == [
        (DriftKind.MOVING, "orders-0: is being reassigned to 1,2, as declared, broker 3 still to leave")
    ]
    ((kind, how),) = told(declared(1, 2), Placed((1, 4), is_moving=True, leaving=(2,)))
    assert kind is DriftKind.REPLICAS
    assert how.endswith("broker 4 not declared; it is being reassigned, broker 2 still to leave")


def test_a_log_directory_counts_where_it_is_declared() -> None:
    plan = declared(1, 2, log_dirs=("/a", "/b"))
    ((kind, how),) = told(plan, Placed((1, 2), log_dirs={1: "/c"}))
    assert kind is DriftKind.LOG_DIR
    assert how.startswith("orders-0: on broker 1 it is in /c, declared in /a; on broker 2 it is in a log directory")
    assert how.endswith("that is not known, declared in /b")


def test_what_is_missing_or_not_declared_is_told_and_other_topics_are_no_matter() -> None:
    placed = {ORDERS_1: Placed((4,)), USERS_0: Placed((1,))}
    assert [(one.topic_partition, one.kind) for one in drifts(declared(1), placed)] == [
        (ORDERS_0, DriftKind.MISSING),
        (ORDERS_1, DriftKind.UNDECLARED),
    ]
    assert undeclared_topics(declared(1), ("orders", "users", "users")) == ("users",)


def test_a_placement_is_kafkas_json_with_a_partition_a_line_in_order() -> None:
    text = format_placement({TopicPartition("b", 10): Placed((3,)), TopicPartition("b", 9): Placed((1, 2))})
    assert json.loads(text)["version"] == 1
    assert text.splitlines()[1:-1] == [
        '{"topic": "b", "partition": 9, "replicas": [1, 2]},',
        '{"topic": "b", "partition": 10, "replicas": [3]}',
    ]
    assert parse_plan(text).replicas == {TopicPartition("b", 9): (1, 2), TopicPartition("b", 10): (3,)}
    assert parse_plan(format_placement({})) == Plan()


def test_drift_tells_what_is_declared_and_what_is_there() -> None:
    (order,) = drifts(declared(1, 2), {ORDERS_0: Placed((2, 1))})
    assert (order.declared, order.found) == ((1, 2), (2, 1))
    (missing,) = drifts(declared(1, 2), {})
    assert (missing.declared, missing.found) == ((1, 2), None)
