"""Completion in shells: the scripts, and what they are answered."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from kreassign.cli.commands.completion import PROGRAM, VARIABLE
from kreassign.cli.main import kreassign
from tests.cli.test_run_views import written
from tests.executor.run_events import WHOLE


def completed(*words: str) -> list[str]:
    """What a shell is offered for the last of these words."""
    answers = ShellComplete(kreassign, {}, PROGRAM, VARIABLE).get_completions(list(words[:-1]), words[-1])
    return [answer.value for answer in answers]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_asks_kreassign(shell: str) -> None:
    script = CliRunner().invoke(kreassign, ["completion", shell])
    assert script.exit_code == 0, script.output
    assert f"{VARIABLE}={shell}_complete" in script.stdout
    if (program := shutil.which(shell)) is None:
        assert shell != "bash"
        return  # where it is, it reads the script without executing it
    checked = subprocess.run([program, "-n"], input=script.stdout, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_commands_options_choices_and_runs_are_completed(tmp_path: Path) -> None:
    assert completed("ca") == ["cancel"]
    assert completed("plan", "drain-") == ["drain-brokers", "drain-dirs"]
    assert completed("run", "--thr") == ["--throttle", "--throttle-broker", "--throttle-floor"]
    assert completed("run", "--order", "sm") == ["small-first"]
    written(tmp_path, *WHOLE)
    assert completed("status", "--state-dir", str(tmp_path), "r") == ["run-1"]
    assert completed("status", "--state-dir", str(tmp_path), "") == ["last", "run-1"]


def test_files_beside_a_plan_are_not_completed(tmp_path: Path) -> None:
    for name in ("plan.json", "plan.facts.json", "plan.approval.json", "other.txt"):
        (tmp_path / name).touch()
    for command in ("run", "approve", "rehearse"):
        assert completed(command, f"{tmp_path}/pl") == [f"{tmp_path}/plan.json"]
    assert completed("run", f"{tmp_path}/o") == [f"{tmp_path}/o"], "which the shell completes with any file"
