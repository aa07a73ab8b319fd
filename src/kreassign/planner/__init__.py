"""From load to a plan: pure, and ignorant of clusters, files and Spark."""

from kreassign.planner.arrays import NOWHERE
from kreassign.planner.check.bounds import BytesBound, bytes_bound, least_seconds
from kreassign.planner.check.changes import Changes, changes_of, predict
from kreassign.planner.check.evaluate import Evaluation, Miss, evaluate
from kreassign.planner.problem.cluster import Assignment, Brokers, LogDirs, Partitions
from kreassign.planner.problem.facts import BrokerFacts, LogDirFacts, PartitionFacts, problem_of
from kreassign.planner.problem.from_columns import ReplicaColumns, problem_from
from kreassign.planner.problem.goals_file import parse_policy
from kreassign.planner.problem.policy import PlanPolicy, with_policy
from kreassign.planner.problem.problem import Band, Budget, Limits, Problem, RackRule, Rules, fingerprint
from kreassign.planner.results.plans import assignment_of, current_plan, plan_of
from kreassign.planner.results.reasons import reasons_of
from kreassign.planner.search.search import Solution, solve

__all__ = [
    "NOWHERE",
    "Assignment",
    "Band",
    "BrokerFacts",
    "Brokers",
    "Budget",
    "BytesBound",
    "Changes",
    "Evaluation",
    "Limits",
    "LogDirFacts",
    "LogDirs",
    "Miss",
    "PartitionFacts",
    "Partitions",
    "PlanPolicy",
    "Problem",
    "RackRule",
    "ReplicaColumns",
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
