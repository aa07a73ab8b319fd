"""The told error of the load against the true one: cohorts that are spoilt in known ways, through the whole job."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.known_load import PARTITIONS_PER_TOPIC, Shape, write_round_file, write_snapshot
from bench.load_cohorts import COHORTS, HOURS, INTERVAL_S, ROUNDS, Cohort, cohorts
from bench.process import run_kreassign
from kreassign.pipeline.load.judge import JUDGED, TO_JUDGE, judge
from kreassign.pipeline.load.partition_loads import HOUR_COLUMNS, IS_COMPACTED, partition_loads
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import LOAD_MODEL, OPEN_SAMPLES, SAMPLES, Row

WRONG = 0.1
"""A rate that is further from the truth is wrong."""
_STATISTICS = ("write_bytes_per_s", "p95_write_bytes_per_s")


OTHER_SEEDS = range(100, 120)
"""Constants were set after looking at cohorts of seeds 7 and 11 to 13: these say how they do on others."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Output of the job for cohorts: rows of `load_model`, number of samples, processor seconds."""

    known: tuple[Cohort, ...]
    rows: list[Row]
    samples: int
    cpu_s: float

    def of(self, number: int) -> list[Row]:
        """The rows of one cohort."""
        return [row for row in self.rows if _of(row) == number]


def measure(count: int = PARTITIONS_PER_TOPIC, seed: int = 7) -> None:
    """Print a row per cohort of so many partitions."""
    done = _loaded(count, seed)
    print(
        f"{len(done.known)} cohorts of {count} partitions, seed {seed}, {HOURS} hours, a round every {INTERVAL_S} s, "
        f"{done.samples:,} samples; the job took {done.cpu_s:.0f} CPU s:\n"
    )
    print("| cohort | mean: error | told | held | p95: error | told | held | `enough` | wrong among them |")
    print("|---|---|---|---|---|---|---|---|---|")
    for number, cohort in enumerate(done.known):
        print(_line(cohort, done.of(number)))
    print(f"\nOf all {len(done.rows)}: {_summary(done.known, done.rows)}")


def measure_others(count: int = 20) -> None:
    """Print a row per cohort, over all other seeds together; without Spark, whose rules of one row matter to few."""
    print(f"{len(COHORTS)} cohorts of {count} partitions, for each of {len(OTHER_SEEDS)} seeds:\n")
    print("| cohort | `enough` | wrong among them | `doubtful` | held |")
    print("|---|---|---|---|---|")
    totals = [0, 0, 0, 0]
    for name in COHORTS:
        held: list[bool] = []
        enough = wrong = doubtful = 0
        for seed in OTHER_SEEDS:
            (cohort,) = cohorts(count, seed, [name])
            rows = loads_of(cohort)
            enough += sum(row["verdict"] == "enough" for row in rows)
            doubtful += sum(row["verdict"] == "doubtful" for row in rows)
            wrong += sum(row["verdict"] == "enough" and is_wrong(cohort, row) for row in rows)
            held += _held(cohort, rows)
        totals = [one + more for one, more in zip(totals, (enough, wrong, sum(held), len(held)), strict=True)]
        print(f"| {name} | {enough} | {wrong} | {doubtful} | {np.mean(held):.0%} |", flush=True)
    enough, wrong, inside, told = totals
    print(f"\nOf all: {wrong} of {enough} `enough` are wrong by more than {WRONG:.0%}; {inside / told:.1%} are held.")


def loads_of(cohort: Cohort) -> list[Row]:
    """Loads of a cohort, computed in this process: a row per partition."""
    samples = _samples(0, cohort, range(ROUNDS + 1))
    columns = {name: samples[name] for name in samples.column_names} | {
        "is_new": pa.array(np.ones(len(samples), np.bool_))
    }
    schema = arrow_schema(OPEN_SAMPLES).append(pa.field("is_new", pa.bool_()))
    none = {field.name: pa.nulls(len(samples), field.type) for field in schema}
    given = pa.table(none | columns, schema=schema).select(TO_JUDGE).combine_chunks()
    judged = pa.Table.from_batches(judge(given.to_batches()), schema=JUDGED)
    found = pa.Table.from_struct_array(judged["hour"].combine_chunks().drop_null())
    compacted = pa.array([True if cohort.is_compacted else None] * len(found), pa.bool_())
    hours = found.append_column(IS_COMPACTED, compacted).select(HOUR_COLUMNS).combine_chunks()
    return [row for batch in partition_loads(hours.to_batches()) for row in batch.to_pylist()]


def _loaded(count: int, seed: int) -> Loaded:
    known = cohorts(count, seed)
    with tempfile.TemporaryDirectory() as folder:
        samples = _write(Path(folder), known)
        done = run_kreassign("load", "--data", folder)
        rows = [row for row in read_rows(Path(folder), LOAD_MODEL) if row["partition"] < count]
    return Loaded(known, rows, samples, done.cpu_s)


def _held(cohort: Cohort, rows: Iterable[Row]) -> list[bool]:
    """For each figure: True if the true value is in its interval."""
    return [
        _is_held(row, name, truth(cohort, row["partition"])[name])
        for row in rows
        for name in _STATISTICS
        if row[name] is not None
    ]


