"""Output of all drop-in tools cannot control the terminal."""

from __future__ import annotations

import sys

import pytest

from kreassign.errors import Rejected
from kreassign.kafka_tools.command_line import ErrorStyle, exit_code

TEXT = "all is well\x1b[2J"


def fail() -> None:
    sys.stdout.write(f"{TEXT}\n")
    sys.stderr.write(f"{TEXT}\n")
    raise Rejected(TEXT, api="Metadata", code=42, name="INVALID_REQUEST")


@pytest.mark.parametrize("style", ErrorStyle)
def test_text_of_a_cluster_cannot_control_the_terminal(style: ErrorStyle, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(fail, (), style) == 1
    printed = "".join(capsys.readouterr())
    assert printed.count(r"all is well\u001b[2J") == 3
    assert "\x1b" not in printed
