"""Whole requests with fields that no client would send: answered, or the connection is closed; never anything else."""

from __future__ import annotations

import random

import pytest

from kreassign.errors import ProtocolViolation
from kreassign.twin.api.handlers import HANDLERS_BY_KEY
from kreassign.twin.checkers import check_all
from kreassign.twin.version import DEFAULT, Endpoint
from kreassign.wire import api
from tests.twin.api.test_every_version import FIELDS
from tests.twin.asking import ask, twin
from tests.wire.mangled import mangled_request
from tests.wire.peer import message

pytestmark = pytest.mark.thorough

TRIES, FEW_TRIES = 12, 3
MAKE_PARTITIONS = frozenset({api.CREATE_TOPICS.key, api.CREATE_PARTITIONS.key})
"""A twin that has made ten thousand of them for a request takes its time."""
OFFERED = [
    (endpoint, key, versions)
    for endpoint in Endpoint
    for key, versions in sorted(DEFAULT.all_versions(endpoint).items())
]


@pytest.mark.parametrize(
    ("endpoint", "key", "versions"),
    OFFERED,
    ids=[f"{endpoint.name.lower()}-{HANDLERS_BY_KEY[key].api.name}" for endpoint, key, _ in OFFERED],
)
def test_an_odd_request_is_answered_or_closes_its_connection(
    endpoint: Endpoint, key: int, versions: tuple[int, int]
) -> None:
    asked = twin({"orders": [[0, 1], [1, 2]], "other": [[2]]})
    node = asked.controller_id if endpoint is Endpoint.CONTROLLER else 0
    known = HANDLERS_BY_KEY[key].api
    chance = random.Random(f"{endpoint} {key}")
    sent = 0
    low, high = versions
    for version in range(low, high + 1):
        for _ in range(FEW_TRIES if key in MAKE_PARTITIONS else TRIES):
            payload = mangled_request(key, version, message(known.request, FIELDS.get(known, {})), chance)
            if payload is None:
                continue
            sent += 1
            try:
                asked.connect(node).answer(payload)
            except ProtocolViolation:
                continue
            asked.advance(1_000)
    assert sent > (high - low + 1)
    check_all(asked)
    assert ask(asked, api.METADATA, 12, topics=None).cluster_id == asked.cluster_id
