"""Even incoming traffic: every copy receives what producers write, the leader from them, a follower from it."""

from __future__ import annotations

from kreassign.planner.goals.goal import Goal

NET_IN = Goal(
    "net-in",
    "B/s",
    leader=lambda partitions: partitions.write_bytes_per_s,
    follower=lambda partitions: partitions.write_bytes_per_s,
)
