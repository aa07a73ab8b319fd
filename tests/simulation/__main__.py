"""`python -m tests.simulation runs 1-1000`: trials of a kind by seed; exit code 1 if a promise was broken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import click

from tests.campaigns.campaign import JOBS, MINUTES, WRITE, Result, Tally, parse_seeds, play, print_results
from tests.campaigns.page import report
from tests.simulation import cordons, runs, sequence


class Kind(NamedTuple):
    """A kind of trial: how one is played, the command that repeats it, and its table, which a page may have."""

    play: Callable[[int], Result]
    again: str
    table: Callable[[Tally], str] | None = None
    is_on_page: bool = True


KINDS = {
    "runs": Kind(runs.play_run, "make torture-twin RUNS={} SEQUENCES=0", runs.table),
    "sequences": Kind(sequence.play_sequence, "make torture-twin RUNS=0 SEQUENCES={}", sequence.table),
    "adversaries": Kind(runs.play_adversary, "make simulate ADVERSARIES={}"),
    "plans": Kind(cordons.play_plans, "python -m tests.simulation plans {}", cordons.table, is_on_page=False),
}


def campaign(kind: str, seeds: Iterable[int], minutes: float | None = None, jobs: int = 1) -> Tally:
    """Try one seed after the other, for so long at the most, in so many processes."""
    return print_results(play(KINDS[kind].play, seeds, minutes, jobs), KINDS[kind].again)


@click.command()
@click.argument("kind", type=click.Choice(sorted(KINDS)))
@click.argument("seeds", default="1-1000")
@MINUTES
@JOBS
@WRITE
def main(kind: str, seeds: str, minutes: float | None, jobs: int, *, writes: bool) -> None:
    """Play the trials of these seeds, of which 0 is none; print a table."""
    if seeds == "0":
        return
    tally = campaign(kind, parse_seeds(seeds), minutes, jobs)
    # By the clock perhaps fewer than were asked for: these are they.
    done = f"{seeds.partition('-')[0]}-{tally.last}" if minutes else seeds
    _, again, table, is_on_page = KINDS[kind]
    if table is not None:
        writes = writes and is_on_page
        report(f"{kind} on the twin", again.format(done), table(tally), is_broken=tally.failed > 0, writes=writes)
    elif tally.failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
