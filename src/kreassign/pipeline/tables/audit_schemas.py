"""The tables of audits: readings of records, journals of runs, and the comparisons. See `schemas.py`."""

from __future__ import annotations

from kreassign.pipeline.tables.schemas import (
    BIGINT,
    BOOLEAN,
    BROKER,
    DOUBLE,
    INT,
    INTS,
    STRING,
    Column,
    ColumnType,
    Partitioning,
    Table,
)

_RECORDS = "kreassign audit records"
_BY_LABEL = Partitioning("reading", "label")
_LABEL = Column("label", STRING, "label of the reading, for example `before`")
_TOPIC = Column("topic", STRING, "name of the topic")
_PARTITION = Column("partition", INT, "number of the partition within its topic")

RECORD_DIGESTS = Table(
    "record_digests",
    "One row per record of the topics that were read, as hashes.",
    _RECORDS,
    ("label", "topic", "partition", "offset"),
    (
        _LABEL,
        _TOPIC,
        _PARTITION,
        Column("offset", BIGINT, "offset of the record"),
        Column("content", BIGINT, "xxHash64 of timestamp, timestamp type, key, value and headers in their order"),
        Column(
            "key_hash",
            BIGINT,
            "xxHash64 of the key; compaction keeps the last record of each key; NULL without a key",
            nullable=True,
        ),
        Column("is_tombstone", BOOLEAN, "whether the record has no value, so that compaction may drop it in the end"),
    ),
    partition_by=_BY_LABEL,
)
AUDITED_PARTITIONS = Table(
    "audited_partitions",
    "Partitions of a reading: their metadata, and what was read.",
    _RECORDS,
    ("label", "topic", "partition"),
    (
        _LABEL,
        Column("taken_ms", BIGINT, "when the reading started, ms since the epoch"),
        _TOPIC,
        Column("topic_id", STRING, "id of the topic; NULL before Kafka 2.8", nullable=True),
        Column("cleanup_policy", STRING, "cleanup.policy of the topic"),
        _PARTITION,
        Column("start_offset", BIGINT, "first offset of the log"),
        Column("end_offset", BIGINT, "offset after the last record"),
        Column(
            "record_count",
            BIGINT,
            "records that were read; other offsets were compacted or hold control records",
        ),
        Column("checksum", STRING, "sum of the xxHash64 of (offset, content) over all records"),
    ),
    partition_by=_BY_LABEL,
)
DATA_AUDIT = Table(
    "data_audit",
    "Two readings compared, one row per partition of the first.",
    "kreassign audit compare",
    ("before", "after", "topic", "partition"),
    (
        Column("before", STRING, "label of the first reading"),
        Column("after", STRING, "label of the second reading"),
        _TOPIC,
        _PARTITION,
        Column("verdict", STRING, "`same`, or what differs, separated by commas"),
        Column("compared_from", BIGINT, "first offset that both readings can hold"),
        Column("compared_to", BIGINT, "offset after the last one of the first reading"),
        Column("record_count", BIGINT, "records of the first reading in this range"),
        Column(
            "expired", BIGINT, "records of the first reading that retention has removed since: before the log's start"
        ),
        Column("compacted", BIGINT, "records that compaction has removed: a later one has the same key, or no value"),
        Column("appended", BIGINT, "records that were written since"),
        Column("lost", BIGINT, "records whose content is nowhere in the second reading"),
        Column("duplicated", BIGINT, "records of the second reading that repeat one of the first"),
        Column("added", BIGINT, "records in this range whose content is nowhere in the first reading"),
        Column("altered", BIGINT, "records whose offset has another content"),
        Column("displaced", BIGINT, "records that are at another offset than they were"),
        Column("first_offset", BIGINT, "first offset where the readings differ; NULL when they do not", nullable=True),
    ),
)
AUDIT_TABLES = (RECORD_DIGESTS, AUDITED_PARTITIONS, DATA_AUDIT)


_AUDIT = "kreassign audit run"
_BY_RUN = Partitioning("run", "run_id")
_RUN = (
    Column("run_id", STRING, "id of the run"),
    Column("cluster_id", STRING, "cluster of the run"),
)
_TOPIC = Column("topic", STRING, "name of the topic")
_PARTITION = Column("partition", INT, "number of the partition within its topic")
_AT = Column("at_ms", BIGINT, "time of the observation, ms since the epoch")


def _optional(name: str, column_type: ColumnType, comment: str) -> Column:
    return Column(name, column_type, comment, nullable=True)


_STARTED = Column("started_ms", BIGINT, "when the run started, ms since the epoch")
_ENDED = _optional("ended_ms", BIGINT, "when it ended, ms since the epoch; NULL while it has not")
_STATE = Column("state", STRING, "`done`, `cancelled`, `failed`, `paused`, or its phase")
_THROTTLE = _optional("throttle_bytes_per_s", BIGINT, "throttle per broker then; NULL without one")
_ORIGINAL = Column("original", INTS, "replica list before the run")
_TARGET = Column("target", INTS, "replica list that was planned")
_STATUS = Column("status", STRING, "`complete`, `cancelled`, `failed`, or its last status in the journal")
_PROBLEM = _optional("problem", STRING, "what went wrong; NULL if nothing did")
_SUBMITTED = _optional("submitted_ms", BIGINT, "when the move was submitted, ms since the epoch; NULL if it was not")
_COMPLETED = _optional("completed_ms", BIGINT, "when it was observed to be complete, ms since the epoch; NULL if not")

