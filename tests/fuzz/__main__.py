"""`python -m tests.fuzz --examples 2000`: odd input to everything that reads any; code 1 if an example is broken."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import click

from tests.fuzz.campaign import Tally, table, tried_apart
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS
from tests.torture.page import conditions, write_section

SIDE_BY_SIDE = 2


@click.command()
@click.option("--examples", default=2_000, show_default=True, help="Examples of each target.")
@click.option("--first", default=0, show_default=True, help="Number of the first example: another one, other examples.")
@click.option("--only", multiple=True, help="Only targets whose name has this word; may be repeated.")
@click.option("--write", is_flag=True, help="Write the table into docs/reference/torture.md.")
def main(examples: int, first: int, only: tuple[str, ...], *, write: bool) -> None:
    """Try examples of every target, each in a process of its own."""
    chosen = [one for one in TARGETS.values() if not only or any(word in one.name for word in only)]

    def campaign(target: Target) -> Tally:
        found = tried_apart(target, first, max(1, round(examples * target.share)))
        slow = f"{found.longest_s:.1f} s for example {found.slowest}"
        click.echo(f"{target.name}: {found.tried} tried, {len(found.broken)} broken, {slow}", err=True)
        return found

    with ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
        tallies = list(threads.map(campaign, chosen))
    text = table(tallies)
    click.echo(text)
    for one in tallies:
        for sentence in one.broken:
            click.echo(f"\n{one.target}: {sentence}")
    if write:
        write_section("fuzz", f"{conditions(f'make fuzz EXAMPLES={examples}')}\n\n{text}")
    sys.exit(any(one.broken for one in tallies))


if __name__ == "__main__":
    main()
