"""The JSON file that names partitions for a leader election, text → model, with the words of Kafka's own tools."""

from __future__ import annotations

from collections import Counter

from kreassign.errors import MalformedPlan
from kreassign.model.kafka_json import array, decode, field, integer, json_object, string
from kreassign.model.partition import TopicPartition


def parse_election(text: str, *, integer_name: str = "Integer", missing: str, empty: str) -> tuple[TopicPartition, ...]:
    """The partitions of an election file in their order; none of them twice, or it is `MalformedPlan`.

    `missing` is what is said of a file without partitions, `empty` what is said of one that is no JSON;
    `integer_name` is how a number is called where something else stands.
    """
    if not text:
        raise MalformedPlan(empty)
    try:
        document = decode(text)
    except MalformedPlan as error:
        raise MalformedPlan(empty) from error
    fields = json_object(document)
    if "partitions" not in fields:
        raise MalformedPlan(missing)
    entries = [json_object(entry) for entry in array(fields["partitions"])]
    return tuple(
        TopicPartition(string(field(entry, "topic")), integer(field(entry, "partition"), integer_name))
        for entry in entries
    )


def duplicates(partitions: tuple[TopicPartition, ...]) -> tuple[TopicPartition, ...]:
    """Those that are named more than once, sorted."""
    return tuple(sorted(key for key, count in Counter(partitions).items() if count > 1))
