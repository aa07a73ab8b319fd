"""The APIs of Kafka's brokers that the twin does not simulate, and how it says so.

Every API that a broker or a controller of Kafka 4.4 offers has a handler (`api/handlers.py`), a row here, or a row of
`not_offered` in `api_versions.json`. `REFUSED` are answered in Kafka's versions, at once and on every item, with an
error that no client asks again after. They are in ApiVersions but for those that clients without `is_listed` do better:
they say "not supported" before they ask, and only a client that never looks gets the answer. What is not offered is not
in ApiVersions either; the connection of a client that asks all the same is closed, as by a broker that does not know
the API.
"""

from __future__ import annotations

from typing import NamedTuple

from kreassign.model.error_codes import (
    INVALID_UPDATE_VERSION,
    POLICY_VIOLATION,
    SECURITY_DISABLED,
    TRANSACTIONAL_ID_NOT_FOUND,
    UNSUPPORTED_VERSION,
)
from kreassign.wire import api
from kreassign.wire.api import Api


class Refusal(NamedTuple):
    """A refused API and its error."""

    api: Api
    text: str
    code: int = POLICY_VIOLATION
    is_listed: bool = True


NO_AUTHORIZER = "No Authorizer is configured."
"""A real node's text, where access rules are changed and there are none."""
SCENARIO_RULES = "This is a twin: its access rules are those of its scenario."


def _no(what: str) -> str:
    return f"This is a twin: it keeps no {what}."


def _unlisted(known: Api) -> Refusal:
    return Refusal(known, _no("records and no transactions"), UNSUPPORTED_VERSION, is_listed=False)


REFUSED = (
    Refusal(api.DELETE_RECORDS, _no("records")),
    # Were it listed, an idempotent producer of librdkafka would ask again after any error but of authorization.
    _unlisted(api.INIT_PRODUCER_ID),
    # Were it listed, a consumer of Java would ask again for ever. Without it, it fetches, and is refused.
    _unlisted(api.OFFSET_FOR_LEADER_EPOCH),
    _unlisted(api.ADD_PARTITIONS_TO_TXN),
    _unlisted(api.ADD_OFFSETS_TO_TXN),
    _unlisted(api.END_TXN),
    _unlisted(api.TXN_OFFSET_COMMIT),
    Refusal(api.CREATE_ACLS, NO_AUTHORIZER, SECURITY_DISABLED),
    Refusal(api.DELETE_ACLS, NO_AUTHORIZER, SECURITY_DISABLED),
    Refusal(api.ALTER_CLIENT_QUOTAS, _no("quotas")),
    Refusal(api.ALTER_USER_SCRAM_CREDENTIALS, _no("SCRAM credentials")),
    Refusal(api.UPDATE_FEATURES, "This is a twin: its features are those of its release.", INVALID_UPDATE_VERSION),
    Refusal(api.UNREGISTER_CONTROLLER, "This is a twin: its controllers stay."),
    Refusal(api.DESCRIBE_PRODUCERS, _no("records and no producers")),
    # As brokers answer with group.version at 0. Were it not listed, librdkafka would look for the coordinator for ever.
    Refusal(
        api.CONSUMER_GROUP_HEARTBEAT,
        "This is a twin: its groups have the classic protocol (group.protocol=classic).",
        UNSUPPORTED_VERSION,
    ),
    # Not listed, so that clients ask DescribeGroups; a broker of Sarama's sends it without looking.
    Refusal(
        api.CONSUMER_GROUP_DESCRIBE,
        "This is a twin: DescribeGroups describes its groups.",
        UNSUPPORTED_VERSION,
        is_listed=False,
    ),
    Refusal(api.DESCRIBE_TRANSACTIONS, _no("transactions"), TRANSACTIONAL_ID_NOT_FOUND),
)
"""The APIs that are answered with a refusal."""

UNLISTED = frozenset(row.api.key for row in REFUSED if not row.is_listed)
"""Keys of the refused APIs that are not in ApiVersions."""
