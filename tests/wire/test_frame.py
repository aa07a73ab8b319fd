import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.errors import ProtocolViolation
from kreassign.wire.codec import MAX_FRAME_BYTES, PREFIX_BYTES, frame_length


@given(st.integers(0, MAX_FRAME_BYTES))
def test_a_length_is_read_as_it_was_written(length: int) -> None:
    assert frame_length(length.to_bytes(PREFIX_BYTES, "big")) == length


@pytest.mark.parametrize("length", [-1, MAX_FRAME_BYTES + 1, 2**31 - 1, -(2**31)])
def test_a_length_that_no_broker_would_announce_is_a_violation(length: int) -> None:
    with pytest.raises(ProtocolViolation, match=f"length of {length} bytes"):
        frame_length(struct.pack(">i", length))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP", "sends no Kafka message: it looks like HTTP"),
        (b"\x15\x03\x03\x00", "it looks like TLS: set security.protocol to SSL or SASL_SSL"),
        (b"\x16\x03\x03\x00", "it looks like TLS"),
        (b"SSH-", "it looks like SSH"),
        (b"<htm", "it looks like HTML"),
        (b"220 ", "it begins with '220 ', so a server that answers in text listens there"),
        (b"\xff\x00\x01\x02", "is this a Kafka listener, and does it expect TLS"),
    ],
)
def test_another_protocol_is_recognised_by_its_first_bytes(answer: bytes, words: str) -> None:
    with pytest.raises(ProtocolViolation, match=words):
        frame_length(answer)
