"""Java's hash of a text, by which Kafka spreads groups over partitions and copies over threads.

Kafka's rules name `String.hashCode` (the Java Language Specification says how it is computed: over UTF-16 units, in 32
bits with a sign) and `Utils.abs`, which unlike `Math.abs` has an answer for the least integer.
"""

from __future__ import annotations

_UTF_16 = "utf-16-be"
_FACTOR = 31
_WORD = 1 << 32
_SIGN = 1 << 31


def string_hash(text: str) -> int:
    """`String.hashCode`, from -2**31 to 2**31 - 1."""
    data = text.encode(_UTF_16, "surrogatepass")
    value = 0
    for high, low in zip(data[::2], data[1::2], strict=True):
        value = (_FACTOR * value + (high << 8 | low)) % _WORD
    return _signed(value)


def combined_hash(text: str, number: int) -> int:
    """`31 * text.hashCode() + number` as Java computes it, with overflow."""
    return _signed(_FACTOR * string_hash(text) + number)


def share_of(hash_code: int, count: int) -> int:
    """Which of `count` a hash belongs to: Kafka's `Utils.abs(hash) % count`, where the least integer counts as 0."""
    return (0 if hash_code == -_SIGN else abs(hash_code)) % count


def _signed(value: int) -> int:
    return (value % _WORD ^ _SIGN) - _SIGN
