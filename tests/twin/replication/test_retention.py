"""Bytes of a log on brokers, and in all."""

from __future__ import annotations

import pytest

from kreassign.model import ConfigResource
from kreassign.twin.metadata import ConfigChanged
from kreassign.twin.replication.partition_logs import Tiering, kept_bytes, tiering_of
from tests.twin.boxes import MB, TOPIC, Box, Given, tp

ON = {"remote.storage.enable": "true"}


@pytest.mark.parametrize(("settings", "kept", "tiering"), [
    ({}, None, None),
    ({"retention.bytes": "-1"}, None, None),
    ({"retention.bytes": "9"}, 9, None),
    ({"retention.bytes": "9", "local.retention.bytes": "3"}, 9, None),
    ({**ON}, None, Tiering(None, 1 << 30)),
    ({**ON, "retention.bytes": "9"}, 9, Tiering(9, 1 << 30)),
    ({**ON, "retention.bytes": "9", "local.retention.bytes": "-2"}, 9, Tiering(9, 1 << 30)),
    ({**ON, "retention.bytes": "9", "local.retention.bytes": "3", "segment.bytes": "2"}, 3, Tiering(9, 2)),
    ({**ON, "local.retention.bytes": "3", "segment.bytes": "2"}, 3, Tiering(None, 2)),
    ({**ON, "local.retention.bytes": "-1"}, None, Tiering(None, 1 << 30)),
    ({**ON, "local.retention.bytes": "3", "segment.bytes": "5"}, 5, Tiering(None, 5)),
    ({**ON, "retention.bytes": "4", "local.retention.bytes": "3", "segment.bytes": "5"}, 4, Tiering(4, 5)),
    ({"remote.storage.enable": "false", "local.retention.bytes": "3"}, None, None),
])  # fmt: skip
def test_local_retention_counts_for_tiered_topics_only(
    settings: dict[str, str], kept: int | None, tiering: Tiering | None
) -> None:
    assert (kept_bytes(settings), tiering_of(settings)) == (kept, tiering)


def configured(box: Box, **settings: str) -> None:
    """Topic t with these settings, an underscore standing for a dot."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    box.say(*(ConfigChanged(ConfigResource.topic(TOPIC), name, value) for name, value in named.items()))


def offsets(box: Box) -> tuple[int | None, ...]:
    """Start of the log in all and on broker 0, end of remote storage, and end of the log."""
    readings = box.replication.readings
    return (
        readings.log_start_offset(tp(0), 0),
        readings.local_log_start_offset(tp(0), 0),
        readings.pending_upload_offset(tp(0)),
        readings.log_end_offset(tp(0), 0),
    )


def test_a_log_that_becomes_tiered_loses_nothing() -> None:
    box = Box(Given((0, 1), size=50))
    configured(box, remote_storage_enable="true", local_retention_bytes=str(10 * MB), segment_bytes=str(9 * MB))
    assert offsets(box) == (0, 40_000, 45_000, 50_000)
    assert box.replication.readings.size_bytes(tp(0), 1) == 10 * MB


def test_full_segments_are_in_remote_storage_before_they_are_deleted() -> None:
    box = Box(Given((0, 1), size=50))
    configured(box, remote_storage_enable="true", segment_bytes=str(20 * MB))
    assert offsets(box) == (0, 0, 40_000, 50_000)


def test_a_growing_tiered_log_keeps_to_its_retentions() -> None:
    box = Box(Given((0,), size=50, rate=1))
    configured(
        box, remote_storage_enable="true", local_retention_bytes=str(10 * MB), retention_bytes=str(60 * MB),
        segment_bytes=str(10 * MB),
    )  # fmt: skip
    box.replication.advance(25_000)
    assert offsets(box) == (15_000, 65_000, 70_000, 75_000)
    assert box.replication.readings.size_bytes(tp(0), 0) == 10 * MB


def test_what_is_no_longer_tiered_begins_where_its_brokers_have_it() -> None:
    box = Box(Given((0,), size=50))
    configured(box, remote_storage_enable="true", local_retention_bytes=str(10 * MB), segment_bytes=str(9 * MB))
    configured(box, remote_storage_enable="false")
    assert offsets(box) == (40_000, 40_000, None, 50_000)
