"""From load to a plan: pure, and ignorant of clusters, files and Spark."""

from kreassign.planner.bounds import BytesBound, bytes_bound, least_seconds
from kreassign.planner.brokers import Brokers, LogDirs
from kreassign.planner.changes import Changes, changes_of
from kreassign.planner.evaluate import Evaluation, Miss, evaluate
from kreassign.planner.fingerprint import fingerprint
from kreassign.planner.from_columns import ReplicaColumns, problem_from
from kreassign.planner.from_values import problem_of
from kreassign.planner.goals_file import parse_wishes
from kreassign.planner.partitions import NOWHERE, Assignment, Partitions
from kreassign.planner.plans import assignment_of, current_plan, plan_of
from kreassign.planner.problem import Band, Budget, Limits, Problem, RackRule, Rules
from kreassign.planner.reasons import reasons_of
from kreassign.planner.schedule import predict
from kreassign.planner.search import Solution, solve
from kreassign.planner.values import BrokerFacts, LogDirFacts, PartitionFacts
from kreassign.planner.wishes import Wishes, wished

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
