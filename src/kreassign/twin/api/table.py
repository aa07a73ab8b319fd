"""All handlers, in the order of their APIs' numbers."""

from __future__ import annotations

from kreassign.twin.api import (
    k02_list_offsets,
    k03_metadata,
    k10_find_coordinator,
    k16_list_groups,
    k17_sasl_handshake,
    k18_api_versions,
    k19_create_topics,
    k20_delete_topics,
    k32_describe_configs,
    k33_alter_configs,
    k34_alter_replica_log_dirs,
    k35_describe_log_dirs,
    k36_sasl_authenticate,
    k37_create_partitions,
    k43_elect_leaders,
    k44_incremental_alter_configs,
    k45_alter_partition_reassignments,
    k46_list_partition_reassignments,
    k55_describe_quorum,
    k60_describe_cluster,
    k75_describe_topic_partitions,
    k17900_alter_partition_counts,
    k17901_alter_replication_factors,
    k17902_reassign_partitions,
    k17903_replica_status,
)

HANDLERS = (
    *k02_list_offsets.HANDLERS,
    *k03_metadata.HANDLERS,
    *k10_find_coordinator.HANDLERS,
    *k16_list_groups.HANDLERS,
    *k17_sasl_handshake.HANDLERS,
    *k18_api_versions.HANDLERS,
    *k19_create_topics.HANDLERS,
    *k20_delete_topics.HANDLERS,
    *k32_describe_configs.HANDLERS,
    *k33_alter_configs.HANDLERS,
    *k34_alter_replica_log_dirs.HANDLERS,
    *k35_describe_log_dirs.HANDLERS,
    *k36_sasl_authenticate.HANDLERS,
    *k37_create_partitions.HANDLERS,
    *k43_elect_leaders.HANDLERS,
    *k44_incremental_alter_configs.HANDLERS,
    *k45_alter_partition_reassignments.HANDLERS,
    *k46_list_partition_reassignments.HANDLERS,
    *k55_describe_quorum.HANDLERS,
    *k60_describe_cluster.HANDLERS,
    *k75_describe_topic_partitions.HANDLERS,
    *k17900_alter_partition_counts.HANDLERS,
    *k17901_alter_replication_factors.HANDLERS,
    *k17902_reassign_partitions.HANDLERS,
    *k17903_replica_status.HANDLERS,
)
"""One per API."""

BY_KEY = {handler.api.key: handler for handler in HANDLERS}
"""The handlers by the number of their API."""
