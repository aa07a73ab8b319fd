"""Keep the throttle configs of a run: those that it needs, their original values, and how to restore them.

The rates are set once, the lists follow the moves: a replica is listed from just before its move starts until it has
caught up, so that an ordinary replica that falls out of sync later is not slowed (future work of KIP-455).

Every change is recorded first as a `ConfigOverride` (the original value and ours), which stays pending until exactly
the original is restored. A value that is neither of both was set by someone else meanwhile; it is kept and reported.

Lists are never written as a whole: our entries are appended, and later subtracted (KIP-339), so that an entry that
someone else adds at any time survives. A list is deleted only where there was none and nothing but ours is in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from kreassign.model import ConfigChange, ConfigResource, Reassignment, ResourceType, TopicPartition, throttle

EVERY_REPLICA = "*"

Flows = Mapping[TopicPartition, throttle.ThrottledMove]
Changes = dict[ConfigResource, list[ConfigChange]]


def items(value: str | None) -> frozenset[str]:
    """Entries of a list of throttled replicas, `partition:broker` or `*`; Kafka allows blanks and empty entries."""
    return frozenset(item.strip() for item in (value or "").split(",")) - {""}


class ConfigKey(NamedTuple):
    """One setting of one topic or broker."""

    resource: ConfigResource
    name: str

    @property
    def broker(self) -> int | None:
        """Broker of the setting; None if it is a topic's."""
        return int(self.resource.name) if self.resource.type is ResourceType.BROKER else None

    def __str__(self) -> str:
        return f"{self.name} of {self.resource}"


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """Value of a setting; None if this topic or broker has none of its own (defaults do not count)."""

    key: ConfigKey
    value: str | None

    def __str__(self) -> str:
        return f"{self.key} is {_shown(self.value)}"

    @property
    def then(self) -> str:
        """Past-tense form of `str(self)`."""
        return f"{self.key} was {_shown(self.value)}"


@dataclass(frozen=True, slots=True)
class ConfigOverride:
    """A change that must be undone: the value before it and our value. None stands for no value.

    `unconfirmed` are values of ours that may still be set, because the last write is not confirmed.
    """

    key: ConfigKey
    before: str | None
    value: str | None
    unconfirmed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.key} is still {_shown(self.value)}; before the run it was {_shown(self.before)}"

    @property
    def then(self) -> str:
        """Past-tense form of `str(self)`."""
        return f"{self.key} was still {_shown(self.value)}; before the run it was {_shown(self.before)}"

    @property
    def is_open(self) -> bool:
        """True if another value than the original is or may be set."""
        return self.value != self.before or bool(self.unconfirmed)

    @property
    def possible_values(self) -> tuple[str, ...]:
        """Every value of ours that may be set."""
        return (
            self.unconfirmed
            if self.value is None or self.value in self.unconfirmed
            else (*self.unconfirmed, self.value)
        )

    @property
    def is_list(self) -> bool:
        """True for a list of throttled replicas, in which only our entries are ours."""
        return self.key.name in throttle.TOPIC_THROTTLES

    @property
    def our_items(self) -> frozenset[str]:
        """Entries of ours that may be in the list."""
        return frozenset().union(*map(items, self.possible_values)) - items(self.before)

    def is_in_force(self, value: str | None) -> bool:
        """True if a setting with this value has our effect; for a list, if all our entries are in it, or `*`.

        Others may replace an adopted `*` by entries: ours are added to these. If it is unknown whether our last value
        was written, this may be an earlier one of ours, too.
        """
        ours = (self.value, *self.unconfirmed)
        if not self.is_list:
            return value in ours
        present = items(value)
        return EVERY_REPLICA in present or any(
            items(one) - items(self.before) - {EVERY_REPLICA} <= present for one in ours
        )

    def is_ours(self, value: str | None) -> bool:
        """True if this value is, at least in part, one of ours to restore."""
        if not self.is_list:
            return value in self.possible_values
        return EVERY_REPLICA not in items(value) - items(self.before) - self.our_items

    def wrote(self, value: str | None) -> bool:
        """True if this value is the run's own: a rate that it set, or a list of entries of which it added some.

        A rate that was there before is not, though the run has set the same.
        """
        if not self.is_list:
            return value is not None and value in self.possible_values and value != self.before
        return bool(items(value) & self.our_items) and items(value) <= self.our_items | items(self.before)

    def is_restored(self, value: str | None) -> bool:
        """True if nothing of ours is in this value, and a list that did not exist before is deleted."""
        return self.is_without_ours(value) and not (self.is_list and value == "" and self.before is None)

    def is_without_ours(self, value: str | None) -> bool:
        """True if nothing of ours is in this value. List entries of others do not count."""
        if not self.is_list:
            return value == self.before
        is_covered = EVERY_REPLICA in items(value) - items(self.before)
        return not (is_covered or self.our_items & items(value))

    def confirmed(self) -> ConfigOverride:
        """Return a copy for a confirmed write of our value."""
        return replace(self, unconfirmed=())


