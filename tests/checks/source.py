"""The repository's own files, as text and as syntax trees, for the tests that watch over them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = "src/kreassign/"
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.ClassDef | Function
NOT_OURS = frozenset({".git", ".venv", "build", "dist", "spark-warehouse", "metastore_db", "planner_cases"})


@dataclass(frozen=True, slots=True)
class Source:
    """One text file; `path` is relative to the repository, with slashes."""

    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        """The file as Python syntax."""
        return _parse(self.text, self.path)

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """Every class, function and method, nested ones too, each before those that it holds."""
        return _definitions(self.text, self.path)

    @property
    def functions(self) -> tuple[Function, ...]:
        """Every function and method, nested ones too."""
        return tuple(one for one in self.definitions if not isinstance(one, ast.ClassDef))

    @property
    def module(self) -> str:
        """The name under which Python imports this file; a package for an `__init__.py`."""
        name = self.path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__")
        return name.replace("/", ".")

    @property
    def is_package(self) -> bool:
        """True if this is the `__init__.py` of a package."""
        return self.path.endswith("__init__.py")

    @property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        return self.text.splitlines()


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something that breaks a rule; printed as `file:line: what is wrong`."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def assert_none(findings: Iterable[Finding]) -> None:
    """Fail with one line per finding, in order of file and line."""
    found = sorted(set(findings))
    assert not found, f"{len(found)} finding(s)\n" + "\n".join(map(str, found))


@cache
def read(*patterns: str) -> tuple[Source, ...]:
    """All files of the repository that match the glob patterns, sorted by path, as they were at the first call."""
    paths = {path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file() and _is_ours(path)}
    return tuple(Source(path.relative_to(ROOT).as_posix(), path.read_text()) for path in sorted(paths))


def python(*folders: str) -> tuple[Source, ...]:
    """All Python files below these folders."""
    return read(*(f"{folder}/**/*.py" for folder in folders))


def product() -> tuple[Source, ...]:
    """All Python files of the product."""
    return python("src/kreassign")


def _is_ours(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return not any(part in NOT_OURS or part.endswith((".egg-info", "_cache", "__pycache__")) for part in parts)


@cache
def _parse(text: str, path: str) -> ast.Module:
    return ast.parse(text, filename=path)


# Only statements hold definitions: to look into expressions too takes ten times as long.
HOLDERS = ("body", "handlers", "cases", "orelse", "finalbody")


@cache
def _definitions(text: str, path: str) -> tuple[Definition, ...]:
    return tuple(_defined_in(_parse(text, path)))


def _defined_in(holder: ast.AST) -> Iterator[Definition]:
    for node in (node for name in HOLDERS for node in getattr(holder, name, ())):
        if isinstance(node, Definition):
            yield node
        yield from _defined_in(node)
