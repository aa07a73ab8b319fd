"""The page with two hundred listeners during a run: all see the same, and those who read nothing hold up nobody.

`kreassign web` and `kreassign run` are processes of their own, the twin is served here. Of the listeners, a hundred
follow the page's own stream and a hundred that of the API. Beside them are some who never read what they are sent, and
some who go away in the middle of the run. Once a second the page of the run is asked for, by somebody new.
"""

from __future__ import annotations

import selectors
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.moves_on_twin import blueprint, random_case
from bench.process import KREASSIGN
from bench.soak import Held, Promises, held, percentile, report
from kreassign.executor.history.run_history import history, read_view
from kreassign.executor.journal import find_journals
from kreassign.model.plan import format_plan
from kreassign.operations.run_journals import is_active
from kreassign.twin.cluster import Twin
from kreassign.twin.server import serving
from testbed.waiting import wait_until

LISTENERS, SILENT, LEAVING = 200, 20, 20
TOO_MANY = 40
"""So many more than all these: at least some of them must be refused."""
BROKERS, MOVES, SIZE_BYTES = 6, 100, 6e7
THROTTLE = "100MB/s"
HOST = "127.0.0.1"
PROMPT_S, LONGEST_S = 1.0, 10.0
"""How soon half of all pages come, and each of them, on a machine that does much else besides."""
PATIENCE_S = 60.0
MOST_GROWTH_MIB = 8.0
PATHS = ("/runs/{}/live", "/api/v1/runs/{}/stream")


@dataclass(slots=True)
class Listener:
    """A stream that is read: a short digest of each event, and whether the end came."""

    connection: socket.socket
    path: str
    received: bytearray = field(default_factory=bytearray)
    events: list[str] = field(default_factory=list)
    has_ended: bool = False
    is_lost: bool = False

    def take_in(self) -> bool:
        """Read what has arrived. False once nothing more comes."""
        arrived = b""
        with suppress(OSError):
            arrived = self.connection.recv(1 << 18)
        if not arrived:
            self.is_lost = not self.has_ended
            return False
        self.received += arrived
        while (end := self.received.find(b"\n\n")) >= 0:
            event = bytes(self.received[:end])
            del self.received[: end + 2]
            self.has_ended = self.has_ended or b"event: end" in event
            if b"event: run" in event:
                data = event[event.index(b"data: ") :]
                self.events.append(sha256(data).hexdigest()[:16])
        return True


@dataclass(slots=True)
class Seen:
    """Readings of one page."""

    listeners: list[Listener] = field(default_factory=list)
    held: dict[str, Held] = field(default_factory=dict)
    pages_s: list[float] = field(default_factory=list)
    refused: tuple[int, str] = (0, "")
    state: str = ""
    lasted_s: float = 0.0
    cpu_s: float = 0.0


def measure() -> None:
    """The table, into the page."""
    seen = listened()
    report("page", _table(seen), _judged(seen))


def listened(count: int = LISTENERS) -> Seen:
    """A run with so many listeners from soon after its start to its end."""
    case = random_case(BROKERS, MOVES, 1, size_bytes=SIZE_BYTES)
    seen = Seen()
    with TemporaryDirectory() as folder, serving(Twin(blueprint(case))) as twin:
        place = Path(folder)
        (place / "plan.json").write_text(format_plan(case.plan), encoding="utf-8")
        with _running(place, twin.bootstrap_servers), _page(place / "state") as (page, port):
            (journal,) = find_journals(place / "state")
            begun_s = time.monotonic()
            with _stream(port, PATHS[1].format(journal.stem)) as first:
                first.recv(1 << 10)
            wait_until(lambda: _connections(page.pid) == 0, timeout_s=PATIENCE_S, what="a page without listeners")
            seen.held["before"] = held(page.pid)
            _listen(seen, count, page.pid, port, journal)
            seen.lasted_s = time.monotonic() - begun_s
            seen.state = history(read_view(journal)).state
            before = seen.held["before"].descriptors
            with suppress(TimeoutError):  # then the table shows it
                wait_until(lambda: held(page.pid).descriptors <= before, timeout_s=PATIENCE_S, what="streams gone")
            seen.held["all gone"] = held(page.pid)
    return seen


