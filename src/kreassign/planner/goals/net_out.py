"""Even outgoing traffic: only leaders send, to consumers and followers."""

from __future__ import annotations

from kreassign.planner.goals.goal import Goal, nothing

NET_OUT = Goal("net-out", "B/s", leader=lambda partitions: partitions.read_bytes_per_s, follower=nothing)
