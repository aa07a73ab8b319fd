"""A run as texts, for the page: what the template writes first is what the stream writes later. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kreassign.operations.run_list import RunSummary
from kreassign.report.run_state import run_state
from kreassign.report.text import format_bytes, format_count, format_duration, format_rate, format_replicas, format_time
from kreassign.web.records import Broker, Move, Run, RunPace

GOOD, BAD, BUSY, IDLE = "good", "bad", "busy", "idle"
_TONES = {"done": GOOD, "failed": BAD, "cancelled": BAD, "unreadable": BAD, "paused": IDLE}

BROKER_COLUMNS = (
    "Broker", "Reassigning", "Read for moves", "Written by moves", "Throttle", "In-sync lag", "Out of sync", "Left",
)  # fmt: skip
MOVE_COLUMNS = ("Partition", "From", "To", "State", "Copied", "Rate", "Ends in")


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run in words and cells.

    `fields` are texts by their name on the page, `fraction` is how much is copied, None where that is unknown. `lists`
    are sentences, `tables` rows of cells. `tone` is the colour of the state.
    """

    tone: str
    fraction: float | None
    fields: Mapping[str, str]
    lists: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, tuple[tuple[str, ...], ...]]


def shown(run: Run) -> ShownRun:
    """A run for people."""
    summary, throttle = run.summary, format_rate(run.throttle_bytes_per_s)
    if run.is_throttle_adaptive:
        throttle = "adaptive"
    elif run.throttle_bytes_per_s is None:
        throttle = "none"
    return ShownRun(
        tone=tone(summary.state, is_active=summary.is_active),
        fraction=_fraction(run),
        fields={
            "state": state_text(summary),
            "moves": f"{format_count(summary.complete_count)} of {format_count(summary.move_count)}",
            "copied": format_bytes(summary.copied_bytes),
            "left": format_bytes(run.left_bytes),
            "rate": format_rate(run.rate_bytes_per_s),
            "eta": eta_text(run),
            "throttle": throttle,
            "pace": pace_text(run.pace),
            "at": format_time(run.at_ms),
            "ended": format_time(summary.ended_ms),
        },
        lists={
            "held": () if run.why_held is None else (run.why_held,),
            "verdicts": run.verdicts,
            "problems": run.problems,
            "outlook": run.outlook,
            "residue": run.throttle_residue,
        },
        tables={"brokers": tuple(map(_broker_cells, run.brokers)), "moves": tuple(map(_move_cells, run.moves))},
    )


def pace_text(pace: RunPace) -> str:
    """The order and the limits of a run."""
    source, destination = pace.max_moves_per_source, pace.max_moves_per_destination
    limits = [(pace.max_moves, "in flight")]
    limits += [(source, "per broker")] if source == destination else [(source, "from each"), (destination, "to each")]
    told = ", ".join(f"at most {format_count(count)} {where}" for count, where in limits if count is not None)
    return f"{pace.order}, {told or 'no limit of moves'}"


def tone(state: str, *, is_active: bool) -> str:
    """The colour of a state: what it ended in, that it goes on, or that nobody sees to it any more."""
    return _TONES.get(state, BUSY if is_active else BAD)


def state_text(run: RunSummary) -> str:
    """The state of a run in words."""
    return run_state(
        run.state,
        is_active=run.is_active,
        is_held=run.is_held,
        has_ended=run.ended_ms is not None,
        in_flight=run.in_flight_count,
    )


def eta_text(run: Run) -> str:
    """When a run ends, or why nobody can say."""
    if run.summary.ended_ms is not None:
        return "-"
    if run.eta is None:
        return run.why_no_end or "calculating"
    between = f" ({format_duration(run.eta.earliest_s)} to {format_duration(run.eta.latest_s)})"
    return format_duration(run.eta.expected_s) + (between if run.eta.latest_s else "")


def _fraction(run: Run) -> float | None:
    if run.left_bytes is None:
        return None
    total = run.summary.copied_bytes + run.left_bytes
    return round(run.summary.copied_bytes / total, 4) if total else 1.0


def _broker_cells(one: Broker) -> tuple[str, ...]:
    return (
        str(one.broker),
        format_count(one.reassigning_partitions),
        format_rate(one.read_bytes_per_s),
        format_rate(one.write_bytes_per_s),
        "none" if one.throttle_bytes_per_s is None else format_rate(one.throttle_bytes_per_s),
        format_bytes(one.in_sync_lag_bytes),
        format_count(one.out_of_sync_replicas),
        format_bytes(one.left_bytes),
    )


def _move_cells(move: Move) -> tuple[str, ...]:
    return (
        f"{move.topic}-{move.partition}",
        format_replicas(move.original),
        format_replicas(move.target),
        move.problem or move.state,
        format_bytes(move.done_bytes)
        + ("" if move.left_bytes is None else f" of {format_bytes(move.done_bytes + move.left_bytes)}"),
        format_rate(move.rate_bytes_per_s),
        format_duration(move.eta_s),
    )
