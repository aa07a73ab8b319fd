"""What KIP-179 changes of a topic - partition count, replication factor, replicas - decided before anything is sent.

Each decision is a function of a `TopicsView`: what is asked for, and either what to do or a `Refusal` per item. A
cluster that knows the requests of KIP-179 decides by itself, and a client decides for one that does not: by these
functions both, so that both come to the same. Error codes are those that KIP-179 lists; sentences are Kafka's where it
has them.
"""

from kreassign.model.topic_changes.decisions import (
    BrokerView,
    Refusal,
    TopicsView,
    decide_partition_counts,
    decide_reassignments,
    decide_replication_factors,
    min_in_sync_undercut,
    topics_view,
    unfit_assignment,
    unfit_count,
)

__all__ = [
    "BrokerView",
    "Refusal",
    "TopicsView",
    "decide_partition_counts",
    "decide_reassignments",
    "decide_replication_factors",
    "min_in_sync_undercut",
    "topics_view",
    "unfit_assignment",
    "unfit_count",
]
