"""One set of tests, three clusters: a test that asks for `cluster` runs in each of them.

Where releases differ a test says so by `@pytest.mark.releases(NEWEST, "3.9")`; else the newest is asked, and a twin of
the line before it. Real brokers of that line are asked the same by `make test-all`. Only brokers of tests marked
`tiered` have remote storage, those of the line before.

A twin answers with the same bytes over TCP and without sockets. So the quick tests ask over TCP only where a file is
about frames or about clients of others; all other questions over TCP are thorough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from kreassign.twin.cluster import Twin
from kreassign.twin.server import serving
from testbed.releases import FORMER, line
from tests.clusters import SHARED
from tests.conformance.clusters import NEWEST, Backend, Cluster, InProcess, OverTcp, RealKafka, small_twin

BEFORE = line(FORMER)
KAFKAS = {BEFORE: "conformance_431", NEWEST: "conformance", "3.9": "kafka_391"}
TIERED = "kafka_tiered"
BROKERS = {BEFORE: 4, NEWEST: 4, "3.9": 3}
TCP_SPEED = 10.0
QUICK_OVER_TCP = ("test_protocol.py", "test_foreign_clients.py")


class Place(NamedTuple):
    """Place where a test runs."""

    kind: str
    release: str
    is_tiered: bool = False

    @property
    def kafka(self) -> str:
        """The shared cluster of real brokers for it."""
        return TIERED if self.is_tiered else KAFKAS[self.release]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Ask for the three clusters of each release that a test names, and for twin and brokers of the line before.

    These have another answer where a test names the newest alone.
    """
    if "cluster" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("releases")
        releases = mark.args if mark else (NEWEST,)
        quick_over_tcp = metafunc.definition.path.name in QUICK_OVER_TCP
        is_tiered = metafunc.definition.get_closest_marker("tiered") is not None
        kinds = ("in-process", "tcp") if is_tiered else ("in-process", "tcp", "kafka")
        places = [_parameter(Place(kind, release, is_tiered), quick_over_tcp) for release in releases for kind in kinds]
        if NEWEST in releases and BEFORE not in releases and not (mark and len(releases) == 1):
            before = ("kafka",) if is_tiered else ("in-process", "kafka")
            places += [_parameter(Place(kind, BEFORE, is_tiered), quick_over_tcp) for kind in before]
        metafunc.parametrize("cluster", places, indirect=True)


def _parameter(place: Place, quick_over_tcp: bool) -> object:
    marks: list[pytest.MarkDecorator] = []
    if place.kind == "kafka":
        marks = [pytest.mark.kafka, pytest.mark.uses_cluster(place.kafka)]
    elif place.kind == "tcp" and not quick_over_tcp:
        marks = [pytest.mark.thorough]
    return pytest.param(place, id=f"{place.kind}-{place.release}", marks=marks)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, topic_name: str) -> Iterator[Cluster]:
    """The cluster that a test runs in: a twin of its own, or the real cluster that all tests share."""
    topic = re.sub("-(in-process|tcp|kafka)-.*", "", topic_name)
    for backend in _backend(request, request.param):
        with Cluster(backend, topic) as found:
            yield found


def _backend(request: pytest.FixtureRequest, place: Place) -> Iterator[Backend]:
    if place.kind == "kafka":
        yield RealKafka(request.getfixturevalue(place.kafka))
    elif place.kind == "tcp":
        with serving(_twin(place), speed=TCP_SPEED) as server:
            yield OverTcp(place.release, server)
    else:
        yield InProcess(place.release, _twin(place))


def _twin(place: Place) -> Twin:
    if place.is_tiered:
        return small_twin(place.release, SHARED[TIERED].brokers, is_tiered=True)
    return small_twin(place.release, BROKERS[place.release])
