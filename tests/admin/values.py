"""Arbitrary model values, and their way over the wire and back, for the tests of translation."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import strategies as st

from kreassign import model
from kreassign.admin.call import Call
from kreassign.wire.api import Api, Message
from kreassign.wire.codec import PREFIX_BYTES, decode_response, encode_request
from tests.wire.peer import Asked, read_request, write_response

Answer = TypeVar("Answer")
TIMEOUT_MS = 12_345

NAMES = st.text("abc.XYZ-_09", min_size=1, max_size=8)
NUMBERS = st.integers(0, 2**31 - 1)
LONGS = st.integers(0, 2**63 - 1)
PARTITIONS = st.builds(model.TopicPartition, NAMES, NUMBERS)
LOG_DIRS = st.builds(
    model.LogDir,
    path=st.text(max_size=12),
    error=st.none(),
    total_bytes=st.none() | LONGS,
    usable_bytes=st.none() | LONGS,
    is_cordoned=st.booleans(),
    replicas=st.lists(
        st.builds(model.LogDirReplica, PARTITIONS, LONGS, LONGS, st.booleans()),
        max_size=4,
        unique_by=lambda copy: copy.topic_partition,
    ).map(lambda copies: tuple(sorted(copies, key=lambda copy: copy.topic_partition))),
)


def versions(asked: Api) -> st.SearchStrategy[int]:
    """Any version of an API that we speak."""
    return st.integers(asked.min_version, asked.max_version)


def as_seen_by_broker(call: Call[Answer], version: int) -> Message:
    """Read a call as a broker does in this version."""
    frame = encode_request(version, call.build(version, TIMEOUT_MS), 7, "us")
    seen = read_request(frame[PREFIX_BYTES:])
    assert (seen.api, seen.version) == (call.api, version)
    return seen.message


def as_read_by_us(call: Call[Answer], version: int, response: Message) -> Answer:
    """Read a broker's response as a call does in this version."""
    frame = write_response(Asked(call.api, version, 7, "us", None), response)
    return call.read(decode_response(call.api, version, frame[PREFIX_BYTES:], 7))
