"""Some stories in every run of the tests; more on demand: `make simulate SEEDS=1-1000`."""

from __future__ import annotations

import traceback

import click
import pytest
from click.testing import CliRunner

from tests.simulation.__main__ import main, parse_seeds
from tests.simulation.adversary import scenarios, struck
from tests.simulation.story import StillGoingError, Story, told

pytestmark = pytest.mark.thorough

SEEDS = range(1, 9)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_everything_ends_once_all_is_repaired(seed: int) -> None:
    assert told(seed).lines


@pytest.mark.parametrize("name", scenarios())
def test_a_run_keeps_its_promises_whatever_an_adversary_does(name: str) -> None:
    assert struck(name, 1).broken == ()


def test_a_seed_tells_the_same_story_each_time() -> None:
    assert told(4).lines == told(4).lines
    assert told(4).digest != told(5).digest


def test_a_run_prints_the_seed_first_and_every_line_on_request() -> None:
    shown = CliRunner().invoke(main, ["4-5", "--verbose"]).output.splitlines()
    assert shown[0].startswith("seed 4 ended after ")
    assert shown[1].startswith("kafka ")
    assert sum(line.startswith("seed 5 ended after ") for line in shown) == 1


def test_a_story_that_goes_wrong_ends_with_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nobody takes the throttles off, waits for moves or gives up those that cannot end.
    monkeypatch.setattr(Story, "_end", lambda *_: None)
    result = CliRunner().invoke(main, ["2-3"])
    assert isinstance(result.exception, StillGoingError)
    assert result.output.startswith("seed 2")
    failed = result.output.split()[-1]
    last = "".join(traceback.format_exception(result.exception)).splitlines()[-1]
    assert last == f"reproduce with: make simulate SEEDS={failed}"


def test_seeds_are_numbers_and_ranges() -> None:
    assert list(parse_seeds("7")) == [7]
    assert list(parse_seeds("1-3,9")) == [1, 2, 3, 9]
    with pytest.raises(click.BadParameter, match="are no seeds"):
        list(parse_seeds("many"))
