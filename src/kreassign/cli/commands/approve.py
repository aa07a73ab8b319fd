"""`kreassign approve`: agrees to a plan, so that `kreassign run --require-approval` executes it."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.next_command import CLUSTER, next_command, print_next
from kreassign.cli.output import examples
from kreassign.clock import SystemClock
from kreassign.model.plan_facts import plan_id
from kreassign.operations.approvals import approve as approve_plan
from kreassign.operations.approvals import revoke
from kreassign.operations.journals import this_operator
from kreassign.operations.plan_files import read_plan_file


@click.command(
    epilog=examples(
        "kreassign approve plan.json",
        "kreassign approve plan.json --note 'change 4711'",
        "kreassign approve plan.json --revoke",
    )
)
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--note", default="", metavar="TEXT", help="Note to keep with the approval.  [default: none]")
@click.option("--revoke", "is_revoked", is_flag=True, help="Take the approval back.")
def approve(plan: Path, note: str, is_revoked: bool) -> None:
    """Approve PLAN as it is now: `kreassign run --require-approval` executes it, until it is changed.

    The approval is a file beside the plan, with the name of the user.
    """
    if is_revoked:
        revoke(plan)
        click.echo(f"{plan.name}: not approved any more")
        return
    seen = plan_id(read_plan_file(plan).plan)
    found = approve_plan(plan, seen, this_operator().user, note, SystemClock().now_ms())
    click.echo(f"{plan.name}: plan {found.plan_id} approved by {found.approved_by}")
    print_next(next_command("run", plan, "--require-approval", takes=CLUSTER))
