"""`python -m tests.simulation.adversary 1-9`: runs against the scenarios of adversaries, which take turns by seed.

The seed shifts when each fault begins, so that it meets the run in another state.
"""

from __future__ import annotations

import click

from tests.campaigns.campaign import JOBS, MINUTES, Result, followed, parse_seeds, played
from tests.simulation.draw import ADVERSARIES, adversary
from tests.simulation.runs import result


def struck(seed: int) -> Result:
    """A run while the adversary of a seed does what it does."""
    return result(adversary(ADVERSARIES[(seed - 1) % len(ADVERSARIES)], seed))


@click.command()
@click.argument("seeds")
@MINUTES
@JOBS
def main(seeds: str, minutes: float | None, jobs: int) -> None:
    """Execute runs under the adversaries of these seeds; exit code 1 if a promise was broken."""
    again = "python -m tests.simulation.adversary {}"
    if followed(played(struck, parse_seeds(seeds), minutes, jobs), again).broken:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
