"""DataFrame → DataFrame. The samples of a load on Spark: which are judged, and what is made of them.

New rows of table `samples` are first seen alone: those of which a rule of one row is true (`rules.py`) have a `reason`.
Then each task gets all samples of some partitions, new ones and those that the load before left open, and judges them
(`judge.py`). Bad rows go the same way, so that the samples are read once and all are counted at its end. Why not by an
`Observation`: docs/design/decisions/load-on-spark.md.

The executors need this package, with NumPy and PyArrow: installed, or sent to them (`--py-files`).
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from kreassign.pipeline.load.checks import SCREENED, screen
from kreassign.pipeline.load.judge import JUDGED, TO_JUDGE, judge
from kreassign.pipeline.load.rates import PARTITION_KEY
from kreassign.pipeline.tables.schemas import LOAD_HOURS, OPEN_SAMPLES, QUARANTINE, SAMPLES

ROWS_PER_TASK = 400_000
_TYPES = {column.name: column.type for column in OPEN_SAMPLES.columns}


def judged(samples: DataFrame, left_open: DataFrame | None, now_ms: int, row_count: int) -> DataFrame:
    """What `judge` makes of new rows of table `samples` and those of `open_samples`, together about `row_count` rows.

    Rows that claim to be of later than `now_ms`, the time of the load, are bad.
    """
    rows = _new(screen(SAMPLES, samples, now_ms).judged)
    if left_open is not None:
        rows = rows.unionByName(left_open.withColumn("is_new", sql.lit(col=False)).select(*TO_JUDGE))
    # Nothing in the key of a bad row can be relied upon, and it is nobody's neighbour.
    is_bad = sql.col("is_new") & sql.col("reason").isNotNull()
    place = sql.when(is_bad, sql.xxhash64(*SAMPLES.column_names)).otherwise(sql.xxhash64(*PARTITION_KEY))
    tasks = max(1, -(-row_count // ROWS_PER_TASK))
    return rows.repartition(tasks, place).mapInArrow(judge, from_arrow_schema(JUDGED))


def _new(screened: DataFrame) -> DataFrame:
    unknown = {name: sql.lit(None).cast(_TYPES[name]) for name in ("open_from_ms", "is_clean", "epoch")}
    known = {"is_closed": sql.lit(col=False), "reason": sql.col(SCREENED), "is_new": sql.lit(col=True)}
    return screened.withColumns(unknown | known).select(*TO_JUDGE)


def hours_of(judged: DataFrame) -> DataFrame:
    """Table `load_hours`, all but the hours that were closed before."""
    return judged.where("hour IS NOT NULL").select("hour.*").select(*LOAD_HOURS.column_names)


def open_samples(judged: DataFrame) -> DataFrame:
    """Table `open_samples`: what the next load has to read again."""
    kept = judged.where("kept.is_read_again").select("kept.*")
    return kept.withColumn("reason", sql.when(sql.col("is_closed"), sql.col("reason"))).select(
        *OPEN_SAMPLES.column_names
    )


def quarantined(judged: DataFrame) -> DataFrame:
    """Samples that are bad or odd, as rows of table `quarantine`: those of open hours may be judged otherwise later."""
    set_aside = judged.where("kept.is_set_aside").select("kept.*")
    row = {
        "table_name": sql.lit(SAMPLES.name),
        "row_json": sql.to_json(sql.struct(*SAMPLES.column_names)),
        "is_open": ~sql.col("is_closed"),
    }
    return set_aside.withColumns(row).select(*QUARANTINE.column_names)
