"""DataFrame → DataFrame. Whether a second reading of partitions holds what a first one did, record by record.

What may be gone is told apart from what is lost: records before the start that the log has now (retention), and in
compacted topics records with a later one of the same key, or without a value. What was appended since is no
difference. Of the rest every record must be at its offset with its content. Where readings differ, contents are matched
without regard to offsets, as multisets: what matches is displaced (records in another order, or moved up by one that is
missing), what is left over on one side is lost or new, on both sides altered.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kreassign.pipeline.tables.audit_schemas import DATA_AUDIT

_PLACE = ("topic", "partition")
_PROBLEMS = ("lost", "duplicated", "added", "altered", "displaced")


def data_audit(partitions: DataFrame, digests: DataFrame, before: str, after: str) -> DataFrame:
    """Table `data_audit` of two readings, from tables `audited_partitions` and `record_digests`."""
    spans = _spans(partitions, before, after)
    first = _of(digests, before).join(sql.broadcast(spans), list(_PLACE))
    second = _of(digests, after).join(sql.broadcast(spans), list(_PLACE))
    compared = _compared(first, second).cache()
    found = (
        spans.join(_counted(first, second), list(_PLACE), "left")
        .join(_differences(compared, first, second), list(_PLACE), "left")
        .fillna(0, [name for name in _COUNTS if name not in ("compared_from", "compared_to")])
    )
    return found.select(
        sql.lit(before).alias("before"), sql.lit(after).alias("after"), *_PLACE, _verdict().alias("verdict"),
        *_COUNTS, "first_offset",
    ).select(*DATA_AUDIT.column_names)  # fmt: skip


_COUNTS = (
    "compared_from", "compared_to", "record_count", "expired", "compacted", "appended", "lost", "duplicated", "added",
    "altered", "displaced",
)  # fmt: skip


def _spans(partitions: DataFrame, before: str, after: str) -> DataFrame:
    """Which offsets of each partition of the first reading are to be compared."""
    told = partitions.select(*_PLACE, "label", "start_offset", "end_offset", "topic_id", "cleanup_policy")
    first = told.where(sql.col("label") == before)
    second = told.where(sql.col("label") == after).select(
        *_PLACE,
        sql.col("start_offset").alias("start_after"),
        sql.col("topic_id").alias("id_after"),
        sql.col("cleanup_policy").alias("policy_after"),
    )
    return first.join(second, list(_PLACE), "left").select(
        *_PLACE,
        sql.coalesce(sql.greatest("start_offset", "start_after"), "start_offset").alias("compared_from"),
        sql.col("end_offset").alias("compared_to"),
        sql.coalesce(
            sql.contains(sql.concat("cleanup_policy", "policy_after"), sql.lit("compact")), sql.lit(col=False)
        ).alias("is_compacted"),
        sql.col("start_after").isNull().alias("is_gone"),
        sql.coalesce(sql.col("topic_id") != sql.col("id_after"), sql.lit(col=False)).alias("is_another"),
    )


def _of(digests: DataFrame, label: str) -> DataFrame:
    return digests.where(sql.col("label") == label).drop("label")


def _counted(first: DataFrame, second: DataFrame) -> DataFrame:
    inside = _inside()
    before = first.groupBy(*_PLACE).agg(
        sql.count_if(inside).alias("record_count"),
        sql.count_if(sql.col("offset") < sql.col("compared_from")).alias("expired"),
    )
    after = second.groupBy(*_PLACE).agg(sql.count_if(sql.col("offset") >= sql.col("compared_to")).alias("appended"))
    return before.join(after, list(_PLACE), "full")


def _inside() -> Column:
    return (sql.col("offset") >= sql.col("compared_from")) & (sql.col("offset") < sql.col("compared_to"))


def _compared(first: DataFrame, second: DataFrame) -> DataFrame:
    """The offsets where the readings differ, with both contents and whether compaction explains what is missing."""
    columns = (*_PLACE, "offset", "content")
    one = first.where(_inside()).select(*columns, "key_hash", "is_tombstone", "is_compacted")
    other = second.where(_inside()).select(*_PLACE, "offset", sql.col("content").alias("content_after"))
    last = second.groupBy(*_PLACE, "key_hash").agg(sql.max("offset").alias("last_of_key"))
    differ = one.join(other, [*_PLACE, "offset"], "full").where(
        ~sql.col("content").eqNullSafe(sql.col("content_after"))
    )
    superseded = sql.col("last_of_key") > sql.col("offset")
    explained = sql.col("is_compacted") & sql.col("content_after").isNull() & (superseded | sql.col("is_tombstone"))
    return differ.join(last, [*_PLACE, "key_hash"], "left").withColumn(
        "is_explained", sql.coalesce(explained, sql.lit(col=False))
    )


def _differences(compared: DataFrame, first: DataFrame, second: DataFrame) -> DataFrame:
    """Per partition what the differing offsets come to."""
    wrong = compared.where(~sql.col("is_explained"))
    compacted = compared.groupBy(*_PLACE).agg(sql.count_if("is_explained").alias("compacted"))
    places = wrong.groupBy(*_PLACE).agg(sql.min("offset").alias("first_offset"))
    matched = _matched(wrong, first, second)
    return compacted.join(places, list(_PLACE), "left").join(matched, list(_PLACE), "left")


def _matched(wrong: DataFrame, first: DataFrame, second: DataFrame) -> DataFrame:
    """Contents of the differing offsets, as multisets; what is missing may also be among what was appended."""
    key = [*_PLACE, "content"]
    later = second.where(sql.col("offset") >= sql.col("compared_to"))
    known = first.select(*key).distinct().withColumn("is_known", sql.lit(col=True))
    both = (
        _times(wrong, "content", "missing")
        .join(_times(wrong, "content_after", "surplus"), key, "full")
        .join(_times(later, "content", "later"), key, "left")
        .join(known, key, "left")
        .fillna(0, ["missing", "surplus", "later"])
        .withColumn("over", sql.greatest(sql.col("surplus") - sql.col("missing"), sql.lit(0)))
        .withColumn("displaced", sql.least(sql.col("missing"), sql.col("surplus") + sql.col("later")))
    )
    counts = both.groupBy(*_PLACE).agg(
        sql.sum("displaced").alias("displaced"),
        sql.sum(sql.col("missing") - sql.col("displaced")).alias("missing"),
        sql.sum(sql.when(sql.col("is_known"), sql.col("over")).otherwise(0)).alias("duplicated"),
        sql.sum(sql.when(sql.col("is_known").isNull(), sql.col("over")).otherwise(0)).alias("strange"),
    )
    altered = sql.least("missing", "strange")
    return counts.select(
        *_PLACE,
        "displaced",
        "duplicated",
        altered.alias("altered"),
        (sql.col("missing") - altered).alias("lost"),
        (sql.col("strange") - altered).alias("added"),
    )


def _times(wrong: DataFrame, column: str, name: str) -> DataFrame:
    """How often each content is among the differing offsets of one side."""
    rows = wrong.where(sql.col(column).isNotNull())
    return rows.groupBy(*_PLACE, sql.col(column).alias("content")).agg(sql.count("*").alias(name))


def _verdict() -> Column:
    words = [sql.when(sql.col(name) > 0, sql.lit(name)) for name in _PROBLEMS]
    gone = sql.when(sql.col("is_gone"), sql.lit("not read again"))
    another = sql.when(sql.col("is_another"), sql.lit("another topic of the same name"))
    said = sql.concat_ws(", ", gone, another, *words)
    return sql.when(said == "", sql.lit("same")).otherwise(said)
