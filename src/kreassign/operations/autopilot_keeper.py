"""Keep an autopilot's decisions in a second place, too, from which any host goes on where a lost one stopped.

The means are those of runs (`executor/journal/mirror.py`): nothing follows from a decision before it is there, and of
two processes one goes on. A process that finds the decisions of another host stands by as long as that one executes a
repair by the lease of the cluster, and, unless it has the lease of autopilots, as long as the decisions go on. Plans,
requests and signatures are kept there as events.
"""

from __future__ import annotations

import re
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.autopilot.events import Began, Ended, Event, FileKept, Name, Resumed
from kreassign.autopilot.facts import SIGN_OF_LIFE_MS
from kreassign.autopilot.memory import Memory, memory_of
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import InputError, JournalDamaged, MirrorUnavailable, StandsBy
from kreassign.executor.journal import BEGINNING, OWN, Journal, Kept, Mirror, bring_home, read_events
from kreassign.executor.journal.file import Row, event_from_json, unstored
from kreassign.executor.journal.folder import make_folder
from kreassign.executor.journal.mirror import ENTRY_BYTES
from kreassign.model.text import format_seconds
from kreassign.operations.autopilot_journal import DECISIONS, approval_path, decisions_path, proposal_path
from kreassign.operations.mirrors import bring, checked_destination, executing, place_at
from kreassign.operations.plan_files import facts_path
from kreassign.operations.run import RunContext
from kreassign.operations.text_files import read_text
from kreassign.operations.whole_file import replace_file

LOST_S = SIGN_OF_LIFE_MS / 1000 + 120
"""A host that decides nothing for so long is lost. Shorter than a break after which evidence begins again."""


@dataclass(slots=True)
class Vigil:
    """How long the decisions of another host have not gone on, by the clock of this one; lost after `lost_s`."""

    clock: Clock
    lost_s: float = LOST_S
    _latest: str = BEGINNING.digest
    _since_s: float = 0.0

    def quiet_s(self, digest: str) -> float:
        """Seconds for which the latest decision has been the one with this digest."""
        now_s = self.clock.monotonic_s()
        if digest != self._latest:
            self._latest, self._since_s = digest, now_s
        return now_s - self._since_s


def kept_decisions(*, is_dry: bool) -> Kept:
    """The journal of decisions, as mirrors name it."""
    return Kept(
        f"{OWN}autopilot-dry-run" if is_dry else f"{OWN}autopilot",
        "the autopilot",
        f"`kreassign autopilot status{' --dry-run' if is_dry else ''} --journal-from",
        "Start the autopilot on the host whose state directory has its journal, with another --journal-to; or without "
        "it, in an empty place, and it begins again, from scratch",
    )


@dataclass(frozen=True, slots=True)
class Keeper:
    """How a process resumes the decisions about a cluster: unless another host keeps them.

    A process that `has_lease`, that of autopilots, waits for no decisions of others: they decide nothing without it.
    """

    client: AdminClient
    context: RunContext
    cluster_id: str
    clock: Clock
    vigil: Vigil
    is_dry: bool = False
    has_lease: bool = False

    @property
    def path(self) -> Path:
        """Journal of decisions in the state directory."""
        return decisions_path(self.context.state_dir, self.cluster_id, is_dry=self.is_dry)

    def resume(self) -> tuple[Journal, tuple[Event, ...]]:
        """Open the journal for writing, begun if there is none, with its events.

        Raises StandsBy while another host keeps it; MirrorUnavailable, JournalDamaged.
        """
        before = read_events(self.path, DECISIONS) if self.path.exists() else ()
        kept_in = memory_of(before).kept_in
        wanted = self.context.destination(kept_in)
        former = self._former(kept_in) if kept_in != wanted else None
        mirror = None if wanted is None else self._home(wanted, kept_in)
        with ExitStack() as failing:
            if self.path.exists():
                journal, events = Journal.resume(self.path, self.cluster_id, form=DECISIONS)
            else:
                began = Began(self.clock.now_ms(), self.cluster_id)
                journal, events = Journal.begin(self.path, began, "the autopilot", DECISIONS), (began,)
            failing.callback(journal.close)
            if mirror is not None:
                journal.keep_in(mirror)
            if former is not None:
                journal.leave(former)
            if wanted is not None or kept_in is not None:
                resumed = Resumed(self.clock.now_ms(), self.context.operator.name, wanted)
                journal.append(resumed)
                events = (*events, resumed)
            failing.pop_all()
        self.vigil.lost_s = LOST_S  # whoever knew that a host was lost does not know that of the next one
        return journal, events

    def _former(self, destination: str | None) -> Mirror | None:
        """The place that is left; None, with a warning, where it cannot be read: its operator means to do without."""
        try:
            return None if destination is None else self._home(destination, destination)
        except (MirrorUnavailable, JournalDamaged) as error:
            self.context.warn(f"{error}. Whether another host has gone on from there is not known")
            return None

    def _home(self, destination: str, kept_in: str | None) -> Mirror:
        """Bring the journal up to a place."""
        mirror = Mirror(
            place_at(destination, self.client), self.cluster_id, kept_decisions(is_dry=self.is_dry), self.clock
        )
        bring_home(self.path, mirror, lambda rows: self._refuse_if_kept(destination, rows), DECISIONS)
        if mirror.position == BEGINNING and destination == kept_in:
            raise MirrorUnavailable(mirror.place, mirror.lost)
        return mirror

    def _refuse_if_kept(self, destination: str, rows: Sequence[Row]) -> None:
        events = tuple(event_from_json(row[2], unstored(row[3]), DECISIONS.kinds) for row in rows)
        memory, last = memory_of(events), events[-1]
        who = "another host" if memory.keeper is None else memory.keeper.by
        if (place := memory.kept_in) != destination and memory.keeper is not None:
            what = f"the autopilot keeps its decisions in {place} by now" if place else "the autopilot left it"
            raise InputError(f"{destination} is no place of decisions any more: {what}, by {who}; name another one")
        if (act := memory.running) and (holder := executing(self.client, act.run_id)):
            raise StandsBy(f"{holder} repairs {act.name}; this one goes on when that is lost, or over")
        quiet_s = self.vigil.quiet_s(rows[-1][4])
        age_s = max(quiet_s, (self.clock.now_ms() - last.at_ms) / 1000)
        if not (self.has_lease or isinstance(last, Ended)) and age_s < self.vigil.lost_s:
            raise StandsBy(
                f"{who} looks after the cluster, by its decisions in {destination}; this one goes on when they have "
                f"not gone on for {format_seconds(self.vigil.lost_s)}"
            )

    def bring_repair(self, memory: Memory) -> None:
        """Bring the run of the repair that runs, which may have gone on elsewhere, into the state directory."""
        act, destination = memory.running, memory.kept_in
        if act is not None and destination is not None:
            bring(self.client, destination, self.context.state_dir, act.run_id, asks_lease=True)


