"""Files of kilobytes that stand for gigabytes, wherever something compressed is read. Only within a limit of memory."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kreassign.model.snapshot import parse_snapshot
from kreassign.operations.run_journals import kept_facts_path
from kreassign.operations.snapshot_files import write_snapshot
from kreassign.pipeline.tables.snapshot_parquet import KEY
from tests.executor.run_events import WHOLE
from tests.fuzz.commands import command
from tests.fuzz.files import CLUSTER
from tests.fuzz.journals import whole_journal
from tests.fuzz.tables import sample_table
from tests.fuzz.target import Attempt, Target

GB = 10**9
_PATTERNS = (b"\0", b" ", b"[", b"[],", b'{"a":1},', b"1,", b"x")


@cache
def endless(opening: bytes, pattern: bytes, size: int, compress: Callable[..., Any]) -> bytes:
    """So many bytes of a pattern, compressed, without ever having them at once."""
    packing, part = compress(), pattern * (1_000_000 // len(pattern))
    parts = [packing.compress(opening), *(packing.compress(part) for _ in range(size // len(part))), packing.flush()]
    return b"".join(parts)


def _gzip() -> Any:
    return zlib.compressobj(1, zlib.DEFLATED, 31)


def _opened(folder: Path, stack: ExitStack) -> Attempt:
    state, data = folder / "state", folder / "data"
    journal = whole_journal(folder / "whole")
    snapshot, columns = folder / "odd.json.gz", folder / "odd.parquet"
    write_snapshot(columns, parse_snapshot(json.dumps(CLUSTER), "cluster.json"))
    whole, head = pq.read_table(columns), pq.read_metadata(columns).metadata[KEY]

    def of_snapshot(chance: Random) -> bool:
        opening = chance.choice((b"", b'{"format":"kreassign-snapshot","version":1,"topics":[', b'["'))
        snapshot.write_bytes(
            endless(opening, chance.choice(_PATTERNS), chance.choice((300, 950, 1_500)) * 10**6, _gzip)
        )
        return command(["plan", "rebalance", "--snapshot", str(snapshot)], snapshot)

    def fresh() -> Path:
        shutil.rmtree(state, ignore_errors=True)
        path = state / "cluster-1" / "run-1.sqlite"
        path.parent.mkdir(parents=True)
        shutil.copy(journal, path)
        return path

    def of_facts(chance: Random) -> bool:
        path = kept_facts_path(fresh())
        path.write_bytes(endless(b"[", chance.choice(_PATTERNS), chance.choice((200, 450, 900)) * 10**6, _gzip))
        words = ["report", "--run", "run-1", "--out", str(folder / "page.html"), "--state-dir", str(state)]
        return command(words, path)

    def of_journal(chance: Random) -> bool:
        path, number = fresh(), chance.randint(1, len(WHOLE))
        bomb = endless(b"[", chance.choice(_PATTERNS), chance.choice((200, 450, 900)) * 10**6, zlib.compressobj)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE events SET body = ? WHERE sequence = ?", (bomb, number))
        return command(["status", "run-1", "--state-dir", str(state)], path)

    def of_columns(chance: Random) -> bool:
        count = chance.choice((10**6, 2 * 10**7, 15 * 10**7))
        zeros = pa.array(np.zeros(count, np.int32))
        dictionary = pa.DictionaryArray.from_arrays(zeros, pa.array(["x" * chance.choice((1, 100_000))]))
        name = chance.choice(("partition", "leader", "topic"))
        kind = dictionary if name == "topic" else zeros
        table = pa.table({name: kind}) if chance.random() < 0.3 else _repeated(whole, name, kind, count)
        pq.write_table(table.replace_schema_metadata({KEY: head}), columns, compression="zstd")
        return command(["plan", "rebalance", "--snapshot", str(columns)], columns)

    def of_samples(chance: Random) -> bool:
        shutil.rmtree(data, ignore_errors=True)
        odd = folder / "odd-samples.parquet"
        table = sample_table()
        rows = pa.concat_tables([table] * chance.choice((1_000, 100_000)))
        text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(rows), np.int32)), pa.array(["x" * 100_000]))
        pq.write_table(rows.set_column(rows.column_names.index("topic"), "topic", text), odd, compression="zstd")
        return command(["import-samples", str(odd), "--data", str(data)], odd)

    deeds = (of_snapshot, of_facts, of_journal, of_columns, of_samples)
    return lambda chance: chance.choice(deeds)(chance)


def _repeated(whole: pa.Table, name: str, column: pa.Array, count: int) -> pa.Table:
    """The columns of a snapshot with a row that is there so many times, and one column that is this one."""
    count = min(count, 5_000_000)
    rows = whole.slice(0, 1).take(pa.array(np.zeros(count, np.int64)))
    return rows.set_column(rows.column_names.index(name), name, column.slice(0, count))


BOMBS = (Target("bombs of gzip, zlib and Parquet", _opened, quick=0, share=0.02, deadline_s=300.0),)
