import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kreassign.cli.main import COMMANDS, LazyCommand, kreassign
from kreassign.cli.output import console
from kreassign.errors import DataError, Drifted, IllegalPlan, KreassignError, Unreachable

HEAVY = ("kafka", "pyarrow", "pyspark", "jinja2")


ERRORS = {
    "own": (KreassignError("broken"), 1),
    "input": (IllegalPlan(("broken",)), 2),
    "cluster": (Unreachable("broken"), 4),
    "execution": (Drifted("broken"), 5),
    "data": (DataError("broken"), 6),
    "system": (FileNotFoundError(2, "No such file", "broken"), 1),
    "bug": (ZeroDivisionError("broken"), None),
}


@click.command()
@click.argument("kind")
def fail(kind: str) -> None:
    raise ERRORS[kind][0]


@pytest.fixture(autouse=True)
def failing_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "fail", LazyCommand(f"{__name__}:fail", "Fail."))


@pytest.mark.parametrize("kind", ["own", "input", "cluster", "execution", "data", "system"])
def test_an_error_is_one_message_on_stderr_and_its_exit_code(kind: str) -> None:
    result = CliRunner().invoke(kreassign, ["fail", kind])
    assert (result.exit_code, result.stdout) == (ERRORS[kind][1], "")
    assert result.stderr.startswith("error: ")
    assert "broken" in result.stderr
    assert not [word for word in ("Traceback", "Errno") if word in result.stderr]


def test_debug_keeps_the_error_and_its_traceback() -> None:
    result = CliRunner().invoke(kreassign, ["--debug", "fail", "data"])
    assert result.exception is ERRORS["data"][0]


def test_a_bug_of_ours_is_not_hidden() -> None:
    assert CliRunner().invoke(kreassign, ["fail", "bug"]).exception is ERRORS["bug"][0]


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(kreassign, ["nonsense"])
    assert result.exit_code == 2
    assert "nonsense" in result.stderr


def loaded_after(statement: str) -> set[str]:
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(finished.stdout.split())


def test_importing_the_command_line_imports_nothing_heavy() -> None:
    assert loaded_after("import kreassign.cli.main").isdisjoint(HEAVY)


def test_listing_the_commands_imports_none_of_them() -> None:
    statement = (
        "from click.testing import CliRunner\nfrom kreassign.cli.main import kreassign\n"
        "assert CliRunner().invoke(kreassign, ['--help']).exit_code == 0"
    )
    loaded = loaded_after(statement)
    assert loaded.isdisjoint(HEAVY)
    assert not any(name.startswith("kreassign.cli.commands.") for name in loaded)


def test_every_command_module_is_registered() -> None:
    folder = Path(sys.modules["kreassign.cli.main"].__file__ or "").parent / "commands"
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert modules == {
        command.target.split(":")[0].rpartition(".")[2] for name, command in COMMANDS.items() if name != "fail"
    }


@click.command()
@click.argument("text")
def shout(text: str) -> None:
    click.echo(text)
    click.echo(text, err=True)
    console().print(text)
    raise DataError(text)


def test_text_of_a_cluster_cannot_control_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "shout", LazyCommand(f"{__name__}:shout", "Shout."))
    result = CliRunner().invoke(kreassign, ["shout", "\x9b2J\x1b]0;title\x07all is well\r"])
    shown = r"\u009b2J\u001b]0;title\u0007all is well\u000d"
    assert result.stdout == f"{shown}\n{shown}\n"
    assert result.stderr == f"{shown}\nerror: {shown}\n"


@pytest.mark.parametrize(("umask", "kept"), [(0o777, 0o077), (0o227, 0o027), (0o022, 0o022), (0, 0)])
def test_an_umask_takes_no_rights_from_the_owner(umask: int, kept: int) -> None:
    """Tables lie in folders that libraries make, which nobody could enter."""
    program = (
        "import os, sys\nfrom kreassign.cli.main import main\nsys.argv = ['kreassign', '--version']\n"
        "try:\n    main()\nfinally:\n    print(os.umask(0))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, umask=umask)
    assert done.stdout.splitlines()[-1] == str(kept)
