"""Files as real exporters and APIs write them, modelled on their documentation, and what is read from one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kreassign.pipeline.ingest.exporters import BadRow, FileOrigin, metric_rows, of_brokers
from kreassign.pipeline.ingest.imported_samples import PartitionReadings
from kreassign.pipeline.ingest.measure_files import parse
from kreassign.pipeline.tables.schemas import Row

GOLDEN = Path(__file__).parent / "golden"
SOURCES = {
    "jmx-exporter.txt": "https://github.com/prometheus/jmx_exporter/blob/main/examples/kafka-kraft-3_0_0.yml and, "
    "without rules, its README: the names that both make of Kafka's MBeans; counters as release 1.0 names them",
    "kafka-exporter.txt": "https://github.com/danielqsj/kafka_exporter/blob/master/README.md, release 1.10.0: section "
    "Metrics, with its output examples",
    "kminion.txt": "https://github.com/redpanda-data/kminion/blob/master/docs/metrics.md",
    "msk-open-monitoring.txt": "https://docs.aws.amazon.com/msk/latest/developerguide/prometheus-metrics.html: all "
    "MBeans by the JMX exporter on port 11001; it has no rules there, so its default format",
    "query-range.json": "https://prometheus.io/docs/prometheus/3.5/querying/api/: range queries, result type matrix",
    "openmetrics.txt": "https://prometheus.io/docs/specs/om/open_metrics_spec/, OpenMetrics 1.0: times in seconds, "
    "exemplars, _total and _created, # EOF",
    "remote-read.json": "https://prometheus.io/docs/prometheus/3.5/querying/remote_read_api/: the message TimeSeries "
    "of prompb/types.proto in protobuf's JSON",
    "confluent-export.txt": "https://api.telemetry.confluent.cloud/docs, version 2: export",
    "confluent-query.json": "https://api.telemetry.confluent.cloud/docs, version 2: query, joined with its answer",
}
"""Where the form of each file comes from. Names, labels and forms are theirs; the values are ours."""
READ_MS = 1_750_000_500_000
"""When pages without times were read."""
NOBODY: Mapping[str, int] = {}


@dataclass(frozen=True)
class Read:
    """Rows of both tables, and what is in none."""

    metrics: list[Row]
    samples: list[Row]
    bad: list[BadRow]

    @property
    def values(self) -> list[tuple[object, ...]]:
        """The metrics in short."""
        names = ("broker", "topic", "taken_ms", "name", "value")
        return [tuple(row[name] for name in names) for row in self.metrics]

    @property
    def offsets(self) -> list[tuple[object, ...]]:
        """The samples in short."""
        names = ("partition", "taken_ms", "leader", "start_offset", "end_offset", "size_bytes")
        return [tuple(row[name] for name in names) for row in self.samples]


def read(*contents: bytes, cluster: str = "c", broker: int | None = None, brokers: Mapping[str, int] = NOBODY) -> Read:
    """Rows of files that are imported together."""
    partitions = PartitionReadings(cluster)
    metrics: list[Row] = []
    bad: list[BadRow] = []
    for number, content in enumerate(contents, start=1):
        found = parse(content)
        origin = FileOrigin(cluster, READ_MS, broker, brokers, f"file-{number}.txt")
        readings = of_brokers(found.readings, origin)
        metrics.extend(one.row for one in metric_rows(readings, origin))
        bad.extend([*found.unreadable, *partitions.add(readings, origin)])
    samples = partitions.samples()
    return Read(metrics, list(samples.rows), [*bad, *samples.bad])


def golden(name: str) -> bytes:
    """A file of this folder."""
    return (GOLDEN / name).read_bytes()
