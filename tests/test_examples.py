"""The examples: they compile, use what kreassign has, and their command lines can be typed as they stand there."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import click
import pytest

import kreassign
from kreassign.cli.main import kreassign as command_line
from kreassign.twin.cluster import Twin, TwinSettings
from kreassign.twin.server import serving
from tests.checks.source import ROOT, read
from tests.cli.test_help import every_command
from tests.twin.asking import cluster

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
EACH = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)


def texts(example: Path) -> Iterator[str]:
    """The texts of a program, but for those that document it."""
    tree = ast.parse(example.read_text(encoding="utf-8"), str(example))
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def command_lines(example: Path) -> list[list[str]]:
    """The words of each command line of kreassign, up to a pipe."""
    lines = (shlex.split(text.partition("|")[0]) for text in texts(example) if text.startswith("kreassign "))
    return [words[1:] for words in lines]


def test_the_examples_are_found_and_each_is_on_a_page() -> None:
    assert {path.name for path in EXAMPLES} >= {"airflow_load.py", "airflow_rebalance.py", "dagster_load.py"}
    pages = "\n".join(page.text for page in read("docs/guides/*.md", "CONTRIBUTING.md"))
    every = [path for path in (ROOT / "examples").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert not [str(path) for path in every if f"`{path.relative_to(ROOT)}`" not in pages]


@EACH
def test_an_example_compiles_and_says_what_it_is(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    compile(text, str(example), "exec")
    assert ast.get_docstring(ast.parse(text))


@EACH
def test_command_lines_of_examples_can_be_typed(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that a command needs: on the line, or from the variables that the example names."""
    monkeypatch.setenv("KREASSIGN_BOOTSTRAP_SERVER", "broker-1:9092")
    monkeypatch.setenv("KREASSIGN_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for words in command_lines(example):
        for file in (word for word in words if word.endswith((".json", ".gz"))):
            (tmp_path / file).touch()
        parsed = [str(tmp_path / "page.html") if word.endswith(".html") else word for word in words]
        name, rest = parsed[0], parsed[1:]
        command = command_line.get_command(click.Context(command_line), name)
        assert command is not None, words
        # A command keeps the help option of the first context that is made for it.
        command.make_context(name, rest, **command_line.context_settings)


@EACH
def test_variables_of_the_environment_that_examples_name_are_read(example: Path) -> None:
    options = [option for _, command in every_command() for option in command.params]
    known = {option.envvar for option in options if isinstance(option, click.Option)}
    named = set(re.findall(r"\bKREASSIGN_\w+", example.read_text(encoding="utf-8")))
    assert named <= known


@EACH
def test_names_of_kreassign_in_examples_are_offered(example: Path) -> None:
    tree = ast.parse(example.read_text(encoding="utf-8"))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "kreassign"
    }
    assert used <= set(kreassign.__all__)


