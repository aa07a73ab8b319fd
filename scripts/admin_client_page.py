#!/usr/bin/env python3
"""Write docs/reference/admin-client.md from the docstrings of `AdminClient`.

python scripts/admin_client_page.py
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from kreassign.admin import AdminClient

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "admin-client.md"

JAVA = {
    "create": "connect",
    "close": "close",
    "describeCluster": "describe_cluster",
    "unregisterBroker": "unregister_broker",
    "listTopics": "list_topics",
    "describeTopics": "describe_topics",
    "createTopics": "create_topics",
    "deleteTopics": "delete_topics",
    "createPartitions": "create_partitions",
    "alterPartitionReassignments": "alter_partition_reassignments",
    "listPartitionReassignments": "list_partition_reassignments",
    "electLeaders": "elect_leaders",
    "describeConfigs": "describe_configs",
    "incrementalAlterConfigs": "incremental_alter_configs",
    "describeLogDirs": "describe_log_dirs",
    "describeReplicaLogDirs": "describe_log_dirs",
    "alterReplicaLogDirs": "alter_replica_log_dirs",
    "listOffsets": "list_offsets",
    "electPreferredLeaders (KIP-183, gone in Kafka 3)": "elect_preferred_leaders",
    "alterPartitionCounts (KIP-179, never shipped)": "alter_partition_counts",
    "alterReplicationFactors (KIP-179, never shipped)": "alter_replication_factors",
    "reassignPartitions (KIP-179, never shipped)": "reassign_partitions",
    "replicaStatus (KIP-179, never shipped)": "replica_status",
}
"""Methods of Java's `Admin`, and those here. Those for groups, ACLs, quotas, tokens and transactions are missing."""

_HEAD = """\
# AdminClient

`kreassign.admin.AdminClient` speaks to one Kafka cluster: topics, reassignments, elections, configuration, log
directories and offsets. It is a library of its own: nothing else of kreassign is loaded with it.

**Calls are synchronous.** A method returns when the cluster has answered, or raises. There are no futures; a client
may be used by several threads at once. Where many brokers have to be asked, they are asked at the same time.

```python
from kreassign.admin import AdminClient, client_settings
from kreassign.model import TopicPartition

with AdminClient.connect(client_settings(bootstrap_servers="localhost:9092")) as client:
    outcome = client.alter_partition_reassignments({TopicPartition("orders", 0): (1, 2, 3)})
    for partition, error in outcome.failed.items():
        print(partition, error.code, error.message)
    print(client.list_partition_reassignments())
```

TLS and SASL are set by [client properties](client-properties.md):
`client_settings(read_properties(Path("client.properties")))`.

## Outcomes and errors

A call about many items returns a `Batch`: `ok` maps each item to its value, `failed` to its error. `batch[item]` is
the value or raises the item's error, `batch.raise_if_any()` raises the first error or returns all values.

A call that fails as a whole raises one of these, all of them `kreassign.errors.ClusterError` with `message`, `item`
(what it was about, if it was one thing) and `api` (the Kafka API):

| Error | Meaning |
|---|---|
| `Rejected` | Kafka answered with an error: its `code` (39), `name` (`INVALID_REPLICA_ASSIGNMENT`) and `message` |
| `Unreachable` | no broker got the request, so trying again is safe |
| `OutcomeUnknown` | the request was sent and no answer came: it may have been carried out |
| `Unsupported` | the cluster does not offer that API, version or option; nothing was sent |
| `Unauthenticated` | TLS or SASL failed; nothing was sent |
| `ProtocolViolation` | the answer is not Kafka's protocol |

Reads are repeated until `timeout_ms` is over (by default `default.api.timeout.ms`, 60 s). A write is never repeated
once it was sent. The numbers and texts of all error codes are in `kreassign.model.error_codes`.

This page is written by `python scripts/admin_client_page.py` from the docstrings; change those instead.
"""


def admin_client_page(client: type[Any] = AdminClient, java: Mapping[str, str] = JAVA) -> str:
    """The page in Markdown."""
    methods = public_methods(client)
    rows = [f"| `{theirs}` | [`{ours}`](#{ours}) |" for theirs, ours in java.items()]
    table = ["## From Java's Admin", "", "| Java | Python |", "|---|---|", *rows, ""]
    return "\n".join([_HEAD, *table, "## Methods", "", *(_section(*method) for method in methods.items())])


def public_methods(client: type[Any]) -> dict[str, Callable[..., Any]]:
    """The methods of a class for its users, in the order of its source, those of its base first."""
    names = [name for home in reversed(client.__mro__) for name in vars(home) if not name.startswith("_")]
    found = {name: getattr(client, name) for name in names}
    return {name: value for name, value in found.items() if callable(value)}


def main() -> None:
    """Write the page."""
    PAGE.write_text(admin_client_page(), encoding="utf-8")


def _section(name: str, method: Callable[..., Any]) -> str:
    return f"### {name}\n\n```python\n{_signature(name, method)}\n```\n\n{inspect.getdoc(method)}\n"


def _signature(name: str, method: Callable[..., Any]) -> str:
    signature = inspect.signature(method)
    shown = [value for key, value in signature.parameters.items() if key != "self"]
    parameters = list(map(_parameter, shown))
    keywords = [value.kind is value.KEYWORD_ONLY for value in shown]
    if any(keywords):
        parameters.insert(keywords.index(True), "*")
    closing = f") -> {_plain(signature.return_annotation)}"
    line = f"{name}({', '.join(parameters)}{closing}"
    if len(line) <= 110:
        return line
    return "\n".join([f"{name}(", *(f"    {parameter}," for parameter in parameters), closing])


def _parameter(parameter: inspect.Parameter) -> str:
    annotated = f"{parameter.name}: {_plain(parameter.annotation)}"
    default = parameter.default
    if default is parameter.empty:
        return annotated
    if isinstance(default, Mapping):
        return f"{annotated} = {dict(default)}"
    return f"{annotated} = {_name(default) if isinstance(default, Enum) else repr(default)}"


def _plain(annotation: str) -> str:
    """A type without the module that it is from."""
    return re.sub(r"\b[a-z_]+\.(?=[A-Z])", "", annotation)


def _name(choice: Enum) -> str:
    return f"{type(choice).__name__}.{choice.name}"


if __name__ == "__main__":
    main()
