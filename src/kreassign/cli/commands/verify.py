"""`kreassign verify`: does the cluster match a plan, or a run, and is no throttle left."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kreassign.admin import AdminClient
from kreassign.cli.context import cluster_options, connect
from kreassign.cli.output import console, format_option, print_json
from kreassign.cli.plan_files import read_plan
from kreassign.cli.runs import find_journal, state_dir_option
from kreassign.errors import InputError
from kreassign.executor.cluster import queries
from kreassign.executor.history.run_history import fold
from kreassign.executor.history.verify import Facts, Finding, Wishes
from kreassign.executor.history.verify import verify as compare
from kreassign.executor.journal import SUFFIX, read_events
from kreassign.executor.throttle.ledger import ConfigKey, ConfigValue
from kreassign.model import ConfigResource
from kreassign.model.plan import Plan
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.report.text import format_bytes


@click.command()
@click.argument("subject", metavar="PLAN|RUN_ID")
@cluster_options
@click.option("--ignore-throttles", is_flag=True, help="Do not mind throttles that are set.")
@state_dir_option
@format_option
@click.pass_context
def verify(
    context: click.Context, /, subject: str, bootstrap_server: str, command_config: Path | None, output_format: str,
    **wish: Any,
) -> None:  # fmt: skip
    """Check that the cluster is as PLAN says, or as run RUN_ID was to leave it; changes nothing.

    Looks at the replicas and their order, the ISR, the leaders, the sizes of copies, log directories that the plan
    names, and throttles: with a plan there shall be none on its topics and on any broker, with a run those from before
    it. Exit code 0 if all is well, 1 if not.
    """
    with connect(bootstrap_server, command_config) as client:
        wishes = _wishes(client, subject, wish["state_dir"], minds_throttles=not wish["ignore_throttles"])
        facts = queries.read_facts(client, wishes)
    findings = compare(wishes, facts)
    if output_format == "json":
        print_json(_document(wishes, facts, findings))
    else:
        _tell(wishes, facts, findings)
    context.exit(1 if findings else 0)


def _wishes(client: AdminClient, subject: str, state_dir: Path, *, minds_throttles: bool) -> Wishes:
    if Path(subject).is_file() and not subject.endswith(SUFFIX):
        plan = read_plan(Path(subject))
        configs = _no_throttles(plan, client.describe_cluster().broker_ids) if minds_throttles else ()
        return Wishes(plan.replicas, plan.log_dirs, configs, minds_sizes=True)
    if subject.endswith(".json"):
        raise InputError(f"there is no plan {subject}")
    return _wishes_of_run(find_journal(state_dir, subject), minds_throttles=minds_throttles)


def _wishes_of_run(journal: Path, *, minds_throttles: bool) -> Wishes:
    run = fold(read_events(journal))
    before = tuple(ConfigValue(debt.key, debt.before) for debt in run.ledger.values()) if minds_throttles else ()
    moves = [record.move for record in run.records.values()]
    targets = {move.topic_partition: move.target for move in moves}
    log_dirs = {copy: path for move in moves for copy, path in move.places.items()}
    return Wishes(targets, log_dirs, before, minds_sizes=True)


def _no_throttles(plan: Plan, brokers: tuple[int, ...]) -> tuple[ConfigValue, ...]:
    keys = [ConfigKey(ConfigResource.topic(topic), name) for topic in plan.topics for name in TOPIC_THROTTLES]
    keys += [ConfigKey(ConfigResource.broker(broker), name) for broker in brokers for name in BROKER_THROTTLES]
    return tuple(ConfigValue(key, None) for key in keys)


def _document(wishes: Wishes, facts: Facts, findings: tuple[Finding, ...]) -> dict[str, object]:
    copies = [
        {"topic": copy.topic, "partition": copy.partition, "broker": copy.broker, "size_bytes": size}
        for copy, size in sorted(facts.sizes.items())
    ]
    return {
        "ok": not findings,
        "partitions": len(wishes.replicas),
        "findings": [asdict(one) for one in findings],
        "copies": copies,
    }


def _tell(wishes: Wishes, facts: Facts, findings: tuple[Finding, ...]) -> None:
    for finding in findings:
        console().print(str(finding), soft_wrap=True)
    held = f"{len(wishes.replicas)} partitions, {format_bytes(sum(facts.sizes.values()))} in {len(facts.sizes)} copies"
    console().print(f"{held}: " + (f"{len(findings)} findings" if findings else "all as planned"))
