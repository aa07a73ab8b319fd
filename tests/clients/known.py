"""What is known to differ, and what each client does then: a twin keeps no records and no quotas.

The guide `docs/guides/test-your-tooling-against-the-twin.md` has it in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.clients.walks import Difference

NOT_KEPT = {"code": 44}
"""POLICY_VIOLATION, the answer to Produce and Fetch."""

_KGO_DOES_NOT_SEND = "broker is too old; the broker has already indicated it will not know how to handle the request"
_FOUR_BROKERS = "--bootstrap-server HOST:PORT,HOST:PORT,HOST:PORT,HOST:PORT"
_QUOTA = "--alter --entity-type users --entity-name alice --add-config producer_byte_rate=1000000"
_NOT_SENT = "org.apache.kafka.common.errors.UnsupportedVersionException: The node does not support"
KNOWN: Mapping[str, Mapping[str, object]] = {
    "kadm": {
        "delete records": {
            "error": f"request DeleteRecords has 1 separate shard errors, first: {_KGO_DOES_NOT_SEND}",
        },
        "set a quota": {"error": _KGO_DOES_NOT_SEND},
        "produce": NOT_KEPT,
        "consume": NOT_KEPT,
    },
    "sarama": {
        "delete records": {"code": 35},
        "set a quota": {"code": 35},
        "produce": NOT_KEPT,
        "consume": NOT_KEPT,
    },
    "kafkago": {
        "set a quota": {"error": "kafka.(*Client).AlterClientQuotas: unexpected EOF"},
        "produce": NOT_KEPT,
        "consume": NOT_KEPT,
    },
    "kafkajs": {
        "delete records": {
            "error": "KafkaJSNonRetriableError: The Kafka server does not support the requested API version",
        },
        "produce": NOT_KEPT,
    },
    "platformatic": {
        "delete records": {"error": "AggregateError: Deleting records failed."},
        "set a quota": {"error": "AggregateError: Altering client quotas failed."},
        "produce": NOT_KEPT,
    },
    "librdkafka": {
        "delete records": {
            "error": "KafkaException: KafkaError{code=_UNSUPPORTED_FEATURE,val=-165,"
            'str="Local: Required feature not supported by broker"}',
        },
        "produce": [44],
        "consume": NOT_KEPT,
    },
    "kafka_python": {"produce": {"code": 35}},
    "aio_kafka": {
        "delete records": {
            "error": "IncompatibleBrokerVersion: IncompatibleBrokerVersion: "
            "DeleteRecordsRequest cannot be used if the API version is unknown",
        },
        "produce": NOT_KEPT,
        "consume": {"logged": "Unexpected error while fetching data: PolicyViolationError"},
    },
    "java_tools": {
        "set a quota": {
            "exit code": 1,
            "said": [
                f"Error while executing config command with args '{_FOUR_BROKERS} {_QUOTA}'",
                f"java.util.concurrent.ExecutionException: {_NOT_SENT} ALTER_CLIENT_QUOTAS",
            ],
        },
        "delete records": [
            "Executing records delete operation",
            "Records delete operation completed:",
            f"partition: TOPIC-0 error: {_NOT_SENT} DELETE_RECORDS",
        ],
    },
}
"""What each client finds on a twin in the steps where real brokers give it what it asked for, by program."""


def unexpected(program: str, found: Iterable[Difference]) -> tuple[Difference, ...]:
    """Those that nobody expects."""
    known = KNOWN[program]
    return tuple(one for one in found if one.step not in known or known[one.step] != one.on_twin)
