"""What it costs to copy from rack to rack, in any currency per GB, as clouds bill traffic between zones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from kreassign.errors import InputError
from kreassign.model.printable import shortened
from kreassign.model.strict_json import finite

GIGABYTE = 1_000_000_000
MOST = 1e9
EXAMPLE = "write for example 0.01, or a:b=0.02"


@dataclass(frozen=True, slots=True)
class RackPrices:
    """Prices per GB (10^9 bytes): `between` any two racks, unless `pairs` names them, from and to; None: unknown.

    Within a rack nothing is paid, unless the pair is named.
    """

    between: float | None = None
    pairs: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def cost(self, source: str | None, target: str | None, size_bytes: int) -> float | None:
        """What so many bytes cost; None where a rack or a price is not known."""
        if source is None or target is None:
            return None
        price = self.pairs.get((source, target), 0.0 if source == target else self.between)
        return None if price is None or not (self.pairs or self.between is not None) else price * size_bytes / GIGABYTE


NO_PRICES = RackPrices()


def parse_price(text: str) -> RackPrices:
    """One price: `0.01` between any two racks, or `a:b=0.02` from rack a to rack b. Raises InputError."""
    pair, equals, number = text.rpartition("=")
    source, colon, target = pair.partition(":")
    try:
        price = finite(number)
    except ValueError as error:
        raise InputError(f"{shortened(text)!r} is no price; {EXAMPLE}") from error
    if price > MOST or price < 0 or math.copysign(1.0, price) < 0 or (equals and not (colon and source and target)):
        raise InputError(f"{shortened(text)!r} is no price; {EXAMPLE}")
    return RackPrices(pairs={(source, target): price}) if equals else RackPrices(price)


def joined(one: RackPrices, other: RackPrices) -> RackPrices:
    """Both; where both name a price, that of the other."""
    between = one.between if other.between is None else other.between
    return RackPrices(between, {**one.pairs, **other.pairs})
