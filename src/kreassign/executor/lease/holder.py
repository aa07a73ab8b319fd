"""Who holds the lease, as every member of the group can read it (DescribeGroups). Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from kreassign.model.group import GroupMember


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """A run, and the process that executes it since `since_ms`."""

    run_id: str
    user: str
    host: str
    since_ms: int

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since_ms / 1000, tz=UTC)
        return f"run {self.run_id} of {self.user}@{self.host} (since {since:%Y-%m-%d %H:%M:%S} UTC)"

    def encoded(self) -> bytes:
        """As the metadata of a member."""
        return json.dumps([self.run_id, self.user, self.host, self.since_ms]).encode()


def holder_of(member: GroupMember) -> LeaseHolder:
    """Who a member says that it is; what cannot be read is filled in from what the coordinator saw."""
    try:
        run_id, user, host, since_ms = json.loads(member.metadata)
        return LeaseHolder(str(run_id), str(user), str(host), int(since_ms))
    except (ValueError, TypeError):
        return LeaseHolder(member.instance_id or member.member_id, member.client_id, member.client_host, 0)
