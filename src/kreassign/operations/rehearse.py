"""A run on the twin of a cluster, in virtual time: the same machine, with nothing at stake.

What is learnt: how long it takes, what the brokers bear meanwhile, and what guards would say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from kreassign.admin import AdminClient, client_settings
from kreassign.executor.events import Event, MovesObserved, Request, RunStarted, VerdictsRecorded
from kreassign.executor.history.run_history import RunHistory
from kreassign.executor.preflight.prepare import prepare
from kreassign.executor.runner import Runner
from kreassign.executor.state import MoveRecord, RunView, left_by_destination
from kreassign.model.snapshot import ClusterSnapshot
from kreassign.operations.run import RunRequest
from kreassign.operations.snapshot import Observation, observe
from kreassign.twin.blueprint import Blueprint
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.faults import PlannedFault, schedule_faults
from kreassign.twin.network.transport import TwinTransport
from kreassign.twin.setup.from_snapshot import TYPICAL, Speeds, blueprint_of

__all__ = ["TYPICAL", "Observer", "Recording", "Rehearsal", "Speeds", "rehearse"]

POLLS = 300
"""So often a copy that goes at its full rate is polled: enough to see peaks, few enough to be quick."""

LONGEST_POLL_S = 60.0
POLLS_AT_MOST = 10_000
"""A rehearsal that has not come to its end after so many polls is left: it may never end."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a rehearsal showed.

    `seconds` is None when it was left before its end. Peaks are per destination broker: moves under way at
    the same time, and bytes still to come in for them. `verdicts` is everything that guards said, in order.
    """

    history: RunHistory
    seconds: float | None
    peak_moves: dict[int, int]
    peak_bytes: dict[int, int]
    verdicts: tuple[str, ...]


@dataclass(slots=True)
class Recording:
    """All that happens in a rehearsal, for its page: its events, and the cluster before and after. Begins empty."""

    events: list[Event] = field(default_factory=list)
    before: Observation | None = None
    after: Observation | None = None


@dataclass(slots=True)
class Observer:
    """Follows a rehearsal; in place of a journal it forgets everything, unless somebody wants the events `kept`."""

    peak_moves: dict[int, int] = field(default_factory=dict)
    peak_bytes: dict[int, int] = field(default_factory=dict)
    verdicts: dict[str, None] = field(default_factory=dict)
    runner: Runner | None = None
    polls: int = 0
    kept: list[Event] | None = None

    def append(self, event: Event) -> None:
        """Keep the event where it is wanted."""
        if self.kept is not None:
            self.kept.append(event)

    def requests_after(self, number: int) -> tuple[Request, ...]:
        """Nobody asks for anything."""
        del number
        return ()

    def follow(self, event: Event, run: RunView) -> None:
        """Note peaks and verdicts, and leave when it takes too long."""
        if isinstance(event, VerdictsRecorded):
            self.verdicts |= dict.fromkeys(map(str, event.verdicts))
        if isinstance(event, MovesObserved):
            self._note_peaks(run.in_flight)
            self.polls += 1
            if self.polls > POLLS_AT_MOST and self.runner is not None:
                self.runner.request_stop()

    def _note_peaks(self, in_flight: Iterable[MoveRecord]) -> None:
        records = tuple(in_flight)
        moves = Counter(broker for record in records for broker in record.lagging)
        for peaks, now in ((self.peak_moves, moves), (self.peak_bytes, left_by_destination(records))):
            for broker, amount in now.items():
                peaks[broker] = max(peaks.get(broker, 0), amount)


def rehearse(
    request: RunRequest,
    snapshot: ClusterSnapshot,
    speeds: Speeds = TYPICAL,
    recording: Recording | None = None,
    faults: Iterable[PlannedFault] = (),
) -> Rehearsal:
    """Execute a plan on the twin of the cluster in a snapshot, from the time of the snapshot.

    `speeds` are those of its disks and networks, which a snapshot does not have. A `recording` gets all that happens.
    `faults` happen to it, counted from the start. Raises IllegalPlan when that cluster is not what the plan needs,
    InputError for a fault that it cannot have.
    """
    blueprint = blueprint_of(snapshot, speeds)
    settings = request.settings("rehearsal", snapshot.taken_ms)
    twin = Twin(blueprint, TwinSettings(start_ms=settings.at_ms))
    schedule_faults(twin, faults)
    transport, observer = TwinTransport(twin), Observer(kept=None if recording is None else recording.events)
    live = [broker.registered_address for broker in blueprint.brokers if not broker.is_down]
    bootstrap = ",".join(f"{address.host}:{address.port}" for address in live)
    chosen = client_settings(bootstrap_servers=bootstrap)
    with AdminClient.connect(chosen, clock=transport, transport=transport) as client:
        if recording is not None:
            recording.before = observe(client, settings.at_ms)
        started = prepare(client, request.plan.plan, settings, expected=request.plan.expected)
        if recording is not None:
            recording.events.append(started)  # which whoever makes a journal writes into it
        pause_s = _pause(started, blueprint)
        observer.runner = Runner(client, transport, observer, listener=observer.follow, poll_s=pause_s)
        found = observer.runner.start(started)
        if recording is not None:
            recording.after = observe(client, found.ended_ms or transport.now_ms())
    return Rehearsal(
        history=found,
        seconds=None if found.ended_ms is None else (found.ended_ms - settings.at_ms) / 1000,
        peak_moves=dict(sorted(observer.peak_moves.items())),
        peak_bytes=dict(sorted(observer.peak_bytes.items())),
        verdicts=tuple(observer.verdicts),
    )


def _pause(started: RunStarted, blueprint: Blueprint) -> float:
    """Seconds between two polls: by how long the fullest destination takes at its full rate."""
    incoming: dict[int, int] = {}
    for move in started.moves:
        for broker in move.adding:
            incoming[broker] = incoming.get(broker, 0) + move.size_bytes
    fastest = max(hardware.net_in_bytes_per_s for hardware in blueprint.hardware.values())
    rate = started.rates.slowest_bytes_per_s or fastest
    return min(LONGEST_POLL_S, max(1.0, max(incoming.values(), default=0) / rate / POLLS))
