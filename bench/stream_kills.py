"""A stream of metrics on real Kafka, killed again and again: nothing is lost, and nothing is twice in the tables.

`kreassign stream-metrics` is killed (SIGKILL, with its Java) at random moments: while Spark starts, between batches,
and within them. Meanwhile metrics are written, some of them a second time, some a second time with another value, some
that say nothing, and some with a clock 55 minutes ahead. After every fourth kill the checkpoint is lost, too. At the
end the tables are compared with what Kafka acknowledged.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from shutil import rmtree

from kreassign.errors import DataError
from kreassign.pipeline.ingest.metric_records import OTHER_VALUE
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import METRIC_BATCHES, METRICS, METRICS_QUARANTINE, Row, Table
from testbed import ClusterSpec, KafkaCluster
from testbed.jars import spark_kafka_jars
from testbed.processes import ProcessGroup
from testbed.records import Writer
from testbed.waiting import wait_until

TOPIC, CLUSTER = "metrics", "c"
PARTITIONS, SHARE, NEW = 4, 10, 2_000
MINUTE_MS = 60_000
PATIENCE_S = 300.0
LOSES_CHECKPOINT = 4
_PROGRAM = "from kreassign.cli.main import main; main()"


@dataclass(slots=True)
class Sent:
    """Acknowledged values by number, and the number of other records of each kind."""

    values: dict[int, float] = field(default_factory=dict)
    again: int = 0
    conflicting: int = 0
    rubbish: int = 0

    @property
    def count(self) -> int:
        """All records."""
        return len(self.values) + self.again + self.conflicting + self.rubbish


def measure(kills: int = 20, seed: int = 15) -> None:
    """Print a line for each kill, and what the tables have at the end."""
    spec = ClusterSpec(brokers=2)
    with KafkaCluster.start(spec) as cluster, tempfile.TemporaryDirectory() as folder:
        brokers = sorted(cluster.brokers)
        cluster.create_topic(TOPIC, [[brokers[number % 2]] for number in range(PARTITIONS)])
        campaign = _Campaign(cluster.bootstrap_servers, Path(folder), Random(seed))
        print("| Kill | When | Rows before | Rows after | Checkpoint |\n|---|---|---|---|---|")
        for kill in range(1, kills + 1):
            print(campaign.kill(kill), flush=True)
        campaign.finish()
        for line in campaign.findings():
            print(line)


class _Campaign:
    def __init__(self, bootstrap: str, folder: Path, random: Random) -> None:
        self._bootstrap = bootstrap
        self._data = folder / "data"
        self._log = folder / "log"
        self._random = random
        self._sent = Sent()
        self._start_ms = round(time.time() * 1000)
        own = ["--topic", TOPIC, "--cluster", CLUSTER, "--jars", str(spark_kafka_jars()), "--master", "local[2]"]
        where = ["--bootstrap-server", bootstrap, "--data", str(self._data), "--max-offsets-per-trigger", "500"]
        self._command = [sys.executable, "-c", _PROGRAM, "stream-metrics", *where, *own]

    def kill(self, kill: int) -> str:
        """Start the stream, write records, kill it; a row of the table."""
        before, group = len(self._rows(METRICS)), ProcessGroup()
        running = group.spawn(self._command, log=self._log)
        try:
            self._send()
            if kill % 5:
                wait_until(lambda: self._has_more(before, running.poll()), timeout_s=PATIENCE_S, what="a batch")
                moment = self._random.uniform(0, 4)
                when = f"{moment:.1f} s after its first batch"
            else:
                moment = self._random.uniform(3, 12)
                when = f"{moment:.1f} s after its start"
            time.sleep(moment)
        finally:
            group.close()
            running.wait(30)
        is_lost = kill % LOSES_CHECKPOINT == 0
        if is_lost:
            rmtree(self._data / "_metrics_checkpoint")
        return f"| {kill} | {when} | {before:,} | {len(self._rows(METRICS)):,} | {'lost' if is_lost else 'kept'} |"

    def finish(self) -> None:
        """Let it read what is left."""
        group = ProcessGroup()
        finished = group.run([*self._command, "--once"], timeout_s=PATIENCE_S)
        group.close()
        if finished.exit_code:
            raise DataError(finished.stderr)

    def findings(self) -> Iterator[str]:
        """The tables against what was acknowledged."""
        rows, letters = self._rows(METRICS), self._rows(METRICS_QUARANTINE)
        found = Counter((row["broker"], row["taken_ms"]) for row in rows)
        values = {row["broker"]: row["value"] for row in rows}
        lost = sum(values.get(number) != value for number, value in self._sent.values.items())
        twice = sum(count - 1 for count in found.values())
        reasons = Counter(row["reason"] for row in letters)
        records = Counter((row["source_partition"], row["source_offset"]) for row in letters)
        yield f"\nrecords acknowledged: {self._sent.count:,}, {len(self._sent.values):,} of them metrics"
        yield f"metrics: {len(rows):,} rows; lost or changed: {lost}; twice: {twice}"
        yield (
            f"dead letters: {len(letters):,}, of another value {reasons[OTHER_VALUE]:,} (sent: "
            f"{self._sent.conflicting:,}), of others {len(letters) - reasons[OTHER_VALUE]:,} (sent: "
            f"{self._sent.rubbish:,}); twice: {sum(count - 1 for count in records.values())}"
        )
        treated: Counter[str] = Counter()
        for row in self._rows(METRIC_BATCHES):
            treated[row["treatment"]] += row["records"]
        yield "counted: " + ", ".join(f"{count:,} {treatment}" for treatment, count in sorted(treated.items()))

    def _has_more(self, before: int, exit_code: int | None) -> bool:
        if exit_code is not None:
            raise DataError(f"the stream ended by itself: {self._log.read_text()[-2000:]}")
        return len(self._rows(METRICS)) > before

    def _rows(self, table: Table) -> list[Row]:
        try:
            return read_rows(self._data, table, only={"cluster_id": CLUSTER})
        except DataError:
            return []  # the table is not there yet

    def _send(self) -> None:
        writer = Writer(self._bootstrap, TOPIC)
        first = len(self._sent.values)
        for number in range(first, first + NEW):
            self._put(writer, number, float(number))
            self._sent.values[number] = float(number)
            old = self._random.randrange(len(self._sent.values))
            match self._random.randrange(SHARE * 2):
                case 0:
                    self._put(writer, old, self._sent.values[old])
                    self._sent.again += 1
                case 1:
                    self._put(writer, old, self._sent.values[old] + 0.5)
                    self._sent.conflicting += 1
                case 2:
                    writer.send(number % PARTITIONS, b"", b"?")
                    self._sent.rubbish += 1
        writer.close()

    def _put(self, writer: Writer, number: int, value: float) -> None:
        # Those of one number go to one partition: else nothing says which of two values was first.
        ahead_ms = 55 * MINUTE_MS if number % SHARE == 0 else 0
        metric = {"taken_ms": self._start_ms + ahead_ms, "broker": number, "name": "bytes_in_per_s", "value": value}
        writer.send(number % PARTITIONS, b"", json.dumps(metric).encode())
