"""The runs of a state directory: a line for each, and one of them found by its id. Asks no cluster."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from kreassign.errors import InputError
from kreassign.executor.history.interrupted_runs import UnreadableJournal
from kreassign.executor.history.run_history import RunHistory
from kreassign.executor.journal import find_journals
from kreassign.executor.state import IN_FLIGHT
from kreassign.operations import steer
from kreassign.operations.cluster_names import NamedCluster, name_of
from kreassign.operations.journals import is_active


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in one line. Times are ms since the epoch.

    `state` is its phase, or `unreadable` where the journal cannot be read, `problem` says why. `is_active` while a
    process executes it. `can_be_resumed` where none does and something is left to do or to restore.
    """

    run_id: str
    cluster_id: str
    plan_id: str
    state: str
    is_active: bool
    is_held: bool
    can_be_resumed: bool
    started_ms: int | None
    ended_ms: int | None
    move_count: int
    complete_count: int
    failed_count: int
    copied_bytes: int
    problem_count: int
    problem: str | None = None
    in_flight_count: int = 0


@dataclass(slots=True)
class RunList:
    """The runs of state directories. What has ended is read once, as long as its journal stays as it is.

    `names` has the clusters of the runs that were read, by id, as `named` calls them.
    """

    state_dirs: tuple[Path, ...]
    named: tuple[NamedCluster, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    _known: dict[Path, tuple[object, RunSummary]] = field(default_factory=dict)

    def newest(self, count: int, cluster_id: str | None = None) -> tuple[RunSummary, ...]:
        """So many runs at most, the newest first: of all clusters, or of one."""
        found: list[RunSummary] = []
        for path in sorted(self._journals(), key=lambda path: path.stem, reverse=True):
            if len(found) == count:
                break
            summary = self._summary(path)
            if cluster_id is None or summary.cluster_id == cluster_id:
                found.append(summary)
        return tuple(found)

    def journal(self, run_id: str) -> Path:
        """The journal of a run. Raises InputError.

        Unlike on a command line, an id is never the path of a file.
        """
        found = self._journals(run_id)
        if len(found) == 1:
            return found[0]
        if found:
            raise InputError(
                f"run {run_id} has journals of {len(found)} clusters; only the command line can choose one"
            )
        raise InputError(f"there is no run {run_id}")

    def summary(self, run_id: str) -> RunSummary:
        """One run. Raises InputError."""
        return self._summary(self.journal(run_id))

    def _summary(self, path: Path) -> RunSummary:
        stamp, active = _stamp(path), is_active(path)
        known = self._known.get(path)
        if known is not None and known[0] == stamp and not active:
            return known[1]
        found = self._read(path, active=active)
        if not active and stamp is not None and found.ended_ms is not None:
            self._known[path] = stamp, found
        return found

    def _journals(self, *run_id: str) -> list[Path]:
        folders = dict.fromkeys(folder.resolve() for folder in self.state_dirs)
        return [path for folder in folders for path in find_journals(folder, *run_id)]

    def _read(self, path: Path, *, active: bool) -> RunSummary:
        found = steer.status_or_problem(path)
        if isinstance(found, UnreadableJournal):
            return _unreadable(found, active=active)
        if (name := name_of(found, path, self.named)) is not None:
            self.names[found.cluster_id] = name
        return summary_of(found, active=active)


def _stamp(path: Path) -> object:
    """What differs once a journal was written; None where it is not there any more."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _unreadable(found: UnreadableJournal, *, active: bool) -> RunSummary:
    return RunSummary(
        run_id=found.run_id, cluster_id=found.path.parent.name, plan_id="", state="unreadable", is_active=active,
        is_held=False, can_be_resumed=False, started_ms=None, ended_ms=None, move_count=0, complete_count=0,
        failed_count=0, copied_bytes=0, problem_count=1, problem=f"{found}. {found.remedy}",
    )  # fmt: skip


def summary_of(found: RunHistory, *, active: bool) -> RunSummary:
    """The line of a run."""
    statuses = Counter(move.status for move in found.moves)
    return RunSummary(
        run_id=found.run_id,
        cluster_id=found.cluster_id,
        plan_id=found.plan_id,
        state=found.state,
        is_active=active,
        is_held=found.is_held and found.ended_ms is None,
        can_be_resumed=not active and (found.ended_ms is None or bool(found.throttle_residue)),
        started_ms=found.started_ms,
        ended_ms=found.ended_ms,
        move_count=len(found.moves),
        complete_count=statuses["complete"],
        failed_count=statuses["failed"],
        copied_bytes=found.bytes_copied,
        problem_count=len(found.problems),
        in_flight_count=sum(statuses[status] for status in IN_FLIGHT),
    )
