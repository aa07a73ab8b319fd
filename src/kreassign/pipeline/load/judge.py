"""Judge all samples of some partitions: the work of each task of a load. Arrow batches in, Arrow batches out.

Decisions about a partition need all its samples. `rates.py` and `hours.py` make them with arrays, many partitions at a
time; here rows become arrays, and results become rows again, those of `JUDGED`:

    hour        a row of table `load_hours`, and the number of new samples in it
    kept        a sample that is kept: the next load reads it again, or it is bad or odd and set aside
    late_count  number of new samples that came after their hour was closed; one row per call

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kreassign.pipeline.load.hours import Hours, Opened, codes, column, floats, hours, key_numbers, mask, opened
from kreassign.pipeline.load.rates import PARTITION_KEY, REASONS, IntervalVerdict, Ints, Rates, Samples, Series, rates
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.schemas import LOAD_HOURS, OPEN_SAMPLES

TO_JUDGE = (*OPEN_SAMPLES.column_names, "is_new")
"""Columns of samples to judge: those of table `open_samples`.

Samples that are `is_new` have only the columns of table `samples`, and a `reason` if they are bad.
"""
_KEPT_AS = ("is_new", "is_set_aside", "is_read_again")
_COUNTS = ("new_count", "new_twice_count")
JUDGED = pa.schema(
    {
        "hour": pa.struct([*arrow_schema(LOAD_HOURS), *(pa.field(name, pa.int64()) for name in _COUNTS)]),
        "kept": pa.struct([*arrow_schema(OPEN_SAMPLES), *(pa.field(name, pa.bool_()) for name in _KEPT_AS)]),
        "late_count": pa.int64(),
    }
)


def judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Judge all samples of some partitions: columns `TO_JUDGE` in, `JUDGED` out."""
    all_batches = list(batches)
    if not all_batches:
        return
    table = pa.Table.from_batches(all_batches).combine_chunks()
    is_bad = pc.and_(table["is_new"], pc.is_valid(table["reason"]))
    bad = table.filter(is_bad)
    every, none = (pa.repeat(truth, len(bad)) for truth in (True, False))
    # They belong to no open hour.
    yield _rows("kept", _struct("kept", bad, {"is_closed": every, "is_set_aside": every, "is_read_again": none}))
    good = table.filter(pc.invert(is_bad)).combine_chunks()
    order, series = in_order(good)
    is_late = mask(good["is_new"])[order] & (
        floats(good["taken_ms"])[order] < series.largest(floats(good["open_from_ms"])[order])
    )
    yield _rows("late_count", pa.array([is_late.sum()]))
    if not is_late.all():
        yield from _judged(good.take(order[~is_late]), series.only(~is_late))


def _judged(rows: pa.Table, series: Series) -> Iterator[pa.RecordBatch]:
    """Judge rows in the order of their series."""
    reasons, samples = samples_of(rows, series)
    told = rates(samples)
    which = opened(samples, told)
    if (found := hours(samples, told, which.is_open, mask(rows["is_new"]))) is not None:
        yield _rows("hour", _hours(rows, told, which, found))
    is_odd = ~samples.is_closed & (told.verdict == IntervalVerdict.ODD)
    is_read_again = which.is_open | which.is_neighbour
    kept = np.flatnonzero(is_read_again | is_odd)
    decided = {
        "open_from_ms": column(which.open_from_ms[kept], pa.int64()),
        "is_closed": ~which.is_open[kept],
        "reason": reasons.take(pa.array(told.reason[kept])),
        # The next load decides again for open hours.
        "is_clean": pa.array(told.is_clean[kept], mask=which.is_open[kept]),
        "epoch": pa.array(told.epoch[kept], pa.int32(), mask=which.is_open[kept]),
        "is_set_aside": is_odd[kept],
        "is_read_again": is_read_again[kept],
    }
    yield _rows("kept", _struct("kept", rows.take(kept), decided))


def in_order(table: pa.Table) -> tuple[Ints, Series]:
    """Order of the samples by partition and time, and the partitions' bounds."""
    number = key_numbers(table, PARTITION_KEY)
    # Rows of the same time are sorted by size, so that the last is the same whatever else is read with them.
    size = np.nan_to_num(floats(table["size_bytes"]), nan=-1.0)
    order = np.lexsort((size, floats(table["end_offset"]), floats(table["taken_ms"]), number))
    return order, Series.of(number[order])


def samples_of(rows: pa.Table, series: Series) -> tuple[pa.Array, Samples]:
    """Texts of the reasons by code, and the samples as arrays."""
    known = pa.array(REASONS[1:])
    others = pc.unique(rows["reason"]).drop_null()
    known = pa.concat_arrays([known, others.filter(pc.invert(pc.is_in(others, known)))])
    log = codes(rows["topic_id"])
    is_closed = mask(rows["is_closed"])
    return pa.concat_arrays([pa.nulls(1, pa.string()), known]), Samples(
        series=series,
        topic_id=np.where(log < 0, np.nan, log),
        is_closed=is_closed,
        was_clean=mask(rows["is_clean"]),
        reason_before=pc.index_in(rows["reason"], known).fill_null(-1).to_numpy() + 1,
        epoch_before=rows["epoch"].fill_null(-1).to_numpy(),
        open_from_before=floats(rows["open_from_ms"]),
        **{name: floats(rows[name]) for name in ("taken_ms", "leader", "start_offset", "end_offset", "size_bytes")},
    )


def _hours(rows: pa.Table, told: Rates, which: Opened, found: Hours) -> pa.StructArray:
    """Rows of table `load_hours`, with the counts."""
    last = rows.take(pa.array(found.last, mask=found.last < 0))
    of_last = {f"last_{name}": last[name] for name in ("leader", "start_offset", "end_offset", "size_bytes")}
    begins = pa.array(found.rates.begins, pa.int32())
    histogram = {
        name: pa.ListArray.from_arrays(begins, pa.array(values, pa.int32()))
        for name, values in (("rate_bins", found.rates.bins), ("rate_counts", found.rates.counts))
    }
    made = {"epoch": told.epoch[found.first], "is_open": which.is_open[found.first]}
    return _struct("hour", rows.take(found.first), {**found.figures, **of_last, **histogram, **made})


def _struct(name: str, rows: pa.Table, columns: Mapping[str, Any]) -> pa.StructArray:
    """Structs for a column of `JUDGED`: the given fields, the others from the rows."""
    fields = list(JUDGED.field(name).type)
    return pa.StructArray.from_arrays(
        [column(columns[field.name] if field.name in columns else rows[field.name], field.type) for field in fields],
        fields=fields,
    )


def _rows(name: str, values: pa.Array) -> pa.RecordBatch:
    """Rows of `JUDGED` with only this column set."""
    columns = [values if field.name == name else pa.nulls(len(values), field.type) for field in JUDGED]
    return pa.RecordBatch.from_arrays(columns, schema=JUDGED)
