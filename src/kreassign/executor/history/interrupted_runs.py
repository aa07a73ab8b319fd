"""Interrupted runs: no process is running them, though something of them is still in the cluster.

They stand in the way of others: a run that finds the throttle of an interrupted one takes it for what was there before,
and if both are ended in the wrong order, it stays for ever. A journal that cannot be read may be that of such a run, so
it stands in the way as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from kreassign.errors import InputError, JournalDamaged
from kreassign.executor.events import Verified
from kreassign.executor.history.run_history import RunHistory, read_history
from kreassign.executor.journal import active_run, cluster_journals, last_event
from kreassign.executor.state import IN_FLIGHT


@dataclass(frozen=True, slots=True)
class UnreadableJournal:
    """A journal that nobody can read, and why."""

    path: Path
    problem: str

    @property
    def run_id(self) -> str:
        """Of which run it is, by its name."""
        return self.path.stem

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return (
            "What its run left behind is not known: look with `kreassign doctor`, and with `kreassign verify` and the "
            f"plan; then set it aside with `kreassign forget {quote(str(self.path))}`"
        )

    def __str__(self) -> str:
        return self.problem if str(self.path) in self.problem else f"{self.path}: {self.problem}"


def left_behind(state_dir: Path, cluster_id: str) -> Iterator[RunHistory | UnreadableJournal]:
    """What stands in the way on this cluster: runs with moves to finish or settings to restore, unreadable journals."""
    holder = active_run(state_dir, cluster_id)
    for path in cluster_journals(state_dir, cluster_id):
        if path.stem == holder or _is_settled(path):
            continue
        found = read_or_name(path)
        if isinstance(found, UnreadableJournal) or found.ended_ms is None or found.throttle_residue:
            yield found


def read_or_name(path: Path) -> RunHistory | UnreadableJournal:
    """What a journal tells of its run, or that it cannot be read."""
    try:
        return read_history(path)
    except JournalDamaged as error:
        return UnreadableJournal(path, str(error))


def refuse_if_interrupted_runs(state_dir: Path, cluster_id: str, run_id: str | None = None) -> None:
    """Raise InputError where another run was interrupted with moves under way or settings to restore.

    Raises JournalDamaged where nobody can tell, because its journal cannot be read.
    """
    for found in left_behind(state_dir, cluster_id):
        if found.run_id == run_id:
            continue
        if isinstance(found, UnreadableJournal):
            raise JournalDamaged(f"a run on this cluster has a journal that cannot be read: {found}. {found.remedy}")
        moving = sum(move.status in IN_FLIGHT for move in found.moves)
        if moving or found.throttle_residue:
            raise InputError(
                f"run {found.run_id} was left on this cluster with {moving} moves under way and "
                f"{len(found.throttle_residue)} settings of a throttle; go on with it (`kreassign resume "
                f"{found.run_id}`) or end it (`kreassign cancel {found.run_id}`) before another one changes the same. "
                f"Settings of a broker that is lost for good: `kreassign forget {found.run_id} --broker ID`"
            )


def _is_settled(path: Path) -> bool:
    """Whether its last word is that all is as it shall be, which is so of most journals and quickly seen."""
    try:
        event = last_event(path)
    except JournalDamaged:
        return False
    return isinstance(event, Verified) and not event.findings
