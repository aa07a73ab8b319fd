from __future__ import annotations

from kreassign.twin.access import ANONYMOUS, Allow, Operation, Permissions
from kreassign.twin.cluster import Twin
from kreassign.wire import api
from tests.twin.asking import ask, partition, twin

TOPIC = api.CREATE_PARTITIONS.request.CreatePartitionsTopic


def grow(
    asked: Twin, *wanted: tuple[str, int, list[list[int]] | None], **fields: object
) -> dict[str, tuple[int, str | None]]:
    topics = [
        TOPIC(
            name=name,
            count=count,
            assignments=None
            if lists is None
            else [TOPIC.CreatePartitionsAssignment(broker_ids=brokers) for brokers in lists],
        )
        for name, count, lists in wanted
    ]
    response = ask(asked, api.CREATE_PARTITIONS, 3, topics=topics, **{"timeout_ms": 1000, **fields})
    return {one.name: (one.error_code, one.error_message) for one in response.results}


def test_a_topic_grows_by_the_cluster_or_by_hand() -> None:
    asked = twin({"orders": [[0, 1]], "payments": [[1, 2]]})
    assert grow(asked, ("orders", 3, None), ("payments", 2, [[3, 0]])) == {"orders": (0, None), "payments": (0, None)}
    assert len(asked.metadata.topics["orders"].partitions) == 3
    assert partition(asked, "payments", 1) == ((3, 0), {0, 3}, 3)


def test_what_cannot_grow_is_refused_beside_what_can() -> None:
    asked = twin({"orders": [[0, 1]], "payments": [[1, 2]]})
    assert grow(asked, ("orders", 1, None), ("nope", 3, None), ("payments", 2, None)) == {
        "orders": (37, "Topic already has 1 partition(s)."),
        "nope": (3, None),
        "payments": (0, None),
    }


def test_validating_adds_nothing() -> None:
    asked = twin({"orders": [[0, 1]]})
    assert grow(asked, ("orders", 3, None), validate_only=True) == {"orders": (0, None)}
    assert len(asked.metadata.topics["orders"].partitions) == 1


def test_who_may_not_add_is_told_so_without_a_text() -> None:
    allowed = Permissions(frozenset({Allow(ANONYMOUS, Operation.ALTER, "orders")}))
    asked = twin({"orders": [[0, 1]], "payments": [[1, 2]]}, permissions=allowed)
    assert grow(asked, ("orders", 2, None), ("payments", 2, None)) == {"orders": (0, None), "payments": (29, None)}
    assert len(asked.metadata.topics["payments"].partitions) == 1
