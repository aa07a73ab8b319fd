"""Change the dynamic configuration of topics and brokers (IncrementalAlterConfigs and AlterConfigs).

A request is checked twice, as on real clusters: by the broker that received it, which alone validates brokers' values,
and by the controller, which alone validates topics' values. Requests to the controller's endpoint are checked once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kreassign.model import ConfigOperation, ConfigResource, error_codes
from kreassign.model.cluster import ResourceType
from kreassign.model.throttle import TOPIC_THROTTLES
from kreassign.twin.controller import config_keys
from kreassign.twin.controller.decision import (
    DEFAULT_BROKER,
    DONE,
    FAILED,
    MAX_RECORDS,
    MIN_IN_SYNC_REPLICAS,
    OF_OTHER_KIND,
    OTHER_KINDS,
    TOO_LARGE,
    ControllerContext,
    Decision,
    Outcome,
)
from kreassign.twin.controller.described_configs import broker_setting
from kreassign.twin.controller.topics import check_topic_name
from kreassign.twin.metadata import (
    CORDONED_LOG_DIRS,
    ConfigChanged,
    PartitionChanged,
    Record,
    configure,
    cordoned_paths,
)

MAX_VALUE_LENGTH = 32_767
_OPERATIONS = frozenset(map(int, ConfigOperation))
_CORDONS_MORE = (
    f"When updating {CORDONED_LOG_DIRS} via controllers,  the new value must be a subset of the current configuration "
    "value."
)
_NO_BROKER_SETTINGS = "Setting broker properties on named brokers is unsupported"
"""Redpanda's text."""


@dataclass(frozen=True, slots=True)
class KeyChange:
    """One step of a request: Kafka's number of the operation, the key, and a value that may be missing."""

    operation: int
    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class ResourceChanges:
    """The changes of one resource; `type` is Kafka's number."""

    type: int
    name: str
    changes: tuple[KeyChange, ...]

    @property
    def owner(self) -> tuple[int, str]:
        """Type and name of the resource."""
        return self.type, self.name


@dataclass(frozen=True, slots=True)
class AlterConfigs:
    """A request to change configuration.

    `broker_id` is the broker that received it, None for the controller's endpoint. `replaces` is AlterConfigs: keys
    that are not named are deleted. `denied` are resources that the client may not change.
    """

    resources: tuple[ResourceChanges, ...]
    broker_id: int | None = None
    replaces: bool = False
    validate_only: bool = False
    denied: Mapping[tuple[int, str], Outcome] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResourceOutcome:
    """The outcome of one resource."""

    type: int
    name: str
    outcome: Outcome


def alter_configs(context: ControllerContext, command: AlterConfigs) -> Decision[tuple[ResourceOutcome, ...]]:
    """Change each valid resource; a resource with one invalid key keeps all of its keys."""
    refusals = _first_look(context, command)
    remaining = [one for one in command.resources if one.owner not in refusals]
    is_clear = all(change.operation in _OPERATIONS for one in remaining for change in one.changes)
    records: list[Record] = []
    outcomes = dict(refusals)
    for one in remaining:
        # On an operation that it does not know, the controller fails the whole request.
        result = _change(context, command, one) if is_clear else FAILED
        outcomes[one.owner] = DONE if isinstance(result, list) else result
        records += result if isinstance(result, list) else []
    if len(records) > MAX_RECORDS:
        records = []
        outcomes.update(dict.fromkeys((one.owner for one in remaining), TOO_LARGE))
    records += _forgotten_leaders(context, records)
    answered = command.resources if command.broker_id is not None else dict.fromkeys(command.resources)
    answer = tuple(ResourceOutcome(one.type, one.name, outcomes[one.owner]) for one in answered)
    return Decision(() if command.validate_only else tuple(records), answer)


