"""DataFrame → DataFrame. From samples to what was written between them.

A sample is a reading of counters that only grow while a log lives. What spoils the difference of two readings, and what
is done about it:

    the same round twice        one of both counts
    a reading that is odd       does not count, see `rules.py`; the difference is of the readings before and after it
    a topic created again       it has another id: no difference, a new epoch
    a log that went back        for good, in a topic of the same id: truncated; no difference, the same epoch. Where
                                brokers tell no ids (before Kafka 2.8), one with less than half left is another log
    a gap                       rounds are missing: the difference is right on average, but says nothing of peaks
    a change of leader          offsets go on; sizes are of another copy, so no bytes are known for that time

Restarts of brokers need no rule: offsets and sizes are on their disks, and a broker that is down leaves a gap.

A gap is told by the intervals around it, of the same partition: collectors may have different cadences, may overlap,
and may change theirs, so that intervals of different lengths alternate. All rows stay, so that one pass over one order
of the samples decides everything: those that do not count have a reason and no figures.

A load judges what is new, with some samples of before (`is_closed`) as the neighbours of the first: what was decided of
those stays as it was. See `hours.py` for which they are.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import add

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as sql

from kreassign.pipeline.load.checks import first_broken
from kreassign.pipeline.load.rules import FIRST_SERIES_RULES, SAME_TIME, SECOND_SERIES_RULES
from kreassign.pipeline.tables.schemas import SAMPLES

PARTITION_KEY = ("cluster_id", "topic", "partition")
EPOCH_KEY = (*PARTITION_KEY, "epoch")
GAP = 3.0
"""A gap is an interval more than so many times as long as those around it."""
_AROUND = 4
"""How many intervals before and after one are looked at: so many collectors may interleave as they like."""
_ALIKE = 2
"""So many long ones among those around it are a cadence and no gap; one is enough where not all are known."""
_ENOUGH = 3
"""Of so many intervals around it one can say what is usual."""
LEFT_OF_A_LOG = 0.5
REASON = "reason"
_NEAR = (1, 2, 3)
# Of rows of the same time any one may be the last; sizes make it the same one whatever else is read with them.
_IN_ORDER = ("taken_ms", "end_offset", "size_bytes")


BAD = "bad_json"
DECIDED = ("is_closed", "is_new", "is_clean", REASON, "epoch", BAD)
"""What is known of a sample before it is judged: nothing, or all of it (`is_closed`).

