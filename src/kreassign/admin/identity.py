"""Which cluster a client talks to: the one that answered first, and no other.

Addresses get reused: a Kubernetes service, a host that was set up again, a tunnel. What was decided for one cluster
must not be sent to another, so every new connection has to say whose it is before the first call on it.
"""

from __future__ import annotations

from threading import Lock

from kreassign.admin.settings import Address
from kreassign.errors import InputError, Unreachable


class ClusterIdentity:
    """The cluster id of a client, once it is known. Safe for use by several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._cluster_id = ""

    @property
    def is_known(self) -> bool:
        """Whether a node has said its cluster id already."""
        return bool(self._cluster_id)

    def check(self, address: Address, cluster_id: str) -> None:
        """Keep the first id, and compare all later ones with it. A node without an id is believed.

        Raises Unreachable for another cluster: nothing was sent to it, and the address may come back to the right one.
        """
        with self._lock:
            self._cluster_id = self._cluster_id or cluster_id
            if cluster_id in {"", self._cluster_id}:
                return
            raise Unreachable(
                f"{address} belongs to cluster {cluster_id}, not to {self._cluster_id} as expected; nothing was sent "
                "to it. Check where this address leads"
            )

    def expect(self, cluster_id: str) -> None:
        """Talk to this cluster only. Raises InputError when the client talks to another one already."""
        with self._lock:
            self._cluster_id = self._cluster_id or cluster_id
            if cluster_id not in {"", self._cluster_id}:
                raise InputError(f"the client is one of cluster {self._cluster_id}, not of {cluster_id}")
