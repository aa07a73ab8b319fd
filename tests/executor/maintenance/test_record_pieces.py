"""A record as texts beside offsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.executor.maintenance.record import MOST_BYTES, PIECE_CHARACTERS, cut_into_pieces, text_of_pieces

HEAD_CHARACTERS = 40


@given(st.text(min_size=1))
def test_a_text_is_read_back_as_it_was_written(text: str) -> None:
    assert text_of_pieces(dict(enumerate(cut_into_pieces(text)))) == text


def long_text(factor: int = 7919) -> str:
    return ",".join(f"{number}:{number * factor % 9973}" for number in range(12_000))


def test_a_long_text_is_cut_into_pieces_that_a_broker_keeps() -> None:
    pieces = cut_into_pieces(long_text())
    assert len(pieces) > 2
    assert max(map(len, pieces)) <= PIECE_CHARACTERS + HEAD_CHARACTERS
    assert text_of_pieces(dict(enumerate(pieces))) == long_text()


def test_a_record_that_somebody_forged_to_fill_the_memory_is_refused() -> None:
    pieces = cut_into_pieces("0" * (MOST_BYTES + 1))
    assert sum(map(len, pieces)) < MOST_BYTES // 100
    with pytest.raises(ValueError, match=f"more than {MOST_BYTES} bytes"):
        text_of_pieces(dict(enumerate(pieces)))


@pytest.mark.parametrize("pieces", [{}, {0: ""}, {1: "kreassign-1 1 2 00000000 eA=="}])
def test_without_a_first_piece_there_is_no_record(pieces: dict[int, str]) -> None:
    assert text_of_pieces(pieces) is None


@pytest.mark.parametrize("damage", ["missing", "another", "shortened", "older"])
def test_a_record_that_is_not_whole_is_refused(damage: str) -> None:
    pieces = dict(enumerate(cut_into_pieces(long_text())))
    match damage:
        case "missing":
            del pieces[1]
        case "another":
            pieces[1] = cut_into_pieces(long_text(7907))[1]
        case "shortened":
            pieces[1] = pieces[1][:-4]
        case "older":
            pieces[0] = pieces[0].replace("kreassign-1", "kreassign-0")
    with pytest.raises(ValueError, match=r"piece 2|form|checksum"):
        text_of_pieces(pieces)
