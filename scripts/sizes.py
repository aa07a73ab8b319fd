#!/usr/bin/env python3
"""Print how large modules and functions are, package by package: figures to look at, not limits.

python scripts/sizes.py [PACKAGE ...]        (default: every package of src/kreassign)
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

PRODUCT = Path(__file__).resolve().parent.parent / "src" / "kreassign"
SHORT_MODULE_LINES = 30
LONG_MODULE_LINES = 500
LONGEST_LISTED = 10


@dataclass(frozen=True, slots=True)
class Module:
    """One Python file: its path below the product, its lines, and the lines of each of its functions."""

    path: str
    lines: int
    functions: tuple[int, ...]

    @property
    def package(self) -> str:
        """The folder directly below the product; a dot for the product's own files."""
        return _package(self.path)


def _package(path: str) -> str:
    return path.partition("/")[0] if "/" in path else "."


def measured(path: str, text: str) -> Module:
    """The sizes of one file. Functions count with their documentation strings, nested ones by themselves too."""
    nodes = ast.walk(ast.parse(text))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = (node.end_lineno - node.lineno + 1 for node in functions if node.end_lineno is not None)
    return Module(path, len(text.splitlines()), tuple(sorted(lengths)))


def report(modules: Iterable[Module]) -> str:
    """A row per package and one for all of them, then the longest modules.

    Package files are not in the medians. Functions: median, nine in ten, longest.
    """
    by_package: dict[str, list[Module]] = defaultdict(list)
    for module in sorted(modules, key=lambda module: module.path):
        by_package[module.package].append(module)
    everything = [module for group in by_package.values() for module in group]
    head = f"{'package':<12} {'files':>5} {'lines':>6} {'median':>6} {'<30':>4} {'>500':>4}   functions"
    rows = [_row(package, group) for package, group in by_package.items()]
    longest = sorted(everything, key=lambda module: (-module.lines, module.path))[:LONGEST_LISTED]
    return "\n".join([
        head, *rows, _row("all", everything), "", "longest modules",
        *(f"{module.lines:>6} {module.path}" for module in longest),
    ])  # fmt: skip


def _row(name: str, modules: Sequence[Module]) -> str:
    sizes = [module.lines for module in modules if not module.path.endswith("__init__.py")]
    lengths = sorted(length for module in modules for length in module.functions)
    functions = f"{statistics.median(lengths):g}/{_nine_in_ten(lengths)}/{lengths[-1]}" if lengths else "-"
    median = f"{statistics.median(sizes):g}" if sizes else "-"
    short, long = sum(size < SHORT_MODULE_LINES for size in sizes), sum(size > LONG_MODULE_LINES for size in sizes)
    lines = sum(module.lines for module in modules)
    return f"{name:<12} {len(modules):>5} {lines:>6} {median:>6} {short:>4} {long:>4}   {functions}"


def _nine_in_ten(lengths: Sequence[int]) -> int:
    return lengths[(len(lengths) * 9 - 1) // 10]


def main(packages: Sequence[str]) -> None:
    """Print the report on these packages, or on all."""
    paths = sorted(PRODUCT.rglob("*.py"))
    texts = {path.relative_to(PRODUCT).as_posix(): path for path in paths}
    known = {_package(name) for name in texts}
    if unknown := set(packages) - known:
        raise SystemExit(f"no package {min(unknown)!r}; there are {', '.join(sorted(known))}")
    chosen = (name for name in texts if not packages or _package(name) in packages)
    sys.stdout.write(report(measured(name, texts[name].read_text(encoding="utf-8")) for name in chosen) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
