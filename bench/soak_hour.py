"""One real hour of a run with a hundred moves in flight on real Kafka, then SIGKILL, and how soon `resume` goes on.

Three brokers of one machine; a hundred partitions, of each of which the follower moves on by one broker under a
throttle so small that copying would take a third longer than the soak. Brokers fetch in small pieces: a fetch of the
usual size would bring more at once than such a throttle allows in its whole window. Once a minute everything that the
processes of `kreassign run` and of a `kreassign watch` beside it hold is noted, in build/soak/hour.csv too, and
`kreassign status` is asked. At the end the throttle is lifted, and the run has to end well.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

from bench.soak import FOLDER, Held, Promises, held, report
from bench.soak_commands import Commands, Resumed, judge_resumes
from kreassign.executor.journal import find_journals
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan, format_plan
from testbed import ClusterSpec, KafkaCluster
from testbed.records import load_topic
from testbed.waiting import wait_until

MINUTES = 60.0
BROKERS, PARTITIONS = 3, 100
TOPIC = "moved"
RATE = 25_000
LONGER = 4 / 3
"""How much longer than the soak copying would take."""
PIECE_BYTES = 32_768
SLOW_BUT_STEADY = {"replica.fetch.max.bytes": "16384", "replica.fetch.response.max.bytes": str(PIECE_BYTES)}
MINUTE_S = 60.0
SETTLED = 10
"""Growth is judged from this minute on."""
MOST_GROWTH_MIB = 8.0
COLUMNS = (
    "minute", "in_flight", "left_bytes", "run_mib", "run_descriptors", "run_threads", "run_cpu_s", "watch_mib",
    "watch_descriptors", "watch_threads", "watch_cpu_s", "journal_bytes", "log_bytes", "status_s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Minute:
    """Readings after so many minutes: of the run and its watchers, of the journal and its log, by `status`."""

    minute: int
    run: Held
    watch: Held
    journal_bytes: int
    log_bytes: int
    in_flight: int
    left_bytes: int
    status_s: float

    @property
    def cells(self) -> tuple[object, ...]:
        """A row of the file of figures, by `COLUMNS`."""
        ours, theirs = self.run, self.watch
        return (
            self.minute, self.in_flight, self.left_bytes, f"{ours.memory_mib:.1f}", ours.descriptors, ours.threads,
            f"{ours.cpu_s:.1f}", f"{theirs.memory_mib:.1f}", theirs.descriptors, theirs.threads, f"{theirs.cpu_s:.1f}",
            self.journal_bytes, self.log_bytes, f"{self.status_s:.2f}",
        )  # fmt: skip


def measure() -> None:
    """The hour, into the page."""
    soak(MINUTES)


def soak(minutes: float) -> None:
    """Let a run go on for so long, kill it, resume it, and tell."""
    rmtree(FOLDER / "hour", ignore_errors=True)
    folder = FOLDER / "hour"
    folder.mkdir(parents=True)
    with KafkaCluster.start(ClusterSpec(brokers=BROKERS, broker_config=SLOW_BUT_STEADY)) as cluster:
        plan = _prepared(cluster, folder, minutes)
        commands = Commands(folder, cluster.bootstrap_servers)
        seen = _endured(commands, plan, minutes)
        resumed, state = _resumed(commands)
    promises = _judged(seen, state)
    told = judge_resumes(resumed, promises)
    report("hour", _table(seen, f"{told} Without its throttle the run then ended: {state}."), promises)


def _prepared(cluster: KafkaCluster, folder: Path, minutes: float) -> Path:
    """A topic with its records, and the file of a plan."""
    there = [(number % BROKERS, (number + 1) % BROKERS) for number in range(PARTITIONS)]
    cluster.create_topic(TOPIC, [list(replicas) for replicas in there])
    size = int(RATE * minutes * MINUTE_S * LONGER * BROKERS / PARTITIONS)
    sizes = dict.fromkeys(range(PARTITIONS), size)
    load_topic(cluster.bootstrap_servers, TOPIC, sizes, value_bytes=(4_000, 8_000), batch_bytes=12_000)
    targets = ((leader, (leader + 2) % BROKERS) for leader, _ in there)
    wanted = Plan(tuple(PartitionAssignment(TopicPartition(TOPIC, n), target) for n, target in enumerate(targets)))
    file = folder / "plan.json"
    file.write_text(format_plan(wanted), encoding="utf-8")
    return file


def _endured(commands: Commands, plan: Path, minutes: float) -> list[Minute]:
    """A minute of the run after the other; at the end it is killed."""
    limits = (
        "--throttle",
        f"{RATE // 1000}kB/s",
        "--max-moves",
        str(PARTITIONS),
        "--start",
        "all",
        "--lease",
        "require",
    )
    seen = []
    with commands.started("run", str(plan), "--yes", "--measure-for", "0", *limits) as process:
        wait_until(lambda: _is_underway(commands, process), timeout_s=120, what="moves in flight", every_s=0.5)
        with commands.started("watch", asks_cluster=False) as watching, _file_of_figures() as keep:
            begun_s = time.monotonic()
            for number in range(1, round(minutes) + 1):
                time.sleep(max(0.0, begun_s + number * MINUTE_S - time.monotonic()))
                if process.poll() is not None:
                    raise RuntimeError(f"the run ended after {number} minutes:\n{commands.said('run')}")
                seen.append(_minute(commands, number, process.pid, watching.pid))
                keep(seen[-1])
        process.send_signal(signal.SIGKILL)
    return seen


def _is_underway(commands: Commands, process: subprocess.Popen[bytes]) -> bool:
    if process.poll() is not None:
        raise RuntimeError(f"the run did not begin:\n{commands.said('run')}")
    return bool(find_journals(commands.state_dir)) and _in_flight(commands.status()[0]) == PARTITIONS


def _in_flight(status: dict[str, Any]) -> int:
    return sum(move["status"] in ("moving", "sent") for move in status["moves"])


@contextmanager
def _file_of_figures() -> Iterator[Any]:
    with (FOLDER / "hour.csv").open("w", encoding="utf-8") as file:

        def keep(minute: Minute) -> None:
            print(",".join(map(str, minute.cells)), file=file, flush=True)

        print(",".join(COLUMNS), file=file, flush=True)
        yield keep


def _minute(commands: Commands, number: int, run_id: int, watch_id: int) -> Minute:
    ours, theirs = held(run_id), held(watch_id)
    journal = commands.journal
    log = journal.with_name(f"{journal.name}-wal")
    found, took_s = commands.status()
    left = found["progress"]["left_bytes"]
    log_bytes = log.stat().st_size if log.exists() else 0
    return Minute(number, ours, theirs, journal.stat().st_size, log_bytes, _in_flight(found), left, took_s)


def _resumed(commands: Commands) -> tuple[list[Resumed], str]:
    """Go on with the run that was killed, at last without a throttle until its end: its last state."""
    found = commands.killed_again()
    with commands.resumed() as (process, last):
        commands.ended("throttle", "none")
        process.wait(20 * MINUTE_S)
    return [*found, last], commands.status()[0]["state"]


def _judged(seen: list[Minute], state: str) -> Promises:
    promises, settled, last = Promises(), seen[min(SETTLED, len(seen)) - 1], seen[-1]
    least = min(minute.in_flight for minute in seen)
    promises.expect(f"{PARTITIONS} moves in flight all the time: at least {least}", that=least == PARTITIONS)
    for name, before, after in (("run", settled.run, last.run), ("watch", settled.watch, last.watch)):
        grown = after.memory_mib - before.memory_mib
        promises.expect(
            f"the memory of `{name}` stays as it is: grown by {grown:.1f} MiB from minute {settled.minute} on",
            that=grown <= MOST_GROWTH_MIB,
        )
        promises.expect(
            f"`{name}` keeps its descriptors and threads: {before} and then {after}",
            that=after.descriptors <= before.descriptors and after.threads <= before.threads,
        )
    promises.expect(f"the run ends as done: {state}", that=state == "done")
    return promises


def _table(seen: list[Minute], told: str) -> str:
    shown = sorted({1, *range(SETTLED, len(seen), SETTLED), len(seen)})
    heading = (
        "| minute | moves in flight | MB left | run: MiB | descriptors | threads | CPU s | watch: MiB | descriptors "
        "| journal MB | its log MB | `status` s |"
    )
    slowest = max(minute.status_s for minute in seen)
    heard = f"{len(seen)} minutes, in which `status` took {slowest:.2f} s at most. {told}"
    rows = [_row(seen[number - 1]) for number in shown]
    return "\n".join([heading, "|" + "---|" * 12, *rows, "", heard])


def _row(minute: Minute) -> str:
    ours, theirs = minute.run, minute.watch
    return (
        f"| {minute.minute} | {minute.in_flight} | {minute.left_bytes / 1e6:.0f} | {ours.memory_mib:.1f} "
        f"| {ours.descriptors} | {ours.threads} | {ours.cpu_s:.0f} | {theirs.memory_mib:.1f} | {theirs.descriptors} "
        f"| {minute.journal_bytes / 1e6:.2f} | {minute.log_bytes / 1e6:.2f} | {minute.status_s:.2f} |"
    )


if __name__ == "__main__":
    soak(float(sys.argv[1]))