RUNS = Table(
    "runs",
    "Runs whose journals were read.",
    _AUDIT,
    ("run_id",),
    (
        *_RUN,
        _STARTED,
        _ENDED,
        _STATE,
        _THROTTLE,
        Column("unrestored_count", INT, "settings of the throttle that were not restored"),
        _PROBLEM,
    ),
    partition_by=_BY_RUN,
)
RUN_MOVES = Table(
    "run_moves",
    "The moves of a run and their outcome.",
    _AUDIT,
    ("run_id", "topic", "partition"),
    (
        *_RUN,
        _TOPIC,
        _PARTITION,
        _ORIGINAL,
        _TARGET,
        Column("adding", INTS, "brokers that get a new replica"),
        Column("rearranging", INTS, "brokers that move theirs to another log directory"),
        Column("size_bytes", BIGINT, "size of one replica when the run was prepared; 0 if unknown"),
        _SUBMITTED,
        _COMPLETED,
        Column("bytes_copied", BIGINT, "bytes that reached the new brokers and log directories, together"),
        _STATUS,
        _PROBLEM,
    ),
    partition_by=_BY_RUN,
)
RUN_COPY_PROGRESS = Table(
    "run_copy_progress",
    "Bytes of each new replica, at every observation in which they had changed.",
    _AUDIT,
    ("run_id", "topic", "partition", "broker", "at_ms"),
    (
        *_RUN,
        _AT,
        _TOPIC,
        _PARTITION,
        Column("broker", INT, "broker that gets the replica"),
        Column("source", INT, "leader of the partition, which sends the data"),
        Column("done_bytes", BIGINT, "bytes of the replica so far"),
        _THROTTLE,
    ),
    partition_by=_BY_RUN,
)
RUN_ETA_HISTORY = Table(
    "run_eta_history",
    "ETAs that the run showed, of at most 200 observations: one row per ongoing move, and one for all moves.",
    _AUDIT,
    ("run_id", "topic", "partition", "at_ms"),
    (
        *_RUN,
        _AT,
        _optional("topic", STRING, "name of the topic; NULL for all moves together"),
        _optional("partition", INT, "number of the partition; NULL for all moves together"),
        Column("eta_s", DOUBLE, "estimated seconds until the end"),
    ),
    partition_by=_BY_RUN,
)
RUN_CALLS = Table(
    "run_calls",
    "Every request to the cluster in the journal, in order.",
    _AUDIT,
    ("run_id", "number"),
    (
        *_RUN,
        Column("number", INT, "1, 2, 3 … in the order of the answers"),
        Column("kind", STRING, "kind of request: `submit moves`, `set throttle`, `observe moves` …"),
        _optional("asked_ms", BIGINT, "when it was recorded, before it was sent; NULL for reads"),
        Column("answered_ms", BIGINT, "when the response was recorded"),
        Column("ok", INT, "partitions, settings or brokers for which it succeeded"),
        Column("refused", INT, "those for which it was refused or failed"),
        Column("unknown", INT, "those for which no answer came"),
        _PROBLEM,
    ),
    partition_by=_BY_RUN,
)
RUN_GUARD_BREACHES = Table(
    "run_guard_breaches",
    "Breaches that guards reported.",
    _AUDIT,
    ("run_id", "guard", "seen", "from_ms"),
    (
        *_RUN,
        Column("guard", STRING, "name of the guard"),
        Column("reaction", STRING, "what the run did about it"),
        Column("seen", STRING, "what the guard observed"),
        Column("advice", STRING, "what to do"),
        Column("from_ms", BIGINT, "when it was reported first"),
        _optional("until_ms", BIGINT, "when it was no longer reported; NULL if that is not in the journal"),
    ),
    partition_by=_BY_RUN,
)

