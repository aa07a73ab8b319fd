"""Measures that somebody else took, from files into tables: metrics of exporters, and samples of any origin.

What is good is stored; what is not is in table `import_quarantine` with its place and reason; all of it is counted.
Rows whose key is in a table already are not added: to import a file again, alone or with others, changes nothing.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fcntl import LOCK_EX, flock
from hashlib import sha256
from itertools import islice
from pathlib import Path
from tempfile import gettempdir

from kreassign.clock import SystemClock
from kreassign.errors import InputError
from kreassign.pipeline.ingest.measure_files import parse
from kreassign.pipeline.ingest.metric_rows import Origin, is_metric, metric_rows, of_brokers
from kreassign.pipeline.ingest.own_samples import check_columns, given_rows, text_rows
from kreassign.pipeline.ingest.partition_samples import PartitionReadings, is_fact
from kreassign.pipeline.ingest.plausible import Judge
from kreassign.pipeline.ingest.readings import BadRow, Parsed, Reading
from kreassign.pipeline.tables.foreign import MAGIC, foreign_columns, foreign_rows
from kreassign.pipeline.tables.object_store import for_log
from kreassign.pipeline.tables.parquet import keys_at, keys_with, write_rows
from kreassign.pipeline.tables.private_folder import make_private_folder
from kreassign.pipeline.tables.schemas import IMPORT_QUARANTINE, METRICS, SAMPLES, Row, Table

LOCK = ".import.lock"
NO_INSTANCE: Mapping[str, int] = {}
SAME_KEY = "has the key of another row, and other values"
_BATCH_ROWS = 200_000
_Placed = tuple[str, Row]


@dataclass(slots=True)
class Bad:
    """What was not stored: how much for which reason, and the first of each."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, row: BadRow) -> None:
        """Count one."""
        self.counts[row.reason] += 1
        self.first.setdefault(row.reason, row.place)

    @property
    def first_of_all(self) -> str:
        """The first that was bad, as a sentence."""
        return next(f"{place} {reason}" for reason, place in self.first.items())


