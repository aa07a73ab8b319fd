"""A twin's server with a thousand idle and two hundred busy connections at once, and at its limit of descriptors.

The server is `kreassign twin start` in a process of its own; the client here is one thread with a selector. Busy
connections each have one request under way all the time, of several kinds in turn. Every answer is compared, byte by
byte, with those that the twin gave before anybody else was there. Once a second a client that was not there before
connects, asks and is answered. At the end every idle connection asks too, to show that it still stands.
"""

from __future__ import annotations

import selectors
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import IO

from bench.served import served
from bench.soak import Held, Promises, held, percentile, report
from kreassign.wire import api
from kreassign.wire.codec import PREFIX_BYTES, encode_request
from testbed.waiting import wait_until

IDLE, BUSY = 1_000, 200
SECONDS = 60.0
SCENARIO = "skewed"
HOST = "127.0.0.1"
SMALL_LIMIT = 80
"""So many descriptors the small server may have open."""
TOO_MANY = 120
PROMPT_S, LONGEST_S = 1.0, 5.0
"""How soon half of those who come later are answered, and everybody, on a machine that does much else besides."""
CALM_S = 30.0
MOST_GROWTH_MIB = 8.0
FRAMES = tuple(
    encode_request(version, asked.request(**fields), 1, "soak")
    for asked, version, fields in (
        (api.API_VERSIONS, 0, {}),
        (api.METADATA, 12, {"topics": None}),
        (api.LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None}),
        (api.DESCRIBE_TOPIC_PARTITIONS, 0, {"cursor": None}),
    )
)
ASKED_BEFORE = 60
Expected = tuple[frozenset[bytes], ...]
_WITH_LIMIT = "import resource, sys; n = int(sys.argv.pop(1)); resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)); "
_TWIN = "from kreassign.cli.main import main; main()"


@dataclass(slots=True)
class Answered:
    """Answers to busy connections and newcomers."""

    latencies_s: list[float] = field(default_factory=list)
    newcomers_s: list[float] = field(default_factory=list)
    wrong: int = 0
    lost: int = 0
    longest_s: float = 0.0
    """The longest that a request waited, those that still do at the end too."""


@dataclass(slots=True)
class Loaded:
    """One server under load: what it held before anybody came, with idle ones, at work, and when all were gone."""

    answered: Answered = field(default_factory=Answered)
    held: dict[str, Held] = field(default_factory=dict)
    stood: int = 0


@dataclass(frozen=True, slots=True)
class AtLimit:
    """A server that may open few descriptors: connections that it kept and closed, and how it fared."""

    kept: int
    closed: int
    hung: int
    answered: int
    cpu_share: float
    said: str
    room_again_s: float


def measure() -> None:
    """The table, into the page."""
    loaded, at_limit = loaded_server(), limited_server()
    promises = Promises()
    _judge(loaded, promises)
    _judge_limit(at_limit, promises)
    report("connections", f"{_table(loaded)}\n\n{_limit_text(at_limit)}", promises)


# --- many connections --------------------------------------------------------------------------------------------


def loaded_server(idle: int = IDLE, busy: int = BUSY, seconds: float = SECONDS) -> Loaded:
    """Open so many connections, keep the busy ones at work for so long, and close all."""
    found = Loaded()
    with served("--scenario", SCENARIO) as twin:
        port = int(twin.bootstrap_servers.split(",")[0].rpartition(":")[2])
        expected = _answers(port)
        _work(port, expected, 20, 2.0, Answered(), [], twin.process_id)  # so that nothing is loaded only later
        wait_until(lambda: _is_calm(twin.process_id), timeout_s=CALM_S, what="a server at rest")
        found.held["before"] = held(twin.process_id)
        with ExitStack() as idle_ones:
            waiting = [idle_ones.enter_context(_connected(port)) for _ in range(idle)]
            _exchange(port, FRAMES[0])
            found.held[f"{idle:,} idle"] = held(twin.process_id)
            seen: list[Held] = []
            _work(port, expected, busy, seconds, found.answered, seen, twin.process_id)
            found.held[f"{idle:,} idle and {busy:,} busy, at first"] = seen[0]
            found.held[f"{idle:,} idle and {busy:,} busy, at last"] = seen[-1]
            found.stood = sum(_ask(one, FRAMES[1]) in expected[1] for one in waiting)
        before = found.held["before"].descriptors
        with suppress(TimeoutError):  # then the table shows it
            wait_until(lambda: held(twin.process_id).descriptors <= before, timeout_s=CALM_S, what="closed ones gone")
        found.held["all closed"] = held(twin.process_id)
        found.answered.newcomers_s.append(_newcomer_s(port, expected[1]))
    return found