def truth(cohort: Cohort, partition: int) -> dict[str, float]:
    """Written rates: their mean, and the 95th percentile of the rounds."""
    rates = cohort.true_rates(partition)
    return {"write_bytes_per_s": float(rates.mean()), "p95_write_bytes_per_s": float(np.quantile(rates, 0.95))}


def _line(cohort: Cohort, rows: list[Row]) -> str:
    cells = [cohort.name]
    for name in _STATISTICS:
        pairs = [(row, truth(cohort, row["partition"])[name]) for row in rows]
        errors = [_error(row[name], true) for row, true in pairs if row[name] is not None]
        widths = [_told(row, name) for row, _ in pairs if row[name] is not None]
        held = [_is_held(row, name, true) for row, true in pairs if row[name] is not None]
        worst = f"{np.median(errors):.1%}, {max(errors):.1%}" if errors else "none"
        cells += [worst, f"{np.median(widths):.1%}" if widths else "", f"{np.mean(held):.0%}" if held else ""]
    enough = [row for row in rows if row["verdict"] == "enough"]
    cells += [f"{len(enough) / len(rows):.0%}", f"{sum(is_wrong(cohort, row) for row in enough)}"]
    return "| " + " | ".join(cells) + " |"


def _summary(known: Iterable[Cohort], rows: list[Row]) -> str:
    of = [(cohort, row) for number, cohort in enumerate(known) for row in rows if _of(row) == number]
    enough = [(cohort, row) for cohort, row in of if row["verdict"] == "enough"]
    wrong = [(cohort, row) for cohort, row in of if row["write_bytes_per_s"] is not None and is_wrong(cohort, row)]
    held = [one for cohort, row in of for one in _held(cohort, [row])]
    return (
        f"{np.mean(held):.1%} of the true figures are in their interval; {len(wrong)} partitions are wrong by more "
        f"than {WRONG:.0%}, {sum(is_wrong(*pair) for pair in enough)} of them among the {len(enough)} called `enough`."
    )


def _of(row: Row) -> int:
    return int(row["topic"].removeprefix("topic-"))


def _error(told: float, true: float) -> float:
    return abs(told - true) / true if true else float(told != 0)


def _told(row: Row, name: str) -> float:
    """Half of the width of the interval, as a share of the figure."""
    low, high = row.get(f"low_{name}"), row.get(f"high_{name}")
    if low is None or high is None or not row[name]:
        return 0.0
    return float((high - low) / 2 / row[name])


def _is_held(row: Row, name: str, true: float) -> bool:
    low, high = row.get(f"low_{name}", row[name]), row.get(f"high_{name}", row[name])
    assert low is not None
    assert high is not None
    return bool(low <= true <= high)


def is_wrong(cohort: Cohort, row: Row) -> bool:
    """True if the mean or the 95th percentile that is told is further from the truth than a tenth, or unknown."""
    true = truth(cohort, row["partition"])
    return any(row[name] is None or _error(row[name], true[name]) > WRONG for name in _STATISTICS)


def _write(data_dir: Path, known: tuple[Cohort, ...]) -> int:
    """The tables that `kreassign collect` writes; a file per hour, in which rows are in no order of time."""
    write_snapshot(
        data_dir, Shape(partitions=len(known) * PARTITIONS_PER_TOPIC, days=HOURS / 24, interval_s=INTERVAL_S)
    )
    written = 0
    per_hour = 3600 // INTERVAL_S
    for hour in range(HOURS + 1):
        rounds = range(hour * per_hour, min((hour + 1) * per_hour, HOURS * per_hour + 1))
        written += write_round_file(
            data_dir, hour * 3_600_000, [_samples(number, cohort, rounds) for number, cohort in enumerate(known)]
        )
    return written


def _samples(topic: int, cohort: Cohort, rounds: range) -> pa.Table:
    seen, part = cohort.history, slice(rounds.start, rounds.stop)
    there = seen.is_there[part].ravel()
    count = int(there.sum())
    name = f"topic-{topic:04}"

    def ints(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], kind: pa.DataType) -> pa.Array:
        flat = values[part].ravel()[there]
        return pa.array(np.nan_to_num(flat).astype(np.int64), mask=np.isnan(flat)).cast(kind)

    partitions = np.broadcast_to(np.arange(seen.records.shape[1]), seen.records[part].shape).ravel()[there]
    ids = seen.topic_id[part].ravel()[there].astype(int).astype(str)
    columns = {
        "cluster_id": pa.array(np.repeat("synthetic", count)),
        "taken_ms": ints(seen.at_ms, pa.int64()),
        "topic": pa.array(np.repeat(name, count)),
        "topic_id": pa.array(np.char.add(f"{name}-", ids)),
        "partition": pa.array(partitions.astype(np.int32)),
        "leader": ints(seen.leader, pa.int32()),
        "start_offset": ints(seen.start, pa.int64()),
        "end_offset": ints(seen.end, pa.int64()),
        "size_bytes": ints(seen.size, pa.int64()),
    }
    return pa.table(columns, schema=arrow_schema(SAMPLES))
