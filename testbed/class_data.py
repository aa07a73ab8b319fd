"""Archives of class data: Java maps one into memory at its start, and need not read and check thousands of classes.

A broker with an archive starts with half of the work. `python -m testbed.class_data 4.4.0` runs Kafka's programs of
that version once, notes which classes they load and writes the archive beside the jars; `python -m testbed.class_data
spark` does so for Spark. Without it all runs as well, slower. See `-Xshare:dump` and `-XX:ArchiveClassesAtExit` in the
documentation of `java`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from testbed.cluster import KafkaCluster
from testbed.jars import class_archive, class_path
from testbed.java import QUICK_START, java_binary
from testbed.spec import ClusterSpec

_TOOLS = (
    ("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--list"),
    ("org.apache.kafka.tools.TopicCommand", "--describe"),
    ("org.apache.kafka.tools.LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions"),
)


def write_archive(version: str) -> None:
    """Write the archive of a version; CalledProcessError, with what Java said, if it cannot."""
    archive = class_archive(f"kafka-{version}")
    with tempfile.TemporaryDirectory() as name:
        names = Path(name) / "classes"
        names.write_text("\n".join(_classes(version, Path(name))) + "\n")
        part = archive.with_suffix(".part")
        files = (f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={part}")
        command = [java_binary(), *QUICK_START, "-Xshare:dump", *files, "-cp", class_path(version)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        part.rename(archive)


def _classes(version: str, folder: Path) -> Iterator[str]:
    """The names of all classes that clusters and tools load, each once, in the order in which they were loaded."""
    # By this variable the clusters need not know of it. `%p` is the id of the process.
    os.environ["JDK_JAVA_OPTIONS"] = f"-XX:DumpLoadedClassList={folder}/%p.names"
    _run(ClusterSpec(version=version, brokers=1))
    if version.startswith("3."):
        _run(ClusterSpec(version=version, brokers=1, mode="zookeeper"))
    del os.environ["JDK_JAVA_OPTIONS"]
    lines = (line for file in sorted(folder.glob("*.names")) for line in file.read_text().splitlines())
    yield from dict.fromkeys(lines)


def _run(spec: ClusterSpec) -> None:
    """Start a cluster, use it a little and stop it: a node that is killed leaves half a name behind."""
    with KafkaCluster.start(spec) as cluster:
        cluster.create_topic("any", [[0]])
        for main_class, *words in _TOOLS:
            cluster.java_tool(main_class, "--bootstrap-server", cluster.bootstrap_servers, *words, in_own_java=True)
        others = (cluster.zookeeper,) if cluster.zookeeper else cluster.controllers.values()
        for node in (*cluster.brokers.values(), *others):
            node.stop()


# What the tests do with Spark, in small. Java writes the archive after the end of the session, at its own end.
_SPARK_PROGRAM = """
import sys
from pathlib import Path
from pyspark import SparkContext
from pyspark.sql import Window, functions as f
from kreassign.model.load import SparkOptions
from kreassign.pipeline.spark_session import spark_session

folder = Path(sys.argv[1])
with spark_session(folder / "log", SparkOptions("local[2]")) as session:
    values = [(number % 3, number, str(number)) for number in range(9)]
    rows = session.createDataFrame(values, "a int, b long, c string")
    rows.write.partitionBy("a").parquet(str(folder / "rows"))
    rows = session.read.parquet(str(folder / "rows"))
    ranked = rows.withColumn("rank", f.row_number().over(Window.partitionBy("a").orderBy("b")))
    sums = rows.groupBy("a").agg(f.sum("b").alias("s"), f.max("c"), f.percentile_approx("b", 0.5))
    ranked.join(sums, "a", "left").where("s > 3").orderBy("b").collect()
    rows.mapInPandas(lambda frames: frames, rows.schema).toPandas()
    gateway = SparkContext._gateway
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait()
"""


def write_spark_archive() -> None:
    """Write the archive of Spark's driver and of what it runs on this machine."""
    archive = class_archive("spark")
    part = archive.with_suffix(".part")
    options = " ".join((*QUICK_START, f"-XX:ArchiveClassesAtExit={part}", "-Xlog:disable"))
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"SPARK_SUBMIT_OPTS": options, "PYARROW_IGNORE_TIMEZONE": "1"}
        subprocess.run([sys.executable, "-c", _SPARK_PROGRAM, folder], check=True, env=environment, cwd=folder)
    part.rename(archive)


if __name__ == "__main__":
    write_spark_archive() if sys.argv[1] == "spark" else write_archive(sys.argv[1])
