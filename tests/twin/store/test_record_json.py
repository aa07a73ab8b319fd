"""Records as texts and back."""

from typing import get_args

import pytest

from kreassign.model import ConfigResource, TopicPartition
from kreassign.twin import metadata
from kreassign.twin.store import from_json, to_json

FOO = TopicPartition("foo", 3)
RECORDS = (
    metadata.BrokerRegistered(
        1, "höst", 9092, None, (metadata.LogDirInfo("/a", "A"), metadata.LogDirInfo("/b", "B")), 7
    ),
    metadata.BrokerRegistered(1, "host", 9092, "rack", (), 7),
    metadata.BrokerFenced(1),
    metadata.BrokerUnfenced(1),
    metadata.BrokerShuttingDown(1),
    metadata.BrokerUnregistered(1),
    metadata.LogDirFailed(1, "A"),
    metadata.TopicCreated("foo", "id"),
    metadata.TopicDeleted("foo"),
    metadata.PartitionCreated(FOO, (1, 2), (1,), 1, 0, 0, ("A", "B")),
    metadata.PartitionCreated(
        FOO, (1, 2), (), -1, 3, 9, ("A", "B"), (2,), (1,), metadata.LeaderRecovery.RECOVERING, (1,), (2,)
    ),
    metadata.PartitionChanged(FOO),
    metadata.PartitionChanged(FOO, (2,), (), (1,), (), -1, metadata.LeaderRecovery.RECOVERED, ("A",), (2,), ()),
    metadata.ConfigChanged(ConfigResource.topic("foo"), "key", "välue\n"),
    metadata.ConfigChanged(ConfigResource.broker(1), "key", None),
)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_every_record_survives(record):
    text = to_json(record)
    again = from_json(text.encode())
    assert again == record
    assert repr(again) == repr(record)  # the types inside, too
    assert "\n" not in text


def test_every_kind_of_record_is_tried():
    assert {type(record) for record in RECORDS} == set(get_args(metadata.Record))


def test_texts_are_short_and_can_be_read():
    assert to_json(metadata.PartitionChanged(FOO, isr=(1, 2), adding=())) == (
        '{"record":"PartitionChanged","topic_partition":["foo",3],"adding":[],"isr":[1,2]}'
    )


@pytest.mark.parametrize("text", [
    "", "{}", "[]", "5", "null", "[" * 100_000, '{"record":"Nope"}', '{"record":"BrokerFenced"}', '{"record":"X',
], ids=lambda text: text[:25])  # fmt: skip
def test_what_is_no_record_is_refused(text):
    with pytest.raises((ValueError, KeyError, TypeError)):
        from_json(text)
