"""Assignments that others made, in files: Cruise Control's proposals, and Kafka's JSON, also one file for each topic.

What several files say is joined. A partition may stand in two of them if both say the same, as in topicmappr's combined
map and the one of its topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kreassign.errors import InputError, MalformedPlan
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan, partition_order
from kreassign.model.plan_json import parse_plan
from kreassign.model.printable import shortened
from kreassign.model.proposals import ASK_AGAIN, has_proposals, is_plain_answer, parse_proposals
from kreassign.operations.plan_files import FACTS_SUFFIX

NAMED = 5
"""How many partitions a sentence names."""


@dataclass(frozen=True, slots=True)
class Assignments:
    """What files say together, sorted: a plan, the lists that it was made from as far as they say, and what it lacks.

    `unsaid` are sentences on what their maker wanted and these files cannot tell.
    """

    plan: Plan
    source: str
    expected: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    unsaid: tuple[str, ...] = ()


def read_assignments(paths: Sequence[Path]) -> Assignments:
    """What files say together, and all `*.json` in directories. Raises InputError, which names the file."""
    entries: dict[TopicPartition, tuple[PartitionAssignment, Path]] = {}
    expected: dict[TopicPartition, tuple[int, ...]] = {}
    unsaid: list[str] = []
    for path in _files(paths):
        found = _read(path)
        expected |= found.expected
        unsaid += found.unsaid
        for entry in found.plan.assignments:
            before, place = entries.setdefault(entry.topic_partition, (entry, path))
            if before != entry:
                raise MalformedPlan(
                    f"says {entry}, but {place.name} says {before}; leave out one of the two files", path=str(path)
                )
    ordered = sorted(entries, key=partition_order)
    source = ", ".join(path.name or str(path) for path in paths)
    return Assignments(Plan(tuple(entries[name][0] for name in ordered)), source, expected, tuple(unsaid))


def named(partitions: Sequence[TopicPartition]) -> str:
    """Some partitions by name, and how many more there are."""
    more = len(partitions) - NAMED
    shown = ", ".join(shortened(str(one)) for one in sorted(partitions, key=partition_order)[:NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(one for one in path.glob("*.json") if not one.name.endswith(FACTS_SUFFIX))
        if not inside:
            raise InputError(f"no file in {path} has a name that ends in .json; name the files, or another directory")
        yield from inside


def _read(path: Path) -> Assignments:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise MalformedPlan(f"not a text in UTF-8: {error}", path=str(path)) from error
    try:
        return _proposed(text, path) if has_proposals(text) else _kafkas(text, path)
    except InputError as error:
        raise (
            error if isinstance(error, MalformedPlan) and error.path else MalformedPlan(str(error), path=str(path))
        ) from error


def _proposed(text: str, path: Path) -> Assignments:
    found = parse_proposals(text)
    unsaid = []
    if found.violated:
        unsaid.append(f"Cruise Control says that its plan violates {', '.join(map(shortened, found.violated))}")
    if found.log_dir_moves:
        unsaid.append(
            f"{named(found.log_dir_moves)}: Cruise Control moves copies between log directories of a broker, but "
            "does not name them; `kreassign plan disks` plans such moves"
        )
    if found.elections:
        unsaid.append(
            f"{named(found.elections)}: only the leader is to change, which `kafka-leader-election --election-type "
            "preferred` does"
        )
    return Assignments(_once_each(found.plan), path.name, found.expected, tuple(unsaid))


def _kafkas(text: str, path: Path) -> Assignments:
    if is_plain_answer(text):
        raise MalformedPlan(f"this is what Cruise Control answers to people; {ASK_AGAIN}")
    plan = parse_plan(text)
    if not len(plan) and '"partitions"' not in text:  # which Kafka's own reader takes as none
        raise MalformedPlan("no array `partitions` in it, so this is no reassignment JSON of Kafka")
    return Assignments(_once_each(plan), path.name)


def _once_each(plan: Plan) -> Plan:
    if twice := plan.duplicate_partitions:
        raise MalformedPlan(f"{named(twice)}: named more than once")
    return plan
