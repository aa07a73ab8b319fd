"""The cluster of the environment or of the profile in force, for commands without options for it.

Loads the Kafka client, so it is imported only where that cluster is asked.
"""

from __future__ import annotations

from pathlib import Path

from kreassign.cli.options.cluster import ClusterOptions
from kreassign.cli.profiles import ADDRESS_ENVIRONMENT, around


def cluster_around() -> ClusterOptions:
    """Address and client properties, as the environment or the profile has them."""
    config = around("KREASSIGN_COMMAND_CONFIG", "command-config")
    return ClusterOptions(around(ADDRESS_ENVIRONMENT, "bootstrap-server"), Path(config) if config else None)
