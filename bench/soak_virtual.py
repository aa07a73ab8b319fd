"""A day of a run with a hundred moves in flight in a twin's time, then its death, and how soon `resume` goes on.

Executor, journal, snapshots and client are those of `kreassign run`; they and the twin are one process, whose memory is
noted every virtual hour. At the end of the day the state directory is copied as it is on disk at that moment: that is
what SIGKILL leaves. Then the twin is served, and the real command resumes the run of the copy on it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shutil import copytree, rmtree

from bench.moves_on_twin import blueprint, random_case
from bench.soak import FOLDER, Held, Promises, held, report
from bench.soak_commands import Commands, judge_resumes
from kreassign.admin import AdminClient, client_settings
from kreassign.executor.events import Event, RunStarted
from kreassign.executor.guards import guard_settings
from kreassign.executor.history.run_history import SnapshotKeeper
from kreassign.executor.journal import Journal
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.executor.runner import Runner
from kreassign.executor.state import RunView
from kreassign.model.pace import Cap, Caps, Pace
from kreassign.model.throttle import ThrottleRates
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving
from kreassign.twin.transport import TwinConnection, TwinTransport

HOURS = 24
BROKERS, MOVES, IN_FLIGHT = 6, 250, 100
SIZE_BYTES = 8e9
RATE = 5_000_000
POLL_S = 60.0
HOUR_MS = 3_600_000
SETTLED = 4
"""Growth is judged from this hour on."""
MOST_GROWTH_MIB, MOST_JOURNAL_MB = 8.0, 1.0
RUN_ID = "day"


@dataclass(frozen=True, slots=True)
class Hour:
    """Resources after so many hours, and the sizes of the journal and its log."""

    hour: int
    in_flight: int
    held: Held
    journal_bytes: int
    log_bytes: int


class DayOverError(Exception):
    """The run has gone on for as long as it should."""


@dataclass(slots=True)
class Day:
    """The twin as a transport and as a clock that notes every hour, and ends it all after the last."""

    twin: Twin
    inner: TwinTransport
    hours: int
    state_dir: Path
    left: Path
    seen: list[Hour] = field(default_factory=list)
    begun_ms: int = 0
    takes_turns: bool = True

    def connect(self, address: tuple[str, int], timeout_s: float) -> TwinConnection:
        """Open a connection."""
        return self.inner.connect(address, timeout_s)

    def now_ms(self) -> int:
        """The twin's time."""
        return self.inner.now_ms()

    def monotonic_s(self) -> float:
        """The twin's time."""
        return self.inner.monotonic_s()

    def sleep(self, seconds: float) -> None:
        """Let the twin live on. Raises DayOverError at the end."""
        self.inner.sleep(seconds)
        if self.now_ms() < self.begun_ms + (len(self.seen) + 1) * HOUR_MS:
            return
        journal = next(self.state_dir.glob("*/*.sqlite"))
        log = journal.with_name(f"{journal.name}-wal")
        sizes = (journal.stat().st_size, log.stat().st_size)
        self.seen.append(Hour(len(self.seen) + 1, self._in_flight(), held(os.getpid()), *sizes))
        print(json.dumps(asdict(self.seen[-1])), flush=True)
        if len(self.seen) == self.hours:
            copytree(self.state_dir, self.left)
            raise DayOverError

    def _in_flight(self) -> int:
        asked = client_settings(bootstrap_servers="broker-0:9092")
        with AdminClient.connect(asked, clock=self.inner, transport=self.inner) as client:
            return len(client.list_partition_reassignments())


def measure() -> None:
    """The day, into the page."""
    soak(HOURS)


def soak(hours: int) -> None:
    """Play so many hours in a process of its own, then resume, and tell."""
    rmtree(FOLDER / "virtual", ignore_errors=True)
    folder = FOLDER / "virtual"
    folder.mkdir(parents=True)
    with _played(folder, hours) as (seen, bootstrap_servers, took_s):
        commands = Commands(folder, bootstrap_servers, "left")
        resumed = commands.killed_again()
    promises = _judged(seen)
    told = judge_resumes(resumed, promises)
    report("virtual", _table(seen, told, took_s), promises)


