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
    Table,
)

_RECORDS = "kreassign audit records"
_LABEL = Column("label", STRING, "name of the reading, for example `before`")
_TOPIC = Column("topic", STRING, "name of the topic")
_PARTITION = Column("partition", INT, "number of the partition within its topic")

RECORD_DIGESTS = Table(
    "record_digests",
    "One row per record of the topics that were read: what it was, as hashes.",
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
            "xxHash64 of the key; compaction keeps the last record of each; NULL for none",
            nullable=True,
        ),
        Column("is_tombstone", BOOLEAN, "whether the record has no value, so that compaction may drop it in the end"),
    ),
)
AUDITED_PARTITIONS = Table(
    "audited_partitions",
    "Partitions of a reading: what the cluster said of them, and what was read.",
    _RECORDS,
    ("label", "topic", "partition"),
    (
        _LABEL,
        Column("taken_ms", BIGINT, "when the reading was begun, ms since the epoch"),
        _TOPIC,
        Column("topic_id", STRING, "id of the topic; NULL before Kafka 2.8", nullable=True),
        Column("cleanup_policy", STRING, "cleanup.policy of the topic"),
        _PARTITION,
        Column("start_offset", BIGINT, "first offset of the log"),
        Column("end_offset", BIGINT, "offset after the last record"),
        Column(
            "record_count", BIGINT, "records that were read; offsets without a record are compacted or control ones"
        ),
        Column("checksum", STRING, "sum of the xxHash64 of (offset, content) over all records: changes with any order"),
    ),
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
        Column("verdict", STRING, "`same`, or what is wrong, joined by commas"),
        Column("compared_from", BIGINT, "first offset that both readings can hold"),
        Column("compared_to", BIGINT, "offset after the last one of the first reading"),
        Column("record_count", BIGINT, "records of the first reading in between"),
        Column(
            "expired", BIGINT, "records of the first reading that retention has removed since: before the log's start"
        ),
        Column("compacted", BIGINT, "records that compaction has removed: a later one has the same key, or no value"),
        Column("appended", BIGINT, "records that were written since"),
        Column("lost", BIGINT, "records whose content is nowhere in the second reading"),
        Column("duplicated", BIGINT, "records of the second reading beyond the first that repeat one of the first"),
        Column("added", BIGINT, "records in between that the first reading did not have, and not even their content"),
        Column("altered", BIGINT, "records in whose place there is another content"),
        Column("displaced", BIGINT, "records that are at another offset than they were"),
        Column("first_offset", BIGINT, "first offset where the readings differ; NULL when they do not", nullable=True),
    ),
)
AUDIT_TABLES = (RECORD_DIGESTS, AUDITED_PARTITIONS, DATA_AUDIT)


_AUDIT = "kreassign audit run"
_RUN = (
    Column("run_id", STRING, "id of the run"),
    Column("cluster_id", STRING, "cluster that it was carried out on"),
)
_TOPIC = Column("topic", STRING, "name of the topic")
_PARTITION = Column("partition", INT, "number of the partition within its topic")
_AT = Column("at_ms", BIGINT, "when it was so, ms since the epoch")


def _optional(name: str, column_type: ColumnType, comment: str) -> Column:
    return Column(name, column_type, comment, nullable=True)


