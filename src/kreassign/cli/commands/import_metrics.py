"""`kreassign import-metrics`: what Prometheus scraped from brokers, as a table."""

from __future__ import annotations

from hashlib import sha256
from itertools import groupby
from pathlib import Path

import click

from kreassign.cli.options.data_dir import data_option
from kreassign.clock import SystemClock
from kreassign.errors import InputError
from kreassign.pipeline.ingest.prometheus import Origin, Parsed, metric_rows, parse
from kreassign.pipeline.tables.parquet import hour_folder, write_rows
from kreassign.pipeline.tables.schemas import METRICS, Row


def parse_instances(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, int]:
    """`HOST:PORT=ID` as instance → broker."""
    del context, option
    pairs = [text.rpartition("=") for text in given]
    wrong = [f"{name}{sign}{broker}" for name, sign, broker in pairs if not name or not broker.isdigit()]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is not INSTANCE=ID; write for example broker-1:7071=1")
    return {name: int(broker) for name, _, broker in pairs}


@click.command("import-metrics")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@data_option
@click.option("--cluster", required=True, metavar="ID", help="The cluster that the files are of.")
@click.option("--broker", type=int, metavar="ID", help="The broker that the files are of.")
@click.option(
    "--instance", "instances", multiple=True, callback=parse_instances, metavar="INSTANCE=ID",
    help="The broker of the readings with this label `instance`; may be repeated.",
)  # fmt: skip
def import_metrics(
    files: tuple[Path, ...], data: Path, cluster: str, broker: int | None, instances: dict[str, int]
) -> None:
    """Add FILES with metrics of Prometheus to table `metrics` in DIR.

    A file is a scrape of the JMX exporter in Prometheus' text format, an answer of the query API, or series of remote
    read as JSON. A scrape without times counts as taken now; reading a file with times again adds nothing new.
    """
    if broker is None and not instances:
        raise click.UsageError("say whose metrics these are: --broker ID, or --instance INSTANCE=ID for each broker")
    origin = Origin(cluster, SystemClock().now_ms(), broker, instances)
    for file in files:
        text = file.read_text(encoding="utf-8")
        parsed = _parsed(file, text)
        rows = sorted(metric_rows(parsed.readings, origin), key=lambda row: row["taken_ms"])
        store(data, rows, sha256(text.encode()).hexdigest()[:16])
        click.echo(told(file, parsed, len(rows)))


def store(data: Path, rows: list[Row], stem: str) -> None:
    """Write rows, sorted by time, into the folders of their hours, as files of this name."""
    for _, of_hour in groupby(rows, key=lambda row: hour_folder(row["taken_ms"])):
        chunk = list(of_hour)
        write_rows(data, METRICS, chunk, file_stem=stem, taken_ms=chunk[0]["taken_ms"])


def told(file: Path, parsed: Parsed, rows: int) -> str:
    """One line on a file."""
    others = len(parsed.readings) - rows
    bad = f", {len(parsed.unreadable)} unreadable, first {parsed.unreadable[0]!r}" if parsed.unreadable else ""
    return f"{file}: {rows} readings, {others} of no use here or of unknown brokers{bad}"


def _parsed(file: Path, text: str) -> Parsed:
    try:
        return parse(text)
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
