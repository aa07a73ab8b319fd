"""Reassignments that go on, whose they are, and those that do not get on: why, and how to free them. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from shlex import quote

from kreassign.executor.history.issue import Issue, Words
from kreassign.executor.lease import LeaseHolder
from kreassign.model import OngoingReassignment, TopicPartition
from kreassign.model.amount import format_amount

NOBODY = ""


@dataclass(frozen=True, slots=True)
class Moving:
    """One reassignment: the id of the run that made it, if a journal here names it, and bytes of its new copies.

    `copied_bytes` and `copied_before` are sums of its new copies now and some seconds ago; None where not measured.
    `rate_bytes_per_s` is the lowest throttle that is set on the brokers that get them. `without_records` are those
    brokers that have nothing yet of a partition whose older records are in remote storage.
    """

    name: TopicPartition
    move: OngoingReassignment
    run_id: str = NOBODY
    copied_bytes: int | None = None
    copied_before: int | None = None
    has_leader: bool = True
    rate_bytes_per_s: int | None = None
    without_records: tuple[int, ...] = ()

    @property
    def is_stuck(self) -> bool:
        """Whether it got no byte between the two readings."""
        return None not in {self.copied_bytes, self.copied_before} and self.copied_bytes == self.copied_before


def move_notes(moves: Iterable[Moving]) -> Iterator[str]:
    """How many partitions are reassigned, and by whom."""
    counts = Counter(one.run_id for one in moves)
    for run_id, count in sorted(counts.items()):
        whose = f"run {run_id}" if run_id else "somebody else than the runs of this state directory"
        yield f"{count} partitions are being reassigned, by {whose}"


def move_issues(
    moves: Iterable[Moving], live: Iterable[int], seconds: float, elsewhere: LeaseHolder | None = None
) -> Iterator[Issue]:
    """Those that do not get on, but for what has an issue of its own: endless ones, and lost destinations."""
    alive = set(live)
    for one in sorted(moves, key=lambda each: each.name):
        if not one.is_stuck or one.move.can_never_complete or not set(one.move.adding) <= alive:
            continue
        why = _why(one)
        seen = f"its reassignment ({one.move}) copied nothing in the last {seconds:.0f} s{why}"
        owner, commands = ways_to_cancel(one.name, one.run_id, elsewhere)
        yield Issue("stuck", str(one.name), seen, f"{_remedy(one)}{owner}", commands)


def _why(one: Moving) -> str:
    if not one.has_leader:
        return ": it has no leader to copy from"
    if one.without_records:
        # With KIP-405 a new replica first reads the epochs of older records; where that fails, its broker tries again
        # for ever, and tells nobody but its log.
        brokers, is_throttled = list(one.without_records), one.rate_bytes_per_s is not None
        unless = ", unless the throttle there holds it" if is_throttled else ""
        return f": the topic is tiered, and brokers {brokers} begin by reading from remote storage{unless}"
    if one.rate_bytes_per_s is not None:
        return f": the throttle there is {format_amount(one.rate_bytes_per_s, 'B/s')}"
    return ": no throttle holds it, so see the logs of the brokers that get copies"


def _remedy(one: Moving) -> str:
    if not one.has_leader:
        return "Bring a broker of its replicas back; or cancel it"
    if one.without_records:
        brokers = list(one.without_records)
        return (
            f"Look for 'Error building remote log auxiliary state' in the logs of brokers {brokers}, and let them "
            "reach remote storage: then it goes on by itself; or cancel it"
        )
    return "Raise the throttle, or cancel it" if one.rate_bytes_per_s is not None else "Wait, or cancel it"


def ways_to_cancel(
    name: TopicPartition, run_id: str = NOBODY, elsewhere: LeaseHolder | None = None
) -> tuple[str, tuple[Words, ...]]:
    """Whose a reassignment is or may be, as the end of a sentence, and the commands here that cancel it.

    What a run goes on with, or is paused with, is cancelled by that run and by nobody else. Of a run whose journal is
    `elsewhere` only its lease is known: what no run here names may be its own, and is cancelled where it is.
    """
    if not run_id and elsewhere is not None:
        return f". It may be of {elsewhere}: if so, cancel it there with `kreassign cancel {elsewhere.run_id}`", ()
    return "", (cancel_command(name, run_id),)


def cancel_command(name: TopicPartition, run_id: str = NOBODY) -> Words:
    """What cancels a reassignment: its run, or else Kafka's own tool, with the partition in place of a file."""
    if run_id:
        return ("kreassign", "cancel", run_id)
    document = {"version": 1, "partitions": [{"topic": name.topic, "partition": name.partition}]}
    text = quote(json.dumps(document, separators=(",", ":")))
    return (f"kafka-reassign-partitions --cancel --preserve-throttles --reassignment-json-file <(echo {text})",)
