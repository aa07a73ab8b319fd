"""Text from outside: made printable, read as whole numbers or amounts of bytes, and hashed as Java does."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TextIO

from kreassign.errors import InputError

# Text from elsewhere, fit to be shown: brokers, files and arguments may hold what makes a terminal or a page lie.
#
# An escape sequence rewrites lines that were printed before; a direction override shows a name backwards; half a
# surrogate pair cannot be encoded at all. Each such character is shown by its number, as JSON spells it, so that JSON
# stays JSON. Values that are compared, stored or sent back stay as they are: only what is shown goes through here.

# C0 but for line end and tab, DEL, C1; marks and overrides of direction; ends of lines that are none on a terminal;
# half surrogate pairs.
_SHOWN = 40
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""The text with such characters as `\\u001b`; any other text as it is."""
    return _UNFIT.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def shortened(text: str) -> str:
    """The text, or how it begins where it is too long for a message."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class PrintableStream:
    """An output stream on which only printable text appears, whoever writes.

    It has no `buffer`, so that nobody gets around it. `inner` is the stream below, for those who draw on a terminal and
    see to their texts themselves.
    """

    def __init__(self, inner: TextIO) -> None:
        self.inner = inner
        self.encoding = inner.encoding
        self.errors = inner.errors

    def write(self, text: str) -> int:
        """Write the text, printable; the number of characters that were given."""
        self.inner.write(printable(text))
        return len(text)

    def flush(self) -> None:
        """Hand over what was written."""
        self.inner.flush()

    def isatty(self) -> bool:
        """Whether a person may be looking."""
        return self.inner.isatty()

    def fileno(self) -> int:
        """The descriptor of the stream below."""
        return self.inner.fileno()


# Whole numbers as texts from outside spell them: plain digits, and no more than Kafka's numbers have.
#
# `int` is no reader of such texts. It takes digits of every script, blanks and underscores; `str.isdigit` accepts `²`,
# which `int` refuses; and for more than 4,300 digits `int` raises an error of another kind. Pure.

LARGEST_ID = 2**31 - 1
"""Kafka's ids and counts are signed numbers of 32 bits."""

LARGEST_PORT = 2**16 - 1

MOST_REPLICAS = 2**15 - 1
"""A replication factor is one of 16 bits."""

_SPELT = re.compile(r"([+-]?)0*(\d+)", re.ASCII)
_MOST_DIGITS = 19
"""Numbers of 64 bits have no more."""


def parse_whole(text: str, *, least: int = 0, most: int = LARGEST_ID) -> int:
    """The number that a text spells. ValueError, which names the text, where it is none or out of these bounds."""
    found = signed_number(text) if text[:1] != "+" else None
    if found is None or not least <= found <= most:
        raise ValueError(f"{shortened(text)!r} is not a whole number from {least} to {most}")
    return found


def signed_number(text: str) -> int | None:
    """The number that a text of digits, perhaps with a sign, spells; None for what is none of 64 bits or so."""
    match = _SPELT.fullmatch(text)
    return None if match is None or len(match[2]) > _MOST_DIGITS else int(match[1] + match[2])


# Amounts of bytes, and of bytes per second, as people write them.

# Decimal units, as Kafka's own throttles are spoken of; the binary ones are read too.
_FACTORS: dict[str, int] = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgtpe", start=1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgtpe", start=1)},
}
LARGEST_AMOUNT = 2**63 - 1
"""What Kafka can hold: its sizes, offsets and rates are signed numbers of 64 bits."""

_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*?)\s*(/s)?\s*", re.IGNORECASE)


# Decimal units, as `format_amount` writes them.
_UNITS = ("", "k", "M", "G", "T", "P", "E")


def format_amount(amount: float, unit: str) -> str:
    """An amount with three digits: `1.23 GB`, `45.6 MB/s`, `789 B`; with six in other units; percent of the mean."""
    if unit == OF_MEAN:
        return f"{amount:.0%} {unit}"
    if unit not in {"B", "B/s"}:
        return f"{amount:.6g} {unit}".rstrip()
    for prefix in _UNITS[:-1]:
        if abs(amount) < 999.5:
            return f"{amount:.0f} {unit}" if not prefix else f"{amount:.3g} {prefix}{unit}"
        amount /= 1000
    return f"{amount:.3g} {_UNITS[-1]}{unit}"


ESTIMATED = "estimated"
"""The unit of what is known only in proportion: such a load says something beside the mean alone."""
OF_MEAN = "of the mean"
"""The unit of a load that was divided by the mean."""


def told_load(amount: float, unit: str, mean: float) -> tuple[float, str]:
    """A load and its unit as one can say it: what is only estimated as a part of the mean, where that is known."""
    return (amount / mean, OF_MEAN) if unit == ESTIMATED and mean else (amount, unit)


def format_load(amount: float, unit: str, mean: float = 0.0) -> str:
    """A load with its unit: `1.23 GB`, `45.6 MB/s`, `0.7 of a CPU`, and of estimates `108% of the mean`."""
    return format_amount(*told_load(amount, unit, mean))


def parse_amount(text: str) -> int:
    """Bytes, or bytes per second: `20MB/s`, `512KiB`, `1.5 GB` or a plain count. Raises InputError."""
    match = _AMOUNT.fullmatch(text)
    factor = _FACTORS.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise InputError(f"{shortened(text)!r} is not an amount; write for example 20MB/s, 512KiB or 1000000")
    amount = Decimal(match[1]) * factor  # a float would make 8199999 of 8.2 MB, and refuse the largest amount
    if amount > LARGEST_AMOUNT:
        raise InputError(f"{shortened(text)!r} is too large; the largest amount is {LARGEST_AMOUNT} (2^63 - 1)")
    return int(amount)


# Java's hash of a text, by which Kafka spreads groups over partitions and copies over threads.
#
# Kafka's rules name `String.hashCode` (the Java Language Specification says how it is computed: over UTF-16 units, in
# 32 bits with a sign) and `Utils.abs`, which unlike `Math.abs` has an answer for the least integer.

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
