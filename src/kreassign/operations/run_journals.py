"""Runs by their journals: find, list, follow and forget them.

Asks no cluster and loads no client, so that `kreassign status` and `watch`, which are called repeatedly, start quickly.
"""

from __future__ import annotations

import gzip
import os
import pwd
import sys
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import InputError, JournalUnreadable, MalformedPlan, machine_reason
from kreassign.executor.events import BrokersForgotten
from kreassign.executor.history.run_history import (
    UnreadableJournal,
    history,
    latest_start,
    read_or_name,
    read_progress,
    read_view,
)
from kreassign.executor.journal import (
    SUFFIX,
    Journal,
    JournalReader,
    active_run_in,
    cluster_journals,
    find_journals,
    first_event,
    foreign_lock,
    set_aside,
    stopped_process_in,
)
from kreassign.executor.journal.folder import make_folder
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.state import RunView
from kreassign.model.cluster import named_brokers
from kreassign.model.plan_facts import PlanFacts, refuse_other_cluster
from kreassign.model.plan_facts_json import format_facts, parse_facts
from kreassign.model.run import AT_REST, MoveStatus, Operator, RunHistory
from kreassign.model.text import format_amount, some_of
from kreassign.operations.whole_file import PRIVATE_MODE, replace_file

# Paths of journals, lookup of a run, and the present operator.

LAST = "last"
"""Stands for the id of the run that began last on the cluster in force."""


def default_state_dir() -> Path:
    """Default state directory: `kreassign` below XDG_STATE_HOME, or below `~/.local/state`."""
    state_home = os.environ.get("XDG_STATE_HOME")
    return (Path(state_home) if state_home else Path.home() / ".local" / "state") / "kreassign"


def make_state_dir(folder: Path) -> None:
    """Create it if missing: only its owner may enter it, whatever the umask says."""
    make_folder(folder)


def is_active(path: Path) -> bool:
    """True if a process is writing this journal now."""
    return active_run_in(path.parent) == path.stem


def this_operator() -> Operator:
    """User, host and command line of this process."""
    user = os.geteuid()
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:  # a container may run under a user id without a name
        name = str(user)
    script, *arguments = sys.argv or [""]
    command = Path(script).parent if Path(script).name == "__main__.py" else Path(script)  # by `python -m kreassign`
    # A word may be any bytes, and a journal is text.
    words = tuple(word.encode(errors="backslashreplace").decode() for word in (command.name, *arguments))
    return Operator(name, os.uname().nodename, words)


def is_journal(subject: str) -> bool:
    """True if a text is the path of a journal, and not the id of a run or another file."""
    return subject.endswith(SUFFIX) and is_file(subject)


def is_file(subject: str) -> bool:
    """True if a text is the path of a file; also of what cannot be a path it is told that it is none."""
    with suppress(OSError, ValueError):
        return Path(subject).is_file()
    return False


def all_journals(state_dir: Path) -> tuple[Path, ...]:
    """Journals of all runs, oldest first."""
    return find_journals(state_dir)


# Which run is meant: the one that is named, or without a name a run of the cluster in force, and never another's.


@dataclass(frozen=True, slots=True)
class InForce:
    """The cluster that commands mean: the id with which it answered, or `why` it is not known.

    Without both no cluster is named: then a run is meant without its name only if runs of one cluster alone are known.
    `is_silent` if it was asked, and the options are not at fault.
    """

    cluster_id: str | None = None
    why: str | None = None
    is_silent: bool = False


NO_CLUSTER = InForce()
NAMED_RUNS = 5
"""Number of runs that a sentence names."""


def find_journal(state_dir: Path, run: str | None = None, here: InForce = NO_CLUSTER) -> Path:
    """Find the journal of a run: by its id, by the path of the journal, or of the run that is meant without a name.

    Raises InputError, also where several runs could be meant.
    """
    if run is not None and run != LAST:
        return named_journal(state_dir, run)
    candidates = runs_meant(state_dir, here, is_last=run == LAST)
    if len(candidates) > 1:
        several = f"runs of {len(candidates)} clusters are there, and no cluster is named"
        which = "name the run, or the cluster (--bootstrap-server)"
        raise InputError(f"{several}: {_with_clusters(candidates)}; {which}")
    return candidates[0]


