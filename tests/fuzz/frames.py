"""Frames: what a client may send to the twin, and what a cluster may answer to a client."""

from __future__ import annotations

import gzip
import itertools
import json
import socket
import struct
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from typing import Any

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import KreassignError, ProtocolViolation
from kreassign.executor.maintenance.record import (
    Entered,
    MaintenanceRecord,
    cut_into_pieces,
    format_record,
    parse_record,
    text_of_pieces,
)
from kreassign.model import OffsetSpec, TopicPartition, TopicPartitionReplica
from kreassign.model.requests import CommittedOffset, GroupCandidate, Membership
from kreassign.twin.api.handlers import HANDLERS_BY_KEY
from kreassign.twin.checkers import check_all
from kreassign.twin.cluster import Twin
from kreassign.twin.server import MAX_REQUEST_BYTES, serving
from kreassign.twin.transport import TwinTransport
from kreassign.twin.version import DEFAULT, Endpoint
from kreassign.wire import api
from kreassign.wire.codec import PREFIX_BYTES, encode_request, framed
from testbed.waiting import PATIENCE_S
from tests.admin.test_mangled_answers import CALLS, ORDERS
from tests.campaigns.campaign import BrokenError
from tests.fuzz.documents import JSON, changed, damaged, tree
from tests.fuzz.target import Attempt, Target
from tests.twin.api.test_every_version import FIELDS
from tests.twin.asking import ask, twin
from tests.wire.mangled import MangledTransport, mangled_request
from tests.wire.peer import message

VERSION = DEFAULT.with_kip_179()
OFFERED = tuple(
    (endpoint, key, versions)
    for endpoint in Endpoint
    for key, versions in sorted(VERSION.all_versions(endpoint).items())
)
LIVES = 25
"""So many examples are tried on the same twin, whose invariants are checked in the end."""
COUNTS = (10_001, 10**6, 10**9, 2**31 - 2, 2**31 - 1, -(2**31), -2, 0)


def _asked() -> Twin:
    return twin({"orders": [[0, 1], [1, 2]], "other": [[2]]}, version=VERSION)


class _Twins:
    """A twin for some examples, then another one."""

    def __init__(self) -> None:
        self._twin, self._left = _asked(), LIVES

    def answer(self, payload: bytes, endpoint: Endpoint = Endpoint.BROKER) -> bool:
        """True if a request is answered; a closed connection is a refusal. The next request must be answered."""
        if not self._left:
            check_all(self._twin)
            self._twin, self._left = _asked(), LIVES
        self._left -= 1
        asked = self._twin
        node = asked.controller_id if endpoint is Endpoint.CONTROLLER else 0
        try:
            asked.connect(node).answer(payload)
        except ProtocolViolation:
            return False
        finally:
            asked.advance(1_000)
            if ask(asked, api.METADATA, 12, topics=[]).cluster_id != asked.cluster_id:
                raise BrokenError("the twin answers no more")
        return True


def _encoded(known: Any, version: int, **fields: Any) -> bytes:
    return bytes(encode_request(version, message(known.request, fields), 7, "tests"))


def _fields(folder: Path, stack: ExitStack) -> Attempt:
    """Whole requests of every API and version, in which up to three fields are odd."""
    twins = _Twins()

    def attempt(chance: Random) -> bool:
        endpoint, key, (low, high) = chance.choice(OFFERED)
        known, version = HANDLERS_BY_KEY[key].api, chance.randint(low, high)
        payload = None
        while payload is None:
            payload = mangled_request(key, version, message(known.request, FIELDS.get(known, {})), chance)
        return twins.answer(payload, endpoint)

    return attempt


def _bytes(folder: Path, stack: ExitStack) -> Attempt:
    """Requests whose bytes are damaged, or random behind their header; lengths of lists and texts then lie."""
    twins = _Twins()

    def attempt(chance: Random) -> bool:
        endpoint, key, (low, high) = chance.choice(OFFERED)
        known, version = HANDLERS_BY_KEY[key].api, chance.randint(max(0, low), high)
        if chance.random() < 0.3:
            payload = struct.pack(">hhih", key, version, 7, -1) + b"\0" + chance.randbytes(chance.randrange(200))
        else:
            whole = _encoded(known, version, **FIELDS.get(known, {}))[PREFIX_BYTES:]
            payload = whole[:4] + _lying(whole[4:], chance)
        return twins.answer(payload, endpoint)

    return attempt


