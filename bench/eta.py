"""How true the predicted end of a run is: what was said at 10, 25, 50 and 75 % of it against when it really ended.

Random plans on a twin in virtual time, carried out as `kreassign run` does, with a look every four seconds; what is
predicted and measured is the end of the last move. An error of +10 % means that the run was said to take a tenth of
its whole time longer than it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median

from bench.makespan import Forgetful
from bench.moves_on_twin import Case, random_case, twin_of
from kreassign.executor.events import Event, RunStarted
from kreassign.executor.guards.settings import settings
from kreassign.executor.preflight.prepare import RunSettings, prepare
from kreassign.executor.preflight.starvation import measure_writes
from kreassign.executor.progress.eta_interval import Interval
from kreassign.executor.progress.meter import ProgressMeter
from kreassign.executor.runner import Runner
from kreassign.executor.scheduling import NO_LIMITS, EndpointKind, Limit, Measure, Pace, PaceChange
from kreassign.executor.state import Phase, RunView
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.model import TopicPartition

PARTS = (0.10, 0.25, 0.50, 0.75)
SEEDS = range(2)
LOOK_S = 4.0
BROKERS, MOVES = 8, 80
MEASURED_S = 5.0
FEW = NO_LIMITS.changed(PaceChange(limits=(Limit(EndpointKind.CLUSTER, Measure.MOVES, 5),)))


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to run: throttle in bytes per second, what of each broker's rate is written to what moves, and the pace."""

    name: str
    throttle: int | None = None
    write_share: float = 0.0
    pace: Pace = NO_LIMITS


KINDS = (
    Kind("no throttle"),
    Kind("no throttle, written to", write_share=0.05),
    Kind("throttle 20 MB/s", 20_000_000),
    Kind("throttle 20 MB/s, written to", 20_000_000, 0.02),
    Kind("5 moves at a time", pace=FEW),
    Kind("all at once", pace=replace(NO_LIMITS, is_eager=True)),
)


@dataclass(frozen=True, slots=True)
class Told:
    """What was said at a time, in seconds since the first move was looked at."""

    at_s: float
    end: Interval | None


@dataclass(frozen=True, slots=True)
class Error:
    """How wrong it was, as a part of the whole time, and whether the end lay in the interval."""

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
    """Print one row per kind of run and part of it, and all together."""
    print(f"{BROKERS} brokers, {MOVES} moves, {len(SEEDS)} plans each\n")
    print("| run | at 10 % | at 25 % | at 50 % | at 75 % | in the interval |\n|---|---|---|---|---|---|")
    every = [error for kind in KINDS for error in _row(kind)]
    print(f"\n{_summary(every)}")


def _row(kind: Kind) -> list[Error]:
    cases = (random_case(BROKERS, MOVES, seed, kind.write_share) for seed in SEEDS)
    found = [error for case in cases for error in errors(told(case, kind))]
    cells = [", ".join(_percent(error.error) for error in found if error.part == part) for part in PARTS]
    inside = sum(error.is_inside for error in found)
    print(f"| {kind.name} | {' | '.join(cells)} | {inside} of {len(found)} |", flush=True)
    return found


def told(case: Case, kind: Kind) -> list[Told]:
    """What a run of this plan said of its end, at each look."""
    listener = Listener()
    with twin_of(case) as (_, clock, client):
        chosen = RunSettings("run", clock.now_ms(), ThrottleRates(kind.throttle), settings(), kind.pace)
        started = prepare(client, case.plan, chosen)
        if kind.write_share:
            started = _with_writes(started, measure_writes(client, clock, started.moves, MEASURED_S))
        found = Runner(client, clock, Forgetful(), listener=listener.follow, poll_s=LOOK_S).start(started)
    assert found.state == "done", found.problems
    return listener.told


def _with_writes(started: RunStarted, writes: Mapping[TopicPartition, float]) -> RunStarted:
    moves = tuple(replace(move, write_bytes_per_s=writes.get(move.topic_partition, 0.0)) for move in started.moves)
    return replace(started, moves=moves)


def errors(told: list[Told]) -> Iterator[Error]:
    """The errors at each part of a run that said this; the last thing it said was at its end."""
    end_s = told[-1].at_s
    for part in PARTS:
        then = max((one for one in told if one.at_s <= part * end_s), key=lambda one: one.at_s)
        if then.end is None:
            yield Error(part, None, is_inside=False)
        else:
            left_s = end_s - then.at_s
            inside = then.end.earliest_s - LOOK_S <= left_s <= then.end.latest_s + LOOK_S
            yield Error(part, (then.end.expected_s - left_s) / end_s, inside)


def _summary(found: Iterable[Error]) -> str:
    found = list(found)
    sizes = sorted(abs(error.error) for error in found if error.error is not None)
    inside = sum(error.is_inside for error in found)
    return (
        f"All {len(found)}: median error {median(sizes):.1%}, nine in ten within {sizes[int(0.9 * len(sizes))]:.1%}, "
        f"worst {sizes[-1]:.1%}; {inside} ends were in the interval that was told."
    )


def _percent(error: float | None) -> str:
    return "–" if error is None else f"{error:+.1%}"