BEGINS = "`kreassign run PLAN` begins one"


def named_journal(state_dir: Path, run: str) -> Path:
    """Find the journal of a run by its id, by the beginning of just one id, or by its path. Raises InputError."""
    if is_journal(run):
        return Path(run)
    found = find_journals(state_dir, run)
    begun = () if found else tuple(path for path in find_journals(state_dir) if path.stem.startswith(run))
    if len(found or begun) == 1:
        return (found or begun)[0]
    if found:
        raise InputError(f"run {run} has journals of {len(found)} clusters in {state_dir}; name the file of one")
    if begun:
        raise InputError(f"the ids of {len(begun)} runs begin with {run}: {_with_clusters(begun[::-1])}; name one")
    latest = f"; the latest runs are: {ids}" if (ids := _latest_ids(state_dir)) else f", nor any other; {BEGINS}"
    other = " (that is a file; a run is named by its id)" if is_file(run) else ""
    raise InputError(f"there is no run {run} in {state_dir}{other}{latest}")


def runs_meant(state_dir: Path, here: InForce, *, is_last: bool = False) -> tuple[Path, ...]:
    """Journals of the runs that may be meant without a name, at least one: of each cluster the active or latest run.

    That is the cluster in force or, where none is named, every cluster with runs; with `is_last`, the latest runs.
    Raises InputError if there is none, or if the cluster in force is not known: its run may be another one.
    """
    known = find_journals(state_dir)
    if not known:
        raise InputError(f"there is no run in {state_dir}; {BEGINS}")
    if here.why is not None:
        why = f"{here.why}, so which run is meant is not known"
        raise InputError(f"{why}; name the run. The latest runs are: {_latest_ids(state_dir)}")
    if here.cluster_id is not None:
        known = cluster_journals(state_dir, here.cluster_id)
    if not known:
        others = f"runs of other clusters are there: {_latest_ids(state_dir)}"
        raise InputError(f"there is no run of cluster {here.cluster_id} in {state_dir}; {others}")
    by_cluster: dict[Path, Path] = {}
    for path in known:
        if is_last or path.parent not in by_cluster or not is_active(by_cluster[path.parent]):
            by_cluster[path.parent] = path
    newest = sorted(by_cluster.values(), key=lambda path: path.stem, reverse=True)
    return tuple(sorted(newest, key=is_active, reverse=True))


def refuse_run_of_other_cluster(path: Path, cluster_id: str) -> None:
    """Raise InputError unless the run of this journal is of this cluster; JournalDamaged if that cannot be read."""
    refuse_other_cluster(f"run {path.stem} is of", first_event(path).cluster_id, cluster_id)


def cluster_of(path: Path) -> str:
    """Id of the cluster of a run, from the path of its journal."""
    return unquote(path.parent.name)


def _latest_ids(state_dir: Path) -> str:
    return _with_clusters(find_journals(state_dir)[::-1])


def _with_clusters(journals: Sequence[Path]) -> str:
    """The first of these runs with their clusters."""
    return some_of((f"{path.stem} (cluster {cluster_of(path)})" for path in journals), NAMED_RUNS)


# The facts of a plan beside the journal of its run: reports of the run use its bound and reasons.
#
# The plan's own files are where the operator put them, and may be deleted or replaced when the run is reported.

KEPT_SUFFIX = ".facts.json.gz"
MOST_BYTES = 500_000_000
"""Largest facts file. A move takes some hundred bytes, so this is more than a million moves."""


def kept_facts_path(journal: Path) -> Path:
    """Path of the facts kept for a run: `RUN_ID.facts.json.gz` beside its journal."""
    return journal.with_suffix(KEPT_SUFFIX)


def keep_facts(journal: Path, facts: PlanFacts) -> None:
    """Keep the facts of the plan that a run executes, readable by their owner only. Raises OSError."""
    replace_file(kept_facts_path(journal), gzip.compress(format_facts(facts).encode()), PRIVATE_MODE)


