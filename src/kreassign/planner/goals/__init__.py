"""One goal per module; `GOALS` has those that hold unless the user says otherwise, in their order."""

from kreassign.planner.goals.cpu import CPU
from kreassign.planner.goals.disk import DISK
from kreassign.planner.goals.goal import Goal
from kreassign.planner.goals.leaders import LEADERS
from kreassign.planner.goals.net_in import NET_IN
from kreassign.planner.goals.net_out import NET_OUT
from kreassign.planner.goals.order import GOALS
from kreassign.planner.goals.potential_net_out import POTENTIAL_NET_OUT
from kreassign.planner.goals.replicas import REPLICAS

__all__ = [
    "CPU",
    "DISK",
    "GOALS",
    "LEADERS",
    "NET_IN",
    "NET_OUT",
    "POTENTIAL_NET_OUT",
    "REPLICAS",
    "Goal",
]
