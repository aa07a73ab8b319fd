"""Entry points of the scripts that replace Kafka's tools.

Other scripts call them once per poll, so their imports decide how long they take: kafka-python's clients
are left out before the module of the tool is imported. See docs/design/decisions/start-up.md.
"""

from __future__ import annotations

import gc
from importlib import import_module

from kreassign.startup import defer_kafka_clients


def leader_election() -> int:
    """`kafka-leader-election`."""
    return _run("kreassign.kafka_tools.leader_election:main")


def preferred_replica_election() -> int:
    """`kafka-preferred-replica-election`."""
    return _run("kreassign.kafka_tools.preferred_replica_election:main")


def reassign_partitions() -> int:
    """`kafka-reassign-partitions`.

    A process that does one short job needs no cycle collector: all its objects are in use until the end, and
    traversing them takes a tenth of the time on a large plan.
    """
    gc.disable()
    return _run("kreassign.kafka_tools.reassign_partitions:main")


def topics() -> int:
    """`kafka-topics`."""
    return _run("kreassign.kafka_tools.topics:main")


def _run(target: str) -> int:
    defer_kafka_clients()
    module, _, function = target.partition(":")
    exit_code: int = getattr(import_module(module), function)()
    return exit_code
