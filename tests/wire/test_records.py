"""Batches of records: what is written is read, what is cut is left for the next answer, what is damaged refused."""

import pytest

from kreassign.wire.records import record_batch, records_in

FIRST, SECOND = record_batch(5, b"a", b"x" * 3000), record_batch(6, b"b", None)


def test_records_are_read_as_they_were_written() -> None:
    assert records_in(FIRST) == ([(b"a", b"x" * 3000)], 1)
    assert records_in(FIRST + SECOND)[0] == [(b"a", b"x" * 3000), (b"b", None)]
    assert records_in(b"") == ([], None)


@pytest.mark.parametrize("cut", [1, 30, len(SECOND) - 1])
def test_a_batch_that_is_cut_is_left_for_the_next_answer(cut: int) -> None:
    assert records_in(FIRST + SECOND[:cut]) == records_in(FIRST)


def test_a_damaged_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="its CRC does not match"):
        records_in(FIRST[:-1] + b"?")
