"""Logins at a twin, by its scenario."""

from __future__ import annotations

import pytest

from kreassign.errors import InputError
from kreassign.model.documents import KeyedTable
from kreassign.twin.access import Operation
from kreassign.twin.scenario import OPEN, Security, read_security


def security(text: str) -> Security:
    return read_security(KeyedTable.from_toml(text, "x.toml"))


def test_without_settings_every_listener_is_open() -> None:
    assert security("") == OPEN


def test_users_certificates_and_rules_are_read() -> None:
    found = security("""
        users = { admin = "secret" }
        certificate = "a.pem"
        key = "b.pem"
        super_users = ["User:admin"]
        allow = [{ principal = "User:x", operation = "describe", topic = "t" },
                 { principal = "User:x", operation = "ALTER" }]
    """)
    assert found.users is not None
    assert found.users.judge(b"\0admin\0secret").user == "admin"
    assert (found.certificate, found.key) == ("a.pem", "b.pem")
    assert found.permissions is not None
    assert found.permissions.allows("User:admin", Operation.DELETE, "any")
    assert found.permissions.allows("User:x", Operation.DESCRIBE, "t")
    assert not found.permissions.allows("User:x", Operation.DESCRIBE, "u")
    assert found.permissions.allows("User:x", Operation.ALTER)


@pytest.mark.parametrize(("text", "complaint"), [
    ('certificate = "a.pem"', "'certificate' and 'key' belong together"),
    ('allow = [{ principal = "x", operation = "ALTER" }]', "[[allow]] 1: 'x' is no principal; write User:name"),
    ('allow = [{ principal = "User:x", operation = "READ" }]', "[[allow]] 1: 'READ' is no operation on the cluster"),
    ('allow = [{ principal = "User:x", operation = "FLY", topic = "t" }]', "'FLY' is no operation on a topic; there"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(InputError) as refusal:
        security(text)
    assert complaint in str(refusal.value)
