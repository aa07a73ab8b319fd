"""Costs of copies from rack to rack."""

from __future__ import annotations

import pytest

from kreassign.errors import InputError
from kreassign.model.plan_facts import NO_PRICES, RackPrices, joined_prices, parse_price

GIGABYTE = 10**9


@pytest.mark.parametrize(("text", "prices"), [
    ("0.01", RackPrices(0.01)),
    ("0", RackPrices(0.0)),
    ("1e9", RackPrices(1e9)),
    ("a:b=0.02", RackPrices(pairs={("a", "b"): 0.02})),
    ("a:b:c=2", RackPrices(pairs={("a", "b:c"): 2.0})),
    ("a:b=c=2", RackPrices(pairs={("a", "b=c"): 2.0})),
    ("a:a=0", RackPrices(pairs={("a", "a"): 0.0})),
])  # fmt: skip
def test_a_price_is_for_all_pairs_of_racks_or_for_one(text: str, prices: RackPrices) -> None:
    assert parse_price(text) == prices


@pytest.mark.parametrize("text", [
    "", "x", "-1", "-0", "-0.0", "a:b=-0", "1000000000.1", "2e9", "nan", "inf", "=1", "a=1", "a:=1", ":b=1", ":=1",
    "a:b=", "a:b", "a:b=x", "9" * 41,
])  # fmt: skip
def test_anything_else_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_price(text)
    named = text if len(text) <= 40 else f"{text[:40]}…"
    assert str(refused.value) == f"'{named}' is no price; write for example 0.01, or a:b=0.02"


PRICES = RackPrices(0.01, {("a", "b"): 0.02, ("c", "c"): 0.5})


@pytest.mark.parametrize(("prices", "source", "target", "cost"), [
    (PRICES, "a", "b", 0.04),
    (PRICES, "b", "a", 0.02),
    (PRICES, "a", "a", 0.0),
    (PRICES, "c", "c", 1.0),
    (PRICES, None, "b", None),
    (PRICES, "a", None, None),
    (PRICES, None, None, None),
    (RackPrices(0.0), "a", "b", 0.0),
    (RackPrices(0.01), "a", "a", 0.0),
    (RackPrices(pairs={("a", "b"): 1.0}), "b", "a", None),
    (RackPrices(pairs={("a", "b"): 1.0}), "a", "a", 0.0),
    (NO_PRICES, "a", "b", None),
    (NO_PRICES, "a", "a", None),
])  # fmt: skip
def test_bytes_cost_the_price_of_their_pair_of_racks_where_it_is_known(
    prices: RackPrices, source: str | None, target: str | None, cost: float | None
) -> None:
    assert prices.cost(source, target, 2 * GIGABYTE) == cost


def test_a_part_of_a_gigabyte_costs_a_part_of_its_price() -> None:
    assert RackPrices(2.0).cost("a", "b", GIGABYTE // 4) == 0.5
    assert RackPrices(2.0).cost("a", "b", 0) == 0.0


@pytest.mark.parametrize(("one", "other", "both"), [
    (RackPrices(0.01), RackPrices(0.02), RackPrices(0.02)),
    (RackPrices(0.01), NO_PRICES, RackPrices(0.01)),
    (NO_PRICES, RackPrices(0.0), RackPrices(0.0)),
    (RackPrices(0.01), RackPrices(0.0), RackPrices(0.0)),
    (
        RackPrices(pairs={("a", "b"): 1.0, ("a", "c"): 2.0}), RackPrices(0.5, {("a", "b"): 3.0}),
        RackPrices(0.5, {("a", "b"): 3.0, ("a", "c"): 2.0}),
    ),
])  # fmt: skip
def test_of_two_prices_for_the_same_the_later_counts(one: RackPrices, other: RackPrices, both: RackPrices) -> None:
    assert joined_prices(one, other) == both
