"""The goals that hold unless the user says otherwise, most important first."""

from __future__ import annotations

from kreassign.planner.goals.cpu import CPU
from kreassign.planner.goals.disk import DISK
from kreassign.planner.goals.leaders import LEADERS
from kreassign.planner.goals.net_in import NET_IN
from kreassign.planner.goals.net_out import NET_OUT
from kreassign.planner.goals.replicas import REPLICAS

GOALS = (DISK, NET_IN, NET_OUT, CPU, REPLICAS, LEADERS)
