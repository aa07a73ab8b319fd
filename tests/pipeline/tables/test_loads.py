"""A load is seen whole or not at all: whatever kills it, whoever else loads, and however full the disk is."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from kreassign.errors import DataError
from kreassign.pipeline.tables.commits import (
    CLOCK_MS,
    STOOD_ON,
    Load,
    LoadedTable,
    compact,
    last_load,
    publish,
    standing_on,
    time_of_load,
)
from kreassign.pipeline.tables.delta import commit_once, log_to_write, open_log
from kreassign.pipeline.tables.parquet import TablesAt, has_table, read_rows, tables_at, write_rows
from kreassign.pipeline.tables.schemas import FORECAST, LOAD_MODEL, LOADS, PLAN_INPUTS, SKEW, Table
from testbed.waiting import wait_until
from tests.checks.source import ROOT
from tests.pipeline.load_tables import row

pytestmark = pytest.mark.thorough

TABLES = (LOAD_MODEL, FORECAST, PLAN_INPUTS)


def made(data: Path, number: int, tables: tuple[Table, ...] = TABLES) -> list[LoadedTable]:
    """Replace the rows of tables by one that bears this number, as a load does."""
    found = []
    for table in tables:
        named = row(table, cluster_id="c", snapshot_id=f"load {number}")
        found.append(LoadedTable(table, write_rows(data, table, [named], file_stem="load"), 1))
    return found


def seen(data: Path | TablesAt) -> list[str]:
    """The numbers in the tables that a reader gets."""
    at = tables_at(data) if isinstance(data, Path) else data
    return [each["snapshot_id"] for table in TABLES for each in read_rows(at, table)]


def test_a_load_is_seen_once_it_is_finished_and_the_last_one_until_then(tmp_path: Path) -> None:
    first = made(tmp_path, 1)
    for table in TABLES:
        with pytest.raises(DataError, match=rf"no load that made table {table.name} in .* was finished; run `kre.* lo"):
            read_rows(tmp_path, table)
    publish(tmp_path, 1000, first, None)
    assert seen(tmp_path) == ["load 1"] * 3
    second = made(tmp_path, 2)
    assert seen(tmp_path) == ["load 1"] * 3
    reader = tables_at(tmp_path)
    publish(tmp_path, 2000, [*second, *made(tmp_path, 2, (SKEW,))], last_load(tmp_path))
    assert seen(tmp_path) == ["load 2"] * 3
    assert seen(reader) == ["load 1"] * 3, "a command goes on with the load that it began with"
    assert (has_table(reader, SKEW), has_table(tables_at(tmp_path), SKEW)) == (False, True)


def test_the_second_of_two_loads_is_refused_and_names_the_first(tmp_path: Path) -> None:
    publish(tmp_path, 1000, made(tmp_path, 1), None)
    begun = last_load(tmp_path)
    second, third = made(tmp_path, 2), made(tmp_path, 3)
    publish(tmp_path, 3000, third, begun)
    with pytest.raises(DataError, match=r"another load of .* begun 1970-01-01 00:00:03Z: its tables stay, and nothing"):
        publish(tmp_path, 2000, second, begun)
    assert seen(tmp_path) == ["load 3"] * 3


def test_of_two_that_finish_at_the_same_moment_one_is_refused_too(tmp_path: Path) -> None:
    one, other = log_to_write(tmp_path, LOADS), log_to_write(tmp_path, LOADS)
    assert [commit_once(log, [], "load", 1) for log in (one, other)] == [True, False]
    assert open_log(tmp_path, LOADS).delta.transaction_version("load") == 1


def test_tables_are_read_as_of_a_time(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        publish(tmp_path, number * 1000, made(tmp_path, number), last_load(tmp_path))
    told = [seen(tables_at(tmp_path, as_of_ms))[0] for as_of_ms in (1000, 2999, 10_000)]
    assert told == ["load 1", "load 2", "load 3"]
    with pytest.raises(DataError, match=r"no load of .* had begun by 1970-01-01 00:00:00Z, the first began at .*:01Z"):
        tables_at(tmp_path, 999)
    with pytest.raises(DataError, match="there is none at all"):
        tables_at(tmp_path / "elsewhere", 999)


def replaced_by_a_new_one(data: Path, table: Table) -> None:
    """It has at least as many versions as the old one: their numbers alone would look like new rows."""
    versions = open_log(data, table).version
    shutil.rmtree(data / table.name)
    for number in range(versions + 2):
        write_rows(data, table, [row(table)], file_stem=str(number))


def put_back_from_a_copy(data: Path, table: Table) -> None:
    """Put the table back to its state one version ago."""
    last = open_log(data, table).version
    (data / table.name / "_delta_log" / f"{last:020}.json").unlink()


def removed(data: Path, table: Table) -> None:
    shutil.rmtree(data / table.name)


def stood_on(data: Path) -> list[LoadedTable]:
    return [LoadedTable(table, open_log(data, table).version, 1) for table in STOOD_ON]


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (replaced_by_a_new_one, "it was made again since"),
        (put_back_from_a_copy, r"it is at version \d+, and was at \d+: an older copy was put in its place"),
        (removed, "it is gone"),
    ],
)
@pytest.mark.parametrize("table", STOOD_ON[:2])
def test_a_load_stands_only_on_the_tables_that_the_one_before_knew(
    tmp_path: Path, table: Table, spoil: Callable[[Path, Table], None], told: str
) -> None:
    """Else it would take what is new from numbers of versions that mean nothing, and leave rows out without a word."""
    for each, number in product(STOOD_ON, range(2)):
        write_rows(tmp_path, each, [row(each)], file_stem=str(number))
    publish(tmp_path, 1000, stood_on(tmp_path), None)
    before = last_load(tmp_path)
    assert before is not None
    # What others do meanwhile is no matter.
    write_rows(tmp_path, table, [row(table)], file_stem="9")
    compact(tmp_path, table)
    assert standing_on(tmp_path, before) is before

    publish(tmp_path, 2000, stood_on(tmp_path), before)
    before = last_load(tmp_path)
    assert before is not None
    spoil(tmp_path, table)
    with pytest.raises(DataError, match=rf"{table.name} in .* not the one that load 2 knew: {told}; .* load --full`"):
        standing_on(tmp_path, before)


def test_loads_are_one_after_the_other_also_where_the_clock_went_back() -> None:
    before = Load(7, 1_800_000_000_000, {})
    assert time_of_load(before.load_ms + 5, before) == before.load_ms + 5
    assert time_of_load(before.load_ms - CLOCK_MS, before) == before.load_ms + 1
    with pytest.raises(DataError, match=r"says 2027-01-15 06:59:59Z, and load 7 was begun 2027-01-15 08:00:00Z by its"):
        time_of_load(before.load_ms - CLOCK_MS - 1, before)


_LOADING = """
import itertools, resource, sys
from pathlib import Path
from kreassign.errors import DataError
from kreassign.pipeline.tables.commits import last_load, publish
from tests.pipeline.tables.test_loads import made
data, most_bytes = Path(sys.argv[1]), int(sys.argv[2])
if most_bytes:
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
for number in itertools.count(1 if (begun := last_load(data)) is None else begun.number + 1):
    try:
        publish(data, number, made(data, number), last_load(data))
    except DataError as error:
        sys.exit(str(error))