@dataclass(slots=True)
class ImportedFile:
    """What a file had: readings or rows of use, others, bad ones, and those of instances whose broker nobody says.

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
    """What an import did: by file, rows that were added by table, and how many were there already.

    `together` is what was bad about what all files together say of partitions.
    """

    files: list[ImportedFile] = field(default_factory=list)
    added: Counter[str] = field(default_factory=Counter)
    known: int = 0
    together: Bad = field(default_factory=Bad)

    def check(self) -> None:
        """Raise InputError, which names the first, if a file could not be read, or one of whose broker nobody said."""
        problems = [f"{each.file}: {each.problem}" for each in self.files if each.problem]
        if problems:
            more = f" (and {len(problems) - 1} more files)" if len(problems) > 1 else ""
            raise InputError(problems[0] + more)


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
    done, now_ms = Imported(), SystemClock().now_ms()
    partitions = PartitionReadings(cluster)
    for file in files:
        told = ImportedFile(file)
        done.files.append(told)
        try:
            content = file.read_bytes()
            found = _readable(content)
            origin = Origin(cluster, file.stat().st_mtime_ns // 1_000_000, broker, instances, file.name)
        except (InputError, OSError) as error:
            told.problem = str(error)
            continue
        readings = of_brokers(found.readings, origin)
        bad = _Quarantine(data, str(file), told.bad)
        bad.extend(found.unreadable)
        bad.extend(partitions.add(readings, origin))
        rows = ((one.reading.place, one.row) for one in metric_rows(readings, origin))
        _store(done, data, METRICS, _plausible(METRICS, rows, bad, now_ms), bad)
        bad.write()
        _tell_readings(told, readings, origin)
        told.others += len(found.readings) - len(readings)
    bad = _Quarantine(data, ", ".join(str(file) for file in files), done.together)
    samples = partitions.samples()
    bad.extend(samples.bad)
    placed = ((f"partition {row['topic']}-{row['partition']}", row) for row in samples.rows)
    _store(done, data, SAMPLES, _plausible(SAMPLES, placed, bad, now_ms), bad)
    bad.write()
    return done


def import_samples(files: Sequence[Path], data: Path | str, cluster: str | None = None) -> Imported:
    """Add samples of any origin to table `samples`, from files of Parquet, CSV or JSON lines with its columns.

    `cluster` is for rows that do not name theirs. Good rows are added, also those before a place where a file is cut
    off; `check` of what is returned raises for such files.
    """
    done, now_ms = Imported(), SystemClock().now_ms()
    for file in files:
        told = ImportedFile(file)
        done.files.append(told)
        try:
            _import_rows(done, told, data, cluster, now_ms)
        except (InputError, OSError) as error:
            told.problem = str(error)
    return done


def _import_rows(done: Imported, told: ImportedFile, data: Path | str, cluster: str | None, now_ms: int) -> None:
    bad = _Quarantine(data, str(told.file), told.bad)
    rows = _own_rows(told.file, cluster)
    is_over = False
    while not is_over:
        batch: list[tuple[str, Row | BadRow]] = []
        try:
            batch.extend(islice(rows, _BATCH_ROWS))
            is_over = len(batch) < _BATCH_ROWS
        except InputError as error:  # what was read before it is in the batch, and is stored
            told.problem, is_over = str(error), True
        bad.extend(one for _, one in batch if isinstance(one, BadRow))
        good = [(place, row) for place, row in batch if not isinstance(row, BadRow)]
        told.usable += _store(done, data, SAMPLES, _plausible(SAMPLES, good, bad, now_ms), bad)
        bad.write()
    if told.bad.counts and not told.usable:
        told.problem = told.problem or f"none of its rows is good; {told.bad.first_of_all}"


def _own_rows(file: Path, cluster: str | None) -> Iterator[tuple[str, Row | BadRow]]:
    """Place and row of everything in a file."""
    with file.open("rb") as opened:
        is_parquet = opened.read(len(MAGIC)) == MAGIC
        opened.seek(0)
        if is_parquet:
            check_columns(foreign_columns(file), cluster)
        yield from given_rows(foreign_rows(file), cluster) if is_parquet else text_rows(opened, cluster)


class _Quarantine:
    """What of a file goes to table `import_quarantine`; `told` counts it."""

    def __init__(self, data: Path | str, file: str, told: Bad) -> None:
        self._data, self._file, self._told = data, _storable(file), told
        self._rows: list[BadRow] = []

    def extend(self, rows: Iterable[BadRow]) -> None:
        """Take in what is bad."""
        for row in rows:
            self._told.add(row)
            self._rows.append(row)

    def write(self) -> None:
        """Write what came since the last time and is not in the table yet."""
        given = {(self._file, one.place, one.reason, _storable(one.text)): None for one in self._rows}
        stored = keys_with(self._data, IMPORT_QUARANTINE, "file", self._file) if given else set()
        rows = [dict(zip(IMPORT_QUARANTINE.key, key, strict=True)) for key in given if key not in stored]
        if rows:
            write_rows(self._data, IMPORT_QUARANTINE, rows, file_stem=_named_by(rows))
        self._rows = []


def _named_by(content: object) -> str:
    """The name of a file by what is in it: what is written twice replaces itself, and nothing else."""
    return sha256(repr(content).encode()).hexdigest()[:16]


def _storable(text: str) -> str:
    """The text with half surrogates, which stand for bytes that are not UTF-8, by their numbers."""
    return text.encode(errors="backslashreplace").decode()


def _readable(content: bytes) -> Parsed:
    found = parse(content)
    if found.unreadable and not found.readings:
        raise InputError(f"nothing in it is a reading: {found.unreadable[0]}")
    return found


def _plausible(table: Table, rows: Iterable[_Placed], bad: _Quarantine, now_ms: int) -> Iterator[_Placed]:
    judge = Judge(table, now_ms)
    for place, row in rows:
        reason = judge.why_not(row)
        if reason is None:
            yield place, row
        else:
            bad.extend([BadRow(place, reason, json.dumps(row))])


def _store(done: Imported, data: Path | str, table: Table, rows: Iterable[_Placed], bad: _Quarantine) -> int:
    """Add the rows whose keys are new, in one commit; how many are in the table now."""
    placed = sorted(rows, key=lambda each: each[1]["taken_ms"])
    if not placed:
        return 0
    with _alone(data):
        return _store_new(done, data, table, placed, bad)


def _store_new(done: Imported, data: Path | str, table: Table, placed: list[_Placed], bad: _Quarantine) -> int:
    stored = keys_at(data, table, {row["taken_ms"] for _, row in placed})
    new: dict[tuple[object, ...], Row] = {}
    known = 0
    for place, row in placed:
        key = tuple(row[name] for name in table.key)
        if key in stored or new.setdefault(key, row) == row:
            known += key in stored or new[key] is not row
        else:
            bad.extend([BadRow(place, SAME_KEY, json.dumps(row))])
    if new:
        write_rows(data, table, list(new.values()), file_stem=_named_by(list(new)))
        done.added[table.name] += len(new)
    done.known += known
    return len(new) + known


@contextmanager
def _alone(data: Path | str) -> Iterator[None]:
    """No other import into this directory looks for keys and adds rows meanwhile; who is killed gives way.

    The log of a table takes what two add at the same time: to it, equal rows are two rows.
    """
    # The folder of an address may be writable for all: what somebody put there under this name is not followed.
    lock = os.open(_lock_file(data), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        flock(lock, LOCK_EX)
        yield
    finally:
        os.close(lock)


def _lock_file(data: Path | str) -> Path:
    """In the directory; of an address on this machine, so that imports of other machines are not kept out."""
    if isinstance(data, Path):
        make_private_folder(data)
        return data / LOCK
    name = sha256(for_log(data.rstrip("/")).encode()).hexdigest()[:16]
    return Path(gettempdir()) / f"kreassign-{os.getuid()}-{name}{LOCK}"


def _tell_readings(told: ImportedFile, readings: Sequence[Reading], origin: Origin) -> None:
    """Count the readings of a file, and say so where nobody said whose they are."""
    of_cluster = [one for one in readings if origin.is_of_cluster(one)]
    of_metrics = [one for one in of_cluster if is_metric(one)]
    told.unknown.update(origin.instance_of(one) for one in of_metrics if not origin.is_known(one))
    facts = sum(is_fact(one) for one in of_cluster)
    told.usable = len(of_metrics) + facts - told.unknown.total()
    told.others = len(readings) - len(of_metrics) - facts
    if told.unknown and not told.usable:
        told.problem = "specify the broker: --broker ID, or --instance INSTANCE=ID for " + ", ".join(told.unknown)
    elif readings and not of_cluster:
        told.problem = f"it is of another cluster: specify --cluster {readings[0].labels['kafka_id']}"
