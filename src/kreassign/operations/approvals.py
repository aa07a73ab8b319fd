"""Approval of plans: a file beside the plan says who has approved it, and of which content that holds.

It is for teams in which one proposes and another agrees: `kreassign run --require-approval` refuses a plan that nobody
has approved, or that was changed since. Whoever may write into the directory can approve; the file is not signed.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from kreassign.errors import InputError, MalformedPlan
from kreassign.model.plan_facts import plan_id
from kreassign.model.printable import printable
from kreassign.model.strict_json import loads
from kreassign.operations.plan_files import PlanFile, read_plan_file

APPROVAL_SUFFIX = ".approval.json"
LONGEST_NAME = 100
LONGEST_NOTE = 1_000


@dataclass(frozen=True, slots=True)
class Approval:
    """Who approved which plan, when (ms since the epoch), with which note."""

    plan_id: str
    approved_by: str
    approved_ms: int
    note: str = ""

    def __post_init__(self) -> None:
        if not self.approved_by.strip():
            raise InputError("an approval needs the name of who approves")
        if len(self.approved_by) > LONGEST_NAME or len(self.note) > LONGEST_NOTE:
            raise InputError(f"a name has up to {LONGEST_NAME} characters, and a note up to {LONGEST_NOTE}")


def approval_path(plan: Path) -> Path:
    """Where the approval of a plan is: `plan.approval.json` for `plan.json`."""
    return plan.with_name(plan.name.removesuffix(".json") + APPROVAL_SUFFIX)


def approve(plan: Path, expected_id: str, approved_by: str, note: str, now_ms: int) -> Approval:
    """Approve a plan as somebody saw it. Raises InputError where its file says something else by now."""
    found = plan_id(read_plan_file(plan).plan)
    if found != expected_id:
        raise InputError(f"{plan.name} is plan {found} by now, and not {expected_id}, which was looked at; look again")
    approval = Approval(found, approved_by.strip(), now_ms, note.strip())
    path = approval_path(plan)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    unfinished.write_text(json.dumps(asdict(approval)) + "\n", encoding="utf-8")
    unfinished.replace(path)
    return approval


def revoke(plan: Path) -> None:
    """Take the approval of a plan back. Raises InputError where there is none."""
    try:
        approval_path(plan).unlink()
    except FileNotFoundError:
        raise InputError(f"{plan.name} is not approved") from None


def approval_of(plan: Path) -> Approval | None:
    """The approval beside a plan, of whatever content; None where there is none. Raises MalformedPlan."""
    path = approval_path(plan)
    if not path.exists():
        return None
    try:
        found = loads(path.read_text(encoding="utf-8"))
        return Approval(
            _text(found["plan_id"]), _text(found["approved_by"]), int(found["approved_ms"]), _text(found["note"])
        )
    except (InputError, ValueError, KeyError, TypeError) as error:
        raise MalformedPlan(f"is no approval of a plan: {error}", path=str(path)) from error


def require_approval(path: Path, file: PlanFile) -> Approval:
    """The approval of a plan as it was read. Raises InputError where there is none, or one of another content."""
    found, wanted = approval_of(path), plan_id(file.plan)
    if found is None:
        raise InputError(
            f"nobody has approved {path.name} (plan {wanted}); approve it with `kreassign approve {path}`, or on the "
            "page of `kreassign web`"
        )
    if found.plan_id != wanted:
        raise InputError(
            f"{path.name} was changed: {printable(found.approved_by)} approved plan {found.plan_id}, and by now it is "
            f"{wanted}; approve it again"
        )
    return found


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value