def _work(
    port: int,
    expected: Expected,
    count: int,
    seconds: float,
    answered: Answered,
    seen: list[Held],
    process_id: int,
) -> None:
    """Keep so many connections at work for so long; once a second somebody new comes."""
    with ExitStack() as stack, selectors.DefaultSelector() as ready:
        for number in range(count):
            one = _Busy(stack.enter_context(_connected(port)), expected, number)
            ready.register(one.connection, selectors.EVENT_READ, one)
            one.send()
        begun_s = next_s = time.perf_counter()
        while (now_s := time.perf_counter()) < begun_s + seconds and ready.get_map():
            for key, _ in ready.select(0.5):
                if not key.data.take_in(answered):
                    ready.unregister(key.fileobj)
            if now_s >= next_s + 1.0:
                next_s = now_s
                answered.newcomers_s.append(_newcomer_s(port, expected[1]))
                seen.append(held(process_id))
        waiting_s = (now_s - key.data.sent_s for key in ready.get_map().values())
        answered.longest_s = max((*answered.latencies_s, *waiting_s), default=0.0)


@dataclass(slots=True)
class _Busy:
    """A connection with a request under way."""

    connection: socket.socket
    expected: Expected
    turn: int
    received: bytearray = field(default_factory=bytearray)
    sent_s: float = 0.0

    def send(self) -> None:
        self.turn = (self.turn + 1) % len(FRAMES)
        self.received.clear()
        self.sent_s = time.perf_counter()
        self.connection.sendall(FRAMES[self.turn])

    def take_in(self, answered: Answered) -> bool:
        """Judge what has arrived and send the next request after a whole answer. False when the connection was lost."""
        try:
            arrived = self.connection.recv(1 << 18)
        except OSError:
            arrived = b""
        if not arrived:
            answered.lost += 1
            return False
        self.received += arrived
        if _is_whole(self.received):
            answered.latencies_s.append(time.perf_counter() - self.sent_s)
            answered.wrong += bytes(self.received) not in self.expected[self.turn]
            self.send()
        return True


