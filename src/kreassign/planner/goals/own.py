"""Goals by name: those of kreassign, and those that other packages bring."""

from __future__ import annotations

from importlib.metadata import entry_points

from kreassign.errors import InputError
from kreassign.planner.goals.goal import Goal
from kreassign.planner.goals.order import GOALS
from kreassign.planner.goals.potential_net_out import POTENTIAL_NET_OUT

ENTRY_POINT_GROUP = "kreassign.goals"
"""Packages name their goals in this group: `weight = "my_goals:WEIGHT"`, where WEIGHT is a Goal."""

_OURS = {goal.name: goal for goal in (*GOALS, POTENTIAL_NET_OUT)}


def goal_named(name: str) -> Goal:
    """The goal of this name.

    Raises InputError when there is none, or when what an entry point names is no goal or cannot be imported.
    """
    if name in _OURS:
        return _OURS[name]
    found = entry_points(group=ENTRY_POINT_GROUP, name=name)
    if not found:
        theirs = sorted(entry_points(group=ENTRY_POINT_GROUP).names)
        raise InputError(f"there is no goal {name!r}; there are {', '.join([*_OURS, *theirs])}")
    (entry, *_) = found
    try:
        goal = entry.load()
    except (ImportError, AttributeError) as error:
        raise InputError(f"goal {name!r} cannot be loaded from {entry.value}: {error}") from error
    if not isinstance(goal, Goal):
        raise InputError(f"{entry.value}, the goal {name!r}, is a {type(goal).__name__}, not a kreassign Goal")
    return goal
