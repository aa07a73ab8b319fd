"""What operators ask for, each a pure function from the present state to a problem, or to an assignment."""

from kreassign.planner.tasks.add_brokers import add_brokers
from kreassign.planner.tasks.disks import balance_disks
from kreassign.planner.tasks.drain_brokers import drain_brokers, replace_brokers
from kreassign.planner.tasks.drain_log_dirs import drain_log_dirs
from kreassign.planner.tasks.factors import change_factors
from kreassign.planner.tasks.fit_in import fit_in
from kreassign.planner.tasks.ignore_dead_brokers import ignore_dead_brokers
from kreassign.planner.tasks.leaders import demote, leaders_only
from kreassign.planner.tasks.only_forced import only_forced
from kreassign.planner.tasks.rebalance import rebalance
from kreassign.planner.tasks.repair import repair
from kreassign.planner.tasks.restore import restore
from kreassign.planner.tasks.topic_choice import TopicChoice
from kreassign.planner.tasks.what_if import Circumstances, what_if

__all__ = [
    "Circumstances",
    "TopicChoice",
    "add_brokers",
    "balance_disks",
    "change_factors",
    "demote",
    "drain_brokers",
    "drain_log_dirs",
    "fit_in",
    "ignore_dead_brokers",
    "leaders_only",
    "only_forced",
    "rebalance",
    "repair",
    "replace_brokers",
    "restore",
    "what_if",
]
