"""`kreassign audit`: proof that a move lost nothing, record by record; and the audit of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from kreassign.admin import AdminClient
from kreassign.admin.properties import read_properties
from kreassign.cli.audit_run import audit_run
from kreassign.cli.context import cluster_options, connect
from kreassign.cli.options.data_dir import data_option
from kreassign.cli.output import format_option, print_json
from kreassign.cli.spark_jobs import spark_jobs
from kreassign.clock import SystemClock
from kreassign.errors import InputError
from kreassign.model import ConfigResource, TopicPartition

CLEANUP_POLICY = "cleanup.policy"
_LABEL = re.compile(r"[A-Za-z0-9._-]+")
_COUNTS = ("expired", "compacted", "appended")
_MASTER = click.option(
    "--master", metavar="URL", help="Spark master; local[*] by default, or what spark-submit decides."
)


@click.group()
def audit() -> None:
    """Compare what was promised with what happened: of a run, or of the records themselves."""


audit.add_command(audit_run)


def _label(_: click.Context, __: click.Parameter, text: str) -> str:
    if not _LABEL.fullmatch(text):
        raise click.BadParameter(f"{text!r}: a label has letters, digits, dots, dashes and underscores")
    return text


@audit.command()
@data_option
@click.option("--label", required=True, callback=_label, metavar="NAME", help="Name of this reading, such as `before`.")
@click.option("--topics", multiple=True, metavar="REGEX", help="Topics to read; may be repeated.  [default: all]")
@click.option(
    "--jars",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Jars of Spark's Kafka source, unless spark-submit brings them.",
)
@_MASTER
@cluster_options
def records(data: Path, label: str, bootstrap_server: str, command_config: Path | None, **wishes: Any) -> None:
    """Read every record of topics and keep its hash, under a name.

    Takes all records between the first and the last offset of the moment. A reading of the same name is replaced.
    """
    jobs = spark_jobs("an audit")
    taken_ms = SystemClock().now_ms()
    with connect(bootstrap_server, command_config) as client:
        partitions = [jobs.data_audit.AuditedPartition(*facts) for facts in _partitions(client, wishes["topics"])]
    properties = read_properties(command_config) if command_config else {}
    paths = sorted(wishes["jars"].glob("*.jar")) if wishes["jars"] else ()
    with jobs.session.spark_session(data / "spark.log", wishes["master"], name="kreassign audit", jars=paths) as spark:
        found = jobs.data_audit.read_records(
            spark,
            data,
            label,
            partitions,
            client={**properties, "bootstrap.servers": bootstrap_server},
            taken_ms=taken_ms,
        )
    click.echo(f"{label}: {found} records of {len(partitions)} partitions")


@audit.command()
@click.argument("before")
@click.argument("after")
@data_option
@_MASTER
@format_option
@click.pass_context
def compare(
    context: click.Context, before: str, after: str, data: Path, master: str | None, output_format: str
) -> None:
    """Compare the readings BEFORE and AFTER.

    Tells every partition that lost, gained, changed or displaced a record, with the first offset. What retention and
    compaction remove, and what was written since, is no difference. Exit code 0 if all is the same, 1 if not.
    """
    jobs = spark_jobs("an audit")
    with jobs.session.spark_session(data / "spark.log", master, name="kreassign audit") as spark:
        rows = jobs.data_audit.compare_readings(spark, data, before, after)
    wrong = [row for row in rows if row["verdict"] != "same"]
    if output_format == "json":
        print_json({"ok": not wrong, "partitions": rows})
    else:
        for row in wrong:
            click.echo(_sentence(row))
        click.echo(_summary(rows, len(wrong)))
    context.exit(1 if wrong else 0)


def _partitions(client: AdminClient, patterns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """Topic, partition, first and next offset, cleanup policy and topic id of all that is to be read."""
    names = _chosen(client.list_topics(), patterns)
    topics = client.describe_topics(names).raise_if_any()
    keys = [one.topic_partition for topic in topics.values() for one in topic.partitions]
    starts, ends = (client.list_offsets(keys, earliest=earliest).raise_if_any() for earliest in (True, False))
    policies = _policies(client, names)
    for key in sorted(keys):
        yield *key, starts[key], ends[key], policies[key.topic], _text(topics[key.topic].topic_id)


def _chosen(names: Iterable[str], patterns: tuple[str, ...]) -> list[str]:
    try:
        wanted = [re.compile(pattern) for pattern in patterns]
    except re.error as error:
        raise InputError(f"--topics: not a regular expression: {error}") from error
    found = sorted(name for name in names if not wanted or any(one.fullmatch(name) for one in wanted))
    if not found:
        raise InputError(f"no topic matches {' or '.join(patterns) or 'anything'}; there is nothing to read")
    return found


def _policies(client: AdminClient, names: list[str]) -> dict[str, str]:
    resources = {name: ConfigResource.topic(name) for name in names}
    configs = client.describe_configs(resources.values(), names=(CLEANUP_POLICY,)).raise_if_any()
    return {name: str(configs[resource][CLEANUP_POLICY].value) for name, resource in resources.items()}


def _text(topic_id: object) -> str | None:
    return None if topic_id is None else str(topic_id)


def _sentence(row: dict[str, Any]) -> str:
    names = ("lost", "duplicated", "added", "altered", "displaced")
    counts = ", ".join(f"{row[name]} {name}" for name in names if row[name])
    first = "" if row["first_offset"] is None else f", first at offset {row['first_offset']}"
    return (
        f"{TopicPartition(row['topic'], row['partition'])}: {row['verdict']} ({counts or 'no record differs'}{first})"
    )


def _summary(rows: list[dict[str, Any]], wrong: int) -> str:
    compared = sum(row["record_count"] for row in rows)
    others = ", ".join(f"{sum(row[name] for row in rows)} {name}" for name in _COUNTS)
    result = f"{wrong} differ" if wrong else "all the same"
    return f"{len(rows)} partitions, {compared} records compared: {result}; {others}"
