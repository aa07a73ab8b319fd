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
from kreassign.model.cluster import NO_LEADER
from kreassign.model.snapshot import ClusterSnapshot, format_head, parse_head
from kreassign.model.text import LARGEST_AMOUNT, LARGEST_ID
from kreassign.pipeline.tables.snapshot_columns import UNKNOWN, Amounts, Ids, Lists, Rates, SnapshotColumns, ends_of

KEY = b"kreassign.snapshot"
MOST_VALUES = 100_000_000
"""Most values in one column: fifty times the replicas of the largest clusters. 1 KB of Parquet can hold a billion."""

Numbers = npt.NDArray[Any]

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
            return _Reader(str(path), file).columns(head, np.array(counts, np.int32))
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

    Raises InputError, which names file, column and row.
    """

    def __init__(self, name: str, file: pq.ParquetFile) -> None:
        self._name = name
        self._file = file

    def columns(self, head: ClusterSnapshot, counts: Ids) -> SnapshotColumns:
        """Read all columns."""
        paths: dict[str, int] = {}
        (offsets, brokers), (dir_offsets, log_dirs), (size_offsets, sizes) = (
            self._lists("replicas", self._ids(0)),
            self._lists("log_dirs", self._codes(paths)),
            self._lists("sizes_bytes", self._amounts),
        )
        self._one_for_each("replicas", offsets, {"log_dirs": dir_offsets, "sizes_bytes": size_offsets})
        (movers, future_brokers), (future_offsets, future_log_dirs) = (
            self._lists("future_brokers", self._ids(0)),
            self._lists("future_log_dirs", self._codes(paths)),
        )
        self._one_for_each("future_brokers", movers, {"future_log_dirs": future_offsets})
        found = SnapshotColumns(
            head=head,
            counts=counts,
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
        self._refuse_other_rows(found)
        return found

    def _array(self, column: str) -> pa.Array:
        return self._file.read([column]).unify_dictionaries().column(0).combine_chunks()

    def _column(self, column: str, read: Callable[[str, pa.Array], Numbers]) -> Numbers:
        return read(column, self._array(column))

    def _lists(self, column: str, read: Callable[[str, pa.Array], Numbers]) -> tuple[Ids, Numbers]:
        """Offsets and values of a column of lists."""
        array = self._array(column)
        if array.null_count:
            self._refuse(column, "is NULL in a row; a list that is empty must be there")
        offsets = _numbers(array.offsets, np.int32)
        return offsets - offsets[0], read(column, array.values[int(offsets[0]) : int(offsets[-1])])

    def _ids(self, least: int) -> Callable[[str, pa.Array], Ids]:
        def read(column: str, array: pa.Array) -> Ids:
            if array.null_count:
                self._refuse(column, "holds NULL; it must be a number")
            return self._within(column, _numbers(array, np.int32), least, LARGEST_ID)

        return read

    def _amounts(self, column: str, array: pa.Array) -> Amounts:
        found = _numbers(array, np.int64)
        known = _is_known(array)
        self._within(column, found[known], 0, LARGEST_AMOUNT)
        return np.where(known, found, UNKNOWN)

    def _rates(self, column: str, array: pa.Array) -> Rates:
        found = _numbers(array, np.float64)
        known = _is_known(array)
        if not np.isfinite(found[known]).all():
            self._refuse(column, "holds a rate that is no number")
        self._within(column, found[known], 0, np.finfo(np.float64).max)
        return np.where(known, found, np.nan)

    def _codes(self, names: dict[str, int]) -> Callable[[str, pa.Array], Ids]:
        """Indices into `names`, which grows; both path columns share it."""

        def read(column: str, array: pa.Array) -> Ids:
            texts: list[str | None] = array.dictionary.to_pylist()
            known = _is_known(array)
            if any(text is None or "\0" in text for text in texts):
                self._refuse(column, "holds a text with the character U+0000, or none")
            places = np.array([names.setdefault(str(text), len(names)) for text in texts] or [0], np.int32)
            codes = np.where(known, _numbers(array.indices, np.int32), 0)
            return np.where(known, places[codes], UNKNOWN).astype(np.int32)

        return read

    def _within(self, column: str, found: Numbers, least: float, most: float) -> Numbers:
        if len(found) and not (least <= found.min() and found.max() <= most):
            wrong = found[(found < least) | (found > most)][0]
            self._refuse(column, f"holds {wrong}; it must be from {least} to {most}")
        return found

    def _one_for_each(self, listed: str, offsets: Ids, others: dict[str, Ids]) -> None:
        for column, found in others.items():
            different = np.diff(offsets) != np.diff(found)
            if different.any():
                row = int(np.argmax(different))
                counts = np.diff(found)[row], np.diff(offsets)[row]
                self._refuse(column, f"has {counts[0]} entries in row {row}, not one for each of {counts[1]} {listed}")

    def _refuse_other_rows(self, found: SnapshotColumns) -> None:
        """Refuse rows that are not in the order of topics and partitions, which the columns imply."""
        told = int(found.counts.sum())
        if told != len(found):
            raise InputError(f"{self._name} has {len(found)} rows, but its topics have {told} partitions")
        names: dict[str, int] = {}
        topics = self._column("topic", self._codes(names))
        own = {topic.name: place for place, topic in enumerate(found.head.topics)}
        places = np.array([own.get(name, UNKNOWN) for name in names] or [0], np.int32)
        wrong = (places[topics] != found.topics) | (self._column("partition", self._ids(0)) != found.numbers)
        if wrong.any():
            self._refuse("topic", f"is not in the order of the topics from row {int(np.argmax(wrong))} on")

    def _refuse(self, column: str, text: str) -> None:
        raise InputError(f"{self._name}: the column {column!r} {text}")


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
