"""The tables of metrics, described as those of `schemas.py` are."""

from __future__ import annotations

from kreassign.pipeline.tables.schemas import (
    BIGINT,
    BROKER,
    CLUSTER_ID,
    DOUBLE,
    INT,
    QUARANTINE_COLUMNS,
    STRING,
    Column,
    Table,
)

_STREAM = "kreassign stream-metrics"

METRICS = Table(
    "metrics",
    "Metrics that brokers told of themselves, by way of Prometheus or of Cruise Control's reporter.",
    "kreassign import-metrics` or `kreassign stream-metrics",
    ("cluster_id", "taken_ms", "broker", "topic", "partition", "name"),
    (
        CLUSTER_ID,
        Column("taken_ms", BIGINT, "when the metric was taken"),
        BROKER,
        Column("topic", STRING, "topic that it is about; NULL for metrics of the whole broker", nullable=True),
        Column(
            "partition",
            INT,
            "partition that it is about; NULL for metrics of a topic or the whole broker",
            nullable=True,
        ),
        Column(
            "name",
            STRING,
            "what it is: counters end in `_total`, rates in `_per_s`, parts of one in `_share`, the rest says its unit",
        ),
        Column("value", DOUBLE, "its value"),
    ),
)

METRICS_QUARANTINE = Table(
    "metrics_quarantine",
    "Records of a topic of metrics that say nothing, each with the reason.",
    _STREAM,
    ("row_json",),
    QUARANTINE_COLUMNS,
)

METRIC_BATCHES = Table(
    "metric_batches",
    "Records of a topic of metrics by what became of them, batch by batch of the stream.",
    _STREAM,
    ("batch", "verdict"),
    (
        Column("batch", BIGINT, "number of the batch"),
        Column("verdict", STRING, "`good`: in `metrics`; `bad`: in `metrics_quarantine`; `late`: behind the watermark"),
        Column("records", BIGINT, "how many; of late ones only when the stream has told, which a killed one may not"),
    ),
)

METRIC_TABLES = (METRICS, METRICS_QUARANTINE, METRIC_BATCHES)
