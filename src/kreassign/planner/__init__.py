"""From load to a plan: pure, and ignorant of clusters, files and Spark."""

from kreassign.planner.bounds import least_bytes
from kreassign.planner.evaluate import BrokerFigures, Evaluation, evaluate
from kreassign.planner.greedy import rebalance
from kreassign.planner.problem import Band, PartitionLoad, PlanningBroker, Problem

__all__ = [
    "Band",
    "BrokerFigures",
    "Evaluation",
    "PartitionLoad",
    "PlanningBroker",
    "Problem",
    "evaluate",
    "least_bytes",
    "rebalance",
]
