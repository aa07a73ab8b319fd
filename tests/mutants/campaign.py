"""`python -m tests.mutants.campaign --sample 150`: generated faults in packages that decide, and which tests notice."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import click

from tests.campaigns.campaign import WRITE
from tests.campaigns.page import report
from tests.mutants.generated import EXCLUDED, Generated, MutatedModule, mutated, prepared
from tests.mutants.mutmut_runs import tried
from tests.mutants.packages import PACKAGES, Package
from tests.mutants.sampling import Tally, sample

KEPT = Path("build/mutants")
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
LEAST = 0.9
BATCH = 100
DEAD = frozenset({"killed", "timeout"})
_COLUMNS = ("package", "modules", "mutants", "drawn", "equivalent", "killed", "share", "95 % interval")


@click.command()
@click.argument("packages", nargs=-1, type=click.Choice([one.path for one in PACKAGES]))
@click.option("--sample", "size", default=150, show_default=True, help="Mutants to draw of each package.")
@click.option("--seed", default=1, show_default=True, help="What is drawn by lot.")
@click.option("--minutes", default=45.0, show_default=True, help="Begin nothing further after so long.")
@click.option("--jobs", default=2, show_default=True, help="Mutants to test at a time.")
@click.option(
    "--keep-killed", is_flag=True, help="What was killed stays so though tests changed: tests were only added."
)
@WRITE
def main(
    packages: tuple[str, ...], size: int, seed: int, minutes: float, jobs: int, *, keep_killed: bool, writes: bool
) -> None:
    """Draw mutants of PACKAGES (default: all) and test each. Exit code 1 where too few are killed.

    Verdicts are kept in build/mutants while the module, and the tests of its package, stay as they are.
    """
    deadline_s = time.monotonic() + minutes * 60
    chosen = [one for one in PACKAGES if not packages or one.path in packages]
    tallies = [_tally(one, size, seed, jobs, deadline_s, keep_killed=keep_killed) for one in chosen]
    is_broken = any(one.share < LEAST or one.tried < min(size, one.mutants) for one in tallies)
    command = _command(packages, size, seed, keep_killed=keep_killed)
    report("mutants", command, _table(tallies), is_broken=is_broken, writes=writes)


def _command(packages: Sequence[str], size: int, seed: int, *, keep_killed: bool) -> str:
    if not packages and not keep_killed:
        return f"make mutants SAMPLE={size} SEED={seed}"
    options = [f"--sample {size} --seed {seed}", *["--keep-killed"] * keep_killed, *packages]
    return f"python -m tests.mutants.campaign {' '.join(options)}"


def _tally(package: Package, size: int, seed: int, jobs: int, deadline_s: float, *, keep_killed: bool) -> Tally:
    """Test what is drawn of a package and has no verdict yet, as long as there is time."""
    modules = package.modules(Path())
    tests = _digest(*(one.read_bytes() for one in package.test_files(Path())))
    made = {module: _mutated(module) for module in modules}
    mutants = [one for module in made.values() for one in module.mutants]
    drawn = sample(mutants, size, seed)
    verdicts = Verdicts(package, modules, tests, keep_killed=keep_killed)
    left = [one for one in drawn if one.name not in verdicts.known or one.name in verdicts.doubtful]
    equivalent = known_equivalent()
    while left and time.monotonic() < deadline_s:
        batch, left = left[:BATCH], left[BATCH:]
        found = tried(package, made, batch, KEPT / package.slug, jobs)
        alive = [one for one in batch if found[one.name] not in DEAD and one.change not in equivalent]
        if alive:
            found |= tried(package.by_quick_tests, made, alive, KEPT / f"{package.slug}-quick", jobs)
        verdicts.add(found)
    return _counted(package, len(modules), len(mutants), drawn, verdicts.known)


def _counted(
    package: Package, modules: int, mutants: int, drawn: Sequence[Generated], verdicts: dict[str, str]
) -> Tally:
    judged = [one for one in drawn if one.name in verdicts]
    alive = [one for one in judged if verdicts[one.name] not in DEAD]
    equivalent = known_equivalent()
    for one in alive:
        word = "equivalent" if one.change in equivalent else verdicts[one.name]
        click.echo(f"{word}: {one}")
    same = sum(one.change in equivalent for one in alive)
    return Tally(package.path, modules, mutants, len(judged), same, len(judged) - len(alive))


def known_equivalent(path: Path = EQUIVALENT) -> dict[tuple[str, str, str, str], str]:
    """Why a change is no fault: the mutants that were read and found to be equivalent."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        (f"src/kreassign/{one['module']}", one["function"], one["before"], one["after"]): one["reason"]
        for one in document["mutant"]
    }


