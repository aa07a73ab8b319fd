"""Find the run that made the present list of replicas of a partition, among those later than a run to undo.

    a run's move shows the present list as        the list is
    the one that the move found                   not of this run
    its target, a step, or what cancelling left   as this run left it
    one on the way, while it is in flight         moved by this run
    what a run found that this rollback undoes    of whoever had it before the undone run: where that is a
                                                  rollback, too, of the run that it undid
    (its journal cannot be read)                  perhaps as this run left it

By the fourth row two runs can be undone in reverse order: after the rollback of the later run its lists are those of
the earlier run again. A list that no row explains was made by others, or by the run to undo itself. Unknown never
permits: a list stays that a run may have made whose journal is unreadable, or gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from kreassign.errors import JournalUnreadable
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.readings import partitions_of, topics_with
from kreassign.executor.events import Refusal
from kreassign.executor.history.run_history import UnreadableJournal, journals_of_runs, last_ms
from kreassign.executor.journal import first_event
from kreassign.model import TopicPartition
from kreassign.model.plan import partition_order
from kreassign.model.run import MoveHistory, MoveStatus, RunHistory
from kreassign.operations.run_journals import status, status_or_problem

Later = RunHistory | UnreadableJournal
"""A run that may have changed partitions since, or its journal."""


class OpenList(NamedTuple):
    """A list of replicas whose maker is asked for, among the moves that ended after this time."""

    replicas: tuple[int, ...]
    since_ms: int


def later_runs(
    path: Path, undone: RunHistory, state_dirs: Iterable[Path], names: Collection[TopicPartition]
) -> Iterator[Later]:
    """Runs of the same cluster that did anything since this one began, and move these partitions; the latest first.

    Also a run that began earlier and was resumed since.
    """
    paths = journals_of_runs((path.parent.parent, *state_dirs), undone.cluster_id)
    others = [(last_ms(one), one) for one in paths if one.stem != path.stem]
    for _, one in sorted((found for found in others if found[0] >= undone.started_ms), reverse=True):
        moved = _partitions_of_run(one)
        if moved is None or not moved.isdisjoint(names):
            yield status_or_problem(one)


def _partitions_of_run(path: Path) -> frozenset[TopicPartition] | None:
    """Partitions that the run of a journal moves; None if that cannot be read."""
    try:
        return frozenset(move.topic_partition for move in first_event(path).moves)
    except JournalUnreadable:
        return None


def changed_by(
    lists: Mapping[TopicPartition, OpenList], later: Iterable[Later], undone: str | None
) -> dict[TopicPartition, str]:
    """Words on the latest run that made each of these lists what it is; none for those that no such run made.

    Runs later than the `undone` one are read until every list is explained.
    """
    found: dict[TopicPartition, str] = {}
    open_lists, passed, skipped = dict(lists), {undone}, set[tuple[TopicPartition, str]]()
    awaited: dict[TopicPartition, tuple[str, str]] = {}
    for run in later if open_lists else ():
        for name, words, undoes in _claims(run, open_lists):
            # Whose list its rollback gave back, an unreadable journal does not show.
            if name in awaited and (awaited[name][0] != run.run_id or isinstance(run, UnreadableJournal)):
                skipped.add((name, run.run_id))
                continue
            told = words or awaited.get(name, ("", ""))[1]
            awaited.pop(name, None)
            if undoes is None and words:
                found[name] = words
                del open_lists[name]
            elif undoes is not None and told and (undoes not in passed or (name, undoes) in skipped):
                awaited[name] = undoes, told
        passed.add(run.run_id)
        if not open_lists:
            break
    # Whose list a rollback gave back is not known without the run that it undid.
    return found | {name: words for name, (_, words) in awaited.items()}


def _claims(run: Later, open_lists: Mapping[TopicPartition, OpenList]) -> list[tuple[TopicPartition, str, str | None]]:
    """Open lists of partitions that a run moves: words if it made them, and a run that it undid.

    What a rollback made, it gave back: whoever had it before the undone run. What it found, the undone run had left.
    """
    if isinstance(run, UnreadableJournal):
        moved = _partitions_of_run(run.path)
        way = f"whose journal cannot be read: {run}. {run.remedy}"
        words = f"perhaps as run {run.run_id} left it since, {way}"
        return [(name, words, None) for name in open_lists if moved is None or name in moved]
    claims = []
    for move in run.moves:
        one = open_lists.get(move.topic_partition)
        if one is not None and (move.ended_ms is None or move.ended_ms > one.since_ms):
            words = _words(run.run_id, move, one.replicas)
            is_known = one.replicas == (move.target if words else move.undone_to)
            claims.append((move.topic_partition, words, run.undoes if is_known else None))
    return claims


def made_since(client: ClusterPort, path: Path, state_dirs: Iterable[Path]) -> tuple[Refusal, ...]:
    """Moves of a rollback that wait, and whose lists another run made since it began, with words on that.

    The rollback's plan asked the runs before. Raises JournalUnreadable where such a run cannot be read, and
    ClusterError when it is not known which lists there are.
    """
    if first_event(path).undoes is None:
        return ()
    run = status(path)
    waiting = {move.topic_partition: move for move in run.moves if move.status is MoveStatus.PLANNED}
    later: list[RunHistory] = []
    for one in later_runs(path, run, state_dirs, waiting.keys()):
        if isinstance(one, UnreadableJournal):
            raise one.error
        later.append(one)
    moved = waiting.keys() & {move.topic_partition for one in later for move in one.moves}
    topics = topics_with(client, {name.topic for name in moved}, moved)
    for error in topics.unknown.values():
        raise error
    now = {name: seen for name, seen in partitions_of(topics.known).items() if name in moved}
    lists = {
        name: OpenList(seen.replicas, run.started_ms)
        for name, seen in now.items()
        if seen.replicas != waiting[name].target
    }
    found = changed_by(lists, later, run.undoes)
    words = {name: f"its replicas are {list(now[name].replicas)}, {why}" for name, why in found.items()}
    return tuple(Refusal(name, words[name]) for name in sorted(words, key=partition_order))


def _words(run_id: str, move: MoveHistory, replicas: tuple[int, ...]) -> str:
    """Words on the run that made this list; "" if it did not."""
    if move.submitted_ms is None or replicas == move.undone_to:
        return ""
    if replicas in move.left:
        return f"as run {run_id} left it since; roll back that run first"
    return f"as run {run_id} is moving it; resume or cancel that run first" if replicas in move.between else ""
