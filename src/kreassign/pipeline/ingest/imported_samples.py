"""Make rows of table `samples` from files: from exporter readings, or from samples that the user took.

`Judge` refuses implausible rows of imported files, including metrics.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from kreassign.errors import InputError
from kreassign.model import documents
from kreassign.model.documents import is_half
from kreassign.model.text import LARGEST_ID, counted, signed_number
from kreassign.pipeline.ingest import exporters
from kreassign.pipeline.ingest.metric_records import IMPORT_RULES
from kreassign.pipeline.tables.schemas import BIGINT, INT, SAMPLES, STRING, Column, ColumnType, Row, Table

# Readings of offsets and sizes → rows of table `samples`.
#
# kafka_exporter and kminion report offsets of a partition, whoever leads. The JMX exporter reports offsets and sizes of
# each replica, on its broker's page; only the leader's are used. The leader comes from one of these:
#
#     kafka_topic_partition_leader            kafka_exporter
#     kafka_cluster_partition_replicascount   more than 0 on the leader, 0 on all others
#     the end offsets                         without either: no replica is ahead of the leader. This needs the
#                                             series of several brokers, taken at the same times
#
# If the times of several brokers never meet, as on pages read one after the other, only the replica that is furthest
# ahead at the end is used: alternating samples of different replicas would be noise.
#
# No exporter reports where the local log of a topic with remote segments begins, which its size refers to. Such sizes
# are left out: divided by all records, records on disk would look too small.
#
# Offsets and sizes are joined where their times are equal: on one page, or in `query_range` answers to queries with
# the same start and step, which may be in several files.

NO_PARTITION = "has no topic or no number of a partition"
NO_OFFSET = "has no whole number from 0 to 2^63-1: the exporter does not know it, or the series has ended"
TOO_LARGE = (
    "is 2^53 or more, where a metric, which is a double, skips whole numbers; sample it with `kreassign collect`, "
    "which reads whole numbers"
)
NO_START = "has an end offset but no start offset at the same time; import both together"
NO_END = "has a start offset or a size but no end offset at the same time; import both together"
NO_LEADER = (
    "has offsets of one broker and nobody says who leads; import kafka_cluster_partition_replicascount too, or the "
    "series of all brokers together"
)
OTHER_READING = "has another value than a reading of the same time, so neither is stored"
NO_LOCAL_START = (
    "is tiered: its size is left out, as no exporter tells the first offset of the local log; sample it with "
    "`kreassign collect`"
)
_LARGEST_LONG = 2**63 - 1
_INEXACT = 2**53
"""From here on a double may stand for another whole number than its own."""
_NOBODY = -1


Told = tuple[str, bool]
"""File of a reading, and whether it is of a copy that a move between log directories builds."""


@dataclass(slots=True)
class Replica:
    """Facts about one replica at one time, or about the partition itself if `broker` is None.

    `told` has the origin of each. It is in dispute if readings of the time contradict each other.
    """

    facts: dict[exporters.Fact, int] = field(default_factory=dict)
    broker: int | None = None
    told: dict[exporters.Fact, Told] = field(default_factory=dict)
    is_disputed: bool = False

    @property
    def end(self) -> int:
        """End offset; KeyError if unknown."""
        return self.facts[exporters.Fact.END_OFFSET]

    @property
    def size(self) -> int | None:
        """Size of its segments in bytes; None if unknown."""
        return self.facts.get(exporters.Fact.SIZE)

    @property
    def is_whole(self) -> bool:
        """True if both offsets are known."""
        return exporters.Fact.END_OFFSET in self.facts and exporters.Fact.START_OFFSET in self.facts

    @property
    def is_follower(self) -> bool:
        """True if its broker reports that it does not lead the partition."""
        return self.facts.get(exporters.Fact.REPLICA_COUNT) == 0

    @property
    def is_leader(self) -> bool:
        """True if its broker reports that it leads the partition."""
        return self.facts.get(exporters.Fact.REPLICA_COUNT, 0) > 0


PARTITION = ""
"""Source key for facts about a partition rather than a replica."""
Moment = dict[str, Replica]
"""Facts about a partition at one time, by source: an instance, or PARTITION."""


@dataclass(frozen=True, slots=True)
class SamplesFound:
    """Rows of table `samples`, and partitions without usable samples, with reasons and counts."""

    rows: tuple[Row, ...]
    bad: tuple[exporters.BadRow, ...]


def is_fact(one: exporters.SeriesValue) -> bool:
    """True if a reading reports a partition fact or remote storage."""
    return exporters.fact_of(one) is not None or exporters.tiered_topic(one) is not None


class PartitionReadings:
    """Partition facts from the readings of one or several files; `samples` joins all of them into rows."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._seen: dict[tuple[str, int], dict[int, Moment]] = defaultdict(lambda: defaultdict(dict))
        self._sources: set[str] = set()
        self._tiered: set[str] = set()

    def add(
        self, readings: Iterable[exporters.SeriesValue], origin: exporters.FileOrigin
    ) -> Iterator[exporters.BadRow]:
        """Add the readings of a file; yield the unusable ones."""
        told: dict[bool, Told] = {is_built: (origin.file, is_built) for is_built in (False, True)}
        for one in readings:
            fact = exporters.fact_of(one)
            if not origin.is_of_cluster(one):
                continue
            if fact is None:
                self._tiered.update(filter(None, [exporters.tiered_topic(one)]))
                continue
            bad = self._take(one, fact, origin, told[exporters.is_future(one)])
            if bad is not None:
                yield bad

    def samples(self) -> SamplesFound:
        """Rows in order of topic, partition and time."""
        rows: list[Row] = []
        bad: list[exporters.BadRow] = []
        for (topic, partition), moments in sorted(self._seen.items()):
            reasons: Counter[str] = Counter()
            usable = _usable(moments)
            for taken_ms, moment in sorted(moments.items()):
                if any(one.is_disputed for one in moment.values()):
                    continue  # told when it was read
                found = _leader(moment, usable, has_several=len(self._sources) > 1)
                if isinstance(found, Replica):
                    row = self._row(topic, partition, taken_ms, moment, found)
                    if topic in self._tiered and row["size_bytes"] is not None:
                        row["size_bytes"] = None
                        reasons[NO_LOCAL_START] += 1
                    rows.append(row)
                elif found is not None:
                    reasons[found] += 1
            place = f"partition {topic}-{partition}"
            bad.extend(exporters.BadRow(place, reason, counted(count, "time")) for reason, count in reasons.items())
        return SamplesFound(tuple(rows), tuple(bad))

    def _take(
        self, one: exporters.SeriesValue, known: exporters.PartitionFact, origin: exporters.FileOrigin, told: Told
    ) -> exporters.BadRow | None:
        topic, partition = exporters.topic_of(one), exporters.partition_of(one)
        if not topic or partition is None or not 0 <= partition <= LARGEST_ID:
            return exporters.BadRow(one.place, NO_PARTITION, str(one))
        if known.fact is exporters.Fact.LEADER and one.value == _NOBODY:
            return None
        if not 0 <= one.value < _INEXACT or not one.value.is_integer():
            why = TOO_LARGE if _INEXACT <= one.value <= _LARGEST_LONG else NO_OFFSET
            return exporters.BadRow(one.place, why, str(one))
        broker = origin.broker_of(one) if known.is_of_replica else None
        source = PARTITION
        if known.is_of_replica:
            source = f"instance {origin.instance_of(one)}" if broker is None else f"broker {broker}"
        if known.is_of_replica:
            self._sources.add(source)
        replica = self._seen[topic, partition][origin.time_of(one)].setdefault(source, Replica(broker=broker))
        before = replica.facts.setdefault(known.fact, int(one.value))
        file, was_built = replica.told.setdefault(known.fact, told)
        if before == one.value or told[1] > was_built:
            return None
        if was_built > told[1]:  # the copy in use counts
            replica.facts[known.fact], replica.told[known.fact] = int(one.value), told
            return None
        replica.is_disputed = True
        return exporters.BadRow(one.place, OTHER_READING, f"{int(one.value)}, and {before} in {file}: {one}")

    def _row(self, topic: str, partition: int, taken_ms: int, moment: Moment, read: Replica) -> Row:
        leader = read.facts.get(exporters.Fact.LEADER, read.broker)
        return {
            "cluster_id": self._cluster_id,
            "taken_ms": taken_ms,
            "topic": topic,
            "topic_id": None,
            "partition": partition,
            "leader": _NOBODY if leader is None else leader,
            "start_offset": read.facts[exporters.Fact.START_OFFSET],
            "end_offset": read.end,
            "size_bytes": _size(moment, read, leader),
        }


