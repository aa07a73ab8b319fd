"""The tables of audits, described as those of `schemas.py` are."""

from __future__ import annotations

from kreassign.pipeline.tables.schemas import BIGINT, BOOLEAN, INT, STRING, Column, Table

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
