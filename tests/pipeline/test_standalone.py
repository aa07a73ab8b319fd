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
from kreassign.operations.plan_files import read_plan_file
from kreassign.pipeline.load.job import run_load
from kreassign.pipeline.tables.audit_schemas import DATA_AUDIT
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import LOAD_MODEL, PLAN_INPUTS
from testbed import KafkaCluster
from testbed.jars import spark_kafka_jars
from testbed.java import spark_flags
from testbed.records import load_topic
from testbed.spark import StandaloneSpark
from tests.pipeline.clusters import fill

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGED = ("src", "pyproject.toml", "README.md", "LICENSE")
# What a user writes too: spark-submit runs files, not commands. The package must come from the wheel. One Java that
# carries out several commands spares them its start.
PROGRAM = """
import sys
import kreassign
from kreassign.cli.main import kreassign as group
assert ".zip" in kreassign.__file__, kreassign.__file__
for command in " ".join(sys.argv[1:]).split(" then "):
    if code := group.main(command.split(), prog_name="kreassign", standalone_mode=False):
        sys.exit(code)
"""
CONF = (
    *("spark.sql.shuffle.partitions=2", "spark.executor.memory=1g", "spark.driver.memory=1g", "spark.ui.enabled=false"),
    *(f"spark.{process}.extraJavaOptions={' '.join(spark_flags())}" for process in ("driver", "executor")),
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


def test_the_load_is_the_same_as_on_a_laptop_by_spark_submit_and_by_spark_connect(
    cluster: StandaloneSpark, submit: Submit, spark: SparkSession, tmp_path: Path
) -> None:
    here, submitted, connected = (tmp_path / name for name in ("here", "submitted", "connected"))
    for data in (here, submitted, connected):
        fill(data)
    run_load(spark, here, lambda _: None)
    submit("load", "--data", submitted.as_uri())
    with cluster.connect_server(CONF) as address:
        # A process has either a session of its own or one of a server.
        command = [sys.executable, "-c", "from kreassign.cli.main import main; main()", "load", "--data", connected]
        done = subprocess.run([*command, "--master", address], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for table in (LOAD_MODEL, PLAN_INPUTS):
        rows = sorted(map(str, read_rows(here, table)))
        assert sorted(map(str, read_rows(submitted, table))) == rows
        assert sorted(map(str, read_rows(connected, table))) == rows


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


@pytest.mark.kafka
def test_the_workflow_on_a_real_cluster_from_samples_to_audits(
    submit: Submit, kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    one, two, *_ = sorted(kafka.brokers)
    kafka.create_topic(topic_name, [[one, two], [two, one]] * 6)
    written = load_topic(kafka.bootstrap_servers, topic_name, dict.fromkeys(range(12), 1_000_000), seed=1)
    plan = tmp_path / "plan.json"
    where = ("--bootstrap-server", kafka.bootstrap_servers)
    data, state = ("--data", tmp_path / "data"), ("--state-dir", tmp_path / "state")
    jars = ",".join(map(str, sorted(spark_kafka_jars().glob("*.jar"))))
    with_kafka = [f"spark.jars={jars}"]
    records = ("audit", "records", "--topics", topic_name, *where, *data, "--label")

    said = submit(
        *("collect", *where, *data, "--interval", "1s", "--rounds", 3),
        *("then", "load", *data),
        *("then", "plan", "rebalance", "--topic", topic_name, "--on", "spark", "--parts", "2", "--out", plan, *data),
        *("then", *records, "before"),
        conf=with_kafka,
    )
    assert f"before: {written.count} records of 12 partitions" in said
    moves = len(read_plan_file(plan).plan.replicas)
    assert moves > 0

    run = json.loads(done_here("run", plan, *where, *state, "--format", "json"))
    done_here("collect", *where, *data, "--rounds", 1)
    said = submit(
        *("audit", "run", run["run_id"], *data, *state),
        *("then", *records, "after"),
        *("then", "audit", "compare", "before", "after", *data),
        conf=with_kafka,
    )
    assert f"done, {moves} of {moves} moves complete" in said
    assert {row["verdict"] for row in read_rows(tmp_path / "data", DATA_AUDIT)} == {"same"}


def done_here(*arguments: object) -> str:
    """What a command prints that needs no Spark."""
    result = CliRunner().invoke(kreassign, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout
