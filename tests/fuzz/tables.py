"""Parquet, and what else tables are read from: columns that are missing, others, of other types, and odd values."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from kreassign.model.snapshot import parse_snapshot
from kreassign.operations.snapshot_files import write_snapshot
from kreassign.pipeline.tables.snapshot_parquet import KEY
from tests.fuzz.commands import command
from tests.fuzz.documents import EVIL_NAMES, JSON, changed, damaged, tree
from tests.fuzz.files import CLUSTER, MOVE
from tests.fuzz.target import Attempt, Target
from tests.pipeline.load_tables import a_cluster, fill, leaders

_TEXTS = (*(name for name in EVIL_NAMES if name != "\ud800"), None)
_TYPES: tuple[Callable[[int], pa.Array], ...] = (
    lambda count: pa.array(["x\x1b[2J"] * count),
    lambda count: pa.array([b"\xff\xfe"] * count),
    lambda count: pa.array([math.nan] * count),
    lambda count: pa.array([-math.inf] * count),
    lambda count: pa.array([-1] * count),
    lambda count: pa.array([2**63 - 1] * count),
    lambda count: pa.array([None] * count, pa.int64()),
    pa.nulls,
    lambda count: pa.array([True] * count),
    lambda count: pa.array([[1, None, -5]] * count),
    lambda count: pa.array([["a", None]] * count),
    lambda count: pa.array([{"a": {"b": 1}}] * count),
    lambda count: pa.array(["a"] * count).dictionary_encode(),
    lambda count: pa.array([1] * count, pa.timestamp("us", "UTC")),
    lambda count: pa.array([1] * count, pa.decimal128(38, 2)),
    lambda count: pa.array([1] * count, pa.uint64()),
    lambda count: pa.array([1] * count, pa.duration("ns")),
    lambda count: pa.array(["a"] * count, pa.large_string()),
    lambda count: pa.array([[("k", 1)]] * count, pa.map_(pa.string(), pa.int64())),
)


def _odd_values(column: pa.ChunkedArray, chance: Random) -> pa.Array:
    """Values of the type that make no sense in it; the value itself where there are none."""
    count, kind = len(column), column.type
    if pa.types.is_string(kind):
        return pa.array(
            [chance.choice((*(one for one in EVIL_NAMES if one != "\ud800"), None)) for _ in range(count)], kind
        )
    if pa.types.is_floating(kind):
        return pa.array([chance.choice((math.nan, math.inf, -1.0, 1e308, -0.0, None)) for _ in range(count)], kind)
    if pa.types.is_integer(kind):
        most = 2 ** (kind.bit_width - 1) - 1
        return pa.array([chance.choice((-1, 0, most, -most, None, 1)) for _ in range(count)], kind)
    if pa.types.is_list(kind):
        inner = [None] if chance.random() < 0.5 else []
        return pa.array([inner if chance.random() < 0.7 else None for _ in range(count)], kind)
    return pa.array([None] * count, kind)


def odd_table(table: pa.Table, chance: Random) -> pa.Table:
    """A table with columns that are gone, there twice, of other names, types or values; or with other rows."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        table = _changed(table, chance) if table.num_columns else table
    return table


def _changed(table: pa.Table, chance: Random) -> pa.Table:
    at = chance.randrange(table.num_columns)
    names, count = table.column_names, table.num_rows
    name, retyped = names[at], chance.choice(_TYPES)
    renamed = [*names[:at], chance.choice(("x", "\x1b]0;x\x07")), *names[at + 1 :]]
    choices: tuple[Callable[[], pa.Table], ...] = (
        lambda: table.remove_column(at),
        lambda: table.append_column(name, table.column(at)),
        lambda: table.append_column(chance.choice(("extra", "", "\x1b[2J", name.upper())), retyped(count)),
        lambda: table.rename_columns(renamed),
        lambda: table.slice(0, 0),
        lambda: pa.concat_tables([table] * 3),
        lambda: table.select(chance.sample(range(table.num_columns), table.num_columns)),
        lambda: table.take(pa.array(chance.sample(range(count), count), pa.int64())),
        lambda: pa.table({}),
        *[lambda: table.set_column(at, name, retyped(count))] * 3,
        *[lambda: table.set_column(at, name, _odd_values(table.column(at), chance))] * 4,
    )
    return chance.choice(choices)()


def write_odd(path: Path, table: pa.Table, chance: Random) -> None:
    """Write a Parquet file with odd columns, or one whose bytes are damaged, or none at all."""
    if chance.random() < 0.8:
        table = odd_table(table, chance)
    pq.write_table(table, path, compression=chance.choice(("snappy", "zstd", "gzip", "none")))
    if chance.random() < 0.2:
        path.write_bytes(damaged(path.read_bytes(), chance))


def _snapshots(folder: Path, stack: ExitStack) -> Attempt:
    """Snapshot files in columns: odd columns, another head, damaged bytes."""
    odd, plan = folder / "odd.parquet", folder / "plan.json"
    plan.write_text(json.dumps(MOVE))
    write_snapshot(odd, parse_snapshot(json.dumps(CLUSTER), "cluster.json"))
    whole = pq.read_table(odd)
    head = pq.read_metadata(odd).metadata[KEY]
    shape = tree(json.loads(head))

    def attempt(chance: Random) -> bool:
        told = changed(shape, JSON, chance) if chance.random() < 0.4 else head
        write_odd(odd, whole.replace_schema_metadata({KEY: told}), chance)
        words = chance.choice((["plan", "rebalance", "--snapshot", str(odd)],
                               ["plan", "what-if", "--snapshot", str(odd)],
                               ["plan", "check", str(plan), "--snapshot", str(odd)]))  # fmt: skip
        return command(words, odd, also=(1,))

    return attempt


