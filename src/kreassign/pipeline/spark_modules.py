"""All modules that import PySpark and that an operation calls, for `operations/spark_jobs.py` to load together."""

from kreassign.pipeline.audit import data_audit, run_audit
from kreassign.pipeline.ingest import metric_stream
from kreassign.pipeline.load import job
from kreassign.pipeline.spark import parallel, session, watching

__all__ = ["data_audit", "job", "metric_stream", "parallel", "run_audit", "session", "watching"]
