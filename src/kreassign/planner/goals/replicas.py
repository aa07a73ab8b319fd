"""Even numbers of replicas."""

from __future__ import annotations

from kreassign.planner.goals.goal import Goal, one_each

REPLICAS = Goal("replicas", "", leader=one_each, follower=one_each, counts=True)