def flows(reassignments: Mapping[TopicPartition, Reassignment]) -> Flows:
    """Brokers between which the data of these moves flows; only moves that copy something.

    Other moves of the cluster are left out: their replicas stay listed, see `overrides`.
    """
    plan = {partition: move.target for partition, move in reassignments.items() if move.adding}
    return throttle.move_map({}, plan, {partition: reassignments[partition].original for partition in plan})


def keys_to_change(moves: Flows, live_brokers: Iterable[int]) -> tuple[ConfigKey, ...]:
    """Settings that a throttle of these flows changes, sorted.

    Topics get lists of the copying replicas only. A rate goes to each live broker that sends, and to each that
    receives; one that is down copies nothing and would only make the change hang.
    """
    live = set(live_brokers)
    senders = live & {broker for move in moves.values() for broker in move.sources}
    receivers = live & {broker for move in moves.values() for broker in move.destinations}
    topics = {ConfigResource.topic(partition.topic) for partition in moves}
    return tuple(
        sorted(
            {ConfigKey(topic, name) for topic in topics for name in throttle.TOPIC_THROTTLES}
            | {ConfigKey(ConfigResource.broker(broker), throttle.LEADER_THROTTLED_RATE) for broker in senders}
            | {ConfigKey(ConfigResource.broker(broker), throttle.FOLLOWER_THROTTLED_RATE) for broker in receivers}
        )
    )


def log_dir_keys(brokers: Iterable[int], live_brokers: Iterable[int]) -> tuple[ConfigKey, ...]:
    """Rates of copies between directories of one broker, for the live ones of these brokers, sorted."""
    return tuple(
        ConfigKey(ConfigResource.broker(broker), throttle.LOG_DIR_RATE)
        for broker in sorted({*brokers} & {*live_brokers})
    )


def throttle_keys(topics: Iterable[str], brokers: Iterable[int]) -> tuple[ConfigKey, ...]:
    """All throttle settings that these topics and brokers can have."""
    return (
        *(ConfigKey(ConfigResource.topic(topic), name) for topic in topics for name in throttle.TOPIC_THROTTLES),
        *(ConfigKey(ConfigResource.broker(broker), name) for broker in brokers for name in throttle.BROKER_THROTTLES),
    )


def wanted_rates(before: Mapping[ConfigKey, str | None], rates: throttle.ThrottleRates) -> dict[ConfigKey, str | None]:
    """Wanted values of the rates among these settings; the value before the run if there is no limit."""
    wanted = {key: rates.of(key.broker) for key in before if key.name not in throttle.TOPIC_THROTTLES}
    return {key: before[key] if rate is None else str(rate) for key, rate in wanted.items()}


def wanted_lists(moves: Flows, before: Mapping[ConfigKey, str | None]) -> dict[ConfigKey, str | None]:
    """Wanted values of the lists among these settings while these flows are in progress.

    Replicas that were listed before stay listed, also by `*`: our entries are wanted beside it, should it be removed.
    """
    pairs = _lists_by_key(moves)
    lists = {key: value for key, value in before.items() if key.name in throttle.TOPIC_THROTTLES}
    return {key: _with_listed(value, pairs[key]) if pairs.get(key) else value for key, value in lists.items()}


def differing(overrides: Iterable[ConfigOverride], now: Iterable[ConfigValue]) -> tuple[ConfigValue, ...]:
    """Present values that do not have the effect of these overrides."""
    known = {override.key: override for override in overrides}
    return tuple(present for present in now if not known[present.key].is_in_force(present.value))


def changes_to_ours(overrides: Iterable[ConfigOverride]) -> Changes:
    """Calls that put the throttle in force: rates are set, entries appended to lists.

    An adopted `*` is never written: it is there, or others have removed it since.
    """
    return _grouped((override.key, _to_ours(override)) for override in overrides)


def entries_to_drop(overrides: Iterable[ConfigOverride]) -> Changes:
    """Calls that remove list entries that we added and no longer need.

    Kafka takes one change of a key at once, so these are sent after those of `changes_to_ours`.
    """
    drops = ((override.key, override.our_items - items(override.value)) for override in overrides if override.is_list)
    return _grouped((key, _subtract(key, entries)) for key, entries in drops if entries)


