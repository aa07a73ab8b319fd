"""mutmut in a copy of the checkout: one run for some mutants of a package."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from testbed.processes import ProcessGroup
from tests.mutants.generated import Generated, MutatedModule, prepared
from tests.mutants.packages import Package

TIMEOUT_S = 1800.0
WITHOUT_SOCKETS = "not tcp-"
"""A twin answers with the same bytes over TCP, only later: `tests/conformance` asks it both ways."""
_STATUS = {0: "survived", 1: "killed", 3: "killed", 33: "without a test", 5: "without a test"}
_TIMEOUTS = frozenset({36, -24, 24, 152, 255, -9, -14})
_BESIDE = (
    "testbed", "docs", "examples", "bench", "scripts", "jvm",
    "README.md", "CHANGELOG.md", "SECURITY.md", "constraints.txt",
)  # fmt: skip


def tried(
    package: Package, modules: Mapping[Path, MutatedModule], mutants: Sequence[Generated], place: Path, jobs: int
) -> dict[str, str]:
    """Result of each mutant, by its name: killed, timeout, survived, without a test, or broken."""
    _lay_out(package, modules, place)
    command = [
        "env", "-C", str(place), f"PYTHONPATH={place.absolute()}", "PYTHONDONTWRITEBYTECODE=1",
        str(Path(sys.executable).with_name("mutmut")), "run", "--max-children", str(jobs),
        *(one.name for one in mutants),
    ]  # fmt: skip
    with closing(ProcessGroup()) as processes:
        finished = processes.run(command, timeout_s=TIMEOUT_S)
    if finished.exit_code:
        raise RuntimeError(f"mutmut ended with {finished.exit_code}: {(finished.stdout + finished.stderr)[-3000:]}")
    return _verdicts(place, mutants)


def _lay_out(package: Package, modules: Mapping[Path, MutatedModule], place: Path) -> None:
    """Put there what the tests need, the prepared modules, and settings of mutmut; only what differs is written.

    mutmut knows by their times which modules it has to read again, but not that tests changed: then it forgets which
    tests call which function.
    """
    (place / "mutants").mkdir(parents=True, exist_ok=True)
    for name in _BESIDE:
        if not (place / name).is_symlink():
            (place / name).symlink_to(Path(name).absolute())
    own = Path("pyproject.toml").read_bytes()
    wanted = {path: path.read_bytes() for folder in ("src", "tests") for path in _files(Path(folder))}
    wanted |= {path: prepared(path.read_text(encoding="utf-8")).encode() for path in modules}
    wanted[Path("pyproject.toml")] = b"\n".join((own, _settings(package, modules).encode()))
    changed = [
        path for path, text in wanted.items() if not (place / path).exists() or (place / path).read_bytes() != text
    ]
    gone = [path for path in _files(place / "tests") if path.relative_to(place) not in wanted]
    for path in changed:
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(wanted[path])
    for path in gone:
        path.unlink()
    for module, made in modules.items():
        # Mutmut makes them anew where its copy is older than the module. Making them twice takes minutes.
        copy = place / "mutants" / module
        if not copy.exists() or copy.stat().st_mtime <= (place / module).stat().st_mtime:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.with_name(f"{copy.name}.meta").write_text(made.notes)
            copy.write_text(made.code, encoding="utf-8")
    if gone or any(path.parts[0] == "tests" for path in changed):
        shutil.rmtree(place / "mutants" / "tests", ignore_errors=True)
        (place / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)


def _files(folder: Path) -> list[Path]:
    return [one for one in folder.rglob("*") if one.is_file() and "__pycache__" not in one.parts]


def _settings(package: Package, modules: Iterable[Path]) -> str:
    values: dict[str, list[str] | bool | float] = {
        "source_paths": ["src"],
        "only_mutate": [str(one) for one in modules],
        "also_copy": list(_BESIDE),
        "pytest_add_cli_args": [
            "-p",
            "no:cacheprovider",
            "-p",
            "tests.mutants.selection",
            "-n",
            "0",
            "-m",
            package.marks,
            "-k",
            WITHOUT_SOCKETS,
        ],
        "pytest_add_cli_args_test_selection": [f"tests/{one}" for one in package.tests],
        # A mutant that does not end gets four times what its tests take, in seconds of the processor.
        "timeout_multiplier": 2.0,
        "timeout_constant": 5.0,
        "use_git_change_detection": False,
        "track_dependencies": False,
    }  # fmt: skip
    return "[tool.mutmut]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())


def _verdicts(place: Path, mutants: Sequence[Generated]) -> dict[str, str]:
    codes: dict[str, int | None] = {}
    for module in {one.module for one in mutants}:
        codes |= json.loads((place / "mutants" / f"{module}.meta").read_text())["exit_code_by_key"]
    return {one.name: _status(code) for one in mutants if (code := codes[one.name]) is not None}


def _status(code: int) -> str:
    return "timeout" if code in _TIMEOUTS else _STATUS.get(code, f"exit code {code}")
