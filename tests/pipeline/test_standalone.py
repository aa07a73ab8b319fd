"""The whole pipeline on a real standalone cluster of Spark, with spark-submit and a wheel of the package."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kreassign.cli.main import kreassign
from kreassign.errors import DataError
from kreassign.operations.plan_files import read_plan_file
from kreassign.pipeline.load.job import run_load
from kreassign.pipeline.tables.commits import last_load
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import DATA_AUDIT, LOAD_HOURS, LOAD_MODEL, PLAN_INPUTS
from testbed import KafkaCluster
from testbed.jars import spark_kafka_jars
from testbed.java import spark_flags
from testbed.records import load_topic
from testbed.spark import StandaloneSpark
from testbed.waiting import wait_until
from tests.pipeline.clusters import fill

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGED = ("src", "pyproject.toml", "README.md", "LICENSE")
# What a user writes too: spark-submit runs files, not commands. The package must come from the wheel. One Java that
# carries out several commands spares them its start.
CLIENT = """
import sys
from kreassign.cli.main import kreassign as group
for command in " ".join(sys.argv[1:]).split(" then "):
    if code := group.main(command.split(), prog_name="kreassign", standalone_mode=False):
        sys.exit(code)
"""
PROGRAM = f"""
import kreassign
assert ".zip" in kreassign.__file__, kreassign.__file__
{CLIENT}
"""
# The last ones as in a small session on a laptop: to compile what runs once takes most of the time.
CONF = (
    *("spark.sql.shuffle.partitions=2", "spark.executor.memory=1g", "spark.driver.memory=1g", "spark.ui.enabled=false"),
    *(f"spark.{process}.extraJavaOptions={' '.join(spark_flags())}" for process in ("driver", "executor")),
    *("spark.sql.codegen.wholeStage=false", "spark.sql.codegen.factoryMode=NO_CODEGEN"),
)

Submit = Callable[..., str]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, under a name that Spark takes: a wheel is a zip."""
    folder = tmp_path_factory.mktemp("package")
    source = folder / "source"
    source.mkdir()
    for name in PACKAGED:
        place = REPOSITORY / name
        (shutil.copytree if place.is_dir() else shutil.copy)(place, source / name)
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet"]
    subprocess.run([*build, "-w", str(folder), str(source)], check=True, capture_output=True, timeout=300)
    (wheel,) = folder.glob("kreassign-*.whl")
    return wheel.rename(folder / "kreassign.zip")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneSpark]:
    with StandaloneSpark(tmp_path_factory.mktemp("standalone")) as running:
        yield running


@pytest.fixture(scope="module")
def submit(cluster: StandaloneSpark, package: Path) -> Submit:
    program = cluster.folder / "kreassign-main.py"
    program.write_text(PROGRAM)

    def run(*arguments: object, conf: Sequence[str] = ()) -> str:
        finished = cluster.submit(program, *map(str, arguments), py_files=package, conf=[*CONF, *conf])
        assert finished.exit_code == 0, finished.stdout[-2000:] + finished.stderr[-4000:]
        return finished.stdout

    return run


def test_a_server_of_spark_connect_that_is_not_there_is_told_soon(tmp_path: Path) -> None:
    fill(tmp_path)
    result = CliRunner().invoke(kreassign, ["load", "--data", str(tmp_path), "--master", "sc://127.0.0.1:1"])
    assert "no server of Spark Connect answers at sc://127.0.0.1:1 within" in result.stderr
    assert result.exit_code != 0


def test_a_stream_is_refused_on_spark_connect(tmp_path: Path) -> None:
    topic = ("--bootstrap-server", "127.0.0.1:1", "--topic", "metrics", "--cluster", "c", "--data", str(tmp_path))
    result = CliRunner().invoke(kreassign, ["stream-metrics", *topic, "--master", "sc://127.0.0.1:1"])
    assert "a stream cannot run on Spark Connect" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_load_survives_an_executor_that_is_killed(
    cluster: StandaloneSpark, spark: SparkSession, tmp_path: Path
) -> None:
    """Rows that the executor had judged are lost after the first table was committed, and judged again."""
    here, there = tmp_path / "here", tmp_path / "there"
    for each in (here, there):
        fill(each)
    run_load(spark, here, lambda _: None)
    with cluster.connect_server(CONF) as address:
        load = begin_a_load(cluster, there, address)
        cluster.kill_executor()
        assert load.wait(300) == 0
    for table in (LOAD_MODEL, PLAN_INPUTS):
        assert sorted(map(str, read_rows(there, table))) == sorted(map(str, read_rows(here, table)))


