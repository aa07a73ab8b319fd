"""Imports between our packages: the contracts of `[tool.importlinter]` in pyproject.toml.

Each contract is tested twice: on the imports as they are, and with one import more that breaks it.
"""

from __future__ import annotations

import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest
from grimp import ImportGraph, build_graph
from importlinter.api import read_configuration

from testbed.waiting import PATIENCE_S
from tests.checks.contracts import broken_contracts
from tests.checks.source import ROOT

PROJECT = str(ROOT / "pyproject.toml")
CONTRACTS = tuple(read_configuration(PROJECT)["contracts_options"])


def test_our_packages_keep_the_contracts_of_imports() -> None:
    # A process of its own: import-linter configures logging, and with that disables all loggers that exist.
    command = [str(Path(sys.executable).parent / "lint-imports"), "--config", PROJECT, "--no-cache"]
    linted = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    """The imports among our modules as they are."""
    return build_graph("kreassign", cache_dir=None)


def test_the_graph_of_imports_breaks_nothing(graph: ImportGraph) -> None:
    assert len(graph.modules) > 300
    assert broken_contracts(graph, CONTRACTS) == set()


@pytest.mark.parametrize(("importer", "imported", "broken"), [
    ("model", "admin", "layers"),
    ("model", "clock", "layers"),
    ("errors", "model", "layers"),
    ("wire", "admin", "layers"),
    ("twin", "admin", "layers"),
    ("planner", "executor", "layers"),
    ("executor", "admin", "layers"),
    ("pipeline", "admin", "layers"),
    ("report", "executor", "layers"),
    ("operations", "cli", "layers"),
    ("kafka_tools", "operations", "layers"),
    ("admin", "cli", "layers"),
    ("planner", "wire", "bytes"),
    ("cli", "wire", "bytes"),
    ("operations", "wire", "bytes"),
    ("kafka_tools", "wire", "bytes"),
    ("kafka_tools", "planner", "tools"),
    ("cli", "kafka_tools", "two products"),
    ("cli", "twin", "command line"),
    ("cli", "pipeline", "command line"),
    ("cli", "executor.runner", "command line"),
    ("cli", "planner.search", "command line"),
    ("clock", "errors", "foundation"),
    ("", "twin", "face"),
    ("", "cli", "face"),
])  # fmt: skip
def test_a_forbidden_import_breaks_its_contract(graph: ImportGraph, importer: str, imported: str, broken: str) -> None:
    changed = deepcopy(graph)
    changed.add_import(importer=f"kreassign.{importer}".rstrip("."), imported=f"kreassign.{imported}")
    assert broken in broken_contracts(changed, CONTRACTS)


def test_a_new_package_must_be_given_a_place(graph: ImportGraph) -> None:
    changed = deepcopy(graph)
    changed.add_module("kreassign.magic")
    changed.add_module("kreassign.magic.wand")
    assert broken_contracts(changed, CONTRACTS) == {"layers"}


def test_a_circle_within_a_package_breaks_its_contract(graph: ImportGraph) -> None:
    changed = deepcopy(graph)
    changed.add_import(importer="kreassign.model.one", imported="kreassign.model.two")
    assert broken_contracts(changed, CONTRACTS) == set()
    changed.add_import(importer="kreassign.model.two", imported="kreassign.model.one")
    assert broken_contracts(changed, CONTRACTS) == {"circles"}


@pytest.mark.parametrize("text", [
    "from small.b import x",
    "from small import b",
    "import small.b as other",
    "from . import b",
    "def f():\n    from small.b import x",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from small.b import x",
])  # fmt: skip
def test_an_import_is_seen_however_it_is_written(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in {"__init__": "", "a": text, "b": "x = 1"}.items():
        (tmp_path / "small").mkdir(exist_ok=True)
        (tmp_path / "small" / f"{name}.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    assert build_graph("small", cache_dir=None).find_modules_directly_imported_by("small.a") == {"small.b"}
