"""Journal of a run on disk, written by one process and read by any."""

from kreassign.executor.journal.file import (
    BEGINNING,
    JournalReader,
    Position,
    StoredSnapshot,
    check_journal,
    damaged,
    first_event,
    last_event,
    read_events,
    stored_snapshots,
)
from kreassign.executor.journal.folder import (
    ASIDE,
    SUFFIX,
    active_run,
    active_run_in,
    cluster_journals,
    find_journals,
    journal_path,
    refuse_second_run,
    refuse_shared_file_system,
    stopped_process_in,
)
from kreassign.executor.journal.locks import foreign_lock
from kreassign.executor.journal.mirror import OWN, FolderPlace, Kept, Mirror, Place, kept_run, mirrored_runs
from kreassign.executor.journal.writer import Journal, bring_home, post_request, set_aside

__all__ = [
    "ASIDE",
    "BEGINNING",
    "OWN",
    "SUFFIX",
    "FolderPlace",
    "Journal",
    "JournalReader",
    "Kept",
    "Mirror",
    "Place",
    "Position",
    "StoredSnapshot",
    "active_run",
    "active_run_in",
    "bring_home",
    "check_journal",
    "cluster_journals",
    "damaged",
    "find_journals",
    "first_event",
    "foreign_lock",
    "journal_path",
    "kept_run",
    "last_event",
    "mirrored_runs",
    "post_request",
    "read_events",
    "refuse_second_run",
    "refuse_shared_file_system",
    "set_aside",
    "stopped_process_in",
    "stored_snapshots",
]
