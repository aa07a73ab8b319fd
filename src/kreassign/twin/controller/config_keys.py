"""Which configuration keys there are, what their values look like, and what they are when nobody sets them.

Taken from Kafka 4.3.1. Keys of brokers are those whose values are looked at; the twin stores others that can be changed
while a broker runs (`ssl.`, `sasl.`, `remote.` and more) as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    LOG_DIR_RATE,
)
from kreassign.twin.controller.config_data import DOCUMENTED_BROKER_KEYS

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1


class ValueType(IntEnum):
    """What a value is, with Kafka's number for it (DescribeConfigs)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True)
class Limits:
    """The least and the greatest number allowed, None for no limit; `instead` is one more that is."""

    least: int | None = None
    greatest: int | None = None
    instead: int | None = None


@dataclass(frozen=True, slots=True)
class Words:
    """The only words allowed."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplicaPairs:
    """Pairs of partition and broker, or a star (KIP-73)."""


@dataclass(frozen=True, slots=True)
class Key:
    """One configuration key. `default` is None where there is none.

    `server_keys` are what it is called in brokers' settings, the most precise first. `fallback` is a key of brokers,
    and its default, that replaces `default` in responses. `is_quota` marks keys that brokers do not
    list until they are set.
    """

    name: str
    type: ValueType
    default: str | None = None
    check: Limits | Words | ReplicaPairs | None = None
    server_keys: tuple[str, ...] = ()
    fallback: tuple[str, str] | None = None
    is_quota: bool = False


_BOOLEAN, _STRING, _INT, _LONG, _DOUBLE, _LIST = (
    ValueType.BOOLEAN, ValueType.STRING, ValueType.INT, ValueType.LONG, ValueType.DOUBLE, ValueType.LIST,
)  # fmt: skip
_AT_LEAST_0, _AT_LEAST_1 = Limits(0), Limits(1)
_AT_LEAST_MINUS_2 = Limits(-2)
_DAY_MS, _WEEK_MS, _MEBIBYTE = "86400000", "604800000", 1024 * 1024
_FOREVER = str(MAX_LONG)
_POLICIES = Words(("compact", "delete"))
_COMPRESSIONS = Words(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"))
_TIMESTAMPS = Words(("CreateTime", "LogAppendTime"))
_GZIP, _LZ4, _ZSTD = Limits(1, 9, instead=-1), Limits(1, 17), Limits(-131072, 22)

_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_RETENTION_HOURS, _ROLL_HOURS = ("log.retention.hours", "168"), ("log.roll.hours", "168")
_JITTER_HOURS, _FLUSH_CHECK = ("log.roll.jitter.hours", "0"), ("log.flush.scheduler.interval.ms", _FOREVER)

# fmt: off
_TOPIC_KEYS = (
    Key("segment.bytes", _INT, "1073741824", Limits(_MEBIBYTE), ("log.segment.bytes",)),
    Key("segment.ms", _LONG, _WEEK_MS, _AT_LEAST_1, ("log.roll.ms", "log.roll.hours"), _ROLL_HOURS),
    Key("segment.jitter.ms", _LONG, "0", _AT_LEAST_0, ("log.roll.jitter.ms", "log.roll.jitter.hours"), _JITTER_HOURS),
    Key("segment.index.bytes", _INT, "10485760", Limits(4), ("log.index.size.max.bytes",)),
    Key("flush.messages", _LONG, _FOREVER, _AT_LEAST_1, ("log.flush.interval.messages",)),
    Key("flush.ms", _LONG, _FOREVER, _AT_LEAST_0, ("log.flush.interval.ms", _FLUSH_CHECK[0]), _FLUSH_CHECK),
    Key("retention.bytes", _LONG, "-1", None, ("log.retention.bytes",)),
    Key("retention.ms", _LONG, _WEEK_MS, Limits(-1), _RETENTION, _RETENTION_HOURS),
    Key("max.message.bytes", _INT, "1048588", _AT_LEAST_0, ("message.max.bytes",)),
    Key("index.interval.bytes", _INT, "4096", _AT_LEAST_0, ("log.index.interval.bytes",)),
    Key("delete.retention.ms", _LONG, _DAY_MS, _AT_LEAST_0, ("log.cleaner.delete.retention.ms",)),
    Key("min.compaction.lag.ms", _LONG, "0", _AT_LEAST_0, ("log.cleaner.min.compaction.lag.ms",)),
    Key("max.compaction.lag.ms", _LONG, _FOREVER, _AT_LEAST_1, ("log.cleaner.max.compaction.lag.ms",)),
    Key("file.delete.delay.ms", _LONG, "60000", _AT_LEAST_0, ("log.segment.delete.delay.ms",)),
    Key("min.cleanable.dirty.ratio", _DOUBLE, "0.5", Limits(0, 1), ("log.cleaner.min.cleanable.ratio",)),
    Key("cleanup.policy", _LIST, "delete", _POLICIES, ("log.cleanup.policy",)),
    Key("unclean.leader.election.enable", _BOOLEAN, "false", None, ("unclean.leader.election.enable",)),
    Key("min.insync.replicas", _INT, "1", _AT_LEAST_1, ("min.insync.replicas",)),
    Key("compression.type", _STRING, "producer", _COMPRESSIONS, ("compression.type",)),
    Key("compression.gzip.level", _INT, "-1", _GZIP, ("compression.gzip.level",)),
    Key("compression.lz4.level", _INT, "9", _LZ4, ("compression.lz4.level",)),
    Key("compression.zstd.level", _INT, "3", _ZSTD, ("compression.zstd.level",)),
    Key("preallocate", _BOOLEAN, "false", None, ("log.preallocate",)),
    Key("message.timestamp.type", _STRING, "CreateTime", _TIMESTAMPS, ("log.message.timestamp.type",)),
    Key("message.timestamp.before.max.ms", _LONG, _FOREVER, _AT_LEAST_0, ("log.message.timestamp.before.max.ms",)),
    Key("message.timestamp.after.max.ms", _LONG, "3600000", _AT_LEAST_0, ("log.message.timestamp.after.max.ms",)),
    Key(LEADER_THROTTLED_REPLICAS, _LIST, "", ReplicaPairs()),
    Key(FOLLOWER_THROTTLED_REPLICAS, _LIST, "", ReplicaPairs()),
    Key("remote.storage.enable", _BOOLEAN, "false"),
    Key("local.retention.ms", _LONG, "-2", _AT_LEAST_MINUS_2, ("log.local.retention.ms",)),
    Key("local.retention.bytes", _LONG, "-2", _AT_LEAST_MINUS_2, ("log.local.retention.bytes",)),
    Key("remote.log.copy.disable", _BOOLEAN, "false"),
    Key("remote.log.delete.on.disable", _BOOLEAN, "false"),
)

_BROKER_KEYS = (
    Key(LEADER_THROTTLED_RATE, _LONG, None, _AT_LEAST_0, is_quota=True),
    Key(FOLLOWER_THROTTLED_RATE, _LONG, None, _AT_LEAST_0, is_quota=True),
    Key(LOG_DIR_RATE, _LONG, None, _AT_LEAST_0, is_quota=True),
    Key("background.threads", _INT, "10", _AT_LEAST_1),
    Key("compression.gzip.level", _INT, "-1", _GZIP),
    Key("compression.lz4.level", _INT, "9", _LZ4),
    Key("compression.type", _STRING, "producer", _COMPRESSIONS),
    Key("compression.zstd.level", _INT, "3", _ZSTD),
    Key("cordoned.log.dirs", _LIST, ""),
    Key("log.cleaner.backoff.ms", _LONG, "15000", _AT_LEAST_0),
    Key("log.cleaner.dedupe.buffer.size", _LONG, "134217728"),
    Key("log.cleaner.delete.retention.ms", _LONG, _DAY_MS, _AT_LEAST_0),
    Key("log.cleaner.io.buffer.load.factor", _DOUBLE, "0.9"),
    Key("log.cleaner.io.buffer.size", _INT, "524288", _AT_LEAST_0),
    Key("log.cleaner.max.compaction.lag.ms", _LONG, _FOREVER, _AT_LEAST_1),
    Key("log.cleaner.min.cleanable.ratio", _DOUBLE, "0.5", Limits(0, 1)),
    Key("log.cleaner.min.compaction.lag.ms", _LONG, "0", _AT_LEAST_0),
    Key("log.cleaner.threads", _INT, "1", _AT_LEAST_0),
    Key("log.cleanup.policy", _LIST, "delete", _POLICIES),
    Key("log.flush.interval.messages", _LONG, _FOREVER, _AT_LEAST_1),
    Key("log.flush.interval.ms", _LONG, fallback=_FLUSH_CHECK),
    Key("log.index.interval.bytes", _INT, "4096", _AT_LEAST_0),
    Key("log.index.size.max.bytes", _INT, "10485760", Limits(4)),
    Key("log.local.retention.bytes", _LONG, "-2", _AT_LEAST_MINUS_2),
    Key("log.local.retention.ms", _LONG, "-2", _AT_LEAST_MINUS_2),
    Key("log.message.timestamp.after.max.ms", _LONG, "3600000", _AT_LEAST_0),
    Key("log.message.timestamp.before.max.ms", _LONG, _FOREVER, _AT_LEAST_0),
    Key("log.message.timestamp.type", _STRING, "CreateTime", _TIMESTAMPS),
    Key("log.preallocate", _BOOLEAN, "false"),
    Key("log.retention.bytes", _LONG, "-1"),
    Key("log.retention.ms", _LONG, fallback=_RETENTION_HOURS),
    Key("log.roll.jitter.ms", _LONG, fallback=_JITTER_HOURS),
    Key("log.roll.ms", _LONG, fallback=_ROLL_HOURS),
    Key("log.segment.bytes", _INT, "1073741824", Limits(_MEBIBYTE)),
    Key("log.segment.delete.delay.ms", _LONG, "60000", _AT_LEAST_0),
    Key("max.connection.creation.rate", _INT, str(MAX_INT), _AT_LEAST_0),
    Key("max.connections", _INT, str(MAX_INT), _AT_LEAST_0),
    Key("max.connections.per.ip", _INT, str(MAX_INT), _AT_LEAST_0),
    Key("max.connections.per.ip.overrides", _STRING, ""),
    Key("message.max.bytes", _INT, "1048588", _AT_LEAST_0),
    Key("min.insync.replicas", _INT, "1", _AT_LEAST_1),
    Key("num.io.threads", _INT, "8", _AT_LEAST_1),
    Key("num.network.threads", _INT, "3", _AT_LEAST_1),
    Key("num.recovery.threads.per.data.dir", _INT, "2", _AT_LEAST_1),
    Key("num.replica.fetchers", _INT, "1", _AT_LEAST_1),
    Key("producer.id.expiration.ms", _INT, _DAY_MS, _AT_LEAST_1),
    Key("transaction.partition.verification.enable", _BOOLEAN, "true"),
    Key("unclean.leader.election.enable", _BOOLEAN, "false"),
)
# fmt: on

TOPIC_KEYS = {key.name: key for key in _TOPIC_KEYS}
"""Keys of topics, in the order in which Kafka looks at their values."""
BROKER_KEYS = {key.name: key for key in _BROKER_KEYS}
"""Keys of brokers that can be changed while they run."""

PER_BROKER_FAMILIES = ("ssl.", "sasl.")
PER_BROKER_KEYS = frozenset({
    "cordoned.log.dirs", "listener.security.protocol.map", "listeners", "principal.builder.class",
})  # fmt: skip
"""Keys that every broker must be given by itself."""
PER_LISTENER_KEYS = frozenset(
    f"ssl.{name}"
    for name in (
        "keystore.location", "keystore.type", "keystore.key", "keystore.password", "keystore.certificate.chain",
        "key.password", "truststore.location", "truststore.type", "truststore.password", "truststore.certificates",
    )
)  # fmt: skip
"""Keys that are meant for one listener, and must name it."""

THREAD_COUNTS = frozenset({
    "background.threads", "num.io.threads", "num.network.threads", "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
})  # fmt: skip
"""Keys of brokers that can be changed to half of what they are and to double of it at the most."""

STATIC_BROKER_KEYS = frozenset(key.name for key in DOCUMENTED_BROKER_KEYS if key.is_read_only) | {
    "unclean.leader.election.interval.ms"  # one that brokers keep to themselves
}
"""Keys of a broker's settings file that cannot be changed while it runs: those that it tells are read-only."""
