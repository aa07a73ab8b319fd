"""All modules that import PySpark and that an operation calls, for `operations/snapshot_files.py` to load together."""

from kreassign.pipeline import data_audit, run_audit, spark_session
from kreassign.pipeline.ingest import metric_stream
from kreassign.pipeline.load import job

__all__ = ["data_audit", "job", "metric_stream", "run_audit", "spark_session"]