def _lying(content: bytes, chance: Random) -> bytes:
    if chance.random() < 0.4:
        return damaged(content, chance)
    at = chance.randrange(len(content))
    lie = chance.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\xff\xff\xff\xff\x07", b"\xff" * 10,
                         b"\x7f\xff", b"\0\xff\xff\xff", b"\x81\x80\x80\x80\0"))  # fmt: skip
    return content[:at] + lie + content[at + chance.choice((0, len(lie))) :]


def _counts(folder: Path, stack: ExitStack) -> Attempt:
    """Counts that nobody means: of partitions, replicas, brokers, entries."""
    twins, names = _Twins(), itertools.count()

    def attempt(chance: Random) -> bool:
        count, many = chance.choice(COUNTS), chance.choice((1, 100, 5_000))
        create, grow = api.CREATE_TOPICS.request, api.CREATE_PARTITIONS.request
        move, elect = api.ALTER_PARTITION_REASSIGNMENTS.request, api.DESCRIBE_TOPIC_PARTITIONS.request
        name = f"t{next(names)}"
        topics = [create.CreatableTopic(name=f"{name}-{one}", num_partitions=count if many == 1 else 1,
                                        replication_factor=chance.choice((1, -1, 32_767)), assignments=[], configs=[])
                  for one in range(many)]  # fmt: skip
        grown = [grow.CreatePartitionsTopic(name="orders", count=count, assignments=None)] * many
        targets = [
            move.ReassignableTopic.ReassignablePartition(partition_index=abs(count) % 2**31, replicas=[1] * many)
        ]
        requests: tuple[tuple[Any, int, dict[str, Any]], ...] = (
            (api.CREATE_TOPICS, 7, {"topics": topics, "timeout_ms": count}),
            (api.CREATE_PARTITIONS, 3, {"topics": grown, "timeout_ms": 1_000, "validate_only": chance.random() < 0.3}),
            (api.ALTER_PARTITION_REASSIGNMENTS, 0,
             {"topics": [move.ReassignableTopic(name="orders", partitions=targets)], "timeout_ms": 1_000}),
            (api.DESCRIBE_TOPIC_PARTITIONS, 0,
             {"topics": [elect.TopicRequest(name="orders")] * many, "response_partition_limit": count}),
        )  # fmt: skip
        known, version, fields = chance.choice(requests)
        return twins.answer(_encoded(known, version, **fields)[PREFIX_BYTES:])

    return attempt


def _sockets(folder: Path, stack: ExitStack) -> Attempt:
    """Bytes on a socket: lengths that lie, frames cut off, several at once, other protocols, compressed bombs."""
    bomb = gzip.compress(bytes(50_000_000))
    server = stack.enter_context(serving(_asked()))
    address = server.server.addresses()[0]
    metadata = _encoded(api.METADATA, 12, topics=None)

    def sent(chance: Random) -> bytes:
        length = struct.pack(">i", chance.choice((-1, 0, 1, 7, 2**31 - 1, MAX_REQUEST_BYTES, MAX_REQUEST_BYTES + 1)))
        choices: tuple[Callable[[], bytes], ...] = (
            lambda: length + chance.randbytes(chance.randrange(100)),
            lambda: metadata[: chance.randrange(len(metadata))],
            lambda: metadata * chance.randint(1, 20) + length,
            lambda: damaged(metadata, chance),
            lambda: framed(struct.pack(">hhih", 0, 9, 7, -1) + b"\0" + bomb),
            lambda: framed(bomb),
            lambda: b"GET / HTTP/1.1\r\n\r\n",
            lambda: framed(struct.pack(">hhih", 37, 3, 7, -1) + b"\0" + chance.randbytes(60)),
        )
        return chance.choice(choices)()

    def attempt(chance: Random) -> bool:
        with closing(socket.create_connection(address, PATIENCE_S)) as client:
            received = b""
            try:
                client.sendall(sent(chance))
                client.shutdown(socket.SHUT_WR)
                while chunk := client.recv(1 << 16):
                    received += chunk
            except (ConnectionError, BrokenPipeError):
                pass
        with closing(socket.create_connection(address, PATIENCE_S)) as other:
            other.sendall(metadata)
            if not other.recv(1):
                raise BrokenError("another client is not answered")
        if server.server.failures:
            raise BrokenError(f"the twin failed: {server.server.failures.pop()}")
        return bool(received)

    return attempt


# --- answers to the client -----------------------------------------------------------------------------------------

