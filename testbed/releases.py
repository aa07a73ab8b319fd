"""The releases of Kafka that the testbed runs. `jvm/pom.xml` and the Makefile fetch their jars."""

from __future__ import annotations

import os

RELEASE_VARIABLE = "KREASSIGN_KAFKA"
DEFAULT = os.environ.get(RELEASE_VARIABLE) or "4.4.0"
"""Clusters have this release unless a test names another; KREASSIGN_KAFKA tries the next one (`make kafka-next`)."""
FORMER = "4.3.1"
"""The line before it, for what differs."""


def config_tool(release: str) -> str:
    """The class of `kafka-configs`, which Kafka 4.4 moved."""
    is_moved = tuple(map(int, line(release).split("."))) >= (4, 4)
    return "org.apache.kafka.tools.ConfigCommand" if is_moved else "kafka.admin.ConfigCommand"


def line(release: str) -> str:
    """The line of a release: 4.4 of 4.4.0."""
    return ".".join(release.split(".")[:2])
