"""Even disk use: every copy of a partition takes its size."""

from __future__ import annotations

from kreassign.planner.goals.goal import Goal

DISK = Goal(
    "disk",
    "B",
    leader=lambda partitions: partitions.size_bytes.astype(float),
    follower=lambda partitions: partitions.size_bytes.astype(float),
)
