"""Findings as operators name them: by kind and subject."""

from __future__ import annotations

import pytest

from kreassign.autopilot.events import Name, parse_name
from kreassign.autopilot.policy import Kind
from kreassign.errors import InputError


@pytest.mark.parametrize(("kind", "subject"), [
    (Kind.BROKER_GONE, "broker 3"),
    (Kind.DISK_FILLS, "broker 3:/data/d 0"),
    (Kind.MANY_GONE, "cluster"),
])  # fmt: skip
def test_a_subject_as_status_shows_it_is_taken(kind: Kind, subject: str) -> None:
    assert parse_name(kind, subject) == Name(kind, subject)


@pytest.mark.parametrize(("kind", "subject", "example"), [
    (Kind.BROKER_GONE, "brker 3", "broker 3"),
    (Kind.BROKER_GONE, "broker 3:/data/d0", "broker 3"),
    (Kind.DIRECTORY_FAILED, "broker 3", "broker 3:/data/d0"),
    (Kind.LEADERS, "broker 3", "cluster"),
])  # fmt: skip
def test_a_subject_that_no_finding_has_is_refused(kind: Kind, subject: str, example: str) -> None:
    """A silence of it would silence nothing."""
    with pytest.raises(InputError, match=f"is no subject of {kind}; write it as '{example}'"):
        parse_name(kind, subject)
