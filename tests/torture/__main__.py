"""`python -m tests.torture --faults 80 --seed 1`: faults on real Kafka, one after the other, and what came of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from tests.torture.campaign import Campaign
from tests.torture.faults import FAULTS


@click.command()
@click.option("--faults", default=84, show_default=True, help="How many faults to strike.")
@click.option("--seed", default=1, show_default=True, help="What is drawn by lot.")
@click.option("--only", multiple=True, type=click.Choice([each.name for each in FAULTS]), help="Strike only these.")
def main(faults: int, seed: int, only: tuple[str, ...]) -> None:
    """Strike faults while runs move partitions of real Kafka; print a table. Exit code 1 if a promise was broken."""
    chosen = [each for each in FAULTS if not only or each.name in only]
    with tempfile.TemporaryDirectory(prefix="kreassign-torture-") as folder:
        campaign = Campaign(chosen, seed, Path(folder))
        campaign.execute(faults)
        click.echo(campaign.table())
    if campaign.broken:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
