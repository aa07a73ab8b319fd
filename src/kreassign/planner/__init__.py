"""Compute plans from loads, without clusters, files and Spark. Pure."""

from kreassign.planner.arrays import NOWHERE
from kreassign.planner.check.cost import BytesBound, Changes, bytes_bound, changes_of, least_seconds, predict
from kreassign.planner.check.evaluate import Evaluation, Miss, evaluate
from kreassign.planner.problem.build import BrokerFacts, LogDirFacts, PartitionFacts, problem_from, problem_of
from kreassign.planner.problem.fingerprint import fingerprint
from kreassign.planner.problem.goals_file import parse_policy
from kreassign.planner.problem.policy import PlanPolicy, with_policy
from kreassign.planner.problem.problem import (
    Assignment,
    Band,
    Bounds,
    Brokers,
    Budget,
    LogDirs,
    Partitions,
    Problem,
    RackRule,
    Rules,
)
from kreassign.planner.reasons import reasons_of
from kreassign.planner.results import assignment_of, current_plan, plan_of
from kreassign.planner.search.search import Solution, solve

__all__ = [
    "NOWHERE",
    "Assignment",
    "Band",
    "Bounds",
    "BrokerFacts",
    "Brokers",
    "Budget",
    "BytesBound",
    "Changes",
    "Evaluation",
    "LogDirFacts",
    "LogDirs",
    "Miss",
    "PartitionFacts",
    "Partitions",
    "PlanPolicy",
    "Problem",
    "RackRule",
    "Rules",
    "Solution",
    "assignment_of",
    "bytes_bound",
    "changes_of",
    "current_plan",
    "evaluate",
    "fingerprint",
    "least_seconds",
    "parse_policy",
    "plan_of",
    "predict",
    "problem_from",
    "problem_of",
    "reasons_of",
    "solve",
    "with_policy",
]
