"""Even potential outgoing traffic: what a broker would send if it led every partition that it holds."""

from __future__ import annotations

from kreassign.planner.goals.goal import Goal

POTENTIAL_NET_OUT = Goal(
    "potential-net-out",
    "B/s",
    leader=lambda partitions: partitions.read_bytes_per_s,
    follower=lambda partitions: partitions.read_bytes_per_s,
)
