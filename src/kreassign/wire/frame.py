"""Frames: every message on a Kafka connection is preceded by its length, a big-endian signed 32-bit number."""

from __future__ import annotations

import struct

from kreassign.errors import ProtocolViolation

PREFIX_BYTES = 4
MAX_FRAME_BYTES = 256 * 1024 * 1024
"""Larger answers are taken for garbage. Metadata of a million replicas is about 60 MB; a TLS alert, which a TLS
listener sends to a client that does not speak TLS, reads as a length of 336 MB."""


def frame_length(prefix: bytes) -> int:
    """Bytes that follow this prefix; `ProtocolViolation` where no Kafka broker would announce so many."""
    length: int = struct.unpack(">i", prefix)[0]
    if not 0 <= length <= MAX_FRAME_BYTES:
        raise ProtocolViolation(
            f"the answer announces a length of {length} bytes, which is no Kafka message; "
            "is this a Kafka listener, and does it expect TLS?"
        )
    return length


def framed(payload: bytes) -> bytes:
    """A payload with its length before it."""
    return struct.pack(">i", len(payload)) + payload
