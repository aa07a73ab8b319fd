"""Amounts of bytes, and of bytes per second, as people write them."""

from __future__ import annotations

import re
from decimal import Decimal

from kreassign.errors import InputError
from kreassign.model.printable import shortened

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
