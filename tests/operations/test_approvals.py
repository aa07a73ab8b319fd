"""Approval of plans: it is of just the content that somebody looked at."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from kreassign.errors import InputError, MalformedPlan
from kreassign.model.plan import PartitionAssignment, Plan, format_plan
from kreassign.model.plan_facts import plan_id
from kreassign.operations.plan_files import (
    Approval,
    approval_of,
    approval_path,
    approve,
    read_plan_file,
    require_approval,
    revoke,
    write_plan,
)
from tests.executor.twin_runs import tp

ONE, OTHER = (Plan((PartitionAssignment(tp(0), target),)) for target in ((2, 1), (3, 1)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_plan(tmp_path / "plan.json", ONE, None)
    return tmp_path / "plan.json"


def test_a_plan_that_was_approved_may_run_until_it_is_changed_or_revoked(path: Path) -> None:
    with pytest.raises(InputError, match=r"nobody has approved plan\.json"):
        require_approval(path, read_plan_file(path))
    given = approve(path, plan_id(ONE), " Ada ", "change 4711", 1_000)
    assert given == Approval(plan_id(ONE), "Ada", 1_000, "change 4711")
    assert require_approval(path, read_plan_file(path)) == given
    path.write_text(format_plan(OTHER))
    with pytest.raises(InputError, match=rf"Ada approved plan {plan_id(ONE)}, and by now it is {plan_id(OTHER)}"):
        require_approval(path, read_plan_file(path))
    write_plan(path, ONE, None)
    assert require_approval(path, read_plan_file(path)) == given
    revoke(path)
    with pytest.raises(InputError, match="nobody has approved"):
        require_approval(path, read_plan_file(path))
    with pytest.raises(InputError, match="is not approved"):
        revoke(path)


def test_what_somebody_did_not_look_at_is_not_approved(path: Path) -> None:
    write_plan(path, OTHER, None)
    with pytest.raises(InputError, match="look again"):
        approve(path, plan_id(ONE), "Ada", "", 1_000)
    assert approval_of(path) is None


@pytest.mark.parametrize(("name", "note"), [("", ""), ("  ", ""), ("x" * 101, ""), ("Ada", "x" * 1_001)])
def test_an_approval_has_a_name_and_no_novel(path: Path, name: str, note: str) -> None:
    with pytest.raises(InputError, match=r"an approval needs the name|up to 100 characters"):
        approve(path, plan_id(ONE), name, note, 1_000)
    assert approval_of(path) is None


@pytest.mark.parametrize("content", [
    "", "[]", "{}", "null", '{"plan_id": 1, "approved_by": "a", "approved_ms": 1, "note": ""}',
    '{"plan_id": "x", "approved_by": "", "approved_ms": 1, "note": ""}',
    '{"plan_id": "x", "approved_by": "a", "approved_ms": "soon", "note": ""}', "\udc80",
])  # fmt: skip
def test_a_file_that_is_no_approval_approves_nothing(path: Path, content: str) -> None:
    approval_path(path).write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(MalformedPlan, match=r"plan\.approval\.json: is no approval of a plan"):
        require_approval(path, read_plan_file(path))


def test_an_approval_that_cannot_be_read_is_not_called_none(path: Path) -> None:
    approval_path(path).mkdir()
    with pytest.raises(InputError, match=r"^\S+plan\.approval\.json cannot be read: is a directory$"):
        require_approval(path, read_plan_file(path))


@pytest.mark.parametrize("field", ["expires_ms", "revoked", "ticket"])
def test_an_approval_with_an_unknown_field_permits_nothing(path: Path, field: str) -> None:
    """It may limit the approval, as an end or a condition does."""
    given = approve(path, plan_id(ONE), "Ada", "", 1_000)
    approval_path(path).write_text(json.dumps({**asdict(given), field: None}))
    with pytest.raises(MalformedPlan, match=rf"plan\.approval\.json: .*'{field}'.* may limit the approval"):
        require_approval(path, read_plan_file(path))
    again = approve(path, plan_id(ONE), "Ada", "", 2_000)
    assert require_approval(path, read_plan_file(path)) == again


def test_an_approval_is_whole_or_not_there(path: Path) -> None:
    approve(path, plan_id(ONE), "größer", "🦊", 1_000)
    assert json.loads(approval_path(path).read_text())["approved_by"] == "größer"
    assert sorted(one.name for one in path.parent.iterdir()) == ["plan.approval.json", "plan.json"]
