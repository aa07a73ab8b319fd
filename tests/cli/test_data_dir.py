from __future__ import annotations

import pytest

from kreassign.cli.data_dir import warn_of_failures


def test_few_failures_are_named_and_many_counted(capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_failures("offsets", {f"t-{number}": ValueError(f"no {number}") for number in range(5)})
    assert capsys.readouterr().err.splitlines() == [
        "warning: 5 without offsets:",
        "  t-0: no 0",
        "  t-1: no 1",
        "  t-2: no 2",
        "  and 2 more",
    ]


def test_no_failure_is_no_word(capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_failures("offsets", {})
    assert capsys.readouterr().err == ""
