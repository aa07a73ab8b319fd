"""`python -m tests.fuzz --examples 2000`: odd input to everything that reads any; code 1 if an example is broken."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import click

from tests.campaigns.campaign import WRITE, Tally
from tests.campaigns.page import report
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS, try_apart

SECTION = "fuzz"
SIDE_BY_SIDE = 2
_HEAD = """| target | examples | refused | accepted | longest, s | peak memory, MiB | broken |
|---|---|---|---|---|---|---|"""


def table(tallies: Sequence[Tally]) -> str:
    """The table of a campaign."""
    total = Tally("all")
    for tally in tallies:
        total.ends += tally.ends
        total.seconds += tally.seconds
        total.failed += tally.failed
        total.counts["memory"] |= tally.counts["memory"]
    return "\n".join([_HEAD, *map(_row, (*tallies, total))])


def _row(tally: Tally) -> str:
    counts = f"{tally.count:,} | {tally.ends['refused']:,} | {tally.ends['accepted']:,}"
    return f"| {tally.name} | {counts} | {tally.longest_s:.1f} | {tally.counts['memory']['MiB']} | {tally.failed} |"


@click.command()
@click.option("--examples", default=2_000, show_default=True, help="Examples of each target.")
@click.option("--first", default=0, show_default=True, help="Number of the first example: another one, other examples.")
@click.option("--only", multiple=True, help="Only targets whose name has this word; may be repeated.")
@WRITE
def main(examples: int, first: int, only: tuple[str, ...], *, writes: bool) -> None:
    """Try examples of every target, each in a process of its own."""

    def campaign(target: Target) -> Tally:
        tally = try_apart(target.name, first, max(1, round(examples * target.share)))
        slow = f"{tally.longest_s:.1f} s for example {tally.slowest}"
        click.echo(f"{target.name}: {tally.count} tried, {tally.failed} broken, {slow}", err=True)
        for sentence in tally.broken:
            click.echo(f"\n{target.name}: {sentence}", err=True)
        return tally

    chosen = [each for each in TARGETS.values() if not only or any(word in each.name for word in only)]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
        tallies = list(threads.map(campaign, chosen))
    is_broken = any(tally.failed for tally in tallies)
    report(SECTION, f"make fuzz EXAMPLES={examples}", table(tallies), is_broken=is_broken, writes=writes)


if __name__ == "__main__":
    main()
