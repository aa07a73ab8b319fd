"""Why moves that wait are not started now: the first of several reasons, as a sentence. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kreassign.executor.guards import Reaction
from kreassign.executor.state import schedule_window, throttle_watch
from kreassign.executor.state.move import MoveRecord, MoveStatus
from kreassign.executor.state.run import Run
from kreassign.model import ConfigResource, ResourceType


def hindrance(run: Run, at_ms: int) -> str | None:
    """What holds back the moves that wait; None where none waits, or nothing but pacing holds them."""
    if run.control.wind_down is not None or not any(map(_waits, run.moves.records.values())):
        return None
    return next(_reasons(run, at_ms), None)


def _waits(record: MoveRecord) -> bool:
    """Whether something of it is still to be started; a move in steps waits between them."""
    return record.status is MoveStatus.PLANNED or len(record.steps) > 1


def _reasons(run: Run, at_ms: int) -> Iterator[str]:
    if run.control.is_held:
        yield f"an operator paused it, so nothing is started before `kreassign resume {run.identity.run_id}`"
    if guards := dict.fromkeys(one.guard for one in run.health.verdicts if one.reaction is Reaction.HOLD):
        yield f"nothing is started while these guards hold it: {', '.join(guards)}"
    if (closed := schedule_window.closed(run, at_ms)) is not None:
        yield closed
    yield from _throttle(run)
    if run.health.stuck:
        yield f"disks have no space for any of {len(run.health.stuck)} moves"
    for name, record in run.moves.records.items():
        if record.status is MoveStatus.PLANNED and record.leaderless_since_ms is not None:
            yield f"{name} has no leader, so its move is not started"


def _throttle(run: Run) -> Iterator[str]:
    throttle = run.throttle
    if throttle.doubts and not throttle_watch.allows_start(run):
        found = next(iter(throttle.doubts.values())).found
        others = f"somebody else changed its throttle: {found}"
        checked = f"its throttle is checked before anything is started: {found}"
        yield others if throttle_watch.foreign(run) else checked
    if throttle.unread:
        yield unread_throttle(throttle.unread[0])
    if throttle.due:
        yield "nothing is started before its throttle is set again"
    if throttle.unset:
        yield f"nothing is started before the throttle of {min(throttle.unset)} is set"


def unread_throttle(resource: ConfigResource) -> str:
    """That the throttle of a broker or a topic cannot be read, and what reading it takes: one of the two is missing."""
    what = "the topic" if resource.type is ResourceType.TOPIC else "the cluster"
    needs = f"a broker has to answer, and to allow DescribeConfigs on {what}"
    return f"nothing is started while the throttle of {resource} cannot be read: {needs}"
