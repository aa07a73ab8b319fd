"""Plans on disk, in Kafka's reassignment JSON."""

from __future__ import annotations

import os
from pathlib import Path

from kreassign.errors import InputError, MalformedPlan
from kreassign.model.plan import Plan
from kreassign.model.plan_json import format_plan, parse_plan


def read_plan(path: Path) -> Plan:
    """The plan in a file. Raises MalformedPlan, which names the file."""
    try:
        return parse_plan(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise MalformedPlan(f"not a text in UTF-8: {error}", path=str(path)) from error
    except InputError as error:
        raise MalformedPlan(str(error), path=str(path)) from error


def write_plan(path: Path, plan: Plan) -> None:
    """Write a plan; a file that is there is replaced as a whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    unfinished.write_text(format_plan(plan) + "\n", encoding="utf-8")
    unfinished.replace(path)
