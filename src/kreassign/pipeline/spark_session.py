"""The Spark session of every data command, its progress, and functions that run on its executors.

The session is quiet on the terminal; its failures are reported in one line. Executors load this module for
`map_on_executors`, so nothing here may import deltalake.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import __version__
from pyspark.errors import AnalysisException, PySparkException, PySparkRuntimeError
from pyspark.logger import PySparkLogger
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import SparkSession

from kreassign.errors import DataError
from kreassign.model.load import LOCAL_SPARK, SparkOptions
from kreassign.pipeline.tables.access import make_private_folder, meaning, spark_settings

try:
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder
except ImportError:  # only needed with a server of Spark Connect
    grpc = None


_STDERR = 2
_Settings = dict[str, bool | float | int | str | None]

_SETTINGS: _Settings = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}
# On one machine: bind to this host only, give Java more than its default of 1 GiB, and replace the default of two
# hundred partitions; Spark merges small ones itself.
_LOCAL_SETTINGS: _Settings = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "16",
    # The Delta log already lists the files; a job with a task per file would list them a second time.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
}

# With little data most of the time goes into compiling code that then runs once, and into jobs: adaptive execution runs
# one for each stage, and every broadcast is one. Small tables are read by one task, which needs neither.
_SMALL_SETTINGS: _Settings = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
}
SMALL_ROWS = 500_000
"""Largest number of rows for which to start a session with `is_small`."""
MOST_LOG_BYTES = 1 << 26
"""Size of Spark's log beyond which a session begins a new one."""


# Jars of Spark's Kafka source, which is not part of PySpark. It has to be of Spark's line, not of its patch.

KAFKA_SOURCES = {"4.0": "4.0.0", "4.1": "4.1.1", "4.2": "4.2.0"}
"""Releases of the Kafka source that are whole in the registry, by line of Spark."""

_KAFKA_SOURCE = re.compile(r"spark-sql-kafka-.*-(\d+\.\d+)\.[^-]*\.jar")


@contextmanager
def reading_kafka(spark: SparkSession) -> Iterator[None]:
    """Raise DataError with the jars to take, if Spark has no Kafka source."""
    try:
        yield
    except AnalysisException as error:
        if not _NO_SOURCE.search(str(error)):
            raise
        raise DataError(f"Spark has no Kafka source; {kafka_jars(line_of(spark.version))}") from error


_NO_SOURCE = re.compile("Failed to find (the )?data source")


def line_of(version: str) -> str:
    """The line of a version of Spark, such as 4.1 for 4.1.3."""
    return ".".join(version.split(".")[:2])


def kafka_jars(line: str) -> str:
    """Advice about a missing Kafka source on this line of Spark, as an imperative."""
    release = KAFKA_SOURCES.get(line)
    if release is None:
        known = ", ".join(KAFKA_SOURCES)
        return (
            f"none is known for Spark {line} (known: {known}): name the folder of one of that line with --jars, or "
            "install PySpark of a known line"
        )
    return f"name the folder with org.apache.spark:spark-sql-kafka-0-10_2.13:{release} and what it needs with --jars"


def _check_jars(jars: Sequence[Path], line: str) -> None:
    """Raise DataError for a Kafka source of another line of Spark, before Spark starts with it."""
    for jar in jars:
        if (found := _KAFKA_SOURCE.fullmatch(jar.name)) is not None and found[1] != line:
            raise DataError(f"{jar} is for Spark {found[1]}, and this is Spark {line}; {kafka_jars(line)}")