def first_records(context: ControllerContext) -> tuple[ConfigChanged, ...]:
    """Records written when a cluster is formatted: with eligible leaders, min.insync.replicas is set for all topics."""
    if not context.rules.has_eligible_leaders:
        return ()
    value = context.server.static.get(MIN_IN_SYNC_REPLICAS, "1")
    return (ConfigChanged(DEFAULT_BROKER, MIN_IN_SYNC_REPLICAS, value),)


# Check by the broker


def _first_look(context: ControllerContext, command: AlterConfigs) -> dict[tuple[int, str], Outcome]:
    counts = Counter(one.owner for one in command.resources)
    text = "Duplicate resource." if command.broker_id is None else "Each resource must appear at most once."
    refusals = {owner: Outcome(error_codes.INVALID_REQUEST, text) for owner, count in counts.items() if count > 1}
    for one in command.resources:
        refusal = refusals.get(one.owner) or _refusal(context, command, one)
        if refusal.is_failure:
            refusals[one.owner] = refusal
    return refusals


def _refusal(context: ControllerContext, command: AlterConfigs, one: ResourceChanges) -> Outcome:
    if one.type in OTHER_KINDS:
        return OF_OTHER_KIND
    if command.broker_id is not None:
        refusal = _brokers_refusal(context, command, command.broker_id, one)
        if refusal.is_failure:
            return refusal
    elif one.type not in list(ResourceType):
        return Outcome(error_codes.UNSUPPORTED_VERSION, f"Unknown resource type {one.type}.")
    return command.denied.get(one.owner, DONE)


