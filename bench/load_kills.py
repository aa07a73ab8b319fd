"""Loads that are killed again and again: nothing is lost or counts twice, and readers see the old load or the new.

`kreassign load` is killed (SIGKILL, with its Java): at a random moment of the time that a whole load takes, or within
a second after it has committed a table. Before each kill two hours of samples are collected. With every fifth a second
load runs beside the one that is killed, and is left to end. All the time a reader reads what the last load made. At the
end a load is let end, and compared with one that reads all samples, and every sample must be accounted for once.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Self

from bench.known_load import BEGIN_MS, HOUR_MS, Shape, known_load, write_hours
from bench.process import KREASSIGN
from kreassign.errors import DataError, KreassignError
from kreassign.pipeline.tables.delta import has_log, open_log
from kreassign.pipeline.tables.parquet import last_load, loads_of, read_rows, tables_at, write_rows
from kreassign.pipeline.tables.schemas import (
    BACKTESTS,
    BROKERS,
    CLUSTERS,
    FORECAST,
    LOAD_HOURS,
    LOAD_MODEL,
    LOAD_QUALITY,
    LOADS,
    LOG_DIRS,
    OPEN_SAMPLES,
    PARTITIONS,
    PLAN_INPUTS,
    QUARANTINE,
    REPLICAS,
    SAMPLES,
    SKEW,
    Row,
    Table,
)
from testbed.processes import ProcessGroup
from testbed.waiting import wait_until

PARTITIONS_SAMPLED, INTERVAL_S, HOURS_A_KILL, ODD_A_KILL = 50, 300, 2, 3
PATIENCE_S = 300.0
AFTER_COMMIT_S = 1.0
BESIDE_EVERY = 5
SEES_EVERY_S = 0.2
REFUSED = ("was finished while this one ran", "was changed by another process meanwhile, which won")
"""What a load says that lost against another: at its end, or at a table on which both stood."""
MADE = (LOAD_HOURS, OPEN_SAMPLES, QUARANTINE, LOAD_MODEL, BACKTESTS, FORECAST, SKEW, PLAN_INPUTS, LOAD_QUALITY)
"""What a load commits before its last commit, in this order."""
READ = (LOAD_MODEL, FORECAST, SKEW, PLAN_INPUTS)
SOURCES = (BROKERS, CLUSTERS, LOG_DIRS, PARTITIONS, REPLICAS, SAMPLES)


def measure(kills: int = 12, seed: int = 15) -> None:
    """Print a line for each kill, and what is there at the end."""
    with tempfile.TemporaryDirectory() as folder, Reader(Path(folder) / "data") as reader:
        campaign = Campaign(Path(folder), Random(seed))
        print("| kill | when | last load before | after | tables ahead of it |\n|---|---|---|---|---|")
        for kill in range(1, kills + 1):
            print(campaign.kill(kill), flush=True)
        campaign.finish()
    for line in (*campaign.findings(), *reader.findings()):
        print(line)


_PAGE = 4096
_ON_SMALL_DISK = """
mount -t tmpfs -o "size=$1" tmpfs "$2" && cp -a "$3/." "$2" || exit
place=$2 kept=$4
shift 4
"$@"
status=$?
cp -a "$place" "$kept"
exit $status
"""


class Reader:
    """Reads the output of the last load all the time: it stays the same as long as that load is the last."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self.seen: dict[int, str] = {}
        self.looks = 0
        self.wrong: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def findings(self) -> Iterator[str]:
        """Number of looks, and wrong sights among them."""
        yield f"a reader looked {self.looks} times and saw {len(self.seen)} loads; other than whole: {len(self.wrong)}"
        yield from sorted(set(self.wrong))

    def look(self) -> None:
        """Read once."""
        before = last_load(self._data)
        try:
            where = tables_at(self._data)
            rows = {table: read_rows(where, table) for table in READ}
        except DataError as error:
            if before is not None:
                self.wrong.append(str(error))
            return
        self.looks += 1
        (number, *others) = [
            load.number for load in loads_of(self._data) if load.versions.items() >= where.versions.items()
        ]
        told = {
            each["table_name"]: each["good"] for each in read_rows(self._data, LOADS) if each["load_number"] == number
        }
        self.wrong.extend(
            f"load {number} has {len(found)} rows of {table.name}, and says {told[table.name]}"
            for table, found in rows.items()
            if len(found) != told[table.name]
        )
        digest = hashlib.sha256(repr([sorted(map(repr, found)) for found in rows.values()]).encode()).hexdigest()
        if others or self.seen.setdefault(number, digest) != digest:
            self.wrong.append(f"load {number} did not stay as it was")

    def _read(self) -> None:
        while not self._end.wait(SEES_EVERY_S):
            try:
                self.look()
            except (KreassignError, OSError, ValueError, LookupError) as error:
                self.wrong.append(f"{type(error).__name__}: {error}")


