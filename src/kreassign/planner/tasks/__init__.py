"""Tasks of operators: functions from the present state to a problem, or to an assignment. Pure."""

from kreassign.planner.problem.policy import TopicChoice
from kreassign.planner.tasks.placement import replace_lost
from kreassign.planner.tasks.tasks import (
    add_brokers,
    balance_disks,
    change_factors,
    crowded,
    demote,
    drain_brokers,
    drain_log_dirs,
    fit_in,
    held_by_others,
    ignore_dead_brokers,
    in_unknown_log_dirs,
    leaders_only,
    leave_cordoned,
    only_forced,
    plan_around,
    rebalance,
    relieve,
    repair,
    replace_brokers,
    restore,
)
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
    "in_unknown_log_dirs",
    "leaders_only",
    "leave_cordoned",
    "only_forced",
    "plan_around",
    "rebalance",
    "relieve",
    "repair",
    "replace_brokers",
    "replace_lost",
    "restore",
    "what_if",
]
