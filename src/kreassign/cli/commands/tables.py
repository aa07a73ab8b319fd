"""Fill and compact the tables of a directory: samples of a cluster, metrics from files and a topic, loads.

`kreassign collect`, `import-metrics`, `import-samples`, `stream-metrics`, `compact` and `load`.
"""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.commands.show_load import page_option, print_loads, write_page
from kreassign.cli.next_command import CLUSTER, DATA, next_command, print_next
from kreassign.cli.options import values
from kreassign.cli.options.cluster import ClusterOptions, cluster_options
from kreassign.cli.output import examples, warn
from kreassign.cli.streams import WorkingLine
from kreassign.model.load import SparkOptions
from kreassign.model.text import counted, parse_whole, shortened
from kreassign.operations import ingest, tables
from kreassign.operations.ingest import MAX_OFFSETS, MetricStream, RecordForm, Round
from kreassign.operations.ingest import collect as collect_rounds

MOST_DAYS = 36_600
MOST_OFFSETS = 10_000_000
SHOWN_OF_ROW = 80
"""A whole batch is in memory, at about half a kilobyte per record."""


def parse_instances(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, int]:
    """`HOST:PORT=ID` texts as broker by instance."""
    del context, option
    found = {}
    for text in given:
        name, _, broker = text.rpartition("=")
        try:
            found[name] = parse_whole(broker if name else "")
        except ValueError:
            said = f"{shortened(text)!r} is not INSTANCE=ID; write for example broker-1:7071=1"
            raise click.BadParameter(said) from None
    return found


_FILES = click.argument("files", nargs=-1, required=True, type=values.INPUT_FILE)


@examples(
    "kreassign import-metrics scrape.txt --data ./data --cluster prod --broker 1",
    "kreassign import-metrics b1.txt b2.txt --data ./data --cluster prod --instance b1.txt=1 --instance b2.txt=2",
    "kreassign import-metrics kafka-exporter.json --data ./data --cluster prod",
)
@click.command("import-metrics")
@_FILES
@values.data_option
@click.option("--cluster", required=True, metavar="ID", help="Cluster that the files are from.")
@click.option(
    "--broker",
    type=values.BROKER_ID,
    metavar="ID",
    help="Broker that the files are from.  [default: as --instance says]",
)
@click.option(
    "--instance",
    "instances",
    multiple=True,
    callback=parse_instances,
    metavar="INSTANCE=ID",
    help="Broker of the readings with this label `instance`, or without one in the file of this name; may be "
    "repeated.  [default: as labels say]",
)
def import_metrics(
    files: tuple[Path, ...], data: Path | str, cluster: str, broker: int | None, instances: dict[str, int]
) -> None:
    """Import FILES with measures of exporters into tables `metrics` and `samples` in DIR.

    A file is a page of the JMX exporter, of kafka_exporter, of kminion, of Amazon MSK or of Confluent Cloud in
    Prometheus' text format, an answer of Prometheus' query API, series of remote read as JSON, or an answer of
    Confluent's Metrics API. Import the files of one time together: offsets and sizes are joined. A page without times
    was taken when its file was last written. What is there already is not added again; what is not good goes to table
    `import_quarantine`.
    """
    _show(ingest.import_metrics(files, data, cluster, broker, instances), "reading")


@examples(
    "kreassign import-samples samples.csv --data ./data --cluster prod",
    "kreassign import-samples 2026-01-*.parquet --data ./data",
)
@click.command("import-samples")
@_FILES
@values.data_option
@click.option(
    "--cluster", metavar="ID", help="Cluster of the rows that do not name theirs.  [default: none; each names it]"
)
def import_samples(files: tuple[Path, ...], data: Path | str, cluster: str | None) -> None:
    """Import FILES with offsets and sizes of partitions, of whatever origin, into table `samples` in DIR.

    A file is Parquet, CSV with a header, or JSON lines, and has the columns of the table by their names: taken_ms,
    topic, partition, start_offset, end_offset; cluster_id unless --cluster is given; if known topic_id, leader and
    size_bytes. What is there already is not added again; bad rows go to table `import_quarantine`.
    """
    _show(ingest.import_samples(files, data, cluster), "row")


