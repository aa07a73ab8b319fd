"""`kreassign report`: one page about a run, from its journal and the snapshots before and after it."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.data_dir import data_option
from kreassign.cli.options.state_dir import state_dir_option
from kreassign.cli.options.values import OUTPUT_FILE
from kreassign.cli.output import examples, warn
from kreassign.operations.journals import find_journal
from kreassign.operations.report import report_page


@click.command(
    epilog=examples(
        "kreassign report --run 20270131T220000Z-1a2b --data ./data --out report.html",
    )
)
@data_option
@state_dir_option
@click.option("--run", "run_name", required=True, metavar="RUN_ID|JOURNAL", help="Id of the run, or its journal file.")
@click.option(
    "--out",
    type=OUTPUT_FILE,
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="Page to write.",
)
def report(data: Path | str, state_dir: Path, run_name: str, out: Path) -> None:
    """Write an HTML report of a run: brokers before and after, moves, rates, verification.

    Before and after come from the snapshots in DIR: the last one from before the run, and the first one from after its
    end. The page is one self-contained file.
    """
    journal = find_journal(state_dir, run_name)
    out.write_text(report_page(journal, data, warn), encoding="utf-8")
    click.echo(f"report of run {journal.stem}: {out}")
