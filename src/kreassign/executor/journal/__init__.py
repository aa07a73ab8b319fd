"""The memory of a run: its journal on disk, written by one process and read by any."""

from kreassign.executor.journal.lock import active_run, active_run_in, refuse_second_run, stopped_process_in
from kreassign.executor.journal.paths import ASIDE, SUFFIX, cluster_journals, find_journals, journal_path
from kreassign.executor.journal.reader import BEGINNING, JournalReader, first_event, last_event, read_events
from kreassign.executor.journal.snapshots import Position, StoredSnapshot, stored_snapshots
from kreassign.executor.journal.writer import Journal, post_request, set_aside

__all__ = [
    "ASIDE",
    "BEGINNING",
    "SUFFIX",
    "Journal",
    "JournalReader",
    "Position",
    "StoredSnapshot",
    "active_run",
    "active_run_in",
    "cluster_journals",
    "find_journals",
    "first_event",
    "journal_path",
    "last_event",
    "post_request",
    "read_events",
    "refuse_second_run",
    "set_aside",
    "stopped_process_in",
    "stored_snapshots",
]