_STARTED = Column("started_ms", BIGINT, "when the run was begun, ms since the epoch")
_ENDED = _optional("ended_ms", BIGINT, "when it came to its end, ms since the epoch; NULL while it has none")
_STATE = Column("state", STRING, "`done`, `cancelled`, `failed`, `paused`, or the phase that it was in")
_THROTTLE = _optional("throttle_bytes_per_s", BIGINT, "throttle per broker then; NULL without one")
_ORIGINAL = Column("original", INTS, "replica list before the run")
_TARGET = Column("target", INTS, "replica list that was planned")
_STATUS = Column("status", STRING, "`complete`, `cancelled`, `failed`, or how far it was when the journal ends")
_PROBLEM = _optional("problem", STRING, "what went wrong, in words; NULL if nothing did")
_SUBMITTED = _optional("submitted_ms", BIGINT, "when the move was sent, ms since the epoch; NULL if it never was")
_COMPLETED = _optional("completed_ms", BIGINT, "when it was seen to be complete, ms since the epoch; NULL if not")

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
        Column("residue_count", INT, "settings of the throttle that were not restored"),
        _PROBLEM,
    ),
)
RUN_MOVES = Table(
    "run_moves",
    "What a run was to do with each partition, and what became of it.",
    _AUDIT,
    ("run_id", "topic", "partition"),
    (
        *_RUN,
        _TOPIC,
        _PARTITION,
        _ORIGINAL,
        _TARGET,
        Column("adding", INTS, "brokers that get a copy"),
        Column("rearranging", INTS, "brokers that copy theirs into another of their log directories"),
        Column("size_bytes", BIGINT, "size of one copy when the run was prepared; 0 where nobody could tell"),
        _SUBMITTED,
        _COMPLETED,
        Column("bytes_copied", BIGINT, "bytes that reached the new brokers and log directories, together"),
        _STATUS,
        _PROBLEM,
    ),
)
RUN_ARRIVALS = Table(
    "run_arrivals",
    "How much of each new copy was there, at every look that showed something new.",
    _AUDIT,
    ("run_id", "topic", "partition", "broker", "at_ms"),
    (
        *_RUN,
        _AT,
        _TOPIC,
        _PARTITION,
        Column("broker", INT, "broker that gets the copy"),
        Column("source", INT, "broker that leads the partition, so sends the copy"),
        Column("done_bytes", BIGINT, "bytes of the copy that were there"),
        _THROTTLE,
    ),
)
RUN_PROMISES = Table(
    "run_promises",
    "What the run told of its end, of at most 200 looks: one row per move under way, and one for all of them.",
    _AUDIT,
    ("run_id", "topic", "partition", "at_ms"),
    (
        *_RUN,
        _AT,
        _optional("topic", STRING, "name of the topic; NULL for all moves together"),
        _optional("partition", INT, "number of the partition; NULL for all moves together"),
        Column("eta_s", DOUBLE, "seconds that were expected until the end"),
    ),
)
RUN_CALLS = Table(
    "run_calls",
    "Every request and question to the cluster that the journal holds, in order.",
    _AUDIT,
    ("run_id", "number"),
    (
        *_RUN,
        Column("number", INT, "1, 2, 3 … in the order of the answers"),
        Column("kind", STRING, "what was asked: `submit moves`, `set throttle`, `look at moves` …"),
        _optional("asked_ms", BIGINT, "when it was written down before it was sent; NULL for what changes nothing"),
        Column("answered_ms", BIGINT, "when the answer was written down"),
        Column("ok", INT, "partitions, settings or brokers for which it succeeded"),
        Column("refused", INT, "those for which it was refused or failed"),
        Column("unknown", INT, "those for which no answer came"),
        _PROBLEM,
    ),
)
RUN_VERDICTS = Table(
    "run_verdicts",
    "Everything that guards said.",
    _AUDIT,
    ("run_id", "guard", "seen", "from_ms"),
    (
        *_RUN,
        Column("guard", STRING, "name of the guard"),
        Column("reaction", STRING, "what the run did about it"),
        Column("seen", STRING, "what was seen"),
        Column("advice", STRING, "what to do"),
        Column("from_ms", BIGINT, "when it was said first"),
        _optional("until_ms", BIGINT, "when it was said no more; NULL if it was until the journal ends"),
    ),
)