"""


def loading(data: Path, most_bytes: int = 0) -> subprocess.Popen[str]:
    """A process that makes one load after the other; with `most_bytes` no file may become larger."""
    words = [sys.executable, "-c", _LOADING, str(data), str(most_bytes)]
    return subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def test_what_is_seen_is_of_one_load_whenever_loads_are_killed(tmp_path: Path) -> None:
    for kill in range(4):
        process = loading(tmp_path)
        try:
            # At another place each time: after a load, then after one, two and three commits more.
            table = (LOADS, *TABLES)[kill]
            before = len(commits(tmp_path, table))
            wait_until(lambda b=before, t=table: len(commits(tmp_path, t)) > b + 2, what="a commit")
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
        last = last_load(tmp_path)
        assert last is not None
        assert seen(tmp_path) == [f"load {last.number}"] * 3


def commits(data: Path, table: Table) -> list[Path]:
    return list((data / table.name / "_delta_log").glob("*.json"))


def test_a_full_disk_is_told_and_the_last_load_stays(tmp_path: Path) -> None:
    publish(tmp_path, 1, made(tmp_path, 1), None)
    for most_bytes in (100, 3000):  # too little for the log, and for a table
        process = loading(tmp_path, most_bytes)
        _, error = process.communicate(timeout=60)
        assert process.returncode == 1, error
        assert "table load_model in" in error
        assert "too large" in error
        assert "Traceback" not in error
        assert seen(tmp_path) == ["load 1"] * 3
    publish(tmp_path, 2, made(tmp_path, 2), last_load(tmp_path))
    assert seen(tmp_path) == ["load 2"] * 3
