"""Some seeds of the campaign on runs, adversaries, and whether the campaign itself can fail: `make torture-twin`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from click.testing import CliRunner

from kreassign.errors import ExecutionError
from kreassign.executor import events
from kreassign.executor.state import phases
from tests.campaigns.campaign import Tally
from tests.simulation import aims, ordeal, runs
from tests.simulation.__main__ import campaign, main
from tests.simulation.aims import Aim
from tests.simulation.draw import ADVERSARIES, draw_trial
from tests.simulation.runs import play_adversary, table, try_trial, unused
from tests.simulation.trial import Deed, Incident, Trial, minimised

thorough = pytest.mark.thorough
QUICK_SEEDS = (1, 4, 7)
SEEDS = [seed for seed in range(1, 21) if seed not in QUICK_SEEDS]


def test_a_few_runs_keep_their_promises_whatever_they_have_to_stand() -> None:
    tally = campaign("runs", QUICK_SEEDS)
    assert tally.broken == []
    assert tally.ends == {"cancelled": 1, "done": 1, "failed": 1}
    assert len(tally.counts["rows"]) > 20


@thorough
def test_runs_keep_their_promises_whatever_they_have_to_stand() -> None:
    tally = campaign("runs", SEEDS)
    assert tally.broken == []
    assert tally.count == len(SEEDS)
    assert {"done", "failed"} <= tally.ends.keys()
    assert len(tally.counts["rows"]) > 50
    assert len(tally.counts["incidents"]) > 20


QUICK_AIMS = (Aim(phases.Replanning, events.RunResumed), Aim(phases.Failed, events.BrokersForgotten))
THOROUGH_AIMS = (Aim(phases.WritingBack, events.LeaseLost), Aim(phases.Replanning, events.MovesReplanned))
"""Some of the rows that nothing but an aim meets."""


@pytest.mark.parametrize("aim", [*QUICK_AIMS, *(pytest.param(aim, marks=thorough) for aim in THOROUGH_AIMS)], ids=str)
def test_a_trial_meets_the_row_at_which_it_aims(aim: Aim) -> None:
    number = aims.AIMS.index(aim) if aim in aims.AIMS else aims.AIMS.index(Aim(aim.state, events.HoldRequested))
    for turn in range(3):
        tally = campaign("runs", [aims.EVERY * (number + turn * len(aims.AIMS))])
        assert tally.broken == []
        if (aim.state, aim.event) in tally.counts["rows"]:
            return
    pytest.fail(f"three trials that aim at {aim} miss it")


QUICK_ADVERSARIES = {"moves-of-another-operator", "topic-recreated"}


@pytest.mark.parametrize(
    "name", [name if name in QUICK_ADVERSARIES else pytest.param(name, marks=thorough) for name in ADVERSARIES]
)
def test_a_run_keeps_its_promises_whatever_an_adversary_does(name: str) -> None:
    result = play_adversary(ADVERSARIES.index(name) + 1)
    assert result.end.startswith(f"{name} ")
    assert result.broken == ()


def test_a_seed_is_the_same_trial_with_the_same_end_each_time() -> None:
    assert draw_trial(3) == draw_trial(3)
    assert try_trial(draw_trial(3)).outcome == try_trial(draw_trial(3)).outcome
    assert draw_trial(3) != draw_trial(4)


def test_a_failure_is_printed_smallest_and_exits_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordeal, "_throttles_left", lambda *_: iter(["it is told to be elsewhere"]))
    result = CliRunner().invoke(main, ["runs", "7"])
    assert result.exit_code == 1, result.output
    seed, move, sentence, again = result.stderr.strip().splitlines()
    assert seed == "seed 7"
    assert move.startswith("  move "), "one move is left; no incident is needed"
    assert "it is told to be elsewhere" in sentence
    assert again == "reproduce with: make torture-twin RUNS=7 SEQUENCES=0"


def goes_wrong_with(*needed: Incident) -> Callable[[Trial], bool]:
    return lambda trial: set(needed) <= set(trial.incidents)


def test_only_what_it_takes_is_left_of_a_trial() -> None:
    trial = next(trial for trial in map(draw_trial, range(1, 50)) if len(trial.incidents) > 6 and len(trial.moves) > 3)
    needed = trial.incidents[1], trial.incidents[-2]
    smallest = minimised(trial, goes_wrong_with(*needed))
    assert smallest.incidents == needed
    assert len(smallest.moves) == 1


def test_nothing_is_left_out_of_a_trial_that_needs_all_of_it() -> None:
    trial = draw_trial(5)
    assert minimised(trial, lambda smaller: smaller == trial) == trial


def test_an_error_of_the_program_is_a_broken_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ExecutionError("out of order")

    monkeypatch.setattr(ordeal.Ordeal, "execute", fail)
    (sentence,) = try_trial(draw_trial(1)).broken
    assert sentence.endswith("ExecutionError: out of order")


def test_a_row_that_was_not_met_is_named() -> None:
    assert f"0 of {len(runs.TRANSITIONS)}" in table(Tally())
    assert "New on RunStarted" in unused(Tally())


def test_the_incidents_of_a_trial_are_told_in_their_order() -> None:
    trial = replace(draw_trial(1), incidents=(Incident(1, Deed.STOP), Incident(20, Deed.LOSE_LEASE)))
    assert str(trial).splitlines()[-2:] == ["  1 ms: asked to pause", "  20 ms: another run has the lease"]