def _show(done: ingest.Imported, what: str) -> None:
    for each in done.files:
        others = f", {each.others} of no use here" if each.others else ""
        click.echo(f"{each.file}: {counted(each.usable, what)}{others}")
        _show_bad(each.file, each.bad, quotes=each.usable > 0)
        for instance, count in each.unknown.items():
            click.echo(f"{each.file}: {count} of {instance}, whose broker is not known: add --instance {instance}=ID")
    _show_bad("all files", done.together, quotes=True)
    added = ", ".join(f"{count} to {table}" for table, count in done.added.items())
    click.echo(
        f"added {added or 'nothing'}" + (f"; {done.known_already} were there already" if done.known_already else "")
    )
    done.check()
    print_next(next_command("load", takes=DATA))


def _show_bad(subject: object, bad: ingest.Bad, *, quotes: bool) -> None:
    """Show a line per reason; it `quotes` no file of which nothing is used: that may be a secret, named by mistake."""
    for reason, count in bad.counts.items():
        first = bad.first[reason]
        text = first.text if len(first.text) <= SHOWN_OF_ROW else f"{first.text[:SHOWN_OF_ROW]}…"
        click.echo(f"{subject}: {count} not stored: {reason}; first {first.place}{f': {text}' if quotes else ''}")


@examples(
    "kreassign stream-metrics --bootstrap-server localhost:9092 --topic metrics --cluster prod --data ./data",
    "kreassign stream-metrics --bootstrap-server localhost:9092 --topic metrics --cluster prod --data data --once",
    "kreassign stream-metrics --bootstrap-server localhost:9093 --command-config client.properties --topic metrics "
    "--cluster prod --data ./data",
)
@click.command("stream-metrics")
@cluster_options
@values.data_option
@click.option("--topic", required=True, metavar="NAME", help="Topic of metrics.")
@click.option("--form", type=click.Choice([form.value for form in RecordForm]), default=RecordForm.JSON.value,
              show_default=True, help="Format of its records.")  # fmt: skip
@click.option("--cluster", "cluster_id", required=True, metavar="ID", help="Cluster that the metrics are from.")
@click.option("--jars", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="Jars of Spark's Kafka source.  [default: those that Spark has]")  # fmt: skip
@click.option("--once", is_flag=True, help="Read what is there and exit.")
@click.option(
    "--max-offsets-per-trigger",
    type=values.WholeRange(min=1, max=MOST_OFFSETS),
    default=MAX_OFFSETS,
    show_default=True,
    help="Most records of a batch.",
)
@values.master_option
def stream_metrics(
    cluster: ClusterOptions,
    data: Path | str,
    topic: str,
    form: str,
    cluster_id: str,
    jars: Path | None,
    once: bool,
    max_offsets_per_trigger: int,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
) -> None:
    """Stream a Kafka topic of metrics into table `metrics` in DIR, each metric exactly once.

    It may be killed at any time and started again, and its checkpoint in DIR may be removed. Every record that is not
    in `metrics` goes to table `metrics_quarantine` with the reason, or is counted as known before or of no use in table
    `metric_batches`. After every 60 batches the files of these tables are compacted. Spark's log goes to DIR/spark.log.
    """
    bootstrap, config = str(cluster.bootstrap_server), cluster.command_config
    source = MetricStream(bootstrap, topic, cluster_id, RecordForm(form), jars, config, max_offsets_per_trigger)
    treated = ingest.stream_metrics(source, data, SparkOptions(master, dict(conf)), click.echo, once=once)
    told = ", ".join(f"{count:,} {treatment}" for treatment, count in treated.items() if count)
    click.echo(f"records: {told or 'none'}")
    print_next(next_command("load", takes=DATA))


@examples(
    "kreassign compact --data ./data",
    "kreassign compact --data ./data --keep-days 30",
)
@click.command()
@values.data_option
@click.option(
    "--keep-days",
    type=values.FiniteRange(0, MOST_DAYS, min_open=True),
    metavar="DAYS",
    help="Delete dates, audited runs and readings before this many days ago.  [default: keep everything]",
)
def compact(data: Path | str, keep_days: float | None) -> None:
    """Compact table files; delete expired ones.

    Merges the small files of every date, and deletes files that no version of the last 7 days has. Collectors and loads
    may run meanwhile. It may be killed at any time.
    """
    for done in tables.compact_tables(data, keep_days):
        missing = f", {done.missing} missing files taken out of the table" if done.missing else ""
        click.echo(
            f"{done.table}: {counted(done.merged, 'file')} merged, {done.expired} expired, "
            f"{done.vacuumed} deleted{missing}"
        )
    print_next(next_command("load", takes=DATA))


