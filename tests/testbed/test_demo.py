"""What the demo says about copies is true, or it does not say it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.cli.cluster_snapshot import whole_snapshot
from kreassign.cli.commands.snapshot import observe
from kreassign.clock import SystemClock
from kreassign.model.snapshot import ClusterSnapshot
from kreassign.twin import Twin
from kreassign.twin.scenario import parse_scenario
from kreassign.twin.server import ServerThread, serving
from testbed.demo import check_copies
from testbed.errors import CopiesIncomplete

SCENARIO = """
    [[brokers]]
    count = 3
    [[topics]]
    name = "t"
    partitions = 4
    replication_factor = 2
    size = "10 MB"
"""


def seen_of(server: ServerThread) -> tuple[str, ClusterSnapshot]:
    host, port = server.server.addresses()[0]
    with AdminClient.connect(client_settings({}, bootstrap_servers=f"{host}:{port}")) as client:
        return f"{host}:{port}", whole_snapshot(client, observe(client, 0), SystemClock(), 0)


def test_complete_copies_are_said_to_be() -> None:
    with serving(Twin(parse_scenario(SCENARIO, "small").blueprint)) as server:
        assert check_copies(*seen_of(server)).startswith("all 8 copies of 4 partitions have everything")


def test_a_copy_that_lacks_records_is_named() -> None:
    with serving(Twin(parse_scenario(SCENARIO, "small").blueprint)) as server:
        address, seen = seen_of(server)
        (topic,) = seen.topics
        longer = replace(topic.partitions[2], end_offset=topic.partitions[2].end_offset + 1)
        partitions = (*topic.partitions[:2], longer, topic.partitions[3])
        with pytest.raises(CopiesIncomplete, match=r"records of t-2$"):
            check_copies(address, replace(seen, topics=(replace(topic, partitions=partitions),)))