def changes_to_before(overrides: Iterable[ConfigOverride], shared: Collection[ConfigKey] = ()) -> Changes:
    """Calls that restore the old values, or none; `shared` lists have entries of others."""
    return _grouped((override.key, _to_before(override, override.key in shared)) for override in overrides)


def command_to_restore(override: ConfigOverride, present: str | None) -> tuple[str, ...]:
    """Words of Kafka's own tool that restore this setting by hand, without the address."""
    rest = override.before
    if override.is_list:
        # Kafka's tool cannot subtract; a wildcard that was not there before the run is not kept either.
        kept = (items(present) - override.our_items - {EVERY_REPLICA}) | items(override.before)
        rest = ",".join(sorted(kept)) or override.before
    return command_to_set(ConfigValue(override.key, rest))


def command_to_set(wanted: ConfigValue) -> tuple[str, ...]:
    """Words of Kafka's own tool that give a setting this value, or none of its own, without the address."""
    name, resource = wanted.key.name, wanted.key.resource
    kind = "topics" if resource.type is ResourceType.TOPIC else "brokers"
    # The tool takes a value with commas in brackets.
    change = ("--delete-config", name) if wanted.value is None else ("--add-config", f"{name}=[{wanted.value}]")
    return ("kafka-configs", "--alter", "--entity-type", kind, "--entity-name", resource.name, *change)


def _to_ours(override: ConfigOverride) -> ConfigChange | None:
    if not override.is_list:
        return _assign(override.key, override.value)
    entries = items(override.value) - items(override.before) - {EVERY_REPLICA}
    return ConfigChange.append(override.key.name, ",".join(sorted(entries))) if entries else None


def _to_before(override: ConfigOverride, is_shared: bool) -> ConfigChange:
    if override.is_list and (is_shared or override.before is not None):
        return _subtract(override.key, override.our_items)
    return _assign(override.key, override.before)


def _assign(key: ConfigKey, value: str | None) -> ConfigChange:
    return ConfigChange.delete(key.name) if value is None else ConfigChange.set(key.name, value)


def _subtract(key: ConfigKey, entries: Iterable[str]) -> ConfigChange:
    return ConfigChange.subtract(key.name, ",".join(sorted(entries)))


def _grouped(changes: Iterable[tuple[ConfigKey, ConfigChange | None]]) -> Changes:
    grouped: Changes = {}
    for key, change in changes:
        if change is not None:
            grouped.setdefault(key.resource, []).append(change)
    return grouped


def _lists_by_key(moves: Flows) -> dict[ConfigKey, str]:
    sides = (
        (throttle.LEADER_THROTTLED_REPLICAS, throttle.leader_lists(moves)),
        (throttle.FOLLOWER_THROTTLED_REPLICAS, throttle.follower_lists(moves)),
    )
    return {
        ConfigKey(ConfigResource.topic(topic), name): pairs for name, side in sides for topic, pairs in side.items()
    }


def _with_listed(present: str | None, pairs: str) -> str:
    """The present list with our pairs added; unchanged if they are all in it already."""
    if present is None:
        return pairs
    already, wanted = items(present), items(pairs)
    return present if wanted <= already else ",".join(sorted(already | wanted))


def _shown(value: str | None) -> str:
    return "not set" if value is None else repr(value)


# Throttles that are set when a run begins, or that were left.


@dataclass(frozen=True, slots=True)
class ThrottleUses:
    """Uses of throttle settings: `owned` by unfinished runs, by id; topics `reassigned`; brokers `copying`.

    The last ones copy between their own log directories.
    """

    owned: Mapping[ConfigKey, str]
    reassigned: frozenset[str]
    copying: frozenset[int] = frozenset()

    def use_of(self, key: ConfigKey) -> str | None:
        """User of this setting, as a sentence; None if it was left behind."""
        if (run_id := self.owned.get(key)) is not None:
            return f"it is of run {run_id}, which `kreassign resume {run_id}` or `kreassign rollback {run_id}` ends"
        if key.broker is None:
            return "the topic is being reassigned" if key.resource.name in self.reassigned else None
        if key.name == throttle.LOG_DIR_RATE and key.broker in self.copying:
            return "the broker copies between its log directories"
        return "partitions are being reassigned" if self.reassigned else None


class FoundThrottles(StrEnum):
    """Treatment of throttles that are set when a run begins and that no run of this state directory has to restore."""

    REFUSE = "refuse"  # start nothing: they may belong to others whose moves go on
    REMOVE = "remove"  # they were left behind: they are removed when the run has ended
    RESTORE = "restore"  # they are intended: they have their values again when the run has ended
    ALONGSIDE = "alongside"  # they belong to moves of others, which go on under the rates of this run
