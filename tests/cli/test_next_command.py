"""Each command ends by naming the next one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import click
import pytest

from kreassign.cli.next_command import next_command
from kreassign.cli.run_text import commands_after
from kreassign.model.run import MoveStatus, Phase
from tests.cli.test_help import every_command
from tests.report.runs import a_move, a_run

WITHOUT = {
    "autopilot on": "it says that it is on again",
    "autopilot silence": "it says what is silent",
    "autopilot why": "it says why nothing is done",
    "completion": "it prints a script for a shell",
    "plan brokers-needed": "it answers with a number",
    "twin faults": "it prints a list",
    "web": "it serves until it is stopped",
}
"""Commands that name none, each with its reason. So do all of `twin`: what to do with a twin is told
by the one that starts it."""

_NAMES_ONE = frozenset({"print_next", "print_ways", "print_accepted"})


def called(function: Callable[..., Any]) -> Iterator[str]:
    """The names of all functions of the command line that a function calls, directly or through others of it."""
    todo, seen = [inspect.unwrap(function)], set[object]()
    while todo:
        one = todo.pop()
        if one in seen or not isinstance(one, FunctionType):
            continue
        seen.add(one)
        for name in _names(one.__code__):
            yield name
            found = one.__globals__.get(name)
            if callable(found) and str(getattr(found, "__module__", "")).startswith("kreassign.cli"):
                todo.append(inspect.unwrap(found))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


LEAVES = [(words, one) for words, one in every_command() if not isinstance(one, click.Group)]


@pytest.mark.parametrize(("words", "command"), LEAVES, ids=[words for words, _ in LEAVES])
def test_each_command_names_the_next_one_but_for_those_with_a_reason(words: str, command: click.Command) -> None:
    assert command.callback is not None
    names_one = bool(_NAMES_ONE & set(called(command.callback)))
    assert names_one is (words not in WITHOUT and not words.startswith("twin "))


def test_a_function_that_names_no_command_is_found() -> None:
    assert not _NAMES_ONE & set(called(_names))


@pytest.mark.parametrize("words", ["load", "audit run", "audit records", "audit compare", "rehearse", "plan fleet"])
def test_long_work_says_what_goes_on(words: str) -> None:
    (command,) = (one for name, one in LEAVES if name == words)
    assert command.callback is not None
    assert {"working", "WorkingLine"} & set(called(command.callback))


def test_a_line_to_paste_replaces_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert next_command("plan", "--out", "plan.json") == "kreassign plan --out plan.json"
    for name in ("plan.json", "plan-2.json"):
        (tmp_path / name).touch()
    assert next_command("plan", "--out", "plan.json") == "kreassign plan --out plan-3.json"
    assert next_command("run", "plan.json") == "kreassign run plan.json"


def test_a_run_that_changed_nothing_has_nothing_to_undo() -> None:
    moved = a_move("t", 0, (1, 2), (3, 2))
    unmoved = replace(moved, status=MoveStatus.CANCELLED, bytes_copied=0)
    commands = [
        commands_after(a_run((move,), state=state))[0].split()[1]
        for move, state in ((moved, Phase.CANCELLED), (unmoved, Phase.CANCELLED), (moved, Phase.DONE))
    ]
    assert commands == ["rollback", "doctor", "verify"]