@contextmanager
def spark_session(
    log_file: Path,
    options: SparkOptions = LOCAL_SPARK,
    *,
    name: str = "kreassign load",
    jars: Sequence[Path] = (),
    is_small: bool = False,
) -> Iterator[SparkSession]:
    """Start a Spark session whose log goes to a file.

    The master is local[*] by default; spark-submit sets its own, which is left alone. With an address of Spark Connect,
    `sc://host:port`, only the time zone and the given settings are set; the server decides the rest. `jars` are added
    to the class path. `is_small` makes a local session quick with little data and slow with much (`SMALL_ROWS`). Raises
    DataError when Spark cannot start, or fails at anything later.
    """
    make_private_folder(log_file.parent)
    master = options.master
    if is_connect(master):
        with failures_told(log_file), _connected(master, options.conf, name, jars) as session:
            yield session
        return
    settings = session_settings(options, os.environ, jars=jars, is_small=is_small)
    builder = SparkSession.builder.appName(name).config(map=settings)
    if not _is_submitted(os.environ) and _is_local(master):
        # Otherwise its workers run the first `python3` in PATH, which may lack our packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # Spark's web UI would listen on every address; only this variable restricts it.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    begin_log(log_file)
    try:
        with _stderr_to(log_file):
            session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise DataError(f"Spark did not start; it needs Java 17. Its own words are in {log_file}") from error
    try:
        with failures_told(log_file):
            yield session
    finally:
        session.stop()


def session_settings(
    options: SparkOptions, environment: Mapping[str, str], *, jars: Sequence[Path] = (), is_small: bool = False
) -> _Settings:
    """Settings of a new session, except for Spark Connect; Spark has defaults for all others.

    Those of `options` win over ours. spark-submit, seen in `environment`, has already set the master and its sizes.
    """
    settings = dict(_SETTINGS)
    _check_jars(jars, line_of(__version__))
    if jars:
        settings["spark.jars"] = ",".join(str(jar) for jar in jars)
    if not _is_submitted(environment):
        settings["spark.master"] = options.master or "local[*]"
        if _is_local(options.master):
            settings |= _LOCAL_SETTINGS | (_SMALL_SETTINGS if is_small else {})
        settings |= spark_settings(environment)
    return {**settings, **options.conf}


def _is_submitted(environment: Mapping[str, str]) -> bool:
    """True if spark-submit started this process."""
    return "PYSPARK_GATEWAY_PORT" in environment


def pages_of(session: SparkSession) -> str | None:
    """Address of Spark's web UI for this session; None without one or on Spark Connect."""
    return session.sparkContext.uiWebUrl if isinstance(session, SparkSession) else None


_CONNECT_S = 10.0


def is_connect(master: str | None) -> TypeGuard[str]:
    """True for the address of a Spark Connect server."""
    return master is not None and master.startswith("sc://")


@contextmanager
def _connected(address: str, conf: Mapping[str, str], name: str, jars: Sequence[Path]) -> Iterator[SparkSession]:
    """Open a session on a Spark Connect server."""
    if jars:
        names = ", ".join(jar.name for jar in jars)
        raise DataError(f"{address} cannot be given jars by a client: start the server with --jars, and {names}")
    if grpc is None:
        raise DataError("Spark Connect needs more packages: pip install 'pyspark[connect]'")
    channel = DefaultChannelBuilder(address).toChannel()
    try:
        # Spark's own client retries for ten minutes.
        grpc.channel_ready_future(channel).result(timeout=_CONNECT_S)
    except grpc.FutureTimeoutError as error:
        raise DataError(f"no server of Spark Connect answers at {address} within {_CONNECT_S:.0f} s") from error
    finally:
        channel.close()
    session = SparkSession.builder.appName(name).remote(address).getOrCreate()
    try:
        session.conf.set("spark.sql.session.timeZone", "UTC")
        for key, value in conf.items():
            session.conf.set(key, value)
        yield session
    finally:
        session.stop()


