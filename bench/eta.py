"""Errors of a run's predicted end: the predictions at 10, 25, 50 and 75 % of it against its real end.

Random plans on a twin in virtual time, long and short ones, carried out as `kreassign run` does; rehearsals of
the plans that `kreassign plan` makes for two scenarios, over throttles, below and beyond the network; and short runs on
real brokers (`eta_on_kafka.py`). What is predicted and measured is the end of the last move. An error of +10 % means
that the run was said to take a tenth of its whole time longer than it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from bench import eta_on_kafka
from bench.eta_told import ALL_AT_ONCE, Told, at_most
from bench.makespan import Forgetful
from bench.moves_on_twin import Case, random_case, twin_of
from kreassign.admin import AdminClient, client_settings
from kreassign.executor.events import Event, RunStarted
from kreassign.executor.guards import guard_settings
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.executor.preview import measure_writes
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.runner import Runner
from kreassign.executor.state import Machine, RunView
from kreassign.model import TopicPartition
from kreassign.model.pace import NO_LIMITS, Pace
from kreassign.model.plan import Plan
from kreassign.model.run import Phase
from kreassign.model.snapshot import ClusterSnapshot
from kreassign.model.throttle import ThrottleRates
from kreassign.operations import api
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.report import Recording, rehearse
from kreassign.operations.run import RunRequest
from kreassign.operations.snapshot import observe, whole_snapshot
from kreassign.operations.twin import scenario_of
from kreassign.twin.blueprint import TYPICAL, Speeds
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.transport import TwinTransport

PARTS = (0.10, 0.25, 0.50, 0.75)
MEASURED_S = 5.0


@dataclass(frozen=True, slots=True)
class Size:
    """Size of plans: brokers, moves, mean of the logarithms of their sizes, seconds between two polls."""

    brokers: int
    moves: int
    size_bytes: float
    poll_s: float
    seeds: range


LONG = Size(8, 80, 1e9, 4.0, range(2))
SHORT = Size(5, 12, 8e7, 1.0, range(5))


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to run: throttle in bytes per second, what of each broker's rate is written to what moves, and the pace."""

    name: str
    size: Size
    throttle: int | None = None
    write_share: float = 0.0
    pace: Pace = NO_LIMITS
    leaders_leave: bool = False


KINDS = (
    Kind("no throttle", LONG),
    Kind("no throttle, written to", LONG, write_share=0.05),
    Kind("throttle 20 MB/s", LONG, 20_000_000),
    Kind("throttle 20 MB/s, written to", LONG, 20_000_000, 0.02),
    Kind("5 moves at a time", LONG, pace=at_most(5)),
    Kind("all at once", LONG, pace=ALL_AT_ONCE),
    Kind("leaders change, written to", LONG, write_share=0.05, leaders_leave=True),
    Kind("short", SHORT),
    Kind("short, throttle 40 MB/s", SHORT, 40_000_000),
    Kind("short, throttle 40 MB/s, written to", SHORT, 40_000_000, 0.02),
    Kind("short, throttle 40 MB/s, leaders change", SHORT, 40_000_000, leaders_leave=True),
    Kind("short, throttle 200 MB/s, beyond the network", SHORT, 200_000_000),
    Kind("short, 2 moves at a time", SHORT, pace=at_most(2)),
    Kind("short, all at once", SHORT, pace=ALL_AT_ONCE),
)

REHEARSED_THROTTLES = (20_000_000, 50_000_000, 100_000_000, 200_000_000, 400_000_000)
REHEARSED = (("skewed", None), ("scale-out", None), ("skewed", 0.6))
"""Scenarios, each with its network as a part of the throttle, which then does not bind; None: far wider than that."""


@dataclass(frozen=True, slots=True)
class Error:
    """Error of a prediction as a part of the whole time (None: no prediction), and if the interval held."""

    part: float
    error: float | None
    is_inside: bool


