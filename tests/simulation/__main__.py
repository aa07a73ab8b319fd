"""`python -m tests.simulation 1-1000`: let stories happen; those that go wrong say how to see them again."""

from __future__ import annotations

import click

from tests.campaigns.campaign import JOBS, MINUTES, parse_seeds, play, print_results
from tests.simulation.story import play_story


@click.command()
@click.argument("seeds")
@MINUTES
@JOBS
@click.option("--verbose", "is_verbose", is_flag=True, help="Print every line of the stories.")
def main(seeds: str, minutes: float | None, jobs: int, *, is_verbose: bool) -> None:
    """Let the stories of these seeds happen; exit code 1 if one goes wrong."""
    stories = play(play_story, parse_seeds(seeds), minutes, jobs)
    if print_results(stories, "make simulate SEEDS={}", is_verbose=is_verbose).broken:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
