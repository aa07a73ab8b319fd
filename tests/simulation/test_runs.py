"""A few seeds of the campaign on runs in every run of the tests, and whether the campaign itself can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from kreassign.errors import ExecutionError
from kreassign.executor.events import (
    BrokersForgotten,
    CallFailed,
    CancelRequested,
    HoldRequested,
    LeaseForgone,
    LeaseLost,
    MovesReplanned,
    RunResumed,
)
from kreassign.executor.state.phases import (
    AwaitingLease,
    ConfirmingRestore,
    Electing,
    Failed,
    MeasuringTraffic,
    Replanning,
    WritingBack,
)
from tests.simulation import aims, promises, runs
from tests.simulation.aims import Aim
from tests.simulation.incidents import Deed, Incident
from tests.simulation.minimise import minimised
from tests.simulation.runs import campaign, main, not_met, table, tried
from tests.simulation.trial import Trial, drawn
from tests.torture import page

pytestmark = pytest.mark.thorough

SEEDS = range(1, 21)


def test_runs_keep_their_promises_whatever_they_have_to_stand() -> None:
    tally, rows = campaign(SEEDS)
    assert [str(one) for one in tally.failed] == []
    assert tally.seeds == len(SEEDS)
    assert {"done", "cancelled", "failed"} <= tally.ends.keys()
    assert len(rows.used) > 50
    assert len(tally.struck) > 20


ROWS_AIMED_AT = (
    Aim(Replanning, MovesReplanned), Aim(Replanning, RunResumed), Aim(MeasuringTraffic, RunResumed),
    Aim(AwaitingLease, LeaseForgone), Aim(Electing, CallFailed), Aim(Failed, BrokersForgotten),
    Aim(WritingBack, LeaseLost), Aim(ConfirmingRestore, CancelRequested),
)  # fmt: skip
"""Some of the rows that nothing but an aim meets."""


@pytest.mark.parametrize("aim", ROWS_AIMED_AT, ids=str)
def test_a_trial_meets_the_row_at_which_it_aims(aim: Aim) -> None:
    number = aims.AIMS.index(aim) if aim in aims.AIMS else aims.AIMS.index(Aim(aim.state, HoldRequested))
    for turn in range(3):
        tally, rows = campaign([aims.EVERY * (number + turn * len(aims.AIMS))])
        assert [str(one) for one in tally.failed] == []
        if (aim.state, aim.event) in rows.used:
            return
    pytest.fail(f"three trials that aim at {aim} miss it")


def test_a_seed_is_the_same_trial_with_the_same_end_each_time() -> None:
    assert drawn(3) == drawn(3)
    assert tried(drawn(3)).outcome == tried(drawn(3)).outcome
    assert drawn(3) != drawn(4)


def test_what_goes_wrong_is_printed_as_small_as_it_can_be_and_ends_with_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "_moves", lambda *_: iter(["it is told to be elsewhere"]))
    result = CliRunner().invoke(main, ["7"])
    assert result.exit_code == 1, result.output
    assert "it is told to be elsewhere" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 3, "the sentence, the seed, and one move; no incident is needed"


def goes_wrong_with(*needed: Incident) -> Callable[[Trial], bool]:
    return lambda trial: set(needed) <= set(trial.incidents)


def test_only_what_it_takes_is_left_of_a_trial() -> None:
    trial = next(trial for trial in map(drawn, range(1, 50)) if len(trial.incidents) > 6 and len(trial.moves) > 3)
    needed = trial.incidents[1], trial.incidents[-2]
    found = minimised(trial, goes_wrong_with(*needed))
    assert found.incidents == needed
    assert len(found.moves) == 1


def test_nothing_is_left_out_of_a_trial_that_needs_all_of_it() -> None:
    trial = drawn(5)
    assert minimised(trial, lambda smaller: smaller == trial) == trial


def test_an_error_of_the_program_is_a_broken_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ExecutionError("out of order")

    monkeypatch.setattr(runs.Ordeal, "execute", fail)
    assert tried(drawn(1)).broken == ("ExecutionError: out of order",)


def test_a_row_that_was_not_met_is_named() -> None:
    tally, rows = campaign(())
    assert f"0 of {len(rows)}" in table(tally, rows)
    assert "New on RunStarted" in not_met(rows)


def test_the_incidents_of_a_trial_are_told_in_their_order() -> None:
    trial = replace(drawn(1), incidents=(Incident(1, Deed.STOP), Incident(20, Deed.LOSE_LEASE)))
    assert str(trial).splitlines()[-2:] == ["  1 ms: asked to pause", "  20 ms: another run has the lease"]


def test_a_section_of_the_page_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    text = "before\n<!-- one -->\nold\n<!-- end of one -->\nafter\n"
    assert page.with_section(text, "one", "new") == "before\n<!-- one -->\nnew\n<!-- end of one -->\nafter\n"
    with pytest.raises(ValueError, match="no section"):
        page.with_section(text, "two", "new")


@pytest.mark.parametrize("name", ["runs on the twin", "faults on real Kafka"])
def test_the_page_has_the_sections_that_campaigns_write(name: str) -> None:
    assert page.with_section(page.PAGE.read_text(encoding="utf-8"), name, "new")
