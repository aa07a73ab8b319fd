"""Effects, output and refusals of `import-metrics` and `import-samples`."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from fcntl import LOCK_EX, LOCK_UN, flock
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.operations.ingest import LOCK, OTHER_STORED, SAME_KEY, import_samples
from kreassign.operations.tables import compact_tables
from kreassign.pipeline.ingest.imported_samples import NO_END
from kreassign.pipeline.tables.parquet import read_rows, write_rows
from kreassign.pipeline.tables.schemas import IMPORT_QUARANTINE, METRICS, SAMPLES, Row, Table
from tests.approved import approve

HOUR_MS = 3_600_000
MS = 1_750_000_000_000
SCRAPE = f"""
process_cpu_seconds_total 5 {MS}
process_cpu_seconds_total 6 {MS + HOUR_MS}
process_cpu_seconds_total 7 {MS // 10**6}
process_cpu_seconds_total NaN {MS}
kafka_server_brokertopicmetrics_bytesin_total -1 {MS}
jvm_threads_current 41
rubbish
"""
SAMPLES_CSV = f"""taken_ms,topic,partition,start_offset,end_offset,size_bytes
{MS},orders,0,10,100,5000
{MS + HOUR_MS},orders,0,10,200,
{MS // 1000},orders,0,10,300,5000
{MS},orders,0,10,101,5000
{MS},orders,0,10,100,5000
{MS},orders,zero,10,100,5000
"""


FOREIGN_PAGE = """kafka_consumergroup_lag{consumergroup="a"} 5
jvm_threads_current 4
redpanda_application_uptime 2
up 1
"""
FOREIGN_SERIES = (
    "jvm_threads_current, kafka_consumergroup_lag, redpanda_application_uptime and 1 more. Known are those of JMX "
    "exporter and Amazon MSK (kafka_server_brokertopicmetrics_…, kafka_log_log_…), kafka_exporter "
    "(kafka_topic_partition_…), kminion (kminion_kafka_topic_partition_…), Confluent Cloud (confluent_kafka_server_…); "
    "export one of them, or measure with kreassign collect"
)
HALF_OF_A_SAMPLE = 'kafka_topic_partition_oldest_offset{topic="t",partition="0"} 5\n'


def imported(command: str, tmp_path: Path, content: str, *arguments: str) -> tuple[int, list[str]]:
    file = tmp_path / "measures"
    file.write_text(content)
    result = CliRunner().invoke(kreassign, [command, str(file), "--data", str(tmp_path / "data"), *arguments])
    if result.exit_code == 0:
        assert result.stderr.endswith(f"next: kreassign load --data {tmp_path / 'data'}\n")
    said = result.output.replace(f"{tmp_path}/", "").splitlines()
    return result.exit_code, [line for line in said if not line.startswith("next: ")]


def test_import_metrics_stores_good_readings_and_keeps_bad_ones(tmp_path: Path) -> None:
    code, said = imported("import-metrics", tmp_path, SCRAPE, "--cluster", "c", "--broker", "1")
    assert code == 0
    approve(said, "import-metrics")
    rows = read_rows(tmp_path / "data", METRICS)
    assert sorted((row["taken_ms"], row["broker"], row["value"]) for row in rows) == [(MS, 1, 5), (MS + HOUR_MS, 1, 6)]
    kept = {row["place"]: (row["reason"], row["text"]) for row in read_rows(tmp_path / "data", IMPORT_QUARANTINE)}
    assert kept["line 8"] == ('is no reading such as name{label="text"} 1.5', "rubbish")
    assert json.loads(kept["line 6"][1])["name"] == "bytes_in_total"


@pytest.mark.parametrize(("command", "content", "table"), [
    ("import-metrics", SCRAPE, METRICS), ("import-samples", SAMPLES_CSV, SAMPLES),
], ids=["metrics", "samples"])  # fmt: skip
def test_to_import_a_file_again_adds_nothing_not_even_after_compaction(
    tmp_path: Path, command: str, content: str, table: Table
) -> None:
    data = tmp_path / "data"
    options = ("--cluster", "c", *(("--broker", "1") if command == "import-metrics" else ()))
    imported(command, tmp_path, content, *options)
    before = read_rows(data, table), read_rows(data, IMPORT_QUARANTINE)
    code, said = imported(command, tmp_path, content, *options)
    assert (code, said[-1].split(";")[0]) == (0, "added nothing")
    longer = content + content.splitlines()[1].replace(str(MS), str(MS + 5)) + "\n"
    assert imported(command, tmp_path, longer, *options)[1][-1].startswith("added 1 to ")
    list(compact_tables(data))
    assert imported(command, tmp_path, longer, *options)[1][-1].startswith("added nothing")
    after = read_rows(data, table)
    assert len(after) == len(before[0]) + 1
    assert all(row in after for row in before[0])
    assert all(row in read_rows(data, IMPORT_QUARANTINE) for row in before[1])


def test_bad_rows_go_with_the_days_that_are_not_kept(tmp_path: Path) -> None:
    data = tmp_path / "data"
    imported("import-samples", tmp_path, SAMPLES_CSV, "--cluster", "c")
    kept = read_rows(data, IMPORT_QUARANTINE)
    write_rows(data, IMPORT_QUARANTINE, [kept[0] | {"file": "old", "imported_ms": MS}], file_stem="old")
    list(compact_tables(data, keep_days=2))
    assert sorted(row["place"] for row in read_rows(data, IMPORT_QUARANTINE)) == sorted(row["place"] for row in kept)
    assert {row["file"] for row in read_rows(data, IMPORT_QUARANTINE)} == {kept[0]["file"]}


def test_two_imports_of_a_file_at_the_same_time_add_it_once(tmp_path: Path) -> None:
    """One looks what is there while another is about to add: it waits, and then sees it."""
    file, data = tmp_path / "samples.csv", tmp_path / "data"
    file.write_text(SAMPLES_CSV)
    data.mkdir()
    with ThreadPoolExecutor() as pool, (data / LOCK).open("w") as lock:
        flock(lock, LOCK_EX)
        second = pool.submit(import_samples, [file], data, "c")
        write_rows(data, SAMPLES, [row_of(MS, 100), row_of(MS + HOUR_MS, 200)], file_stem="first")
        flock(lock, LOCK_UN)
        assert (dict(second.result(60).added), second.result().known_already) == ({}, 3)
        (file,) = second.result().files
        assert file.bad.first[OTHER_STORED].text.startswith("end_offset is 101, and 100 in the table: {")
    assert len(read_rows(data, SAMPLES)) == 2


def row_of(taken_ms: int, end_offset: int) -> Row:
    fixed = {"cluster_id": "c", "topic": "orders", "topic_id": None, "partition": 0, "leader": -1, "size_bytes": 5000}
    return fixed | {"taken_ms": taken_ms, "start_offset": 10, "end_offset": end_offset}


def test_a_page_without_times_was_taken_when_its_file_was_written(tmp_path: Path) -> None:
    file = tmp_path / "kafka-1.txt"
    file.write_text("process_cpu_seconds_total 5\n")
    os.utime(file, (MS / 1000, MS / 1000))
    words = ["import-metrics", str(file), "--data", str(tmp_path / "data"), "--cluster", "c"]
    result = CliRunner().invoke(kreassign, [*words, "--instance", "kafka-1.txt=4"])
    assert result.exit_code == 0, result.output
    (row,) = read_rows(tmp_path / "data", METRICS)
    assert (row["taken_ms"], row["broker"]) == (MS, 4), "a file is an instance by its name"


def test_whose_metrics_they_are_must_be_said(tmp_path: Path) -> None:
    code, said = imported("import-metrics", tmp_path, SCRAPE, "--cluster", "c")
    assert (code, said[-1]) == (
        2, "error: measures: specify the broker: --broker ID, or --instance INSTANCE=ID for measures",
    )  # fmt: skip
    assert "'b=x' is not INSTANCE=ID" in imported("import-metrics", tmp_path, SCRAPE, "--instance", "b=x")[1][-1]
    confluent = f'confluent_kafka_server_sent_bytes{{kafka_id="lkc-1",topic="t"}} 1 {MS}\n'
    code, said = imported("import-metrics", tmp_path, confluent, "--cluster", "c")
    assert (code, said[-1]) == (2, "error: measures: it is of another cluster: specify --cluster lkc-1")
    assert imported("import-metrics", tmp_path, confluent, "--cluster", "lkc-1")[1][-1] == "added 1 to metrics"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (FOREIGN_PAGE, f"measures: no series in it is known: it has {FOREIGN_SERIES}"),
        ("# HELP up nothing\n", "measures: nothing is there to store: no file has a reading"),
        (HALF_OF_A_SAMPLE, f"measures: nothing is there to store: partition t-0 {NO_END}"),
        ("process_cpu_seconds_total NaN\n", "measures: nothing is there to store: line 1 value is not a finite number"),
        ("a 1,5\n", 'measures: nothing in it is a reading: line 1 is no reading such as name{label="text"} 1.5'),
    ],
    ids=["no known series", "no reading", "half of a sample", "no value", "no number"],
)
def test_a_file_of_which_nothing_is_read_is_an_error(tmp_path: Path, content: str, said: str) -> None:
    code, lines = imported("import-metrics", tmp_path, content, "--cluster", "c", "--broker", "1")
    assert (code, lines[-2:]) == (2, ["added nothing", f"error: {said}"])


def test_a_page_of_kminion_becomes_samples_and_metrics(tmp_path: Path) -> None:
    page = "".join(
        f'kminion_kafka_topic_{name}{{{labels}topic_name="orders"}} {value}\n'
        for name, labels, value in (
            ("partition_high_water_mark", 'partition_id="0",', "2.091521e+06"),
            ("partition_low_water_mark", 'partition_id="0",', "0"),
            ("log_dir_size_total_bytes", "", "4.5e+09"),
        )
    )
    code, said = imported("import-metrics", tmp_path, page, "--cluster", "c")
    assert (code, said) == (0, ["measures: 3 readings", "added 1 to metrics, 1 to samples"])
    (row,) = read_rows(tmp_path / "data", SAMPLES)
    assert [row[name] for name in ("topic", "partition", "start_offset", "end_offset")] == ["orders", 0, 0, 2_091_521]


def test_one_file_that_cannot_be_read_keeps_no_other_from_being_imported(tmp_path: Path) -> None:
    files = {"a.json": "[]", "b.txt": f"process_cpu_seconds_total 5 {MS}\n", "c.bin": "\0\0\n"}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    words = ["import-metrics", *(str(tmp_path / name) for name in files), "--data", str(tmp_path / "data")]
    result = CliRunner().invoke(kreassign, [*words, "--cluster", "c", "--broker", "1"])
    assert result.exit_code == 2
    assert f"error: {tmp_path}/a.json: this is neither" in result.stderr
    assert result.stderr.endswith("(and 1 more file)\n")
    assert len(read_rows(tmp_path / "data", METRICS)) == 1


def test_import_samples_stores_good_rows_and_keeps_bad_ones(tmp_path: Path) -> None:
    code, said = imported("import-samples", tmp_path, SAMPLES_CSV, "--cluster", "c")
    assert code == 0
    approve(said, "import-samples")
    rows = read_rows(tmp_path / "data", SAMPLES)
    assert [(row["taken_ms"], row["end_offset"], row["size_bytes"]) for row in rows] == [(MS + HOUR_MS, 200, None)]
    assert len(read_rows(tmp_path / "data", IMPORT_QUARANTINE)) == 5


OFFSETS = """kafka_topic_partition_oldest_offset{{topic="orders",partition="0"}} 10 {at}
kafka_topic_partition_current_offset{{topic="orders",partition="0"}} {end} {at}
"""
CPU = "process_cpu_seconds_total {end} {at}\n"


@pytest.mark.parametrize(
    ("form", "table"), [(OFFSETS, SAMPLES), (CPU, METRICS)], ids=["readings of partitions", "metrics"]
)
def test_files_that_contradict_each_other_are_named_and_neither_is_stored(
    tmp_path: Path, form: str, table: Table
) -> None:
    data = tmp_path / "data"
    for name, end in (("a.prom", 100), ("b.prom", 101), ("c.prom", 100)):
        text = form.format(end=end, at=MS) + form.format(end=7, at=MS + 1)
        (tmp_path / name).write_text(text)

    def add(*names: str) -> list[str]:
        words = ["import-metrics", *(str(tmp_path / name) for name in names), "--data", str(data), "--cluster", "c"]
        result = CliRunner().invoke(kreassign, [*words, "--broker", "1"])
        assert result.exit_code == 0, result.output
        return result.stdout.replace(f"{tmp_path}/", "").splitlines()

    told = "\n".join(add("a.prom", "b.prom"))
    assert "b.prom: 1 not stored: has " in told
    assert "101" in told
    assert "100" in told
    assert "in a.prom" in told
    assert "so neither is stored" in told
    assert [row["taken_ms"] for row in read_rows(data, table)] == [MS + 1], "what both say is stored once"
    add("a.prom", "c.prom")
    assert sorted(row["taken_ms"] for row in read_rows(data, table)) == [MS, MS + 1], "equal files contradict nothing"
    assert "is in the table already with other values, which stay" in "\n".join(add("b.prom"))


def test_samples_of_two_files_that_contradict_each_other_are_not_stored(tmp_path: Path) -> None:
    header, data = "taken_ms,topic,partition,start_offset,end_offset,size_bytes\n", tmp_path / "data"
    for name, end, size in (("a.csv", 100, ""), ("b.csv", 101, 5), ("c.csv", 100, 6)):
        (tmp_path / name).write_text(f"{header}{MS},t,0,10,{end},{size}\n{MS + 1},t,0,10,200,5\n")
    done = import_samples([tmp_path / "a.csv", tmp_path / "b.csv"], data, "c")
    assert [row["taken_ms"] for row in read_rows(data, SAMPLES)] == [MS + 1]
    first, second = (each.bad.first[SAME_KEY].text for each in done.files)
    assert first.startswith("end_offset is 100, and 101 in b.csv line 2: {")
    assert second.startswith("end_offset is 101, and 100 in a.csv line 2: {")
    again = import_samples([tmp_path / "a.csv", tmp_path / "c.csv"], data, "c")
    assert (again.added, again.known_already) == ({"samples": 1}, 3), "a size that is not known contradicts nothing"


def test_parquet_samples_may_have_other_types_and_damage_is_named(tmp_path: Path) -> None:
    columns = {
        "taken_ms": pa.array([MS, MS + 1], pa.int64()),
        "cluster_id": pa.array(["c", "c"]).dictionary_encode(),
        "topic": pa.array(["orders", "orders"], pa.large_string()),
        "partition": pa.array([0, 0], pa.int16()),
        "start_offset": pa.array([10.0, 10.0]),
        "end_offset": pa.array([100, None], pa.int64()),
        "size_bytes": pa.array([5000.0, float("nan")]),
    }
    whole, cut, damaged = (tmp_path / f"{name}.parquet" for name in ("whole", "cut", "damaged"))
    pq.write_table(pa.table(columns), whole)
    cut.write_bytes(whole.read_bytes()[:-10])
    later = pa.table({name: values.slice(0, 1) for name, values in columns.items()} | {"taken_ms": [MS + 9]})
    pq.write_table(pa.concat_tables([later] * 3), damaged, row_group_size=1, compression="snappy")
    page = pq.ParquetFile(damaged).metadata.row_group(1).column(0).data_page_offset
    damaged.write_bytes(damaged.read_bytes()[:page] + bytes(30) + damaged.read_bytes()[page + 30 :])
    words = ["import-samples", str(cut), str(damaged), str(whole), "--data", str(tmp_path / "data")]
    result = CliRunner().invoke(kreassign, words)
    assert result.exit_code == 2
    assert f"error: {cut}: it is cut off, or not a Parquet file" in result.stderr
    assert f"{damaged}: 2 rows" in result.stdout, "those before the damage, and those after it"
    assert f"{whole}: 1 not stored: end_offset is missing; first row 2" in result.stdout
    rows = {row["taken_ms"]: row for row in read_rows(tmp_path / "data", SAMPLES)}
    assert rows.keys() == {MS, MS + 9}
    assert (rows[MS]["end_offset"], rows[MS]["size_bytes"], rows[MS]["leader"]) == (100, 5000, -1)


def test_files_of_gigabytes_are_refused_before_they_fill_the_memory(tmp_path: Path) -> None:
    """A gigabyte without a line end, which takes no room on the disk."""
    large = tmp_path / "large"
    with large.open("wb") as opened:
        opened.write(b"x")
        opened.truncate(10**9)
    for command, why in (("import-samples", "line 1 has more than 1048576 bytes"), ("import-metrics", "touch -r")):
        result = CliRunner().invoke(
            kreassign, [command, str(large), "--data", str(tmp_path / "data"), "--cluster", "c"]
        )
        assert result.exit_code == 2
        assert f"{large}: " in result.stderr
        assert why in result.stderr
