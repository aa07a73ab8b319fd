"""The garbage collector is off within the block, and on after it, however it ends."""

from __future__ import annotations

import gc

import pytest

from kreassign.cli.streams import uncollected


def test_garbage_is_searched_for_again_after_the_block_even_if_it_fails() -> None:
    gc.enable()  # tests of commands that leave it off may have run in this process
    with pytest.raises(ValueError, match="inside, False"):
        _fail_inside()
    assert gc.isenabled()


def test_a_search_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def _fail_inside() -> None:
    with uncollected():
        raise ValueError(f"inside, {gc.isenabled()}")