def _usable(moments: Mapping[int, Moment]) -> str | None:
    """The only source to use if no leader is reported and times never meet; None if all may be used."""
    last: dict[str, int] = {}
    for _, moment in sorted(moments.items()):
        silent = [
            source
            for source, one in moment.items()
            if source != PARTITION and exporters.Fact.REPLICA_COUNT not in one.facts
        ]
        if len(silent) > 1:
            return None
        last |= {source: moment[source].end for source in silent if moment[source].is_whole}
    return max(last, key=lambda source: (last[source], source)) if len(last) > 1 else None


def _leader(moment: Moment, usable: str | None, *, has_several: bool) -> Replica | str | None:
    """The replica whose offsets count, or the reason why none do; None if only a follower was read."""
    partition = moment.get(PARTITION)
    if partition is not None and partition.is_whole:
        return partition
    replicas = {source: one for source, one in moment.items() if source != PARTITION}
    whole = [one for source, one in replicas.items() if one.is_whole and usable in (None, source)]
    told = [one for one in whole if one.is_leader]
    silent = [one for one in whole if not one.is_leader and not one.is_follower]
    if told or (silent and has_several):
        return max(told or silent, key=lambda one: (one.end, one.size or 0))
    if silent:
        return NO_LEADER
    return _what_is_missing(moment.values())


