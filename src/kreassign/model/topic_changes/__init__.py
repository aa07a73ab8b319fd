"""Decisions on KIP-179's changes of a topic - partition count, replication factor, replicas - before sending anything.

Each decision is a function of a `TopicsView` and the request, with the change or a `Refusal` per item. A
cluster with KIP-179's requests decides by itself, and a client decides for other clusters: both by these
functions, with the same result. Error codes are those of KIP-179; sentences are Kafka's if it
has them.
"""

from kreassign.model.topic_changes.decisions import (
    BrokerView,
    Refusal,
    TopicsView,
    decide_partition_counts,
    decide_reassignments,
    decide_replication_factors,
    topics_view,
    unfit_assignment,
    unfit_count,
    unwise_removals,
)

__all__ = [
    "BrokerView",
    "Refusal",
    "TopicsView",
    "decide_partition_counts",
    "decide_reassignments",
    "decide_replication_factors",
    "topics_view",
    "unfit_assignment",
    "unfit_count",
    "unwise_removals",
]
