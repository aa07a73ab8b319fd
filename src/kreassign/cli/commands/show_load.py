"""`kreassign show-load`: what the tables of the last load say, without a new load and without Spark."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.load_text import csv_lines, document, print_load
from kreassign.cli.next_command import DATA, next_command, print_next
from kreassign.cli.options.data_dir import data_option
from kreassign.cli.options.values import OUTPUT_FILE, WholeRange, parse_as_of
from kreassign.cli.output import console, examples, print_json
from kreassign.model.as_of import AsOf
from kreassign.operations.show_load import CHARTED, SHOWN, load_page, partition_rows, quality_text, show_load


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
    """Write the page of each cluster, or of one, and say so."""
    page.write_text(load_page(data, cluster, top, as_of=as_of), encoding="utf-8")
    click.echo(f"page of the load: {page}")


page_option = click.option(
    "--page",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Write an HTML page with charts, and how rows were treated.  [default: none]",
)


@click.command(
    "show-load",
    epilog=examples(
        "kreassign show-load --data ./data",
        "kreassign show-load --data ./data --top 20",
        "kreassign show-load --data ./data --format csv",
        "kreassign show-load --data ./data --page load.html",
    ),
)
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
def command(
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
        print_json(document(show_load(data, cluster, top or SHOWN, as_of=as_of)))
    else:
        print_loads(data, cluster, top or SHOWN, as_of)
        print_next(next_command("plan", "--out", "plan.json", takes=DATA))
