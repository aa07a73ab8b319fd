"""Some stories, and whether a story can go wrong; more on demand: `make simulate SEEDS=1-1000`."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tests.simulation.__main__ import main
from tests.simulation.story import Story, play_story

QUICK_SEEDS = (2, 6, 8)
SEEDS = (1, 3, 4, 5, 7)


@pytest.mark.parametrize("seed", [*QUICK_SEEDS, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in SEEDS)])
def test_whatever_happens_everything_ends_once_all_is_repaired(seed: int) -> None:
    assert play_story(seed).broken == ()


def test_a_seed_tells_the_same_story_each_time() -> None:
    assert play_story(2) == play_story(2)
    assert play_story(2).about != play_story(6).about


def test_a_story_prints_its_seed_first_and_every_line_on_request() -> None:
    shown = CliRunner().invoke(main, ["2,6", "--verbose"]).output.splitlines()
    assert shown[0].startswith("2: ended after ")
    assert shown[1].startswith("kafka ")
    assert sum(line.startswith("6: ended after ") for line in shown) == 1


def test_a_story_that_goes_wrong_says_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # Throttles stay, and neither moves nor those that cannot end are waited for.
    monkeypatch.setattr(Story, "_end", lambda *_: None)
    result = CliRunner().invoke(main, ["2"])
    assert result.exit_code == 1
    assert result.stdout.startswith("2: broken after ")
    assert result.stderr.splitlines()[-1] == "reproduce with: make simulate SEEDS=2"
