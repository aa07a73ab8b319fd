"""Whole numbers as texts from outside spell them: plain digits, and no more than Kafka's numbers have.

`int` is no reader of such texts. It takes digits of every script, blanks and underscores; `str.isdigit` says yes to
`²`, of which `int` makes nothing; and for more than 4,300 digits `int` raises what nobody expects. Pure.
"""

from __future__ import annotations

import re

from kreassign.model.printable import shortened

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