@examples(
    "kreassign load --data ./data",
    "kreassign load --data ./data --show",
    "kreassign load --data s3a://bucket/data --master spark://host:7077",
)
@click.command()
@values.data_option
@values.master_option
@click.option(
    "--horizon-days",
    type=values.FiniteRange(0, MOST_DAYS),
    default=30.0,
    show_default=True,
    metavar="DAYS",
    help="How far ahead to forecast.",
)
@click.option(
    "--window",
    "window_days",
    type=values.WholeRange(min=1, max=366),
    default=28,
    show_default=True,
    metavar="DAYS",
    help="Recent days that loads and forecast are based on.",
)
@click.option("--full", is_flag=True, help="Read all samples again, those too that came late for hours closed by now.")
@click.option("--quality", is_flag=True, help="Show how rows were treated, load after load.")
@click.option("--show", is_flag=True, help="Show what the load says, as `kreassign show-load` does.")
@page_option
def load(
    data: Path | str,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    horizon_days: float,
    window_days: int,
    page: Path | None,
    *,
    quality: bool,
    show: bool,
    full: bool,
) -> None:
    """Compute load per partition from snapshots and samples.

    Makes tables `load_hours`, `load_model`, `backtests`, `forecast`, `skew` and `plan_inputs` in DIR from the
    latest snapshot, the samples that came since the last load and the hours of those before; bad rows go to table
    `quarantine`, the counts of all steps to `loads` and `load_quality`. Spark's log goes to DIR/spark.log.
    DIR may be an address that Spark understands, such as s3a://bucket/data; then the log goes to the working directory.
    """
    working = WorkingLine()
    try:
        told = tables.load(
            data,
            SparkOptions(master, dict(conf)),
            horizon_days,
            working.say,
            window_days=window_days,
            quality=quality,
            is_full=full,
            watch=working.show,
        )
    finally:
        working.end()
    for what, counts in told.items():
        click.echo(f"{what}: " + ", ".join(f"{count} {value}" for value, count in counts.items()))
    if show:
        click.echo()
        print_loads(data)
    if page is not None:
        write_page(page, data)
    print_next(next_command("plan", "--out", "plan.json", takes=DATA))


@examples(
    "kreassign collect --bootstrap-server localhost:9092 --data ./data --interval 60s",
    "kreassign collect --bootstrap-server localhost:9092 --data ./data --interval 10s --rounds 6",
)
@click.command()
@cluster_options
@values.data_or_out_option
@click.option(
    "--interval",
    type=values.parse_interval,
    default="60s",
    show_default=True,
    metavar="TIME",
    help="Time from the start of one round to the next.",
)
@click.option("--rounds", type=values.WholeRange(min=1), help="Number of rounds.  [default: unlimited]")
def collect(cluster: ClusterOptions, data: Path | str, interval: float, rounds: int | None) -> None:
    """Sample the cluster, round after round, without an agent on brokers.

    Every round adds one file to each of the tables of a snapshot, to `samples` and to `throttles` in DIR, in a folder
    of its date (UTC), in one commit for each table: stop it at any time, start it again at any time. A round that
    the cluster does not answer is reported and skipped; only the first must succeed. Rates need at least two rounds.
    """
    stored = 0
    with cluster.connect() as client:
        try:
            for done in collect_rounds(client, data, rounds=rounds, interval_s=interval, warn=warn):
                click.echo(line(done, rounds, data))
                stored += done.partitions is not None
        finally:  # Ctrl-C usually ends the loop
            _print_next(stored)


def _print_next(stored: int) -> None:
    """Suggest the load model, or another round if one alone gives no rates."""
    if stored > 1:
        print_next(next_command("load", takes=DATA))
    elif stored:
        print_next(next_command("collect", takes=(*CLUSTER, *DATA)))


def line(done: Round, rounds: int | None, data: Path | str) -> str:
    """The line to print for a round; warns if the cluster did not answer."""
    if done.problem is not None:
        warn(str(done.problem))
    stored = (
        "nothing: the cluster did not answer;" if done.partitions is None else counted(done.partitions, "partition")
    )
    return f"round {done.number}{'' if rounds is None else f' of {rounds}'}: {stored} in {data}"