def _loads(folder: Path, stack: ExitStack) -> Attempt:
    """Files of the tables that a load left, replaced by odd ones, when the load is shown or planned by."""
    whole, data = folder / "whole", folder / "data"
    tables = a_cluster()
    fill(whole, tables["loads"], **{name: rows for name, rows in tables.items() if name != "loads"},
         **({} if "plan_inputs" in tables else {"plan_inputs": leaders(tables["loads"], 3)}))  # fmt: skip
    names = sorted({path.parent.name for path in whole.glob("*/*.parquet")})

    def attempt(chance: Random) -> bool:
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(whole, data)
        chosen = chance.choice((*names, "load_model", "load_model"))
        path = chance.choice(sorted((data / chosen).glob("**/*.parquet")))
        if chance.random() < 0.05:
            path.unlink()
        else:
            write_odd(path, pq.read_table(path), chance)
        words = chance.choice((["show-load"], ["show-load", "--top", "2", "--format", "json"],
                               ["show-load", "--quality"],
                               ["show-load", "--page", str(data / "page.html")]))  # fmt: skip
        return command([*words, "--data", str(data)], path)

    return attempt


def _logs(folder: Path, stack: ExitStack) -> Attempt:
    """The logs of those tables."""
    whole, data = folder / "whole", folder / "data"
    tables = a_cluster()
    fill(whole, tables["loads"], **{name: rows for name, rows in tables.items() if name != "loads"})

    def attempt(chance: Random) -> bool:
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(whole, data)
        path = chance.choice(sorted(data.glob("*/_delta_log/*.json")))
        parts = path.read_text(encoding="utf-8").splitlines()
        at = chance.randrange(len(parts))
        if chance.random() < 0.7:
            odd = changed(tree(json.loads(parts[at])), JSON, chance).replace(b"\n", b" ")
            path.write_bytes(
                b"\n".join([*(one.encode() for one in parts[:at]), odd, *(one.encode() for one in parts[at + 1 :])])
            )
        else:
            path.write_bytes(damaged(path.read_bytes(), chance))
        return command(["show-load", "--data", str(data)], path)

    return attempt


TAKEN_MS = 1_767_225_600_000
SAMPLE = {"taken_ms": TAKEN_MS, "topic": "t", "partition": 0, "start_offset": 0, "end_offset": 10,
          "cluster_id": "c", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "leader": 1, "size_bytes": 100}  # fmt: skip


def sample_table() -> pa.Table:
    """Four samples of a partition, a second apart."""
    return pa.Table.from_pylist([{**SAMPLE, "taken_ms": TAKEN_MS + 1000 * one} for one in range(4)])


def _samples(folder: Path, stack: ExitStack) -> Attempt:
    """Samples of any origin: Parquet, CSV, JSON lines. Odd rows go to the quarantine, odd files are refused."""

    def attempt(chance: Random) -> bool:
        data, odd = folder / "data", folder / "files" / f"odd.{chance.choice(('parquet', 'csv', 'jsonl'))}"
        for path in (odd.parent, data):
            shutil.rmtree(path, ignore_errors=True)
        odd.parent.mkdir()
        rows = sample_table().to_pylist()
        if odd.suffix == ".parquet":
            write_odd(odd, sample_table(), chance)
        elif odd.suffix == ".csv":
            text = "\n".join([",".join(SAMPLE), *(",".join(map(str, row.values())) for row in rows)])
            odd.write_bytes(damaged(text.encode(), chance))
        else:
            shape = tree(rows[0])
            odd.write_bytes(b"\n".join([changed(shape, JSON, chance), json.dumps(rows[1]).encode()]))
        return command(["import-samples", str(odd), "--data", str(data)], odd)

    return attempt


PAGE = """# TYPE kafka_server_brokertopicmetrics_bytesin_total counter
kafka_server_brokertopicmetrics_bytesin_total{topic="t",} 1000.0 1767225600000
kafka_log_log_logendoffset{topic="t",partition="0",} 10 1767225600000
kafka_topic_partition_current_offset{partition="0",topic="t"} 1.2e+01 1767225600000
"""
ANSWER = {"status": "success", "data": {"resultType": "matrix", "result": [
    {"metric": {"__name__": "kafka_topic_partition_current_offset", "topic": "t", "partition": "0", "instance": "a:1"},
     "values": [[1767225600, "10"], [1767225660, "20"]]}]}}  # fmt: skip


def _metrics(folder: Path, stack: ExitStack) -> Attempt:
    """Pages of exporters and answers of Prometheus."""
    shape = tree(ANSWER)

    def attempt(chance: Random) -> bool:
        data, odd = folder / "data", folder / "odd.txt"
        shutil.rmtree(data, ignore_errors=True)
        odd.write_bytes(damaged(PAGE.encode(), chance) if chance.random() < 0.4 else changed(shape, JSON, chance))
        return command(["import-metrics", str(odd), "--data", str(data), "--cluster", "c", "--broker", "1"], odd)

    return attempt


PARQUET = (
    Target("snapshots in Parquet", _snapshots),
    Target("tables of a load, shown", _loads, quick=6),
    Target("logs of tables", _logs, quick=6),
    Target("samples to import: Parquet, CSV, JSON lines", _samples),
    Target("metrics to import: pages and answers", _metrics),
)
