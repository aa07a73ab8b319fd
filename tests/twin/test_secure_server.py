"""The twin behind SASL, TLS and permissions, asked by our client."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable

import pytest
import trustme

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import Rejected, Unauthenticated, Unreachable
from kreassign.model import (
    Batch,
    ConfigChange,
    ConfigResource,
    NewPartitions,
    NewTopic,
    TopicPartition,
    TopicPartitionReplica,
)
from kreassign.twin.access import ALL_TOPICS, Allow, Operation, Permissions, Users
from kreassign.twin.server import ListenerConfig, ServerThread, serving
from tests.twin.asking import twin

USERS = Users({"alice": "al-pass", "bob": "bo-pass"})
SASL_LISTENER = ListenerConfig("SASL_PLAINTEXT", users=USERS)
# Alice may look, Bob may do everything.
PERMISSIONS = Permissions(
    frozenset({Allow("User:alice", Operation.DESCRIBE, ALL_TOPICS)}), super_users=frozenset({"User:bob"})
)
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PARTITION = TopicPartition("orders", 0)
RATE = ConfigChange.set("leader.replication.throttled.rate", "1")


def client(server: ServerThread, listener: str, properties: dict[str, str]) -> AdminClient:
    host, port = server.server.addresses(listener)[0]
    settings = client_settings({"default.api.timeout.ms": "5000", **properties}, bootstrap_servers=f"{host}:{port}")
    return AdminClient.connect(settings)


def as_user(name: str, password: str, protocol: str = "SASL_PLAINTEXT") -> dict[str, str]:
    return {
        "security.protocol": protocol,
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{JAAS} username="{name}" password="{password}";',
    }


def test_clients_with_the_password_get_in_and_are_shown_the_ports_of_the_same_listener() -> None:
    with serving(twin({"orders": [[0, 1]]}), (ListenerConfig(), SASL_LISTENER)) as server:
        with client(server, SASL_LISTENER.name, as_user("bob", "bo-pass")) as admin:
            ports = {broker.port for broker in admin.describe_cluster().brokers}
            assert ports <= {address.port for address in server.server.addresses(SASL_LISTENER.name).values()}
            assert admin.replica_status([PARTITION]).ok
        assert not server.server.failures


def test_who_does_not_know_the_password_stays_out() -> None:
    with (
        serving(twin(), (SASL_LISTENER,)) as server,
        pytest.raises(Unauthenticated, match="Authentication failed: Invalid username or password"),
        client(server, SASL_LISTENER.name, as_user("bob", "guess")) as admin,
    ):
        admin.describe_cluster()


def test_who_does_not_authenticate_at_all_stays_out() -> None:
    with (
        serving(twin(), (SASL_LISTENER,)) as server,
        pytest.raises(Unreachable),
        client(server, SASL_LISTENER.name, {}) as admin,
    ):
        admin.describe_cluster(timeout_ms=500)


def test_tls_and_sasl_together() -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    listener = ListenerConfig("SASL_SSL", users=USERS, tls=context)
    trusted = {"ssl.truststore.certificates": authority.cert_pem.bytes().decode(), "ssl.truststore.type": "PEM"}
    with serving(twin({"orders": [[0, 1]]}), (listener,)) as server:
        with client(server, listener.name, as_user("bob", "bo-pass", "SASL_SSL") | trusted) as admin:
            assert admin.list_topics() == ("orders",)
        foreign = {**trusted, "ssl.truststore.certificates": trustme.CA().cert_pem.bytes().decode()}
        with (
            pytest.raises(Unauthenticated, match="not trusted"),
            client(server, listener.name, as_user("bob", "bo-pass", "SASL_SSL") | foreign) as admin,
        ):
            admin.list_topics()
        with pytest.raises(Unreachable), client(server, listener.name, as_user("bob", "bo-pass")) as admin:
            admin.list_topics(timeout_ms=500)
        assert not server.server.failures


def test_who_may_only_look_is_denied_everything_else_in_the_words_of_kafka() -> None:
    with (
        serving(twin({"orders": [[0, 1]]}, permissions=PERMISSIONS), (SASL_LISTENER,)) as server,
        client(server, SASL_LISTENER.name, as_user("alice", "al-pass")) as admin,
    ):
        assert admin.describe_topics(["orders"]).ok.keys() == {"orders"}
        assert admin.list_offsets([PARTITION]).ok
        assert admin.describe_cluster().brokers
        denied = {
            "alter": denial(lambda: admin.alter_partition_reassignments({PARTITION: (2, 3)})),
            "elect": denial(lambda: admin.elect_leaders([PARTITION])),
            "list": denial(admin.list_partition_reassignments),
            "log dirs": denial(lambda: admin.describe_log_dirs([0])),
            "move": denial(lambda: admin.alter_replica_log_dirs({TopicPartitionReplica(0, *PARTITION): "/data/0/d1"})),
            "more partitions": denial(lambda: admin.create_partitions({"orders": NewPartitions(3)})),
            "delete": denial(lambda: admin.delete_topics(["orders"])),
            "create": denial(lambda: admin.create_topics([NewTopic("new", 1, 1)])),
            "topic config": denial(lambda: admin.incremental_alter_configs({ConfigResource.topic("orders"): [RATE]})),
            "broker config": denial(lambda: admin.incremental_alter_configs({ConfigResource.broker(0): [RATE]})),
            "describe topic": denial(lambda: admin.describe_configs([ConfigResource.topic("orders")])),
            "describe broker": denial(lambda: admin.describe_configs([ConfigResource.broker(0)])),
        }
        assert not server.server.failures
    assert denied == {
        "alter": (31, "Request Request(…) needs ALTER permission."),
        "elect": (31, "Cluster authorization failed."),
        "list": (31, "Request Request(…) needs DESCRIBE permission."),
        "log dirs": (31, "Cluster authorization failed."),
        "move": (31, "Cluster authorization failed."),
        "more partitions": (29, "Topic authorization failed."),
        "delete": (29, "Topic authorization failed."),
        "create": (29, "Authorization failed."),
        "topic config": (29, "Topic authorization failed."),
        "broker config": (31, "Cluster authorization failed."),
        "describe topic": (29, "Topic authorization failed."),
        "describe broker": (31, "Cluster authorization failed."),
    }


def denial(ask: Callable[[], object]) -> tuple[int, str]:
    """Code and text of the one refusal, of the whole request or of its one part; connections left out."""
    try:
        answer = ask()
    except Rejected as error:
        refusal: BaseException = error
    else:
        assert isinstance(answer, Batch)
        assert not answer.ok
        (refusal,) = answer.failed.values()
    assert isinstance(refusal, Rejected)
    return refusal.code, re.sub(r"Request\(processor.*\) needs", "Request(…) needs", refusal.message)


def test_who_may_do_everything_does() -> None:
    with (
        serving(twin({"orders": [[0, 1]]}, permissions=PERMISSIONS), (SASL_LISTENER,)) as server,
        client(server, SASL_LISTENER.name, as_user("bob", "bo-pass")) as admin,
    ):
        admin.alter_partition_reassignments({PARTITION: (2, 3)}).raise_if_any()
        assert PARTITION in admin.list_partition_reassignments()
