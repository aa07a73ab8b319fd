"""`python -m tests.conformance.differential --seed 7 --steps 1000`: a long comparison, on demand."""

from __future__ import annotations

import random
import sys
import time
from dataclasses import replace

import click

from testbed import KafkaCluster
from testbed.releases import DEFAULT, FORMER
from tests.conformance.differential.comparing import SPEC, both_sides, compare


@click.command()
@click.option("--seed", type=int, default=None, help="What decides every step; drawn if it is not given.")
@click.option("--steps", type=click.IntRange(min=1), default=1_000, show_default=True, help="How many steps.")
@click.option("--release", default=DEFAULT, show_default=True, help=f"The release of Kafka, for example {FORMER}.")
@click.option("--verbose", is_flag=True, help="Show every step before it is done.")
def main(seed: int | None, steps: int, release: str, verbose: bool) -> None:
    """Do the same to real Kafka and to a twin of its release, and compare them after each step."""
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    click.echo(f"seed {seed}, Kafka {release}")
    started = time.monotonic()
    with KafkaCluster.start(replace(SPEC, version=release)) as cluster, both_sides(cluster) as (twin, kafka):
        course = compare(twin, kafka, seed, steps, click.echo if verbose else lambda _: None)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(course.steps.items()))
    click.echo(f"{sum(course.steps.values())} steps in {time.monotonic() - started:.0f} s: {kinds}")
    click.echo(
        f"answer and state are equal after {course.equal}; {course.held / steps:.1f} moves open at rest on average"
    )
    click.echo(f"{course.refused} answers with a refusal, {course.cordoned} of them of a list with a cordoned broker")
    if course.divergence is not None:
        click.echo(f"{course.divergence}")
        again = f"--seed {seed} --steps {course.divergence.number} --release {release}"
        click.echo(f"python -m tests.conformance.differential {again}")
        sys.exit(1)
    click.echo("no divergence")


main()
