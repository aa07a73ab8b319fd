"""Batches of records (format 2), as Produce and Fetch carry them: one record to write, any number to read."""

from __future__ import annotations

from kafka.errors import KafkaError
from kafka.record import MemoryRecords, MemoryRecordsBuilder

_FORMAT, _UNCOMPRESSED = 2, 0
_ROOM = 1_000
"""Bytes of a batch around its key and value, at most."""


def record_batch(at_ms: int, key: bytes, value: bytes | None) -> bytes:
    """A batch of one record; without a value it is a tombstone."""
    builder = MemoryRecordsBuilder(_FORMAT, _UNCOMPRESSED, len(key) + len(value or b"") + _ROOM)
    builder.append(at_ms, key, value)
    builder.close()
    return bytes(builder.buffer())


def records_in(data: bytes) -> tuple[list[tuple[bytes | None, bytes | None]], int | None]:
    """Key and value of each record, and the offset after the last batch; None without a whole batch.

    The last batch of an answer may be cut, and batches of transactions end in one without records. Raises ValueError
    for what is damaged, or compressed by what is not installed.
    """
    found: list[tuple[bytes | None, bytes | None]] = []
    following = None
    try:
        for batch in MemoryRecords(data):
            if not batch.validate_crc():
                raise ValueError("a batch of records is damaged: its CRC does not match")
            following = batch.next_offset
            if not batch.is_control_batch:
                found.extend((record.key, record.value) for record in batch)
    except (KafkaError, AssertionError) as error:
        raise ValueError(f"a batch of records cannot be read: {error!r}") from error
    return found, following
