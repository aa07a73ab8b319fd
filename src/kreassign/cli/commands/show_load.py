"""`kreassign show-load` and `define-tables`: show the load tables, and define tables for a catalog or dbt.

Neither computes a load, or needs Spark or a cluster.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from kreassign.cli.next_command import DATA, next_command, print_next
from kreassign.cli.options.values import OUTPUT_FILE, ReadBy, WholeRange, data_option, parse_as_of
from kreassign.cli.output import console, examples, figures, names, print_json, print_verbatim, text_table
from kreassign.model.load import (
    AsOf,
    Doubtful,
    Expected,
    LoadBefore,
    LoadSummary,
    LoadTotals,
    MeasuredHour,
    PartitionLoad,
    TopicLoad,
)
from kreassign.model.text import counted, shortened
from kreassign.operations import whole_file
from kreassign.operations.tables import (
    CHARTED,
    SCHEMA,
    SHOWN,
    DefinitionForm,
    define_tables,
    load_page,
    partition_rows,
    quality_text,
    show_load,
)
from kreassign.report.text import format_bytes, format_change, format_count, format_rate, format_time

# Show the load of a cluster: text and tables, or a document or rows for programs.

_COLUMNS = ("cluster_id", *(field.name for field in fields(PartitionLoad)))


def csv_lines(rows: Iterable[tuple[str, PartitionLoad]]) -> Iterator[str]:
    """A header and one line per partition; unknown figures are empty."""
    yield _csv_line(_COLUMNS)
    for cluster_id, partition in rows:
        yield _csv_line([cluster_id, *asdict(partition).values()])


def _csv_line(values: Iterable[object]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def print_load(terminal: Console, found: LoadSummary) -> None:
    """Print the load of one cluster, in 80 columns."""
    totals = found.totals
    terminal.print(
        f"cluster {found.cluster_id}, snapshot of {format_time(found.taken_ms)}: "
        f"{counted(totals.partition_count, 'partition')} of {counted(totals.topic_count, 'topic')}"
    )
    terminal.print(_totals(found))
    if found.before is not None:
        terminal.print(_against(found.totals, found.before))
    terminal.print(f"rates are based on: {_counted(found.coverage)}")
    terminal.print(f"history to plan by: {_counted(found.verdicts)}")
    if unmeasured := [*_unmeasured(found)]:
        terminal.print("\n  ".join(("not measured, and shown as -:", *unmeasured)))
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
    size, rate = (None, None) if ahead is None else (ahead.size_bytes, ahead.write_bytes_per_s)
    counts = (format_count(totals.known_size_count), format_count(totals.known_rate_count))
    replicas = [] if totals.replica_bytes is None else [("replicas", format_bytes(totals.replica_bytes))]
    recent = {} if totals.recent_write_bytes_per_s is None else {totals.recent: totals.recent_write_bytes_per_s}
    sizes = (format_bytes(totals.size_bytes), *("" for _ in recent))
    rates = map(format_rate, (totals.write_bytes_per_s, *recent.values()))
    rows = (
        ("size", *sizes, *_expected(found, size, format_bytes), counts[0]),
        *replicas,
        ("write rate", *rates, *_expected(found, rate, format_rate), counts[1]),
    )
    return text_table([*names(""), *figures("now", *recent, *horizon, "partitions")], rows)


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


def _windows(windows: tuple[MeasuredHour, ...]) -> str:
    """Number of complete hours of the last day, and the hour with the least data."""
    complete, least = sum(one.is_complete for one in windows), min(windows, key=lambda one: one.measured_share)
    said = f"{complete} of the last {len(windows)} hours were measured"
    if complete == len(windows):
        return said
    return f"{said}; of that from {format_time(least.hour_ms)} {least.measured_share:.0%}"


_NEEDS_OF_A_RATE = {
    "no samples": "two samples of each",
    "one sample": "two samples of each",
    "reset": "two samples since its log was reset",
    "no size": "a sample with records and their size",
}
"""Needs of partitions without a rate, by their coverage."""


def _unmeasured(found: LoadSummary) -> Iterator[str]:
    """Figures that are unknown, of what, and what they would need."""
    totals, ahead = found.totals, found.outlook
    rates = Counter[str]()
    for coverage, need in _NEEDS_OF_A_RATE.items():
        rates[need] += found.coverage.get(coverage, 0)
    unsized = totals.partition_count - totals.known_size_count
    unknown = (
        *(("write rate", count, need) for need, count in rates.items()),
        ("size", unsized, "an answer of a broker that has a replica"),
    )
    for figure, count, need in unknown:
        if count:
            yield f"{figure} of {format_count(count)} of {counted(totals.partition_count, 'partition')} (needs {need})"
    rated = [one for one in {*found.busiest, *found.largest} if one.write_bytes_per_s is not None]
    if any(one.p95_write_bytes_per_s is None for one in rated):
        yield "p95 (needs samples without a gap between them)"
    if any(one.peak_hour is None for one in rated):
        yield "busiest hour (needs samples of all 24 hours)"
    if ahead is not None:
        outlooks = {"size": ahead.size_bytes, "write rate": ahead.write_bytes_per_s}
        for figure in (figure for figure, expected in outlooks.items() if expected is None):
            yield f"{figure} in {ahead.horizon_days:g} days (needs the rate of each partition)"
    missing = [
        title
        for title, name in _OF_BROKERS.items()
        if any(getattr(one, name) is None for one in found.measured_brokers)
    ]
    if measured := [title for title in missing if title != _DISK]:
        yield f"{', '.join(measured)} of some brokers (needs their metrics)"
    if _DISK in missing:
        yield f"{_DISK} of some brokers (needs the size of each log directory in the snapshot)"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{format_count(count)} {word}" for word, count in counts.items())


def _print_table(terminal: Console, table: Table, rows: tuple[object, ...]) -> None:
    if rows:
        terminal.print()
        terminal.print(table)


def _partitions(title: str, partitions: Iterable[PartitionLoad]) -> Table:
    rows = (
        (
            str(one), format_rate(one.write_bytes_per_s), format_rate(one.p95_write_bytes_per_s),
            "-" if one.peak_hour is None else f"{one.peak_hour:02}:00 {format_rate(one.peak_write_bytes_per_s)}",
            format_bytes(one.size_bytes),
        )
        for one in partitions
    )  # fmt: skip
    return text_table([*names(title), *figures("write rate", "p95", "busiest hour (UTC)", "size")], rows)


def _topics(title: str, topics: Iterable[TopicLoad]) -> Table:
    rows = (
        (
            one.topic, format_rate(one.write_bytes_per_s), format_bytes(one.size_bytes),
            f"{format_count(one.known_count)} of {format_count(one.partition_count)}",
        )
        for one in topics
    )  # fmt: skip
    return text_table([*names(title), *figures("write rate", "size", "partitions with a rate")], rows)


_DISK = "disk"
_OF_BROKERS = {
    "in": "bytes_in_per_s",
    "out": "bytes_out_per_s",
    "cpu": "cpu_share",
    "at most": "peak_cpu_share",
    "cpu full at": "cpu_capacity_bytes_per_s",
    _DISK: "disk_bytes",
}
"""Columns of brokers, and their figures."""


def _print_brokers(terminal: Console, found: LoadSummary) -> None:
    """Print what brokers measured about themselves, if any did."""
    brokers = found.measured_brokers
    rows = (
        (
            str(one.broker), format_rate(one.bytes_in_per_s), format_rate(one.bytes_out_per_s), _share(one.cpu_share),
            _share(one.peak_cpu_share), format_rate(one.cpu_capacity_bytes_per_s), format_bytes(one.disk_bytes),
            f"{format_count(one.hour_count)} h, {one.measured_share:.0%}",
        )
        for one in brokers
    )  # fmt: skip
    columns = [*names("brokers"), *figures(*_OF_BROKERS, "measured")]
    _print_table(terminal, text_table(columns, rows), brokers)
    if more := found.measured_broker_count - len(brokers):
        terminal.print(f"and {format_count(more)} more, with less to do")
    ratios = [one.replication_out_ratio for one in brokers if one.replication_out_ratio is not None]
    if ratios:
        told = " to ".join(dict.fromkeys(f"{ratio:.2f}" for ratio in (min(ratios), max(ratios))))
        terminal.print(f"bytes to followers are {told} times what the load expects")


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _print_doubtful(terminal: Console, found: Doubtful) -> None:
    terminal.print()
    if not found.count:
        terminal.print("no partition is doubtful")
        return
    shares = ((found.size_share, "size"), (found.write_share, "write rate"))
    told = " and ".join(f"{share:.1%} of the {what}" for share, what in shares if share is not None)
    terminal.print(f"doubtful: {counted(found.count, 'partition')}" + (f", {told}" if told else ""))
    rows = (
        (str(one), format_rate(one.write_bytes_per_s), format_bytes(one.size_bytes), one.doubt or "")
        for one in found.first
    )
    columns = [*names("doubtful partitions"), *figures("write rate", "size"), *names("why")]
    terminal.print(text_table(columns, rows))
    if more := found.count - len(found.first):
        terminal.print(f"and {format_count(more)} more; --format csv has all")


def print_loads(data: Path | str, cluster: str | None = None, top: int = SHOWN, as_of: AsOf | None = None) -> None:
    """Print the load of each cluster, or of one."""
    terminal = console()
    for number, found in enumerate(show_load(data, cluster, top, as_of=as_of)):
        if number:
            terminal.print()
        print_load(terminal, found)


def write_page(
    page: Path, data: Path | str, cluster: str | None = None, top: int = CHARTED, as_of: AsOf | None = None
) -> None:
    """Write a page per cluster, or for one, and print its path."""
    whole_file.write_page(page, load_page(data, cluster, top, as_of=as_of))
    click.echo(f"page of the load: {page}")


page_option = click.option(
    "--page", type=OUTPUT_FILE, help="Write an HTML page with charts, and how rows were treated.  [default: none]"
)


@examples(
    "kreassign show-load --data ./data",
    "kreassign show-load --data ./data --top 20",
    "kreassign show-load --data ./data --format csv",
    "kreassign show-load --data ./data --page load.html",
)
@click.command("show-load")
@data_option
@click.option("--cluster", metavar="ID", help="Cluster to show.  [default: all in the tables]")
@click.option(
    "--top",
    type=WholeRange(min=1),
    metavar="COUNT",
    help=f"Entries of each list.  [default: {SHOWN}; with --format csv all, with --page {CHARTED}]",
)
@click.option(
    "--as-of",
    type=parse_as_of,
    metavar="TIME|NUMBER",
    help="Show the last load that had begun by then, for example 2027-01-31T06:00 (in UTC, unless it says otherwise), "
    "or the load of this number.  [default: the last load]",
)
@click.option("--quality", is_flag=True, help="Show how rows were treated, load after load, instead.")
@page_option
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    show_default=True,
    help="Output format; csv has one row per partition, the busiest first.",
)
def show_load_command(
    data: Path | str,
    cluster: str | None,
    top: int | None,
    as_of: AsOf | None,
    page: Path | None,
    output_format: str,
    *,
    quality: bool,
) -> None:
    """Show what the last load says: totals, the busiest and largest partitions and topics, and what is doubtful.

    Reads the tables in DIR, a directory or an address such as s3a://bucket/data; needs no Spark. The page is one
    self-contained file.
    """
    if page is not None:
        if quality or output_format != "text":
            raise click.UsageError("--page has everything; leave out --quality and --format")
        write_page(page, data, cluster, top or CHARTED, as_of)
    elif quality:
        if output_format != "text":
            raise click.UsageError("--quality is text; the rows are in table load_quality")
        click.echo("\n".join(quality_text(data, as_of)))
    elif output_format == "csv":
        for line in csv_lines(partition_rows(data, cluster, top, as_of=as_of)):
            click.echo(line)
    elif output_format == "json":
        # Names end in their units, unknown figures are null.
        print_json({"clusters": [asdict(one) for one in show_load(data, cluster, top or SHOWN, as_of=as_of)]})
    else:
        print_loads(data, cluster, top or SHOWN, as_of)
        print_next(next_command("plan", "--out", "plan.json", takes=DATA))


_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_LOCATION = re.compile(r"(/|[A-Za-z][A-Za-z0-9+.-]*:/)[^\x00-\x20]*")


def schema_name(text: str) -> str:
    """Check the name of a schema. Raises ValueError."""
    if not _SCHEMA.fullmatch(text):
        raise ValueError(f"{shortened(text)!r} is not a name of a schema; it has letters, digits and underscores")
    return text


def address(text: str) -> str:
    """Check an address or absolute path. Raises ValueError: a catalog would put a relative path below its warehouse."""
    if not _LOCATION.fullmatch(text):
        raise ValueError(f"{shortened(text)!r} is no address; write for example s3a://bucket/data or /srv/data")
    return text


@examples(
    "kreassign define-tables --location s3a://bucket/data",
    "kreassign define-tables --format dbt --location s3a://bucket/data --schema kafka",
)
@click.command("define-tables")
@click.option(
    "--location", required=True, type=ReadBy("address", address), metavar="URI",
    help="Directory of the tables, as the catalog reaches it.",
)  # fmt: skip
@click.option(
    "--schema", default=SCHEMA, show_default=True, type=ReadBy("name", schema_name), metavar="NAME",
    help="Schema of the catalog that has them.",
)  # fmt: skip
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in DefinitionForm]),
    default=DefinitionForm.DDL.value,
    show_default=True,
    help="SQL statements, or sources for dbt.",
)
@click.option("--no-columns", is_flag=True, help="Leave columns to the log of each table, which must be there.")
def define_tables_command(location: str, schema: str, form: str, *, no_columns: bool) -> None:
    """Write the definitions of the tables for a catalog: CREATE TABLE statements for Spark, or sources for dbt.

    They have the meaning of every column. Nothing is read and nothing is changed.
    """
    if no_columns and form != DefinitionForm.DDL:
        raise click.UsageError("--no-columns is for --format ddl: what columns mean is what sources for dbt are for")
    print_verbatim(define_tables(location, DefinitionForm(form), schema, with_columns=not no_columns), nl=False)
    print_next(next_command("load", "--data", location))
