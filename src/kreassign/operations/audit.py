"""What a run promised against what happened; and proof that a move lost no record. Both are jobs of Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kreassign.admin import AdminClient
from kreassign.admin.properties import read_properties
from kreassign.clock import SystemClock
from kreassign.errors import ClusterError, InputError
from kreassign.executor.cluster.permissions import lacking_to_read, unseen_topics
from kreassign.executor.history.audit_trail import AuditTrail, audit_trail
from kreassign.executor.history.run_history import MoveHistory, RunHistory
from kreassign.executor.journal import read_events
from kreassign.model import ConfigResource, LogDir, OffsetSpec
from kreassign.model.authorization import missing_permission
from kreassign.model.spark_options import LOCAL_SPARK, SparkOptions
from kreassign.operations.spark_jobs import spark_jobs, spark_log
from kreassign.operations.warnings import Warn, warn_program
from kreassign.pipeline.spark.client_properties import by_reference
from kreassign.pipeline.tables.audit_schemas import AUDITED_PARTITIONS, RUN_MOVES, RUN_TABLES, RUNS
from kreassign.pipeline.tables.parquet import read_rows, refuse_former, write_rows
from kreassign.pipeline.tables.schemas import Row

CLEANUP_POLICY = "cleanup.policy"


@dataclass(frozen=True, slots=True)
class ReadingRequest:
    """Which records to read, from which cluster, and the name under which their hashes are kept.

    `topics` are regular expressions, all topics without any. `jars` is a folder with those of Spark's Kafka source,
    unless spark-submit brings them.
    """

    label: str
    bootstrap_server: str
    command_config: Path | None = None
    topics: tuple[str, ...] = ()
    jars: Path | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """How many records of how many partitions were read."""

    records: int
    partitions: int


def audit_runs(journals: Sequence[Path], data: Path | str, spark_options: SparkOptions = LOCAL_SPARK) -> list[Row]:
    """The rows of table `audit_runs` for these runs, each with its brokers and its `findings`, in sentences.

    Writes what the journals have into the tables of runs first. Raises JournalDamaged, and DataError, before anything
    is written, for a directory with tables by the names of an older kreassign.
    """
    refuse_former(data, RUN_TABLES)
    trails = [audit_trail(read_events(journal)) for journal in journals]
    for one in trails:
        write_audit_trail(one, data)
    jobs = spark_jobs("an audit")
    with jobs.session.spark_session(spark_log(data), spark_options, name="kreassign audit") as spark:
        tables = jobs.run_audit.write_run_audit(spark, data)
    runs = {one.history.run_id: one.history for one in trails}
    found = [found_of(row, tables["audit_brokers"]) for row in tables["audit_runs"] if row["run_id"] in runs]
    return [row | origin_of(runs[row["run_id"]]) for row in found]


def write_audit_trail(trail: AuditTrail, data: Path | str) -> None:
    """Write what a journal has into the tables of runs: one file in each; `runs` comes last and seals the others."""
    head = {"run_id": trail.history.run_id, "cluster_id": trail.history.cluster_id}
    parts: list[list[Row]] = [
        [_run_row(trail.history)],
        [_move_row(move, head) for move in trail.history.moves],
        *(
            [_row(one, head) for one in part]
            for part in (trail.copy_progress, trail.eta_history, trail.calls, trail.breaches)
        ),
    ]
    for table, rows in reversed(list(zip(RUN_TABLES, parts, strict=True))):
        write_rows(data, table, rows, file_stem=trail.history.run_id)


def origin_of(run: RunHistory) -> Row:
    """Which plan a run executed, and who started and resumed it, by which commands."""
    return {"plan_id": run.plan_id, "operators": [asdict(operator) for operator in run.operators]}


def found_of(row: Row, brokers: Iterable[Row]) -> Row:
    """The row of a run with its brokers and with what is wrong, in sentences."""
    its = [broker for broker in brokers if broker["run_id"] == row["run_id"]]
    return {**row, "brokers": its, "findings": [*_findings(row, its)]}


def read_records(
    client: AdminClient,
    request: ReadingRequest,
    data: Path | str,
    spark_options: SparkOptions = LOCAL_SPARK,
    warn: Warn = warn_program,
) -> Reading:
    """Read every record of topics and keep its hash; a reading of the same label is replaced.

    Warns of topics that this client may not see, which are not read. Raises InputError, also where it may not read
    those that it sees, before Spark is started.
    """
    jobs = spark_jobs("an audit")
    taken_ms = SystemClock().now_ms()
    names = _to_read(client, request.topics, warn)
    partitions = [jobs.data_audit.AuditedPartition(*facts) for facts in _partitions(client, names)]
    file = request.command_config
    properties = {} if file is None else by_reference(read_properties(file), file)
    paths = sorted(request.jars.glob("*.jar")) if request.jars else ()
    with jobs.session.spark_session(spark_log(data), spark_options, name="kreassign audit", jars=paths) as spark:
        found: int = jobs.data_audit.read_records(
            spark,
            data,
            request.label,
            partitions,
            client={**properties, "bootstrap.servers": request.bootstrap_server},
            taken_ms=taken_ms,
        )
    return Reading(found, len(partitions))


def labels_of_readings(data: Path | str) -> tuple[str, ...]:
    """The labels of the readings that were stored, the earliest first."""
    taken = {row["label"]: row["taken_ms"] for row in read_rows(data, AUDITED_PARTITIONS)}
    return tuple(sorted(taken, key=lambda label: (taken[label], label)))


def compare_readings(before: str, after: str, data: Path | str, spark_options: SparkOptions = LOCAL_SPARK) -> list[Row]:
    """One row per partition, with its `verdict`: `same`, or what differs. Raises DataError without the readings."""
    jobs = spark_jobs("an audit")
    with jobs.session.spark_session(spark_log(data), spark_options, name="kreassign audit") as spark:
        rows: list[Row] = jobs.data_audit.compare_readings(spark, data, before, after)
    return rows


def _run_row(run: RunHistory) -> Row:
    known = {name: getattr(run, name) for name in RUNS.column_names if hasattr(run, name)}
    return known | {"unrestored_count": len(run.throttle_residue), "problem": "; ".join(run.problems) or None}


def _move_row(move: MoveHistory, head: Row) -> Row:
    known = _row(move, head) | {"rearranging": [change.broker for change in move.log_dirs if change.is_move]}
    return {name: known[name] for name in RUN_MOVES.column_names}


def _row(value: Any, head: Row) -> Row:
    """A dataclass as a row: its fields are named as the columns are."""
    return head | {name: list(one) if isinstance(one, tuple) else one for name, one in asdict(value).items()}


def _findings(row: Row, brokers: Iterable[Row]) -> Iterator[str]:
    if row["state"] != "done":
        yield f"the run is {row['state']}: {row['complete_count']} of {row['move_count']} moves are complete"
    if row["off_target_count"]:
        yield f"{row['off_target_count']} complete moves are elsewhere in the snapshot after: table audit_moves"
    if row["unrestored_count"]:
        yield f"{row['unrestored_count']} throttle settings were not restored: see `kreassign doctor`"
    for broker in brokers:
        if broker["is_within_throttle"] is False:
            yield f"broker {broker['broker']} used {broker['throttle_use']:.0%} of its throttle over a minute"


def _to_read(client: AdminClient, patterns: tuple[str, ...], warn: Warn) -> list[str]:
    """The topics to read. Raises InputError for those whose records this client may not read."""
    listed = client.list_topics()
    log_dirs = (one for dirs in _log_dirs(client).values() for one in dirs)
    if unseen := _matching(unseen_topics(client, listed, log_dirs), patterns):
        warn(
            f"topics that this client may not see are not read, though brokers have replicas of {len(unseen)}: "
            f"{missing_permission('Read', unseen)}"
        )
    names = _chosen(listed, patterns)
    if lacking := lacking_to_read(client, names):
        raise InputError("\n  - ".join(("the records cannot be read:", *lacking)))
    return names


def _log_dirs(client: AdminClient) -> Mapping[int, tuple[LogDir, ...]]:
    """Nothing of brokers that do not tell, as without Describe on the cluster."""
    try:
        return client.describe_log_dirs().ok
    except ClusterError:
        return {}


def _partitions(client: AdminClient, names: list[str]) -> Iterator[tuple[Any, ...]]:
    """Topic, partition, first and next offset, cleanup policy and topic id of all that is to be read."""
    topics = client.describe_topics(names).raise_if_any()
    keys = [one.topic_partition for topic in topics.values() for one in topic.partitions]
    # Of a tiered topic the records in remote storage are read too: a move must lose none of them.
    starts, ends = (client.list_offsets(keys, spec).raise_if_any() for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST))
    policies = _policies(client, names)
    for key in sorted(keys):
        yield *key, starts[key], ends[key], policies[key.topic], _text(topics[key.topic].topic_id)


def _chosen(names: Iterable[str], patterns: tuple[str, ...]) -> list[str]:
    found = _matching(names, patterns)
    if not found:
        raise InputError(f"no topic matches {' or '.join(patterns) or 'anything'}; there is nothing to read")
    return found


def _matching(names: Iterable[str], patterns: tuple[str, ...]) -> list[str]:
    try:
        wanted = [re.compile(pattern) for pattern in patterns]
    except re.error as error:
        raise InputError(f"--topics: not a regular expression: {error}") from error
    return sorted(name for name in names if not wanted or any(one.fullmatch(name) for one in wanted))


def _policies(client: AdminClient, names: list[str]) -> dict[str, str]:
    resources = {name: ConfigResource.topic(name) for name in names}
    configs = client.describe_configs(resources.values(), names=(CLEANUP_POLICY,)).raise_if_any()
    return {name: str(configs[resource][CLEANUP_POLICY].value) for name, resource in resources.items()}


def _text(topic_id: object) -> str | None:
    return None if topic_id is None else str(topic_id)
