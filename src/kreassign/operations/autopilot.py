"""Look after a cluster: read it, let the core decide, plan, run, and write down what came of it.

`kreassign.autopilot` decides when; planner, runs, lease, guards and journals of runs know how. The journal of decisions
is the only memory: a process that begins where another one was killed, on any host that has it, reads it and settles
what that one had begun.
With `dry` everything is done but the runs, in a journal of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Self

from kreassign.autopilot.core import EndRun, PlanRepair, ResumeRun, RunRepair, SettleRun
from kreassign.autopilot.memory import Memory
from kreassign.autopilot.observation import Absent
from kreassign.clock import Clock
from kreassign.errors import ClusterError, InputError, JournalLocked, JournalTaken, MirrorUnavailable, StandsBy
from kreassign.executor.journal.folder import active_run
from kreassign.model.authorization import error_text
from kreassign.operations.autopilot_decisions import Decisions
from kreassign.operations.autopilot_looks import with_unread_run
from kreassign.operations.autopilot_proposals import Proposals
from kreassign.operations.autopilot_runs import RepairRuns
from kreassign.operations.connect import Warn

STAND_BY_S = 10.0
"""Time between two looks of a process that stands by."""


class Autopilot:
    """One autopilot of one cluster; use it in a `with` statement.

    It holds the journal of decisions, so that there is one in a state directory, and the lease of autopilots, so that
    one process on any machine looks after the cluster; runs hold the lease of the cluster besides. Without these
    nothing runs.
    """

    def __init__(self, decisions: Decisions) -> None:
        self.decisions = decisions
        self._proposals = Proposals(decisions)
        self._runs = RepairRuns(decisions, self._proposals)

    @property
    def memory(self) -> Memory:
        """All that it remembers of the cluster."""
        return self.decisions.memory

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self.decisions.close(error)

    def watch(self) -> None:
        """Look again and again, until this is interrupted."""
        while True:
            self.look()
            self.decisions.lease.rest(self.decisions.policy.care.interval)

    @property
    def reach(self) -> str:
        """Sentence about what the process before it has begun, where that is out of reach."""
        if self.memory.kept_in is not None:
            return ""
        return (
            "; what the one before it had begun is in the journals of that one, which are out of reach here: its moves "
            "and throttles are left alone, and waited for. --journal-to keeps journals where both have them"
        )

    def look(self) -> None:
        """Look once, tell what changed, and do what is due, to its end.

        Raises StandsBy once another process has its lease; JournalDamaged, JournalTaken.
        """
        decisions = self.decisions
        decisions.lease.keep()
        decisions.journal.confirm()
        try:
            left = self._runs.run_left()
        except JournalLocked:
            return  # of a moment: the next look reads it
        now = decisions.observe(left)
        is_elsewhere = left is not None and active_run(decisions.context.state_dir, decisions.cluster_id) == left.run_id
        now = replace(now, run=now.run._replace(is_left=not is_elsewhere, is_elsewhere=is_elsewhere))
        if left is None and self.memory.running is not None:
            now = with_unread_run(now, self.memory.running)
        self._runs.clear_up(now)
        self._proposals.read_approvals(now)
        order = decisions.decide(now)
        if (decisions.has_waited or not isinstance(now.watcher, Absent)) and not isinstance(order, PlanRepair):
            return
        if left is not None and is_elsewhere:
            self._runs.post(order, left)
            return
        match order:
            case PlanRepair(name):
                self._proposals.plan(name, now)
            case RunRepair(name, plan_id, at_any_time):
                self._runs.run(name, plan_id, now, at_any_time=at_any_time)
            case ResumeRun():
                self._runs.resume(*(() if left is None else self._runs.changes_by_policy(left)))
            case SettleRun():
                decisions.looked_s = float("-inf")
                self._runs.settle(order)
            case EndRun():
                self._runs.settle(order)


def watch_or_stand_by(begin: Callable[[], AbstractContextManager[Autopilot]], warn: Warn, clock: Clock) -> None:
    """Look after a cluster until this is interrupted, and stand by whenever another host does, or a journal is locked.

    Raises what else keeps it from beginning, such as a broken policy or a silent cluster; later, that is waited for.
    """
    why, is_after_others = "", False
    while True:
        try:
            with begin() as autopilot:
                if why:
                    reach = autopilot.reach if is_after_others else ""
                    warn(f"this process looks after the cluster from now on{reach}")
                why, is_after_others = "it did", False
                autopilot.watch()
        except (InputError, ClusterError, JournalTaken, JournalLocked, OSError) as error:
            is_other = isinstance(error, StandsBy | JournalTaken)
            is_locked = isinstance(error, JournalLocked) and not isinstance(error, MirrorUnavailable)
            if not (why or is_other or is_locked):
                raise
            is_after_others = is_after_others or is_other
            if error_text(error) != why:
                why = error_text(error)
                warn(f"it stands by, and decides nothing: {why}")
        clock.sleep(STAND_BY_S)