def _what_is_missing(replicas: Iterable[Replica]) -> str | None:
    there = {fact for one in replicas if not one.is_whole and not one.is_follower for fact in one.facts}
    if exporters.Fact.END_OFFSET in there:
        return NO_START
    return NO_END if there & {exporters.Fact.START_OFFSET, exporters.Fact.SIZE} else None


def _size(moment: Moment, read: Replica, leader: int | None) -> int | None:
    """Size of the replica read, else of the leader; None where only others are known, or nobody knows who leads."""
    if read.size is not None or leader is None:
        return read.size
    return max((one.size for one in moment.values() if one.size is not None and one.broker == leader), default=None)


# Samples that the user took → rows of table `samples`: each becomes a row or a BadRow with the reason.
#
# A row has the columns of table `samples` by name, in any order: `taken_ms`, `topic`, `partition`, `start_offset` and
# `end_offset`; `cluster_id` unless given for the whole file; if known `topic_id`, `leader` and `size_bytes`. Other
# columns are ignored. Whole numbers may end in `.0`, as in CSV files of data frames, or be decimals; empty or NaN is
# unknown. From 2^53 on neither a float nor a text with `.0` is taken: it may have been another number.
# Each row is judged by itself; a bad one does not affect others.

Given = Mapping[str, Any]
"""A row of a file in its format's types: column → value."""
Placed = tuple[str, Row | exporters.BadRow]
"""A place in a file, and its row or the reason against it."""

_NUMBERS = {INT: 2**31 - 1, BIGINT: 2**63 - 1}
_LEAST = {"leader": -1}
_DEFAULTS: Row = {"leader": -1}
_FORGIVEN = ("cluster_id", *_DEFAULTS, *(column.name for column in SAMPLES.columns if column.nullable))
REQUIRED = tuple(name for name in SAMPLES.column_names if name not in _FORGIVEN)
"""Columns that every file must have."""
_SPACES = " \t"
LARGEST_LINE = 1 << 20
"""Bytes of a line of text, its end included; a file without line ends would be read as a whole."""
_WHOLE_FLOAT = re.compile(r"(-?\d{1,19})\.0", re.ASCII)
"""As data frames write whole numbers. `1.000` is a thousand in half of the world."""


