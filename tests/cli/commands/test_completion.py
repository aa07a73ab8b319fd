"""Completion in shells: the scripts, and what they are answered."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from kreassign.cli.commands.completion import PROGRAM
from kreassign.cli.main import kreassign
from kreassign.cli.mistakes import COMPLETION
from tests.cli.test_run_views import written
from tests.executor.run_events import WHOLE

# As the installed script of that name: Python imports what this process imports.
PROGRAM_HERE = (sys.executable, "-c", "from kreassign.cli.main import main; main()")


def completed(*words: str) -> list[str]:
    """Completions that a shell is offered for the last of these words."""
    answers = ShellComplete(kreassign, {}, PROGRAM, COMPLETION).get_completions(list(words[:-1]), words[-1])
    return [answer.value for answer in answers]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_asks_kreassign(shell: str) -> None:
    script = CliRunner().invoke(kreassign, ["completion", shell])
    assert script.exit_code == 0, script.output
    assert f"{COMPLETION}={shell}_complete" in script.stdout
    if (program := shutil.which(shell)) is None:
        assert shell != "bash"
        return  # where it is, it reads the script without executing it
    checked = subprocess.run([program, "-n"], input=script.stdout, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(
    ("shell", "asked", "answer"),
    [
        ("bash", {"COMP_WORDS": "kreassign dec", "COMP_CWORD": "1"}, "plain,decommission"),
        ("zsh", {"COMP_WORDS": "kreassign dec", "COMP_CWORD": "1"}, "plain\ndecommission\n"),
        ("fish", {"COMP_WORDS": "kreassign dec", "COMP_CWORD": "dec"}, "plain,decommission\t"),
    ],
)
def test_the_program_answers_what_the_script_of_a_shell_asks(shell: str, asked: dict[str, str], answer: str) -> None:
    done = subprocess.run(
        PROGRAM_HERE, env={**os.environ, COMPLETION: f"{shell}_complete", **asked},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert answer in done.stdout


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        *(
            (
                {COMPLETION: f"{shell}_complete"},
                f"{COMPLETION} is set without COMP_WORDS and COMP_CWORD, which the script for completion sets, too",
            )
            for shell in ("bash", "zsh", "fish")
        ),
        (
            {COMPLETION: "fish_complete", "COMP_WORDS": "kreassign"},
            f"{COMPLETION} is set without COMP_CWORD, which the script for completion sets, too",
        ),
        (
            {COMPLETION: "zsh_complete", "COMP_WORDS": "kreassign", "COMP_CWORD": "last"},
            "COMP_CWORD is 'last', and not the number of a word",
        ),
        ({COMPLETION: "tcsh_complete"}, f"{COMPLETION} is 'tcsh_complete', which no script for completion sets"),
        ({COMPLETION: "bash"}, f"{COMPLETION} is 'bash', which no script for completion sets"),
    ],
)
def test_a_half_set_environment_of_completion_is_named(asked: dict[str, str], said: str) -> None:
    done = CliRunner().invoke(kreassign, ["status"], env=asked)
    rest = f"Unset {COMPLETION} to give a command; `kreassign completion --help` says how a shell completes"
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"error: {said}. {rest}\n")


# What each shell runs to complete `kreassign dec` with our script, without a terminal.
IN_SHELL = {
    "bash": """
        eval "$(kreassign completion bash)"
        COMP_WORDS=(kreassign dec); COMP_CWORD=1; _kreassign_completion kreassign; echo "${COMPREPLY[@]}"
    """,
    "fish": "kreassign completion fish | source; complete --do-complete 'kreassign dec'",
    "zsh": """
        autoload -Uz compinit; compinit -u -d "$TMPDIR/zcompdump"
        eval "$(kreassign completion zsh)"
        _describe() { print -- "${(P)3}" }  # which only works while a line is edited
        words=(kreassign dec); CURRENT=2; _kreassign_completion
    """,
}


@pytest.mark.parametrize("shell", IN_SHELL)
def test_the_shell_itself_completes_a_command(shell: str, tmp_path: Path) -> None:
    if (program := shutil.which(shell)) is None:
        assert shell != "bash"
        return
    here = tmp_path / "kreassign"
    here.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAM_HERE)} "$@"\n')
    here.chmod(0o755)
    done = subprocess.run(
        [program, "-c", IN_SHELL[shell]],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert "decommission" in done.stdout, (done.stdout, done.stderr)


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
