"""Find the run that made the present list of replicas of a partition, among those later than a run to undo.

    a run's move shows the present list as        the list is
    the one that the move found                   not of this run
    its target, a step, or what cancelling left   as this run left it
    one on the way, while it is in flight         moved by this run
    what a run found that this rollback undoes    of whoever had it before the undone run

By the last row two runs can be undone in reverse order: after the rollback of the later run its lists are those of
the earlier run again. A list that no row explains was made by others, or by the run to undo itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from kreassign.errors import JournalUnreadable
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.readings import partitions_of, topics_of_two
from kreassign.executor.events import Refusal
from kreassign.executor.journal import find_journals, first_event
from kreassign.model import Partition, TopicPartition
from kreassign.model.plan import partition_order
from kreassign.model.run import MoveHistory, RunHistory
from kreassign.operations.connect import Warn
from kreassign.operations.run_journals import status

MOST_LATER = 1000
"""Number of later runs whose moves are looked at to name the run that changed a partition since."""


def later_runs(path: Path, undone: RunHistory, warn: Warn) -> Iterator[RunHistory]:
    """Runs of the same cluster that began after this one and moved partitions of it, the latest first.

    Warns of those that were not read, if they are asked for: a list that such a run made is undone like our own.
    """
    names = {move.topic_partition for move in undone.moves}
    later = [one for one in reversed(find_journals(path.parent.parent)) if one.parent == path.parent]
    later = [one for one in later if one.stem > path.stem]
    for one in later[:MOST_LATER]:
        try:
            if not names.isdisjoint(move.topic_partition for move in first_event(one).moves):
                yield status(one)
        except JournalUnreadable as error:
            warn(f"what run {one.stem} changed since is not known: {error}")
    if len(later) > MOST_LATER:
        warn(
            f"only the latest {MOST_LATER} of {len(later)} runs since run {undone.run_id} were looked at: lists that "
            "an earlier one of them made are undone, too, where they are those of this run"
        )


def changed_by(
    undone: RunHistory, later: Iterable[RunHistory], now: Mapping[TopicPartition, Partition]
) -> dict[TopicPartition, str]:
    """Words on the latest run per partition that made its list what it is, also where it was so before.

    Later runs are read until every partition is explained that is not as it was before.
    """
    found: dict[TopicPartition, str] = {}
    submitted = (move for move in undone.moves if move.submitted_ms is not None and move.topic_partition in now)
    open_lists = {
        move.topic_partition: now[move.topic_partition].replicas
        for move in submitted
        if now[move.topic_partition].replicas != move.undone_to
    }
    undone_since: dict[TopicPartition, str] = {}
    for run in later if open_lists else ():
        for move in run.moves:
            name = move.topic_partition
            if undone_since.get(name, run.run_id) != run.run_id:
                continue
            was_undone = undone_since.pop(name, None) is not None
            if was_undone or name not in open_lists or not (words := _owner(run.run_id, move, open_lists[name])):
                continue
            if run.undoes is not None and run.undoes > undone.run_id and open_lists[name] == move.target:
                undone_since[name] = run.undoes
            else:
                found[name] = words
                del open_lists[name]
        if not open_lists:
            break
    return found


def made_since(client: ClusterPort, path: Path, warn: Warn) -> tuple[Refusal, ...]:
    """Moves of a rollback that were not sent yet, and whose lists a run made that began after it, with words on that.

    The rollback's plan asked the earlier runs. Raises ClusterError when no broker answers.
    """
    undoes = first_event(path).undoes
    undone_path = path.with_name(f"{undoes}{path.suffix}")
    if undoes is None or not undone_path.exists():
        return ()
    rollback, undone = status(path), status(undone_path)
    unsent = {move.topic_partition for move in rollback.moves if move.submitted_ms is None and move.ended_ms is None}
    undone = replace(undone, moves=tuple(move for move in undone.moves if move.topic_partition in unsent))
    later = tuple(later_runs(path, undone, warn))
    topics = topics_of_two(client, {name.topic for name in unsent} if later else (), only_lists=True)
    now = partitions_of(topics.known)
    found = changed_by(undone, later, now)
    words = {name: f"its replicas are {list(now[name].replicas)}, {found[name]}" for name in found}
    for name in unsent:
        if (error := topics.unknown.get(name.topic)) is not None:
            words[name] = f"whether a later run made its list is not known: {error}; roll back again"
    return tuple(Refusal(name, words[name]) for name in sorted(words, key=partition_order))


def _owner(run_id: str, move: MoveHistory, replicas: tuple[int, ...]) -> str:
    """Words on the run that made this list; "" if it did not."""
    if move.submitted_ms is None or replicas == move.undone_to:
        return ""
    if replicas in move.left:
        return f"as run {run_id} left it since; roll back that run first"
    return f"as run {run_id} is moving it; resume or cancel that run first" if replicas in move.between else ""
