"""A run in which much happens, in the shapes that the page reads: slowed, paused, killed, resumed, and guarded."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.report.records import RunTrail
from tests.report.runs import MB, STARTED_MS, Move, Run

S = 1_000


@dataclass(frozen=True, slots=True)
class Arrival:
    at_ms: int
    partition: int
    broker: int
    source: int
    done_bytes: int
    topic: str = "orders"


@dataclass(frozen=True, slots=True)
class Eta:
    at_ms: int
    eta_s: float
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A mark, or a line of the log."""

    at_ms: int
    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    at_ms: int
    broker: int
    bytes_per_s: int | None


@dataclass(frozen=True, slots=True)
class Sync:
    at_ms: int
    moving: int
    under_replicated: int | None = None
    under_min_isr: int | None = None
    offline: int | None = None


@dataclass(frozen=True, slots=True)
class Breach:
    guard: str
    reaction: str
    seen: str
    advice: str
    from_ms: int
    until_ms: int | None


def at(seconds: float) -> int:
    return STARTED_MS + round(seconds * S)


MOVES = tuple(
    Move("orders", number, (1, 2), (3, 2), submitted_ms=at(2 + 20 * number), completed_ms=at(24 + 20 * number),
         bytes_copied=110 * MB)
    for number in range(4)
)  # fmt: skip
EVENTFUL = Run(MOVES, ended_ms=at(90), throttle_bytes_per_s=10 * MB, was_throttle_kept=True)
MARKS = (
    Said(at(10), "throttle: 5 MB/s per broker", "throttle"),
    Said(at(20), "paused: nothing new is started", "paused"),
    Said(at(30), "released: moves are started again", "released"),
    Said(at(40), "the process that executed the run ended without a word", "killed"),
    Said(at(55), "resumed by ann@host: kreassign resume", "resumed"),
    Said(at(60), "under-replicated: 1 partition is out of sync", "guard"),
)
TRAIL = RunTrail(
    arrivals=tuple(
        Arrival(at(second), number, 3, 1, 11 * MB * (second - 2 - 20 * number) // 2)
        for second in range(2, 85, 2)
        for number in range(4)
        if 2 + 20 * number <= second <= 22 + 20 * number
    ),
    etas=tuple(Eta(at(second), 84.0 - second) for second in range(4, 84, 4)),
    breaches=(
        Breach("under-replicated", "hold", "1 partition is out of sync", "Wait until it is back.", at(60), at(70)),
        Breach("disk", "warn", "broker 3 is nearly full", "Make room.", at(80), None),
    ),
    marks=MARKS,
    throttle=(Step(at(1), 1, 20 * MB), Step(at(1), 3, 20 * MB), Step(at(10), 1, 5 * MB), Step(at(10), 3, 5 * MB),
              Step(at(55), 3, 60 * MB), Step(at(88), 1, None), Step(at(88), 3, None)),
    in_sync=(Sync(at(3), 0), Sync(at(30), 0, 2, 1, 0), Sync(at(60), 1, 5, 2, 1), Sync(at(70), 0, 0, 0, 0)),
    log=(*MARKS, Said(at(90), "the run is done")),
    planned_s=40.0,
)  # fmt: skip


def huge_run(brokers: int = 1_000, partitions: int = 100_000) -> tuple[Run, RunTrail]:
    """A run of so many moves on so many brokers: those of `plans.huge`."""
    began = {number: 900 * number // partitions for number in range(partitions)}
    moves = tuple(
        Move(
            f"topic-{number % 500}", number // 500,
            (number % brokers, (number + 1) % brokers), ((number + 7) % brokers, (number + 1) % brokers),
            at(began[number]), at(began[number] + 30),
        )
        for number in range(partitions)
    )  # fmt: skip
    arrivals = tuple(
        Arrival(at(began[number] + after), move.partition, move.target[0], move.original[0], done, move.topic)
        for number, move in enumerate(moves)
        for after, done in ((0, 0), (30, 100 * MB))
    )
    return Run(moves, ended_ms=at(930)), RunTrail(arrivals, (), (), (), (), (), ())