_RATE_OVER = "over any minute that begins and ends with a look, or over all if it was shorter; NULL if nothing came"
AUDIT_MOVES = Table(
    "audit_moves",
    "Per move: what was promised and what happened.",
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
            "size of one copy before the run, times the copies to make, those between log directories too",
        ),
        Column(
            "copied_bytes", BIGINT, "bytes that reached the new brokers and log directories, as the run counted them"
        ),
        _optional(
            "stored_bytes", BIGINT, "size of the new copies in the snapshot after; NULL without one, or if not told"
        ),
        _optional("bytes_error", DOUBLE, "copied over predicted, less 1; NULL if nothing was predicted"),
        _SUBMITTED,
        _COMPLETED,
        _optional("duration_s", DOUBLE, "from sent to complete; NULL if either is missing"),
        _optional("rate_bytes_per_s", DOUBLE, "copied bytes over this time; NULL without it, or if it is 0"),
        Column("promise_count", BIGINT, "looks at which an end was expected"),
        _optional(
            "eta_error",
            DOUBLE,
            "mean of |expected - real| over the real seconds that were left; NULL without promise or end",
        ),
        _optional("eta_bias", DOUBLE, "the same with its sign: above 0 the end came sooner than told; NULL likewise"),
        _optional(
            "is_on_target", BOOLEAN, "whether the snapshot after shows the planned list; NULL without a snapshot"
        ),
    ),
)
AUDIT_BROKERS = Table(
    "audit_brokers",
    "Per broker of the cluster: traffic of the run, the throttle, and its load before, as planned, and after.",
    _AUDIT,
    ("run_id", "broker"),
    (
        *_RUN,
        BROKER,
        Column("predicted_in_bytes", BIGINT, "sizes before the run of the copies that it was to get"),
        Column("predicted_out_bytes", BIGINT, "sizes of the copies that it was to send, if the first replica leads"),
        Column("copied_in_bytes", BIGINT, "bytes that reached it"),
        Column("copied_out_bytes", BIGINT, "bytes that it sent as leader"),
        _optional("receiving_s", DOUBLE, "from the first to the last look at its new copies; NULL if it gets none"),
        _optional("peak_in_bytes_per_s", DOUBLE, f"most that came in {_RATE_OVER}"),
        _optional("peak_out_bytes_per_s", DOUBLE, f"most that went out {_RATE_OVER}"),
        _optional(
            "throttle_use", DOUBLE, "most of its throttle that was used, in or out, over such times; NULL without one"
        ),
        _optional(
            "is_throttle_respected",
            BOOLEAN,
            "whether that is at most 1.1: Kafka evens out over eleven seconds; NULL without a throttle",
        ),
        _optional("stored_bytes_before", BIGINT, "size of its replicas in the snapshot before; NULL without one"),
        _optional("stored_bytes_planned", BIGINT, "that, with all that was planned for it; NULL likewise"),
        _optional("stored_bytes_after", BIGINT, "size of its replicas in the snapshot after; NULL without one"),
        _optional("leaders_before", BIGINT, "partitions that it led in the snapshot before; NULL without one"),
        _optional("leaders_planned", BIGINT, "that, with the first replica of every planned list; NULL likewise"),
        _optional("leaders_after", BIGINT, "partitions that it led in the snapshot after; NULL without one"),
    ),
)
AUDIT_RUNS = Table(
    "audit_runs",
    "Per run: what was promised and what happened, in total.",
    _AUDIT,
    ("run_id",),
    (
        *_RUN,
        _STATE,
        _STARTED,
        _ENDED,
        _optional("snapshot_before", STRING, "last snapshot from before the run; NULL if there is none"),
        _optional("snapshot_after", STRING, "first one from after its end, or the last one; NULL if there is none"),
        Column("move_count", BIGINT, "moves of the run"),
        Column("complete_count", BIGINT, "those that are complete"),
        Column("off_target_count", BIGINT, "complete ones that the snapshot after shows elsewhere"),
        Column("predicted_bytes", BIGINT, "bytes that were to be copied"),
        Column("copied_bytes", BIGINT, "bytes that were"),
        _optional(
            "predicted_s",
            DOUBLE,
            "what the busiest broker needs at the throttle, receiving or sending; NULL without throttle",
        ),
        _optional("duration_s", DOUBLE, "from begin to end; NULL while there is no end"),
        _optional("copying_s", DOUBLE, "from the first move sent to the last complete; NULL without these"),
        _optional("eta_error", DOUBLE, "as in `audit_moves`, for all moves together; NULL likewise"),
        _optional("imbalance_before", DOUBLE, "bytes of the fullest broker over the mean, less 1; NULL if not known"),
        _optional("imbalance_planned", DOUBLE, "the same as planned; NULL likewise"),
        _optional("imbalance_after", DOUBLE, "the same in the snapshot after; NULL likewise"),
        Column("over_throttle_count", BIGINT, "brokers that did not keep to the throttle"),
        Column("residue_count", INT, "settings of the throttle that were not restored"),
        Column("call_count", BIGINT, "requests and questions in the journal"),
        Column("troubled_call_count", BIGINT, "those with something refused, failed or unanswered"),
        Column("verdict_count", BIGINT, "verdicts of guards"),
    ),
)
RUN_TABLES = (RUNS, RUN_MOVES, RUN_ARRIVALS, RUN_PROMISES, RUN_CALLS, RUN_VERDICTS)
"""What journals tell: one file per run in each."""

AUDITED_RUN_TABLES = (AUDIT_RUNS, AUDIT_MOVES, AUDIT_BROKERS)
"""What is made of it."""
