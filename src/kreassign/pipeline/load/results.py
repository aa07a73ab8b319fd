"""The tables of a load → what it says at its end. Needs no Spark."""

from __future__ import annotations

from collections import Counter

from kreassign.pipeline.tables.parquet import Where, read_rows, read_table
from kreassign.pipeline.tables.schemas import BACKTESTS, LOAD_MODEL, Row


def partition_counts(where: Where, column: str) -> dict[str, int]:
    """Partitions of table `load_model` by what a column of words says of them."""
    counted = read_table(where, LOAD_MODEL, columns=[column]).group_by(column).aggregate([([], "count_all")])
    counts = Counter({row[column]: row["count_all"] for row in counted.to_pylist()})
    return dict(sorted(counts.items()))


def backtest_results(where: Where) -> list[str]:
    """What table `backtests` says, one sentence per cluster."""
    return [_backtest_sentence(row) for row in sorted(read_rows(where, BACKTESTS), key=lambda row: row["cluster_id"])]


def _backtest_sentence(tested: Row) -> str:
    name = f"backtest of {tested['cluster_id']}"
    if not tested["partition_count"]:
        return f"{name}: none, no partition has two whole weeks of samples"
    return (
        f"{name}: {tested['partition_count']} partitions, their last week as forecast from the days before it: "
        f"median error {tested['median_error']:.1%}, 95th percentile {tested['p95_error']:.1%}; "
        f"{tested['covered_share']:.1%} were in the 95% interval, which was widened {tested['widening']:.2f} times"
    )