_FILE_GONE = "A file went away while it was read: run it again, with no other load or compact beside it."
_FILE_DAMAGED = "Remove the file that it names, or write it again, and run it again."
_RECORDS_GONE = (
    "Records went away before they were read, or the topic was made again. Of a stream, remove the topic's folder "
    "in _metrics_checkpoint and run it again: it reads what there is, and nothing comes twice."
)
# Patterns in Java's trace, and the advice for each; the first match wins.
_ADVICE = (
    ("No space left on device", "The disk is full: free space and run it again."),
    ("OutOfMemoryError", "Java's memory is too small: give Spark more, as with spark.driver.memory, and run it again."),
    ("FileNotFoundException", _FILE_GONE),
    ("FILE_NOT_EXIST", _FILE_GONE),
    ("ChecksumException", _FILE_DAMAGED),
    ("is not a Parquet file", _FILE_DAMAGED),
    ("FAILED_READ_FILE", _FILE_DAMAGED),
    ("CANNOT_READ_FILE", _FILE_DAMAGED),
    ("KAFKA_DATA_LOSS", _RECORDS_GONE),
    ("may have been missed", _RECORDS_GONE),
    ("Permission denied", "Give this user the right to read and write the data directory."),
)
_NO_ADVICE = "Nothing was changed but tables that were already finished; running it again makes all of them again."
# PySpark prints its errors as JSON on the terminal before it raises them.
_ERRORS_PRINTED_BY = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


@contextmanager
def failures_told(log_file: Path) -> Iterator[None]:
    """Turn what Spark raises, Java's trace included, into a DataError of one line with advice."""
    for name in _ERRORS_PRINTED_BY:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise DataError(
            f"Spark failed: {_sentence(error)} {_advice(error)} The whole of it is in {log_file}"
        ) from error


def _advice(error: Exception) -> str:
    whole = _whole(error)
    if "s3a" in whole and (store := meaning(whole)):
        return f"{store[0].upper()}{store[1:]}."
    return next((advice for words, advice in _ADVICE if words in whole), _NO_ADVICE)


# What Spark wraps around the cause: the failed task, Java's classes, codes, and settings that no option sets.
_AROUND = re.compile(
    r"""^Query[ ]\[id[ ]=.*?terminated[ ]with[ ]exception:[ ]
      | ^Job[ ]aborted[ ].*?Lost[ ]task[ ].*?\):[ ]
      | ^(?:[a-z]\w*\.)+\w+:[ ]
      | ^\[[A-Z_.0-9]+\][ ]
      | [ ]*SQLSTATE:[ ]\w+.*$
      | [ ]*(?:If[ ]necessary|Use[ ]['`"]?try_).*$""",
    re.VERBOSE,
)
_SAYS_NOTHING = re.compile(
    "Exception thrown in awaitResult|Job aborted|An error occurred while calling|Failed to create new KafkaAdminClient"
    "|Failed to create new NetworkClient"
)
_CAUSE = "Caused by: "


def _sentence(error: Exception) -> str:
    """The cause without Spark's wrapping: from the message, else from the first cause with a text."""
    causes = (line.removeprefix(_CAUSE) for line in _whole(error).splitlines() if line.startswith(_CAUSE))
    told = (_plain(line) for line in (_first_line(error), *causes))
    return next((text for text in told if text and not _SAYS_NOTHING.match(text)), _plain(_first_line(error)))


def _plain(text: str) -> str:
    while (shorter := _AROUND.sub("", text)) != text:
        text = shorter
    return text.strip()


def _whole(error: Exception) -> str:
    """Spark's message plus Java's trace, which PySpark's own exceptions keep in `_stackTrace`."""
    return f"{error}\n{getattr(error, '_stackTrace', '') or ''}"


def _first_line(error: Exception) -> str:
    """The line of Spark's message that names the error; py4j puts its own line above Java's."""
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[1].removeprefix(": ") if isinstance(error, Py4JJavaError) and len(lines) > 1 else lines[0]


def _is_local(master: str | None) -> bool:
    return (master or "local[*]").startswith("local")


def begin_log(file: Path) -> None:
    """Put a long log away as `spark.log.1`, in place of an older one: a load an hour adds to it for years."""
    with suppress(OSError):  # a log that cannot be put away is added to
        if file.stat().st_size > MOST_LOG_BYTES:
            file.replace(file.with_name(f"{file.name}.1"))


@contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    """Redirect the error stream of this process and of processes it starts meanwhile to a file.

    The Java process inherits the stream at its start and keeps it. No setting of Spark's reaches its first lines; this
    keeps them off the terminal.
    """
    kept = os.dup(_STDERR)
    with file.open("ab") as stream:
        os.dup2(stream.fileno(), _STDERR)
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)


# Progress of a Spark session, reported while it works.
#
# Spark draws its own progress bar on Java's error stream, which is our log. A local session is polled by a thread, as
# the watched job waits for Spark; a Spark Connect server reports by itself.

EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks done and in total, over the stages that Spark works on. Spark counts no rows of these."""

    done: int
    count: int

    def __str__(self) -> str:
        return f"{self.done} of {self.count} tasks"


@contextmanager
def watched(session: Any, tell: Callable[[Tasks], None]) -> Iterator[None]:
    """Report the progress of a session from a thread of its own, every half second while it works."""
    watch = _asked if isinstance(session, SparkSession) else _told_by_server
    with watch(session, tell):
        yield


@contextmanager
def _asked(session: SparkSession, tell: Callable[[Tasks], None]) -> Iterator[None]:
    end = threading.Event()

    def ask() -> None:
        tracker = session.sparkContext.statusTracker()
        # A session that ends meanwhile has no progress to report.
        with suppress(Py4JError, OSError):
            while not end.wait(EVERY_S):
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                if found := _sum((one.numCompletedTasks, one.numTasks) for one in stages if one is not None):
                    tell(found)

    thread = threading.Thread(target=ask, name="progress of Spark", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


@contextmanager
def _told_by_server(session: Any, tell: Callable[[Tasks], None]) -> Iterator[None]:
    def hear(stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        del inflight_tasks, operation_id, done
        active = ((one.num_completed_tasks, one.num_tasks) for one in stages or ())
        if found := _sum((done, count) for done, count in active if done < count):
            tell(found)

    session.registerProgressHandler(hear)
    try:
        yield
    finally:
        session.removeProgressHandler(hear)


def _sum(stages: Iterable[tuple[int, int]]) -> Tasks | None:
    found = list(stages)
    return Tasks(sum(done for done, _ in found), sum(count for _, count in found)) if found else None


# Run a function of many values on executors, a task per value, whatever it computes.

_Value = TypeVar("_Value")
_Answer = TypeVar("_Answer")

_PICKLER: Any = CloudPickleSerializer()  # PySpark has no types for it
_SCHEMA = "number int, body binary"


def map_on_executors(
    spark: SparkSession, function: Callable[[_Value], _Answer], values: Sequence[_Value]
) -> list[_Answer]:
    """Apply the function to each value on executors, a task per value; results keep the order.

    Function, values and answers travel pickled, and the executors need the package installed that defines them. An
    exception of the function ends the job.
    """
    bodies = [_PICKLER.dumps(value) for value in values]
    rows = spark.createDataFrame(
        pa.table({"number": pa.array(range(len(bodies)), pa.int32()), "body": pa.array(bodies, pa.binary())})
    )
    # Each number gets its own partition: hashing would put several into one and leave executors idle.
    dealt = rows.repartitionByRange(max(1, len(bodies)), "number")
    found = dealt.mapInArrow(_answers(_PICKLER.dumps(function)), _SCHEMA).collect()
    answers = {row["number"]: row["body"] for row in found}
    return [_PICKLER.loads(bytes(answers[number])) for number in range(len(bodies))]


def _answers(
    pickled: bytes,
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        function = _PICKLER.loads(pickled)
        for batch in batches:
            for number, body in zip(batch.column("number").to_pylist(), batch.column("body").to_pylist(), strict=True):
                found = _PICKLER.dumps(function(_PICKLER.loads(body)))
                yield pa.RecordBatch.from_arrays(
                    [pa.array([number], pa.int32()), pa.array([found], pa.binary())], names=["number", "body"]
                )

    return answer
