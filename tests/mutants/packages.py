"""The packages of the campaign, each with the tests that have to notice a fault in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

PRODUCT = Path("src/kreassign")


OWN = "not kafka and not spark and not browser and not exhaustive"
QUICK = f"not thorough and {OWN}"
"""Marks of the tests that are asked: those of the package, and those of `make test-fast`."""

QUICK_TESTS = (
    "admin", "autopilot", "cli", "conformance", "executor", "kafka_tools", "kips", "model", "monitoring", "operations",
    "pipeline", "planner", "report", "simulation", "test_errors.py", "test_workflows.py", "twin", "web", "wire",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Package:
    """A package below src/kreassign, and tests: files or folders below tests/. Without `only`, all its modules."""

    path: str
    tests: tuple[str, ...]
    only: tuple[str, ...] = ()
    marks: str = OWN

    @property
    def slug(self) -> str:
        """Its name as that of a file."""
        return self.path.replace("/", "-")

    @property
    def by_quick_tests(self) -> Package:
        """This package, asked of all quick tests: what users meet is often asked elsewhere."""
        return replace(self, tests=QUICK_TESTS, marks=QUICK)

    def modules(self, checkout: Path) -> tuple[Path, ...]:
        """Its modules, relative to the checkout: all but queries of Spark, of which nothing runs without Spark."""
        found = sorted((checkout / PRODUCT / self.path).rglob("*.py"))
        found = [one for one in found if not self.only or one.stem in self.only]
        return tuple(one.relative_to(checkout) for one in found if "pyspark" not in one.read_text(encoding="utf-8"))

    def test_files(self, checkout: Path) -> tuple[Path, ...]:
        """Test files of the package, relative to the checkout."""
        places = [checkout / "tests" / one for one in self.tests]
        files = {file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))}
        return tuple(sorted(one.relative_to(checkout) for one in files))


SAMPLES_TO_LOADS = (
    "accuracy", "doubt", "fits", "hours", "judge", "partition_loads", "rates", "rules", "summary",
)  # fmt: skip
"""Modules that make loads of samples; what is done with loads afterwards is another matter."""

PACKAGES = (
    Package("model", ("model", "executor/state", "planner/check", "planner/results", "admin/translate")),
    Package("twin/controller", ("twin/controller", "twin/api", "conformance")),
    Package("executor/state", ("executor/state", "executor/guards", "executor/scheduling", "executor/throttle")),
    Package("executor", ("executor",), only=("throttle_ledger", "throttle_rates")),
    Package("planner/check", ("planner/check", "planner/results", "planner/problem")),
    Package(
        "pipeline/load",
        ("pipeline/load",),
        only=SAMPLES_TO_LOADS,
    ),
)
