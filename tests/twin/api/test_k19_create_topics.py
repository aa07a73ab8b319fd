from __future__ import annotations

from kreassign.twin.access import ANONYMOUS, Allow, Operation, Permissions
from kreassign.twin.cluster import Twin
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.twin.asking import ask, twin

REQUEST = api.CREATE_TOPICS.request
TOPIC = REQUEST.CreatableTopic
TOO_MANY = (
    "Unable to replicate the partition 9 time(s): The target replication factor of 9 cannot be reached because only 4 "
    "broker(s) are registered or some brokers have all their log directories cordoned."
)


def create(asked: Twin, *topics: Message, version: int = 7, **fields: object) -> list[Message]:
    fields = {"timeout_ms": 1000, **fields}
    response = ask(asked, api.CREATE_TOPICS, version, topics=list(topics), **fields)
    found: list[Message] = response.topics
    return found


def test_a_topic_is_created_and_described() -> None:
    asked = twin()
    setting = TOPIC.CreatableTopicConfig(name="retention.ms", value="5000")
    (created,) = create(asked, TOPIC(name="new", num_partitions=4, replication_factor=2, configs=[setting]))
    assert (created.error_code, created.error_message) == (0, None)
    assert (created.num_partitions, created.replication_factor) == (4, 2)
    assert str(created.topic_id) == asked.metadata.topics["new"].topic_id
    settings = {config.name: (config.value, config.config_source) for config in created.configs}
    assert settings["retention.ms"] == ("5000", 1)
    assert settings["cleanup.policy"] == ("delete", 5)
    assert list(settings) == sorted(settings)
    assert {len(set(state.replicas)) for state in asked.metadata.topics["new"].partitions.values()} == {2}


def test_a_topic_is_placed_by_hand() -> None:
    asked = twin()
    lists = [
        TOPIC.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in enumerate(([2, 3], [3, 0]))
    ]
    (created,) = create(asked, TOPIC(name="new", num_partitions=-1, replication_factor=-1, assignments=lists))
    assert (created.error_code, created.num_partitions, created.replication_factor) == (0, 2, 2)
    replicas = [state.replicas for state in asked.metadata.topics["new"].partitions.values()]
    assert replicas == [(2, 3), (3, 0)]


def test_what_cannot_be_created_is_refused_beside_what_can() -> None:
    asked = twin({"orders": [[0]]})
    results = create(
        asked,
        TOPIC(name="orders", num_partitions=1, replication_factor=1),
        TOPIC(name="new", num_partitions=1, replication_factor=1),
        TOPIC(name="wide", num_partitions=1, replication_factor=9),
        TOPIC(name="..", num_partitions=1, replication_factor=1),
    )
    assert {one.name: (one.error_code, one.error_message) for one in results} == {
        "orders": (36, "Topic 'orders' already exists."),
        "new": (0, None),
        "wide": (
            38,
            TOO_MANY,
        ),
        "..": (17, "Topic name is invalid: '..' is not allowed"),
    }
    assert asked.metadata.topics.keys() == {"orders", "new"}


def test_validating_creates_nothing() -> None:
    asked = twin()
    (checked,) = create(asked, TOPIC(name="new", num_partitions=3, replication_factor=2), validate_only=True)
    assert (checked.error_code, checked.num_partitions) == (0, 3)
    assert not asked.metadata.topics


def test_who_may_not_create_is_told_so() -> None:
    asked = twin(permissions=Permissions(frozenset({Allow(ANONYMOUS, Operation.CREATE, "mine")})))
    results = create(
        asked,
        TOPIC(name="mine", num_partitions=1, replication_factor=1),
        TOPIC(name="yours", num_partitions=1, replication_factor=1),
    )
    shown = {one.name: (one.error_code, one.error_message, one.topic_config_error_code) for one in results}
    # May create, but not see what was configured.
    assert shown == {"mine": (0, None, 29), "yours": (29, "Authorization failed.", 0)}