def text_rows(lines: Iterable[bytes], cluster_id: str | None) -> Iterator[Placed]:
    """Rows of a CSV file with a header, or of JSON lines. Raises InputError for other formats."""
    numbered = ((number, _line(number, line)) for number, line in enumerate(lines, start=1))
    filled = ((number, line.strip("\ufeff\r\n")) for number, line in numbered if line.strip("\ufeff \t\r\n"))
    first = next(filled, None)
    if first is None:
        raise InputError("it is empty")
    number, line = first
    if "\0" in line:
        raise InputError("it is no text; save it as CSV, or as an object of JSON per line")
    if line.lstrip().startswith("["):
        raise InputError("it is one JSON array; write an object per line: jq -c '.[]'")
    if line.lstrip().startswith("{"):
        yield _json_row(number, line, cluster_id)
        yield from (_json_row(number, line, cluster_id) for number, line in filled)
    else:
        yield from _csv_rows(line, filled, cluster_id)


def _line(number: int, line: bytes) -> str:
    if len(line) > LARGEST_LINE:
        raise InputError(
            f"line {number} has more than {LARGEST_LINE} bytes; it is no table of samples, or its lines end otherwise "
            "than with a line feed"
        )
    if number == 1:
        documents.refuse_other_kind(line)
    return line.decode(errors="surrogateescape")


def given_rows(rows: Iterable[Given], cluster_id: str | None) -> Iterator[Placed]:
    """Rows of a Parquet file with the required columns."""
    for number, given in enumerate(rows, start=1):
        place = f"row {number}"
        yield place, sample_row(given, place, cluster_id)


def check_columns(names: Iterable[str], cluster_id: str | None) -> None:
    """Raise InputError, naming the columns, if required ones are missing."""
    there = set(names)
    wanted = REQUIRED if cluster_id is not None else ("cluster_id", *REQUIRED)
    if missing := [name for name in wanted if name not in there]:
        hint = "; specify --cluster, or add the column" if missing == ["cluster_id"] else ""
        if other := [name for name in names if name.lower() in missing]:
            hint = f"; it has {', '.join(other)}, and names are in small letters"
        raise InputError(f"it lacks the columns {', '.join(missing)} of table samples{hint}")


def sample_row(given: Given, place: str, cluster_id: str | None) -> Row | exporters.BadRow:
    """A row of table `samples`, or its fault; the row's own `cluster_id` wins over this one."""
    row: Row = {}
    for column in SAMPLES.columns:
        try:
            row[column.name] = _required(column, given, cluster_id)
        except InputError as error:
            # First what is refused: of a long row only the beginning is shown.
            refused = {name: value for name, value in given.items() if name == column.name}
            return exporters.BadRow(place, str(error), json.dumps(refused | dict(given), default=str))
    return row


def _required(column: Column, given: Given, cluster_id: str | None) -> Any:
    value = _value(column, told := given.get(column.name))
    if value is None:
        value = cluster_id if column.name == "cluster_id" else _DEFAULTS.get(column.name)
    if value is None and not column.nullable:
        raise InputError(
            f"{column.name} is missing" if told is None or told == "" else f"{column.name} is {told}, not a number"
        )
    return value


def _csv_rows(header: str, lines: Iterable[tuple[int, str]], cluster_id: str | None) -> Iterator[Placed]:
    delimiter = max(",;\t", key=header.count)
    names = _fields(header, delimiter) or []
    check_columns(names, cluster_id)
    if twice := [name for name in SAMPLES.column_names if names.count(name) > 1]:
        raise InputError(f"it has the columns {', '.join(twice)} more than once")
    for number, line in lines:
        # Line by line: an unclosed quote would swallow the rest of the file. No name contains a line end.
        fields = _fields(line, delimiter)
        place = f"line {number}"
        if fields is None:
            most = csv.field_size_limit()
            is_long = len(line) > most
            reason = (
                f"has a field of more than {counted(most, 'character')}" if is_long else "has a line end in a field"
            )
            yield place, exporters.BadRow(place, reason, line)
        elif len(fields) != len(names):
            yield place, exporters.BadRow(place, f"has {counted(len(fields), 'field')} in place of {len(names)}", line)
        else:
            yield place, sample_row(dict(zip(names, fields, strict=True)), place, cluster_id)