_RATE_OVER = "over any minute between two observations, or over all if that was shorter; NULL without data"
AUDIT_MOVES = Table(
    "audit_moves",
    "Per move: predicted and actual figures.",
    _AUDIT,
    ("run_id", "topic", "partition"),
    (
        *_RUN,
        _TOPIC,
        _PARTITION,
        _ORIGINAL,
        _TARGET,
        _STATUS,
        _PROBLEM,
        Column(
            "predicted_bytes",
            BIGINT,
            "size of one replica before the run, times the replicas to copy, including moves between log directories",
        ),
        Column("copied_bytes", BIGINT, "bytes that the run observed to be copied"),
        _optional(
            "stored_bytes", BIGINT, "size of the new replicas in the snapshot after; NULL without one, or if unknown"
        ),
        _optional("bytes_error", DOUBLE, "copied over predicted, less 1; NULL if nothing was predicted"),
        _SUBMITTED,
        _COMPLETED,
        _optional("duration_s", DOUBLE, "from submission to completion; NULL if either is missing"),
        _optional("rate_bytes_per_s", DOUBLE, "copied bytes over this time; NULL without it, or if it is 0"),
        Column("eta_count", BIGINT, "observations with an ETA"),
        _optional(
            "eta_error",
            DOUBLE,
            "mean of |estimated - actual| over the actual seconds left; NULL without ETA or end",
        ),
        _optional(
            "eta_bias",
            DOUBLE,
            "the same with its sign: positive if it ended sooner; NULL likewise",
        ),
        _optional(
            "is_on_target", BOOLEAN, "whether the snapshot after shows the planned list; NULL without a snapshot"
        ),
    ),
)
AUDIT_BROKERS = Table(
    "audit_brokers",
    "Per broker: traffic of the run, use of the throttle, and load before, as planned, and after.",
    _AUDIT,
    ("run_id", "broker"),
    (
        *_RUN,
        BROKER,
        Column("predicted_in_bytes", BIGINT, "size before the run of the replicas that it was to receive"),
        Column("predicted_out_bytes", BIGINT, "size of the replicas that it was to send, if the first replica leads"),
        Column("copied_in_bytes", BIGINT, "bytes that it received"),
        Column("copied_out_bytes", BIGINT, "bytes that it sent as leader"),
        _optional("receiving_s", DOUBLE, "from the first to the last observation of new replicas; NULL without any"),
        _optional("peak_in_bytes_per_s", DOUBLE, f"highest rate in {_RATE_OVER}"),
        _optional("peak_out_bytes_per_s", DOUBLE, f"highest rate out {_RATE_OVER}"),
        _optional(
            "throttle_use", DOUBLE, "highest rate, in or out, as a share of its throttle; NULL without a throttle"
        ),
        _optional(
            "is_within_throttle",
            BOOLEAN,
            "whether that is at most 1.1, since Kafka averages over eleven seconds; NULL without a throttle",
        ),
        _optional("stored_bytes_before", BIGINT, "size of its replicas in the snapshot before; NULL without one"),
        _optional("stored_bytes_planned", BIGINT, "the same after the plan; NULL likewise"),
        _optional("stored_bytes_after", BIGINT, "size of its replicas in the snapshot after; NULL without one"),
        _optional("leaders_before", BIGINT, "partitions that it led in the snapshot before; NULL without one"),
        _optional("leaders_planned", BIGINT, "the same after the plan, if first replicas lead; NULL likewise"),
        _optional("leaders_after", BIGINT, "partitions that it led in the snapshot after; NULL without one"),
    ),
)
AUDIT_RUNS = Table(
    "audit_runs",
    "Per run: predicted and actual figures in total.",
    _AUDIT,
    ("run_id",),
    (
        *_RUN,
        _STATE,
        _STARTED,
        _ENDED,
        _optional("snapshot_before", STRING, "last snapshot before the run; NULL if there is none"),
        _optional("snapshot_after", STRING, "first snapshot after its end, or the last one; NULL if there is none"),
        Column("move_count", BIGINT, "moves of the run"),
        Column("complete_count", BIGINT, "those that are complete"),
        Column("off_target_count", BIGINT, "complete moves whose replicas are elsewhere in the snapshot after"),
        Column("predicted_bytes", BIGINT, "bytes that were to be copied"),
        Column("copied_bytes", BIGINT, "bytes that were"),
        _optional(
            "predicted_s",
            DOUBLE,
            "time that the busiest broker needs at the throttle; NULL without a throttle",
        ),
        _optional("duration_s", DOUBLE, "from start to end; NULL while it runs"),
        _optional("copying_s", DOUBLE, "from the first submission to the last completion; NULL without these"),
        _optional("eta_error", DOUBLE, "as in `audit_moves`, for all moves together; NULL likewise"),
        _optional("imbalance_before", DOUBLE, "bytes of the fullest broker over the mean, minus 1; NULL if unknown"),
        _optional("imbalance_planned", DOUBLE, "the same as planned; NULL likewise"),
        _optional("imbalance_after", DOUBLE, "the same in the snapshot after; NULL likewise"),
        Column("over_throttle_count", BIGINT, "brokers that exceeded the throttle"),
        Column("unrestored_count", INT, "settings of the throttle that were not restored"),
        Column("call_count", BIGINT, "requests in the journal"),
        Column("failed_call_count", BIGINT, "requests with something refused, failed or unanswered"),
        Column("breach_count", BIGINT, "breaches that guards reported"),
    ),
)
RUN_TABLES = (RUNS, RUN_MOVES, RUN_COPY_PROGRESS, RUN_ETA_HISTORY, RUN_CALLS, RUN_GUARD_BREACHES)
"""Tables from journals: one file per run in each."""

AUDITED_RUN_TABLES = (AUDIT_RUNS, AUDIT_MOVES, AUDIT_BROKERS)
"""Tables computed from journals and snapshots."""
