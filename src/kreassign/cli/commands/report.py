"""`kreassign report`: one page about a run or a plan."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.next_command import CLUSTER, next_command, print_next
from kreassign.cli.options.data_dir import optional_data_option
from kreassign.cli.options.state_dir import state_dir_option
from kreassign.cli.options.values import OUTPUT_FILE
from kreassign.cli.output import examples, warn
from kreassign.cli.run_text import commands_after
from kreassign.errors import InputError
from kreassign.operations import steer
from kreassign.operations.journals import find_journal, is_active
from kreassign.operations.plan_files import read_plan_file
from kreassign.operations.report import plan_page, report_page


@click.command(
    epilog=examples(
        "kreassign report --run 20270131T220000Z-1a2b --data ./data --out report.html",
        "kreassign report --plan plan.json --out plan.html",
    )
)
@optional_data_option
@state_dir_option
@click.option(
    "--run",
    "run_name",
    metavar="RUN_ID|JOURNAL",
    help="Id of the run, its journal, or `last`.  [default: the one that is executed, or the latest]",
)
@click.option(
    "--plan",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Report the plan in FILE instead, for those who approve it.  [default: a run is reported]",
)
@click.option(
    "--out",
    type=OUTPUT_FILE,
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="Page to write.",
)
def report(data: Path | str | None, state_dir: Path, run_name: str | None, plan: Path | None, out: Path) -> None:
    """Write an HTML report of a run, or of a plan.

    Of a run: brokers before and after, who copied when and how fast, planned against achieved, guards, log,
    verification. Before and after come from the snapshots in DIR, if it is given: the last one from before the run, and
    the first one from after its end. Of a plan: brokers before and after, what is copied, the lower bound, and the
    reason of each change. The page is one self-contained file.
    """
    if run_name is not None and plan is not None:
        raise InputError("specify either --run RUN_ID or --plan FILE")
    if plan is not None:
        out.write_text(plan_page(read_plan_file(plan), plan.name), encoding="utf-8")
        click.echo(f"report of plan {plan.name}: {out}")
        print_next(next_command("approve", plan), next_command("run", plan, "--dry-run", takes=CLUSTER))
        return
    journal = find_journal(state_dir, run_name)
    out.write_text(report_page(journal, data, warn), encoding="utf-8")
    click.echo(f"report of run {journal.stem}: {out}")
    found = steer.status(journal)
    if found.state == "done" and not found.throttle_residue:
        print_next(next_command("doctor", takes=CLUSTER, of=found))
    else:
        print_next(*commands_after(found, is_active=is_active(journal)))