class Verdicts:
    """Verdicts of a package: on disk, by module, as long as module and tests are the same.

    `doubtful` are mutants that survived other tests than those of now.
    """

    def __init__(self, package: Package, modules: Sequence[Path], tests: str, *, keep_killed: bool) -> None:
        self._path = KEPT / f"{package.slug}.json"
        self._sources = {_name(one): _digest(one.read_bytes()) for one in modules}
        self._tests = tests
        self.known: dict[str, str] = {}
        document = json.loads(self._path.read_text()) if self._path.exists() else {"tests": tests, "modules": {}}
        for module, kept in document["modules"].items():
            if kept["source"] == self._sources.get(module):
                self.known |= kept["verdicts"]
        self.doubtful: set[str] = set()
        if document["tests"] != tests:
            self.known = self.known if keep_killed else {}
            self.doubtful = {name for name, one in self.known.items() if one != "killed"}

    def add(self, verdicts: dict[str, str]) -> None:
        """Keep these, too, but not what is doubtful still: it would look as if it had survived the tests of now."""
        self.known |= verdicts
        self.doubtful -= verdicts.keys()
        kept = {name: one for name, one in self.known.items() if name not in self.doubtful}
        modules = {
            module: {"source": digest, "verdicts": {name: one for name, one in kept.items() if _in(module, name)}}
            for module, digest in self._sources.items()
        }
        document = {"tests": self._tests, "modules": modules}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(document, indent=1))


def _name(module: Path) -> str:
    return ".".join(module.with_suffix("").parts[1:]).removesuffix(".__init__")


def _in(module: str, name: str) -> bool:
    return name.rpartition(".")[0].partition(".xǁ")[0] == module


def _mutated(module: Path) -> MutatedModule:
    """Making the mutants of a module takes seconds, so that they are kept while it stays as it is."""
    source = prepared(module.read_text(encoding="utf-8"))
    path = KEPT / "generated" / f"{_name(module)}.json"
    digest = _digest(source.encode(), version("mutmut").encode(), *(rule.encode() for rule in EXCLUDED))
    if path.exists() and (kept := json.loads(path.read_text()))["digest"] == digest:
        return MutatedModule(kept["code"], kept["notes"], tuple(Generated(**one) for one in kept["mutants"]))
    made = mutated(str(module), source)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"digest": digest, **asdict(made)}))
    return made


def _digest(*parts: bytes) -> str:
    return sha256(b"\0".join(parts)).hexdigest()


def _table(tallies: Sequence[Tally]) -> str:
    head = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}"
    rows = "\n".join(map(str, tallies))
    rules = "; ".join(EXCLUDED)
    reasons = known_equivalent()
    listed = "\n".join(
        f"- `{module.removeprefix('src/kreassign/')}`, `{function}`: `{before}` as `{after}`: {reason}"
        for (module, function, before, after), reason in reasons.items()
    )
    return f"{head}\n{rows}\n\nLeft out by rule: {rules}.\n\nRead and found to be equivalent:\n\n{listed}"


if __name__ == "__main__":
    main()