@pytest.mark.kafka
def test_the_workflow_runs_by_spark_connect_and_spark_submit(
    cluster: StandaloneSpark, submit: Submit, kafka: KafkaCluster, topic_name: str, spark: SparkSession, tmp_path: Path
) -> None:
    """From samples to audits. Loads make the same tables as on a laptop, also after one whose client was killed."""
    here, submitted, killed = (tmp_path / name for name in ("here", "submitted", "killed"))
    for each in (here, submitted, killed):
        fill(each)
    run_load(spark, here, lambda _: None)

    one, two, *_ = sorted(kafka.brokers)
    kafka.create_topic(topic_name, [[one, two], [two, one]] * 6)
    written = load_topic(kafka.bootstrap_servers, topic_name, dict.fromkeys(range(12), 1_000_000), seed=1)
    plan, plan_again = tmp_path / "plan.json", tmp_path / "plan-again.json"
    where = ("--bootstrap-server", kafka.bootstrap_servers)
    data, state = ("--data", tmp_path / "data"), ("--state-dir", tmp_path / "state")
    with_kafka = f"spark.jars={','.join(map(str, sorted(spark_kafka_jars().glob('*.jar'))))}"
    records = ("audit", "records", "--topics", topic_name, *where, *data, "--label")
    planning = ("plan", "rebalance", "--topic", topic_name, "--on", "spark", "--parts", 2, *data)
    planning = (*planning, "--as-of", "last", "--out")  # before the run and after it
    done_here("collect", *where, *data, "--interval", "1s", "--rounds", 3)

    with cluster.connect_server([*CONF, with_kafka]) as address:
        kill_a_load(cluster, killed, address)
        loads = ("load", "--data", killed), ("load", *data)
        said = connect(cluster, address, *loads, (*planning, plan), (*records, "before"))
        assert f"before: {written.count} records of 12 partitions" in said
        moves = len(read_plan_file(plan).plan.replicas)
        assert moves > 0

        run = json.loads(done_here("run", "--yes", plan, *where, *state, "--format", "json"))["run_id"]
        done_here("collect", *where, *data, "--rounds", 1)
        audits = (("audit", "run", run, *data, *state), ("audit", "compare", "before", "after", *data))
        said = connect(cluster, address, (*records, "after"), *audits)
    assert f"done, {moves} of {moves} moves complete" in said
    assert verdicts(tmp_path / "data", "after") == {"same"}

    commands = ("load", "--data", submitted.as_uri()), (*planning, plan_again), (*records, "again")
    said = submit(*[word for command in commands for word in ("then", *command)][1:], conf=[with_kafka])
    assert f"again: {written.count} records of 12 partitions" in said
    assert read_plan_file(plan_again).plan == read_plan_file(plan).plan

    for table in (LOAD_MODEL, PLAN_INPUTS):
        rows = sorted(map(str, read_rows(here, table)))
        for each in (submitted, killed):
            assert sorted(map(str, read_rows(each, table))) == rows


def connect(cluster: StandaloneSpark, address: str, *commands: Sequence[object]) -> str:
    """Output of commands whose Spark part is a server's, one after the other in one process of their own."""
    words = " then ".join(" ".join(map(str, (*command, "--master", address))) for command in commands)
    done = cluster.run_here([sys.executable, "-c", CLIENT, words])
    assert done.exit_code == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert not [line for line in done.stderr.splitlines() if line.startswith(("error", "warning", "Traceback"))]
    return done.stdout


def begin_a_load(cluster: StandaloneSpark, data: Path, address: str) -> subprocess.Popen[bytes]:
    """Begin a load, and wait until it has committed a table."""
    command = [sys.executable, "-c", CLIENT, f"load --data {data} --master {address}"]
    running = cluster.spawn_here(command)
    commit = data / LOAD_HOURS.name / "_delta_log" / f"{1:020}.json"
    wait_until(lambda: commit.exists() or running.poll() is not None, timeout_s=300, what="a commit of a load")
    assert commit.exists()
    assert running.poll() is None
    return running


def kill_a_load(cluster: StandaloneSpark, data: Path, address: str) -> None:
    """Begin a load and kill it once it has committed a table. The server hears nothing of it, and may go on."""
    running = begin_a_load(cluster, data, address)
    running.kill()
    running.wait(60)
    assert last_load(data) is None
    with pytest.raises(DataError, match=r"no load that made table load_hours in .* was finished"):
        read_rows(data, LOAD_HOURS)


def verdicts(data: Path, after: str) -> set[str]:
    return {row["verdict"] for row in read_rows(data, DATA_AUDIT, only={"after": after})}


def done_here(*arguments: object) -> str:
    """Output of a command that needs no Spark."""
    result = CliRunner().invoke(kreassign, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout
