"""Bring measurements into tables: sampled from a cluster, streamed from a Kafka topic, or imported from files.

From offsets and sizes that were sampled the load job computes rates. Collectors and streams compact their own tables.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from tempfile import gettempdir
from typing import BinaryIO

from kreassign.admin import AdminClient
from kreassign.admin.properties import read_properties
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ClusterError, DataError, InputError, machine_reason, requires
from kreassign.executor.cluster.permissions import lacking_to_read
from kreassign.executor.cluster.readings import read_log_dirs, with_moves
from kreassign.model import Broker, ConfigEntry, ConfigResource, OffsetSpec, Topic
from kreassign.model.cluster import CLEANUP_POLICY
from kreassign.model.load import LOCAL_SPARK, SparkOptions, spark_log
from kreassign.model.text import check_wait, counted
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.operations.connect import Warn, connect, tell_nobody, warn_of_failures, warn_program
from kreassign.operations.snapshot import cleanup_policies, described_cluster, warn_of_unread
from kreassign.operations.whole_file import locked
from kreassign.pipeline.ingest.exporters import (
    BadRow,
    FileOrigin,
    Parsed,
    SeriesValue,
    is_metric,
    metric_rows,
    nothing_known,
    of_brokers,
)
from kreassign.pipeline.ingest.imported_samples import (
    LARGEST_LINE,
    Judge,
    PartitionReadings,
    check_columns,
    given_rows,
    is_fact,
    text_rows,
)
from kreassign.pipeline.ingest.measure_files import parse
from kreassign.pipeline.ingest.metric_records import BatchCount, RecordForm
from kreassign.pipeline.ingest.snapshots import CollectedRound, SampleRound, SnapshotAnswers, round_tables
from kreassign.pipeline.tables import schemas
from kreassign.pipeline.tables.access import by_reference, for_log, make_private_folder
from kreassign.pipeline.tables.arrow import MAGIC, foreign_columns, foreign_rows
from kreassign.pipeline.tables.commits import compact, vacuum
from kreassign.pipeline.tables.parquet import has_table, keys_with, rows_at, write_rows

__all__ = ["RecordForm"]

# Compaction by writers of many small files: collectors and streams compact their own tables.
#
# The log of a table names every file again and again, and a reader opens each; a compaction after so many rounds or
# batches costs little by comparison.

COMPACT_EVERY = 60
"""Rounds, or batches, between compactions."""
VACUUM_EVERY = 24
"""Compactions between those that also delete the files of old versions."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """Tables of a directory to compact, the number of writes between compactions, and the receiver of warnings."""

    data: Path | str
    tables: Iterable[schemas.Table]
    every: int
    clock: Clock
    warn: Warn

    def after(self, number: int) -> None:
        """Compact if it is due after the write of this number, counted from 1.

        If another process does so at the same time, one of both is enough.
        """
        if number % self.every:
            return
        vacuum_ms = None if number % (self.every * VACUUM_EVERY) else self.clock.now_ms()
        for table in self.tables:
            try:
                if has_table(self.data, table):
                    compact(self.data, table)
                    if vacuum_ms is not None:
                        vacuum(self.data, table, vacuum_ms)
            except DataError as error:
                self.warn(f"not compacted: {error}")


# Samples of a cluster, round after round; the load job computes rates from its offsets and sizes.

TABLES_OF_ROUNDS = (
    schemas.BROKERS,
    schemas.LOG_DIRS,
    schemas.PARTITIONS,
    schemas.REPLICAS,
    schemas.CLUSTERS,
    schemas.SAMPLES,
    schemas.THROTTLES,
)


@dataclass(frozen=True, slots=True)
class Round:
    """A round, counted from 1: the number of partitions stored, or the reason why none was."""

    number: int
    partitions: int | None
    problem: ClusterError | None = None


def collect(
    client: AdminClient,
    data: Path | str,
    *,
    rounds: int | None = None,
    interval_s: float = 60.0,
    compact_every: int = COMPACT_EVERY,
    clock: Clock = SYSTEM_CLOCK,
    warn: Warn = warn_program,
) -> Iterator[Round]:
    """Store rounds of samples in the tables of a directory; without a number of rounds until nobody asks for more.

    A round that the cluster does not answer is left out. Raises ClusterError if it is the first. After so many rounds
    as `compact_every` their files become one per table and date.
    """
    compaction = Compaction(data, TABLES_OF_ROUNDS, compact_every, clock, warn)
    for number in paced(rounds, interval_s, clock):
        yield survived(number, lambda: store_round(data, take_round(client, clock, warn)))
        compaction.after(number)


def paced(rounds: int | None, interval_s: float, clock: Clock) -> Iterator[int]:
    """Yield numbers from 1 to `rounds`, one per interval, or without end.

    A round that took longer is followed by the next at once.
    """
    check_wait("interval_s", interval_s)
    started_s = clock.monotonic_s()
    for number in count() if rounds is None else range(rounds):
        clock.sleep(started_s + number * interval_s - clock.monotonic_s())
        yield number + 1


def survived(number: int, store: Callable[[], int]) -> Round:
    """Run a round; return its number of partitions, or its problem. The error of a first round is raised."""
    try:
        return Round(number, store())
    except ClusterError as error:
        if number == 1:
            raise
        return Round(number, None, error)


def store_round(data: Path | str, collected: CollectedRound) -> int:
    """Write the files of a round, the seal of its snapshot last; return the number of partitions."""
    stem = collected.samples.file_stem
    for table, rows in round_tables(collected):
        write_rows(data, table, rows, file_stem=stem)
    return len(collected.samples.end_offsets)


def take_round(client: AdminClient, clock: Clock, warn: Warn = warn_program) -> CollectedRound:
    """Read one round; sizes right after the end offsets, as both together give the size of a record.

    So are the start offsets, which are therefore those of the leaders' local logs.
    """
    cluster = described_cluster(client)
    described, moves = with_moves(client, client.describe_topics)
    topics = tuple(described.ok.values())
    partitions = [partition.topic_partition for topic in topics for partition in topic.partitions]
    taken_ms = clock.now_ms()
    end_offsets = client.list_offsets(partitions)
    log_dirs = read_log_dirs(client, (broker.id for broker in cluster.brokers if not broker.is_fenced))
    start_offsets = client.list_offsets(partitions, OffsetSpec.EARLIEST_LOCAL)
    warn_of_unread(client, described, log_dirs, warn)
    warn_of_failures(warn, "offsets", {**end_offsets.failed, **start_offsets.failed})
    configs = take_configs(client, topics, cluster.brokers, warn)
    return CollectedRound(
        SnapshotAnswers(taken_ms, cluster, topics, log_dirs, moves, cleanup_policies=cleanup_policies(configs)),
        SampleRound(taken_ms, cluster.cluster_id, topics, start_offsets.ok, end_offsets.ok, log_dirs),
        configs,
    )


def take_configs(
    client: AdminClient, topics: tuple[Topic, ...], brokers: tuple[Broker, ...], warn: Warn
) -> Mapping[ConfigResource, Mapping[str, ConfigEntry]]:
    """Read throttles and cleanup policies of all topics in one request, and throttles of live brokers from each."""
    live = [ConfigResource.broker(broker.id) for broker in brokers if not broker.is_fenced]
    named = [ConfigResource.topic(topic.name) for topic in topics]
    found = client.describe_configs([*live, *named], names=(*BROKER_THROTTLES, *TOPIC_THROTTLES, CLEANUP_POLICY))
    warn_of_failures(warn, "throttles and cleanup policies", found.failed)
    return found.ok


# Stream a Kafka topic of metrics into tables until stopped.

MAX_OFFSETS = 200_000
"""Records per batch: so many take about 100 MB of memory."""


@dataclass(frozen=True, slots=True)
class MetricStream:
    """A Kafka topic of metrics and how to read it; `jars` is a folder with those of Spark's Kafka source.

    `command_config` is a file of client properties, which Spark's consumers read where they run. A batch has at most
    `max_offsets_per_trigger` records.
    """

    bootstrap_server: str
    topic: str
    cluster: str
    form: RecordForm = RecordForm.JSON
    jars: Path | None = None
    command_config: Path | None = None
    max_offsets_per_trigger: int = MAX_OFFSETS


def stream_metrics(
    source: MetricStream,
    data: Path | str,
    spark_options: SparkOptions = LOCAL_SPARK,
    say: Callable[[str], None] = tell_nobody,
    *,
    once: bool = False,
    compact_every: int = COMPACT_EVERY,
    warn: Warn = warn_program,
) -> Mapping[str, int]:
    """Read a topic of metrics into table `metrics`, each metric exactly once; how many records were treated how.

    Treatments are `good`, `late`, `quarantined`, `skipped` and `counted`, as in table `metric_batches`. With `once` it
    ends when all that is there is read. `say` gets a line for each batch. After so many batches as `compact_every` the
    files of the tables become one per table and date; `warn` hears where that failed. Raises InputError, also where
    records of the topic may not be read, ClusterError, DataError, and KreassignError without PySpark.
    """
    with requires("reading a topic of metrics", "PySpark", "spark"):
        from kreassign.pipeline.ingest import metric_stream as stream
        from kreassign.pipeline.spark_session import is_connect, spark_session

    file = source.command_config
    client = {} if file is None else by_reference(read_properties(file), file)
    topic = stream.MetricTopic(
        source.bootstrap_server, source.topic, source.form, source.cluster, client, source.max_offsets_per_trigger
    )
    files = () if source.jars is None else tuple(sorted(source.jars.glob("*.jar")))
    treated: Counter[str] = Counter()
    compaction = Compaction(data, stream.TABLES, compact_every, SYSTEM_CLOCK, warn)
    batches = count(1)

    def tell(batch: BatchCount) -> None:
        say(str(batch))
        for (treatment, _), records in batch.counts.items():
            treated[treatment] += records
        compaction.after(next(batches))

    if is_connect(spark_options.master):
        raise InputError("a stream cannot run on Spark Connect: each of its batches is committed by this process")
    _check_permission(source)
    with spark_session(spark_log(data), spark_options, name="kreassign stream-metrics", jars=files) as spark:
        rows = stream.metrics_of(stream.kafka_records(spark, topic), topic)
        stream.run(rows, topic, data, tell, once=once)
    return treated


def _check_permission(source: MetricStream) -> None:
    """Check before starting Spark, which is slow and reports this verbosely. Raises InputError, ClusterError."""
    try:
        client = connect(source.bootstrap_server, source.command_config)
    except InputError:
        return  # Java's clients, which Spark uses, accept properties that ours refuse.
    with client:
        if lacking := lacking_to_read(client, (source.topic,)):
            raise InputError("\n  - ".join((f"topic {source.topic} cannot be read:", *lacking)))


# Import measurements of others from files into tables: metrics of exporters, and samples of any origin.
#
# Good rows are stored; bad ones are in table `import_quarantine` with place and reason; all are counted.
# Rows whose key is in a table already are not added: importing a file again, alone or with others, changes nothing.

LOCK = ".import.lock"
NO_INSTANCE: Mapping[str, int] = {}
SAME_KEY = "has the key of another row, and other values, so neither is stored"
OTHER_STORED = "is in the table already with other values, which stay"
_BATCH_ROWS = 200_000
_MOST_BYTES = 512 << 20
"""Bytes of a metrics file; its readings take several times as much memory."""
_NO_LEADER = ("leader", -1)


@dataclass(slots=True)
class Bad:
    """Rows that were not stored: counts by reason, and the first row of each."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, BadRow] = field(default_factory=dict)

    def add(self, row: BadRow) -> None:
        """Count one row."""
        self.counts[row.reason] += 1
        self.first.setdefault(row.reason, row)

    @property
    def first_of_all(self) -> str:
        """The first bad row, as a sentence."""
        return next(str(row) for row in self.first.values())


@dataclass(slots=True)
class ImportedFile:
    """Contents of a file: usable readings or rows, others, bad ones, and those of instances without a known broker.

    `problem` is why it, or the rest of it, could not be read.
    """

    file: Path
    usable: int = 0
    others: int = 0
    bad: Bad = field(default_factory=Bad)
    unknown: Counter[str] = field(default_factory=Counter)
    problem: str | None = None


@dataclass(slots=True)
class Imported:
    """Outcome of an import: by file, rows added by table, and rows that were present already.

    `together` has the bad readings of partitions over all files together.
    """

    files: list[ImportedFile] = field(default_factory=list)
    added: Counter[str] = field(default_factory=Counter)
    known_already: int = 0
    together: Bad = field(default_factory=Bad)

    def check(self) -> None:
        """Raise InputError for the first unreadable file, or one of which nothing is used, or if nothing was stored."""
        problems = [f"{each.file}: {each.problem}" for each in self.files if each.problem]
        if not problems and not self.added and not self.known_already:
            problems = [f"{self.files[0].file}: nothing is there to store: {self._first_reason()}"]
        if problems:
            more = f" (and {counted(len(problems) - 1, 'more file')})" if len(problems) > 1 else ""
            raise InputError(problems[0] + more)

    def _first_reason(self) -> str:
        bad = next((each for each in (*(file.bad for file in self.files), self.together) if each.counts), None)
        return "no file has a reading" if bad is None else bad.first_of_all