def _fields(line: str, delimiter: str) -> list[str] | None:
    """Fields without spaces around them; None if the library refuses one."""
    try:
        fields = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        return None
    return [field.strip(_SPACES) for field in fields]


def _json_row(number: int, line: str, cluster_id: str | None) -> Placed:
    place = f"line {number}"
    if is_half(line):
        return place, exporters.BadRow(place, exporters.NO_TEXT, line)
    try:
        given = documents.read_json(line)
    except ValueError:
        return place, exporters.BadRow(place, "is not JSON", line)
    if not isinstance(given, dict):
        return place, exporters.BadRow(place, "is no object", line)
    return place, sample_row(given, place, cluster_id)


def _value(column: Column, value: Any) -> Any:
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if column.type is STRING:
        return _text(column.name, value)
    return _whole(column.name, column.type, value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{name} is not a text")
    if is_half(value):
        raise InputError(f"{name} {exporters.NO_TEXT}")
    return value


def _whole(name: str, kind: ColumnType, value: Any) -> int | None:
    is_float = isinstance(value, float)
    if isinstance(value, str):
        text = value.strip(_SPACES)
        if text.lower() in ("", "nan", "null", "none"):
            return None
        match = _WHOLE_FLOAT.fullmatch(text)
        number = None if text.startswith("+") else signed_number(match[1] if match else text)
        is_float = match is not None
    elif isinstance(value, (float, Decimal)):
        number = int(value) if math.isfinite(value) and value == int(value) else None
    else:
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
    if is_float and number is not None and abs(number) >= _INEXACT:
        raise InputError(f"{name} is a float of 2^53 or more, which skips whole numbers; write it as an integer")
    if number is None or not _LEAST.get(name, 0) <= number <= _NUMBERS[kind]:
        wanted = "milliseconds since the epoch, " if name == "taken_ms" else ""
        most = "2^31-1" if kind is INT else "2^63-1"
        raise InputError(
            f"{name} is not {wanted}a whole number from {_LEAST.get(name, 0)} to {most} without separators"
        )
    return number


# Implausible rows of imported files, with the reason: SQLite applies the rules of `metric_records.py` row by row.
#
# Rules are written once, in SQL, for files and for topics. Spark applies them to a topic; an import starts no Java, and
# SQLite, which comes with Python, reads the same conditions.

_LARGEST_INTEGER = 2**63 - 1


class Judge:
    """Apply the rules of `metrics` or `samples` at the time of an import. For one thread."""

    def __init__(self, table: Table, now_ms: int) -> None:
        self._names, self._now_ms = table.column_names, now_ms
        self._rules = IMPORT_RULES[table]
        self._asked = sqlite3.connect(":memory:")
        # As in Spark, where LIKE is case-sensitive.
        self._asked.execute("PRAGMA case_sensitive_like = ON")
        self._asked.create_function(
            "regexp",
            2,
            lambda pattern, text: None if text is None else bool(re.search(pattern, text)),
            deterministic=True,
        )
        # SQLite stores NaN as NULL.
        self._asked.create_function("isnan", 1, lambda value: value is None, deterministic=True)
        reasons = (f"WHEN {rule.is_broken} THEN {number}" for number, rule in enumerate(self._rules))
        columns = ", ".join(f":{name} AS {name}" for name in self._names)
        self._question = " ".join(["SELECT CASE", *reasons, "END FROM (SELECT", columns, ")"])

    def why_not(self, row: Row) -> str | None:
        """Reason of the first rule that is true of a row, or None. A missing column is NULL."""
        values = {name: _storable(row.get(name)) for name in self._names} | {"now_ms": self._now_ms}
        (number,) = self._asked.execute(self._question, values).fetchone()
        return None if number is None else self._rules[number].reason


def _storable(value: object) -> object:
    """Convert to what SQLite stores: 64-bit integers, no half surrogates (which stand for bytes that are not UTF-8)."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return float(value) if isinstance(value, int) and abs(value) > _LARGEST_INTEGER else value