def _connected(port: int) -> socket.socket:
    connection = socket.create_connection((HOST, port), CALM_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _is_whole(received: bytearray) -> bool:
    return len(received) >= PREFIX_BYTES and len(received) >= PREFIX_BYTES + struct.unpack_from(">i", received)[0]


def _ask(connection: socket.socket, frame: bytes) -> bytes:
    """The answer to a request; b"" where the connection was closed instead."""
    received = bytearray()
    try:
        connection.sendall(frame)
        while not _is_whole(received):
            if not (arrived := connection.recv(1 << 18)):
                return b""
            received += arrived
    except ConnectionError:
        return b""
    return bytes(received)


def _exchange(port: int, frame: bytes) -> bytes:
    with _connected(port) as connection:
        return _ask(connection, frame)


def _answers(port: int) -> Expected:
    """Possible answers to each frame: brokers name any of them as the controller, by chance."""
    return tuple(frozenset(_exchange(port, frame) for _ in range(ASKED_BEFORE)) for frame in FRAMES)


def _newcomer_s(port: int, expected: frozenset[bytes]) -> float:
    """Time of a newcomer from connecting until the answer; endless where it is wrong."""
    begun_s = time.perf_counter()
    is_right = _exchange(port, FRAMES[1]) in expected
    return time.perf_counter() - begun_s if is_right else float("inf")


def _is_calm(process_id: int) -> bool:
    before = held(process_id).descriptors
    time.sleep(0.2)
    return held(process_id).descriptors == before


# --- the limit of descriptors ------------------------------------------------------------------------------------


def limited_server(limit: int = SMALL_LIMIT, clients: int = TOO_MANY) -> AtLimit:
    """More clients than the server may have descriptors: who gets an answer, and who is refused."""
    with _limited(limit) as (process, port, errors), ExitStack() as stack:
        _, expected, *_ = _answers(port)
        connections = [stack.enter_context(_connected(port)) for _ in range(clients)]
        answers = [_ask_briefly(connection) for connection in connections]
        kept = [one for one, answer in zip(connections, answers, strict=True) if answer in expected]
        before_s, begun_s = held(process.pid).cpu_s, time.monotonic()
        time.sleep(3.0)
        cpu_share = (held(process.pid).cpu_s - before_s) / (time.monotonic() - begun_s)
        answered = sum(_ask(one, FRAMES[1]) in expected for one in kept)
        for one in connections:
            one.close()
        closed_s = time.monotonic()
        wait_until(lambda: _exchange(port, FRAMES[1]) in expected, timeout_s=CALM_S, what="a connection again")
        room_again_s = time.monotonic() - closed_s
        errors.seek(0)
        said = errors.read().strip()
        return AtLimit(len(kept), answers.count(b""), answers.count(None), answered, cpu_share, said, room_again_s)


@contextmanager
def _limited(limit: int) -> Iterator[tuple[subprocess.Popen[str], int, IO[str]]]:
    command = [sys.executable, "-c", _WITH_LIMIT + _TWIN, str(limit), "twin", "start", "--port", "0"]
    with TemporaryFile("w+", encoding="utf-8") as errors:
        process = subprocess.Popen([*command, "--scenario", SCENARIO], stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(2)]
            yield process, int(lines[-1].split(",")[0].rpartition(":")[2]), errors
        finally:
            process.terminate()
            process.wait()


def _ask_briefly(connection: socket.socket) -> bytes | None:
    """The answer, b"" where the connection was closed, None where neither came within some seconds."""
    connection.settimeout(LONGEST_S)
    try:
        return _ask(connection, FRAMES[1])
    except TimeoutError:
        return None


# --- what was promised -------------------------------------------------------------------------------------------


def _judge(loaded: Loaded, promises: Promises) -> None:
    answered, before, after = loaded.answered, loaded.held["before"], loaded.held["all closed"]
    first, last = list(loaded.held.values())[-3:-1]
    promises.expect(
        f"every request is answered, and rightly: {answered.wrong} wrong, {answered.lost} connections lost",
        that=not answered.wrong and not answered.lost and bool(answered.latencies_s),
    )
    promises.expect(
        f"no request waits longer than {LONGEST_S:g} s: {answered.longest_s:.1f} s",
        that=answered.longest_s <= LONGEST_S,
    )
    promises.expect(f"idle connections stand: {loaded.stood} of {IDLE} at the end", that=loaded.stood == IDLE)
    half, slowest = percentile(answered.newcomers_s, 0.5), max(answered.newcomers_s)
    promises.expect(
        f"half of the newcomers are answered within {PROMPT_S:g} s: {half:.2f} s, all within {LONGEST_S:g} s: "
        f"{slowest:.2f} s",
        that=half < PROMPT_S and slowest < LONGEST_S,
    )
    grown = last.memory_mib - first.memory_mib
    promises.expect(f"memory stays as it is under load: {grown:.1f} MiB more", that=grown <= MOST_GROWTH_MIB)
    promises.expect(
        f"closed connections leave nothing open: {before} before, {after} after",
        that=after.descriptors <= before.descriptors and after.threads <= before.threads,
    )


def _judge_limit(found: AtLimit, promises: Promises) -> None:
    promises.expect(f"at the limit nobody is kept waiting: {found.hung} clients were", that=not found.hung)
    promises.expect("who is refused at the limit has its connection closed", that=found.closed > 0)
    promises.expect(
        f"who was there before is answered on: {found.answered} of {found.kept}", that=found.answered == found.kept > 0
    )
    promises.expect(f"the limit is said: {found.said!r}", that="ulimit -n" in found.said)
    promises.expect(f"at the limit the server rests: {found.cpu_share:.0%} of a core", that=found.cpu_share < 0.2)
    promises.expect(
        f"once others have gone there is room again within {LONGEST_S:g} s: {found.room_again_s:.2f} s",
        that=found.room_again_s < LONGEST_S,
    )


def _table(loaded: Loaded) -> str:
    held_rows = (
        f"{when} | {one.memory_mib:.1f} | {one.descriptors} | {one.threads}" for when, one in loaded.held.items()
    )
    waits, new = loaded.answered.latencies_s, loaded.answered.newcomers_s
    answered = (
        f"{len(waits):,} requests in {SECONDS:g} s, {len(waits) / SECONDS:,.0f} a second, {BUSY} of them under way all "
        f"the time: half were answered within {_ms(waits, 0.5)}, 99 of 100 within {_ms(waits, 0.99)}, all "
        f"within {loaded.answered.longest_s:.1f} s; {loaded.answered.wrong} answers were wrong. "
        "A new client, once a second, had connected and been "
        f"answered within {_ms(new, 0.5)} (the median), at most {_ms(new, 1.0)}."
    )
    rows = [f"| {cells} |" for cells in held_rows]
    return "\n".join(
        ["| connections | the server's MiB | descriptors | threads |", "|---|---|---|---|", *rows, "", answered]
    )


def _ms(values_s: list[float], share: float) -> str:
    return f"{percentile(values_s, share) * 1000:.0f} ms"


def _limit_text(found: AtLimit) -> str:
    return (
        f"With {TOO_MANY} clients at a server that may have {SMALL_LIMIT} descriptors, {found.kept} were answered, "
        f"{found.closed} had their connection closed at once, {found.hung} were kept waiting; meanwhile it took "
        f"{found.cpu_share:.0%} of a core. It said: {found.said or 'nothing'}"
    )
