"""Warnings of a use case about missing inputs."""

from __future__ import annotations

import pytest

from kreassign.operations.connect import KreassignWarning, warn_of_failures, warn_program
from tests.approved import approve


def test_few_failures_are_named_and_many_counted() -> None:
    warnings: list[str] = []
    warn_of_failures(warnings.append, "offsets", {f"t-{number}": ValueError(f"no {number}") for number in range(5)})
    approve(warnings, "failures-with-reasons-of-their-own")


def test_what_fails_for_one_reason_is_one_line() -> None:
    warnings: list[str] = []
    failed = {f"broker {number}": ValueError("not allowed") for number in range(5)} | {"topic t": ValueError("gone")}
    warn_of_failures(warnings.append, "configuration", failed)
    approve(warnings, "failures-for-one-reason")


def test_no_failure_is_no_warning() -> None:
    warnings: list[str] = []
    warn_of_failures(warnings.append, "offsets", {})
    assert not warnings


def test_programs_get_python_warnings_by_default() -> None:
    with pytest.warns(KreassignWarning, match="something is missing"):
        warn_program("something is missing")