def kept_facts(journal: Path, plan_id: str, *, most_bytes: int = MOST_BYTES) -> PlanFacts | None:
    """Facts kept for the run of this journal; None without, or if they are of another plan.

    At most `most_bytes` are ever decompressed. Raises MalformedPlan, which names the file.
    """
    kept = kept_facts_path(journal)
    if not kept.exists():
        return None
    try:
        with gzip.open(kept) as file:
            content = file.read(most_bytes + 1)
        found = None if len(content) > most_bytes else parse_facts(content.decode())
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise MalformedPlan(f"cannot be read: {machine_reason(error)}", path=str(kept)) from error
    except MemoryError:
        raise MalformedPlan("needs more memory than there is", path=str(kept)) from None
    except MalformedPlan as error:
        raise error if error.path else MalformedPlan(str(error), path=str(kept)) from error
    if found is None:
        what = f"holds more than {format_amount(most_bytes, 'B')}, which no plan's facts do"
        raise MalformedPlan(what, path=str(kept))
    return found if found.plan_id == plan_id else None


# The cluster of a run by the operator's name for it, from its journal alone. Asks no cluster.
#
# The command that started or resumed a run is in the journal. It names the cluster (`--cluster prod`) or its address; a
# run in a state directory of one cluster only belongs to that cluster. A cluster named only by the environment
# stays unknown, because a wrong name would be worse than none.


@dataclass(frozen=True, slots=True)
class NamedCluster:
    """A cluster of the file of clusters: its address, and the state directory of its runs, if it has its own."""

    name: str
    bootstrap_server: str | None = None
    state_dir: Path | None = None


def name_of(run: RunHistory, journal: Path, named: Sequence[NamedCluster]) -> str | None:
    """Name of a run's cluster; None if unknown."""
    for operator in reversed(run.operators):
        chosen = _given("--cluster", operator.command)
        if chosen is not None:
            return next((one.name for one in named if one.name == chosen), None)
        address = _given("--bootstrap-server", operator.command)
        if address is not None:
            there = [one.name for one in named if one.bootstrap_server == address]
            return there[0] if len(there) == 1 else None
    owners = [one.name for one in named if one.state_dir is not None and one.state_dir in journal.parents]
    return owners[0] if len(owners) == 1 else None


def _given(option: str, command: Sequence[str]) -> str | None:
    for word, following in pairwise((*command, "")):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option and following:
            return following
    return None


# Follow a run that another process executes.

LOOK_EVERY_S = 0.5


def stopped_text(process: int) -> str:
    """Say that the process of a run is stopped, and how to continue it."""
    return f"its process {process} is stopped; continue it with `fg` in its terminal, or with `kill -CONT {process}`"


def seen_from_outside(path: Path, run: RunView, meter: ProgressMeter, *, is_executed: bool) -> RunHistory:
    """A run for an outside observer, who knows whether its process exists and is running."""
    found = history(run if is_executed else run.as_left, meter, is_active=is_executed)
    if not is_executed:
        way_on = f"its moves in flight go on, and `kreassign resume {path.stem}` goes on with the rest"
        return found if found.state in AT_REST else found.without_end(f"no process executes it; {way_on}")
    if (process := stopped_process_in(path.parent)) is not None:
        stop = stopped_text(process)
    elif (lock := foreign_lock(path)) is not None:
        stop = f"{lock}, so that it can start nothing; end or continue that process"
    else:
        return found
    stop = f"{stop}; until then its moves in flight go on, throttled but not guarded"
    return replace(found, outlook=(stop, *found.outlook)).without_end(stop)


def watch(path: Path, clock: Clock = SYSTEM_CLOCK) -> Iterator[RunHistory]:
    """A run with its progress, whenever it may have changed, until no process executes it any more."""
    follower = RunFollower(path)
    while True:
        run = follower.look()
        yield run
        if not run.is_active:
            return
        clock.sleep(LOOK_EVERY_S)


def status(path: Path) -> RunHistory:
    """Return the state of a run so far. Raises JournalUnreadable."""
    # Check before reading: a process that ends in between has journaled its end.
    is_executed = is_active(path)
    run = read_view(path)
    return history(run if is_executed else run.as_left, is_active=is_executed)


def status_or_problem(path: Path) -> RunHistory | UnreadableJournal:
    """Return `status`, or the journal as unreadable."""
    try:
        return status(path)
    except JournalUnreadable as error:
        return UnreadableJournal.of(path, error)


