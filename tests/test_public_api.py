"""`import kreassign`: what it offers, what it costs, and the program that its guide shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kreassign
from kreassign.executor.journal import find_journals
from kreassign.twin.cluster import Twin, TwinSettings
from kreassign.twin.network.server import serving
from tests.twin.asking import cluster

GUIDE = Path(__file__).parent.parent / "docs" / "guides" / "use-from-python.md"
SPEED = 10.0
"""Seconds of the twin in one second of ours."""


def program() -> str:
    (block,) = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return str(block)


def test_the_program_of_the_guide_plans_rehearses_runs_watches_verifies_and_rolls_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    twin = Twin(cluster({"t": [[0, 3], [3, 1], [2, 0]]}), TwinSettings())
    names: dict[str, Any] = {}
    with serving(twin, speed=SPEED) as thread:
        assert "localhost:9092" in program()
        exec(program().replace("localhost:9092", thread.bootstrap_servers), names)
        with kreassign.connect(thread.bootstrap_servers) as client:
            found = client.describe_topics(["t"]).raise_if_any()["t"]
    seen = SimpleNamespace(**names)
    assert seen.rehearsal.history.state == "done"
    assert seen.done.state == "done"
    assert all(3 not in target for target in seen.plan.plan.replicas.values())
    printed = capsys.readouterr().out
    assert "rehearsal: done in" in printed
    assert "done 2 of 2" in printed
    assert "verified: True" in printed
    assert seen.undone.run.state == "done"
    assert [partition.replicas for partition in found.partitions] == [(0, 3), (3, 1), (2, 0)]
    assert len(find_journals(tmp_path / "kreassign")) == 2


def test_the_guides_program_has_about_ten_lines() -> None:
    assert len([line for line in program().splitlines() if line.strip()]) <= 12


@pytest.mark.parametrize("name", kreassign.__all__)
def test_every_name_is_there_and_says_what_it_does(name: str) -> None:
    assert getattr(kreassign, name).__doc__
    assert name in dir(kreassign)


def test_another_name_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        kreassign.nonsense  # noqa: B018 - the access is what is tested


def test_importing_it_imports_nothing_else() -> None:
    program = "import sys, kreassign; print(*(name for name in sys.modules if name.startswith('kreassign')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["kreassign"]


def test_the_command_line_is_a_module_that_python_runs() -> None:
    done = subprocess.run([sys.executable, "-m", "kreassign", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"kreassign, version {kreassign.__version__}\n"
