"""The drawn states are those of the tables."""

from __future__ import annotations

from scripts.run_states_page import PAGE, states_page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == states_page() + "\n", "run `python scripts/run_states_page.py`"


def test_it_draws_runs_and_moves_and_says_how_each_setting_is_restored() -> None:
    page = states_page()
    assert "    Observing --> Paused" in page
    assert "    cancelling --> cancelled" in page
    assert "| sent | untouched | sent, submit again; failed |" in page
    assert "| any other | doubt | doubt | doubt | doubt | kept as theirs |" in page
