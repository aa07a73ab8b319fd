"""`python -m tests.mutants [--jobs N] [ID...]`: put small faults into the product, and see whether a test notices."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tests.mutants.run import verdicts
from tests.mutants.table import TABLE, read_table


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Mutants to test at a time.")
@click.option("--table", type=click.Path(exists=True, path_type=Path), default=TABLE, help="Another table of mutants.")
@click.option(
    "--checkout", type=click.Path(exists=True, path_type=Path), default=Path.cwd(), help="The sources and their tests."
)
@click.option("--python", default=sys.executable, help="The interpreter that runs the tests.")
def main(ids: tuple[str, ...], jobs: int, table: Path, checkout: Path, python: str) -> None:
    """Test all mutants, or those whose id begins with one of IDS. Exit code 1 if any survived."""
    mutants = [one for one in read_table(table) if not ids or one.id.startswith(ids)]
    if lost := [one.id for one in mutants if one.occurrences(checkout) != 1]:
        raise click.ClickException(f"their place is not there exactly once: {', '.join(lost)}")
    survivors = []
    for verdict in verdicts(mutants, checkout.absolute(), python, jobs):
        word = "survived" if verdict.killer is None else "killed by"
        click.echo(f"{verdict.mutant.id:40} {verdict.seconds:5.0f} s  {word} {verdict.killer or ''}".rstrip())
        survivors += [verdict.mutant.id] if verdict.killer is None else []
    click.echo(
        f"\n{len(mutants) - len(survivors)} of {len(mutants)} killed; survived: {', '.join(survivors) or 'none'}"
    )
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
