"""The Spark session of every data command: quiet on the terminal, its failures reported in one line."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeGuard

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

try:
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder
except ImportError:  # only who speaks to a server of Spark Connect needs them
    grpc = None

from kreassign.errors import DataError
from kreassign.model.spark_options import LOCAL_SPARK, SparkOptions
from kreassign.pipeline.tables.object_store import meaning, spark_settings
from kreassign.pipeline.tables.private_folder import make_private_folder

_STDERR = 2
_Settings = dict[str, bool | float | int | str | None]

_SETTINGS: _Settings = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}
# On one machine: nothing listens to the outside, Java gets more than its one gigabyte, and data is not cut into two
# hundred pieces; Spark itself puts pieces together that turn out small.
_LOCAL_SETTINGS: _Settings = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "16",
    # A job with a task for each file would look for files whose places the log of the table has told.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
}

# With little data most of the time goes into making code fast that then runs once.
_SMALL_SETTINGS: _Settings = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
}
SMALL_ROWS = 500_000
"""Up to so many rows a session is best started as a small one."""


@contextmanager
def spark_session(
    log_file: Path,
    options: SparkOptions = LOCAL_SPARK,
    *,
    name: str = "kreassign load",
    jars: Sequence[Path] = (),
    is_small: bool = False,
) -> Iterator[SparkSession]:
    """A Spark session whose log goes to a file.

    The master is local[*] by default; under spark-submit, which decides that itself, it is left alone. With an address
    of Spark Connect, `sc://host:port`, everything but time zone and the settings that are given is the server's own.
    `jars` are added to the class path of the session. One that `is_small` is quick with little data, on this machine,
    and slow with much (`SMALL_ROWS`). DataError when Spark cannot start, or fails at anything later.
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
        # Else its workers run whatever `python3` is first in PATH, which need not have any of our packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # Spark's pages would listen on every address: no setting but this variable says where.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
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
    """All that Spark is told of a session, but for Spark Connect; what it is not told, Spark has its own default for.

    Those of `options` come before ours. spark-submit, which `environment` tells, has settled the master and its sizes.
    """
    settings = dict(_SETTINGS)
    if jars:
        settings["spark.jars"] = ",".join(str(jar) for jar in jars)
    if not _is_submitted(environment):
        settings["spark.master"] = options.master or "local[*]"
        if _is_local(options.master):
            settings |= _LOCAL_SETTINGS | (_SMALL_SETTINGS if is_small else {})
        settings |= spark_settings(environment)
    return {**settings, **options.conf}


def _is_submitted(environment: Mapping[str, str]) -> bool:
    """Whether spark-submit has started this process."""
    return "PYSPARK_GATEWAY_PORT" in environment


def pages_of(session: SparkSession) -> str | None:
    """The address of Spark's own pages about this session; None where it has none, or a server has them."""
    return session.sparkContext.uiWebUrl if isinstance(session, SparkSession) else None


_CONNECT_S = 10.0


def is_connect(master: str | None) -> TypeGuard[str]:
    """Whether it is the address of a server of Spark Connect."""
    return master is not None and master.startswith("sc://")


@contextmanager
def _connected(address: str, conf: Mapping[str, str], name: str, jars: Sequence[Path]) -> Iterator[SparkSession]:
    """A session of a server of Spark Connect."""
    if jars:
        names = ", ".join(jar.name for jar in jars)
        raise DataError(f"{address} cannot be given jars by a client: start the server with --jars, and {names}")
    if grpc is None:
        raise DataError("Spark Connect needs more packages: pip install 'pyspark[connect]'")
    channel = DefaultChannelBuilder(address).toChannel()
    try:
        # Spark's own client tries for ten minutes.
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
# What Java says somewhere in its trace, and what to do about it; the first that is found.
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
    """Turn what Spark raises, and the pages of Java's trace in it, into a DataError of one line with what to do."""
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


# What Spark says around what happened: the failed task, Java's classes, codes, and settings that no option sets.
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
    """What happened, without what Spark says around it: of its message, else of the first cause that says anything."""
    causes = (line.removeprefix(_CAUSE) for line in _whole(error).splitlines() if line.startswith(_CAUSE))
    told = (_plain(line) for line in (_first_line(error), *causes))
    return next((text for text in told if text and not _SAYS_NOTHING.match(text)), _plain(_first_line(error)))


def _plain(text: str) -> str:
    while (shorter := _AROUND.sub("", text)) != text:
        text = shorter
    return text.strip()


def _whole(error: Exception) -> str:
    """Spark's message with Java's trace, which PySpark's own exceptions keep beside it."""
    return f"{error}\n{getattr(error, '_stackTrace', '') or ''}"


def _first_line(error: Exception) -> str:
    """The line of Spark's message that says what happened; Java's are buried below a line of py4j's."""
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[1].removeprefix(": ") if isinstance(error, Py4JJavaError) and len(lines) > 1 else lines[0]


def _is_local(master: str | None) -> bool:
    return (master or "local[*]").startswith("local")


@contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    """Send what this process, and any it starts meanwhile, writes to its error stream to a file.

    The Java process inherits the stream when it is started and keeps it. Only so do its first lines, which no
    setting of Spark's reaches, stay off the terminal.
    """
    kept = os.dup(_STDERR)
    with file.open("ab") as stream:
        os.dup2(stream.fileno(), _STDERR)
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