class Listener:
    """Notes what is said after each event of the moves."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self._meter: ProgressMeter | None = None
        self._begun_ms: int | None = None

    def follow(self, event: Event, run: RunView) -> None:
        """Take in an event."""
        self._meter = self._meter or ProgressMeter(run)
        self._meter.follow(event)
        if run.phase is Phase.MOVING:
            self._begun_ms = event.at_ms if self._begun_ms is None else self._begun_ms
            self.told.append(Told((event.at_ms - self._begun_ms) / 1000, self._meter.progress().end))


def measure() -> None:
    """Print one row per kind of run, on the twin and then on Kafka, and all together."""
    print("| run | runs | s | at 10 % | at 25 % | at 50 % | at 75 % | in the interval |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    every: list[Error] = []
    runs = 0
    for kind in KINDS:
        runs += len(kind.size.seeds)
        every += row(kind.name, [told(_case(kind, seed), kind) for seed in kind.size.seeds], kind.size.poll_s)
    for name, found in rehearsals():
        runs += len(found)
        every += row(name, found, 1.0)  # polls are as long as a rehearsal chooses, and never shorter
    print(f"\n{summary(runs, every)}\n", flush=True)
    for name, found in eta_on_kafka.runs():
        runs += len(found)
        every += row(name, found, eta_on_kafka.POLL_S)
    print(f"\n{summary(runs, every)}")


def _case(kind: Kind, seed: int) -> Case:
    size = kind.size
    return random_case(
        size.brokers, size.moves, seed, kind.write_share, size.size_bytes, leaders_leave=kind.leaders_leave
    )


def row(name: str, runs: Sequence[list[Told]], poll_s: float) -> list[Error]:
    """Print what runs of one kind said; all their errors."""
    found = [error for one in runs for error in errors(one, poll_s)]
    cells = [_cell([error for error in found if error.part == part]) for part in PARTS]
    said = [error for error in found if error.error is not None]
    ends = sorted(one[-1].at_s for one in runs)
    took = f"{ends[0]:.0f}–{ends[-1]:.0f}"
    inside = sum(error.is_inside for error in said)
    print(f"| {name} | {len(runs)} | {took} | {' | '.join(cells)} | {inside} of {len(said)} |", flush=True)
    return found


def told(case: Case, kind: Kind) -> list[Told]:
    """Predictions of the end of a run of this plan, at each look."""
    listener = Listener()
    with twin_of(case) as (_, clock, client):
        chosen = RunSettings("run", clock.now_ms(), ThrottleRates(kind.throttle), guard_settings(), kind.pace)
        started = prepare(client, case.plan, chosen)
        if kind.write_share:
            started = _with_writes(started, measure_writes(client, clock, started.moves, MEASURED_S).known)
        found = Runner(client, clock, Forgetful(), listener=listener.follow, poll_s=kind.size.poll_s).start(started)
    assert found.state == "done", found.problems
    return listener.told


def rehearsals() -> Iterator[tuple[str, list[list[Told]]]]:
    """Ends that rehearsals of the plans for `REHEARSED` predict, by throttle."""
    planned = {name: _planned(name) for name, _ in REHEARSED}
    for throttle in REHEARSED_THROTTLES:
        said = [
            _rehearsed(
                *planned[name], throttle, TYPICAL if part is None else Speeds(network_bytes_per_s=part * throttle)
            )
            for name, part in REHEARSED
        ]
        yield f"rehearsal, throttle {throttle // 1_000_000} MB/s", said


def _planned(scenario: str) -> tuple[Plan, ClusterSnapshot]:
    transport = TwinTransport(Twin(scenario_of(scenario).blueprint, TwinSettings()))
    settings = client_settings(bootstrap_servers="broker-0:9092")
    with AdminClient.connect(settings, clock=transport, transport=transport) as client:
        snapshot = whole_snapshot(client, observe(client, transport.now_ms()), transport, MEASURED_S)
    return api.plan(snapshot).plan, snapshot


def _rehearsed(plan: Plan, snapshot: ClusterSnapshot, throttle: int, speeds: Speeds) -> list[Told]:
    request = RunRequest(PlanFile(plan), ThrottleRates(throttle))
    recording, machine, listener = Recording(), Machine(), Listener()
    ended = rehearse(request, snapshot, speeds, recording).history
    assert ended.state == "done", ended.problems
    for event in recording.events:
        machine.replay(event)
        listener.follow(event, machine.view)
    return listener.told


def _with_writes(started: RunStarted, writes: Mapping[TopicPartition, float]) -> RunStarted:
    moves = tuple(replace(move, write_bytes_per_s=writes.get(move.topic_partition, 0.0)) for move in started.moves)
    return replace(started, moves=moves)


def errors(told: list[Told], poll_s: float) -> Iterator[Error]:
    """The errors at each part of a run that said this; the last thing it said was at its end, give or take a poll."""
    end_s = told[-1].at_s
    for part in PARTS:
        then = [one for one in told if one.at_s <= part * end_s][-1]  # the last of an instant: after its observation
        if then.end is None:
            yield Error(part, None, is_inside=False)
        else:
            left_s = end_s - then.at_s
            inside = then.end.earliest_s - poll_s <= left_s <= then.end.latest_s + poll_s
            yield Error(part, (then.end.expected_s - left_s) / end_s, inside)


def summary(runs: int, found: Iterable[Error]) -> str:
    """All errors in a sentence."""
    said = [error for error in found if error.error is not None]
    sizes = sorted(abs(error.error or 0.0) for error in said)
    inside = sum(error.is_inside for error in said)
    return (
        f"{runs} runs, {len(said)} predictions: median error {median(sizes):.1%}, nine in ten within "
        f"{sizes[int(0.9 * len(sizes))]:.1%}, worst {sizes[-1]:.1%}; {inside} ends ({inside / len(said):.0%}) were in "
        f"the interval that was told."
    )


def _cell(found: Sequence[Error]) -> str:
    """The median, least and most of what was said; a dash where nothing was."""
    said = sorted(error.error for error in found if error.error is not None)
    if not said:
        return "–"
    silent = f", {len(found) - len(said)} not said" if len(said) < len(found) else ""
    return f"{median(said):+.1%} ({said[0]:+.1%} to {said[-1]:+.1%}){silent}"
