"""The twin behind SASL, TLS and permissions, asked by our client."""

from __future__ import annotations

import ssl

import pytest
import trustme

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import Rejected, Unauthenticated, Unreachable
from kreassign.model import TopicPartition
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


def test_clients_with_the_password_see_the_ports_of_their_listener() -> None:
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


def test_a_client_does_only_what_its_user_may() -> None:
    with serving(twin({"orders": [[0, 1]]}, permissions=PERMISSIONS), (SASL_LISTENER,)) as server:
        with client(server, SASL_LISTENER.name, as_user("alice", "al-pass")) as admin:
            assert admin.describe_topics(["orders"]).ok.keys() == {"orders"}
            assert admin.list_offsets([PARTITION]).ok
            with pytest.raises(Rejected, match="needs ALTER permission"):
                admin.alter_partition_reassignments({PARTITION: (2, 3)}).raise_if_any()
        with client(server, SASL_LISTENER.name, as_user("bob", "bo-pass")) as admin:
            admin.alter_partition_reassignments({PARTITION: (2, 3)}).raise_if_any()
            assert PARTITION in admin.list_partition_reassignments()
        assert not server.server.failures