`bad_json` is the row of one that a rule of one row has set aside: it is nobody's neighbour.
"""


def rates(samples: DataFrame) -> DataFrame:
    """One row per sample, with what was written since the sample before that counts.

    `samples` have the columns of table `samples` and those of `DECIDED`. The rows have these too, and `seconds`,
    `new_records`, `sized_records`, `new_bytes` and `verdict`, which are documented where they are made.
    """
    return with_verdict(with_epoch(with_reason(samples)))


def with_reason(samples: DataFrame) -> DataFrame:
    """Samples with `reason`: why one does not count, NULL for those that do; `is_clean` is what the first rules say."""
    is_closed = sql.col("is_closed")
    told = _with_neighbours(samples).withColumn("first_reason", first_broken(FIRST_SERIES_RULES))
    first = told.withColumn("is_clean", sql.when(is_closed, sql.col("is_clean")).otherwise(told.first_reason.isNull()))
    judged = sql.coalesce("first_reason", first_broken(SECOND_SERIES_RULES))
    second = _with_clean_neighbours(first).withColumn(REASON, sql.when(is_closed, sql.col(REASON)).otherwise(judged))
    return second.select(*SAMPLES.column_names, *DECIDED)


def with_epoch(samples: DataFrame) -> DataFrame:
    """Samples with what they add to the one before that counts.

    `epoch` is how often the log of the partition had restarted by then; `new_records` and `new_bytes` are how far it
    grew since the sample before, NULL where something else happened to it too. Samples with a reason have neither.
    """
    counts = sql.col(REASON).isNull()
    told = sql.when(counts, sql.struct("taken_ms", "topic_id", "leader", "start_offset", "end_offset", "size_bytes"))
    before = samples.withColumn("told", told).withColumn("before", nearest("lag", "told"))
    is_open = ~sql.col("is_closed")
    grown = before.withColumn("is_reset", sql.when(counts & is_open, is_reset()).otherwise(sql.lit(0)))
    begun = sql.coalesce(sql.max("epoch").over(_up_to_here()), sql.lit(0))
    goes_on = counts & (sql.col("is_reset") == 0) & (sql.col("end_offset") >= sql.col("before.end_offset"))
    return grown.select(
        *SAMPLES.column_names,
        *(name for name in DECIDED if name != "epoch"),
        (begun + sql.sum("is_reset").over(_up_to_here())).cast("int").alias("epoch"),
        "is_reset",
        sql.when(counts, (sql.col("taken_ms") - sql.col("before.taken_ms")) / 1000.0).alias("seconds"),
        sql.when(goes_on, _grown("end_offset")).alias("new_records"),
        sql.when(goes_on & only_grew(), _grown("end_offset")).alias("sized_records"),
        sql.when(goes_on & only_grew(), _grown("size_bytes")).alias("new_bytes"),
    )


def with_verdict(samples: DataFrame) -> DataFrame:
    """What each interval is good for; the cases exclude each other and leave none out.

    `good`; `gap`, more than three times as long as the intervals around it: right on average, useless for peaks;
    `first`, there is none before it; `reset`, the log was reset; `truncated`, the same log went back; `odd`, the sample
    does not count; `twice`, it is there several times.
    """
    near = [*(nearest("lag", "seconds", place) for place in range(1, _AROUND + 1)),
            *(nearest("lead", "seconds", place) for place in range(1, _AROUND + 1))]  # fmt: skip
    names = [f"near_{place}" for place in range(len(near))]
    known = reduce(add, (sql.col(name).isNotNull().cast("int") for name in names))
    alike = reduce(add, (_one_if(GAP * sql.col(name) >= sql.col("seconds")) for name in names))
    is_gap = (known >= _ENOUGH) & (alike < sql.when(known == len(names), _ALIKE).otherwise(1))
    counts, has_before = sql.col(REASON).isNull(), sql.col("seconds").isNotNull()
    grew = sql.col("new_records").isNotNull()
    verdict = (
        sql.when(sql.col(REASON) == SAME_TIME, "twice")
        .when(~counts, "odd")
        .when(~has_before, "first")
        .when(sql.col("is_reset") == 1, "reset")
        .when(~grew, "truncated")
        .when(is_gap, "gap")
        .otherwise("good")
    )
    return samples.withColumns(dict(zip(names, near, strict=True))).withColumn("verdict", verdict)


def is_reset() -> Column:
    """1 where a sample is of another log than the one before: other topic id, or none and most of the log is gone."""
    same_id = sql.col("topic_id") == sql.col("before.topic_id")
    mostly_gone = sql.col("end_offset") < LEFT_OF_A_LOG * sql.col("before.end_offset")
    return sql.coalesce((~same_id).cast("int"), mostly_gone.cast("int"), sql.lit(0))


def only_grew() -> Column:
    """Whether, since the sample before, nothing happened to the log but that records were added."""
    return (
        (sql.col("leader") == sql.col("before.leader"))
        & (sql.col("start_offset") == sql.col("before.start_offset"))
        & (sql.col("size_bytes") >= sql.col("before.size_bytes"))
    )


def _with_neighbours(samples: DataFrame) -> DataFrame:
    """Samples with what `FIRST_SERIES_RULES` name."""
    at = in_time()
    # Numbers are compared ten times per row, and cheaper than texts.
    # An id that is not known, as of samples of an exporter between those of a collector, is no other one.
    marked = samples.withColumn("log", sql.when(sql.col("topic_id").isNotNull(), sql.xxhash64("topic_id")))
    near = {
        f"{name}_{side}_{place}": function(name, place).over(at)
        for name in ("log", "end_offset")
        for side, function in (("before", sql.lag), ("after", sql.lead))
        for place in _NEAR
    }
    more = {
        "next_ms": sql.lead("taken_ms").over(at),
        "size_before": sql.lag("size_bytes").over(at),
        "size_after": sql.lead("size_bytes").over(at),
        "start_before": sql.lag("start_offset").over(at),
    }
    before, after = ([_same_log(side, place) for place in _NEAR] for side in ("before", "after"))
    back = [near - far for near, far in pairwise([sql.col("end_offset"), *before])]
    ahead = [far - near for near, far in pairwise([sql.col("end_offset"), *after])]
    return marked.withColumns(near | more).withColumns(
        {
            "is_twice": sql.col("next_ms") == sql.col("taken_ms"),
            "is_other_topic": (sql.col("log_before_1") == sql.col("log_after_1"))
            & (sql.col("log") != sql.col("log_before_1")),
            "end_before": before[0],
            "end_after": after[0],
            "has_two_after": after[1].isNotNull(),
            "median_before": _median(before),
            "median_after": _median(after),
            "rise_before": sql.greatest(*back),
            "rise_after": sql.greatest(*ahead),
            "step_before": sql.greatest(_median(back), sql.lit(0)),
            "step_after": sql.greatest(_median(ahead), sql.lit(0)),
        }
    )


def _with_clean_neighbours(samples: DataFrame) -> DataFrame:
    """Samples with what `SECOND_SERIES_RULES` name."""
    told = sql.when(sql.col("is_clean"), sql.struct("log", "taken_ms", "end_offset", "size_bytes"))
    near = samples.withColumn("told", told).withColumns(
        {
            "clean_before": nearest("lag", "told"),
            "clean_after": nearest("lead", "told"),
            "clean_next": nearest("lead", "told", 2),
        }
    )

    def of_log(name: str, field: str) -> Column:
        return sql.when(_is_same_log(f"{name}.log"), sql.col(f"{name}.{field}"))

    return near.withColumns(
        {
            "clean_ms_before": of_log("clean_before", "taken_ms"),
            "clean_end_before": of_log("clean_before", "end_offset"),
            "clean_size_before": of_log("clean_before", "size_bytes"),
            "clean_end_after": of_log("clean_after", "end_offset"),
            "clean_end_after_next": of_log("clean_next", "end_offset"),
        }
    )


def _same_log(side: str, place: int) -> Column:
    return sql.when(_is_same_log(f"log_{side}_{place}"), sql.col(f"end_offset_{side}_{place}"))


def _is_same_log(other: str) -> Column:
    return sql.coalesce(sql.col(other) == sql.col("log"), sql.lit(col=True))


def _median(values: list[Column]) -> Column:
    """The median of those of three numbers that are known, of two the smaller one."""
    known = sql.array_compact(sql.sort_array(sql.array(*values)))
    return sql.get(known, sql.floor((sql.size(known) - 1) / 2).cast("int"))


def _one_if(condition: Column) -> Column:
    return sql.when(condition, 1).otherwise(0)


def _grown(name: str) -> Column:
    return sql.col(name) - sql.col(f"before.{name}")


def in_time() -> WindowSpec:
    """The samples of a partition, in the order in which all of this looks at them."""
    # Every window of this module has this order, so that Spark sorts once for all.
    return Window.partitionBy(*PARTITION_KEY).orderBy(*_IN_ORDER)


def _up_to_here() -> WindowSpec:
    return in_time().rowsBetween(Window.unboundedPreceding, Window.currentRow)


def nearest(function: str, name: str, place: int = 1) -> Column:
    """Of the samples before (`lag`) or after (`lead`) that have one, the value of the nearest, or the next but one.

    In SQL, for Python's functions cannot ignore NULL.
    """
    key, order = ", ".join(PARTITION_KEY), ", ".join(_IN_ORDER)
    return sql.expr(f"{function}({name}, {place}) IGNORE NULLS OVER (PARTITION BY {key} ORDER BY {order})")