def _listen(seen: Seen, count: int, process_id: int, port: int, journal: Path) -> None:
    run_id = journal.stem
    with ExitStack() as stack:
        for number in range(count):
            path = PATHS[number % 2].format(run_id)
            seen.listeners.append(Listener(stack.enter_context(_stream(port, path)), PATHS[number % 2]))
        for _ in range(SILENT):
            stack.enter_context(_stream(port, PATHS[1].format(run_id), buffer_bytes=4_096))
        with ExitStack() as leaving:
            for _ in range(LEAVING):
                leaving.enter_context(_stream(port, PATHS[0].format(run_id))).recv(1 << 10)
            seen.refused = _refused(port, PATHS[1].format(run_id))
        _follow(seen, process_id, port, run_id)


def _follow(seen: Seen, process_id: int, port: int, run_id: str) -> None:
    """Read until every stream has ended."""
    cpu_s = held(process_id).cpu_s
    with selectors.DefaultSelector() as ready:
        for one in seen.listeners:
            ready.register(one.connection, selectors.EVENT_READ, one)
        begun_s = next_s = time.monotonic()
        while ready.get_map() and time.monotonic() < begun_s + 10 * PATIENCE_S:
            for key, _ in ready.select(0.2):
                if not key.data.take_in():
                    ready.unregister(key.fileobj)
            if time.monotonic() >= next_s + 1.0:
                next_s = time.monotonic()
                seen.pages_s.append(_page_s(port, run_id))
                now = held(process_id)
                seen.held.setdefault("with all of them, at first", now)
                seen.held["with all of them, at last"] = now
    seen.cpu_s = held(process_id).cpu_s - cpu_s


@contextmanager
def _running(place: Path, bootstrap_servers: str) -> Iterator[None]:
    words = ("run", str(place / "plan.json"), "--yes", "--throttle", THROTTLE, "--measure-for", "0", "--start", "all")
    where = ("--state-dir", str(place / "state"), "--bootstrap-server", bootstrap_servers)
    with (place / "run.log").open("wb") as log:
        process = subprocess.Popen([*KREASSIGN, *words, *where], stdout=log, stderr=log)
        try:
            wait_until(
                lambda: any(map(is_active, find_journals(place / "state"))),
                timeout_s=PATIENCE_S,
                what="a run that goes on",
            )
            yield
            process.wait(PATIENCE_S)
        finally:
            process.kill()
            process.wait()


