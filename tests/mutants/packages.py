"""The packages of the campaign, each with the tests that have to notice a fault in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PRODUCT = Path("src/kreassign")


@dataclass(frozen=True, slots=True)
class Package:
    """A package below src/kreassign, and tests: files or folders below tests/. Without `only`, all its modules."""

    path: str
    tests: tuple[str, ...]
    only: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """Its name as that of a file."""
        return self.path.replace("/", "-")

    def modules(self, checkout: Path) -> tuple[Path, ...]:
        """Its modules, relative to the checkout: all but queries of Spark, of which nothing runs without Spark."""
        found = sorted((checkout / PRODUCT / self.path).rglob("*.py"))
        found = [one for one in found if not self.only or one.stem in self.only]
        return tuple(one.relative_to(checkout) for one in found if "pyspark" not in one.read_text(encoding="utf-8"))

    def test_files(self, checkout: Path) -> tuple[Path, ...]:
        """What its tests consist of, relative to the checkout."""
        places = [checkout / "tests" / one for one in self.tests]
        files = {file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))}
        return tuple(sorted(one.relative_to(checkout) for one in files))


SAMPLES_TO_LOADS = (
    "accuracy", "doubt", "fits", "hours", "judge", "partition_loads", "rates", "rules", "summary",
)  # fmt: skip
"""Modules that make loads of samples; what is done with loads afterwards is another matter."""

PACKAGES = (
    Package("model", ("model", "executor/state", "planner/check", "planner/results", "admin/translate")),
    Package("twin/controller", ("twin/controller", "twin/api", "twin/test_failover.py", "conformance")),
    Package("executor/state", ("executor/state", "executor/guards", "executor/scheduling", "executor/throttle")),
    Package("executor", ("executor",), only=("throttle_ledger", "throttle_rates")),
    Package("planner/check", ("planner/check", "planner/results", "planner/problem")),
    Package(
        "pipeline/load",
        ("pipeline/load",),
        only=SAMPLES_TO_LOADS,
    ),
)