def import_metrics(
    files: Sequence[Path],
    data: Path | str,
    cluster: str,
    broker: int | None = None,
    instances: Mapping[str, int] = NO_INSTANCE,
) -> Imported:
    """Add what files of exporters, of Prometheus or of Confluent Cloud have to the tables `metrics` and `samples`.

    They are from `broker`, or from the brokers of their labels `instance`, or of the names of the files. Offsets and
    sizes of partitions are joined over all files. A page without times was taken when its file was last written.
    """
    done, now_ms = Imported(), SYSTEM_CLOCK.now_ms()
    partitions = PartitionReadings(cluster)
    metrics, joined = (_Rows(done, data, table, now_ms) for table in (schemas.METRICS, schemas.SAMPLES))
    for file in files:
        told = ImportedFile(file)
        done.files.append(told)
        try:
            found = _readable(_content(file))
            origin = FileOrigin(cluster, file.stat().st_mtime_ns // 1_000_000, broker, instances, file.name)
        except (InputError, OSError) as error:
            told.problem = machine_reason(error)
            continue
        readings = of_brokers(found.readings, origin)
        bad = _Quarantine(data, str(file), told.bad, now_ms)
        bad.extend(found.unreadable)
        bad.extend(partitions.add(readings, origin))
        for one in metric_rows(readings, origin):
            metrics.add(one.reading.place, one.row, bad)
        bad.write()
        _tell_readings(told, readings, origin)
        told.others += len(found.readings) - len(readings)
    metrics.store()
    bad = _Quarantine(data, ", ".join(str(file) for file in files), done.together, now_ms)
    samples = partitions.samples()
    bad.extend(samples.bad)
    for row in samples.rows:
        joined.add(f"partition {row['topic']}-{row['partition']}", row, bad)
    joined.store()
    bad.write()
    return done


def import_samples(files: Sequence[Path], data: Path | str, cluster: str | None = None) -> Imported:
    """Add samples of any origin to table `samples`, from files of Parquet, CSV or JSON lines with its columns.

    `cluster` is for rows that do not name theirs. Good rows are added, also those before a place where a file is cut
    off; `check` of what is returned raises for such files.
    """
    done, now_ms = Imported(), SYSTEM_CLOCK.now_ms()
    rows = _Rows(done, data, schemas.SAMPLES, now_ms)
    quarantines: list[_Quarantine] = []
    for file in files:
        told = ImportedFile(file)
        done.files.append(told)
        bad = _Quarantine(data, str(file), told.bad, now_ms)
        quarantines.append(bad)
        try:
            for place, row in _own_rows(file, cluster):
                if isinstance(row, BadRow):
                    bad.extend([row])
                else:
                    rows.add(place, row, bad)
        except (InputError, OSError) as error:  # rows read before it are stored
            told.problem = machine_reason(error)
        bad.write()
    rows.store()
    for told, bad in zip(done.files, quarantines, strict=True):
        told.usable = bad.stored
        if told.bad.counts and not told.usable:
            told.problem = told.problem or f"none of its rows is good; {told.bad.first_of_all}"
    return done


def _own_rows(file: Path, cluster: str | None) -> Iterator[tuple[str, schemas.Row | BadRow]]:
    """Place and content of every row in a file."""
    with file.open("rb") as opened:
        is_parquet = opened.read(len(MAGIC)) == MAGIC
        opened.seek(0)
        if is_parquet:
            check_columns(foreign_columns(file), cluster)
        yield from given_rows(foreign_rows(file), cluster) if is_parquet else text_rows(_lines(opened), cluster)


def _lines(opened: BinaryIO) -> Iterator[bytes]:
    """Lines of a file; of one that is too long no more than shows it."""
    return iter(partial(opened.readline, LARGEST_LINE + 1), b"")


class _Quarantine:
    """Rows of a file for table `import_quarantine`; `told` counts them. `stored` counts those in their table now."""

    def __init__(self, data: Path | str, file: str, told: Bad, now_ms: int) -> None:
        self._data, self._file, self._told, self._now_ms = data, _storable(file), told, now_ms
        self._rows: list[BadRow] = []
        self.name = Path(file).name
        self.stored = 0

    def extend(self, rows: Iterable[BadRow]) -> None:
        """Add bad rows."""
        for row in rows:
            self._told.add(row)
            self._rows.append(row)
            if len(self._rows) >= _BATCH_ROWS:
                self.write()

    def write(self) -> None:
        """Write the rows added since the last call that are not in the table yet."""
        given = {(self._file, one.place, one.reason, _storable(one.text)): None for one in self._rows}
        stored = keys_with(self._data, schemas.IMPORT_QUARANTINE, "file", self._file) if given else set()
        new = [key for key in given if key not in stored]
        if new:
            at = {"imported_ms": self._now_ms}
            rows = [dict(zip(schemas.IMPORT_QUARANTINE.key, key, strict=True)) | at for key in new]
            write_rows(self._data, schemas.IMPORT_QUARANTINE, rows, file_stem=_named_by(new))
        self._rows = []


def _named_by(content: object) -> str:
    """Name a file by its content: a second write of the same replaces only itself."""
    return sha256(repr(content).encode()).hexdigest()[:16]


def _storable(text: str) -> str:
    """Escape half surrogates, which stand for bytes that are not UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def _content(file: Path) -> bytes:
    """Content of a metrics file, which is read as a whole. Raises InputError for one that is too large."""
    with file.open("rb") as opened:
        is_larger = os.fstat(opened.fileno()).st_size > _MOST_BYTES
        content = b"" if is_larger else opened.read(_MOST_BYTES + 1)
    if is_larger or len(content) > _MOST_BYTES:
        raise InputError(
            f"it has more than {_MOST_BYTES >> 20} MiB; query shorter times, or split a page (`split -C 256m`); give "
            "the pieces of one without times its time (`touch -r PAGE PIECE…`), and import all in one command"
        )
    return content


def _readable(content: bytes) -> Parsed:
    found = parse(content)
    if found.unreadable and not found.readings:
        raise InputError(f"nothing in it is a reading: {found.unreadable[0]}")
    return found


@dataclass(frozen=True, slots=True)
class _Placed:
    """A row at its place in a file."""

    place: str
    row: schemas.Row
    bad: _Quarantine

    def known(self, columns: Sequence[str]) -> Iterator[str]:
        """Columns of these with a value in it: what is unknown contradicts nothing."""
        return (name for name in columns if self.row[name] is not None and (name, self.row[name]) != _NO_LEADER)


class _Rows:
    """Plausible rows of all files of an import on their way into a table, so many in one commit.

    Of rows with one key that contradict each other none is stored. Of more than fit in a commit, the earlier one stays.
    """

    def __init__(self, done: Imported, data: Path | str, table: schemas.Table, now_ms: int) -> None:
        self._done, self._data, self._table = done, data, table
        self._judge = Judge(table, now_ms)
        self._values = [one for one in table.column_names if one not in table.key]
        self._placed: list[_Placed] = []

    def add(self, place: str, row: schemas.Row, bad: _Quarantine) -> None:
        """Add a row, or quarantine it."""
        reason = self._judge.why_not(row)
        if reason is not None:
            bad.extend([BadRow(place, reason, json.dumps(row))])
            return
        self._placed.append(_Placed(place, row, bad))
        if len(self._placed) >= _BATCH_ROWS:
            self.store()

    def store(self) -> None:
        """Add the rows whose keys are new, in one commit, and quarantine those that contradict others."""
        placed, self._placed = sorted(self._placed, key=lambda one: one.row["taken_ms"]), []
        if not placed:
            return
        # The log of a table accepts concurrent additions: equal rows become two rows.
        with locked(_lock_file(self._data)):
            self._store(placed)
        for bad in {id(one.bad): one.bad for one in placed}.values():
            bad.write()

    def _store(self, placed: list[_Placed]) -> None:
        stored = rows_at(self._data, self._table, {one.row["taken_ms"] for one in placed})
        by_key: dict[tuple[object, ...], list[_Placed]] = {}
        for one in placed:
            by_key.setdefault(tuple(one.row[name] for name in self._table.key), []).append(one)
        new: dict[tuple[object, ...], schemas.Row] = {}
        for key, same in by_key.items():
            good = self._undisputed(same, stored.get(key))
            for one in good:
                one.bad.stored += 1
            if good and key not in stored:
                new[key] = good[0].row
            self._done.known_already += len(good) - (key in new)
        if new:
            write_rows(self._data, self._table, list(new.values()), file_stem=_named_by(list(new)))
            self._done.added[self._table.name] += len(new)

    def _undisputed(self, same: list[_Placed], stored: schemas.Row | None) -> list[_Placed]:
        """Rows of one key that contradict neither the stored one nor each other; the others are quarantined."""
        good = []
        for one in same:
            before = [] if stored is None else [_Placed("", stored, one.bad)]
            if (odd := _dispute([*before, one], self._values)) is None:
                good.append(one)
            else:
                name, there, _ = odd
                told = f"{name} is {one.row[name]}, and {there.row[name]} in the table"
                one.bad.extend([BadRow(one.place, OTHER_STORED, f"{told}: {json.dumps(one.row)}")])
        return good if (dispute := _dispute(good, self._values)) is None else _quarantined(good, *dispute)


def _dispute(same: Sequence[_Placed], columns: Sequence[str]) -> tuple[str, _Placed, _Placed] | None:
    """A column of which two of these rows say otherwise, and both."""
    first: dict[str, _Placed] = {}
    for one in same:
        for name in one.known(columns):
            if first.setdefault(name, one).row[name] != one.row[name]:
                return name, first[name], one
    return None


def _quarantined(same: Sequence[_Placed], name: str, first: _Placed, second: _Placed) -> list[_Placed]:
    for one in same:
        other = second if one.row[name] == first.row[name] else first
        told = f"{name} is {one.row[name]}, and {other.row[name]} in {other.bad.name} {other.place}"
        one.bad.extend([BadRow(one.place, SAME_KEY, f"{told}: {json.dumps(one.row)}")])
    return []


def _lock_file(data: Path | str) -> Path:
    """Lock of imports into this directory; for an address, of imports of this machine only.

    That is in a folder that may be writable for all.
    """
    if isinstance(data, Path):
        make_private_folder(data)
        return data / LOCK
    name = sha256(for_log(data.rstrip("/")).encode()).hexdigest()[:16]
    return Path(gettempdir()) / f"kreassign-{os.getuid()}-{name}{LOCK}"


def _tell_readings(told: ImportedFile, readings: Sequence[SeriesValue], origin: FileOrigin) -> None:
    """Count the readings of a file, and those of instances without a known broker."""
    of_cluster = [one for one in readings if origin.is_of_cluster(one)]
    of_metrics = [one for one in of_cluster if is_metric(one)]
    told.unknown.update(origin.instance_of(one) for one in of_metrics if not origin.is_known(one))
    facts = sum(is_fact(one) for one in of_cluster)
    told.usable = len(of_metrics) + facts - told.unknown.total()
    told.others = len(readings) - len(of_metrics) - facts
    if of_cluster and not of_metrics and not facts:
        told.problem = nothing_known(of_cluster)
    elif told.unknown and not told.usable:
        told.problem = "specify the broker: --broker ID, or --instance INSTANCE=ID for " + ", ".join(told.unknown)
    elif readings and not of_cluster:
        told.problem = f"it is of another cluster: specify --cluster {readings[0].labels['kafka_id']}"
