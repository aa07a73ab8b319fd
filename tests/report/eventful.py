"""A run in which much happens, in the shapes that the page reads: slowed, paused, killed, resumed, and guarded."""

from __future__ import annotations

from kreassign.model.run import (
    Arrival,
    Breach,
    EtaShown,
    InSync,
    LogLine,
    Mark,
    MarkKind,
    RunTrail,
    ThrottleStep,
    Timeline,
)
from tests.report.runs import MB, STARTED_MS, a_move, a_run

S = 1_000


def arrival(at_ms: int, partition: int, broker: int, source: int, done_bytes: int, topic: str = "orders") -> Arrival:
    return Arrival(at_ms, topic, partition, broker, source, done_bytes, None)


def at(seconds: float) -> int:
    return STARTED_MS + round(seconds * S)


MOVES = tuple(
    a_move("orders", number, (1, 2), (3, 2), submitted_ms=at(2 + 20 * number), ended_ms=at(24 + 20 * number),
         bytes_copied=110 * MB)
    for number in range(4)
)  # fmt: skip
EVENTFUL = a_run(MOVES, ended_ms=at(90), throttle_bytes_per_s=10 * MB, was_throttle_kept=True)
MARKS = (
    Mark(at(10), MarkKind.THROTTLE, "throttle: 5 MB/s per broker"),
    Mark(at(20), MarkKind.PAUSED, "paused: nothing new is started"),
    Mark(at(30), MarkKind.RELEASED, "released: moves are started again"),
    Mark(at(40), MarkKind.KILLED, "the process that executed the run ended without a word"),
    Mark(at(55), MarkKind.RESUMED, "resumed by ann@host: kreassign resume"),
    Mark(at(60), MarkKind.GUARD, "under-replicated: 1 partition is out of sync"),
)
TRAIL = RunTrail(
    history=EVENTFUL,
    copy_progress=tuple(
        arrival(at(second), number, 3, 1, 11 * MB * (second - 2 - 20 * number) // 2)
        for second in range(2, 85, 2)
        for number in range(4)
        if 2 + 20 * number <= second <= 22 + 20 * number
    ),
    eta_history=tuple(EtaShown(at(second), None, None, 84.0 - second) for second in range(4, 84, 4)),
    breaches=(
        Breach("under-replicated", "hold", "1 partition is out of sync", "Wait until it is back.", at(60), at(70)),
        Breach("disk", "warn", "broker 3 is nearly full", "Make room.", at(80), None),
    ),
    timeline=Timeline(
        marks=MARKS,
        throttle=(ThrottleStep(at(1), 1, 20 * MB), ThrottleStep(at(1), 3, 20 * MB), ThrottleStep(at(10), 1, 5 * MB),
                  ThrottleStep(at(10), 3, 5 * MB), ThrottleStep(at(55), 3, 60 * MB), ThrottleStep(at(88), 1, None),
                  ThrottleStep(at(88), 3, None)),
        in_sync=(InSync(at(3), 0), InSync(at(30), 0, 2, 1, 0), InSync(at(60), 1, 5, 2, 1), InSync(at(70), 0, 0, 0, 0)),
        log=(*(LogLine(one.at_ms, one.text) for one in MARKS), LogLine(at(90), "the run is done")),
    ),
    planned_s=40.0,
)  # fmt: skip


def huge_run(brokers: int = 1_000, partitions: int = 100_000) -> RunTrail:
    """A run of so many moves on so many brokers: those of `plans.huge`."""
    began = {number: 900 * number // partitions for number in range(partitions)}
    moves = tuple(
        a_move(
            f"topic-{number % 500}", number // 500,
            (number % brokers, (number + 1) % brokers), ((number + 7) % brokers, (number + 1) % brokers),
            at(began[number]), at(began[number] + 30),
        )
        for number in range(partitions)
    )  # fmt: skip
    arrivals = tuple(
        arrival(at(began[number] + after), move.partition, move.target[0], move.original[0], done, move.topic)
        for number, move in enumerate(moves)
        for after, done in ((0, 0), (30, 100 * MB))
    )
    return RunTrail(a_run(moves, ended_ms=at(930)), arrivals)
