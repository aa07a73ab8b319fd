"""From load to a plan: pure, and ignorant of clusters, files and Spark."""

from kreassign.planner.bounds import least_bytes
from kreassign.planner.brokers import Brokers, LogDirs
from kreassign.planner.evaluate import BrokerFigures, Evaluation, evaluate
from kreassign.planner.from_values import problem_of
from kreassign.planner.greedy import rebalance
from kreassign.planner.partitions import NOWHERE, Assignment, Partitions
from kreassign.planner.problem import Band, Budget, Limits, Problem, RackRule, Rules
from kreassign.planner.thin import ByteBand, ByteProblem, PartitionLoad, PlanningBroker
from kreassign.planner.values import BrokerFacts, LogDirFacts, PartitionFacts

__all__ = [
    "NOWHERE",
    "Assignment",
    "Band",
    "BrokerFacts",
    "BrokerFigures",
    "Brokers",
    "Budget",
    "ByteBand",
    "ByteProblem",
    "Evaluation",
    "Limits",
    "LogDirFacts",
    "LogDirs",
    "PartitionFacts",
    "PartitionLoad",
    "Partitions",
    "PlanningBroker",
    "Problem",
    "RackRule",
    "Rules",
    "evaluate",
    "least_bytes",
    "problem_of",
    "rebalance",
]