GROUP = "kreassign-lease"
_CANDIDATE = GroupCandidate(GROUP, "run-1", "lease", "run-1", b"me", 10_000)
_MEMBER = Membership(GROUP, "run-1", "m", 1)
ALL_CALLS: dict[str, Callable[[AdminClient], object]] = {
    **CALLS,
    "unregister_broker": lambda admin: admin.unregister_broker(3),
    "delete_topics": lambda admin: admin.delete_topics(["other"]),
    "offered_versions": lambda admin: admin.offered_versions([0, 1]),
    "risky_overrides": lambda admin: admin.risky_overrides({ORDERS: (2, 3)}),
    "replace_reassignments": lambda admin: admin.replace_reassignments({ORDERS: (2, 3)}),
    "alter_partition_counts": lambda admin: admin.alter_partition_counts({"orders": 4}),
    "alter_replication_factors": lambda admin: admin.alter_replication_factors({"orders": 3}),
    "reassign_partitions": lambda admin: admin.reassign_partitions({ORDERS: (1, 2)}),
    "view_topics": lambda admin: admin.view_topics(["orders"]),
    "elect_preferred_leaders": lambda admin: admin.elect_preferred_leaders([ORDERS]),
    "alter_replica_log_dirs": lambda admin: admin.alter_replica_log_dirs(
        {TopicPartitionReplica(0, *ORDERS): "/data/0/d1"}
    ),
    "list_offsets of the beginning": lambda admin: admin.list_offsets([ORDERS], OffsetSpec.EARLIEST),
    "replica_status": lambda admin: admin.replica_status([ORDERS]),
    "join_group": lambda admin: admin.join_group(_CANDIDATE),
    "heartbeat": lambda admin: admin.heartbeat(_MEMBER),
    "leave_group": lambda admin: admin.leave_group(GROUP, "run-1"),
    "commit_offsets": lambda admin: admin.commit_offsets(_MEMBER, {ORDERS: CommittedOffset(1, "x")}),
    "fetch_offsets": lambda admin: admin.fetch_offsets(GROUP, [ORDERS, TopicPartition("other", 0)]),
    "produce": lambda admin: admin.produce(ORDERS, b"key", b"value"),
    "fetch": lambda admin: admin.fetch(ORDERS, 0),
}
NOT_CALLS = {"connect", "close", "expect_cluster", "principal"}
SETTINGS = client_settings({"request.timeout.ms": "3000"}, bootstrap_servers="broker-0:9092,broker-1:9092")


def _answers(folder: Path, stack: ExitStack) -> Attempt:
    """Every call of the client, of whose answers four in ten are odd; what it says of them is not for this clause."""

    def attempt(chance: Random) -> bool:
        world = TwinTransport(_asked())
        transport = MangledTransport(world, chance, rate=0.4)
        with AdminClient.connect(SETTINGS, clock=world, transport=transport) as admin:
            try:
                str(chance.choice(tuple(ALL_CALLS.values()))(admin))
            except KreassignError as error:
                if not str(error).strip():
                    raise BrokenError("refused without a word") from error
                return False
        return True

    return attempt


def _records(folder: Path, stack: ExitStack) -> Attempt:
    """A record of maintenance beside offsets: pieces missing, of others, damaged, forged, without an end."""
    shape = tree(json.loads(format_record(MaintenanceRecord(12, {1: Entered(5, "ann", is_cordoned=False)}))))

    def attempt(chance: Random) -> bool:
        if chance.random() < 0.1:
            found = list(cut_into_pieces(format_record(MaintenanceRecord()) + " " * chance.choice((10**6, 80 * 10**6))))
        else:
            found = list(cut_into_pieces(changed(shape, JSON, chance).decode("utf-8", "replace")))
        if chance.random() < 0.3:
            at = chance.randrange(len(found))
            found[at] = damaged(found[at].encode(), chance).decode("utf-8", "replace")
        try:
            text = text_of_pieces(dict(enumerate(found)))
            if text is not None:
                parse_record(text)
        except ValueError:
            return False
        return text is not None

    return attempt


FRAMES = (
    Target("requests to the twin, odd fields", _fields, quick=40),
    Target("requests to the twin, odd bytes and lengths", _bytes, quick=40),
    Target("requests to the twin, absurd counts", _counts),
    Target("bytes on a socket of the twin", _sockets, share=0.5),
    Target("answers to the client, per call", _answers, quick=40),
    Target("records of maintenance", _records),
)
