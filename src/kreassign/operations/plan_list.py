"""The plans of a directory: a line for each, and one of them found by its name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kreassign.errors import InputError, KreassignError
from kreassign.model.plan_facts import plan_id
from kreassign.operations.approvals import APPROVAL_SUFFIX, Approval, approval_of
from kreassign.operations.plan_files import FACTS_SUFFIX, PlanFile, read_plan_file

BESIDE = (FACTS_SUFFIX, APPROVAL_SUFFIX)


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A plan in one line.

    `task` is what it was made for, None without facts. `approval` is one of just this content. `problem` says why a
    file could not be read as a plan; then the figures are 0.
    """

    name: str
    plan_id: str
    cluster_id: str | None
    task: str | None
    partition_count: int
    moved_bytes: int | None
    approval: Approval | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class PlanDirectory:
    """A directory with plans."""

    folder: Path

    def names(self) -> tuple[str, ...]:
        """The names of the files, sorted."""
        found = (path for path in self.folder.glob("*.json") if path.is_file())
        return tuple(sorted(path.name for path in found if not path.name.endswith(BESIDE)))

    def path(self, name: str) -> Path:
        """The file of a plan; no other file than a listed one is ever opened. Raises InputError."""
        if name not in self.names():
            raise InputError(f"there is no plan {name}")
        return self.folder / name

    def summaries(self) -> tuple[PlanSummary, ...]:
        """All plans."""
        return tuple(map(self.summary, self.names()))

    def summary(self, name: str) -> PlanSummary:
        """One plan. Raises InputError where there is none of this name."""
        try:
            return summary_of(name, self.read(name), self.approval(name))
        except (KreassignError, OSError) as error:
            if name not in self.names():
                raise
            return PlanSummary(name, "", None, None, 0, None, None, str(error))

    def read(self, name: str) -> PlanFile:
        """One plan, with its facts. Raises InputError."""
        return read_plan_file(self.path(name))

    def approval(self, name: str) -> Approval | None:
        """The approval of a plan, of whatever content. Raises InputError."""
        return approval_of(self.path(name))


def summary_of(name: str, file: PlanFile, approval: Approval | None) -> PlanSummary:
    """The line of a plan."""
    facts, found = file.facts, plan_id(file.plan)
    return PlanSummary(
        name=name,
        plan_id=found,
        cluster_id=None if facts is None else facts.cluster_id,
        task=None if facts is None else facts.task,
        partition_count=len(file.plan.replicas),
        moved_bytes=None if facts is None else facts.totals.moved_bytes,
        approval=approval if approval is not None and approval.plan_id == found else None,
    )
