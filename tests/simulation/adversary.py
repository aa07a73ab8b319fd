"""`python -m tests.simulation.adversary 1-9`: runs against the scenarios of adversaries, which take turns by seed.

The seed shifts when each fault begins, so that it meets the run in another state.
"""

from __future__ import annotations

import click

from tests.campaigns.campaign import JOBS, MINUTES, Result, parse_seeds, play, print_results
from tests.simulation.draw import ADVERSARIES, adversary
from tests.simulation.runs import play_trial


def play_adversary(seed: int) -> Result:
    """A run while the adversary of a seed does what it does."""
    return play_trial(adversary(ADVERSARIES[(seed - 1) % len(ADVERSARIES)], seed))


@click.command()
@click.argument("seeds")
@MINUTES
@JOBS
def main(seeds: str, minutes: float | None, jobs: int) -> None:
    """Execute runs under the adversaries of these seeds; exit code 1 if a promise was broken."""
    again = "python -m tests.simulation.adversary {}"
    if print_results(play(play_adversary, parse_seeds(seeds), minutes, jobs), again).broken:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