@contextmanager
def _played(folder: Path, hours: int) -> Iterator[tuple[list[Hour], str, float]]:
    """The hours that were seen, where the twin is served then, and how long it took."""
    begun_s = time.monotonic()
    command = [sys.executable, "-m", "bench.soak_virtual", str(hours), str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        seen = []
        for _ in range(hours):
            read = json.loads(process.stdout.readline())
            seen.append(Hour(**read | {"held": Held(**read["held"])}))
        yield seen, process.stdout.readline().strip(), time.monotonic() - begun_s
    finally:
        process.communicate("")


def main() -> None:
    """Play, then serve the twin until the input ends."""
    hours, folder = int(sys.argv[1]), Path(sys.argv[2])
    case = random_case(BROKERS, MOVES, 1, size_bytes=SIZE_BYTES)
    # It ends now, so that the clock of the command that resumes goes on from there.
    twin = Twin(blueprint(case), TwinSettings(start_ms=round(time.time() * 1000) - hours * HOUR_MS))
    inner = TwinTransport(twin)
    day = Day(twin, inner, hours, folder / "state", folder / "left", begun_ms=inner.now_ms())
    pace = Pace(caps=Caps(cluster=Cap(moves=IN_FLIGHT)), is_eager=True)
    chosen = client_settings(bootstrap_servers="broker-0:9092,broker-1:9092")
    with AdminClient.connect(chosen, clock=day, transport=day) as client:
        began = RunSettings(RUN_ID, day.now_ms(), ThrottleRates(RATE), guard_settings(), pace)
        started = prepare(client, case.plan, began)
        with suppress(DayOverError), Journal.create(day.state_dir, started) as journal:
            _run(client, day, journal, started)
    with serving(twin) as thread:
        print(thread.bootstrap_servers, flush=True)
        sys.stdin.read()


def _run(client: AdminClient, day: Day, journal: Journal, started: RunStarted) -> None:
    def listen(event: Event, run: RunView) -> None:
        keeper.follow(event, run)

    runner = Runner(client, day, journal, listener=listen, poll_s=POLL_S)
    keeper = SnapshotKeeper(journal, runner.snapshot)
    found = runner.start(started)
    raise RuntimeError(f"the run ended before the day did: {found.state}, {found.problems}")


def _judged(seen: list[Hour]) -> Promises:
    promises, settled, last = Promises(), seen[min(SETTLED, len(seen)) - 1], seen[-1]
    least = min(hour.in_flight for hour in seen)
    promises.expect(f"{IN_FLIGHT} moves in flight all the time: at least {least}", that=least >= IN_FLIGHT - 1)
    grown = last.held.memory_mib - settled.held.memory_mib
    promises.expect(
        f"memory stays as it is: grown by {grown:.1f} MiB from hour {settled.hour} on", that=grown <= MOST_GROWTH_MIB
    )
    promises.expect(
        f"descriptors and threads stay: {settled.held} and then {last.held}",
        that=last.held.descriptors <= settled.held.descriptors and last.held.threads <= settled.held.threads,
    )
    hours = max(1, last.hour - settled.hour)
    an_hour = (last.journal_bytes - settled.journal_bytes) / hours / 1e6
    promises.expect(
        f"the journal grows by {MOST_JOURNAL_MB:g} MB an hour at most: {an_hour:.2f} MB",
        that=an_hour <= MOST_JOURNAL_MB,
    )
    return promises


def _table(seen: list[Hour], told: str, took_s: float) -> str:
    shown = [hour for hour in seen if hour.hour in (1, 2, SETTLED, len(seen)) or hour.hour % 6 == 0]
    rows = [
        f"| {one.hour} | {one.in_flight} | {one.held.memory_mib:.1f} | {one.held.descriptors} | {one.held.threads} "
        f"| {one.held.cpu_s:.0f} | {one.journal_bytes / 1e6:.2f} | {one.log_bytes / 1e6:.2f} |"
        for one in shown
    ]
    day = (
        f"{BROKERS} brokers, {MOVES} moves under {RATE / 1e6:g} MB/s, a look every {POLL_S:g} s; it took "
        f"{took_s / 60:.0f} minutes. {told}"
    )
    heading = (
        "| hour | moves in flight | MiB, with the twin | descriptors | threads | CPU s | journal MB | its log MB |"
    )
    return "\n".join([heading, "|" + "---|" * 8, *rows, "", day])


if __name__ == "__main__":
    main()
