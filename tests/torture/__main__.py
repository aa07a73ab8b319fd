"""`python -m tests.torture --faults 80 --seed 1`: faults on real Kafka, one after the other, and what came of them."""

from __future__ import annotations

import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path

import click

from tests.campaigns.campaign import MINUTES, WRITE
from tests.campaigns.page import report
from tests.torture.campaign import Campaign
from tests.torture.disk_faults import ROOTS_FAULTS
from tests.torture.faults import FAULTS
from tests.torture.small_disk import can_mount

SECTION = "faults on real Kafka"
NAME = click.Choice([fault.name for fault in FAULTS])


@click.command()
@click.option("--faults", default=160, show_default=True, help="How many faults to strike.")
@click.option("--seed", default=1, show_default=True, help="What is drawn at random.")
@click.option("--only", multiple=True, type=NAME, help="Strike only these.")
@click.option("--without", multiple=True, type=NAME, help="Do not strike these.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Leave journals and output there.")
@MINUTES
@WRITE
def main(
    faults: int,
    seed: int,
    only: tuple[str, ...],
    without: tuple[str, ...],
    keep: Path | None,
    minutes: float | None,
    *,
    writes: bool,
) -> None:
    """Strike faults while runs move partitions of real Kafka; print a table. Exit code 1 if a promise was broken."""
    chosen = [fault for fault in FAULTS if (not only or fault.name in only) and fault.name not in without]
    if not can_mount():
        chosen = [fault for fault in chosen if fault not in ROOTS_FAULTS]
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
    command = f"make torture-kafka FAULTS={faults} SEED={seed}"
    report(SECTION, command, campaign.table(), is_broken=bool(campaign.broken), writes=writes)


if __name__ == "__main__":
    main()
