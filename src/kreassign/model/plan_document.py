"""Tell whether a text is a plan, and read it: the one home of that question for kreassign's own commands.

A plan is Kafka's reassignment JSON, Cruise Control's proposals, or the output of `kafka-reassign-partitions
--generate`, of which the proposed section is the plan and the current one what it was made from. Anything else that
lies beside plans is recognised and named: a facts file has the replicas from before its plan, and would be a plan back.

Strict, unlike Kafka's own reader (`plan.parse_plan`, for the drop-in tools): one document, at least one partition, none
twice, all fields of their type. Fields that Kafka does not know are ignored, as there.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kreassign.errors import InputError, MalformedPlan
from kreassign.model.cluster import TopicPartition, is_topic_name
from kreassign.model.documents import (
    Json,
    OtherKindError,
    conflict_in,
    is_id,
    line_at,
    other_kind,
    places,
    read_json,
    shown_value,
)
from kreassign.model.plan import ANY_LOG_DIR, PLAN_VERSION, PartitionAssignment, Plan
from kreassign.model.proposals import ASK_AGAIN, Proposals, has_proposals, is_plain_answer, parse_proposals
from kreassign.model.text import counted

NOT_PLANS = (
    (
        ("plan_id", "input_hash"),
        (
            "this is the facts file of a plan: its replicas are those from before the plan; name the plan itself, the "
            "file of this name without `.facts`"
        ),
    ),
    (("plan_id", "approved_by"), "this is the approval of a plan; name the file without `.approval`"),
    (("kreassign_approval_request",), "this asks for the approval of a plan; name the file without `.request`"),
    (("format", "cluster_id", "brokers"), "this is a snapshot of a cluster; `kreassign plan --snapshot` plans from it"),
    (
        ("plan",),
        (
            "this is what `--format json` printed: the plan is in its field `plan`; save that alone, or write a plan "
            "with --out"
        ),
    ),
    (("topics",), "no array `partitions` in it: these are the topics for `kafka-reassign-partitions --generate`"),
)
"""Documents that are no plans: keys by which they are known, and what to do."""

_MAKE_ONE = "a plan is Kafka's reassignment JSON, which `kreassign plan --out FILE` writes"
_NOTHING = "it names no partition"
_CURRENT = "Current partition replica assignment"
_PROPOSED = "Proposed partition reassignment configuration"
_HEADERS = re.compile(rf"^(?:{_CURRENT}|{_PROPOSED})[ \t]*\r?$", re.MULTILINE)
_DOCUMENT = re.compile(r"^[ \t]*\{", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """A plan, the replica lists that it was made from where they are given, and the `proposals` if it is some.

    `has_current` is True where the text has two assignments, the current and the proposed one. `cluster_id` is that of
    the cluster for which it was made, where it says so.
    """

    plan: Plan
    expected: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    proposals: Proposals | None = None
    has_current: bool = False
    cluster_id: str | None = None


def parse_plan_document(text: str) -> PlanDocument:
    """Read a plan. Raises MalformedPlan, which names the line, or what the text is instead."""
    sections = _sections(text)
    if sections:
        return _generated(sections)
    if is_plain_answer(text):
        raise MalformedPlan(f"this is what Cruise Control answers to people; {ASK_AGAIN}")
    if has_proposals(text):
        found = parse_proposals(text)
        if not len(found.plan):
            raise MalformedPlan(f"{_NOTHING}: Cruise Control proposes no change")
        return PlanDocument(_once_each(found.plan, text, "proposals"), found.expected, found)
    return _kafkas(text)


def kind_of_no_plan(content: bytes, *, is_plan: bool = True) -> str | None:
    """Sentence about a content that Kafka's own tools cannot read, and what to do; None if its kind is not known.

    Without `is_plan` it was to be another document of Kafka's tools.
    """
    if (kind := other_kind(content)) is not None:
        return f"it is {kind}"
    if content.startswith(BOM_UTF8):
        return f"it begins with a byte order mark; write it without (`tail -c +{len(BOM_UTF8) + 1}`)"
    text = content.decode(errors="replace")
    if headers := {header[0].strip() for header in _HEADERS.finditer(text)}:
        wanted = _PROPOSED if _PROPOSED in headers else _CURRENT
        return f"it is an output of kafka-reassign-partitions; save the JSON below `{wanted}` alone, if that is meant"
    if (conflict := conflict_in(text)) is not None:
        return conflict
    try:
        read_json(text)
    except OtherKindError as error:
        return f"{error}; {_MAKE_ONE if is_plan else 'it must be JSON'}"
    except ValueError:
        pass
    return _kind_beside_plans(text) if is_plan else None


def _kind_beside_plans(text: str) -> str | None:
    try:
        if is_plain_answer(text) or has_proposals(text):
            return "it is from Cruise Control; `kreassign plan import` makes a plan of its proposals"
        return _known_kind(read_json(text))
    except ValueError:
        return None


def _sections(text: str) -> dict[str, str]:
    """Sections of an output of `--generate` or `--execute`, by header; each keeps its lines at their numbers."""
    headers = list(_HEADERS.finditer(text))
    names = [header[0].strip() for header in headers]
    if twice := next((place for place, name in enumerate(names) if name in names[:place]), 0):
        line = text.count("\n", 0, headers[twice].end()) + 1
        raise MalformedPlan(f"`{names[twice]}` stands there twice, in line {line} again; keep the output that is meant")
    _check_beginning(text[: headers[0].start()] if headers else "")
    ends = [header.start() for header in headers[1:]] + [len(text)] * bool(headers)
    return {
        header[0].strip(): "\n" * text.count("\n", 0, header.end()) + text[header.end() : end]
        for header, end in zip(headers, ends, strict=True)
    }


def _check_beginning(text: str) -> None:
    """Raise MalformedPlan if more than warnings stands before the first header."""
    if conflict := conflict_in(text):
        raise MalformedPlan(conflict)
    if document := _DOCUMENT.search(text):
        line = line_at(text, document.start())
        raise MalformedPlan(f"a document begins in line {line}, before an output of --generate; a file holds one plan")


def _generated(sections: Mapping[str, str]) -> PlanDocument:
    if _PROPOSED not in sections:
        raise MalformedPlan(
            f"this is the `{_CURRENT}` that kafka-reassign-partitions printed: a plan back to it; save its JSON alone "
            "if that is meant"
        )
    proposed = _kafkas(sections[_PROPOSED])
    if _CURRENT not in sections:
        return proposed
    return PlanDocument(proposed.plan, _kafkas(sections[_CURRENT]).plan.replicas, has_current=True)


def _kafkas(text: str) -> PlanDocument:
    try:
        document = read_json(text)
    except OtherKindError as error:
        raise MalformedPlan(f"this is not JSON: {error}; {_MAKE_ONE}") from error
    except ValueError as error:
        raise MalformedPlan(f"this is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise MalformedPlan("this is JSON, but not an object with an array `partitions`")
    entries = document.get("partitions")
    if (known := _known_kind(document)) is not None:
        raise MalformedPlan(known)
    if not isinstance(entries, list):
        raise MalformedPlan("no array `partitions` in it, so this is no reassignment JSON of Kafka")
    version = document.get("version", PLAN_VERSION)
    if version != PLAN_VERSION or isinstance(version, bool):
        raise MalformedPlan(f"`version` is {shown_value(version)}; Kafka knows version {PLAN_VERSION} only")
    if not entries:
        raise MalformedPlan(_NOTHING)
    cluster_id = document.get("cluster_id")
    if not isinstance(cluster_id, str | None):
        raise MalformedPlan(f"`cluster_id` is {shown_value(cluster_id)}; it must be the id of a cluster")
    plan = _once_each(Plan(tuple(_assignments(entries, text))), text, "partitions")
    return PlanDocument(plan, cluster_id=cluster_id)


def _known_kind(document: Json) -> str | None:
    if not isinstance(document, dict) or (isinstance(document.get("partitions"), list) and "plan_id" not in document):
        return None
    return next((what for keys, what in NOT_PLANS if document.keys() >= set(keys)), None)


def _assignments(entries: Iterable[Json], text: str) -> Iterator[PartitionAssignment]:
    for number, entry in enumerate(entries):
        try:
            yield _assignment(entry)
        except InputError as error:
            raise MalformedPlan(f"line {_line_of(text, 'partitions', number)}: {error}") from error


def _assignment(entry: Json) -> PartitionAssignment:
    if not isinstance(entry, dict):
        raise InputError(f"{shown_value(entry)} is no partition; it must be an object")
    topic: Json = entry.get("topic")
    partition: Json = entry.get("partition")
    replicas: Json = entry.get("replicas")
    if not isinstance(topic, str) or not is_topic_name(topic):
        raise _unfit(entry, "topic", "the name of a topic")
    if not is_id(partition):
        raise _unfit(entry, "partition", "the number of a partition")
    if entry.keys() == {"topic", "partition"}:
        raise InputError(f"{topic}-{partition} has no `replicas`; a list of partitions is for kafka-leader-election")
    if not isinstance(replicas, list) or not all(map(is_id, replicas)):
        raise _unfit(entry, "replicas", "a list of broker ids")
    log_dirs = entry.get("log_dirs", [ANY_LOG_DIR] * len(replicas))
    if not isinstance(log_dirs, list) or not all(isinstance(path, str) and "\0" not in path for path in log_dirs):
        raise _unfit(entry, "log_dirs", f"a list of directories, or of `{ANY_LOG_DIR}`")
    if len(log_dirs) != len(replicas):
        raise InputError(f"{topic}-{partition} has {counted(len(replicas), 'replica')}, but {len(log_dirs)} `log_dirs`")
    return PartitionAssignment(TopicPartition(topic, partition), tuple(replicas), tuple(log_dirs))


def _unfit(entry: dict[str, Json], name: str, wanted: str) -> InputError:
    if name not in entry:
        return InputError(f"`{name}` is missing; it must be {wanted}")
    return InputError(f"`{name}` is {shown_value(entry[name])}; it must be {wanted}")


def _once_each(plan: Plan, text: str, array: str) -> Plan:
    seen: set[TopicPartition] = set()
    for number, entry in enumerate(plan.assignments):
        if entry.topic_partition in seen:
            raise MalformedPlan(
                f"line {_line_of(text, array, number)}: {entry.topic_partition} is named more than once"
            )
        seen.add(entry.topic_partition)
    return plan


def _line_of(text: str, array: str, number: int) -> int:
    """Line at which an entry of an array begins."""
    return next(line_at(text, position) for path, position in places(text) if path == (array, number))
