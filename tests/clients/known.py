"""Known differences of each client and of each client's own tests: a twin keeps no records and no quotas.

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

_RECORDS, _QUOTAS = "produces records", "sets quotas"
REFUSED_AT_ONCE = frozenset({_RECORDS, _QUOTAS})
"""Reasons that a client hears as soon as it asks."""
_AUTHORIZER, _DOCKER, _TOXIPROXY = "needs an authorizer", "stops a broker with docker", "breaks lines with Toxiproxy"
FAILS_ON_KAFKA_TOO = frozenset({_AUTHORIZER, _DOCKER, _TOXIPROXY})
"""Reasons that hold on the brokers of `make test-clients` as well."""
LEFT_OUT: Mapping[str, Mapping[str, str]] = {
    "kafka-python": {
        "test_create_describe_delete_acls": _AUTHORIZER,
        "test_delete_groups": _RECORDS,
        "test_delete_groups_with_errors": _RECORDS,
        "test_delete_records": _RECORDS,
        "test_delete_records_with_errors": _RECORDS,
        "test_describe_group_exists": "needs a group of two members",
    },
    "Sarama": {
        "TestFuncAdminDeleteRecords": _RECORDS,
        "TestFuncAdminListConsumerGroupOffsets": _DOCKER,
        "TestFuncAdminListOffsets": _RECORDS,
        "TestFuncAdminNetworkErrorClosesControllerConnection": _TOXIPROXY,
        "TestFuncAdminQuotas": _QUOTAS,
    },
}
"""Why a test of another client does not pass on a twin, by suite."""
WITHOUT_TESTS: Mapping[str, str] = {
    "confluent-kafka": "its archive on PyPI has no tests",
    "kafkajs": "its archive on npm has one test, of the defaults of retries",
    "@platformatic/kafka": "its archive on npm has no tests",
    "aiokafka": "its archive on PyPI has no tests, which its MANIFEST.in leaves out",
}
"""Clients whose packages hold no tests of their admin client: they are walked (`walks.py`)."""


def unexpected(program: str, found: Iterable[Difference]) -> tuple[Difference, ...]:
    """Differences that are not listed."""
    known = KNOWN[program]
    return tuple(one for one in found if one.step not in known or known[one.step] != one.on_twin)
