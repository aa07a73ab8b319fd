"""The rules of plausibility of what comes from elsewhere: which rows are not stored, how they are treated, and why.

Metrics come in files (`import-metrics`) and from a topic (`stream-metrics`); both are judged by `_OF_METRICS`, and each
by what only its source can tell: the clock to compare with, and whether broker -1 is anybody. Of samples from files the
times are judged, because rows are stored by their hour; all else about them `kreassign load` judges, among their
neighbours (`pipeline/load/rules.py`).

They are conditions as in `load/rules.py`, in the SQL that Spark and SQLite (`plausible.py`) read alike. Rules of files
see the columns of the table and `:now_ms`, the time of the import. Rules of a topic see the columns of `metrics` and
`written_ms`, the time of the record, and nothing else: a record that is read again is judged as before.
"""

from __future__ import annotations

from collections.abc import Mapping

from kreassign.pipeline.ingest.exporters import METRIC_NAMES, NO_BROKER
from kreassign.pipeline.load.rules import (
    AHEAD_MS,
    LARGEST_DISK_BYTES,
    LARGEST_LOG_BYTES,
    MOST_BYTES_PER_S,
    MOST_RECORDS_PER_S,
    SAME_KEY,
    Rule,
    Treatment,
    broker_rule,
    partition_rule,
    time_rules,
)
from kreassign.pipeline.tables.schemas import METRICS, SAMPLES, Table

CLOCK_MS = 60_000
"""Clocks that are further apart than a minute are not kept together by anything."""
LARGEST_COUNTER = 2.0**63
LARGEST_SHARE = 2
"""Idle shares are a little above 1 at times, and up to 2 where broker and controller share one pool."""
OF_NO_USE = "it is a metric of no use here"
OTHER_VALUE = "another value of the same key is kept"

_OF_METRICS = (
    partition_rule(METRICS),
    Rule(METRICS, "partition is given without a topic", "partition >= 0 AND topic IS NULL", "it is that of no log"),
    Rule(
        METRICS,
        "topic is not a name that Kafka allows",
        "topic REGEXP '[^a-zA-Z0-9._-]' OR length(topic) NOT BETWEEN 1 AND 249 OR topic IN ('.', '..')",
        "letters, digits, dots, underscores and dashes, 249 at most",
    ),
    Rule(
        METRICS,
        "name is not one of table metrics",
        f"name NOT IN ({', '.join(repr(name) for name in sorted(METRIC_NAMES))})",
        "nothing reads it, so it is a mistake, or of a later version",
    ),
    Rule(
        METRICS,
        "value is not a finite number",
        "isnan(value) OR ABS(value) > 1.7976931348623157E308",
        "NaN is how Prometheus ends a series, and infinity a division by zero",
    ),
    Rule(METRICS, "value is negative", "value < 0", "-1 is how some tools say unknown"),
    Rule(
        METRICS,
        "value is a percentage, not a share",
        f"name LIKE '%_share' AND value > {LARGEST_SHARE}",
        "a share is from 0 to 1; idle shares are up to 2 where broker and controller share one pool",
    ),
    Rule(
        METRICS,
        "value is more bytes per second than a network can bring",
        f"name LIKE '%bytes%_per_s' AND value > {MOST_BYTES_PER_S}",
        "50 GB/s, a network of 400 Gb/s",
    ),
    Rule(
        METRICS,
        "value is more per second than a broker can do",
        f"name LIKE '%_per_s' AND name NOT LIKE '%bytes%' AND value > {MOST_RECORDS_PER_S}",
        "a hundred million records or requests per second",
    ),
    Rule(
        METRICS,
        "value is more than a counter holds",
        f"name LIKE '%_total' AND value >= {LARGEST_COUNTER!r}",
        "counters of Kafka have 64 bits",
    ),
    Rule(
        METRICS,
        "value is more bytes than a disk holds",
        f"name = 'size_bytes' AND partition >= 0 AND value > {LARGEST_LOG_BYTES}",
        "256 TiB: a log is in one directory of one broker",
    ),
    Rule(
        METRICS,
        "value is more bytes than a topic has",
        f"name = 'size_bytes' AND value > {LARGEST_DISK_BYTES}",
        "an exbibyte",
    ),
)
"""Rules of one metric, wherever it comes from."""


def _times(table: Table) -> tuple[Rule, ...]:
    return (
        *time_rules(table),
        Rule(
            table,
            "taken_ms is more than an hour ahead",
            f"taken_ms > :now_ms + {AHEAD_MS}",
            "nothing is measured after it is imported, but clocks differ",
        ),
    )


IMPORT_RULES: Mapping[Table, tuple[Rule, ...]] = {
    METRICS: (
        *_times(METRICS),
        Rule(METRICS, "broker is negative", f"broker < {NO_BROKER}", "-1 is for metrics of a whole cluster"),
        *_OF_METRICS,
    ),
    SAMPLES: _times(SAMPLES),
}
"""Rules of rows from files by table, in the order in which they are tried."""

METRIC_RULES = (
    *time_rules(METRICS),
    Rule(
        METRICS,
        "taken_ms is more than an hour ahead of its record",
        f"written_ms >= 0 AND taken_ms > written_ms + {AHEAD_MS}",
        "no metric is written before it is taken, but clocks differ; it would count as the latest",
    ),
    broker_rule(METRICS),
    *_OF_METRICS,
)
"""Rules of one record of a topic, in the order in which they are tried."""

CLOCK_AHEAD = Rule(
    METRICS,
    "the clock of its broker is more than a minute ahead of its record",
    f"written_ms >= 0 AND taken_ms > written_ms + {CLOCK_MS}",
    "it concerns this broker only: no record is compared with the clock of another one",
    Treatment.COUNTED,
)
TOLD_RULES = (
    CLOCK_AHEAD,
    Rule(
        METRICS,
        OF_NO_USE,
        "one of Cruise Control's metrics that are not in the table of names",
        "times of requests and lengths of queues, which nothing here reads",
        Treatment.SKIPPED,
    ),
    Rule(
        METRICS,
        SAME_KEY,
        f"a metric with the same {', '.join(METRICS.key)} and value was read before",
        "a producer that had no answer sent it again, or the topic is read again",
        Treatment.LATE,
    ),
    Rule(
        METRICS,
        OTHER_VALUE,
        f"a metric with the same {', '.join(METRICS.key)} and another value was read before",
        "one of the two is wrong, and nothing says which: the first one stays, whatever is read again",
    ),
)
"""Rules of records that no rule above is true of, told in words but for the first."""

STREAM_RULES = METRIC_RULES + TOLD_RULES
