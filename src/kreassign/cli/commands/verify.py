"""`kreassign verify`: does the cluster match a plan, or a run, and is no throttle left."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kreassign.admin import AdminClient
from kreassign.cli.next_command import CLUSTER, STATE, next_command, print_next
from kreassign.cli.options.cluster import ClusterOptions, cluster_options
from kreassign.cli.options.state_dir import state_dir_option
from kreassign.cli.output import console, counted, examples, format_option, print_json
from kreassign.cli.remedies import pasted
from kreassign.errors import InputError
from kreassign.operations.journals import all_journals, find_journal, is_journal
from kreassign.operations.plan_files import read_plan_file
from kreassign.operations.verify import Verification, verify_plan, verify_run
from kreassign.report.text import format_bytes


@click.command(
    epilog=examples(
        "kreassign verify plan.json --bootstrap-server localhost:9092",
        "kreassign verify 20270131T220000Z-1a2b --bootstrap-server localhost:9092",
    )
)
@click.argument("subject", metavar="PLAN|RUN_ID")
@cluster_options
@click.option("--ignore-throttles", is_flag=True, help="Ignore active throttles.")
@state_dir_option
@format_option
@click.pass_context
def verify(
    context: click.Context,
    /,
    subject: str,
    cluster: ClusterOptions,
    ignore_throttles: bool,
    state_dir: Path,
    output_format: str,
) -> None:
    """Verify that the cluster matches PLAN, or what run RUN_ID was to leave; change nothing.

    Compares the replicas and their order, the ISR, the leaders, the sizes of copies, log directories that the plan
    names, and throttles: with a plan there must be none on its topics and on any broker, with a run nothing may be left
    of what it ever set. Exit code 0 if everything matches, 1 if not.
    """
    with cluster.connect() as client:
        found = _verified(client, subject, state_dir, ignore_throttles=ignore_throttles)
    if output_format == "json":
        print_json(_document(found, cluster))
    else:
        _tell(found, cluster)
        _print_next(found, subject, state_dir)
    context.exit(0 if found.is_ok else 1)


def _is_plan(subject: str) -> bool:
    return Path(subject).is_file() and not is_journal(subject)


def _verified(client: AdminClient, subject: str, state_dir: Path, *, ignore_throttles: bool) -> Verification:
    if _is_plan(subject):
        return verify_plan(client, read_plan_file(Path(subject)), ignore_throttles=ignore_throttles)
    if subject.endswith(".json"):
        raise InputError(f"there is no plan {subject}")
    return verify_run(client, find_journal(state_dir, subject), ignore_throttles=ignore_throttles)


def _print_next(found: Verification, subject: str, state_dir: Path) -> None:
    """The report of the run, or of the latest one; what is wrong with the cluster where it does not match."""
    if not found.is_ok:
        print_next(next_command("doctor", takes=CLUSTER))
    elif not _is_plan(subject):
        print_next(next_command("report", "--run", subject, takes=STATE))
    elif all_journals(state_dir):
        print_next(next_command("report", takes=STATE))


def _document(found: Verification, cluster: ClusterOptions) -> dict[str, object]:
    copies = [
        {"topic": copy.topic, "partition": copy.partition, "broker": copy.broker, "size_bytes": size}
        for copy, size in sorted(found.facts.sizes.items())
    ]
    return {
        "ok": found.is_ok,
        "partitions": len(found.expected.replicas),
        "findings": [asdict(one) for one in found.findings],
        "remedies": [pasted(words, cluster) for words in found.remedies],
        "copies": copies,
    }


def _tell(found: Verification, cluster: ClusterOptions) -> None:
    for finding in found.findings:
        console().print(str(finding), soft_wrap=True)
    for words in found.remedies:
        click.echo(f"  to restore it: {pasted(words, cluster)}")
    sizes = found.facts.sizes
    held = f"{len(found.expected.replicas)} partitions, {format_bytes(sum(sizes.values()))} in {len(sizes)} copies"
    console().print(f"{held}: " + ("all as planned" if found.is_ok else counted(len(found.findings), "finding")))
