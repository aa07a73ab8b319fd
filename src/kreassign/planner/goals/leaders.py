"""Even numbers of preferred leaders."""

from __future__ import annotations

from kreassign.planner.goals.goal import Goal, nothing, one_each

LEADERS = Goal("leaders", "", leader=one_each, follower=nothing, counts=True)
