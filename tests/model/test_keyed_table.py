"""Every key has its kind, and every error says where it is and what is allowed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kreassign.errors import InputError
from kreassign.model.documents import KeyedTable
from kreassign.model.text import LARGEST_AMOUNT, LARGEST_ID


def table(text: str) -> KeyedTable:
    return KeyedTable.from_toml(text, "x.toml")


def refused(take: Callable[[KeyedTable], object], text: str = "") -> str:
    """Refusal of a table of this text when a key is taken."""
    with pytest.raises(InputError) as refusal:
        take(table(text))
    return str(refusal.value)


@pytest.mark.parametrize(("text", "take", "found"), [
    ("k = 'word'", lambda t: t.text("k"), "word"),
    ("", lambda t: t.text("k", "word"), "word"),
    ("k = true", lambda t: t.flag("k", default=False), True),
    ("k = 3", lambda t: t.whole("k", least=3), 3),
    ("k = 0.5", lambda t: t.number("k", most=1), 0.5),
    ("k = 1", lambda t: t.number("k", most=1), 1.0),
    ("k = 7", lambda t: t.amount("k"), 7),
    ("k = '1.5 GB'", lambda t: t.amount("k"), 1_500_000_000),
    ("k = ['a', 'b']", lambda t: t.texts("k"), ("a", "b")),
    ("k = [1, 2]", lambda t: t.wholes("k"), (1, 2)),
    ("", lambda t: t.wholes("k"), ()),
    ("k = { 'a.b' = '1' }", lambda t: t.text_map("k"), {"a.b": "1"}),
    ("[k]\na = 1", lambda t: t.table("k").whole("a"), 1),
    ("[[k]]\na = 1\n[[k]]\na = 2", lambda t: [each.whole("a") for each in t.tables("k")], [1, 2]),
    ("", lambda t: (t.has("k"), t.tables("k")), (False, ())),
    ("k = 1", lambda t: t.has("k"), True),
    ("k = ''", lambda t: t.text("k"), ""),
    ("", lambda t: t.flag("k", default=True), True),
    ("k = false", lambda t: t.flag("k", default=True), False),
    ("k = 0", lambda t: t.whole("k"), 0),
    ("", lambda t: t.whole("k", 5), 5),
    ("k = 4", lambda t: t.whole("k", least=2, most=4), 4),
    (f"k = {LARGEST_AMOUNT}", lambda t: t.whole("k"), LARGEST_AMOUNT),
    ("k = 0.0", lambda t: t.number("k"), 0.0),
    ("k = 1e308", lambda t: t.number("k"), 1e308),
    ("", lambda t: t.number("k", 2.5), 2.5),
    ("k = 0", lambda t: t.amount("k"), 0),
    ("k = '0'", lambda t: t.amount("k"), 0),
    ("", lambda t: t.amount("k", 9), 9),
    ("k = 3", lambda t: t.amount("k", least=3), 3),
    (f"k = {LARGEST_AMOUNT}", lambda t: t.amount("k"), LARGEST_AMOUNT),
    ("", lambda t: t.texts("k"), ()),
    (f"k = [0, {LARGEST_ID}]", lambda t: t.wholes("k"), (0, LARGEST_ID)),
    ("k = [-1, 8]", lambda t: t.wholes("k", least=-1, most=8), (-1, 8)),
    ("", lambda t: t.text_map("k"), {}),
    ("", lambda t: t.table("k").text("a", "word"), "word"),
    ("k = [{ a = 1 }, 'b']", lambda t: t.raw_tables("k"), ({"a": 1}, "b")),
    ("", lambda t: t.raw_tables("k"), ()),
])  # fmt: skip
def test_a_key_is_taken_as_its_kind(text: str, take: Callable[[KeyedTable], object], found: object) -> None:
    with table(text).taken_whole() as top:
        assert take(top) == found


TEXT = "a text without the character U+0000, which no name and no path has"
MAP = 'a table of texts such as { "retention.bytes" = "1000000" }'
AMOUNT = "an amount such as 20MB/s, 1.5 GB or 1000000"


@pytest.mark.parametrize(("text", "take", "said"), [
    ("k = 1", lambda t: t.text("k"), f"'k' is 1; it must be {TEXT}"),
    (r'k = "\u0000"', lambda t: t.text("k"), rf"'k' is '\x00'; it must be {TEXT}"),
    ("k = 'yes'", lambda t: t.flag("k", default=False), "'k' is 'yes'; it must be true or false"),
    ("k = 1", lambda t: t.flag("k", default=False), "'k' is 1; it must be true or false"),
    ("k = true", lambda t: t.whole("k"), "'k' is true; it must be a whole number of at least 0"),
    ("k = nan", lambda t: t.number("k"), "'k' is nan; it must be a number of at least 0"),
    ("k = inf", lambda t: t.number("k"), "'k' is inf; it must be a number of at least 0"),
    ("k = 'fast'", lambda t: t.amount("k"), f"'k' is 'fast'; it must be {AMOUNT}"),
    ("k = [1]", lambda t: t.texts("k"), "'k' is [1]; it must be a list of texts"),
    ("k = ['a']", lambda t: t.wholes("k"), "'k' is ['a']; it must be a list of whole numbers"),
    ("k = [1, 9]", lambda t: t.wholes("k", most=8), "'k' is [1, 9]; it must be a list of whole numbers from 0 to 8"),
    ("k = 1", lambda t: t.tables("k"), "'k' is 1; it must be tables, each beginning with [[k]]"),
    ("k = -1", lambda t: t.whole("k"), "'k' is -1; it must be a whole number of at least 0"),
    ("k = 1", lambda t: t.whole("k", least=2), "'k' is 1; it must be a whole number of at least 2"),
    ("k = 5", lambda t: t.whole("k", most=4), "'k' is 5; it must be a whole number of at least 0 and at most 4"),
    (f"k = {LARGEST_AMOUNT + 1}", lambda t: t.whole("k"), f"'k' is {2**63}; it must be a whole number of at least 0"),
    ("k = 1.0", lambda t: t.whole("k"), "'k' is 1.0; it must be a whole number of at least 0"),
    ("k = -0.1", lambda t: t.number("k"), "'k' is -0.1; it must be a number of at least 0"),
    ("k = 7.6", lambda t: t.number("k", most=7.5), "'k' is 7.6; it must be a number of at least 0 and at most 7.5"),
    ("k = 'a'", lambda t: t.number("k"), "'k' is 'a'; it must be a number of at least 0"),
    ("k = true", lambda t: t.number("k"), "'k' is true; it must be a number of at least 0"),
    ("k = -1", lambda t: t.amount("k"), f"'k' is -1; it must be {AMOUNT}"),
    ("k = 2", lambda t: t.amount("k", least=3), f"'k' is 2; it must be {AMOUNT}, at least 3"),
    ("k = '2 B'", lambda t: t.amount("k", least=3), f"'k' is '2 B'; it must be {AMOUNT}, at least 3"),
    ("k = 1.5", lambda t: t.amount("k"), f"'k' is 1.5; it must be {AMOUNT}"),
    (f"k = {LARGEST_AMOUNT + 1}", lambda t: t.amount("k"), f"'k' is {2**63}; it must be {AMOUNT}"),
    ("k = '9 EiB'", lambda t: t.amount("k"), f"'k' is '9 EiB'; it must be {AMOUNT}"),
    ("k = 'a'", lambda t: t.texts("k"), "'k' is 'a'; it must be a list of texts"),
    (r'k = ["\u0000"]', lambda t: t.texts("k"), rf"'k' is ['\x00']; it must be a list, each {TEXT}"),
    ("k = [true]", lambda t: t.wholes("k"), "'k' is [true]; it must be a list of whole numbers"),
    ("k = [-1]", lambda t: t.wholes("k"), f"'k' is [-1]; it must be a list of whole numbers from 0 to {LARGEST_ID}"),
    (
        f"k = [{LARGEST_ID + 1}]", lambda t: t.wholes("k", least=1),
        f"'k' is [2147483648]; it must be a list of whole numbers from 1 to {LARGEST_ID}",
    ),
    ("k = 1", lambda t: t.text_map("k"), f"'k' is 1; it must be {MAP}"),
    ("k = { a = 1 }", lambda t: t.text_map("k"), f"'k' is {{'a': 1}}; it must be {MAP}"),
    (r'k = { a = "\u0000" }', lambda t: t.text_map("k"), rf"'k' is {{'a': '\x00'}}; it must be {MAP}"),
    (r'k = { "\u0000" = "a" }', lambda t: t.text_map("k"), rf"'k' is {{'\x00': 'a'}}; it must be {MAP}"),
    ("k = []", lambda t: t.table("k"), "'k' is []; it must be a table"),
    ("k = ['a']", lambda t: t.tables("k"), "'k' is ['a']; it must be tables, each beginning with [[k]]"),
    ("k = [1]", lambda t: t.raw_tables("k"), "'k' is [1]; it must be tables, each beginning with [[k]], or texts"),
    (f"k = '{'x' * 40}'", lambda t: t.whole("k"), f"'k' is '{'x' * 39}…; it must be a whole number of at least 0"),
])  # fmt: skip
def test_a_refusal_says_what_was_found_and_what_is_allowed(
    text: str, take: Callable[[KeyedTable], object], said: str
) -> None:
    assert refused(take, text) == f"x.toml: {said}"


@pytest.mark.parametrize(("take", "kind"), [
    (lambda t: t.text("k"), TEXT),
    (lambda t: t.whole("k", least=1, most=3), "a whole number of at least 1 and at most 3"),
    (lambda t: t.number("k"), "a number of at least 0"),
    (lambda t: t.amount("k", least=1), f"{AMOUNT}, at least 1"),
])  # fmt: skip
def test_a_key_without_a_default_must_be_there(take: Callable[[KeyedTable], object], kind: str) -> None:
    assert refused(take) == f"x.toml: the key 'k' is missing; it must be {kind}"


def test_null_is_there_and_is_no_value() -> None:
    nothing = KeyedTable.from_json('{"k": null}', "x.json")
    with pytest.raises(InputError) as refusal:
        nothing.text("k")
    assert str(refusal.value) == f"x.json: 'k' is null; it must be {TEXT}"


def test_a_table_within_a_table_is_named_by_both() -> None:
    nested = table("[a]\n[[a.b]]\n[[a.b]]\nc = 1").table("a").tables("b")
    assert [one.where for one in nested] == ["x.toml: [a]: [[b]] 1", "x.toml: [a]: [[b]] 2"]
    with pytest.raises(InputError, match=r"^x\.toml: \[a\]: \[\[b\]\] 2: 'c' is 1; it must be a text without"):
        nested[1].text("c")


def test_keys_that_may_be_there_are_listed_in_order_whoever_asked_for_them() -> None:
    def take(top: KeyedTable) -> None:
        with top.taken_whole():
            top.has("b")
            top.flag("b", default=False)
            top.whole("a", 1)

    assert refused(take, "z = 1\nb = true") == "x.toml: there is no key 'z' here; there are a, b"


def test_what_others_refuse_gets_its_place_once() -> None:
    outer = table("[k]")
    with (
        pytest.raises(InputError, match=r"^x.toml: \[k\]: no disks$"),
        outer.taken_whole(),
        outer.table("k").taken_whole(),
    ):
        raise InputError("no disks")
