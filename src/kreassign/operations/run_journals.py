"""Runs by their journals: find, list, follow, steer and forget them.

Another process may execute the run: requests reach it through its journal. Asks no cluster and loads no client, so
that `kreassign status` and `watch`, which are called repeatedly, start quickly.
"""

from __future__ import annotations

import gzip
import os
import pwd
import sys
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ExecutionError, InputError, JournalUnreadable, MalformedPlan, machine_reason
from kreassign.executor.events import (
    BrokersForgotten,
    CallFailed,
    CancelRequested,
    Event,
    HoldRequested,
    LeadersElected,
    MovesObserved,
    PaceRequested,
    ReleaseRequested,
    Request,
    ThrottleRequested,
    ThrottleRestored,
    ThrottleSet,
    Verified,
)
from kreassign.executor.history.run_history import (
    UnreadableJournal,
    history,
    latest_start,
    read_or_name,
    read_progress,
    read_view,
    refuse_over,
)
from kreassign.executor.journal import (
    BEGINNING,
    SUFFIX,
    Journal,
    JournalReader,
    active_run_in,
    cluster_journals,
    find_journals,
    first_event,
    foreign_lock,
    holding_process,
    post_request,
    set_aside,
    stopped_process_in,
    stored_snapshots,
)
from kreassign.executor.journal.folder import make_folder
from kreassign.executor.preview import rate_advice, starved
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.state import RunView
from kreassign.model.cluster import named_brokers
from kreassign.model.pace import PaceChange
from kreassign.model.plan_facts import PlanFacts, refuse_other_cluster
from kreassign.model.plan_facts_json import format_facts, parse_facts
from kreassign.model.run import AT_REST, MoveStatus, Operator, RunHistory
from kreassign.model.text import format_amount, least_rate_option, some_of
from kreassign.model.throttle import AdaptiveThrottle, check_rate
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
NAMED_BROKERS = 20


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


# Requests to a run that another process executes, through its journal; and watching the run.

PATIENCE_S = 60.0
"""A run reads requests between two calls; a call to a broker that hangs takes at most this long."""

ASK_EVERY_S = 0.2
LOOK_EVERY_S = 0.5


def pause(path: Path, clock: Clock = SYSTEM_CLOCK, *, by: str | None = None) -> Request:
    """Pause a run: no new moves start until `release`, those in flight go on. Raises what `ask` raises."""
    name = by or this_operator().name
    return ask(path, lambda number: HoldRequested(clock.now_ms(), number, name), clock)


def release(path: Path, clock: Clock = SYSTEM_CLOCK) -> Request:
    """Go on with a paused run: moves start again. Raises what `ask` raises."""
    return ask(path, lambda number: ReleaseRequested(clock.now_ms(), number), clock)


def cancel(path: Path, clock: Clock = SYSTEM_CLOCK, *, is_now: bool = True, by: str | None = None) -> Request:
    """End a run now, or else when what is in flight is done. Raises what `ask` raises."""
    name = by or this_operator().name
    return ask(path, lambda number: CancelRequested(clock.now_ms(), number, is_now, name), clock)


