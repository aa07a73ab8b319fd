"""DataFrame → DataFrame. Which samples a load judges: good ones that are new, and those that the load before left.

Each row that was read is one of these, by its `reason`:

    good    judged now
    bad     a rule of one row is true of it (`rules.py`): set aside, with the row as JSON in `bad_json`
    late    its hour is closed: it stays in table `samples`, and a load of all samples counts it

Bad and late rows take the same way as the others, so that the samples are read once and all are counted at its end. (An
`Observation` would wait for ever where Spark finds that no row is left.) They are spread over partitions that no topic
has, for nothing in their key can be relied upon.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kreassign.pipeline.load.checks import SCREENED, screen
from kreassign.pipeline.load.hours import reopened
from kreassign.pipeline.load.rates import BAD, DECIDED, PARTITION_KEY, REASON
from kreassign.pipeline.load.rules import HOUR_CLOSED
from kreassign.pipeline.tables.schemas import SAMPLES

_SPREAD = 256


def to_judge(samples: DataFrame, left_open: DataFrame | None, now_ms: int) -> DataFrame:
    """The samples for `rates`, with `bad_json`: new rows of table `samples`, and those of table `open_samples`."""
    screened = screen(SAMPLES, samples, now_ms).judged
    if left_open is None:
        return _marked(screened)
    bounds = left_open.groupBy(*PARTITION_KEY).agg(sql.max("open_from_ms").alias("open_from_ms"))
    known = screened.join(sql.broadcast(bounds), on=list(PARTITION_KEY), how="left")
    is_late = sql.coalesce(sql.col("taken_ms") < sql.col("open_from_ms"), sql.lit(col=False))
    judged = known.withColumn(SCREENED, sql.coalesce(SCREENED, sql.when(is_late, HOUR_CLOSED)))
    return _marked(judged).unionByName(reopened(left_open))


def _marked(screened: DataFrame) -> DataFrame:
    """Rows with a reason in `DECIDED`; those with one are nobody's neighbours."""
    reason = sql.col(SCREENED)
    is_bad = reason.isNotNull()
    is_late = sql.coalesce(reason == HOUR_CLOSED, sql.lit(col=False))
    row = sql.struct(*SAMPLES.column_names)
    nowhere = {
        "cluster_id": sql.lit(""),
        "topic": sql.lit(""),
        "partition": (-1 - sql.pmod(sql.xxhash64(row), _SPREAD)).cast("int"),
    }
    marked = screened.withColumns(
        {
            BAD: sql.when(is_bad & ~is_late, sql.to_json(row)),
            "is_closed": is_bad,
            "is_new": sql.lit(col=True),
            "is_clean": sql.when(is_bad, sql.lit(col=False)),
            REASON: reason,
            "epoch": sql.lit(None).cast("int"),
            **{name: sql.when(is_bad, place).otherwise(sql.col(name)) for name, place in nowhere.items()},
        }
    )
    return marked.select(*SAMPLES.column_names, *DECIDED)
