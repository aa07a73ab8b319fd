"""`kreassign verify`: does the cluster match a plan, and is no throttle left."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kreassign.admin import AdminClient
from kreassign.cli.context import cluster_options, connect
from kreassign.cli.output import console, format_option, print_json
from kreassign.cli.plan_files import read_plan
from kreassign.executor import reading
from kreassign.executor.throttling import ConfigKey, ConfigValue
from kreassign.executor.verify import Finding, Wishes
from kreassign.executor.verify import verify as compare
from kreassign.model import ConfigResource
from kreassign.model.plan import Plan
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES


@click.command()
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@cluster_options
@click.option("--ignore-throttles", is_flag=True, help="Do not mind throttles that are set.")
@format_option
@click.pass_context
def verify(
    context: click.Context,
    plan: Path,
    bootstrap_server: str,
    command_config: Path | None,
    ignore_throttles: bool,
    output_format: str,
) -> None:
    """Check that the cluster is as PLAN says; changes nothing.

    Looks at the replicas and their order, the ISR, the leaders, log directories that the plan names, and throttles on
    the topics of the plan and on any broker. Exit code 0 if all is well, 1 if not.
    """
    wanted = read_plan(plan)
    with connect(bootstrap_server, command_config) as client:
        findings = check(client, wanted, minds_throttles=not ignore_throttles)
    if output_format == "json":
        print_json({"ok": not findings, "partitions": len(wanted), "findings": [asdict(one) for one in findings]})
    else:
        for finding in findings:
            console().print(str(finding), soft_wrap=True)
        console().print(f"{len(wanted)} partitions: " + (f"{len(findings)} findings" if findings else "all as planned"))
    context.exit(1 if findings else 0)


def check(client: AdminClient, plan: Plan, *, minds_throttles: bool) -> tuple[Finding, ...]:
    """Everything in which the cluster differs from the plan."""
    configs = _no_throttles(plan, client.describe_cluster().broker_ids) if minds_throttles else ()
    wishes = Wishes(plan.replicas, plan.log_dirs, configs)
    return compare(wishes, reading.read_facts(client, wishes))


def _no_throttles(plan: Plan, brokers: tuple[int, ...]) -> tuple[ConfigValue, ...]:
    keys = [ConfigKey(ConfigResource.topic(topic), name) for topic in plan.topics for name in TOPIC_THROTTLES]
    keys += [ConfigKey(ConfigResource.broker(broker), name) for broker in brokers for name in BROKER_THROTTLES]
    return tuple(ConfigValue(key, None) for key in keys)
