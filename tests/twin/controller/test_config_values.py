"""Configuration values, judged in the words of Kafka 4.3.1."""

import pytest

from kreassign.twin.controller.config_keys import (
    BROKER_KEYS,
    TOPIC_KEYS,
    first_broker_fault,
    first_fault,
    shown_value,
    untiering_fault,
    value_fault,
)

LEADERS = "leader.replication.throttled.replicas"
RATE = "leader.replication.throttled.rate"
PER_LISTENER = "These security configs can be dynamically updated only per-listener using the listener prefix"
PAIRS = (
    f"{LEADERS} must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)


@pytest.mark.parametrize(("key", "value", "why"), [
    ("retention.ms", "5.0", "5.0|Not a number of type LONG"),
    ("retention.ms", "9223372036854775808", "9223372036854775808|Not a number of type LONG"),
    ("flush.messages", "0", "0|Value must be at least 1"),
    ("segment.bytes", "1", "1|Value must be at least 1048576"),
    ("segment.bytes", "99999999999", "99999999999|Not a number of type INT"),
    ("cleanup.policy", "compact,foo", "foo|String must be one of: compact, delete"),
    ("compression.type", "x", "x|String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
    ("message.timestamp.type", "x", "x|String must be one of: CreateTime, LogAppendTime"),
    ("min.cleanable.dirty.ratio", "2", "2.0|Value must be no more than 1"),
    ("min.cleanable.dirty.ratio", "x", "x|Not a number of type DOUBLE"),
    ("compression.gzip.level", "0", "0|Value must be between 1 and 9 or equal to -1"),
    ("compression.lz4.level", "0", "0|Value must be at least 1"),
    ("compression.zstd.level", "99", "99|Value must be no more than 22"),
    (LEADERS, "0:1,0-1, 2:3", f"[0:1, 0-1, 2:3]|{PAIRS}"),
    (LEADERS, "a:b", f"[a:b]|{PAIRS}"),
])  # fmt: skip
def test_unfit_values_of_topics(key, value, why):
    shown, reason = why.split("|")
    assert first_fault({key: value}) == f"Invalid value {shown} for configuration {key}: {reason}"


def test_unknown_keys_come_first_and_the_rest_in_kafkas_order():
    assert first_fault({"retention.ms": "x", "zzz": "1"}) == "Unknown topic config name: zzz"
    assert "retention.ms" in first_fault({"delete.retention.ms": "x", "retention.ms": "y"})


@pytest.mark.parametrize(("least", "most", "is_fine"), [
    ("100", "50", False), ("50", "50", True), ("2", "1", False), ("9223372036854775807", None, True), (None, "1", True),
])  # fmt: skip
def test_lags_must_not_contradict_each_other_or_defaults(least, most, is_fine):
    lags = {"min.compaction.lag.ms": least, "max.compaction.lag.ms": most}
    text = f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
    assert first_fault({key: lag for key, lag in lags.items() if lag}) == (None if is_fine else text)


@pytest.mark.parametrize(("unit", "whole", "local", "why"), [
    ("ms", "5", "5", None), ("ms", "5", "0", None), ("ms", "5", "-2", None), ("ms", "-1", "7", None),
    ("bytes", "0", "0", None), ("ms", "5", "6", "more than retention.ms property value: 5"),
    ("bytes", "5", "6", "more than retention.bytes property value: 5"),
    ("ms", "5", "-1", "-1 as retention.ms value is set as 5."),
    ("bytes", "0", "1", "more than retention.bytes property value: 0"),
])  # fmt: skip
def test_brokers_keep_no_more_of_a_tiered_topic_than_there_is(unit, whole, local, why):
    values = {"remote.storage.enable": "true", f"retention.{unit}": whole, f"local.retention.{unit}": local}
    said = why and f"Invalid value {local} for configuration local.retention.{unit}: Value must not be {why}"
    assert first_fault(values, may_be_tiered=True) == said


@pytest.mark.parametrize(("values", "fault"), [
    ({RATE: ""}, f"Invalid value  for configuration {RATE}: Not a number of type LONG"),
    ({RATE: "5.5"}, f"Invalid value 5.5 for configuration {RATE}: Not a number of type LONG"),
    ({"log.dirs": "/x", "broker.id": "3"}, "Cannot update these configs dynamically: [broker.id, log.dirs]"),
    ({"ssl.keystore.type": "x"}, f"{PER_LISTENER}: [ssl.keystore.type]"),
    ({RATE: "0", "foo": "1", "cordoned.log.dirs": "*"}, None),
])  # fmt: skip
def test_values_of_a_broker(values, fault):
    assert first_broker_fault(values, is_for_one=True) == fault


@pytest.mark.parametrize(("key", "is_fine"), [(RATE, True), ("cordoned.log.dirs", False), ("listeners", False)])
def test_some_keys_are_every_brokers_own(key, is_fine):
    fault = first_broker_fault({key: "1"}, is_for_one=False)
    text = f"Cannot update these configs at default cluster level, broker id must be specified: [{key}]"
    assert fault == (None if is_fine else text)


def test_every_default_is_fit():
    keys = [key for key in (*TOPIC_KEYS.values(), *BROKER_KEYS.values()) if key.default is not None]
    assert len(keys) > 60
    assert [value_fault(key, key.default) for key in keys] == [None] * len(keys)


@pytest.mark.parametrize(("key", "value", "shown"), [
    ("retention.ms", " +5 ", "5"), ("preallocate", "TRUE", "true"), (LEADERS, " 0:1 , 1:2", "0:1,1:2"),
    ("min.cleanable.dirty.ratio", "1", "1.0"), ("compression.type", " zstd ", "zstd"), ("retention.ms", "x", "x"),
    ("preallocate", " False ", "false"), ("preallocate", "maybe", "maybe"), ("cleanup.policy", "", ""),
    ("min.cleanable.dirty.ratio", " .5F ", "0.5"), ("segment.bytes", "0010", "10"), ("cleanup.policy", "a ,b", "a,b"),
])  # fmt: skip
def test_values_are_shown_as_kafka_reads_them(key, value, shown):
    assert shown_value(TOPIC_KEYS[key], value) == shown


TIERED = {"remote.storage.enable": " True "}
NO_POLICY = "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list."


@pytest.mark.parametrize(("values", "fault"), [
    (TIERED, None),
    (TIERED | {"cleanup.policy": " delete "}, None),
    (TIERED | {"cleanup.policy": ""}, None),
    (TIERED | {"cleanup.policy": "compact"}, NO_POLICY),
    (TIERED | {"cleanup.policy": "compact,delete"}, NO_POLICY),
    ({"remote.storage.enable": "false", "cleanup.policy": "compact"}, None),
    # Both are usually kept as all is: a week, and without an end.
    (TIERED | {"local.retention.ms": "604800000"}, None),
    (TIERED | {"local.retention.ms": "604800001"}, (
     "Invalid value 604800001 for configuration local.retention.ms: Value must not be more than retention.ms "
     "property value: 604800000")),
    (TIERED | {"local.retention.bytes": "7"}, None),
    (TIERED | {"retention.bytes": "0"}, None),
    (TIERED | {"retention.ms": "0", "local.retention.ms": "0"}, None),
])  # fmt: skip
def test_a_tiered_topic_deletes_what_is_old(values, fault):
    assert first_fault(values, may_be_tiered=True) == fault


def test_only_where_servers_have_remote_storage_a_topic_is_tiered():
    disabled = (
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
    )
    assert (first_fault(TIERED), first_fault(TIERED, may_be_tiered=False)) == (disabled, disabled)
    assert first_fault({"remote.storage.enable": "false"}) is None


@pytest.mark.parametrize(("before", "after", "is_fine"), [
    ({}, {}, True),
    (TIERED, TIERED, True),
    ({}, TIERED, True),
    (TIERED, {}, False),
    (TIERED, {"remote.storage.enable": "false"}, False),
    (TIERED, {"remote.log.delete.on.disable": "false"}, False),
    (TIERED, {"remote.log.delete.on.disable": " TRUE "}, True),
])  # fmt: skip
def test_a_topic_is_tiered_no_longer_only_if_its_remote_segments_go(before, after, is_fine):
    fault = untiering_fault(before, after)
    assert (fault is None) == is_fine
    assert is_fine or fault.startswith("It is invalid to disable remote storage without deleting remote data. ")


@pytest.mark.parametrize(("key", "value", "is_fine"), [
    ("retention.bytes", "-9223372036854775808", True), ("retention.bytes", "-9223372036854775809", False),
    ("retention.bytes", "9223372036854775807", True), ("segment.bytes", "2147483647", True),
    ("segment.bytes", "2147483648", False), ("segment.bytes", "1048576", True), ("segment.bytes", "1048575", False),
    ("compression.gzip.level", "1", True), ("compression.gzip.level", "9", True),
    ("compression.gzip.level", "10", False), ("compression.gzip.level", "-2", False),
    ("compression.lz4.level", "17", True), ("compression.lz4.level", "18", False),
    ("compression.zstd.level", "-131072", True), ("compression.zstd.level", "-131073", False),
    ("compression.zstd.level", "22", True), ("compression.zstd.level", "23", False),
    ("min.cleanable.dirty.ratio", "0", True), ("min.cleanable.dirty.ratio", "-0.1", False),
    ("min.cleanable.dirty.ratio", "1", True), ("min.cleanable.dirty.ratio", "1.01", False),
    ("min.cleanable.dirty.ratio", ".5f", True), ("min.cleanable.dirty.ratio", "0.5D", True),
    ("min.cleanable.dirty.ratio", "5E-1F", True), ("min.cleanable.dirty.ratio", "1d", True),
    ("min.cleanable.dirty.ratio", "0.5x", False), ("max.compaction.lag.ms", "1", True),
    ("max.compaction.lag.ms", "0", False), (LEADERS, "0:1 , 2:3", True), (LEADERS, "0:1,*", False),
    ("preallocate", "yes", False), ("preallocate", " false", True), ("cleanup.policy", "delete,delete", True),
    ("retention.ms", "-1", True), ("retention.ms", " 5 ", True), ("retention.ms", "+0", True),
    ("cleanup.policy", "", True), ("cleanup.policy", "delete, compact", True),
    ("unclean.leader.election.enable", "TRUE", True), ("compression.gzip.level", "-1", True),
    ("min.cleanable.dirty.ratio", "1e-1", True), ("min.compaction.lag.ms", "0", True),
    (LEADERS, " * ", True), (LEADERS, "0:1,0:1", True),
    ("internal.segment.bytes", "5", True),
])  # fmt: skip
def test_values_at_the_ends_of_what_is_allowed(key, value, is_fine):
    assert (first_fault({key: value}) is None) == is_fine


def test_keys_that_a_broker_cannot_have_are_told_in_order():
    both = {"ssl.truststore.type": "x", "ssl.keystore.type": "x", "process.roles": "x", "broker.rack": "x"}
    assert first_broker_fault(both, is_for_one=True) == (
        "Cannot update these configs dynamically: [broker.rack, process.roles]"
    )
    unprefixed = {name: value for name, value in both.items() if name.startswith("ssl")}
    assert first_broker_fault(unprefixed, is_for_one=True) == (
        f"{PER_LISTENER}: [ssl.keystore.type, ssl.truststore.type]"
    )
    one = {"ssl.protocol": "x", "sasl.jaas.config": "x", "listeners": "x", "my.key": "x"}
    assert first_broker_fault(one, is_for_one=True) is None
    assert first_broker_fault(one, is_for_one=False) == (
        "Cannot update these configs at default cluster level, broker id must be specified: "
        "[listeners, sasl.jaas.config, ssl.protocol]"
    )
