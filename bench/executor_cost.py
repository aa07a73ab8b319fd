"""Costs of a run: processor time, requests, memory and journal by the number of its moves, on a twin in its process.

The twin answers inside the same process, so its share of the processor time is measured too, and separately: all time
spent in answering a frame or in letting time pass is the twin's. Memory is told before the client begins, with the
twin and its partitions, and at the end; the difference is the most that the run and what the twin adds to it took.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.moves_on_twin import Case, Move, twin_of
from bench.process import run
from kreassign.admin import AdminClient, client_settings
from kreassign.executor.guards import guard_settings
from kreassign.executor.journal import Journal
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.executor.runner import Runner
from kreassign.model.pace import NO_LIMITS
from kreassign.model.throttle import NO_THROTTLE
from kreassign.twin.transport import TwinConnection, TwinTransport

COUNTS = (1_000, 10_000, 100_000)
BROKERS = 30
SIZE_BYTES = 10_000_000
LOOK_S = 5.0


@dataclass(frozen=True, slots=True)
class Cost:
    """One run: seconds of the processor, the twin's among them, requests, MiB before and at most, bytes, virtual s."""

    moves: int
    cpu_s: float
    twin_s: float
    requests: int
    before_mib: float
    peak_mib: float
    journal_bytes: int
    virtual_s: float


class Meter:
    """A twin's transport that counts requests, and the processor time that the twin takes; also its clock."""

    takes_turns = True

    def __init__(self, inner: TwinTransport) -> None:
        self._inner = inner
        self.requests = 0
        self.twin_s = 0.0

    def connect(self, address: tuple[str, int], timeout_s: float) -> MeteredConnection:
        """Open a connection."""
        return MeteredConnection(self, self._inner.connect(address, timeout_s))

    def now_ms(self) -> int:
        """The twin's time."""
        return self._inner.now_ms()

    def monotonic_s(self) -> float:
        """The twin's time."""
        return self._inner.monotonic_s()

    def sleep(self, seconds: float) -> None:
        """Let the twin live on."""
        begun = time.thread_time()
        self._inner.sleep(seconds)
        self.twin_s += time.thread_time() - begun


class MeteredConnection:
    """A connection that counts what is sent."""

    def __init__(self, meter: Meter, inner: TwinConnection) -> None:
        self._meter = meter
        self._inner = inner

    def exchange(self, frame: bytes, timeout_s: float) -> bytes:
        """Send a frame and return the answer."""
        begun = time.thread_time()
        answer = self._inner.exchange(frame, timeout_s)
        self._meter.twin_s += time.thread_time() - begun
        self._meter.requests += 1
        return answer

    def is_usable(self) -> bool:
        """True if it still stands."""
        return self._inner.is_usable()

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()


def measure() -> None:
    """One row per number of moves, each in a process of its own."""
    print(
        "| moves | CPU s | of it the twin's | without it, per 1,000 moves | requests per 1,000 "
        "| MiB before | MiB at most | journal bytes per move | simulated s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for count in COUNTS:
        cost = Cost(**json.loads(run([sys.executable, "-m", "bench.executor_cost", str(count)]).output))
        thousands = cost.moves / 1000
        print(
            f"| {cost.moves:,} | {cost.cpu_s:.1f} | {cost.twin_s:.1f} | {(cost.cpu_s - cost.twin_s) / thousands:.2f} "
            f"| {cost.requests / thousands:,.0f} | {cost.before_mib:.0f} | {cost.peak_mib:.0f} "
            f"| {cost.journal_bytes / cost.moves:,.0f} | {cost.virtual_s:,.0f} |",
            flush=True,
        )


def main() -> None:
    """Make one run and print what it cost, as JSON."""
    print(json.dumps(asdict(cost_of(int(sys.argv[1])))))


def case_of(count: int) -> Case:
    """Small partitions, spread evenly; of each the second replica moves on."""
    places = ((number % BROKERS, number // BROKERS % (BROKERS - 2) + 1) for number in range(count))
    lists = [(leader, (leader + step) % BROKERS, (leader + step + 1) % BROKERS) for leader, step in places]
    moves = (Move((leader, old), (leader, new), SIZE_BYTES) for leader, old, new in lists)
    return Case(f"{count} moves", BROKERS, tuple(move for move in moves if move.target[0] != move.target[1]))


def cost_of(count: int) -> Cost:
    """Carry a plan of so many moves out, with guards and a journal, and measure."""
    case = case_of(count)
    plan, moves = case.plan, len(case.moves)
    with twin_of(case) as (_, transport, _), tempfile.TemporaryDirectory() as folder:
        del case  # the twin has it
        meter, before = Meter(transport), _mib()
        chosen = client_settings(bootstrap_servers="broker-0:9092")
        begun_s, begun_ms = time.process_time(), meter.now_ms()
        with AdminClient.connect(chosen, clock=meter, transport=meter) as client:
            started = prepare(client, plan, RunSettings("run", begun_ms, NO_THROTTLE, guard_settings(), NO_LIMITS))
            with Journal.create(Path(folder), started) as journal:
                found = Runner(client, meter, journal, poll_s=LOOK_S).start(started)
                journal_bytes = sum(file.stat().st_size for file in journal.path.parent.iterdir())
        cpu_s = time.process_time() - begun_s
    assert found.state == "done", found.problems
    virtual_s = ((found.ended_ms or begun_ms) - begun_ms) / 1000
    return Cost(moves, cpu_s, meter.twin_s, meter.requests, before, _mib(), journal_bytes, virtual_s)


def _mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
