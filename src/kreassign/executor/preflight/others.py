"""Before a run: which throttles are set, and what is being reassigned, by others? A run must not start on top of them.

One that did would take their throttle for what was there before, and restore it when they have long removed it; or it
would change the rate at which their moves go. Which of both, or neither, only the operator knows. What no run of this
state directory accounts for is therefore shown, and refused until the operator has said what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kreassign.errors import InputError
from kreassign.executor.cluster import queries
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.events import RunStarted
from kreassign.executor.throttle.ledger import EVERY_REPLICA, ConfigValue, items, throttle_keys
from kreassign.executor.throttle.originals import FoundThrottles, OriginalSettings
from kreassign.model import OngoingReassignment, TopicPartition

NAMED = 10


@dataclass(frozen=True, slots=True)
class DoneByOthers:
    """Throttles that are set, and partitions beside those of the plan that are being reassigned."""

    settings: tuple[ConfigValue, ...] = ()
    moves: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)


def read_others(port: ClusterPort, started: RunStarted) -> DoneByOthers:
    """What others do on the cluster. Raises ClusterError.

    Topics that this client may not see are no concern of its run; its own are read again before it changes them.
    """
    topics = port.describe_topics(None)
    values, _ = queries.read_configs(port, throttle_keys(topics.ok, started.live_brokers))
    planned = {move.topic_partition for move in started.moves}
    moves = {name: move for name, move in port.list_partition_reassignments(None).items() if name not in planned}
    return DoneByOthers(tuple(present for present in values if present.value), moves)


def agreed(
    started: RunStarted, others: DoneByOthers, choice: FoundThrottles, originals: OriginalSettings
) -> RunStarted:
    """The run, with how to treat the throttles of others. Raises InputError where the operator has to choose."""
    known = originals.known(present.key for present in others.settings)
    unexplained = tuple(present for present in others.settings if present.key not in known)
    problem = _problem(started, DoneByOthers(unexplained, others.moves), choice)
    if problem is not None:
        raise InputError(problem)
    inherited = tuple(present for present in others.settings if present.key in known)
    kept = {present.key: ConfigValue(present.key, known[present.key]) for present in inherited}
    match choice:
        case FoundThrottles.REMOVE:
            kept |= {present.key: ConfigValue(present.key, None) for present in unexplained}
            inherited = others.settings
        case FoundThrottles.ALONGSIDE:
            # Of a list only our own entries go in the end; a wildcard stays, for nothing can be added to it.
            theirs = (present for present in unexplained if EVERY_REPLICA not in items(present.value))
            kept |= {present.key: ConfigValue(present.key, None) for present in theirs}
    return replace(started, found=choice, originals=tuple(kept.values()), adopted=inherited)


def _problem(started: RunStarted, others: DoneByOthers, choice: FoundThrottles) -> str | None:
    """What speaks against beginning so, and what to do; None if nothing does."""
    rates = started.rates
    match choice:
        case FoundThrottles.REFUSE if others.settings or others.moves:
            return f"{_named(others)}. {_CHOICES if others.settings and not others.moves else _CHOICES_WITH_MOVES}"
        case FoundThrottles.REMOVE | FoundThrottles.RESTORE if others.moves:
            return f"{_named(others)}: what is in use is not to be adopted. {_CHOICES_WITH_MOVES}"
        case FoundThrottles.ALONGSIDE if others.settings and not others.moves:
            return f"{_named(others)}, and nothing is being reassigned that needs it. {_CHOICES}"
        case FoundThrottles.ALONGSIDE if rates.bytes_per_s is None or rates.per_broker or rates.adaptive is not None:
            return "a run alongside moves of others shares the rate of each broker with them: give one --throttle RATE"
    return None


_CHOICES = (
    "If it was left behind, run with --adopt remove: it is gone when the run has ended. If it is meant to be there, "
    "run with --adopt restore: it has its value again then"
)
_CHOICES_WITH_MOVES = (
    "Wait for the end of these moves, or cancel them, and look again (`kreassign doctor`); or run with --alongside and "
    "--throttle RATE, a rate that those moves and the run share on each broker"
)


def _named(others: DoneByOthers) -> str:
    found = []
    if others.settings:
        found.append(f"throttles are set: {_some(map(str, others.settings), len(others.settings))}")
    if others.moves:
        moves = (f"{name} ({move})" for name, move in sorted(others.moves.items()))
        found.append(f"partitions are being reassigned: {_some(moves, len(others.moves))}")
    return f"no run of this state directory accounts for what is on the cluster: {'; '.join(found)}"


def _some(names: Iterable[str], count: int) -> str:
    shown = ", ".join(name for _, name in zip(range(NAMED), names, strict=False))
    return f"{shown} and {count - NAMED} more" if count > NAMED else shown
