"""Tests of campaigns: numbered trials, their deadline, their processes, what is caught, the page."""

from __future__ import annotations

import os
from collections import Counter
from itertools import count
from pathlib import Path

import click
import pytest

from kreassign.model import TopicPartition
from kreassign.model.run import MoveHistory, RunHistory
from kreassign.model.throttle import ThrottleRates
from tests.campaigns import page, promises
from tests.campaigns.campaign import (
    BrokenError,
    Caught,
    Result,
    Tally,
    apart,
    deadline,
    parse_seeds,
    play,
    print_results,
)
from tests.campaigns.promises import Aftermath
from tests.fuzz import __main__ as fuzz
from tests.torture import __main__ as torture

MIB = 1 << 20


def test_seeds_are_numbers_and_ranges() -> None:
    assert list(parse_seeds("7")) == [7]
    assert list(parse_seeds("1-3,9")) == [1, 2, 3, 9]
    with pytest.raises(click.BadParameter, match="are no seeds"):
        list(parse_seeds("many"))


def test_no_trial_begins_after_the_deadline() -> None:
    assert list(play(abs, [-1, -2])) == [1, 2]
    assert len(list(play(abs, count(), minutes=1e-5))) < 1_000_000


def test_trials_of_several_processes_come_in_their_order() -> None:
    assert list(play(abs, range(-9, 0), jobs=2)) == [*range(9, 0, -1)]


def test_a_broken_promise_is_printed_with_the_command_that_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    results = [Result(1, "done", counts={"rows": Counter("ab")}), Result(2, "failed", ("it is late",), 3.0)]
    tally = print_results(results, "make it SEEDS={}")
    assert (tally.count, tally.failed, tally.last, tally.slowest) == (2, 1, 2, 2)
    assert tally.counts["rows"] == {"a": 1, "b": 1}
    shown = capsys.readouterr()
    assert shown.out == "1: done\n2: failed\n"
    assert shown.err == "it is late\nreproduce with: make it SEEDS=2\n"


def test_an_error_becomes_a_sentence_and_an_end_from_outside_does_not() -> None:
    broken: list[str] = []
    with Caught(broken):
        raise BrokenError("it is late")
    with Caught(broken), deadline(0.05):
        while True:
            pass
    assert broken[0] == "it is late"
    assert "HangError: after 0 s" in broken[1]
    with pytest.raises(KeyboardInterrupt), Caught(broken):
        raise KeyboardInterrupt
    assert len(broken) == 2


def test_a_process_within_its_memory_returns_a_result_or_is_reported() -> None:
    assert apart(len, "abc", memory_bytes=1024 * MIB, timeout_s=60) == 3
    with pytest.raises(BrokenError, match="the process ended with 3"):
        apart(os._exit, 3, memory_bytes=1024 * MIB, timeout_s=60)
    with pytest.raises(BrokenError, match="the process ended with 1"):
        apart(bytearray, 2048 * MIB, memory_bytes=1024 * MIB, timeout_s=60)


# --- promises of a run ---------------------------------------------------------------------------------------------


def after(
    state: str, status: str = "complete", on: tuple[int, ...] = (2, 3), *, is_moved_by_others: bool = False
) -> Aftermath:
    move = MoveHistory("t", 0, (1, 2), (2, 3), (3,), 10, None if status == "planned" else 1, 2, 10, status, None)
    run = RunHistory("run-1", "c", 0, 9, state, ThrottleRates(), (move,), (), ())
    return Aftermath(run, {TopicPartition("t", 0): on}, is_moved_by_others=is_moved_by_others)


@pytest.mark.parametrize(
    ("aftermath", "sentence"),
    [
        (after("done"), ""),
        (after("moving"), "it is moving"),
        (after("done", on=(1, 2)), "called complete, and t-0 is on (1, 2), not on (2, 3)"),
        (after("done", on=(1, 2), is_moved_by_others=True), ""),
        (after("done", "failed"), "called done, and 1 moves are not complete"),
        (after("failed", "failed"), ""),
        (after("cancelled", "planned", on=(1, 2)), ""),
        (after("cancelled", "planned", on=(7, 8)), "never sent, and t-0 went from (1, 2) to (7, 8)"),
    ],
)
def test_a_broken_promise_of_a_run_is_a_sentence(aftermath: Aftermath, sentence: str) -> None:
    assert " ".join(promises.broken(aftermath)) == sentence


def test_what_is_left_and_what_harmless_faults_did_is_named() -> None:
    run = after("failed", "failed").run
    aftermath = Aftermath(run, {}, [TopicPartition("t", 0)], ["broker 1 x = 5"], is_harmless=True)
    assert [*promises.broken(aftermath)] == [
        "ended, and still moving: t-0",
        "throttles left and not named: broker 1 x = 5",
        "failed, and nothing happened that makes a move fail: ()",
    ]


# --- the page ------------------------------------------------------------------------------------------------------


def test_a_section_of_the_page_is_replaced_and_nothing_else() -> None:
    text = "before\n<!-- one -->\nold\n<!-- end of one -->\nafter\n"
    assert page.with_section(text, "one", "new") == "before\n<!-- one -->\nnew\n<!-- end of one -->\nafter\n"
    with pytest.raises(ValueError, match="no section"):
        page.with_section(text, "two", "new")


@pytest.mark.parametrize(
    "name", ["runs on the twin", "sequences on the twin", torture.SECTION, fuzz.SECTION, "mutants", "soak: hour"]
)
def test_the_page_has_the_sections_that_campaigns_write(name: str) -> None:
    assert page.with_section(page.PAGE.read_text(encoding="utf-8"), name, "new")


def test_a_broken_promise_is_written_and_ends_with_code_1(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("<!-- one -->\n<!-- end of one -->\n")
    with pytest.raises(SystemExit, match="1"):
        page.report("one", "make it", "a table", is_broken=True, page=path)
    assert path.read_text().startswith("<!-- one -->\n`make it`, on ")
    page.report("one", "make it", "another table", is_broken=False, writes=False, page=path)
    assert "another" not in path.read_text()


def test_a_tally_knows_its_slowest_trial() -> None:
    tally = Tally("t")
    for number, seconds in ((4, 1.0), (5, 3.0), (6, 2.0)):
        tally.add(Result(number, "done", seconds=seconds))
    assert (tally.slowest, tally.longest_s, tally.ends) == (5, 3.0, {"done": 3})
