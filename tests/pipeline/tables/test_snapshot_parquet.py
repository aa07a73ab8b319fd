"""Snapshot files in columns: what is written is read back; a file that is cut off, foreign or newer says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.errors import InputError
from kreassign.model import Broker
from kreassign.model.cluster import NO_LEADER
from kreassign.model.snapshot import (
    ClusterSnapshot,
    SnapshotBroker,
    SnapshotLogDir,
    SnapshotPartition,
    SnapshotTopic,
    format_snapshot,
    parse_snapshot,
)
from kreassign.pipeline.tables.snapshot_columns import columns_of, snapshot_of
from kreassign.pipeline.tables.snapshot_parquet import KEY, read_columns_file, write_columns_file

ids = st.integers(0, 2**31 - 1)
amounts = st.integers(0, 2**63 - 1)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=5)
configs = st.dictionaries(texts, texts, max_size=2)
some_ids = st.lists(ids, max_size=3, unique=True).map(tuple)


@st.composite
def partitions(draw: st.DrawFn) -> SnapshotPartition:
    replicas = draw(st.lists(ids, min_size=1, max_size=3, unique=True).map(tuple))
    each = {"min_size": len(replicas), "max_size": len(replicas)}
    return SnapshotPartition(
        replicas,
        tuple(draw(st.lists(st.sampled_from(replicas)))),
        draw(st.sampled_from((NO_LEADER, *replicas))),
        draw(st.integers(-1, 2**31 - 1)),
        tuple(draw(st.lists(st.none() | texts, **each))),
        tuple(draw(st.lists(st.none() | amounts, **each))),
        draw(some_ids),
        draw(some_ids),
        draw(st.dictionaries(ids, texts, max_size=2)),
        draw(st.none() | amounts),
        draw(st.none() | amounts),
        draw(st.none() | st.floats(0, 1e300)),
    )


topic_names = st.from_regex(r"[a-zA-Z0-9_-]{1,9}", fullmatch=True)
topics = st.builds(
    SnapshotTopic, topic_names, st.lists(partitions(), max_size=3).map(tuple), configs, st.none() | texts
)
log_dirs = st.builds(
    SnapshotLogDir, texts, st.none() | amounts, st.none() | amounts, is_offline=st.booleans(), is_cordoned=st.booleans()
)
brokers = st.builds(
    SnapshotBroker,
    st.builds(Broker, ids, texts, ids, st.none() | texts, is_fenced=st.booleans()),
    st.lists(log_dirs, max_size=2).map(tuple),
    configs,
)
snapshots = st.builds(
    ClusterSnapshot,
    amounts,
    texts,
    st.lists(brokers, min_size=1, max_size=2, unique_by=lambda one: one.broker.id).map(tuple),
    st.lists(topics, max_size=3, unique_by=lambda topic: topic.name).map(tuple),
    configs,
)


@given(snapshots)
def test_what_is_written_in_either_form_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, snapshot: ClusterSnapshot
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.parquet"
    write_columns_file(file, columns_of(snapshot))
    assert snapshot_of(read_columns_file(file)) == snapshot
    assert parse_snapshot(format_snapshot(snapshot), "any.json") == snapshot


@given(snapshots)
def test_partitions_have_the_size_that_they_have_as_values(snapshot: ClusterSnapshot) -> None:
    told = [partition.size_bytes for topic in snapshot.topics for partition in topic.partitions]
    assert columns_of(snapshot).size_bytes.tolist() == [-1 if size is None else size for size in told]


STILL = SnapshotPartition((1, 2), (1, 2), 1, 0, ("/d", None), (5, None), start_offset=0, end_offset=9)
MOVING = SnapshotPartition((2, 1), (2,), 2, 3, ("/d", "/e"), (7, 8), (1,), (), {2: "/e"}, write_bytes_per_s=1.5)
SNAPSHOT = ClusterSnapshot(
    12,
    "c1",
    (SnapshotBroker(Broker(1, "a", 9092)), SnapshotBroker(Broker(2, "b", 9092))),
    (
        SnapshotTopic("t", (STILL, MOVING), {"retention.ms": "1"}),
        SnapshotTopic("none", ()),
        SnapshotTopic("a", (MOVING,)),
    ),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.parquet"
    write_columns_file(path, columns_of(SNAPSHOT))
    return path


def test_others_can_read_the_columns(file: Path) -> None:
    row = pq.read_table(file).to_pylist()[1]
    assert row == {
        "topic": "t", "partition": 1, "leader": 2, "leader_epoch": 3, "replicas": [2, 1], "isr": [2], "adding": [1],
        "removing": [], "log_dirs": ["/d", "/e"], "sizes_bytes": [7, 8], "future_brokers": [2],
        "future_log_dirs": ["/e"], "start_offset": None, "end_offset": None, "write_bytes_per_s": 1.5,
    }  # fmt: skip


def test_many_replicas_take_few_bytes(tmp_path: Path) -> None:
    many = columns_of(replace(SNAPSHOT, topics=(SnapshotTopic("t", (STILL,) * 20_000),)))
    write_columns_file(tmp_path / "many.parquet", many)
    assert (tmp_path / "many.parquet").stat().st_size < 20_000


@pytest.mark.parametrize("kept", [0, 3, 4, 500, -300, -8, -1])
def test_a_file_that_was_cut_off_is_refused_with_its_name(file: Path, kept: int) -> None:
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(InputError, match=r"cluster.parquet: cannot be read as a snapshot file: .*; is it whole\?"):
        read_columns_file(file)


def test_a_byte_that_has_changed_is_found_by_its_checksum(file: Path) -> None:
    content = bytearray(file.read_bytes())
    first = pq.read_metadata(file).row_group(0).column(4)
    place = first.dictionary_page_offset or first.data_page_offset
    content[place + first.total_compressed_size - 1] ^= 1
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"cluster.parquet: cannot be read as a snapshot file: .*CRC"):
        read_columns_file(file)


def test_a_file_of_other_rows_is_refused_before_they_are_read(file: Path) -> None:
    pq.write_table(pa.table({"topic": ["t"], "partition": [0]}), file)
    with pytest.raises(InputError, match=r"cluster.parquet is a Parquet file, but no snapshot; make one with"):
        read_columns_file(file)


def test_more_values_than_any_cluster_has_are_refused_before_they_are_read(file: Path) -> None:
    with pytest.raises(InputError, match="holds more than 4 values in a column, which no snapshot does"):
        read_columns_file(file, most_values=4)


def rewritten(file: Path, change: Callable[[pa.Table], pa.Table], head: Callable[[str], str] = str) -> None:
    """Rewrite the file with other columns, or another head."""
    found = pq.read_table(file)
    text = found.schema.metadata[KEY].decode()
    changed = change(found.replace_schema_metadata(None))
    with pq.ParquetWriter(file, changed.schema, store_schema=False) as writer:
        writer.write_table(changed)
        writer.add_key_value_metadata({KEY: head(text)})


def with_column(name: str, values: list[object]) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        place = table.column_names.index(name)
        return table.set_column(place, name, pa.array(values, table.schema.field(name).type))

    return change


def with_futures(brokers: list[object], log_dirs: list[object]) -> Callable[[pa.Table], pa.Table]:
    return lambda table: with_column("future_log_dirs", log_dirs)(with_column("future_brokers", brokers)(table))


def without_replicas(table: pa.Table) -> pa.Table:
    for name in ("replicas", "log_dirs", "sizes_bytes", "isr"):
        rows = table[name].to_pylist()
        table = with_column(name, [rows[0], [], rows[2]])(table)
    return with_column("leader", [1, NO_LEADER, 1])(table)


def same(table: pa.Table) -> pa.Table:
    return table


def head_with(**changes: object) -> Callable[[str], str]:
    return lambda text: json.dumps(json.loads(text) | changes)


def test_a_file_that_was_written_by_others_is_read_when_it_is_one(file: Path) -> None:
    rewritten(file, same)
    assert snapshot_of(read_columns_file(file)) == SNAPSHOT


@pytest.mark.parametrize(("change", "head", "said"), [
    (same, head_with(version=2), "has version 2 of the format; this kreassign reads version 1"),
    (same, head_with(format="x"), "is not a snapshot file"),
    (same, lambda _text: "{", "this is not JSON"),
    (same, head_with(topics=[{"name": "t", "configs": {}, "partition_count": 2}]), "has 3 rows, but its topics have 2"),
    (same, head_with(topics=[{"name": "u", "configs": {}, "partition_count": 3}]), "row 1 is t-0, and must be u-0"),
    (lambda table: table.drop_columns(["isr"]), str, "the column 'isr' is missing; it must be list<"),
    (lambda table: table.append_column("tier", table["leader"]), str, "no column 'tier' in a snapshot file; is it"),
    (lambda table: table.set_column(2, "leader", table["topic"]), str, "'leader' has string; it must be int"),
    (with_column("leader", [1, None, 1]), str, "row 2 (t-1): the column 'leader' holds NULL"),
    (with_column("leader", [1, -2, 1]), str, "row 2 (t-1): the column 'leader' holds -2; it must be from -1"),
    (with_column("leader", [1, 2, 3]), str, "row 3 (a-0): 'leader' is 3, which 'replicas' does not name"),
    (with_column("replicas", [[1, 2], [2, 1], [2, -1]]), str,
     "row 3 (a-0): the column 'replicas' holds -1; it must be from 0"),
    (with_column("replicas", [[1, 2], [2, 2], [2, 1]]), str,
     "row 2 (t-1): 'replicas' is [2, 2], which names a broker twice"),
    (with_column("isr", [[1], None, [2]]), str, "row 2 (t-1): the column 'isr' is NULL"),
    (with_column("isr", [[1], [2], [2, 7]]), str, "row 3 (a-0): 'isr' names [7], which 'replicas' does not"),
    (without_replicas, str, "row 2 (t-1): 'replicas' is empty"),
    (with_column("partition", [0, 0, 0]), str, "row 2 is t-0, and must be t-1"),
    (with_column("partition", [0, -1, 0]), str, "row 2 (t-1): the column 'partition' holds -1; it must be from 0"),
    (with_column("topic", ["t", None, "a"]), str, "row 2 (t-1): the column 'topic' holds NULL"),
    (with_column("future_log_dirs", [[], [None], ["/e"]]), str,
     "row 2 (t-1): the column 'future_log_dirs' holds NULL"),
    (with_futures([[], [2, 2], []], [[], ["/e", "/f"], []]), str,
     "row 2 (t-1): the column 'future_brokers' names a broker twice"),
    (with_column("sizes_bytes", [[1, 2], [3], [4, 5]]), str,
     "row 2 (t-1): the column 'sizes_bytes' has 1 entry, not one for each of 2 replicas"),
    (with_column("sizes_bytes", [[1, 2], [3, -4], [4, 5]]), str, "row 2 (t-1): the column 'sizes_bytes' holds -4"),
    (with_column("write_bytes_per_s", [1.0, float("nan"), 1.0]), str,
     "row 2 (t-1): the column 'write_bytes_per_s' holds a rate that is no number"),
    (with_column("log_dirs", [["/d", None], ["/d", "/\0"], ["/d", "/e"]]), str,
     "row 2 (t-1): the column 'log_dirs' holds a text with the character"),
    (with_column("partition", [1, 0, 0]), str, "row 1 is t-1, and must be t-0"),
])  # fmt: skip
def test_what_contradicts_the_format_is_refused_with_file_and_column(
    file: Path, change: Callable[[pa.Table], pa.Table], head: Callable[[str], str], said: str
) -> None:
    rewritten(file, change, head)
    with pytest.raises(InputError) as refused:
        read_columns_file(file)
    assert str(refused.value).startswith(str(file))
    assert said in str(refused.value)


def test_columns_are_arrays_of_the_documented_shapes() -> None:
    columns = columns_of(SNAPSHOT)
    assert (columns.topics.tolist(), columns.numbers.tolist()) == ([0, 0, 2], [0, 1, 0])
    assert columns.is_moving.tolist() == [False, True, True]
    assert np.isnan(columns.write_bytes_per_s).tolist() == [True, False, False]


@pytest.mark.parametrize("column", ["log_dirs", "leader"])
def test_a_file_with_a_column_twice_is_refused(file: Path, column: str) -> None:
    rows, head = pq.read_table(file), pq.read_metadata(file).metadata[KEY]
    pq.write_table(rows.append_column(column, rows.column(column)).replace_schema_metadata({KEY: head}), file)
    with pytest.raises(InputError, match=f"cluster.parquet: the column '{column}' is there more than once"):
        read_columns_file(file)
