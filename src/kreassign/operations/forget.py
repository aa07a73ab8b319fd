"""Taking out of the way what an interrupted run can never settle: lost brokers, journals that nobody can read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from kreassign.clock import Clock, SystemClock
from kreassign.errors import InputError
from kreassign.executor.events import BrokersForgotten
from kreassign.executor.history.interrupted_runs import UnreadableJournal, read_or_name
from kreassign.executor.history.snapshots import latest_start
from kreassign.executor.journal import Journal, first_event, set_aside
from kreassign.operations.journals import this_operator

SYSTEM_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was given up: the settings that stay on lost brokers, and those that are still to be restored elsewhere."""

    left_behind: tuple[str, ...]
    residue: tuple[str, ...]


def forget_brokers(path: Path, brokers: Collection[int], clock: Clock = SYSTEM_CLOCK) -> Forgotten:
    """Let the interrupted run of this journal restore nothing any more on brokers that are lost for good.

    Nothing is sent; the journal says who did so. Raises InputError when the run has nothing to restore there, or a
    process executes a run of its cluster, JournalDamaged when the journal cannot be read.
    """
    start = latest_start(path)
    journal, events = Journal.resume(path, first_event(path).cluster_id, start.position)
    with journal:
        machine = start.machine
        for event in events:
            machine.replay(event)
        pending = machine.view.pending_restores
        lost = tuple(str(override) for key, override in pending.items() if key.broker in brokers)
        if not lost:
            owners = sorted({key.broker for key in pending if key.broker is not None})
            raise InputError(
                f"run {path.stem} has nothing to restore on brokers {sorted(brokers)}; it has on brokers {owners}"
            )
        at_ms = max(clock.now_ms(), machine.at_ms)
        event = BrokersForgotten(at_ms, tuple(sorted(brokers)), this_operator())
        journal.append(event)
        machine.handle(event)
        return Forgotten(lost, machine.view.residue)


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
