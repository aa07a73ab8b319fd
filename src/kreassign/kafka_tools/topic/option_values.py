"""What a command line asks of a topic: its name, counts, assignment and configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kreassign.kafka_tools.failures import ToolError
from kreassign.kafka_tools.options import Options
from kreassign.kafka_tools.topic.options import CONFIG_NAMES
from kreassign.model.whole_number import signed_number

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_MOST_REPLICAS = 32_767


def chosen_topics(topics: Iterable[str], pattern: str | None, *, exclude_internal: bool) -> list[str]:
    """The topics whose whole name a pattern matches (None for all); in a pattern commas stand for alternatives."""
    wanted = [topic for topic in topics if not (exclude_internal and topic in INTERNAL)]
    if pattern is None:
        return wanted
    expression = pattern.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        found = re.compile(expression)
    except re.error as error:
        raise ToolError(f"{expression} is an invalid regex.") from error
    return [topic for topic in wanted if found.fullmatch(topic)]


def collides(name: str) -> bool:
    """Whether a topic could share the names of its metrics with another one."""
    return "." in name or "_" in name


def count(options: Options, name: str) -> int | None:
    """The value of an option as a number of 32 bits, None without it."""
    return options.number(name, 0, bits=32) if options.has(name) else None


def check_counts(partitions: int | None, replication_factor: int | None) -> None:
    """Refuse counts that no topic can be created with."""
    if replication_factor is not None and not 1 <= replication_factor <= _MOST_REPLICAS:
        raise ToolError(f"The replication factor must be between 1 and {_MOST_REPLICAS} inclusive")
    if partitions is not None and partitions < 1:
        raise ToolError("The partitions must be greater than 0")


def replica_assignment(text: str | None) -> tuple[tuple[int, ...], ...]:
    """Brokers joined by colons for each partition, partitions by commas; nothing for no text."""
    if not text:
        return ()
    lists = tuple(_brokers(part) for part in text.split(","))
    for index, brokers in enumerate(lists):
        if len(brokers) != len(lists[0]):
            raise ToolError(f"Partition {index} has different replication factor: {list(brokers)}")
    return lists


def _brokers(text: str) -> tuple[int, ...]:
    brokers = tuple(_broker(word.strip()) for word in text.split(":"))
    twice = sorted({broker for broker in brokers if brokers.count(broker) > 1})
    if twice:
        raise ToolError(f"Partition replica lists may not contain duplicate entries: {','.join(map(str, twice))}")
    return brokers


def _broker(word: str) -> int:
    number = signed_number(word)
    if number is None or not -(2**31) <= number < 2**31:
        raise ToolError(f'For input string: "{word}"')
    return number


def configs(texts: Iterable[str]) -> dict[str, str]:
    """Keys and values of `key=value` texts; every key must be one that topics have."""
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
