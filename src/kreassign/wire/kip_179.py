"""The four requests of KIP-179, which Kafka never shipped.

The document leaves fields, versions and API keys open. The definitions in `messages/` fill them in, with flexible
versions from the start, and with keys that Kafka does not use: 179 for the document, and two digits. A cluster that
offers them says so in its answer to ApiVersions, like any other API; Kafka's own clients ignore keys that they do not
know.
"""

from __future__ import annotations

from types import new_class
from typing import Any

from kafka.protocol.api_message import ApiMessage

from kreassign.wire import messages
from kreassign.wire.api import Api


def _api(key: int, name: str) -> Api:
    request, response = (_message(f"{name}{kind}") for kind in ("Request", "Response"))
    assert request.API_KEY == response.API_KEY == key
    return Api(key, name, request, response, 0, request.max_version)


def _message(name: str) -> Any:
    """The class of the definition `messages/<name>.json`."""
    return new_class(name, (ApiMessage,), {"load_json": messages}, lambda names: names.update(__module__=__name__))


ALTER_PARTITION_COUNTS = _api(17900, "AlterPartitionCounts")
ALTER_REPLICATION_FACTORS = _api(17901, "AlterReplicationFactors")
REASSIGN_PARTITIONS = _api(17902, "ReassignPartitions")
REPLICA_STATUS = _api(17903, "ReplicaStatus")

CHANGES = (ALTER_PARTITION_COUNTS, ALTER_REPLICATION_FACTORS, REASSIGN_PARTITIONS)
"""Those for the controller."""
APIS = (*CHANGES, REPLICA_STATUS)