def tasks_of(example: Path) -> list[tuple[str, str]]:
    """The tasks of a DAG in their order, each with the command that a shell runs."""
    found = []
    for node in ast.walk(ast.parse(example.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "BashOperator":
            given = {key.arg: key.value for key in node.keywords if isinstance(key.value, ast.Constant)}
            found.append((node.lineno, str(given["task_id"].value), str(given["bash_command"].value)))
    return [(name, command) for _, name, command in sorted(found)]


@pytest.mark.thorough
def test_the_tasks_of_the_weekly_dag_wait_for_approval_and_run_on_a_twin(tmp_path: Path) -> None:
    tasks = dict(tasks_of(ROOT / "examples" / "airflow_rebalance.py"))
    assert list(tasks) == ["check", "snapshot", "plan", "rehearse", "page", "approved", "run", "declare"]
    kept = {name: os.environ[name] for name in ("KREASSIGN_TESTS", "LANG") if name in os.environ}
    programs = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    with serving(Twin(cluster({"t": [[0, 1]] * 6}), TwinSettings()), speed=20.0) as thread:
        places = {
            "KREASSIGN_BOOTSTRAP_SERVER": thread.bootstrap_servers, "KREASSIGN_STATE_DIR": str(tmp_path / "state"),
            "KREASSIGN_THROTTLE": "50MB/s", "PATH": programs, "HOME": str(tmp_path),
        }  # fmt: skip

        def run(command: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env={**kept, **places}, capture_output=True, text=True,
                check=False, timeout=180,
            )  # fmt: skip

        for name in ("snapshot", "plan", "rehearse", "page"):
            done = run(tasks[name])
            assert done.returncode == 0, (name, done.stderr)
        waiting = run(tasks["approved"])
        assert waiting.returncode != 0
        assert "approve" in waiting.stderr
        assert run("kreassign approve plan.json").returncode == 0
        for name in ("approved", "run", "declare", "check"):
            done = run(tasks[name])
            assert done.returncode == 0, (name, done.stderr)
    assert (tmp_path / "plan.html").exists()


def scheduler() -> ModuleType:
    """The part of Dagster that the example uses: functions stay functions, and all else keeps its arguments."""

    def decorator(**_: object) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        return lambda function: function

    module = ModuleType("dagster")
    module.__dict__.update(
        asset=decorator, asset_check=decorator, MaterializeResult=SimpleNamespace, AssetCheckResult=SimpleNamespace,
        MetadataValue=SimpleNamespace(md=str, path=Path), Definitions=SimpleNamespace,
        AssetSelection=SimpleNamespace(groups=str), ScheduleDefinition=SimpleNamespace,
    )  # fmt: skip
    return module


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_hourly_dag_and_the_assets_make_loads_of_a_twin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = dict(tasks_of(ROOT / "examples" / "airflow_load.py"))
    assert list(tasks) == ["snapshot", "load", "figures", "compact"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("KREASSIGN_DATA", str(tmp_path / "data"))
    page = tmp_path / "load.html"

    def run(command: str) -> str:
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    with serving(Twin(cluster({"t": [[0, 1]] * 6}), TwinSettings())) as thread:
        monkeypatch.setenv("KREASSIGN_BOOTSTRAP_SERVER", thread.bootstrap_servers)
        run("kreassign collect --rounds 3 --interval 1s")
        assert "/srv/kreassign/load.html" in tasks["load"]
        told = {name: run(task.replace("/srv/kreassign/load.html", str(page))) for name, task in tasks.items()}
        assert page.exists()
        # One line of JSON, as the last line of a task's output is all that other tasks see of it.
        (line,) = told["figures"].splitlines()
        assert [found["totals"]["partition_count"] for found in json.loads(line)["clusters"]] == [6]
        assert "files merged" in told["compact"]

        page.unlink()
        monkeypatch.setitem(sys.modules, "dagster", scheduler())
        assets = runpy.run_path(str(ROOT / "examples" / "dagster_load.py"))
        assert "snapshot" in assets["snapshot"]().metadata["told"]
        made = assets["load"]().metadata
        assert (made["dagster/row_count"], made["page"].exists()) == (6, True)
        assert made["size_bytes"] > 0
        # Rounds of three seconds are not enough to plan by, and the check says so.
        check = assets["little_is_doubtful"]()
        assert (check.passed, check.metadata["doubtful_share"] > assets["MOST_DOUBTFUL"]) == (False, True)
        monkeypatch.setenv("KREASSIGN_BOOTSTRAP_SERVER", "127.0.0.1:1")
        with pytest.raises(subprocess.CalledProcessError):
            assets["snapshot"]()


def test_a_command_line_that_cannot_be_typed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text('"""kreassign gone is only told."""\nrun("kreassign load --gone 1 | cat")\n')
    assert command_lines(wrong) == [["load", "--gone", "1"]]
    with pytest.raises(click.NoSuchOption):
        test_command_lines_of_examples_can_be_typed(wrong, tmp_path, monkeypatch)