def _brokers_refusal(
    context: ControllerContext, command: AlterConfigs, broker_id: int, one: ResourceChanges
) -> Outcome:
    if len({change.name for change in one.changes}) < len(one.changes):
        return Outcome(error_codes.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [
        change.name for change in one.changes if change.value is None and change.operation != ConfigOperation.DELETE
    ]
    if nulls:
        return Outcome(error_codes.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    if one.type == ResourceType.TOPIC:
        return DONE
    if one.type != ResourceType.BROKER:
        return Outcome(error_codes.INVALID_REQUEST, f"Unknown resource type {one.type}")
    if one.name and (fault := _not_this_broker(one.name, broker_id)):
        return Outcome(error_codes.INVALID_REQUEST, fault)
    return _unfit_for_broker(context, command, one)


def _not_this_broker(name: str, broker_id: int) -> str | None:
    if not _is_number(name):
        return f"Node id must be an integer, but it is: {name}"
    return None if int(name) == broker_id else f"Unexpected broker id, expected {broker_id}, but received {name}"


def _unfit_for_broker(context: ControllerContext, command: AlterConfigs, one: ResourceChanges) -> Outcome:
    """Validate the settings that the broker itself would have."""
    if one.name and not context.rules.takes_broker_settings:
        return Outcome(error_codes.INVALID_CONFIG, _NO_BROKER_SETTINGS)
    resource = ConfigResource(ResourceType.BROKER, one.name)
    values = {} if command.replaces else dict(context.metadata.configs.get(resource, {}))
    for change in one.changes:
        if change.operation not in _OPERATIONS:
            return Outcome(error_codes.INVALID_REQUEST, f"Unknown operations type {change.operation}")
        refusal = _unfit_list_step(change)
        if refusal.is_failure:
            return refusal
        configure(values, change.name, _stepped(values.get(change.name), config_keys.BROKER_KEYS, change))
    fault = (
        config_keys.first_broker_fault(values, is_for_one=bool(one.name))
        or _cordons_elsewhere(context, one.name, values)
        or _threads_too_suddenly(context, command, values)
    )  # fmt: skip
    return Outcome(error_codes.INVALID_REQUEST, fault) if fault else DONE


def _threads_too_suddenly(context: ControllerContext, command: AlterConfigs, values: Mapping[str, str]) -> str | None:
    """Kafka at most halves or doubles a thread pool; the receiving broker compares with its own size."""
    assert command.broker_id is not None
    for name in sorted(config_keys.THREAD_COUNTS & values.keys()):
        wanted, present = int(values[name]), int(broker_setting(context, command.broker_id, name) or 0)
        fault = None
        if wanted < present // 2:
            fault = f"value should be at least half the current value {present}"
        elif wanted > 2 * present:
            fault = f"value should not be greater than double the current value {present}"
        if fault is not None:
            return (
                "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation "
                f"failed for {name}={wanted}, {fault} for configuration Invalid dynamic configuration"
            )
    return None


def _unfit_list_step(change: KeyChange) -> Outcome:
    if change.operation not in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
        return DONE
    key = config_keys.BROKER_KEYS.get(change.name)
    if key is None or key.is_quota:
        return Outcome(error_codes.INVALID_CONFIG, f"Unknown config name: {change.name}")
    if key.type is config_keys.ValueType.LIST:
        return DONE
    step = ConfigOperation(change.operation).name.lower()
    return Outcome(error_codes.INVALID_CONFIG, f"Config value {step} is not allowed for config key: {change.name}")


def _cordons_elsewhere(context: ControllerContext, name: str, values: Mapping[str, str]) -> str | None:
    broker = context.metadata.brokers.get(int(name)) if name else None
    if broker is None or not context.rules.has_cordoning:
        return None
    cordoned = cordoned_paths(values.get(CORDONED_LOG_DIRS))
    if "*" in cordoned and len(cordoned) > 1:
        return f"requirement failed: When {CORDONED_LOG_DIRS} is set to *, it must not contain other values"
    strange = sorted(cordoned - {"*", *(log_dir.path for log_dir in broker.log_dirs)})
    if not strange:
        return None
    return (
        f"requirement failed: All entries in {CORDONED_LOG_DIRS} must be present in log.dirs or log.dir. "
        f"Missing entries : {', '.join(strange)}"
    )


# Check by the controller


def _change(context: ControllerContext, command: AlterConfigs, one: ResourceChanges) -> list[ConfigChanged] | Outcome:
    resource = ConfigResource(ResourceType(one.type), one.name)
    present = context.metadata.configs.get(resource, {})
    changed = dict.fromkeys(set(present).difference(change.name for change in one.changes)) if command.replaces else {}
    records = [ConfigChanged(resource, name, None) for name in sorted(changed)]
    keys = config_keys.TOPIC_KEYS if resource.type is ResourceType.TOPIC else config_keys.BROKER_KEYS
    # The last step of a key counts; a broker has refused such requests already.
    for change in {change.name: change for change in one.changes}.values():
        takes_list = change.operation in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT)
        if takes_list and (change.name not in keys or keys[change.name].type is not config_keys.ValueType.LIST):
            step = ConfigOperation(change.operation).name
            return Outcome(
                error_codes.INVALID_CONFIG, f"Can't {step} to key {change.name} because its type is not LIST."
            )
        if change.name in TOPIC_THROTTLES and not context.rules.takes_broker_settings:
            continue
        value = _stepped(present.get(change.name), keys, change)
        # Brokers reload their settings on every record, so they get a record that changes nothing, too.
        if value != present.get(change.name) or resource.type is ResourceType.BROKER:
            records.append(ConfigChanged(resource, change.name, value))
    if command.broker_id is None and context.rules.has_cordoning and _cordons_more(present, records):
        return Outcome(error_codes.INVALID_CONFIG, _CORDONS_MORE)
    refusal = _unfit(context, resource, present, records)
    return refusal if refusal.is_failure else records


def _cordons_more(present: Mapping[str, str], records: Iterable[ConfigChanged]) -> bool:
    """True if directories are cordoned: controllers do not know whether a broker can do that, and refuse it."""
    before = cordoned_paths(present.get(CORDONED_LOG_DIRS))
    return any(cordoned_paths(one.value) - before for one in records if one.name == CORDONED_LOG_DIRS)


def _stepped(present: str | None, keys: Mapping[str, config_keys.Key], change: KeyChange) -> str | None:
    """The value of a key after one step; None if it has no value of its own any more."""
    if change.operation == ConfigOperation.DELETE:
        return None
    if change.operation == ConfigOperation.SET or change.value is None:
        return change.value
    value = keys[change.name].default if present is None else present
    items = [item for item in (value or "").split(",") if item]
    for item in change.value.split(","):
        if change.operation == ConfigOperation.APPEND and item not in items:
            items.append(item)
        elif change.operation == ConfigOperation.SUBTRACT and item in items:
            items.remove(item)
    return ",".join(items)


def _unfit(
    context: ControllerContext, resource: ConfigResource, present: Mapping[str, str], records: Iterable[ConfigChanged]
) -> Outcome:
    values = dict(present)
    for record in records:
        if fault := _forbidden(context, record):
            return Outcome(error_codes.INVALID_CONFIG, fault)
        configure(values, record.name, record.value)
    if resource.type is ResourceType.BROKER:
        return _unknown_node(context, resource.name)
    return _unfit_topic(context, resource.name, values)


def _forbidden(context: ControllerContext, record: ConfigChanged) -> str | None:
    is_least_isr = record.name == MIN_IN_SYNC_REPLICAS and record.resource.type is ResourceType.BROKER
    if is_least_isr and context.rules.has_eligible_leaders:
        if record.resource.name:
            return f"Broker-level {MIN_IN_SYNC_REPLICAS} cannot be altered while ELR is enabled."
        if record.value is None:
            return f"Cluster-level {MIN_IN_SYNC_REPLICAS} cannot be removed while ELR is enabled."
    if record.value is not None and len(record.value) > MAX_VALUE_LENGTH:
        return (
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{MAX_VALUE_LENGTH} bytes."
        )
    return None


def _unfit_topic(context: ControllerContext, topic: str, values: Mapping[str, str]) -> Outcome:
    if not topic:
        return Outcome(error_codes.INVALID_REQUEST, "Default topic resources are not allowed.")
    refusal = check_topic_name(topic)
    if refusal.is_failure:
        return refusal
    if fault := config_keys.first_fault(values, may_be_tiered=context.may_be_tiered):
        return Outcome(error_codes.INVALID_CONFIG, fault)
    before = context.metadata.configs.get(ConfigResource.topic(topic), {})
    if fault := config_keys.untiering_fault(before, values):
        return Outcome(error_codes.INVALID_CONFIG, fault)
    if topic not in context.metadata.topics:
        return Outcome(error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")
    return DONE


def _unknown_node(context: ControllerContext, name: str) -> Outcome:
    if not name:
        return DONE
    if not _is_number(name):
        return Outcome(error_codes.INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")
    if int(name) < 0:
        return Outcome(error_codes.INVALID_REQUEST, "Invalid negative broker ID.")
    if int(name) not in context.metadata.brokers and int(name) not in context.controllers:
        return Outcome(error_codes.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")
    return DONE


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit()


def _forgotten_leaders(context: ControllerContext, records: Iterable[Record]) -> list[PartitionChanged]:
    """Changes that clear the eligible leaders when min.insync.replicas changes."""
    if not context.rules.has_eligible_leaders:
        return []
    owners = {
        record.resource
        for record in records
        if isinstance(record, ConfigChanged) and record.name == MIN_IN_SYNC_REPLICAS
    }
    is_about_all = any(owner.type is ResourceType.BROKER for owner in owners)
    names = context.metadata.topics if is_about_all else sorted(owner.name for owner in owners)
    return [
        PartitionChanged(partition.topic_partition, elr=(), last_known_elr=())
        for name in names
        for _, partition in sorted(context.metadata.topics[name].partitions.items())
        if partition.elr or partition.last_known_elr
    ]
