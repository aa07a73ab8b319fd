"""`python -m tests.simulation 1-1000`: let stories happen, until one goes wrong."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tests.simulation.story import told


def parse_seeds(text: str) -> Iterator[int]:
    """Seeds such as `7`, `1-100` or `1-100,7000`."""
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            yield from range(int(first), int(last if dash else first) + 1)
    except ValueError:
        raise click.BadParameter(f"{text!r} are no seeds; write for example 7, or 1-100,7000") from None


@click.command()
@click.argument("seeds", type=lambda text: tuple(parse_seeds(text)))
@click.option("--verbose", is_flag=True, help="Print every line of the stories.")
def main(seeds: tuple[int, ...], *, verbose: bool) -> None:
    """Let the stories of these seeds happen. What goes wrong ends it, and its last line says how to see it again."""
    for seed in seeds:
        click.echo(f"seed {seed}", nl=False)
        ending = told(seed)
        hours = ending.lasted_ms / 3_600_000
        click.echo(f" ended after {hours:.1f} h and {ending.records} records, digest {ending.digest}")
        if verbose:
            click.echo("\n".join(ending.lines))


if __name__ == "__main__":
    main()
