"""Model ↔ messages, pure: each function makes the `Call` for one API; one module per subject."""

from kreassign.admin.translate.configs import describe_configs, incremental_alter_configs
from kreassign.admin.translate.groups import (
    allowed_on_group,
    commit_offsets,
    describe_group,
    fetch_offsets,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    sync_group,
)
from kreassign.admin.translate.leaders import already_led, elect_leaders
from kreassign.admin.translate.log_dirs import alter_replica_log_dirs, describe_log_dirs
from kreassign.admin.translate.nodes import (
    allowed_on_cluster,
    allowed_on_topics,
    controller_nodes,
    describe_cluster,
    has_quorum,
    nodes,
    unregister_broker,
)
from kreassign.admin.translate.offsets import list_offsets
from kreassign.admin.translate.reassignments import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from kreassign.admin.translate.topics import (
    Cursor,
    create_partitions,
    create_topics,
    delete_topics,
    describe_topic_page,
    describe_topics_by_metadata,
    list_topics,
    missing_from_pages,
    unknown_partition,
)

__all__ = [
    "Cursor",
    "allowed_on_cluster",
    "allowed_on_group",
    "allowed_on_topics",
    "already_led",
    "alter_partition_reassignments",
    "alter_replica_log_dirs",
    "commit_offsets",
    "controller_nodes",
    "create_partitions",
    "create_topics",
    "delete_topics",
    "describe_cluster",
    "describe_configs",
    "describe_group",
    "describe_log_dirs",
    "describe_topic_page",
    "describe_topics_by_metadata",
    "elect_leaders",
    "fetch_offsets",
    "find_coordinator",
    "has_quorum",
    "heartbeat",
    "incremental_alter_configs",
    "join_group",
    "leave_group",
    "list_offsets",
    "list_partition_reassignments",
    "list_topics",
    "missing_from_pages",
    "nodes",
    "sync_group",
    "unknown_partition",
    "unregister_broker",
]
