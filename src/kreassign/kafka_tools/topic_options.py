"""The options of `kafka-topics` and their values; names, help texts and rules are those of Kafka 4.4.0."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Iterable
from enum import Enum
from string import ascii_letters, digits
from uuid import UUID

from kreassign.errors import InputError
from kreassign.kafka_tools.command_line import (
    Options,
    PlainError,
    ToolError,
    UsageError,
    java_int,
    java_split,
    read_options,
)
from kreassign.model.text import SetWithinSetError, name_pattern
from kreassign.model.topic_changes import short_id

HELP_TEXT = "This tool helps to create, delete, describe, or change a topic."
NO_WORDS_TEXT = "Create, delete, describe, or change a topic."
DELETE_CONFIG_IS_GONE = (
    "delete-config option is no longer supported and deprecated since version 4.0. The config will be fully removed in "
    "future releases."
)
ID_WINS = "Only topic id will be used when both --topic and --topic-id are specified and topicId is not Uuid.ZERO_UUID"


class Action(Enum):
    """An action of the tool; exactly one per command line."""

    LIST = "list"
    DESCRIBE = "describe"
    CREATE = "create"
    ALTER = "alter"
    DELETE = "delete"


_REPORTS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)

OPTIONS = read_options("kafka-topics")
_CONFIG_HELP = next(option.description for option in OPTIONS if option.name == "config")
CONFIG_NAMES = tuple(line.strip() for line in _CONFIG_HELP.splitlines() if line.startswith("\t"))
"""All settings of topics, which the help lists."""


def choose_action(options: Options) -> Action:
    """The action of a command line; raises the error of the first violated rule, in Kafka's order."""
    if not options.word_count:
        raise UsageError(NO_WORDS_TEXT)
    if options.has("help"):
        raise UsageError(HELP_TEXT)
    chosen = [action for action in Action if options.has(action.value)]
    if len(chosen) != 1:
        raise UsageError("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
    _check_required(chosen[0], options)
    _check_combinations(chosen[0], options)
    return chosen[0]


def _check_required(action: Action, options: Options) -> None:
    if not options.has("bootstrap-server"):
        raise PlainError("--bootstrap-server must be specified")
    if action is Action.DESCRIBE and options.has("if-exists") and not (options.has("topic") or options.has("topic-id")):
        raise UsageError("--topic or --topic-id is required to describe a topic")
    if action not in (Action.LIST, Action.DESCRIBE):
        _require(options, "topic")
    if action is Action.ALTER:
        if options.has("config"):
            together = 'Option combination "[[bootstrap-server], [config]]" can\'t be used with option "[alter]"'
            raise UsageError(f"{together} (To alter topic configurations, the kafka-configs tool can be used.)")
        if not changes_replicas(options):
            _require(options, "partitions")


def changes_replicas(options: Options) -> bool:
    """True if `--alter` changes replicas, which Kafka's tool cannot, instead of the number of partitions."""
    return not options.has("partitions") and any(map(options.has, _REPLICA_CHANGES))


def _require(options: Options, name: str) -> None:
    if not options.has(name):
        raise UsageError(f'Missing required argument "[{name}]"')


_REPLICA_CHANGES = ("replication-factor", "replica-assignment")
_REPLICA_CHANGE_FLAGS = ("dry-run", "force")
_ALLOWED_ACTIONS = {
    "config": (Action.ALTER, Action.CREATE),
    "partitions": (Action.ALTER, Action.CREATE),
    "replication-factor": (Action.CREATE,),
    "replica-assignment": (Action.ALTER, Action.CREATE),
}
_MODIFIERS = {
    "if-exists": (Action.ALTER, Action.DELETE, Action.DESCRIBE),
    "if-not-exists": (Action.CREATE,),
    "exclude-internal": (Action.LIST, Action.DESCRIBE),
}


def _check_combinations(action: Action, options: Options) -> None:
    is_replica_change = action is Action.ALTER and changes_replicas(options)
    for name, actions in _ALLOWED_ACTIONS.items():
        fits = action in actions or (is_replica_change and name in _REPLICA_CHANGES)
        _exclude(options, name, [] if fits else [action.value])
    for name in _REPLICA_CHANGE_FLAGS:
        _exclude(options, name, [] if is_replica_change else ["partitions", action.value])
    if action is Action.CREATE or is_replica_change:
        _exclude(options, "replica-assignment", ["partitions", "replication-factor"])
    outside = [] if action is Action.DESCRIBE else [action.value]
    for name in _REPORTS:
        _exclude(options, name, [*outside, "topics-with-overrides"])
    _exclude(options, "topics-with-overrides", [*outside, *_REPORTS])
    for name, actions in _MODIFIERS.items():
        _exclude(options, name, [action.value] if action not in actions else [])


def _exclude(options: Options, name: str, others: Iterable[str]) -> None:
    if options.has(name) and (other := next(filter(options.has, others), None)) is not None:
        raise UsageError(f'Option "[{name}]" can\'t be used with option "[{other}]"')


# Topic options of a command line: name, counts, assignment and configuration.

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_MOST_REPLICAS = 32_767
_LONGEST_ID, _ID_BYTES = 24, 16
_BASE64 = frozenset(f"{ascii_letters}{digits}-_".encode())


def chosen_topics(topics: Iterable[str], pattern: str | None, *, exclude_internal: bool) -> list[str]:
    """The topics whose whole name matches a pattern (None for all); commas separate alternatives."""
    wanted = [topic for topic in topics if not (exclude_internal and topic in INTERNAL)]
    if pattern is None:
        return wanted
    expression = pattern.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        found = name_pattern(expression)
    except SetWithinSetError as error:
        raise ToolError(str(error)) from error
    except InputError as error:
        raise ToolError(f"{expression} is an invalid regex.") from error
    return [topic for topic in wanted if found.fullmatch(topic)]


def topic_id(options: Options) -> str | None:
    """The value of `--topic-id` in Kafka's spelling; None without it, and for the zero id, which is that of no topic.

    Raises `ToolError` in the words of Kafka's `Uuid` and of Java's decoder.
    """
    text = options.text("topic-id")
    if text is None:
        return None
    if len(text) > _LONGEST_ID:
        raise ToolError(f"Input string with prefix `{text[:_LONGEST_ID]}` is too long to be decoded as a base64 UUID")
    content = text.encode("iso-8859-1", "replace")
    word = content.rstrip(b"=")
    if len(content) == 1:
        raise ToolError("Input byte[] should at least have 2 bytes for base64 bytes")
    if (odd := next((byte for byte in word if byte not in _BASE64), None)) is not None:
        raise ToolError(f"Illegal base64 character {odd - 256 if odd > 127 else odd:x}")  # Java's bytes have a sign
    if len(word) % 4 == 1:
        raise ToolError("Last unit does not have enough valid bits")
    if len(word) < len(content) and len(content) % 4:
        raise ToolError("Input byte array has wrong 4-byte ending unit")
    decoded = urlsafe_b64decode(word + b"=" * (-len(word) % 4))
    if len(decoded) != _ID_BYTES:
        raise ToolError(
            f"Input string `{text}` decoded as {len(decoded)} bytes, which is not equal to the expected {_ID_BYTES} "
            "bytes of a base64-encoded UUID"
        )
    return short_id(str(UUID(bytes=decoded))) if any(decoded) else None


def collides(name: str) -> bool:
    """True if a topic could share metric names with another one."""
    return "." in name or "_" in name


def count(options: Options, name: str) -> int | None:
    """The value of an option as a number of 32 bits; None without it."""
    return options.number(name, 0, bits=32) if options.has(name) else None


def check_counts(partitions: int | None, replication_factor: int | None) -> None:
    """Refuse counts that no topic can have."""
    if replication_factor is not None and not 1 <= replication_factor <= _MOST_REPLICAS:
        raise ToolError(f"The replication factor must be between 1 and {_MOST_REPLICAS} inclusive")
    if partitions is not None and partitions < 1:
        raise ToolError("The partitions must be greater than 0")


def replica_assignment(text: str | None) -> tuple[tuple[int, ...], ...]:
    """Parse brokers joined by colons per partition, partitions by commas; empty for None."""
    if not text:
        return ()
    lists: list[tuple[int, ...]] = []
    for index, part in enumerate(java_split(text, ",")):
        lists.append(_brokers(part))
        if len(lists[index]) != len(lists[0]):
            raise ToolError(f"Partition {index} has different replication factor: {list(lists[index])}")
    return tuple(lists)


def _brokers(text: str) -> tuple[int, ...]:
    brokers = tuple(java_int(word.strip()) for word in java_split(text, ":"))
    twice = sorted({broker for broker in brokers if brokers.count(broker) > 1})
    if twice:
        raise ToolError(f"Partition replica lists may not contain duplicate entries: {','.join(map(str, twice))}")
    return brokers


def configs(texts: Iterable[str]) -> dict[str, str]:
    """Parse `key=value` texts; every key must be a setting of topics."""
    found = {}
    for text in texts:
        pair = re.split(r"\s*=\s*", text)
        while pair and not pair[-1]:
            pair.pop()
        if len(pair) != 2:
            raise ToolError(
                'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".'
            )
        found[pair[0].strip()] = pair[1].strip()
    for name in found:
        if name not in CONFIG_NAMES:
            raise ToolError(f"Unknown topic config name: {name}")
    return found
