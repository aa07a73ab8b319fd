"""Snapshot files in columns: a Parquet file with a row per partition, for clusters too large for JSON.

The rest of the cluster is in the file's own metadata, under `KEY`, as JSON: the JSON form of a snapshot, with the
number of partitions for each topic. The columns: docs/reference/snapshot-file.md. Pages carry checksums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from kreassign.errors import InputError
from kreassign.model.cluster import NO_LEADER, TopicPartition
from kreassign.model.snapshot import (
    AGAIN,
    ClusterSnapshot,
    SnapshotPartition,
    contradiction_in,
    format_head,
    parse_head,
)
from kreassign.model.text import LARGEST_AMOUNT, LARGEST_ID, counted
from kreassign.pipeline.tables.snapshot_columns import (
    UNKNOWN,
    Amounts,
    Ids,
    Lists,
    Rates,
    SnapshotColumns,
    ends_of,
    numbers_of,
    topics_of,
)

KEY = b"kreassign.snapshot"
MOST_VALUES = 100_000_000
"""Most values in one column: fifty times the replicas of the largest clusters. 1 KB of Parquet can hold a billion."""

Numbers = npt.NDArray[Any]
_RowOf = Callable[[int], int]
"""Row, counted from 0, of a value of a column: in a column of lists a row has several."""
_Read = Callable[[str, pa.Array, _RowOf], Numbers]
"""Read and check the values of a column."""

_INTS, _TEXTS = pa.list_(pa.int32()), pa.list_(pa.string())
_COLUMNS: dict[str, pa.DataType] = {
    "topic": pa.string(), "partition": pa.int32(), "leader": pa.int32(), "leader_epoch": pa.int32(),
    "replicas": _INTS, "isr": _INTS, "adding": _INTS, "removing": _INTS,
    "log_dirs": _TEXTS, "sizes_bytes": pa.list_(pa.int64()),
    "future_brokers": _INTS, "future_log_dirs": _TEXTS,
    "start_offset": pa.int64(), "end_offset": pa.int64(), "write_bytes_per_s": pa.float64(),
}  # fmt: skip
# Other columns repeat many values; these hardly do, but neighbours are often close.
_ENCODINGS = dict.fromkeys(
    ("partition", "sizes_bytes.list.element", "start_offset", "end_offset"), "DELTA_BINARY_PACKED"
) | {"write_bytes_per_s": "BYTE_STREAM_SPLIT"}
_CODED = ("topic", "log_dirs.list.element", "future_log_dirs.list.element")


# --- writing ---------------------------------------------------------------------------------------------------------
# Arrays are built from buffers: `pa.array` would import pandas if installed.


def write_columns_file(path: Path, columns: SnapshotColumns) -> None:
    """Write a file, replacing an existing one."""
    table = _table(columns)
    # Columns in Parquet's notation.
    paths = [f"{one.name}.list.element" if pa.types.is_list(one.type) else one.name for one in table.schema]
    with pq.ParquetWriter(
        path,
        table.schema,
        compression="zstd",
        store_schema=False,
        write_page_checksum=True,
        use_dictionary=[path for path in paths if path not in _ENCODINGS],
        column_encoding=_ENCODINGS,
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({KEY: format_head(columns.head, columns.counts.tolist())})


def _table(columns: SnapshotColumns) -> pa.Table:
    names = [topic.name for topic in columns.head.topics]
    replicas, future = columns.replicas, columns.future_brokers
    plain_lists = {"isr": columns.isr, "adding": columns.adding, "removing": columns.removing}
    arrays = {
        "topic": _coded(names, columns.topics),
        "partition": _ints(columns.numbers),
        "leader": _ints(columns.leaders),
        "leader_epoch": _ints(columns.leader_epochs),
        "replicas": _lists(replicas.offsets, _ints(replicas.values)),
        **{name: _lists(one.offsets, _ints(one.values)) for name, one in plain_lists.items()},
        "log_dirs": _lists(replicas.offsets, _coded(columns.paths, columns.log_dirs)),
        "sizes_bytes": _lists(replicas.offsets, _known(columns.sizes_bytes)),
        "future_brokers": _lists(future.offsets, _ints(future.values)),
        "future_log_dirs": _lists(future.offsets, _coded(columns.paths, columns.future_log_dirs)),
        "start_offset": _known(columns.start_offsets),
        "end_offset": _known(columns.end_offsets),
        "write_bytes_per_s": _filled(columns.write_bytes_per_s, ~np.isnan(columns.write_bytes_per_s)),
    }
    return pa.Table.from_arrays([arrays[name] for name in _COLUMNS], names=list(_COLUMNS))


def _ints(values: Ids) -> pa.Array:
    return _filled(values, None)


def _known(values: Amounts) -> pa.Array:
    return _filled(values, values != UNKNOWN)


def _filled(values: Numbers, is_known: npt.NDArray[np.bool_] | None) -> pa.Array:
    """Array with NULL where a value is unknown."""
    types = {"int32": pa.int32(), "int64": pa.int64(), "float64": pa.float64()}
    bits = None if is_known is None or is_known.all() else pa.py_buffer(np.packbits(is_known, bitorder="little"))
    return pa.Array.from_buffers(
        types[values.dtype.name], len(values), [bits, pa.py_buffer(np.ascontiguousarray(values))]
    )


def _lists(offsets: Ids, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(_ints(offsets), values)


def _coded(names: Sequence[str], codes: Ids) -> pa.Array:
    """Texts as indices into `names`, NULL for `UNKNOWN`."""
    texts = [name.encode() for name in names]
    offsets = ends_of(np.fromiter(map(len, texts), np.int64, len(texts)))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(texts))]
    dictionary = pa.Array.from_buffers(pa.string(), len(texts), buffers)
    return pa.DictionaryArray.from_arrays(_filled(codes, codes != UNKNOWN), dictionary)


# --- reading ---------------------------------------------------------------------------------------------------------


def read_columns_file(path: Path, *, most_values: int = MOST_VALUES) -> SnapshotColumns:
    """Read the snapshot in a file. Raises InputError, which names the file."""
    try:
        with pq.ParquetFile(path) as file:
            head, counts = _head(file, str(path))
            _refuse_others(file, str(path), most_values)
        with pq.ParquetFile(path, read_dictionary=_CODED, page_checksum_verification=True) as file:
            return _Reader(str(path), file, head, np.array(counts, np.int32)).columns()
    except (OSError, pa.ArrowException) as error:
        said = str(error).partition("\n")[0]
        raise InputError(f"{path}: cannot be read as a snapshot file: {said}; is it whole?") from error
    finally:
        pa.default_memory_pool().release_unused()


def _head(file: pq.ParquetFile, name: str) -> tuple[ClusterSnapshot, tuple[int, ...]]:
    text = (file.metadata.metadata or {}).get(KEY)
    if text is None:
        raise InputError(f"{name} is a Parquet file, but no snapshot; make one with `kreassign snapshot --out FILE`")
    try:
        return parse_head(text.decode("utf-8"), name)
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: cannot be read as a snapshot file: {error}") from error


def _refuse_others(file: pq.ParquetFile, name: str, most_values: int) -> None:
    """Raise InputError unless the columns match the format and none has more than `most_values` values."""
    names = file.schema_arrow.names
    if len(set(names)) < len(names):
        twice = next(one for one in names if names.count(one) > 1)
        raise InputError(f"{name}: the column {twice!r} is there more than once")
    found = {field.name: _plain(field.type) for field in file.schema_arrow}
    for column, wanted in _COLUMNS.items():
        if found.get(column) != wanted:
            has = f"has {found[column]}" if column in found else "is missing"
            raise InputError(f"{name}: the column {column!r} {has}; it must be {wanted}")
    if strangers := sorted(found.keys() - _COLUMNS.keys()):
        raise InputError(
            f"{name}: there is no column {strangers[0]!r} in a snapshot file; is it from a newer kreassign?"
        )
    groups = (file.metadata.row_group(group) for group in range(file.metadata.num_row_groups))
    totals: dict[str, int] = {}
    for group in groups:
        for chunk in (group.column(place) for place in range(group.num_columns)):
            totals[chunk.path_in_schema] = totals.get(chunk.path_in_schema, 0) + chunk.num_values
    if max(totals.values(), default=0) > most_values:
        raise InputError(f"{name} holds more than {most_values:,} values in a column, which no snapshot does")


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without its encoding in memory and the name of list items."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    return pa.list_(_plain(kind.value_type)) if pa.types.is_list(kind) else kind


class _Reader:
    """Columns of a file, each read, checked and copied when taken, so that Arrow never holds two of them.

    Raises InputError, which names file, row, partition and column.
    """

    def __init__(self, name: str, file: pq.ParquetFile, head: ClusterSnapshot, counts: Ids) -> None:
        self._name = name
        self._file = file
        self._head = head
        self._counts = counts

    def columns(self) -> SnapshotColumns:
        """Read all columns."""
        self._refuse_other_rows()
        paths: dict[str, int] = {}
        (offsets, brokers), (dir_offsets, log_dirs), (size_offsets, sizes) = (
            self._lists("replicas", self._ids(0)),
            self._lists("log_dirs", self._codes(paths, may_be_null=True)),
            self._lists("sizes_bytes", self._amounts),
        )
        self._one_for_each("replicas", offsets, {"log_dirs": dir_offsets, "sizes_bytes": size_offsets})
        (movers, future_brokers), (future_offsets, future_log_dirs) = (
            self._lists("future_brokers", self._ids(0)),
            self._lists("future_log_dirs", self._codes(paths)),
        )
        self._one_for_each("future_brokers", movers, {"future_log_dirs": future_offsets})
        found = SnapshotColumns(
            head=self._head,
            counts=self._counts,
            leaders=self._column("leader", self._ids(NO_LEADER)),
            leader_epochs=self._column("leader_epoch", self._ids(-1)),
            replicas=Lists(offsets, brokers),
            isr=Lists(*self._lists("isr", self._ids(0))),
            adding=Lists(*self._lists("adding", self._ids(0))),
            removing=Lists(*self._lists("removing", self._ids(0))),
            paths=tuple(paths),
            log_dirs=log_dirs,
            sizes_bytes=sizes,
            future_brokers=Lists(movers, future_brokers),
            future_log_dirs=future_log_dirs,
            start_offsets=self._column("start_offset", self._amounts),
            end_offsets=self._column("end_offset", self._amounts),
            write_bytes_per_s=self._column("write_bytes_per_s", self._rates),
        )
        self._refuse_contradictions(found)
        return found

    def _array(self, column: str) -> pa.Array:
        return self._file.read([column]).unify_dictionaries().column(0).combine_chunks()

    def _column(self, column: str, read: _Read) -> Numbers:
        return read(column, self._array(column), int)

    def _lists(self, column: str, read: _Read) -> tuple[Ids, Numbers]:
        """Offsets and values of a column of lists."""
        array = self._array(column)
        self._refuse_where(array.null_count and ~_is_known(array), column, "is NULL; an empty list must be there", int)
        offsets = _numbers(array.offsets, np.int32)
        ends = offsets[1:] - offsets[0]
        values = array.values[int(offsets[0]) : int(offsets[-1])]
        return offsets - offsets[0], read(column, values, lambda place: int(np.searchsorted(ends, place, "right")))

    def _ids(self, least: int) -> _Read:
        def read(column: str, array: pa.Array, row_of: _RowOf) -> Ids:
            self._refuse_null(column, array, row_of, "a number")
            found = _numbers(array, np.int32)
            self._refuse_beyond(column, found, (least, LARGEST_ID), row_of)
            return found

        return read

    def _amounts(self, column: str, array: pa.Array, row_of: _RowOf) -> Amounts:
        found = np.where(_is_known(array), _numbers(array, np.int64), 0)
        self._refuse_beyond(column, found, (0, LARGEST_AMOUNT), row_of)
        return np.where(_is_known(array), found, UNKNOWN)

    def _rates(self, column: str, array: pa.Array, row_of: _RowOf) -> Rates:
        found = np.where(_is_known(array), _numbers(array, np.float64), 0.0)
        self._refuse_where(~np.isfinite(found), column, "holds a rate that is no number", row_of)
        self._refuse_beyond(column, found, (0, np.finfo(np.float64).max), row_of)
        return np.where(_is_known(array), found, np.nan)

    def _codes(self, names: dict[str, int], *, may_be_null: bool = False) -> _Read:
        """Indices into `names`, which grows; both path columns share it."""

        def read(column: str, array: pa.Array, row_of: _RowOf) -> Ids:
            if not may_be_null:
                self._refuse_null(column, array, row_of, "a text")
            texts: list[str | None] = array.dictionary.to_pylist()
            known = _is_known(array)
            is_bad = np.array([not text or "\0" in text for text in texts] or [False], np.bool_)
            codes = np.where(known, _numbers(array.indices, np.int32), 0)
            self._refuse_where(known & is_bad[codes], column, "holds a text with the character U+0000, or none", row_of)
            places = np.array([names.setdefault(str(text), len(names)) for text in texts] or [0], np.int32)
            return np.where(known, places[codes], UNKNOWN).astype(np.int32)

        return read

    def _one_for_each(self, listed: str, offsets: Ids, others: dict[str, Ids]) -> None:
        for column, found in others.items():
            different = np.diff(offsets) != np.diff(found)
            if different.any():
                row = int(np.argmax(different))
                counts = np.diff(found)[row], np.diff(offsets)[row]
                self._refuse(
                    column,
                    f"has {counted(int(counts[0]), 'entry', 'entries')}, not one for each of {counts[1]} {listed}",
                    row,
                )

    def _refuse_other_rows(self) -> None:
        """Refuse rows that are not in the order of topics and partitions, which the columns imply."""
        told, count = int(self._counts.sum()), self._file.metadata.num_rows
        if told != count:
            raise InputError(
                f"{self._name} has {counted(count, 'row')}, but its topics have {counted(told, 'partition')}"
            )
        names: dict[str, int] = {}
        topics, numbers = self._column("topic", self._codes(names)), self._column("partition", self._ids(0))
        own = {topic.name: place for place, topic in enumerate(self._head.topics)}
        places = np.array([own.get(name, UNKNOWN) for name in names] or [0], np.int32)
        wrong = (places[topics] != topics_of(self._counts)) | (numbers != numbers_of(self._counts))
        if wrong.any():
            row = int(np.argmax(wrong))
            there = TopicPartition(list(names)[topics[row]], int(numbers[row]))
            raise InputError(f"{self._name}: row {row + 1} is {there}, and must be {self._partition(row)}")

    def _refuse_contradictions(self, found: SnapshotColumns) -> None:
        """Refuse what no cluster shows, as in files of JSON."""
        replicas, rows = found.replicas, np.arange(len(found), dtype=np.int64)
        self._refuse_where(_names_twice(found.future_brokers), "future_brokers", "names a broker twice", int)
        holders = np.concatenate([each.keys for each in (replicas, found.adding, found.removing)])
        wrong = (replicas.lengths == 0) | _names_twice(replicas)
        wrong[found.isr.owners[~np.isin(found.isr.keys, holders)]] = True
        wrong |= (found.leaders != NO_LEADER) & ~np.isin(rows << 32 | found.leaders, holders)
        if wrong.any():
            row = int(np.argmax(wrong))
            nothing = (None,) * int(replicas.lengths[row])
            partition = SnapshotPartition(
                replicas.at(row), found.isr.at(row), int(found.leaders[row]), 0, nothing, nothing,
                found.adding.at(row), found.removing.at(row),
            )  # fmt: skip
            raise InputError(f"{self._place(row)}: {contradiction_in(partition)}; {AGAIN}")

    def _refuse_null(self, column: str, array: pa.Array, row_of: _RowOf, kind: str) -> None:
        self._refuse_where(array.null_count and ~_is_known(array), column, f"holds NULL; it must be {kind}", row_of)

    def _refuse_beyond(self, column: str, found: Numbers, bounds: tuple[float, float], row_of: _RowOf) -> None:
        least, most = bounds
        wrong = (found < least) | (found > most)
        if wrong.any():
            value = found[np.argmax(wrong)]
            self._refuse_where(wrong, column, f"holds {value}; it must be from {least} to {most}", row_of)

    def _refuse_where(self, wrong: Any, column: str, text: str, row_of: _RowOf) -> None:
        if np.any(wrong):
            self._refuse(column, text, row_of(int(np.argmax(wrong))))

    def _refuse(self, column: str, text: str, row: int) -> None:
        raise InputError(f"{self._place(row)}: the column {column!r} {text}")

    def _place(self, row: int) -> str:
        return f"{self._name}: row {row + 1} ({self._partition(row)})"

    def _partition(self, row: int) -> TopicPartition:
        """Partition that must be in this row."""
        ends = ends_of(self._counts)
        topic = int(np.searchsorted(ends, row, "right")) - 1
        return TopicPartition(self._head.topics[topic].name, row - int(ends[topic]))


def _names_twice(lists: Lists) -> npt.NDArray[np.bool_]:
    """Mask of partitions whose list has a value more than once."""
    ordered = np.sort(lists.keys)
    found = np.zeros(len(lists.lengths), np.bool_)
    found[ordered[1:][ordered[1:] == ordered[:-1]] >> 32] = True
    return found


def _numbers(array: pa.Array, kind: Any) -> Numbers:
    """Copy the values of an array; NULL becomes an arbitrary value."""
    _, data = array.buffers()
    if not len(array):
        return np.zeros(0, kind)
    return np.frombuffer(data, kind, len(array), array.offset * np.dtype(kind).itemsize).copy()


def _is_known(array: pa.Array) -> npt.NDArray[np.bool_]:
    bits = array.buffers()[0]
    if bits is None:
        return np.ones(len(array), bool)
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=array.offset + len(array), bitorder="little")[
        array.offset :
    ].astype(bool)
