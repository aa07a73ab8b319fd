import sys
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from kreassign.errors import InputError
from kreassign.planner.goals import DISK, GOALS, OPTIONAL_GOALS, POTENTIAL_NET_OUT, goal_named

CODE = """
from kreassign.planner.goals import Goal
WEIGHT = Goal("weight", "kg", leader=lambda p: p.size_bytes * 2.0, follower=lambda p: p.size_bytes * 1.0)
NUMBER = 7
"""
ENTRIES = "[kreassign.goals]\nweight = heavy_goals:WEIGHT\nnumber = heavy_goals:NUMBER\ngone = heavy_goals:GONE\n"


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that brings goals, as pip would install it."""
    (tmp_path / "heavy_goals.py").write_text(CODE)
    info = tmp_path / "heavy_goals-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: heavy-goals\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "heavy_goals", raising=False)
    assert PathDistribution(info).entry_points


def test_our_goals_are_found_by_name() -> None:
    assert goal_named("disk") is DISK
    assert goal_named("potential-net-out") is POTENTIAL_NET_OUT


@pytest.mark.usefixtures("_installed")
def test_goals_of_other_packages_are_found_by_their_entry_point() -> None:
    assert goal_named("weight").unit == "kg"


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(("name", "words"), [
    ("dsk", "there is no goal 'dsk'; there are disk, .*, gone, number, weight; did you mean disk"),
    ("number", "heavy_goals:NUMBER, the goal 'number', is a int, not a kreassign Goal"),
    ("gone", "goal 'gone' cannot be loaded from heavy_goals:GONE"),
])  # fmt: skip
def test_what_is_no_goal_is_refused(name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        goal_named(name)


def test_the_reference_lists_every_goal_in_order_with_its_reason() -> None:
    table = Path("docs/reference/goals-file.md").read_text().partition("## Goals\n")[2].strip().partition("\n\n")[0]
    rows = [tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in table.splitlines()[2:]]
    assert [(row[0].strip("`"), row[-1]) for row in rows] == [
        (goal.name, goal.why) for goal in (*GOALS, *OPTIONAL_GOALS)
    ]
