import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.admin.translate.cluster import describe_configs, incremental_alter_configs
from kreassign.errors import ProtocolViolation, Rejected
from kreassign.model import ConfigChange, ConfigEntry, ConfigResource, ConfigSource
from kreassign.wire import api
from tests.admin import answers
from tests.admin.values import (
    CONFIG_CHANGES,
    CONFIG_ENTRIES,
    NAMES,
    OUTCOMES,
    RESOURCES,
    as_read_by_us,
    as_seen_by_broker,
    versions,
)

DESCRIBE, ALTER = api.DESCRIBE_CONFIGS, api.INCREMENTAL_ALTER_CONFIGS
ENTRIES = st.lists(CONFIG_ENTRIES, max_size=3, unique_by=lambda entry: entry.name)
ORDERS = ConfigResource.topic("orders")


@given(st.lists(RESOURCES, max_size=3, unique=True), st.none() | st.lists(NAMES, max_size=2), versions(DESCRIBE))
def test_a_broker_reads_whose_configuration_is_wanted_and_which_keys(
    resources: list[ConfigResource], names: list[str] | None, version: int
) -> None:
    seen = as_seen_by_broker(describe_configs(resources, names), version)
    assert [(entry.resource_type, entry.resource_name) for entry in seen.resources] == resources
    assert all(entry.configuration_keys == names for entry in seen.resources)


@given(st.dictionaries(RESOURCES, ENTRIES, max_size=3), versions(DESCRIBE))
def test_configurations_are_read_with_where_each_value_comes_from(
    found: dict[ConfigResource, list[ConfigEntry]], version: int
) -> None:
    batch = as_read_by_us(describe_configs(found, None), version, answers.configs(found, {}))
    assert batch.ok == {resource: {entry.name: entry for entry in entries} for resource, entries in found.items()}
    assert not batch.failed


def test_a_source_of_a_later_kafka_is_unknown() -> None:
    response = answers.configs({ORDERS: [ConfigEntry("k", "v", ConfigSource.DEFAULT)]}, {})
    response.results[0].configs[0].config_source = 99
    batch = as_read_by_us(describe_configs([ORDERS], None), 4, response)
    assert batch[ORDERS]["k"].source is ConfigSource.UNKNOWN


def test_a_resource_may_be_refused_while_another_is_told() -> None:
    gone = ConfigResource.topic("gone")
    response = answers.configs({ORDERS: []}, {gone: (3, "The topic 'gone' does not exist.")})
    batch = as_read_by_us(describe_configs([ORDERS, gone], None), 4, response)
    assert batch[ORDERS] == {}
    assert batch.failed[gone].message == "The topic 'gone' does not exist."


def test_a_kind_of_resource_that_nobody_asked_about_is_a_broken_answer() -> None:
    response = answers.configs({ORDERS: []}, {})
    response.results[0].resource_type = 77
    with pytest.raises(ProtocolViolation, match="resource type 77"):
        as_read_by_us(describe_configs([ORDERS], None), 4, response)


@given(st.dictionaries(RESOURCES, st.lists(CONFIG_CHANGES, max_size=3), max_size=3), st.booleans(), versions(ALTER))
def test_a_broker_reads_every_step_of_every_change(
    changes: dict[ConfigResource, list[ConfigChange]], validate_only: bool, version: int
) -> None:
    seen = as_seen_by_broker(incremental_alter_configs(changes, validate_only=validate_only), version)
    assert seen.validate_only is validate_only
    read = {
        (entry.resource_type, entry.resource_name): [
            (config.config_operation, config.name, config.value) for config in entry.configs
        ]
        for entry in seen.resources
    }
    assert read == {
        resource: [(step.operation, step.name, step.value) for step in steps] for resource, steps in changes.items()
    }


@given(st.dictionaries(RESOURCES, OUTCOMES, max_size=4), versions(ALTER))
def test_every_resource_gets_its_own_outcome(outcomes: dict[ConfigResource, answers.Outcome], version: int) -> None:
    call = incremental_alter_configs(dict.fromkeys(outcomes, ()), validate_only=False)
    batch = as_read_by_us(call, version, answers.configs_altered(outcomes))
    failed = {resource: error.code for resource, error in batch.failed.items() if isinstance(error, Rejected)}
    assert dict.fromkeys(batch.ok, 0) | failed == {resource: code for resource, (code, _) in outcomes.items()}


def test_a_change_is_a_write_and_may_meet_the_wrong_controller() -> None:
    call = incremental_alter_configs({ORDERS: [ConfigChange.delete("k")]}, validate_only=False)
    assert call.is_write
    assert list(call.routing_codes(answers.configs_altered({ORDERS: (41, None)}))) == [41]
