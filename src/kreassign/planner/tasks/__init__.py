"""What operators ask for, each a pure function from the present state to a problem, or to an assignment."""

from kreassign.planner.problem.selection import TopicChoice
from kreassign.planner.tasks.balance import (
    add_brokers,
    balance_disks,
    demote,
    fit_in,
    leaders_only,
    only_forced,
    rebalance,
)
from kreassign.planner.tasks.drain import drain_brokers, drain_log_dirs, replace_brokers
from kreassign.planner.tasks.given import crowded, held_by_others
from kreassign.planner.tasks.ignore_dead_brokers import ignore_dead_brokers
from kreassign.planner.tasks.replicas import change_factors, repair, restore
from kreassign.planner.tasks.successors import replace_lost
from kreassign.planner.tasks.what_if import Circumstances, what_if

__all__ = [
    "Circumstances",
    "TopicChoice",
    "add_brokers",
    "balance_disks",
    "change_factors",
    "crowded",
    "demote",
    "drain_brokers",
    "drain_log_dirs",
    "fit_in",
    "held_by_others",
    "ignore_dead_brokers",
    "leaders_only",
    "only_forced",
    "rebalance",
    "repair",
    "replace_brokers",
    "replace_lost",
    "restore",
    "what_if",
]
