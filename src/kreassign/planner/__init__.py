"""From load to a plan: pure, and ignorant of clusters, files and Spark."""

from kreassign.planner.check.bounds import BytesBound, bytes_bound, least_seconds
from kreassign.planner.check.changes import Changes, changes_of
from kreassign.planner.check.evaluate import Evaluation, Miss, evaluate
from kreassign.planner.check.schedule import predict
from kreassign.planner.problem.brokers import Brokers, LogDirs
from kreassign.planner.problem.facts import BrokerFacts, LogDirFacts, PartitionFacts
from kreassign.planner.problem.fingerprint import fingerprint
from kreassign.planner.problem.from_columns import ReplicaColumns, problem_from
from kreassign.planner.problem.from_values import problem_of
from kreassign.planner.problem.goals_file import parse_wishes
from kreassign.planner.problem.partitions import NOWHERE, Assignment, Partitions
from kreassign.planner.problem.policy import Wishes, wished
from kreassign.planner.problem.problem import Band, Budget, Limits, Problem, RackRule, Rules
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
    "Problem",
    "RackRule",
    "ReplicaColumns",
    "Rules",
    "Solution",
    "Wishes",
    "assignment_of",
    "bytes_bound",
    "changes_of",
    "current_plan",
    "evaluate",
    "fingerprint",
    "least_seconds",
    "parse_wishes",
    "plan_of",
    "predict",
    "problem_from",
    "problem_of",
    "reasons_of",
    "solve",
    "wished",
]
