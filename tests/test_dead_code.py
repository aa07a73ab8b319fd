"""Names that nothing in the product uses, found by vulture with the settings of `[tool.vulture]` in pyproject.toml.

Modules that no command reaches are found by tests/test_tidy.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.checks.source import ROOT


def unused_names(*paths: str) -> str:
    """Findings of vulture, by the settings of pyproject.toml: a line each."""
    told = subprocess.run(
        [sys.executable, "-m", "vulture", *paths], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert not told.stderr
    return told.stdout


def test_every_name_is_used() -> None:
    assert unused_names() == ""


def test_unused_names_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def used(): ...\ndef unused(): ...\nused()\n")
    (tmp_path / "b.py").write_text("class Server:\n    def connection_lost(self): ...\nServer()\n")
    assert [line.partition(": ")[2] for line in unused_names(str(tmp_path)).splitlines()] == [
        "unused function 'unused' (60% confidence)"
    ]
