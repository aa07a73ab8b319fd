"""The whole pipeline on a real standalone cluster of Spark, with spark-submit and a wheel of the package."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kreassign.cli.plan_files import read_plan_file
from kreassign.pipeline.job import run_load
from kreassign.pipeline.rows import read_rows
from kreassign.pipeline.run_schemas import AUDIT_MOVES
from kreassign.pipeline.schemas import LOAD_MODEL, PLAN_INPUTS
from testbed.spark import StandaloneSpark
from tests.cli.test_plan_many import snapshot
from tests.executor.worlds import World
from tests.pipeline.clusters import fill

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGED = ("src", "pyproject.toml", "README.md", "LICENSE")
# What a user writes too: spark-submit runs files, not commands. The package must come from the wheel.
PROGRAM = """
import kreassign
from kreassign.cli.main import main
assert ".zip" in kreassign.__file__, kreassign.__file__
main()
"""
CONF = ("spark.sql.shuffle.partitions=2", "spark.executor.memory=1g", "spark.driver.memory=1g")

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
def submit(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Submit]:
    folder = tmp_path_factory.mktemp("standalone")
    program = folder / "kreassign-main.py"
    program.write_text(PROGRAM)
    with StandaloneSpark(folder) as cluster:

        def run(*arguments: object) -> str:
            finished = cluster.submit(program, *map(str, arguments), py_files=package, conf=CONF)
            assert finished.exit_code == 0, finished.stdout[-2000:] + finished.stderr[-4000:]
            return finished.stdout

        yield run


def test_the_load_is_the_same_as_on_a_laptop(submit: Submit, spark: SparkSession, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    fill(here)
    fill(there)
    run_load(spark, here, lambda _: None)
    submit("load", "--data", there.as_uri())
    for table in (LOAD_MODEL, PLAN_INPUTS):
        assert sorted(map(str, read_rows(there, table))) == sorted(map(str, read_rows(here, table)))


def test_executors_plan_and_audit(submit: Submit, tmp_path: Path) -> None:
    file = snapshot(tmp_path, "c1")
    data = tmp_path / "data"
    out = tmp_path / "plan.json"
    words = ("--on", "spark", "--parts", "2", "--out", out, "--data", data)
    submit("plan", "rebalance", "--snapshot", file, *words)
    assert read_plan_file(out).plan.replicas

    world = World(tmp_path / "state", [[0, 1]])
    assert world.run(world.prepared({0: (2, 1)})).state == "done"
    said = submit("audit", "run", "run-1", "--data", data, "--state-dir", world.state_dir)
    assert "run run-1 of cluster twin: done, 1 of 1 moves complete" in said
    (move,) = read_rows(data, AUDIT_MOVES)
    assert move["copied_bytes"] == move["predicted_bytes"] > 0
