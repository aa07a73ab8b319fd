"""Even processor use: leading costs more than following."""

from __future__ import annotations

from kreassign.planner.goals.goal import Goal

CPU = Goal(
    "cpu",
    "",
    leader=lambda partitions: partitions.leader_cpu,
    follower=lambda partitions: partitions.follower_cpu,
)
