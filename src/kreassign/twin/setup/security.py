"""Users and permissions of a twin, from the table `[security]` of a scenario."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.errors import InputError
from kreassign.model.keyed_table import KeyedTable
from kreassign.twin.access.permissions import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, Allow, Operation, Permissions
from kreassign.twin.access.sasl import Users


@dataclass(frozen=True, slots=True)
class Security:
    """How clients connect. Without `users` they need not authenticate, without a certificate there is no TLS.

    `certificate` and `key` are paths of PEM files, relative to the scenario. Without `permissions` everybody may do
    everything.
    """

    users: Users | None = None
    certificate: str | None = None
    key: str | None = None
    permissions: Permissions | None = None


OPEN = Security()
"""Every client may connect and do everything."""


def read_security(table: KeyedTable) -> Security:
    """Read the table `[security]`; an empty one allows everything."""
    with table.taken_whole():
        passwords = table.text_map("users")
        certificate, key = table.text("certificate", ""), table.text("key", "")
        if bool(certificate) != bool(key):
            raise InputError("'certificate' and 'key' belong together; give both or none")
        super_users = frozenset(table.texts("super_users"))
        rules = frozenset(_read_rule(rule) for rule in table.tables("allow"))
        return Security(
            Users(passwords) if passwords else None,
            certificate or None,
            key or None,
            Permissions(rules, super_users) if rules or super_users else None,
        )


def _read_rule(table: KeyedTable) -> Allow:
    with table.taken_whole():
        principal, name = table.text("principal"), table.text("operation")
        topic = table.text("topic") if table.has("topic") else None
        possible = CLUSTER_OPERATIONS if topic is None else TOPIC_OPERATIONS
        operation = next((operation for operation in possible if operation.name == name.upper()), None)
        if operation is None:
            names = ", ".join(operation.name for operation in sorted(possible))
            whom = "the cluster" if topic is None else "a topic"
            raise InputError(f"{name!r} is no operation on {whom}; there are {names}")
        if not principal.startswith("User:"):
            raise InputError(f"{principal!r} is no principal; write User:name")
        return Allow(principal, Operation(operation), topic)
