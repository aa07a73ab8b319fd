"""`python -m tests.torture --faults 80 --seed 1`: faults on real Kafka, one after the other, and what came of them."""

from __future__ import annotations

import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path

import click

from tests.torture.campaign import Campaign
from tests.torture.faults import FAULTS, ROOTS_FAULTS
from tests.torture.page import conditions, write_section
from tests.torture.small_disk import can_mount


@click.command()
@click.option("--faults", default=160, show_default=True, help="How many faults to strike.")
@click.option("--seed", default=1, show_default=True, help="What is drawn by lot.")
@click.option("--only", multiple=True, type=click.Choice([each.name for each in FAULTS]), help="Strike only these.")
@click.option(
    "--without", multiple=True, type=click.Choice([each.name for each in FAULTS]), help="Do not strike these."
)
@click.option("--minutes", type=float, help="Begin no further run after so long.")
@click.option("--write", is_flag=True, help="Write the table into docs/reference/torture.md, too.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Leave journals and output there.")
def main(
    faults: int,
    seed: int,
    only: tuple[str, ...],
    without: tuple[str, ...],
    keep: Path | None,
    minutes: float | None,
    *,
    write: bool,
) -> None:
    """Strike faults while runs move partitions of real Kafka; print a table. Exit code 1 if a promise was broken."""
    chosen = [each for each in FAULTS if (not only or each.name in only) and each.name not in without]
    if not can_mount():
        chosen = [each for each in chosen if each not in ROOTS_FAULTS]
        click.echo("without the right to mount disks: faults of disks and log dirs are not struck", err=True)
    # An end from outside too leaves no cluster and no mounted disk behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as stack:
        if keep is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kreassign-torture-")))
        else:
            folder = keep
            folder.mkdir(parents=True)
        campaign = Campaign(chosen, seed, folder)
        campaign.execute(faults, minutes)
        table = campaign.table()
        click.echo(table)
    if write:
        made_by = conditions(f"make torture-kafka FAULTS={faults} SEED={seed}")
        write_section("faults on real Kafka", f"{made_by}\n\n{table}")
    if campaign.broken:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
