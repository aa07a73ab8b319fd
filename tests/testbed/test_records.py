"""Records read are compared with those that producers had acknowledged."""

from __future__ import annotations

from testbed.records import Ledger, Record

FIRST, SECOND = (Record.of(offset, b"key", b"value %d" % offset) for offset in range(2))


def problems(acknowledged: tuple[Record, ...], *read: Record) -> tuple[str, ...]:
    return Ledger("topic", {0: acknowledged}).missing_from(Ledger("topic", {0: read}))


def test_what_is_there_once_and_in_order_is_fine_among_records_of_others() -> None:
    other = Record.of(2, b"key", b"another")
    assert problems((FIRST, SECOND), FIRST, SECOND, other) == ()


def test_a_record_that_is_gone_or_changed_is_told() -> None:
    (told,) = problems((FIRST, SECOND), FIRST, Record.of(1, b"key", b"changed"))
    assert told.startswith("topic-0: 1 of 2 acknowledged records lost or changed, first at 1")


def test_a_record_that_is_there_twice_is_told() -> None:
    (told,) = problems((FIRST, SECOND), FIRST, SECOND, Record.of(7, b"key", b"value 0"))
    assert told == "topic-0: 1 acknowledged records are there more than once, first at 0"


def test_offsets_that_are_not_in_the_order_of_their_producer_are_told() -> None:
    (told,) = problems((SECOND, FIRST), FIRST, SECOND)
    assert told == "topic-0: offsets were not given in the order of sending"
