"""Rehearse plans, audit runs and records, and write pages: of a plan, a rehearsal, a run, or an audit.

An audit compares what a run promised with what happened, or proves that a move lost no record: both are jobs of
Spark. Each page is one HTML file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from kreassign.admin import AdminClient, client_settings
from kreassign.admin.properties import read_properties
from kreassign.clock import SYSTEM_CLOCK
from kreassign.errors import ClusterError, DataError, InputError, MalformedPlan, requires
from kreassign.executor.cluster.permissions import lacking_to_read, unseen_topics
from kreassign.executor.cluster.readings import read_log_dirs
from kreassign.executor.cluster.requests import read_factors
from kreassign.executor.events import Event, MovesObserved, Request, RunStarted, VerdictsRecorded, lists_of
from kreassign.executor.guards import ENDS_RUN, GuardName, Reaction
from kreassign.executor.history.audit_trail import audit_trail
from kreassign.executor.journal import read_events
from kreassign.executor.preflight import prepare
from kreassign.executor.runner import Runner
from kreassign.executor.state import REPLAN_AFTER_MS, MoveRecord, RunView, left_by_destination
from kreassign.model import ConfigResource, LogDir, OffsetSpec, TopicPartition
from kreassign.model.authorization import missing_permission
from kreassign.model.cluster import CLEANUP_POLICY
from kreassign.model.load import LOCAL_SPARK, SparkOptions, spark_log
from kreassign.model.plan_facts import PlanFacts
from kreassign.model.run import REHEARSAL, MoveHistory, RunHistory, RunTrail
from kreassign.model.snapshot import ClusterSnapshot
from kreassign.model.text import agreeing, counted, name_pattern
from kreassign.operations import run_journals
from kreassign.operations.connect import Warn, warn_program
from kreassign.operations.plan_files import PlanFile, facts_path
from kreassign.operations.run import RunRequest
from kreassign.operations.run_journals import kept_facts
from kreassign.operations.run_outlook import check_rates, outages_of
from kreassign.operations.snapshot import observe
from kreassign.pipeline.ingest.snapshots import SnapshotAnswers, broker_rows, partition_rows, replica_rows
from kreassign.pipeline.tables import schemas
from kreassign.pipeline.tables.access import by_reference
from kreassign.planner.problem.policy import similar_names
from kreassign.report.plan_page import render_plan
from kreassign.report.run_checks import SnapshotRows
from kreassign.report.run_page import AuditView, render_run, report_view
from kreassign.report.text import format_bytes, format_duration
from kreassign.twin.blueprint import TYPICAL, Blueprint, Speeds, blueprint_of
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.faults import PlannedFault, schedule_faults
from kreassign.twin.transport import TwinTransport

# Rehearse a run on the twin of a cluster, in virtual time: the same machine without risk.
#
# It shows the duration, the load on brokers meanwhile, and verdicts of guards.

POLLS = 300
"""Polls of a copy at its full rate: enough to see peaks, few enough to be quick."""

LONGEST_POLL_S = 60.0
POLLS_AT_MOST = 10_000
"""A rehearsal that has not ended after so many polls is stopped: it may never end."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Result of a rehearsal.

    `seconds` is None when it was stopped before its end. Peaks are per destination broker: moves in progress at
    the same time, and bytes still to come in for them. `verdicts` are all verdicts of the guards, in order; `breaches`
    those that let the run start nothing, or end it. `factors` has a sentence per change of replication factors,
    `outages` one per topic for whose producers with acks=all `kreassign run` would refuse the plan without consent.
    """

    history: RunHistory
    seconds: float | None
    peak_moves: dict[int, int]
    peak_bytes: dict[int, int]
    verdicts: tuple[str, ...]
    factors: tuple[str, ...] = ()
    outages: tuple[str, ...] = ()
    breaches: tuple[str, ...] = ()


@dataclass(slots=True)
class Recording:
    """Events of a rehearsal, and the cluster before and after, for its page. Begins empty."""

    events: list[Event] = field(default_factory=list)
    before: SnapshotAnswers | None = None
    after: SnapshotAnswers | None = None


@dataclass(slots=True)
class Observer:
    """Follows a rehearsal; in place of a journal it discards the events, unless they are `kept`."""

    peak_moves: dict[int, int] = field(default_factory=dict)
    peak_bytes: dict[int, int] = field(default_factory=dict)
    verdicts: dict[str, None] = field(default_factory=dict)
    breaches: dict[str, None] = field(default_factory=dict)
    runner: Runner | None = None
    polls: int = 0
    kept: list[Event] | None = None
    alive: Callable[[], object] = lambda: None

    def append(self, event: Event) -> None:
        """Keep the event if requested."""
        if self.kept is not None:
            self.kept.append(event)

    def requests_after(self, number: int) -> tuple[Request, ...]:
        """No requests in a rehearsal."""
        del number
        return ()

    def follow(self, event: Event, run: RunView) -> None:
        """Record peaks and verdicts, and stop the rehearsal when it takes too long."""
        self.alive()
        if isinstance(event, VerdictsRecorded):
            self.verdicts |= dict.fromkeys(map(str, event.verdicts))
            harsh = (one for one in event.verdicts if one.reaction is not Reaction.WARN)
            self.breaches |= dict.fromkeys(map(str, harsh))
        if isinstance(event, MovesObserved):
            self._note_peaks(run.in_flight)
            self.polls += 1
            if self.polls > POLLS_AT_MOST and self.runner is not None:
                self.runner.request_stop()

    def _note_peaks(self, in_flight: Iterable[MoveRecord]) -> None:
        records = tuple(in_flight)
        moves = Counter(broker for record in records for broker in record.lagging)
        for peaks, now in ((self.peak_moves, moves), (self.peak_bytes, left_by_destination(records))):
            for broker, amount in now.items():
                peaks[broker] = max(peaks.get(broker, 0), amount)


def rehearse(
    request: RunRequest,
    snapshot: ClusterSnapshot,
    speeds: Speeds = TYPICAL,
    recording: Recording | None = None,
    faults: Iterable[PlannedFault] = (),
    *,
    alive: Callable[[], object] = lambda: None,
) -> Rehearsal:
    """Execute a plan on the twin of the cluster in a snapshot, from the time of the snapshot.

    `speeds` are those of its disks and networks, which a snapshot does not have. A `recording` gets all events.
    `faults` happen to it, timed from the start. `alive` is called again and again while it goes on. Raises IllegalPlan
    when that cluster does not fit the plan, or a copy would never end and nothing ends the run; InputError for an
    impossible fault.
    """
    blueprint = blueprint_of(snapshot, speeds)
    settings = request.settings(REHEARSAL, snapshot.taken_ms)
    twin = Twin(blueprint, TwinSettings(start_ms=settings.at_ms))
    schedule_faults(twin, faults)
    transport = TwinTransport(twin)
    observer = Observer(kept=None if recording is None else recording.events, alive=alive)
    live = [broker.registered_address for broker in blueprint.brokers if not broker.is_down]
    bootstrap = ",".join(f"{address.host}:{address.port}" for address in live)
    chosen = client_settings(bootstrap_servers=bootstrap)
    with AdminClient.connect(chosen, clock=transport, transport=transport) as client:
        if recording is not None:
            recording.before = observe(client, settings.at_ms)
        # A broker that a fault has crashed may stay down: a rehearsal does not wait for it for ever.
        lost_after_ms = REPLAN_AFTER_MS if settings.lost_after_ms is None else settings.lost_after_ms
        asked = replace(settings, allows_producer_outage=True, lost_after_ms=lost_after_ms)
        # The plan is compared with the snapshot: topics have other ids in the twin.
        ids = {topic.name: topic.topic_id for topic in snapshot.topics if topic.topic_id is not None}
        request.plan.origin.refuse_others(request.plan.plan, snapshot.cluster_id, ids)
        started = prepare(client, request.plan.plan, asked, expected=request.plan.expected)
        # Without this, nothing would end it.
        if request.guards.get(GuardName.RATE) not in ENDS_RUN and started.pace.hours.deadline_ms is None:
            check_rates(started, {name: one.write_bytes_per_s or 0.0 for name, one in snapshot.partitions})
        targets, originals = lists_of(started.moves)
        factors = read_factors(client, targets, originals).sentences
        outages = outages_of(client, targets, started.rates).objections
        if recording is not None:
            recording.events.append(started)  # the creator of a real journal writes this event
        pause_s = _pause(started, blueprint)
        observer.runner = Runner(client, transport, observer, listener=observer.follow, poll_s=pause_s)
        found = observer.runner.start(started)
        if recording is not None:
            recording.after = observe(client, found.ended_ms or transport.now_ms())
    return Rehearsal(
        history=found,
        seconds=None if found.ended_ms is None else (found.ended_ms - settings.at_ms) / 1000,
        peak_moves=dict(sorted(observer.peak_moves.items())),
        peak_bytes=dict(sorted(observer.peak_bytes.items())),
        verdicts=tuple(observer.verdicts),
        breaches=tuple(observer.breaches),
        factors=factors,
        outages=outages,
    )


def _pause(started: RunStarted, blueprint: Blueprint) -> float:
    """Seconds between two polls, from the time that the fullest destination takes at its full rate."""
    incoming: dict[int, int] = {}
    for move in started.moves:
        for broker in move.adding:
            incoming[broker] = incoming.get(broker, 0) + move.size_bytes
    fastest = max(hardware.net_in_bytes_per_s for hardware in blueprint.hardware.values())
    rate = started.rates.slowest_bytes_per_s or fastest
    return min(LONGEST_POLL_S, max(1.0, max(incoming.values(), default=0) / rate / POLLS))


# Compare what a run promised with what happened; prove that a move lost no record.


@dataclass(frozen=True, slots=True)
class ReadingRequest:
    """Records to read, their cluster, and the name under which their hashes are kept.

    `topics` are regular expressions, all topics without any. `jars` is a folder with those of Spark's Kafka source,
    unless spark-submit brings them.
    """

    label: str
    bootstrap_server: str
    command_config: Path | None = None
    topics: tuple[str, ...] = ()
    jars: Path | None = None


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """Number of records and of partitions read."""

    records: int
    partitions: int


def audit_runs(
    journals: Sequence[Path], data: Path | str, spark_options: SparkOptions = LOCAL_SPARK
) -> list[schemas.Row]:
    """Rows of table `audit_runs` for these runs, each with its brokers and its `findings`, in sentences.

    Writes the journals' contents into the tables of runs first. Raises JournalDamaged.
    """
    with requires("an audit", "PySpark", "spark"):
        from kreassign.pipeline.run_audit import write_run_audit
        from kreassign.pipeline.spark_session import SMALL_ROWS, spark_session
        from kreassign.pipeline.tables.parquet import stored_rows

    trails = [audit_trail(read_events(journal)) for journal in journals]
    for one in trails:
        write_audit_trail(one, data)
    is_small = stored_rows(data, (*schemas.RUN_TABLES, schemas.PARTITIONS, schemas.REPLICAS)) <= SMALL_ROWS
    with spark_session(spark_log(data), spark_options, name="kreassign audit", is_small=is_small) as spark:
        tables = write_run_audit(spark, data)
    runs = {one.history.run_id: one.history for one in trails}
    found = [found_of(row, tables["audit_brokers"]) for row in tables["audit_runs"] if row["run_id"] in runs]
    for row in found:
        run = runs[row["run_id"]]
        row |= {"plan_id": run.plan_id, "operators": [asdict(operator) for operator in run.operators]}
    return found


def write_audit_trail(trail: RunTrail, data: Path | str) -> None:
    """Write a journal into the tables of runs: one file in each; `runs` comes last and seals the others.

    A row of an earlier writing goes first: it would seal new rows beside old ones, or let compaction take them for old.
    """
    with requires("a run in tables", "pyarrow", "tables"):
        from kreassign.pipeline.tables.commits import expire_parts
        from kreassign.pipeline.tables.parquet import has_table, write_rows

    if has_table(data, schemas.RUNS):
        expire_parts(data, schemas.RUNS, lambda: [trail.history.run_id])
    head = {"run_id": trail.history.run_id, "cluster_id": trail.history.cluster_id}
    parts: list[list[schemas.Row]] = [
        [_run_row(trail.history)],
        [_move_row(move, head) for move in trail.history.moves],
        *(
            [_row(one, head) for one in part]
            for part in (trail.copy_progress, trail.eta_history, trail.calls, trail.breaches)
        ),
    ]
    for table, rows in reversed(list(zip(schemas.RUN_TABLES, parts, strict=True))):
        write_rows(data, table, rows, file_stem=trail.history.run_id)


def found_of(row: schemas.Row, brokers: Iterable[schemas.Row]) -> schemas.Row:
    """Row of a run with its brokers and findings, in sentences."""
    its = [broker for broker in brokers if broker["run_id"] == row["run_id"]]
    return {**row, "brokers": its, "findings": [*_findings(row, its)]}


def read_records(
    client: AdminClient,
    request: ReadingRequest,
    data: Path | str,
    spark_options: SparkOptions = LOCAL_SPARK,
    warn: Warn = warn_program,
) -> ReadCounts:
    """Read every record of topics and keep its hash; a reading of the same label is replaced.

    Warns of topics that this client may not see, which are not read. Raises InputError, also where it may not read
    those that it sees, before Spark is started.
    """
    with requires("an audit", "PySpark", "spark"):
        from kreassign.pipeline import data_audit
        from kreassign.pipeline.spark_session import SMALL_ROWS, spark_session

    taken_ms, cluster_id = SYSTEM_CLOCK.now_ms(), client.describe_cluster().cluster_id
    names = _to_read(client, request.topics, warn)
    partitions = [data_audit.AuditedPartition(*facts) for facts in _partitions(client, names)]
    file = request.command_config
    properties = {} if file is None else by_reference(read_properties(file), file)
    paths = sorted(request.jars.glob("*.jar")) if request.jars else ()
    is_small = sum(one.end_offset - one.start_offset for one in partitions) <= SMALL_ROWS
    with spark_session(spark_log(data), spark_options, name="kreassign audit", jars=paths, is_small=is_small) as spark:
        found = data_audit.read_records(
            spark,
            data,
            request.label,
            partitions,
            client={**properties, "bootstrap.servers": request.bootstrap_server},
            taken_ms=taken_ms,
            cluster_id=cluster_id,
        )
    return ReadCounts(found, len(partitions))


def labels_of_readings(data: Path | str) -> tuple[str, ...]:
    """Labels of the stored readings, the earliest first."""
    with requires("an audit", "PySpark", "spark"):
        from kreassign.pipeline.tables.parquet import read_rows

    taken = {row["label"]: row["taken_ms"] for row in read_rows(data, schemas.AUDITED_PARTITIONS)}
    return tuple(sorted(taken, key=lambda label: (taken[label], label)))


def compare_readings(
    before: str, after: str, data: Path | str, spark_options: SparkOptions = LOCAL_SPARK
) -> list[schemas.Row]:
    """One row per partition, with its `verdict`: `same`, or what differs. Raises DataError without the readings."""
    with requires("an audit", "PySpark", "spark"):
        from kreassign.pipeline import data_audit
        from kreassign.pipeline.spark_session import SMALL_ROWS, spark_session
        from kreassign.pipeline.tables.parquet import stored_rows

    is_small = stored_rows(data, [schemas.RECORD_DIGESTS]) <= SMALL_ROWS
    with spark_session(spark_log(data), spark_options, name="kreassign audit", is_small=is_small) as spark:
        return data_audit.compare_readings(spark, data, before, after)


def _run_row(run: RunHistory) -> schemas.Row:
    known = {name: getattr(run, name) for name in schemas.RUNS.column_names if hasattr(run, name)}
    return known | {"unrestored_count": len(run.throttle_residue), "problem": "; ".join(run.problems) or None}


def _move_row(move: MoveHistory, head: schemas.Row) -> schemas.Row:
    rearranging = [change.broker for change in move.log_dirs if change.is_move]
    known = _row(move, head) | {"completed_ms": move.completed_ms, "rearranging": rearranging}
    return {name: known[name] for name in schemas.RUN_MOVES.column_names}


def _row(value: Any, head: schemas.Row) -> schemas.Row:
    """Convert a dataclass to a row: its fields are named as the columns are."""
    return head | {name: list(one) if isinstance(one, tuple) else one for name, one in asdict(value).items()}


def _findings(row: schemas.Row, brokers: Iterable[schemas.Row]) -> Iterator[str]:
    if row["state"] != "done":
        yield f"the run is {row['state']}: {row['complete_count']} of {row['move_count']} moves are complete"
    if row["off_target_count"]:
        count = row["off_target_count"]
        are = agreeing(count, "are elsewhere in the snapshot after")
        yield f"{counted(count, 'complete move')} {are}: table audit_moves"
    if row["unrestored_count"]:
        count = row["unrestored_count"]
        yield f"{counted(count, 'throttle setting')} {agreeing(count, 'were not restored')}: see `kreassign doctor`"
    for broker in brokers:
        if broker["is_within_throttle"] is False:
            yield f"broker {broker['broker']} used {broker['throttle_use']:.0%} of its throttle over a minute"


def _to_read(client: AdminClient, patterns: tuple[str, ...], warn: Warn) -> list[str]:
    """Topics to read. Raises InputError for those whose records this client may not read."""
    listed = client.list_topics()
    log_dirs = (one for dirs in _log_dirs(client).values() for one in dirs)
    if unseen := _matching(unseen_topics(client, listed, log_dirs), patterns):
        warn(
            f"topics that this client may not see are not read, though brokers have replicas of {len(unseen)}: "
            f"{missing_permission('Read', unseen, client.principal)}"
        )
    names = _chosen(listed, patterns)
    if lacking := lacking_to_read(client, names):
        raise InputError("\n  - ".join(("the records cannot be read:", *lacking)))
    return names


def _log_dirs(client: AdminClient) -> Mapping[int, tuple[LogDir, ...]]:
    """Log directories; empty for brokers that do not answer, as without Describe on the cluster."""
    try:
        return read_log_dirs(client, client.describe_cluster().broker_ids).ok
    except ClusterError:
        return {}


def _partitions(client: AdminClient, names: list[str]) -> Iterator[tuple[Any, ...]]:
    """Topic, partition, first and next offset, cleanup policy and topic id of each partition to read."""
    topics = client.describe_topics(names).raise_if_any()
    keys = [one.topic_partition for topic in topics.values() for one in topic.partitions]
    # For a tiered topic the records in remote storage are read too: a move must lose none of them.
    starts, ends = (client.list_offsets(keys, spec).raise_if_any() for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST))
    policies = _policies(client, names)
    for key in sorted(keys):
        yield *key, starts[key], ends[key], policies[key.topic], topics[key.topic].topic_id


def _chosen(names: Iterable[str], patterns: tuple[str, ...]) -> list[str]:
    known = list(names)
    found = _matching(known, patterns)
    if not found:
        nearest = "".join(similar_names(pattern, known) for pattern in patterns)
        raise InputError(f"no topic matches {' or '.join(patterns) or 'anything'}{nearest}; there is nothing to read")
    return found


def _matching(names: Iterable[str], patterns: tuple[str, ...]) -> list[str]:
    wanted = list(map(name_pattern, patterns))
    return sorted(name for name in names if not wanted or any(one.fullmatch(name) for one in wanted))


def _policies(client: AdminClient, names: list[str]) -> dict[str, str]:
    resources = {name: ConfigResource.topic(name) for name in names}
    configs = client.describe_configs(resources.values(), names=(CLEANUP_POLICY,)).raise_if_any()
    return {name: str(configs[resource][CLEANUP_POLICY].value) for name, resource in resources.items()}


# Pages: of a plan, a rehearsal, a run, and the findings of an audit.


def plan_page(plan: PlanFile, name: str) -> str:
    """Page of a plan that was read from the file `name`. Raises InputError without its facts file."""
    if plan.facts is None:
        raise InputError(
            f"{name} has no facts file ({facts_path(Path(name)).name}) beside it, which says what the plan brings and "
            "costs; `kreassign plan --out` writes both"
        )
    return render_plan(plan.facts, plan.plan.replicas, name)


def report_page(
    journal: Path, data: Path | str | None, warn: Warn = warn_program, audit: AuditView | None = None
) -> str:
    """Page of a run in HTML. Before and after come from the snapshots in `data`, if any; warns about what is missing.

    With an `audit` of the run it includes the findings. Bound and reasons come from the facts of the run's plan.
    """
    run, events = run_journals.status(journal), read_events(journal)
    before, after, rates = (None, None, {}) if data is None else _around(run, data, warn)
    view = report_view(run, before, after, rates, audit_trail(events), _facts(journal, run.plan_id, warn))
    return render_run(view, f"Audit of reassignment {run.run_id}" if audit else None, audit)


def rehearsal_page(
    shown: Rehearsal, recording: Recording, snapshot: ClusterSnapshot, name: str, facts: PlanFacts | None = None
) -> str:
    """Page of a rehearsal of the plan in the file `name`: as of a run, on the twin of the cluster in a snapshot.

    With the plan's `facts` it includes the lower bound and the reasons of moves.
    """
    rates = {name: one.write_bytes_per_s for name, one in snapshot.partitions}
    known = rates if any(rate is not None for rate in rates.values()) else {}
    before, after = _observed(recording.before), _observed(recording.after)
    view = report_view(shown.history, before, after, known, audit_trail(recording.events), facts)
    return render_run(view, f"Rehearsal of {name}", told_first=(*shown.factors, *shown.outages))


def audit_page(row: schemas.Row, journal: Path, data: Path | str, warn: Warn = warn_program) -> str:
    """Page of a run with the findings of an audit: a row as `audit_runs` returns it."""
    peak = max((broker["throttle_use"] or 0.0 for broker in row["brokers"]), default=0.0)
    error = row["eta_error"]
    promised = (
        ("moves", f"{row['move_count']:,}", f"{row['complete_count']:,} complete"),
        ("bytes copied", format_bytes(row["predicted_bytes"]), format_bytes(row["copied_bytes"])),
        ("time of copying", format_duration(row["predicted_s"]), format_duration(row["copying_s"])),
        ("ETA", "right", "-" if error is None else f"wrong by {error:.1%} on average"),
        ("fullest broker above the mean", _percent(row["imbalance_planned"]), _percent(row["imbalance_after"])),
        ("throttle used over a minute, at most", "100%", f"{peak:.0%}" if peak else "-"),
        ("calls with problems", "0", f"{row['failed_call_count']:,} of {row['call_count']:,}"),
        ("verdicts of guards", "0", f"{row['breach_count']:,}"),
    )
    return report_page(journal, data, warn, AuditView(promised, tuple(row["findings"])))


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{part:+.1%}"


def _observed(seen: SnapshotAnswers | None) -> SnapshotRows | None:
    if seen is None:
        return None
    return SnapshotRows(seen.taken_ms, *(tuple(rows(seen)) for rows in (broker_rows, partition_rows, replica_rows)))


def _facts(journal: Path, plan_id: str, warn: Warn) -> PlanFacts | None:
    try:
        return kept_facts(journal, plan_id)
    except MalformedPlan as error:
        warn(f"the report will not show why moves are made: {error}")
        return None


def _around(
    run: RunHistory, data: Path | str, warn: Warn
) -> tuple[SnapshotRows | None, SnapshotRows | None, dict[TopicPartition, float | None]]:
    """Snapshots before and after a run, and the write rate of each partition."""
    taken = _rows_of_cluster(data, schemas.CLUSTERS, run.cluster_id, "brokers before and after", warn)
    before, after = snapshots_around(run, taken)
    return _snapshot(data, before), _snapshot(data, after), write_rates(data, run.cluster_id, warn)


def snapshots_around(run: RunHistory, clusters: list[schemas.Row]) -> tuple[schemas.Row | None, schemas.Row | None]:
    """The last snapshot from before the start of a run and the first from after its end (the last, if it goes on)."""
    ordered = sorted(clusters, key=lambda row: (row["taken_ms"], row["snapshot_id"]))
    before = [row for row in ordered if row["taken_ms"] <= run.started_ms]
    since = [row for row in ordered if row["taken_ms"] > run.started_ms]
    after = [row for row in since if run.ended_ms is not None and row["taken_ms"] >= run.ended_ms] or since[-1:]
    return before[-1] if before else None, after[0] if after else None


def write_rates(data: Path | str, cluster_id: str, warn: Warn) -> dict[TopicPartition, float | None]:
    """Bytes per second per partition, from the load model; empty without one."""
    rows = _rows_of_cluster(data, schemas.LOAD_MODEL, cluster_id, "write rates", warn)
    return {TopicPartition(row["topic"], row["partition"]): row["write_bytes_per_s"] for row in rows}


def _rows_of_cluster(
    data: Path | str, table: schemas.Table, cluster_id: str, what: str, warn: Warn
) -> list[schemas.Row]:
    try:
        return _rows(data, table, only={"cluster_id": cluster_id})
    except DataError as error:
        warn(f"the report will not show {what}: {error}")
        return []


def _snapshot(data: Path | str, cluster: schemas.Row | None) -> SnapshotRows | None:
    if cluster is None:
        return None
    only = {"snapshot_id": cluster["snapshot_id"]}
    brokers, partitions, replicas = (
        tuple(_rows(data, table, only=only)) for table in (schemas.BROKERS, schemas.PARTITIONS, schemas.REPLICAS)
    )
    return SnapshotRows(cluster["taken_ms"], brokers, partitions, replicas)


def _rows(data: Path | str, table: schemas.Table, only: Mapping[str, str]) -> list[schemas.Row]:
    with requires("a report with snapshots", "pyarrow", "tables"):
        from kreassign.pipeline.tables.parquet import read_rows

    return read_rows(data, table, only=only)
