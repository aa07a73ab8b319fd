"""Brokers and topics with their skew, read from a cluster before anything is planned."""

from __future__ import annotations

from kreassign.operations.connect import connect
from kreassign.operations.skew import BrokerSkew, read_skew
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving
from tests.twin.asking import MEGABYTES, cluster

SIZE = 10 * MEGABYTES


def loads(broker: BrokerSkew) -> dict[str, tuple[float, str]]:
    return {one.goal: (one.amount, one.band) for one in broker.loads}


def test_brokers_and_topics_are_shown_with_their_skew() -> None:
    lists = {"even": [[0, 1], [2, 3]], "heavy": [[0, 1], [0, 2], [0, 3]], "lone": [[1]]}
    twin = Twin(cluster(lists, size_bytes=SIZE), TwinSettings())
    warnings: list[str] = []
    with serving(twin) as thread, connect(thread.bootstrap_servers) as client:
        found = read_skew(client, warn=warnings.append)
    assert warnings == []
    assert [(one.broker, one.rack, one.is_live) for one in found.brokers] == [
        (0, "a", True), (1, "b", True), (2, "a", True), (3, "b", True),
    ]  # fmt: skip
    assert loads(found.brokers[0]) == {
        "disk": (4 * SIZE, "above"), "replicas": (4, "above"), "leaders": (4, "above"),
    }  # fmt: skip
    heavy, *others = found.topics
    assert (heavy.topic, heavy.fullest_broker, heavy.fullest_bytes, heavy.share) == ("heavy", 0, 3 * SIZE, 2.0)
    assert [(one.topic, one.copies, one.share) for one in others] == [("even", 4, 1.0), ("lone", 1, 1.0)]
    assert any(sentence.startswith("broker 0: disk is ") for sentence in found.misses)


def test_a_broker_that_is_down_has_no_loads_and_its_copies_are_uncounted() -> None:
    twin = Twin(cluster({"t": [[0, 1], [1, 2]], "u": [[0, 3], [3, 1]]}, size_bytes=SIZE), TwinSettings())
    twin.stop(3)
    with serving(twin) as thread, connect(thread.bootstrap_servers) as client:
        found = read_skew(client)
    assert [(one.broker, one.is_live, bool(one.loads)) for one in found.brokers][-1] == (3, False, False)
    assert {one.topic: (one.copies, one.uncounted, one.size_bytes, one.share) for one in found.topics} == {
        "t": (4, 0, 4 * SIZE, 1.5), "u": (4, 2, 2 * SIZE, None),
    }  # fmt: skip
