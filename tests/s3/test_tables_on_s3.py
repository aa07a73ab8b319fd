"""The tables of a directory in an object store: what writes and reads them, at once too, and what goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import fs

import kreassign
from kreassign.errors import DataError
from kreassign.pipeline.tables.commits import LoadedTable, last_load, publish
from kreassign.pipeline.tables.delta import log_to_write, open_log, storage
from kreassign.pipeline.tables.parquet import read_rows, write_rows
from kreassign.pipeline.tables.schemas import LOAD_MODEL, LOADS, SAMPLES, TABLES
from kreassign.twin.cluster import Twin, TwinSettings
from kreassign.twin.server import serving
from tests.checks.source import ROOT
from tests.pipeline.load_tables import row
from tests.s3.conftest import BUCKET, Store
from tests.twin.asking import cluster

DATA, SAME = f"s3://{BUCKET}/data", f"s3a://{BUCKET}/data"
_SAMPLES = "taken_ms,topic,partition,start_offset,end_offset\n{before},t,0,0,10\n{now},t,0,0,90\n"


def copy_of(address: str, folder: Path) -> None:
    """Copy a directory like `aws s3 sync`, the logs last."""
    for table in TABLES:
        system, root = storage(address, table)
        infos = system.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
        for info in sorted(infos, key=lambda each: "_delta_log" in each.path):
            if info.type is fs.FileType.File and info.size:  # Spark marks folders by objects of no bytes
                place = folder / table.name / info.path
                place.parent.mkdir(parents=True, exist_ok=True)
                with system.open_input_stream(info.path) as stream:
                    place.write_bytes(stream.readall())


def test_the_whole_workflow_by_either_form_of_the_address(store: Store, tmp_path: Path) -> None:
    with (
        serving(Twin(cluster({"t": [[0, 3], [3, 1]]}), TwinSettings()), speed=10.0) as thread,
        kreassign.connect(thread.bootstrap_servers) as client,
    ):
        rounds = list(kreassign.collect(client, DATA, rounds=4, interval_s=0.01, compact_every=3))
        seen = kreassign.store_snapshot(client, kreassign.SnapshotOutputs(SAME))
    assert [each.partitions for each in rounds] == [2] * 4
    now_ms = min(each["taken_ms"] for each in read_rows(SAME, SAMPLES))
    file = tmp_path / "samples.csv"
    file.write_text(_SAMPLES.format(before=now_ms - 3_600_000, now=now_ms - 60_000))
    for _ in range(2):
        done = kreassign.import_samples([file], SAME, seen.cluster.cluster_id)
    assert (done.known, dict(done.added)) == (2, {}), "the second import adds nothing"

    loaded = store.run("load", "--data", SAME)
    assert loaded.returncode == 0, loaded.stderr
    shown = store.run("show-load", "--data", DATA)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "2 partitions of 1 topics" in shown.stdout
    planned = store.run("plan", "drain-brokers", "0", "--data", SAME, "--as-of", "1", "--format", "json")
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["plan"]["partitions"]

    compacted = store.run("compact", "--data", DATA)
    assert compacted.returncode == 0, compacted.stderr
    assert "samples: " in compacted.stdout
    assert len(open_log(SAME, SAMPLES).files()) == 1
    assert store.run("show-load", "--data", SAME).stdout == shown.stdout

    copy_of(DATA, tmp_path / "copy")
    assert store.run("show-load", "--data", str(tmp_path / "copy")).stdout == shown.stdout


_WRITING = """
import sys
from tests.pipeline.clusters import sample_round
from kreassign.pipeline.ingest.snapshots import sample_rows
from kreassign.pipeline.tables.parquet import write_rows
from kreassign.pipeline.tables.schemas import SAMPLES
for number in range(8):
    seen = sample_round(int(sys.argv[2]) + number, 120)
    write_rows(sys.argv[1], SAMPLES, sample_rows(seen), file_stem=seen.file_stem)
"""


def test_what_writers_commit_at_once_is_all_there(store: Store) -> None:
    """A store that lets the second commit of a number replace the first would lose the rows of the first."""
    address = f"s3a://{BUCKET}/writers"
    log_to_write(address, SAMPLES)
    words = [sys.executable, "-c", _WRITING, address]
    writers = [
        subprocess.Popen([*words, str(begin)], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for begin in (1_000_000_000, 2_000_000_000, 3_000_000_000)
    ]
    errors = [writer.communicate(timeout=280)[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0], errors
    times = [each["taken_ms"] for each in read_rows(address, SAMPLES)]
    assert sorted(times) == [begin * 10**9 + number for begin in (1, 2, 3) for number in range(8)]
    assert open_log(address, SAMPLES).version == 24


def test_of_two_loads_at_once_one_is_refused(store: Store) -> None:
    address = f"s3a://{BUCKET}/loads"
    version = write_rows(address, LOAD_MODEL, [row(LOAD_MODEL)], file_stem="load")
    publish(address, 1000, [LoadedTable(LOAD_MODEL, version, 1)], None)
    begun = last_load(address)
    publish(address, 3000, [LoadedTable(LOAD_MODEL, version, 1)], begun)
    with pytest.raises(DataError, match=r"another load of .* was finished while this one ran"):
        publish(address, 2000, [LoadedTable(LOAD_MODEL, version, 1)], begun)
    assert len(read_rows(address, LOADS)) == 2


@pytest.mark.parametrize(
    ("address", "changed", "told"),
    [
        ("s3a://nowhere/data", {}, "there is no such bucket: create it, or correct DIR"),
        (SAME, {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, "there are no credentials: set AWS_ACCESS"),
        (SAME, {"AWS_ENDPOINT_URL": "closed"}, "the store does not answer: look at its address"),
        (SAME, {"AWS_ALLOW_HTTP": None}, "its endpoint has no TLS: set AWS_ALLOW_HTTP=true"),
        (f"s3://{BUCKET}/empty", {}, "make it with `kreassign load`"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(store: Store, address: str, changed: dict[str, str | None], told: str) -> None:
    if "AWS_ENDPOINT_URL" in changed:
        changed = {"AWS_ENDPOINT_URL": store.environment["AWS_METADATA_ENDPOINT"]}
    done = store.run("show-load", "--data", address, **changed)
    assert done.returncode == 6, done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_processes_that_read_end_with_their_own_exit_code(store: Store) -> None:
    """Scans through the file system of `deltalake` were seen to abort processes at their end."""
    address = f"s3a://{BUCKET}/ends"
    rows = [row(SAMPLES, taken_ms=number) for number in range(20_000)]
    for number in range(4):
        write_rows(address, SAMPLES, rows, file_stem=str(number))
    program = (
        "import sys; from kreassign.pipeline.tables.parquet import read_rows; "
        "from kreassign.pipeline.tables.schemas import SAMPLES; print(len(read_rows(sys.argv[1], SAMPLES)))"
    )
    ended = [store.python("-c", program, address) for _ in range(10)]
    assert [(done.returncode, done.stdout, done.stderr) for done in ended] == [(0, "80000\n", "")] * 10
