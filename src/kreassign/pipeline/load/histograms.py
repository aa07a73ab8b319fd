"""Columns. Histograms of rates whose quantiles have a known error, and that can be added up: DDSketch.

A rate r > 0 falls into bin i = ceil(ln r / ln γ), which holds the rates from γ^(i-1) to γ^i, and is read as
2 γ^i / (γ + 1). With γ = (1 + α) / (1 - α) that is never off by more than the share α of the rate, whatever rates
there are. So is every quantile that is read from the bins; and bins of two histograms are added. (Masson, Rim and Lee:
DDSketch, a fast and fully-mergeable quantile sketch with relative-error guarantees, VLDB 2019.)

A factor is a shift of the bins, exact to half a bin: see `shift`.
"""

from __future__ import annotations

import math

from pyspark.sql import Column
from pyspark.sql import functions as sql

ERROR = 0.005
"""Half of a percent: the largest share by which a quantile can be off."""
_GAMMA = (1 + ERROR) / (1 - ERROR)
_LN_GAMMA = math.log(_GAMMA)
ZERO_BIN = -1_000_000
"""The bin of the rate 0, below that of every other double (the least is 5e-324, bin -74 000), also when shifted."""
_LARGEST_OF_ZERO = ZERO_BIN // 2


def bin_of(rate: Column) -> Column:
    """The bin of a rate that is not negative; NULL for NULL."""
    found = sql.ceil(sql.ln(rate) / _LN_GAMMA).cast("int")
    return sql.when(rate > 0, found).when(rate == 0, sql.lit(ZERO_BIN))


def shift(factor: Column) -> Column:
    """By how many bins rates move when they are multiplied by this; 0 where it is not positive or NULL."""
    return sql.coalesce(sql.when(factor > 0, sql.round(sql.ln(factor) / _LN_GAMMA).cast("int")), sql.lit(0))


def histogram(bin_name: str, count_name: str) -> Column:
    """The aggregate of rows with a bin and its count: an array of both as structs, by bin. Each bin once, or NULL."""
    entry = sql.struct(sql.col(bin_name).alias("bin"), sql.col(count_name).cast("bigint").alias("count"))
    return sql.array_sort(sql.collect_list(sql.when(sql.col(bin_name).isNotNull() & (sql.col(count_name) > 0), entry)))


def quantile(of: Column, share: Column | float) -> Column:
    """The value below which this share of a histogram is; NULL of an empty one.

    It is the value of the entry at place share * (n - 1), counted from 0 and rounded, of all n in order.
    """
    total = sql.aggregate(of, sql.lit(0).cast("bigint"), lambda so_far, entry: so_far + entry["count"])
    place = sql.round((share if isinstance(share, Column) else sql.lit(share)) * (total - 1)).cast("bigint")
    start = sql.struct(sql.lit(0).cast("bigint").alias("seen"), sql.lit(None).cast("int").alias("found"))

    def step(so_far: Column, entry: Column) -> Column:
        seen = so_far["seen"] + entry["count"]
        found = sql.when(so_far["found"].isNull() & (seen > place), entry["bin"]).otherwise(so_far["found"])
        return sql.struct(seen.alias("seen"), found.alias("found"))

    return value_of(sql.aggregate(of, start, step, lambda end: end["found"]))


def value_of(number: Column) -> Column:
    """The rate as which a bin is read."""
    rate = sql.exp(number * _LN_GAMMA) * (2 / (_GAMMA + 1))
    return sql.when(number < _LARGEST_OF_ZERO, 0.0).when(number >= _LARGEST_OF_ZERO, rate)
