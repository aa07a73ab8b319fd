"""Known differences of each client: a twin keeps no records and no quotas.

The guide `docs/guides/test-your-tooling-against-the-twin.md` has it in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.clients.walks import Difference

NOT_KEPT = {"code": 44}
"""POLICY_VIOLATION, the answer to Produce, Fetch, DeleteRecords and AlterClientQuotas."""

_FOUR_BROKERS = "--bootstrap-server HOST:PORT,HOST:PORT,HOST:PORT,HOST:PORT"
_QUOTA = "--alter --entity-type users --entity-name alice --add-config producer_byte_rate=1000000"
_REFUSED = "org.apache.kafka.common.errors.PolicyViolationException:"
KNOWN: Mapping[str, Mapping[str, object]] = {
    "kadm": {
        "delete records": NOT_KEPT,
        "set a quota": NOT_KEPT,
        "produce": NOT_KEPT,
        "consume": NOT_KEPT,
    },
    "sarama": {
        "delete records": NOT_KEPT,
        "set a quota": {"error": "This is a twin: it keeps no quotas."},
        "produce": NOT_KEPT,
        "consume": NOT_KEPT,
    },
    "kafkago": {
        "set a quota": NOT_KEPT,
        "produce": NOT_KEPT,
        "consume": NOT_KEPT,
    },
    "kafkajs": {
        "delete records": {"error": "KafkaJSNonRetriableError: Error while deleting records"},
        "produce": NOT_KEPT,
    },
    "platformatic": {
        "delete records": NOT_KEPT,
        "set a quota": NOT_KEPT,
        "produce": NOT_KEPT,
    },
    "librdkafka": {
        "delete records": NOT_KEPT,
        "produce": [44],
        "consume": NOT_KEPT,
    },
    "kafka_python": {"produce": {"code": 35}},
    "aio_kafka": {
        "delete records": NOT_KEPT,
        "produce": NOT_KEPT,
        "consume": {"logged": "Unexpected error while fetching data: PolicyViolationError"},
    },
    "java_tools": {
        "set a quota": {
            "exit code": 1,
            "said": [
                f"Error while executing config command with args '{_FOUR_BROKERS} {_QUOTA}'",
                f"java.util.concurrent.ExecutionException: {_REFUSED} This is a twin: it keeps no quotas.",
            ],
        },
        "delete records": [
            "Executing records delete operation",
            "Records delete operation completed:",
            f"partition: TOPIC-0 error: {_REFUSED} Request parameters do not satisfy the configured policy.",
        ],
    },
}
"""What each client finds on a twin in the steps where real brokers give it what it asked for, by program."""


def unexpected(program: str, found: Iterable[Difference]) -> tuple[Difference, ...]:
    """Differences that are not listed."""
    known = KNOWN[program]
    return tuple(one for one in found if one.step not in known or known[one.step] != one.on_twin)