@contextmanager
def _page(state_dir: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [*KREASSIGN, "web", "--listen", f"{HOST}:0", "--state-dir", str(state_dir)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline()
        yield process, int(address.rstrip("/ \n").rpartition(":")[2].partition("/")[0])
    finally:
        process.terminate()
        process.wait()


def _stream(port: int, path: str, buffer_bytes: int = 0) -> socket.socket:
    """A stream that was asked for; with little room for what is not read, where that is given."""
    connection = socket.socket()
    if buffer_bytes:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    connection.settimeout(PATIENCE_S)
    connection.connect((HOST, port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\n\r\n".encode())
    return connection


def _refused(port: int, path: str) -> tuple[int, str]:
    """Number of refused streams of too many, and the words of the refusal."""
    with ExitStack() as stack:
        answers = [_beginning(stack.enter_context(_stream(port, path))) for _ in range(TOO_MANY)]
    refused = [answer for answer in answers if " 503 " in answer.partition("\r\n")[0]]
    return len(refused), refused[0].rpartition("\r\n\r\n")[2] if refused else ""


def _beginning(connection: socket.socket) -> str:
    """Beginning of a stream: a whole document."""
    content = b""
    while b"}" not in content and (arrived := connection.recv(1 << 16)):
        content += arrived
    return content.decode(errors="replace")


def _page_s(port: int, run_id: str) -> float:
    """Time of a newcomer until the page of the run; endless where it does not come."""
    begun_s = time.monotonic()
    request = f"GET /runs/{run_id} HTTP/1.1\r\nHost: {HOST}:{port}\r\nConnection: close\r\n\r\n".encode()
    with socket.create_connection((HOST, port), PATIENCE_S) as connection:
        connection.sendall(request)
        content = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    is_right = b" 200 " in content[:20] and content.rstrip().endswith(b"</html>")
    return time.monotonic() - begun_s if is_right else float("inf")


def _connections(process_id: int) -> int:
    """Number of clients of a process that listens on one socket."""
    names = []
    for each in Path(f"/proc/{process_id}/fd").iterdir():
        with suppress(OSError):
            names.append(str(each.readlink()))
    inodes = {name[8:-1] for name in names if name.startswith("socket:")}
    rows = (line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:])
    return sum(row[9] in inodes and row[3] == "01" for row in rows)


def _judged(seen: Seen) -> Promises:
    promises = Promises()
    lost = sum(one.is_lost for one in seen.listeners)
    ended = sum(one.has_ended for one in seen.listeners)
    promises.expect(f"nobody loses a stream: {lost} of {len(seen.listeners)} did", that=not lost)
    promises.expect(f"everybody sees the end: {ended} of {len(seen.listeners)}", that=ended == len(seen.listeners))
    for path in PATHS:
        lists = [one.events for one in seen.listeners if one.path == path]
        longest = max(lists, key=len)
        same = sum(bool(each) and longest[-len(each) :] == each for each in lists)
        promises.expect(
            f"all see the same events of `{path.format('RUN_ID')}`: {same} of {len(lists)}", that=same == len(lists)
        )
    count, said = seen.refused
    promises.expect(
        f"too many are refused in words: {count}, {said!r}", that=0 < count < TOO_MANY and "streams are open" in said
    )
    promises.expect(f"the run is done: {seen.state}", that=seen.state == "done")
    half, slowest = percentile(seen.pages_s, 0.5), max(seen.pages_s)
    promises.expect(
        f"half of the pages come within {PROMPT_S:g} s, and all within {LONGEST_S:g} s: {half:.2f} s, {slowest:.2f} s",
        that=half < PROMPT_S and slowest < LONGEST_S,
    )
    grown = seen.held["with all of them, at last"].memory_mib - seen.held["with all of them, at first"].memory_mib
    promises.expect(f"memory stays as it is with all of them: {grown:.1f} MiB more", that=grown <= MOST_GROWTH_MIB)
    before, after = seen.held["before"], seen.held["all gone"]
    promises.expect(
        f"nothing of them is left: {before} before, {after} after", that=after.descriptors <= before.descriptors
    )
    return promises


def _table(seen: Seen) -> str:
    events = [len(one.events) for one in seen.listeners]
    told = (
        f"{len(seen.listeners)} listeners, {SILENT} that read nothing, {LEAVING} that went away. The run of {MOVES} "
        f"moves lasted {seen.lasted_s:.0f} s from then on, for which the page took {seen.cpu_s:.1f} CPU s. Each was "
        f"sent {min(events)} to {max(events)} documents. Of {TOO_MANY} more, {seen.refused[0]} were refused. The page "
        f"of the run came within {percentile(seen.pages_s, 0.5):.2f} s (the median), at most {max(seen.pages_s):.2f} s."
    )
    rows = [f"| {when} | {one.memory_mib:.1f} | {one.descriptors} | {one.threads} |" for when, one in seen.held.items()]
    return "\n".join(["| listeners | the page's MiB | descriptors | threads |", "|---|---|---|---|", *rows, "", told])
