"""PURE. A batch of judged records, and the metrics that are known already → what is stored, and what became of each.

A record is good when its key is new; of several with one key in a batch, the first by partition and offset. Others of
that key are late with the same value, and quarantined with another: nothing says which is right, so the one that is
stored stays, whatever is read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kreassign.pipeline.ingest.metric_rules import CLOCK_AHEAD, OF_NO_USE, OTHER_VALUE
from kreassign.pipeline.load.quality import GOOD
from kreassign.pipeline.load.rules import SAME_KEY, Treatment
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.schemas import METRIC_BATCHES, METRICS, METRICS_QUARANTINE, Row

Counts = Mapping[tuple[str, str | None], int]
"""Records by treatment and reason."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Where a batch comes from: the cluster of its metrics, its topic, the id of the checkpoint, its number."""

    cluster_id: str
    topic: str
    checkpoint: str
    number: int


@dataclass(frozen=True, slots=True)
class Sorted:
    """Rows for `metrics` and `metrics_quarantine`, how many records became what, the time of the latest."""

    metrics: pa.Table
    quarantined: pa.Table
    counts: Counts
    latest_ms: int


@dataclass(frozen=True, slots=True)
class BatchCount:
    """Records of one batch, or of several, by what became of them."""

    number: int
    counts: Counts

    def of(self, *treatments: str) -> int:
        """How many were treated so."""
        return sum(count for (treatment, _), count in self.counts.items() if treatment in treatments)

    def __str__(self) -> str:
        told = [
            f"{self.of(GOOD):,} rows",
            f"{self.of(Treatment.LATE):,} known before",
            f"{self.of(Treatment.QUARANTINED):,} quarantined (see table {METRICS_QUARANTINE.name})",
            f"{self.of(Treatment.SKIPPED):,} of no use here",
            f"{self.of(Treatment.COUNTED):,} with a clock ahead",
        ]
        return f"batch {self.number}: " + ", ".join(
            text for text in told if not text.startswith("0 ") or "rows" in text
        )


def sort_records(records: pa.Table, known: pa.Table, batch: Batch) -> Sorted:
    """Sort records (columns `JUDGED`) by how to treat them; `known` are rows of `metrics` with their times."""
    ordered = records.sort_by([("source_partition", "ascending"), ("source_offset", "ascending")])
    is_good = pc.is_null(ordered["reason"])
    bad = ordered.filter(pc.invert(is_good))
    metrics = ordered.filter(is_good)
    is_new, is_other = _compared(known, metrics.select(METRICS.column_names).cast(known.schema))
    skipped = pc.equal(bad["reason"], OF_NO_USE)
    others = metrics.filter(is_other)
    place = others.schema.get_field_index("reason")
    others = others.set_column(place, others.schema.field(place), [_repeated(OTHER_VALUE, len(others))])
    quarantined = pa.concat_tables([bad.filter(pc.invert(skipped)), others])
    new = metrics.filter(is_new)
    counts: Counter[tuple[str, str | None]] = Counter({(GOOD, None): new.num_rows})
    counts[Treatment.LATE, SAME_KEY] = int((~is_new & ~is_other).sum())
    counts[Treatment.SKIPPED, OF_NO_USE] = pc.sum(skipped).as_py() or 0
    counts[Treatment.COUNTED, CLOCK_AHEAD.reason] = pc.sum(new["is_ahead"]).as_py() or 0
    for reason in quarantined["reason"].to_pylist():
        counts[Treatment.QUARANTINED, reason] += 1
    latest_ms = pc.max(records["written_ms"]).as_py()
    return Sorted(new.select(METRICS.column_names), _quarantine_rows(quarantined, batch), counts, latest_ms)


def count_rows(batch: Batch, found: Sorted) -> list[Row]:
    """Rows of table `metric_batches`; what did not happen has none, but of good records there is one always."""
    return [
        {
            "cluster_id": batch.cluster_id,
            "source_topic": batch.topic,
            "checkpoint": batch.checkpoint,
            "batch": batch.number,
            "latest_ms": found.latest_ms,
            "treatment": str(treatment),
            "reason": reason,
            "records": count,
        }
        for (treatment, reason), count in found.counts.items()
        if count or treatment == GOOD
    ]


def _compared(known: pa.Table, metrics: pa.Table) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Of each metric, whether its key is new, and whether it has another value than the first of its key."""
    rows = pa.concat_tables([known, metrics])
    _, first, of_key = np.unique(_key_codes(rows), return_index=True, return_inverse=True)
    values = rows["value"].to_numpy()
    first_of_key = first[of_key]
    is_first = first_of_key == np.arange(len(rows))
    is_other = values != values[first_of_key]
    return is_first[len(known) :], is_other[len(known) :]


def _key_codes(rows: pa.Table) -> npt.NDArray[np.int64]:
    """A number for each row, the same for rows of the same key; NULL is a value like any other."""
    codes = np.zeros(len(rows), np.int64)
    for name in METRICS.key:
        coded = rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
        pairs = codes * max(1, len(coded.dictionary)) + coded.indices.to_numpy()
        codes = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return codes


def _quarantine_rows(records: pa.Table, batch: Batch) -> pa.Table:
    columns = {
        "cluster_id": _repeated(batch.cluster_id, len(records)),
        "source_topic": _repeated(batch.topic, len(records)),
        "table_name": _repeated(METRICS.name, len(records)),
        "row_json": pa.array([(value or b"").hex() for value in records["record"].to_pylist()], pa.string()),
    }
    found = {name: columns[name] if name in columns else records[name] for name in METRICS_QUARANTINE.column_names}
    return pa.table(found).cast(arrow_schema(METRICS_QUARANTINE))


def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)


BATCH_KEY = tuple(name for name in METRIC_BATCHES.key if name not in ("treatment", "reason"))
"""The columns of table `metric_batches` that say which batch it is."""
