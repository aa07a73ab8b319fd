"""The tables of a load → how much of each hour of the last day was measured. Needs no Spark.

Rules:

- The last day are the 24 hours before the last one of the tables, which goes on.
- Each partition of the load counts alike in each hour: one that was not there yet, or of which no sample came, is
  measured for none of it. So a collector that has stopped shows, and so does a broker that is not asked.
- A window is complete when nine tenths of it were measured, as a day is whole (`trend.py`).
"""

from __future__ import annotations

import numpy as np
import pyarrow.dataset as ds

from kreassign.model.load_summary import Window
from kreassign.pipeline.load.curves import HOUR_MS, HOURS_A_DAY, places_of
from kreassign.pipeline.load.summary import LoadColumns, floats, ints
from kreassign.pipeline.tables.parquet import Where, column_arrays, has_table, rows_in
from kreassign.pipeline.tables.published import log_of
from kreassign.pipeline.tables.schemas import LOAD_HOURS

_HOUR_S = 3600.0
_COLUMNS = ("topic", "partition", "hour_ms", "seconds")


def windows(where: Where, loads: LoadColumns) -> tuple[Window, ...]:
    """The hours of the last day, oldest first; none where no table tells of hours."""
    if not has_table(where, LOAD_HOURS):
        return ()
    log = log_of(where, LOAD_HOURS)
    ends = [int(file.highs["hour_ms"]) for file in log.files() if file.highs.get("hour_ms") is not None]
    if not ends:
        return ()
    end_ms = max(ends)
    begin_ms = end_ms - HOURS_A_DAY * HOUR_MS
    hour = ds.field("hour_ms")
    wanted = (ds.field("cluster_id") == loads.cluster_id) & (hour >= begin_ms) & (hour < end_ms)
    files = log.files(time="hour_ms", begin_ms=begin_ms, end_ms=end_ms)
    found = column_arrays(rows_in(log, files, wanted, _COLUMNS))
    is_known = places_of(loads, found) >= 0
    hours = ((ints(found["hour_ms"]) - begin_ms) // HOUR_MS)[is_known]
    parts = np.minimum(floats(found["seconds"])[is_known] / _HOUR_S, 1.0)
    shares = np.bincount(hours, parts, HOURS_A_DAY) / len(loads.partitions)
    return tuple(
        Window(begin_ms + place * HOUR_MS, min(float(share), 1.0)) for place, share in enumerate(shares.tolist())
    )
