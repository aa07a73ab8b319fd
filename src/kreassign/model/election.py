"""Leader elections that an operator can ask for."""

from __future__ import annotations

from enum import IntEnum


class ElectionType(IntEnum):
    """How a leader is chosen, with Kafka's number for it (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1
