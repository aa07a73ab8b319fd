"""Taking out of the way what an interrupted run can never settle: a journal that nobody can read any more."""

from __future__ import annotations

from pathlib import Path

from kreassign.errors import InputError
from kreassign.executor.history.interrupted_runs import UnreadableJournal, read_or_name
from kreassign.executor.journal import set_aside


def forget_journal(path: Path) -> tuple[UnreadableJournal, Path]:
    """Set a journal aside that cannot be read, so that new runs can begin: what was wrong, and where the file is now.

    Raises InputError when it can be read, because its run can then be resumed or cancelled, or when a process executes
    a run of its cluster.
    """
    found = read_or_name(path)
    if not isinstance(found, UnreadableJournal):
        raise InputError(
            f"the journal of run {path.stem} can be read; go on with it (`kreassign resume {path.stem}`) or end it "
            f"(`kreassign cancel {path.stem}`), or name a broker that is lost for good (--broker)"
        )
    return found, set_aside(path)
