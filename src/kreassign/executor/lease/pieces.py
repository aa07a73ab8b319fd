"""A text of any length as pieces that fit beside committed offsets. Pure.

A broker keeps up to `offset.metadata.max.bytes` (4,096) characters with each offset that a group commits, so a text is
compressed and cut into pieces, one per partition of `__consumer_offsets`, each with its number, the count, and the
whole's CRC.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping

PIECE_CHARACTERS = 4_000
"""The most that goes beside one offset, with room for the head of the piece."""

MOST_BYTES = 1 << 26
"""A record of every throttle of a million replicas is smaller; whoever may commit offsets can commit anything."""

_MARK = "kreassign-1"
_WORDS = 5
"""Mark, number, count, CRC, text."""

NOTHING = ""
"""What a partition holds that has no piece."""


def cut(text: str) -> tuple[str, ...]:
    """A text as pieces of at most `PIECE_CHARACTERS`, and a head each."""
    data = zlib.compress(text.encode(), 9)
    packed = base64.b64encode(data).decode()
    parts = [packed[at : at + PIECE_CHARACTERS] for at in range(0, len(packed), PIECE_CHARACTERS)]
    return tuple(f"{_MARK} {number} {len(parts)} {zlib.crc32(data):08x} {one}" for number, one in enumerate(parts))


def whole(found: Mapping[int, str]) -> str | None:
    """The text of these pieces by partition; None if there is none. Raises ValueError if it is not whole."""
    if not found.get(0):
        return None
    head = found[0].split(" ")
    if head[0] != _MARK or len(head) != _WORDS:
        raise ValueError("it is not in the form that this version of kreassign writes")
    count, crc = int(head[2]), head[3]
    packed = []
    for number in range(count):
        *words, text = found.get(number, NOTHING).split(" ")
        if words != [_MARK, str(number), str(count), crc]:
            raise ValueError(f"piece {number + 1} of {count} is missing")
        packed.append(text)
    return _unpacked(base64.b64decode("".join(packed), validate=True), crc)


def _unpacked(data: bytes, crc: str) -> str:
    if f"{zlib.crc32(data):08x}" != crc:
        raise ValueError("its checksum is another one")
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if unpacking.unconsumed_tail:
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    if not unpacking.eof:
        raise ValueError("it is cut off")
    return content.decode()
