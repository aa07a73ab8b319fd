"""The drawn states are those of the tables."""

from __future__ import annotations

from scripts.run_states_page import PAGE, states_page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == states_page() + "\n", "run `python scripts/run_states_page.py`"


def test_it_draws_runs_and_moves_and_tells_what_becomes_of_a_debt() -> None:
    page = states_page()
    assert "    moving --> paused" in page
    assert "    recalled --> cancelled" in page
    assert "| sent | untouched | sent, submit again; failed |" in page
    assert "| any other | somebody else's: it stays and is told; nothing is owed any more |" in page