def set_throttle(
    path: Path,
    bytes_per_s: int | None,
    brokers: Iterable[int] = (),
    auto: AdaptiveThrottle | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Request:
    """Change the throttle of a run: of these brokers, or of all.

    Raises InputError for a rate that no run can have, which would end its process, and for a broker that has no part in
    it; and what `ask` raises.
    """
    if bytes_per_s is not None and bytes_per_s <= 0:
        raise InputError(f"with {bytes_per_s} no move would ever end; give more, or no limit")
    check_rate(bytes_per_s)
    named = tuple(brokers)
    if named:
        of_run = {broker for record in read_view(path).records.values() for broker in record.brokers}
        if strange := sorted(set(named) - of_run):
            who = f"broker {strange[0]} has" if len(strange) == 1 else f"brokers {some_of(strange, NAMED_BROKERS)} have"
            raise InputError(
                f"{who} no part in run {path.stem}; its brokers are {some_of(sorted(of_run), NAMED_BROKERS)}"
            )
    return ask(path, lambda number: ThrottleRequested(clock.now_ms(), number, bytes_per_s, named, auto), clock)


def starved_moves(path: Path) -> tuple[str, ...]:
    """Sentences on moves of a run that never end at its throttle, by what was written when it began; advice first."""
    run = read_view(path)
    moves = [record.wanted for record in run.records.values() if record.ended_ms is None]
    writes = {move.topic_partition: move.write_bytes_per_s for move in moves}
    rates, caps = run.control.rates, run.control.pace.caps
    found = [str(one) for one in starved(moves, writes, rates, caps) if one.is_certain]
    least = least_rate_option(rate_advice(moves, writes, caps).bytes_per_s)
    return (f"the least rate that works for all moves left is {least}", *found) if found else ()


IN_FORCE_S = 10.0
"""A run looks at its moves, and writes settings, within a poll or two, where the cluster answers."""

LOOKS_AGAIN = "as soon as it looks at its moves again"
"""When a request to hold, to go on, or for another pace is in force: what was chosen before it is still sent."""

_AFTER_A_LOOK: tuple[type[Event], ...] = (MovesObserved, LeadersElected, ThrottleRestored, Verified)
"""Events after which nothing follows from what a run chose before; the last ones where no move is left."""


def in_force(path: Path, request: Request, sentence: str, awaited: str, clock: Clock = SYSTEM_CLOCK) -> str:
    """The sentence on an accepted request once it is in force, else that it was asked, and until when."""
    if is_in_force(path, request, clock):
        return sentence
    silence = status(path).silence
    return f"asked; {sentence} {awaited}" + ("" if silence is None else f"; {silence}")


def is_in_force(path: Path, request: Request, clock: Clock = SYSTEM_CLOCK) -> bool:
    """True once the run acts on an accepted request; False if its next call to the cluster fails, or takes long.

    A throttle is in force when its settings are written, or are as they should be; anything else when the run has
    looked at its moves since.
    """
    is_throttle = isinstance(request, ThrottleRequested)
    awaited = (ThrottleSet, MovesObserved) if is_throttle else _AFTER_A_LOOK
    reader = JournalReader(path, next((one.position for one in stored_snapshots(path)), BEGINNING))
    is_accepted, deadline_s = False, clock.monotonic_s() + IN_FORCE_S
    while True:
        for event in reader.new_events():
            is_accepted = is_accepted or (isinstance(event, Request) and event.request == request.request)
            if is_accepted and isinstance(event, CallFailed):
                return False
            if is_accepted and isinstance(event, ThrottleSet) and is_throttle:
                return not event.problems
            if is_accepted and isinstance(event, awaited):
                # Where settings cannot be read, moves are looked at before any is written.
                return not (is_throttle and read_view(path).is_throttle_due)
        if clock.monotonic_s() > deadline_s or not is_active(path):
            return False
        clock.sleep(ASK_EVERY_S)


def change_pace(path: Path, change: PaceChange, clock: Clock = SYSTEM_CLOCK) -> Request:
    """Change order, limits and hours of a run. Raises what `ask` raises."""
    return ask(path, lambda number: PaceRequested(clock.now_ms(), number, change), clock)


def refuse_if_over(path: Path, deed: str) -> None:
    """Raise InputError if nothing is left to do for the run with the journal at `path`."""
    refuse_over(read_view(path), deed)


def ask(path: Path, make: Callable[[int], Request], clock: Clock) -> Request:
    """Post a request, and wait until the run has accepted it in its journal.

    Raises InputError when no process executes the run, or it ended meanwhile; ExecutionError when its process is
    stopped or gone, or did not answer in time. A request is for the process that executes the run when it is stored:
    whoever is told that this one is gone was not heard, and is not later.
    """
    _refuse_unheard(path)
    process: str | None = None

    def make_for_process(number: int) -> Request:
        nonlocal process
        _refuse_unheard(path)
        process = holding_process(path.parent)
        return make(number)

    # The answer comes after the present events, so events before the latest snapshot need not be read.
    reader = JournalReader(path, next((one.position for one in stored_snapshots(path)), BEGINNING))
    request, deadline_s = post_request(path, make_for_process), clock.monotonic_s() + PATIENCE_S
    while True:
        # Before the events: a process that is gone by then has written all of its own.
        goes_on, is_same = is_active(path), holding_process(path.parent) == process
        # Matched by number: the run records the request by a clock of its own.
        taken_in = (event for event in reader.new_events() if isinstance(event, Request))
        if (heard := next((event for event in taken_in if event.request == request.request), None)) is not None:
            return heard
        if not goes_on:
            refuse_if_over(path, "steer")
            raise ExecutionError(f"run {path.stem} was left before it got the request; {_GO_ON.format(path.stem)}")
        if not is_same:
            raise ExecutionError(
                f"another process resumed run {path.stem} meanwhile, and does not get the request; look at "
                f"`kreassign status {path.stem}`, then ask again"
            )
        if (stopped := stopped_process_in(path.parent)) is not None:
            raise ExecutionError(f"run {path.stem} has not received the request yet: {_stopped(stopped)}")
        if clock.monotonic_s() > deadline_s:
            raise ExecutionError(
                f"run {path.stem} has not responded for {PATIENCE_S:.0f} s; it will respond when its current call "
                "to the cluster returns"
            )
        clock.sleep(ASK_EVERY_S)


def _refuse_unheard(path: Path) -> None:
    """Raise InputError or ExecutionError unless a process executes the run and is not stopped."""
    if not is_active(path):
        found = status_or_problem(path)
        if isinstance(found, UnreadableJournal):
            raise InputError(f"no process executes run {path.stem}; see `kreassign status {path.stem}`")
        refuse_if_over(path, "steer")
        raise InputError(f"no process executes run {path.stem}; {_GO_ON.format(path.stem)}")
    if (stopped := stopped_process_in(path.parent)) is not None:
        raise ExecutionError(f"run {path.stem} was not asked: {_stopped(stopped)}, then ask again")


_GO_ON = "`kreassign resume {}` goes on with it"


def _stopped(process: int) -> str:
    return f"its process {process} is stopped; continue it with `fg` in its terminal, or with `kill -CONT {process}`"


def seen_from_outside(path: Path, run: RunView, meter: ProgressMeter, *, is_executed: bool) -> RunHistory:
    """A run for an outside observer, who knows whether its process exists and is running."""
    found = history(run if is_executed else run.as_left, meter, is_active=is_executed)
    if not is_executed:
        way_on = f"its moves in flight go on, and `kreassign resume {path.stem}` goes on with the rest"
        return found if found.state in AT_REST else found.without_end(f"no process executes it; {way_on}")
    if (process := stopped_process_in(path.parent)) is not None:
        stop = _stopped(process)
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