def kept_likewise(context: RunContext, memory: Memory) -> RunContext:
    """The context of repairs: their journals are kept where the decisions are."""
    return context if memory.kept_in is None else replace(context, journal_to=memory.kept_in)


@contextmanager
def decisions_from_afar(
    client: AdminClient, destination: str, *, is_dry: bool = False, clock: Clock = SYSTEM_CLOCK
) -> Iterator[Path]:
    """A state directory with the decisions about this cluster, as a destination has them, until the end of the block.

    Raises InputError if it has none; MirrorUnavailable, JournalDamaged.
    """
    cluster_id = client.describe_cluster().cluster_id
    place = place_at(checked_destination(destination), client)
    mirror = Mirror(place, cluster_id, kept_decisions(is_dry=is_dry), clock)
    with tempfile.TemporaryDirectory() as folder:
        state_dir = Path(folder)
        bring_home(decisions_path(state_dir, cluster_id, is_dry=is_dry), mirror, form=DECISIONS)
        if mirror.position == BEGINNING:
            raise InputError(
                f"{destination} has no decisions about this cluster; name the place as `kreassign autopilot watch` had "
                "it (--journal-to)"
            )
        yield state_dir


# Files about repairs: whoever goes on has the same plan, and the signatures that people gave.

_FILE = re.compile(r"(?:proposals|approvals)/[a-z]+(?:-[a-z]+)*-[0-9a-f]{8}\.[^/\0]+")


@dataclass(slots=True)
class KeptFiles:
    """Texts of the files about repairs that are among the events of a journal, by their names from its folder on."""

    folder: Path
    texts: dict[str, str] = field(default_factory=dict)

    def remember(self, event: FileKept) -> None:
        """Take in a file; those that belong to an earlier plan or request go with it."""
        first = next((one for one in _firsts(self.folder, event.name) if self._named(one) == event.file), None)
        if first is not None:
            stem = event.file.removesuffix(".json")
            self.texts = {name: text for name, text in self.texts.items() if not name.startswith(f"{stem}.")}
        self.texts[event.file] = event.text

    def restore(self) -> None:
        """Write them where they are not. Raises OSError."""
        for file, text in self.texts.items():
            path = self.folder / file
            if _FILE.fullmatch(file) and not (path.exists() and path.read_bytes() == text.encode()):
                make_folder(path.parent)
                replace_file(path, text.encode())

    def fresh(self, at_ms: int, name: Name) -> Iterator[FileKept]:
        """Files about a finding that are not among the events as they are, without those too large for an entry."""
        for path in _files(self.folder, name):
            try:
                event = FileKept(at_ms, name, self._named(path), read_text(path))
            except (OSError, InputError):
                continue  # no file of ours
            if self.texts.get(event.file) != event.text and len(zlib.compress(event.text.encode())) <= ENTRY_BYTES:
                self.remember(event)
                yield event

    def _named(self, path: Path) -> str:
        return str(path.relative_to(self.folder))


def _firsts(folder: Path, name: Name) -> tuple[Path, Path]:
    journal = folder / "decisions.sqlite"
    return proposal_path(journal, name), approval_path(journal, name)


def _files(folder: Path, name: Name) -> list[Path]:
    plan, request = _firsts(folder, name)
    signatures = sorted(request.parent.glob(f"{request.name}.*.sig")) if request.exists() else []
    return [one for one in (plan, facts_path(plan), request, *signatures) if one.is_file()]


def files_of(folder: Path, events: Sequence[Event]) -> KeptFiles:
    """Files that are among the events of a journal in this folder."""
    files = KeptFiles(folder)
    for event in events:
        if isinstance(event, FileKept):
            files.remember(event)
    return files
