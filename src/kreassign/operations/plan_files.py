"""Plans on disk: Kafka's reassignment JSON, the facts file with the facts about it, and Cruise Control's proposals."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from kreassign.errors import InputError, MalformedPlan
from kreassign.model import TopicPartition
from kreassign.model.plan import Plan
from kreassign.model.plan_facts import PlanFacts, plan_id
from kreassign.model.plan_facts_json import format_facts, parse_facts
from kreassign.model.plan_json import format_plan, parse_plan
from kreassign.model.proposals import has_proposals, parse_proposals

FACTS_SUFFIX = ".facts.json"


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan that was read, and what its file or facts file says of the state it was made from.

    `expected` has the replica lists that the partitions must still have; empty where nothing is known. `facts` is the
    facts file, if there is one.
    """

    plan: Plan
    expected: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    facts: PlanFacts | None = None


def read_plan(path: Path) -> Plan:
    """The plan in a file: Kafka's JSON, or Cruise Control's proposals. Raises MalformedPlan, which names the file."""
    return _read(path).plan


def read_plan_file(path: Path) -> PlanFile:
    """The plan in a file with all that is known of it.

    Raises MalformedPlan, which names the file; also when the facts file belongs to another plan, because then the
    plan was edited after it was made, and what was expected and predicted holds no longer.
    """
    found, beside = _read(path), facts_path(path)
    if not beside.exists():
        return found
    facts = read_facts(beside)
    if facts.plan_id != plan_id(found.plan):
        raise MalformedPlan(
            f"describes plan {facts.plan_id}, but {path.name} is {plan_id(found.plan)}: the plan was changed after "
            "it was made; make a new plan, or remove this file to run the changed plan without its checks",
            path=str(beside),
        )
    return PlanFile(found.plan, facts.expected, facts)


def read_facts(path: Path) -> PlanFacts:
    """A facts file. Raises MalformedPlan, which names the file."""
    try:
        return parse_facts(_text(path))
    except MalformedPlan as error:
        raise error if error.path else MalformedPlan(str(error), path=str(path)) from error


def facts_path(path: Path) -> Path:
    """Where the facts about a plan are: beside it, `plan.facts.json` for `plan.json`."""
    return path.with_name(path.name.removesuffix(".json") + FACTS_SUFFIX)


def write_plan(path: Path, plan: Plan, facts: PlanFacts | None = None) -> None:
    """Write a plan, and the facts beside it; a file that is there is replaced as a whole or not at all.

    Without facts, a facts file of an earlier plan is removed: it would speak of another one.
    """
    beside = facts_path(path)
    beside.unlink(missing_ok=True)
    replace_file(path, format_plan(plan))
    if facts is not None:
        replace_file(beside, format_facts(facts))


def _read(path: Path) -> PlanFile:
    text = _text(path)
    try:
        if has_proposals(text):
            found = parse_proposals(text)
            return PlanFile(found.plan, found.expected)
        return PlanFile(parse_plan(text))
    except InputError as error:
        raise MalformedPlan(str(error), path=str(path)) from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise MalformedPlan(f"not a text in UTF-8: {error}", path=str(path)) from error


def replace_file(path: Path, text: str) -> None:
    """Write a text and a line end; a file that is there is replaced as a whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    unfinished.write_text(text + "\n", encoding="utf-8")
    unfinished.replace(path)
