"""Interrupted runs: no process is running them, though something of them is still in the cluster.

They stand in the way of others: a run that finds the throttle of an interrupted one takes it for what was there before,
and if both are ended in the wrong order, it stays for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kreassign.errors import InputError, JournalDamaged
from kreassign.executor.events import Verified
from kreassign.executor.history.run_history import RunHistory, read_history
from kreassign.executor.journal import active_run, cluster_journals, last_event
from kreassign.executor.state import IN_FLIGHT


def interrupted_runs(state_dir: Path, cluster_id: str) -> Iterator[RunHistory]:
    """Runs on this cluster with moves to finish or settings to restore. A damaged journal is skipped."""
    holder = active_run(state_dir, cluster_id)
    for path in cluster_journals(state_dir, cluster_id):
        try:
            if path.stem != holder and not _is_settled(path):
                found = read_history(path)
                if found.ended_ms is None or found.throttle_residue:
                    yield found
        except JournalDamaged:
            continue


def refuse_if_interrupted_runs(state_dir: Path, cluster_id: str, run_id: str | None = None) -> None:
    """Raise InputError where another run was interrupted with moves under way or settings to restore."""
    for found in interrupted_runs(state_dir, cluster_id):
        moving = sum(move.status in IN_FLIGHT for move in found.moves)
        if found.run_id != run_id and (moving or found.throttle_residue):
            raise InputError(
                f"run {found.run_id} was left on this cluster with {moving} moves under way and "
                f"{len(found.throttle_residue)} settings of a throttle; go on with it (`kreassign resume "
                f"{found.run_id}`) or end it (`kreassign cancel {found.run_id}`) before another one changes the same"
            )


def _is_settled(path: Path) -> bool:
    """Whether its last word is that all is as it shall be, which is so of most journals and quickly seen."""
    event = last_event(path)
    return isinstance(event, Verified) and not event.findings
