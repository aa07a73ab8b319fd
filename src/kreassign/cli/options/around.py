"""The cluster of the environment or of the profile in force, for commands without options for it.

Loads the Kafka client, so it is imported only where that cluster is asked.
"""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.cluster import ClusterOptions, named_addresses
from kreassign.cli.profiles import ADDRESS_ENVIRONMENT, IN_FORCE, around


def cluster_around() -> ClusterOptions:
    """Address and client properties, as the environment or the profile has them."""
    config = around("KREASSIGN_COMMAND_CONFIG", "command-config")
    file = Path(config) if config else None
    profile = click.get_current_context().meta.get(IN_FORCE)
    servers = around(ADDRESS_ENVIRONMENT, "bootstrap-server") or named_addresses("bootstrap.servers", file, profile)
    return ClusterOptions(servers, file)
