"""The modules that need PySpark, loaded when a command comes to them: it is an extra, and `--help` must not need it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from kreassign.errors import KreassignError

SPARK_LOG = "spark.log"
"""The name of the file beside the tables to which Spark logs."""


def spark_log(data: Path | str | None) -> Path:
    """Where Spark logs to: into the directory, or the working directory if the data has an address, or none is used."""
    return (data if isinstance(data, Path) else Path()) / SPARK_LOG


class SparkJobs(NamedTuple):
    """The modules of that name in `kreassign.pipeline`."""

    session: ModuleType
    job: ModuleType
    data_audit: ModuleType
    metric_stream: ModuleType
    parallel: ModuleType
    run_audit: ModuleType
    watching: ModuleType


def spark_jobs(what: str) -> SparkJobs:
    """Load them. Raises KreassignError, which says that `what` needs PySpark and what to install."""
    try:
        from kreassign.pipeline import spark_modules as found  # noqa: PLC0415 - PySpark is an extra, and slow to load
    except ImportError as error:
        raise KreassignError(f"{what} needs PySpark ({error}): pip install 'kreassign[spark]'") from error
    return SparkJobs(*(getattr(found, name) for name in SparkJobs._fields))
