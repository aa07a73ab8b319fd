"""How the load of a cluster is shown: words and tables for people, a document or rows for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any

from rich.console import Console
from rich.table import Table

from kreassign.model.load_summary import (
    Doubtful,
    Expected,
    LoadBefore,
    LoadSummary,
    LoadTotals,
    MeasuredBroker,
    PartitionLoad,
    TopicLoad,
    Window,
)
from kreassign.report.text import format_bytes, format_change, format_count, format_rate, format_time

_COLUMNS = ("cluster_id", *(field.name for field in fields(PartitionLoad)))


def document(found: Iterable[LoadSummary]) -> dict[str, Any]:
    """Every figure, for programs: names end in their units, what is not known is null."""
    return {"clusters": [asdict(one) for one in found]}


def csv_lines(rows: Iterable[tuple[str, PartitionLoad]]) -> Iterator[str]:
    """One line per partition after that of the names of the columns; what is not known is empty."""
    yield _csv_line(_COLUMNS)
    for cluster_id, partition in rows:
        yield _csv_line([cluster_id, *asdict(partition).values()])


def _csv_line(values: Iterable[object]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def print_load(terminal: Console, found: LoadSummary) -> None:
    """The load of one cluster; readable in 80 columns."""
    totals = found.totals
    terminal.print(
        f"cluster {found.cluster_id}, snapshot of {format_time(found.taken_ms)}: "
        f"{format_count(totals.partition_count)} partitions of {format_count(totals.topic_count)} topics"
    )
    terminal.print(_totals(found))
    if found.before is not None:
        terminal.print(_against(found.totals, found.before))
    terminal.print(f"rates are based on: {_counted(found.coverage)}")
    terminal.print(f"enough to plan by: {_counted(found.verdicts)}")
    if found.windows:
        terminal.print(_windows(found.windows))
    for title, partitions in (("busiest", found.busiest), ("largest", found.largest)):
        _print_table(terminal, _partitions(f"{title} partitions", partitions), partitions)
    for title, topics in (("busiest", found.busiest_topics), ("largest", found.largest_topics)):
        _print_table(terminal, _topics(f"{title} topics", topics), topics)
    _print_brokers(terminal, found)
    _print_doubtful(terminal, found.doubtful)


def _totals(found: LoadSummary) -> Table:
    totals, ahead = found.totals, found.outlook
    horizon = [] if ahead is None else [f"in {ahead.horizon_days:g} days", "95% interval"]
    table = _table("", "now", "last week", *horizon, "partitions")
    size, rate = (None, None) if ahead is None else (ahead.size_bytes, ahead.write_bytes_per_s)
    counts = (format_count(totals.known_size_count), format_count(totals.known_rate_count))
    table.add_row("size", format_bytes(totals.size_bytes), "-", *_expected(found, size, format_bytes), counts[0])
    if totals.replica_bytes is not None:
        table.add_row("replicas", format_bytes(totals.replica_bytes))
    rates = (totals.write_bytes_per_s, totals.recent_write_bytes_per_s)
    table.add_row("write rate", *map(format_rate, rates), *_expected(found, rate, format_rate), counts[1])
    return table


def _expected(found: LoadSummary, one: Expected | None, text: Callable[[float | None], str]) -> tuple[str, ...]:
    if found.outlook is None:
        return ()
    return ("-", "-") if one is None else (text(one.value), f"{text(one.low)} to {text(one.high)}")


def _against(now: LoadTotals, before: LoadBefore) -> str:
    than = before.totals
    changes = (
        ("partitions", format_change(now.partition_count, than.partition_count, "{:,.0f}".format)),
        ("size", format_change(now.size_bytes, than.size_bytes, format_bytes)),
        ("write rate", format_change(now.write_bytes_per_s, than.write_bytes_per_s, format_rate)),
    )
    told = ", ".join(f"{name} {change}" for name, change in changes)
    return f"since load {before.load_number} of {format_time(before.load_ms)}: {told}"


def _windows(windows: tuple[Window, ...]) -> str:
    """How many hours of the last day are complete, and the one of which least is known."""
    complete, least = sum(one.is_complete for one in windows), min(windows, key=lambda one: one.measured_share)
    said = f"{complete} of the last {len(windows)} hours were measured"
    if complete == len(windows):
        return said
    return f"{said}; of that from {format_time(least.hour_ms)} {least.measured_share:.0%}"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{format_count(count)} {word}" for word, count in counts.items())


def _print_table(terminal: Console, table: Table, rows: tuple[object, ...]) -> None:
    if rows:
        terminal.print()
        terminal.print(table)


def _table(title: str, *figures: str) -> Table:
    table = Table(box=None, pad_edge=False)
    # A name may take several lines; a figure never does.
    table.add_column(title, overflow="fold")
    for figure in figures:
        table.add_column(figure, justify="right", no_wrap=True)
    return table


def _partitions(title: str, partitions: Iterable[PartitionLoad]) -> Table:
    table = _table(title, "write rate", "p95", "busiest hour (UTC)", "size")
    for one in partitions:
        peak = "-" if one.peak_hour is None else f"{one.peak_hour:02}:00 {format_rate(one.peak_write_bytes_per_s)}"
        rates = (format_rate(one.write_bytes_per_s), format_rate(one.p95_write_bytes_per_s))
        table.add_row(str(one), *rates, peak, format_bytes(one.size_bytes))
    return table


def _topics(title: str, topics: Iterable[TopicLoad]) -> Table:
    table = _table(title, "write rate", "size", "partitions with a rate")
    for one in topics:
        rate, size = format_rate(one.write_bytes_per_s), format_bytes(one.size_bytes)
        table.add_row(one.topic, rate, size, f"{format_count(one.known_count)} of {format_count(one.partition_count)}")
    return table


def _print_brokers(terminal: Console, found: LoadSummary) -> None:
    """What brokers measured of themselves, where they did."""
    brokers = found.measured_brokers
    table = _table("brokers", "in", "out", "cpu", "at most", "cpu full at", "disk", "measured")
    for one in brokers:
        rates = (format_rate(one.bytes_in_per_s), format_rate(one.bytes_out_per_s))
        cpu = (_share(one.cpu_share), _share(one.peak_cpu_share), format_rate(one.cpu_capacity_bytes_per_s))
        table.add_row(str(one.broker), *rates, *cpu, format_bytes(one.disk_bytes), _measured(one))
    _print_table(terminal, table, brokers)
    if more := found.measured_broker_count - len(brokers):
        terminal.print(f"and {format_count(more)} more, with less to do")
    ratios = [one.replication_out_ratio for one in brokers if one.replication_out_ratio is not None]
    if ratios:
        told = " to ".join(dict.fromkeys(f"{ratio:.2f}" for ratio in (min(ratios), max(ratios))))
        terminal.print(f"bytes to followers are {told} times what the load expects")


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _measured(broker: MeasuredBroker) -> str:
    """In how many hours, and which part of them."""
    return f"{format_count(broker.hour_count)} h, {broker.measured_share:.0%}"


def _print_doubtful(terminal: Console, found: Doubtful) -> None:
    terminal.print()
    if not found.count:
        terminal.print("no partition is doubtful")
        return
    shares = ((found.size_share, "size"), (found.write_share, "write rate"))
    told = " and ".join(f"{share:.1%} of the {what}" for share, what in shares if share is not None)
    terminal.print(f"doubtful: {format_count(found.count)} partitions" + (f", {told}" if told else ""))
    table = _table("doubtful partitions", "write rate", "size")
    table.add_column("why")
    for one in found.first:
        table.add_row(str(one), format_rate(one.write_bytes_per_s), format_bytes(one.size_bytes), one.doubt)
    terminal.print(table)
    if more := found.count - len(found.first):
        terminal.print(f"and {format_count(more)} more; --format csv has all")