class Campaign:
    """A directory of tables, into which samples come, and loads that are killed there."""

    def __init__(self, folder: Path, random: Random) -> None:
        self.data = folder / "data"
        self._folder, self._log, self._random = folder, folder / "log", random
        shape = Shape(PARTITIONS_SAMPLED, days=60, interval_s=INTERVAL_S, is_troubled=True)
        self._hours = write_hours(self.data, known_load(shape), snapshot_day=0)
        self._collected = self._odd = self._hour = 0
        self._usual_s = 0.0
        self._beside = self._refused = 0
        self._found: tuple[str, ...] = ()

    def collect(self, hours: int = HOURS_A_KILL) -> None:
        """Take samples of some hours, some of which no load may believe."""
        self._collected += sum(islice(self._hours, hours))
        self._hour += hours
        odd = [_odd(self._hour, number) for number in range(ODD_A_KILL)]
        write_rows(self.data, SAMPLES, odd, file_stem=f"odd-{self._odd:06}")
        self._odd += len(odd)

    def kill(self, kill: int) -> str:
        """Collect, begin a load and kill it; a row of the table."""
        self.collect()
        if not self._usual_s:
            begun = time.monotonic()
            self.load()
            self._usual_s = time.monotonic() - begun
            self.collect()
        before = _number(self.data)
        with_other = kill % BESIDE_EVERY == 0
        if kill % 2:
            when = self.kill_after(self._random.uniform(0, self._usual_s), with_other=with_other)
        else:
            when = self.kill_at_commit(self._random.choice((*MADE, LOADS)), with_other=with_other)
        ahead = [table.name for table in MADE if self._is_ahead(table)]
        beside = ", another beside it" if with_other else ""
        return f"| {kill} | {when}{beside} | {before} | {_number(self.data)} | {', '.join(ahead) or '-'} |"

    def kill_after(self, seconds: float, *, with_other: bool = False) -> str:
        """Kill a load so long after its start; says when that was."""
        with _Load(self._log, self.data) as load:
            other = self._other() if with_other else None
            time.sleep(seconds)
            has_ended = load.has_ended()
        self._await(other)
        return f"{seconds:.1f} s after its start" + (", it had ended" if has_ended else "")

    def kill_at_commit(self, table: Table, *, with_other: bool = False, wait_s: float | None = None) -> str:
        """Kill a load once it has committed this table, or a little later; says when that was."""
        wait_s = self._random.uniform(0, AFTER_COMMIT_S) if wait_s is None else wait_s
        before = _commits(self.data, table)
        with _Load(self._log, self.data) as load:
            other = self._other() if with_other else None
            wait_until(
                lambda: _commits(self.data, table) > before or load.has_ended(),
                timeout_s=PATIENCE_S, what=f"a commit of {table.name}", every_s=0.005,
            )  # fmt: skip
            time.sleep(wait_s)
        self._await(other)
        return f"{wait_s:.2f} s after a commit of {table.name}"

    def load(self, *words: str, data: Path | None = None) -> None:
        """Let a load end. DataError with its words if it fails."""
        self._run([*_command(data or self.data), *words])

    def load_on_small_disk(self, free_bytes: int) -> None:
        """Load with the tables on a disk with so much room left, mounted for that process alone."""
        before, kept = (self.data.with_name(name) for name in ("before", "kept"))
        self.data.rename(before)
        self.data.mkdir()
        size = sum(_PAGE * -(-path.stat().st_size // _PAGE) for path in before.rglob("*") if path.is_file())
        places = map(str, (self.data, before, kept))
        mounting = ("unshare", "--map-root-user", "--mount", "sh", "-c", _ON_SMALL_DISK, "sh")
        try:
            self._run([*mounting, str(size + free_bytes), *places, *_command(self.data)])
        finally:
            self.data.rmdir()
            kept.rename(self.data)
            shutil.rmtree(before)

    def _run(self, words: list[str]) -> None:
        group = ProcessGroup()
        try:
            done = group.run(words, timeout_s=PATIENCE_S)
        finally:
            group.close()
        if done.exit_code:
            raise DataError(done.stderr)

    def finish(self) -> None:
        """Let the last load end, and compare it with one of all samples."""
        self.load()
        whole = self._folder / "whole"
        copy_sources(self.data, whole)
        self.load(data=whole)
        self._found = tuple(self.compared(whole))

    def findings(self) -> Iterator[str]:
        """Findings in the tables after `finish`."""
        yield from self._found
        yield f"loads beside one that was killed: {self._beside}; {self._refused} of them were refused, and said why"

    def compared(self, whole: Path) -> Iterator[str]:
        """The tables against those that a load of all samples made, and every sample that was collected."""
        for table in (*READ, QUARANTINE):
            ours, theirs = (_texts(place, table) for place in (self.data, whole))
            yield f"{table.name}: {sum(ours.values()):,} rows, other than in a load of all: {_differing(ours, theirs)}"
        counts: Counter[str] = Counter()
        for row in read_rows(self.data, LOAD_QUALITY):
            if row["table_name"] == SAMPLES.name and row["treatment"] != "counted":
                counts[row["treatment"]] += row["row_count"]
        told = ", ".join(f"{count:,} {treatment}" for treatment, count in sorted(counts.items()))
        sent = self._collected + self._odd
        too_many = counts.total() - sent
        yield f"samples: {sent:,} collected, {self._odd} of them odd; by the loads {told}; told too many: {too_many}"

    def _other(self) -> _Load:
        return _Load(self._log.with_name("other"), self.data)

    def _await(self, other: _Load | None) -> None:
        if other is None:
            return
        self._beside += 1
        with other:
            wait_until(other.has_ended, timeout_s=PATIENCE_S, what="the end of the load beside")
            said = other.said()
        if other.exit_code and any(words in said for words in REFUSED):
            self._refused += 1
        elif other.exit_code:
            raise DataError(f"the load beside failed: {said[-2000:]}")

    def _is_ahead(self, table: Table) -> bool:
        """True if a table has commits that belong to no load."""
        load = last_load(self.data)
        known = -1 if load is None else load.versions.get(table.name, -1)
        return has_log(self.data, table) and open_log(self.data, table).version > known


class _Load:
    """A `kreassign load` that is killed with all that it has started when the context is left."""

    def __init__(self, log: Path, data: Path) -> None:
        self._log, self._group = log, ProcessGroup()
        log.unlink(missing_ok=True)
        self._process = self._group.spawn(_command(data), log=log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._group.close()
        self._process.wait(30)

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def said(self) -> str:
        return self._log.read_text(errors="replace")


def _command(data: Path) -> list[str]:
    # What Java leaves when it is killed goes away with the folder.
    return [*KREASSIGN, "load", "--data", str(data), "--conf", f"spark.local.dir={data.parent / 'spark'}"]


def copy_sources(data: Path, place: Path) -> None:
    """Copy the inputs of a load, without anything that loads wrote."""
    for table in SOURCES:
        shutil.copytree(data / table.name, place / table.name)


def _odd(hour: int, number: int) -> Row:
    """A sample that ends before it begins, of the last hour."""
    return {
        "cluster_id": "synthetic", "taken_ms": BEGIN_MS + hour * HOUR_MS - number - 1, "topic": "topic-0000",
        "topic_id": None, "partition": 0, "leader": 0, "start_offset": 9, "end_offset": 5, "size_bytes": number,
    }  # fmt: skip


def _number(data: Path) -> int:
    load = last_load(data)
    return 0 if load is None else load.number


def _commits(data: Path, table: Table) -> int:
    return len(list((data / table.name / "_delta_log").glob("*.json")))


def _texts(data: Path, table: Table) -> Counter[str]:
    """Rows to twelve digits: in which order Spark adds up what tasks bring changes the last ones of a sum."""
    return Counter(
        str({name: f"{one:.12g}" if isinstance(one, float) else one for name, one in row.items() if name != "load_ms"})
        for row in read_rows(data, table)
    )


def _differing(ours: Counter[str], theirs: Counter[str]) -> int:
    return ((ours - theirs) + (theirs - ours)).total()
