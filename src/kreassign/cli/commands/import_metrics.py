"""`kreassign import-metrics`: what Prometheus scraped from brokers, as a table."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.data_dir import data_option
from kreassign.cli.output import examples
from kreassign.operations import tables


def parse_instances(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, int]:
    """`HOST:PORT=ID` as instance → broker."""
    del context, option
    pairs = [text.rpartition("=") for text in given]
    wrong = [f"{name}{sign}{broker}" for name, sign, broker in pairs if not name or not broker.isdigit()]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is not INSTANCE=ID; write for example broker-1:7071=1")
    return {name: int(broker) for name, _, broker in pairs}


@click.command(
    "import-metrics",
    epilog=examples(
        "kreassign import-metrics scrape.txt --data ./data --cluster prod --broker 1",
        "kreassign import-metrics query.json --data ./data --cluster prod --instance broker-1:7071=1",
    ),
)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@data_option
@click.option("--cluster", required=True, metavar="ID", help="Cluster that the files are from.")
@click.option("--broker", type=int, metavar="ID", help="Broker that the files are from.")
@click.option(
    "--instance",
    "instances",
    multiple=True,
    callback=parse_instances,
    metavar="INSTANCE=ID",
    help="Broker of the readings with this label `instance`; may be repeated.",
)
def import_metrics(
    files: tuple[Path, ...], data: Path, cluster: str, broker: int | None, instances: dict[str, int]
) -> None:
    """Import FILES with Prometheus metrics into table `metrics` in DIR.

    A file is a scrape of the JMX exporter in Prometheus' text format, an answer of the query API, or series of remote
    read as JSON. A scrape without timestamps counts as taken now; importing a file with timestamps again adds nothing.
    """
    if broker is None and not instances:
        raise click.UsageError("specify the broker: --broker ID, or --instance INSTANCE=ID for each broker")
    for file in files:
        click.echo(_line(tables.import_metrics(file, data, cluster, broker, instances)))


def _line(done: tables.Imported) -> str:
    bad = f", {len(done.unreadable)} unreadable, first {done.unreadable[0]!r}" if done.unreadable else ""
    return f"{done.file}: {done.rows} readings, {done.others} of no use here or of unknown brokers{bad}"
