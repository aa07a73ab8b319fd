"""Former names of commands and options are refused, not half understood."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign

COMMANDS = {
    "kreassign tidy --data data": "No such command 'tidy'",
    "kreassign plan factor 3": "No such command 'factor'",
}
OPTIONS = {
    "kreassign run plan.json": ("--rates-over", "--resume"),
    "kreassign cancel run-1": ("--now",),
    "kreassign snapshot": ("--rates-over",),
    "kreassign plan what-if": ("--factor",),
    "kreassign plan repair": ("--mend-racks", "--leave-racks", "--mend-factors", "--leave-factors"),
}
LINES = {f"{command} {option}": option for command, options in OPTIONS.items() for option in options}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_former_command_is_a_usage_error(line: str) -> None:
    refused = CliRunner().invoke(kreassign, line.split()[1:])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert COMMANDS[line] in refused.stderr


@pytest.mark.parametrize("line", LINES)
def test_a_former_option_is_a_usage_error(line: str) -> None:
    refused = CliRunner().invoke(kreassign, [*line.split()[1:], "1"])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"No such option '{LINES[line]}'" in refused.stderr
