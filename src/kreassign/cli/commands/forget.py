"""`kreassign forget`: takes out of the way what an interrupted run can never settle."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kreassign.cli.next_command import CLUSTER, STATE, next_command, print_next
from kreassign.cli.options.state_dir import state_dir_option
from kreassign.cli.options.values import BROKER_ID
from kreassign.cli.output import examples, format_option, print_json
from kreassign.operations.forget import forget_brokers, forget_journal
from kreassign.operations.journals import find_journal


@click.command(
    epilog=examples(
        "kreassign forget 20270131T220000Z-1a2b --broker 4",
        "kreassign forget 20270131T220000Z-1a2b",
    )
)
@click.argument("run_id")
@click.option(
    "--broker",
    "brokers",
    type=BROKER_ID,
    multiple=True,
    metavar="ID",
    help="Lost broker; may be repeated.  [default: none]",
)
@state_dir_option
@format_option
def forget(run_id: str, brokers: tuple[int, ...], state_dir: Path, output_format: str) -> None:
    """Give up what interrupted run RUN_ID can never settle, so that new runs can begin; change nothing on the cluster.

    With --broker: restore nothing any more on that broker, which is lost for good. What stays set there is printed.
    Without: set the journal of the run aside, which must be unreadable. The file is kept under another name; moves and
    throttles of that run stay as they are, and `kreassign doctor` names them.
    """
    if brokers:
        _forget_brokers(find_journal(state_dir, run_id), brokers, output_format)
    else:
        _forget_journal(find_journal(state_dir, run_id), output_format)


def _forget_brokers(path: Path, brokers: tuple[int, ...], output_format: str) -> None:
    found = forget_brokers(path, brokers)
    if output_format == "json":
        print_json({"run_id": path.stem, "brokers": list(brokers), **asdict(found)})
        return
    for sentence in found.left_behind:
        click.echo(f"given up: {sentence}")
    click.echo("should such a broker come back, delete these with kafka-configs")
    if found.residue:
        click.echo(f"{len(found.residue)} settings are still to be restored")
        print_next(next_command("resume", path.stem, takes=(*CLUSTER, *STATE)))


def _forget_journal(path: Path, output_format: str) -> None:
    found, kept = forget_journal(path)
    if output_format == "json":
        print_json({"run_id": found.run_id, "problem": str(found), "kept_as": str(kept)})
        return
    click.echo(f"run {found.run_id} no longer stands in the way of others; its journal is kept as {kept}")
    click.echo("what it left on the cluster stays: `kreassign doctor` names reassignments and throttles")
    print_next(next_command("doctor", takes=CLUSTER))
