"""Every key has its kind, and every error says where it is and what is allowed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kreassign.errors import InputError
from kreassign.model.keyed_table import KeyedTable


def table(text: str) -> KeyedTable:
    return KeyedTable.from_toml(text, "x.toml")


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
])  # fmt: skip
def test_a_key_is_taken_as_its_kind(text: str, take: Callable[[KeyedTable], object], found: object) -> None:
    with table(text).taken_whole() as top:
        assert take(top) == found


@pytest.mark.parametrize(("text", "take", "allowed"), [
    ("k = 3", lambda t: t.text("k"), "'k' is 3; it must be a text"),
    (r'k = "a\u0000b"', lambda t: t.text("k"), r"'k' is 'a\x00b'; it must be a text"),
    (r'k = ["a", "\u0000"]', lambda t: t.texts("k"), r"'k' is ('a', '\x00'); it must be a list"),
    ("k = 1", lambda t: t.flag("k", default=False), "'k' is 1; it must be true or false"),
    ("k = true", lambda t: t.whole("k"), "'k' is True; it must be a whole number of at least 0"),
    ("k = 0", lambda t: t.whole("k", least=1), "'k' is 0; it must be a whole number of at least 1"),
    ("k = 1.5", lambda t: t.number("k", most=1), "'k' is 1.5; it must be a number of at least 0 and at most 1"),
    ("k = -1", lambda t: t.number("k"), "'k' is -1; it must be a number of at least 0"),
    ("k = nan", lambda t: t.number("k"), "'k' is nan; it must be a number of at least 0"),
    ("k = inf", lambda t: t.number("k"), "'k' is inf; it must be a number of at least 0"),
    ("k = 'fast'", lambda t: t.amount("k"), "'k' is 'fast'; it must be an amount such as 20MB/s, 1.5 GB or 1000000"),
    ("k = -1", lambda t: t.amount("k"), "'k' is -1; it must be an amount"),
    ("k = [1]", lambda t: t.texts("k"), "'k' is [1]; it must be a list of texts"),
    ("k = ['a']", lambda t: t.wholes("k"), "'k' is ['a']; it must be a list of whole numbers"),
    ("k = [1, 9]", lambda t: t.wholes("k", most=8), "'k' is (1, 9); it must be a list of whole numbers from 0 to 8"),
    ("k = { a = 1 }", lambda t: t.text_map("k"), "'k' is {'a': 1}; it must be a table of texts"),
    ("k = 1", lambda t: t.tables("k"), "'k' is 1; it must be tables, each beginning with [[k]]"),
    ("", lambda t: t.whole("k"), "the key 'k' is missing; it must be a whole number of at least 0"),
])  # fmt: skip
def test_anything_else_is_refused(text: str, take: Callable[[KeyedTable], object], allowed: str) -> None:
    with pytest.raises(InputError) as refusal:
        take(table(text))
    assert str(refusal.value).startswith(f"x.toml: {allowed}")


def test_a_key_that_nobody_asked_for_is_refused() -> None:
    def take(second: KeyedTable) -> None:
        with second.taken_whole():
            second.whole("count", 1)
            second.text("name", "")

    second = table("[[k]]\n[[k]]\ncuont = 1").tables("k")[1]
    with pytest.raises(InputError, match=r"^x.toml: \[\[k\]\] 2: there is no key 'cuont' here; there are count, name$"):
        take(second)


def test_what_others_refuse_gets_its_place_once() -> None:
    outer = table("[k]")
    with (
        pytest.raises(InputError, match=r"^x.toml: \[k\]: no disks$"),
        outer.taken_whole(),
        outer.table("k").taken_whole(),
    ):
        raise InputError("no disks")


def test_what_is_not_toml_is_said_to_be() -> None:
    with pytest.raises(InputError, match=r"^x.toml: this is not TOML: "):
        table("a = 1\nb =")
