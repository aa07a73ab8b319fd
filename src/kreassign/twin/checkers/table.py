"""All checkers, and having them run.

Most look only at what a step changed. Three look at the whole cluster, `bytes_add_up`, `throttles_are_kept` and
`list_is_progress`: on clusters of more than `LARGE` partitions they do so only once in `SAMPLED` records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kreassign.errors import InvariantBroken
from kreassign.twin.checkers import (
    adding_is_part_of_target,
    bytes_add_up,
    completed_moves_have_their_target,
    copies_follow_replicas,
    epochs_never_go_back,
    isr_is_within_replicas,
    last_copy_is_kept,
    leader_is_in_sync,
    list_is_progress,
    throttles_are_kept,
)
from kreassign.twin.core import Step, TwinCore

LARGE = 5_000
SAMPLED = 256


class Checker(NamedTuple):
    """An invariant: a sentence, and what finds the places where it does not hold."""

    sentence: str
    check: Callable[[TwinCore, Step], Iterator[str]]
    sees_everything: bool = False


CHECKERS = (
    Checker("the ISR is part of the replicas", isr_is_within_replicas.check),
    Checker("the leader is in the ISR, or there is none", leader_is_in_sync.check),
    Checker("no partition loses its last in-sync copy to a reassignment", last_copy_is_kept.check),
    Checker("what is being added is part of a target", adding_is_part_of_target.check),
    Checker("epochs never go back", epochs_never_go_back.check),
    Checker("a completed move has exactly its target", completed_moves_have_their_target.check),
    Checker("brokers have the copies that the metadata says", copies_follow_replicas.check),
    Checker("bytes on disk add up", bytes_add_up.check, sees_everything=True),
    Checker("throttles are never exceeded", throttles_are_kept.check, sees_everything=True),
    Checker("the list of reassignments is what is in progress", list_is_progress.check, sees_everything=True),
)
"""Every invariant."""


def look(twin: TwinCore, step: Step) -> Iterator[str]:
    """What is wrong after a step; nothing if all is well. Large clusters are looked at in part, see above."""
    is_whole = _partition_count(twin) <= LARGE or twin.metadata.offset % SAMPLED == 0
    for checker in CHECKERS:
        if is_whole or not checker.sees_everything:
            yield from _findings(checker, twin, step)


def check_step(twin: TwinCore, step: Step) -> None:
    """A watcher of a twin (`Twin.watch`) that raises `InvariantBroken` as soon as something is wrong."""
    _refuse(twin, list(look(twin, step)))


def check_all(twin: TwinCore) -> None:
    """Look at the whole cluster as it is now, as if all of it had just been made."""
    everything = {one.topic_partition: None for topic in twin.metadata.topics.values()
                  for one in topic.partitions.values()}  # fmt: skip
    step = Step(before=everything)
    _refuse(twin, [finding for checker in CHECKERS for finding in _findings(checker, twin, step)])


def _findings(checker: Checker, twin: TwinCore, step: Step) -> Iterator[str]:
    return (f"{checker.sentence}: {finding}" for finding in checker.check(twin, step))


def _refuse(twin: TwinCore, findings: list[str]) -> None:
    if findings:
        raise InvariantBroken(f"at {twin.now_ms} ms, record {twin.metadata.offset}: " + "; ".join(findings))


def _partition_count(twin: TwinCore) -> int:
    return sum(len(topic.partitions) for topic in twin.metadata.topics.values())
