"""Placement of new partitions: by the client, and by the command that is printed."""

from __future__ import annotations

import pytest

import kreassign
from kreassign.kafka_tools.topics import main
from kreassign.twin.cluster import Twin, TwinSettings
from kreassign.twin.server import serving
from tests.twin.asking import cluster

SPEED = 10.0
"""Seconds of the twin in one second of ours."""


def test_the_client_creates_and_the_printed_command_grows_a_topic() -> None:
    twin = Twin(cluster({"t": [[0, 1], [1, 0], [0, 1]]}), TwinSettings())
    with serving(twin, speed=SPEED) as thread, kreassign.connect(thread.bootstrap_servers) as client:
        snapshot = kreassign.snapshot(client, measure_for_s=0)
        placed = kreassign.place_topic(snapshot, "new", 2, 2, expected="t")
        assert {one for replicas in placed.lists for one in replicas} == {2, 3}
        client.create_topics([placed.new_topic]).raise_if_any()
        more = kreassign.place_partitions(kreassign.snapshot(client, measure_for_s=0), "t", 5)
        assert main([*more.command.split()[1:], "--bootstrap-server", thread.bootstrap_servers]) == 0
        found = client.describe_topics(["new", "t"]).raise_if_any()
    lists = {name: tuple(one.replicas for one in topic.partitions) for name, topic in found.items()}
    assert lists == {"new": placed.lists, "t": ((0, 1), (1, 0), (0, 1), *more.lists)}


@pytest.mark.parametrize(
    "lists",
    [((0, 1), (1,), (0, 1)), ((0, 1), (1, 0, 2)), ((0,), (1, 0))],
    ids=["shorter", "longer", "first is shorter"],
)
def test_the_printed_command_works_beside_lists_of_another_length(lists: tuple[tuple[int, ...], ...]) -> None:
    """Example: during a reassignment, Kafka's tool refuses lists of different lengths, also of present ones."""
    twin = Twin(cluster({"t": [list(one) for one in lists]}), TwinSettings())
    with serving(twin, speed=SPEED) as thread, kreassign.connect(thread.bootstrap_servers) as client:
        more = kreassign.place_partitions(kreassign.snapshot(client, measure_for_s=0), "t", len(lists) + 2)
        assert main([*more.command.split()[1:], "--bootstrap-server", thread.bootstrap_servers]) == 0
        (topic,) = client.describe_topics(["t"]).raise_if_any().values()
    assert tuple(one.replicas for one in topic.partitions) == (*lists, *more.lists)
