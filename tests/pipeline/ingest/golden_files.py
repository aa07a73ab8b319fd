"""Files as real exporters and APIs write them, modelled on their documentation, and what is read from one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kreassign.pipeline.ingest.measure_files import parse
from kreassign.pipeline.ingest.metric_rows import Origin, metric_rows, of_brokers
from kreassign.pipeline.ingest.partition_samples import PartitionReadings
from kreassign.pipeline.ingest.readings import BadRow
from kreassign.pipeline.tables.schemas import Row

GOLDEN = Path(__file__).parent / "golden"
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
    """What files that are imported together have."""
    partitions = PartitionReadings(cluster)
    metrics: list[Row] = []
    bad: list[BadRow] = []
    for number, content in enumerate(contents, start=1):
        found = parse(content)
        origin = Origin(cluster, READ_MS, broker, brokers, f"file-{number}.txt")
        readings = of_brokers(found.readings, origin)
        metrics.extend(one.row for one in metric_rows(readings, origin))
        bad.extend([*found.unreadable, *partitions.add(readings, origin)])
    samples = partitions.samples()
    return Read(metrics, list(samples.rows), [*bad, *samples.bad])


def golden(name: str) -> bytes:
    """A file of this folder."""
    return (GOLDEN / name).read_bytes()
