"""The page about the Python API is what the code says, has every name once, and its program does what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from enum import Enum
from types import SimpleNamespace

import pytest

import kreassign
from scripts.python_api_page import EXAMPLE, GROUPS, PAGE, python_api_page


class Colour(Enum):
    """What is seen."""

    RED = 1


def ask(what: str, *, how: tuple[int, ...] = (), colour: Colour = Colour.RED, of: object = PAGE) -> str:
    """Ask for something."""
    return f"{what} {how} {colour} {of}"


def test_a_function_becomes_a_section_with_its_defaults() -> None:
    page = python_api_page({"Ask": ("ask", "Colour")}, SimpleNamespace(ask=ask, Colour=Colour))
    line = "ask(what: str, *, how: tuple[int, ...] = (), colour: Colour = Colour.RED, of: object = …) -> str"
    assert f"## Ask\n\n### ask\n\n```python\n{line}\n```\n\nAsk for something.\n" in page
    assert page.endswith("### Colour\n\n```python\nColour: RED\n```\n\nWhat is seen.\n")


def test_every_name_that_is_offered_is_on_the_page_once() -> None:
    named = [name for names in GROUPS.values() for name in names]
    assert sorted(named) == sorted(kreassign.__all__)


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == python_api_page()


def test_nothing_on_the_page_changes_from_one_process_to_the_next() -> None:
    assert not re.findall(r"0x[0-9a-f]{6,}|<function|<class", PAGE.read_text(encoding="utf-8"))


@pytest.mark.thorough
def test_the_program_of_the_page_runs_on_a_twin_and_leaves_it_as_it_was() -> None:
    done = subprocess.run([sys.executable, "-c", EXAMPLE], capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    first, run, *drifts, last = done.stdout.splitlines()
    assert re.fullmatch(r"\d+ partitions, \d+ copies", first)
    assert run == "run: done and verified: True"
    assert len(drifts) == 2
    assert all(
        re.match(r"payments-\d+: is on .* not declared, replication factor 3, declared 2$", one) for one in drifts
    )
    assert last == "rolled back: done and as declared: True"
