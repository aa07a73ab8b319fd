from __future__ import annotations

import pytest

from kreassign.model import ConfigResource
from kreassign.model.throttle import LEADER_THROTTLED_RATE, LEADER_THROTTLED_REPLICAS
from kreassign.twin.access import ANONYMOUS, Allow, Operation, Permissions
from kreassign.twin.cluster import Twin
from kreassign.wire import api
from tests.twin.asking import ask, twin

RESOURCE = api.INCREMENTAL_ALTER_CONFIGS.request.AlterConfigsResource
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND = 0, 1, 2


def alter(
    asked: Twin, *resources: tuple[int, str, int, str, str | None], node: int = 0, **options: object
) -> list[tuple[str, int, str | None]]:
    entries = [
        RESOURCE(
            resource_type=kind,
            resource_name=owner,
            configs=[RESOURCE.AlterableConfig(name=key, config_operation=operation, value=value)],
        )
        for kind, owner, operation, key, value in resources
    ]
    response = ask(asked, api.INCREMENTAL_ALTER_CONFIGS, 1, node=node, resources=entries, **options)
    return [(one.resource_name, one.error_code, one.error_message) for one in response.responses]


def test_topics_and_the_asked_broker_are_configured() -> None:
    asked = twin({"orders": [[0, 1]]})
    changes = ((TOPIC, "orders", SET, LEADER_THROTTLED_REPLICAS, "*"), (BROKER, "0", SET, LEADER_THROTTLED_RATE, "9"))
    assert alter(asked, *changes) == [("orders", 0, None), ("0", 0, None)]
    assert asked.metadata.config(ConfigResource.topic("orders"), LEADER_THROTTLED_REPLICAS) == "*"
    assert asked.metadata.config(ConfigResource.broker(0), LEADER_THROTTLED_RATE) == "9"
    assert alter(asked, (BROKER, "0", DELETE, LEADER_THROTTLED_RATE, None)) == [("0", 0, None)]
    assert asked.metadata.config(ConfigResource.broker(0), LEADER_THROTTLED_RATE) is None


def test_another_broker_is_configured_at_the_controller_only() -> None:
    asked = twin()
    change = (BROKER, "2", SET, LEADER_THROTTLED_RATE, "9")
    assert alter(asked, change) == [("2", 42, "Unexpected broker id, expected 0, but received 2")]
    asked.crash(2)
    assert alter(asked, change, node=100) == [("2", 0, None)]
    assert alter(asked, (BROKER, "9", SET, LEADER_THROTTLED_RATE, "9"), node=100) == [
        ("9", 102, "No node with id 9 found.")
    ]


def test_the_controller_itself_can_be_configured_as_the_tools_do_through_it() -> None:
    asked = twin()
    assert alter(asked, (BROKER, "100", DELETE, LEADER_THROTTLED_RATE, None), node=100) == [("100", 0, None)]


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        ((TOPIC, "nope", SET, "retention.ms", "1"), 3, "The topic 'nope' does not exist."),
        ((TOPIC, "orders", SET, "zzz", "1"), 40, "Unknown topic config name: zzz"),
        ((TOPIC, "orders", SET, "retention.ms", None), 42, "Null value not supported for : retention.ms"),
        ((TOPIC, "orders", APPEND, "retention.ms", "1"), 40,
         "Can't APPEND to key retention.ms because its type is not LIST."),
        ((BROKER, "0", SET, LEADER_THROTTLED_RATE, "-1"), 42,
         "Invalid value -1 for configuration leader.replication.throttled.rate: Value must be at least 0"),
        ((TOPIC, "orders", 9, "retention.ms", "1"), -1, None),
    ],
)  # fmt: skip
def test_refusals_are_those_of_kafka(
    change: tuple[int, str, int, str, str | None], code: int, text: str | None
) -> None:
    assert alter(twin({"orders": [[0]]}), change) == [(change[1], code, text)]


def test_validating_changes_nothing() -> None:
    asked = twin({"orders": [[0]]})
    assert alter(asked, (TOPIC, "orders", SET, "retention.ms", "1"), validate_only=True) == [("orders", 0, None)]
    assert asked.metadata.config(ConfigResource.topic("orders"), "retention.ms") is None


def test_who_may_not_change_is_told_so() -> None:
    asked = twin({"orders": [[0]]}, permissions=Permissions(frozenset({Allow(ANONYMOUS, Operation.ALTER_CONFIGS)})))
    changes = ((TOPIC, "orders", SET, "retention.ms", "1"), (BROKER, "0", SET, LEADER_THROTTLED_RATE, "9"))
    assert alter(asked, *changes) == [("orders", 29, "Topic authorization failed."), ("0", 0, None)]
    nobody = twin(permissions=Permissions(frozenset()))
    assert alter(nobody, changes[1]) == [("0", 31, "Cluster authorization failed.")]
