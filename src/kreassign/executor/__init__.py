"""Execution of a plan: a machine that decides, a journal that records, and a runner that acts."""

from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.history.run_history import MoveHistory, RunHistory, read_history
from kreassign.executor.preflight import prepare
from kreassign.executor.runner import Runner

__all__ = ["ClusterPort", "MoveHistory", "RunHistory", "Runner", "prepare", "read_history"]
