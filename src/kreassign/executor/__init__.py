"""Execution of a plan: a machine that decides, a journal that records, and a runner that acts."""

from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.history.run_history import read_history
from kreassign.executor.preflight import prepare
from kreassign.executor.runner import Runner
from kreassign.model.run import MoveHistory, RunHistory

__all__ = ["ClusterPort", "MoveHistory", "RunHistory", "Runner", "prepare", "read_history"]
