"""`kreassign collect`: samples of the cluster, round after round."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.next_command import CLUSTER, DATA, next_command, print_next
from kreassign.cli.options.cluster import ClusterOptions, cluster_options
from kreassign.cli.options.data_dir import data_or_out_option
from kreassign.cli.options.values import WholeRange, parse_interval
from kreassign.cli.output import examples, warn
from kreassign.operations.collect import Round
from kreassign.operations.collect import collect as collect_rounds


@click.command(
    epilog=examples(
        "kreassign collect --bootstrap-server localhost:9092 --data ./data --interval 60s",
        "kreassign collect --bootstrap-server localhost:9092 --data ./data --interval 10s --rounds 6",
    )
)
@cluster_options
@data_or_out_option
@click.option(
    "--interval",
    type=parse_interval,
    default="60s",
    show_default=True,
    metavar="TIME",
    help="Time from the start of one round to the next.",
)
@click.option("--rounds", type=WholeRange(min=1), metavar="N", help="Number of rounds.  [default: unlimited]")
def collect(cluster: ClusterOptions, data: Path | str, interval: float, rounds: int | None) -> None:
    """Sample the cluster, round after round, without an agent on brokers.

    Every round adds one file to each of the tables of a snapshot, to `samples` and to `throttles` in DIR, in a folder
    of its date and hour. Files are written atomically: stop it at any time, start it again at any time. A round that
    the cluster does not answer is reported and skipped; only the first must succeed. Rates need at least two rounds.
    """
    stored = 0
    with cluster.connect() as client:
        try:
            for done in collect_rounds(client, data, rounds=rounds, interval_s=interval, warn=warn):
                click.echo(line(done, rounds, data))
                stored += done.partitions is not None
        finally:  # Ctrl-C is the usual end of it
            _print_next(stored)


def _print_next(stored: int) -> None:
    """The load model, or another round where this one alone has no rates."""
    if stored > 1:
        print_next(next_command("load", takes=DATA))
    elif stored:
        print_next(next_command("collect", takes=(*CLUSTER, *DATA)))


def line(done: Round, rounds: int | None, data: Path | str) -> str:
    """What is printed of a round; warns of one without an answer."""
    if done.problem is not None:
        warn(str(done.problem))
    stored = "nothing: the cluster did not answer;" if done.partitions is None else f"{done.partitions} partitions"
    return f"round {done.number}{'' if rounds is None else f' of {rounds}'}: {stored} in {data}"