def status_and_progress(path: Path) -> RunHistory:
    """Return `status` with the progress of its moves. Raises JournalUnreadable."""
    is_executed = is_active(path)
    return seen_from_outside(path, *read_progress(path), is_executed=is_executed)


# One run for its followers: figures, brokers, moves and problems.


class RunFollower:
    """Follows a run from its journal: each `look` reads new events. Raises what reading raises."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._machine, self._meter, position = latest_start(path)
        self._reader = JournalReader(path, position)

    def look(self) -> RunHistory:
        """Read the new events and return the present state."""
        # Check before reading: events that a process wrote before it ended are then among the new events.
        goes_on = is_active(self._path)
        for event in self._reader.new_events():
            self._machine.replay(event)
            self._meter.follow(event)
        return seen_from_outside(self._path, self._machine.view, self._meter, is_executed=goes_on)


# Runs of a state directory: a summary of each, and lookup by id.


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in one line. Times are ms since the epoch.

    `state` is its phase, or `unreadable` where the journal cannot be read, `problem` says why. `is_active` while a
    process executes it. `can_be_resumed` where none does and anything is left to do.
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
    """Runs of state directories. An ended run is read once, as long as its journal does not change.

    `names` has the clusters of the runs that were read, by id, as `named` calls them.
    """

    state_dirs: tuple[Path, ...]
    named: tuple[NamedCluster, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    _known: dict[Path, tuple[object, RunSummary]] = field(default_factory=dict)

    def newest(self, count: int, cluster_id: str | None = None) -> tuple[RunSummary, ...]:
        """The newest runs, at most `count`, newest first: of all clusters, or of one."""
        found: list[RunSummary] = []
        for path in sorted(self._journals(), key=lambda path: path.stem, reverse=True):
            if len(found) == count:
                break
            summary = self._summary(path)
            if cluster_id is None or summary.cluster_id == cluster_id:
                found.append(summary)
        return tuple(found)

    def journal(self, run_id: str) -> Path:
        """Path of the journal of a run. Raises InputError.

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

    def has(self, run_id: str) -> bool:
        """True if just one run has this id."""
        return len(self._journals(run_id)) == 1

    def summary(self, run_id: str) -> RunSummary:
        """Summary of one run. Raises InputError."""
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
        found = status_or_problem(path)
        if isinstance(found, UnreadableJournal):
            return _unreadable(found, active=active)
        if (name := name_of(found, path, self.named)) is not None:
            self.names[found.cluster_id] = name
        return run_summary(found)


def _stamp(path: Path) -> object:
    """Value that changes when a journal is written; None if the file is gone."""
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


def run_summary(found: RunHistory) -> RunSummary:
    """Summarise a run in one line."""
    statuses = found.moves_by_state
    return RunSummary(
        run_id=found.run_id,
        cluster_id=found.cluster_id,
        plan_id=found.plan_id,
        state=found.state,
        is_active=found.is_active,
        is_held=found.is_held and found.ended_ms is None,
        can_be_resumed=found.can_be_resumed,
        started_ms=found.started_ms,
        ended_ms=found.ended_ms,
        move_count=len(found.moves),
        complete_count=statuses[MoveStatus.COMPLETE],
        failed_count=statuses[MoveStatus.FAILED],
        copied_bytes=found.bytes_copied,
        problem_count=len(found.problems),
        in_flight_count=found.in_flight_count,
    )


# Remove what an interrupted run can never settle: lost brokers, unreadable journals.


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Settings given up on lost brokers, and those still to be restored elsewhere."""

    left_behind: tuple[str, ...]
    residue: tuple[str, ...]


def forget_brokers(path: Path, brokers: Collection[int], clock: Clock = SYSTEM_CLOCK) -> Forgotten:
    """Let the interrupted run of this journal restore nothing any more on brokers that are lost for good.

    Nothing is sent; the journal says who did so. Raises InputError when the run has nothing to restore there, or a
    process executes a run of its cluster, JournalUnreadable when the journal cannot be read.
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
            there = f"; it has on {named_brokers(owners)}" if owners else ""
            raise InputError(f"run {path.stem} has nothing to restore on {named_brokers(sorted(brokers))}{there}")
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
    if found.is_locked:
        raise found.error
    return found, set_aside(path)
