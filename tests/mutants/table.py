"""The mutants: small faults, each of which some test has to notice. Data: `mutants.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("mutants.toml")
PACKAGE = Path("src/kreassign")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault: in `module` (below src/kreassign) the one place that reads `old` reads `new`; `tests` should fail."""

    id: str
    module: str
    old: str
    new: str
    tests: tuple[str, ...]

    def occurrences(self, root: Path) -> int:
        """How often the place is found below the root of a checkout; a table that is up to date has it once."""
        path = root / PACKAGE / self.module
        return path.read_text(encoding="utf-8").count(self.old) if path.is_file() else 0

    def applied(self, source: str) -> str:
        """The text of the module with the fault."""
        return source.replace(self.old, self.new)


def read_table(path: Path = TABLE) -> tuple[Mutant, ...]:
    """The mutants of a table: `[[group]]` with module and tests, and in it mutants of three texts each."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(
        Mutant(f"{group['name']}-{entry['name']}", group["module"], entry["old"], entry["new"], tuple(group["tests"]))
        for group in document["group"]
        for entry in group["mutant"]
    )
