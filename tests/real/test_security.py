"""Who is let in, who is not, and what is said: SASL, TLS and a denied ACL on a real cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kreassign.admin import AdminClient, Connection, client_settings, read_properties
from kreassign.admin.call import Call
from kreassign.admin.session import To
from kreassign.admin.transport import AuthenticatedConnection
from kreassign.errors import ClusterError, ProtocolViolation, Rejected, Unauthenticated, Unreachable
from kreassign.model import ConfigChange, ConfigResource, NewPartitions, NewTopic, TopicPartition
from kreassign.wire import api
from testbed import KafkaCluster, Listener, Permission
from testbed.properties import render
from testbed.security import USERS
from testbed.waiting import wait_until
from tests.clusters import SHORT_LOGINS

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
WRONG = "pa55-wrong"
# Well below the patience with a cluster that is down, so that an answer in time was no guess.
FAST_S = 4.0

Enter = Callable[..., AdminClient]


@pytest.fixture
def enter(kafka_secure: KafkaCluster, tmp_path: Path) -> Enter:
    """A client from a properties file, as `--command-config` gives it, at a listener that may be another one."""

    def start(properties: Mapping[str, str], at: Listener) -> AdminClient:
        file = tmp_path / "client.properties"
        file.write_text(render(properties), encoding="iso-8859-1")
        settings = client_settings(read_properties(file), bootstrap_servers=kafka_secure.bootstrap(at))
        return AdminClient.connect(settings)

    return start


def is_served(client: AdminClient) -> bool:
    with client:
        return client.describe_cluster().broker_ids == (0, 1) and len(client.describe_log_dirs().ok) == 2


def failure(client: AdminClient) -> ClusterError:
    """The error of a client that is not let in, which must come fast and not tell its password."""
    started = time.monotonic()
    with client, pytest.raises(ClusterError) as refused:
        client.describe_cluster()
    assert time.monotonic() - started < FAST_S
    assert not [secret for secret in (*USERS.values(), WRONG) if secret in f"{refused.value} {refused.value!r}"]
    return refused.value


# Let in


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", [Listener.SASL_PLAINTEXT, Listener.SASL_SSL])
def test_sasl_lets_in_who_has_the_password(
    listener: Listener, mechanism: str, kafka_secure: KafkaCluster, enter: Enter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert is_served(enter(kafka_secure.client_properties(listener, mechanism=mechanism), listener))
    assert USERS["admin"] not in caplog.text


def test_tls_lets_in_who_has_a_certificate(kafka_secure: KafkaCluster, enter: Enter) -> None:
    assert is_served(enter(kafka_secure.client_properties(Listener.SSL), Listener.SSL))


def test_pem_in_the_properties_themselves_is_as_good(kafka_secure: KafkaCluster, enter: Enter) -> None:
    certificates = kafka_secure.certificates
    assert certificates is not None
    store = certificates.user_key_store("admin").read_text().replace("\n", " ")
    key, chain = store[: store.index("-----BEGIN CERT")], store[store.index("-----BEGIN CERT") :]
    inline = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": certificates.trust_store.read_text().replace("\n", " "),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": chain,
    }
    assert is_served(enter(inline, Listener.SSL))


def test_a_tls_connection_serves_many_calls(kafka_secure: KafkaCluster, enter: Enter) -> None:
    with enter(kafka_secure.client_properties(Listener.SASL_SSL), Listener.SASL_SSL) as client:
        client.describe_cluster()
        links = client._session._links.values()
        before = [link._connection for link in links if link.is_open]
        for _ in range(3):
            client.describe_cluster()
        assert before
        assert [link._connection for link in links if link.is_open] == before


def connections(client: AdminClient) -> list[Connection]:
    return [found for link in client._session._links.values() if (found := link._connection) is not None]


def test_a_client_that_lives_longer_than_its_logins_goes_on_without_an_error_on_the_same_connections(
    kafka_secure: KafkaCluster, enter: Enter
) -> None:
    """A broker hangs up on who asks anything but for a login after its time: brokers that are asked, or left idle."""
    lifetime_s = int(*SHORT_LOGINS.values()) / 1000
    properties = kafka_secure.client_properties(Listener.SASL_PLAINTEXT, mechanism="SCRAM-SHA-256")
    with enter(properties, Listener.SASL_PLAINTEXT) as client:

        def are_outlived() -> bool:
            """Not where the machine has let the client wait so long that its login ended in the middle of a call."""
            assert len(client.describe_log_dirs().ok) == 2
            before, end_s = connections(client), time.monotonic() + 1.5 * lifetime_s
            while time.monotonic() < end_s:
                client.describe_cluster()
            assert len(client.describe_log_dirs().ok) == 2
            return connections(client) == before

        wait_until(are_outlived, timeout_s=60, what="connections to outlive their logins")
        assert all(
            isinstance(one, AuthenticatedConnection) and one._renew_at_s is not None for one in connections(client)
        )


# Kept out


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_refused_at_once_in_kafkas_words(
    mechanism: str, kafka_secure: KafkaCluster, enter: Enter
) -> None:
    properties = kafka_secure.client_properties(Listener.SASL_SSL, mechanism=mechanism, password=WRONG)
    error = failure(enter(properties, Listener.SASL_SSL))
    assert isinstance(error, Unauthenticated)
    assert f"SASL {mechanism} as admin was refused: Authentication failed" in str(error)


def test_an_unknown_user_is_refused(kafka_secure: KafkaCluster, enter: Enter) -> None:
    properties = kafka_secure.client_properties(Listener.SASL_PLAINTEXT)
    properties["sasl.jaas.config"] = properties["sasl.jaas.config"].replace('"admin"', '"nobody"')
    error = failure(enter(properties, Listener.SASL_PLAINTEXT))
    assert isinstance(error, Unauthenticated)
    assert "as nobody was refused" in str(error)


@pytest.mark.parametrize("listener", [Listener.SSL, Listener.SASL_SSL])
def test_a_broker_of_another_authority_is_not_trusted(
    listener: Listener, kafka_secure: KafkaCluster, enter: Enter
) -> None:
    assert kafka_secure.certificates is not None
    properties = kafka_secure.client_properties(listener)
    properties["ssl.truststore.location"] = str(kafka_secure.certificates.foreign_trust_store)
    error = failure(enter(properties, listener))
    assert isinstance(error, Unauthenticated)
    assert "is not trusted: unable to get local issuer certificate" in str(error)


def test_who_has_no_certificate_is_refused_where_one_is_wanted(kafka_secure: KafkaCluster, enter: Enter) -> None:
    properties = kafka_secure.client_properties(Listener.SSL)
    del properties["ssl.keystore.location"], properties["ssl.keystore.type"]
    error = failure(enter(properties, Listener.SSL))
    assert isinstance(error, Unauthenticated)
    assert "refused the TLS connection" in str(error)


# The wrong listener


@pytest.mark.parametrize("at", [Listener.SSL, Listener.SASL_SSL])
def test_without_tls_a_tls_listener_is_recognised(at: Listener, enter: Enter) -> None:
    error = failure(enter({"security.protocol": "PLAINTEXT"}, at))
    assert isinstance(error, ProtocolViolation)
    assert "does it expect TLS" in str(error)


def test_sasl_at_a_listener_without_it_is_named(kafka_secure: KafkaCluster, enter: Enter) -> None:
    error = failure(enter(kafka_secure.client_properties(Listener.SASL_PLAINTEXT), Listener.PLAINTEXT))
    assert isinstance(error, Unauthenticated)
    assert "Check that security.protocol fits the listener" in str(error)


def test_tls_at_a_listener_without_it_and_none_where_sasl_is_wanted_point_at_the_protocol(
    kafka_secure: KafkaCluster, enter: Enter
) -> None:
    for properties, at in (
        (kafka_secure.client_properties(Listener.SASL_SSL), Listener.PLAINTEXT),
        ({"security.protocol": "PLAINTEXT"}, Listener.SASL_PLAINTEXT),
    ):
        with enter(properties, at) as client, pytest.raises((Unreachable, Unauthenticated)) as refused:
            client.describe_cluster(timeout_ms=1_000)
        assert "security.protocol" in str(refused.value) or "TLS" in str(refused.value)


# Not allowed


@pytest.fixture
def alice(kafka_secure: KafkaCluster, enter: Enter, topic_name: str) -> AdminClient:
    """A client whose user may do nothing, next to a topic that is there."""
    with enter({}, Listener.PLAINTEXT) as admin:
        admin.create_topics([NewTopic(topic_name, assignments=((0, 1),))]).raise_if_any()
    properties = kafka_secure.client_properties(Listener.SASL_SSL, user="alice", mechanism="SCRAM-SHA-512")
    return enter(properties, Listener.SASL_SSL)


REQUESTS: dict[str, tuple[Callable[[AdminClient, TopicPartition], object], int, str]] = {
    "alter": (lambda client, key: client.alter_partition_reassignments({key: (1, 0)}), 31, "needs ALTER permission"),
    "list": (lambda client, _key: client.list_partition_reassignments(), 31, "needs DESCRIBE permission"),
    "elect": (lambda client, key: client.elect_leaders([key]), 31, ""),
    "log dirs": (
        lambda client, _key: client.describe_log_dirs([0]).raise_if_any(),
        31,
        "Cluster authorization failed.",
    ),
    "topics": (
        lambda client, key: client.describe_topics([key.topic]).raise_if_any(),
        29,
        "Topic authorization failed.",
    ),
    "offsets": (lambda client, key: client.list_offsets([key]).raise_if_any(), 29, "Topic authorization failed."),
    "delete": (lambda client, key: client.delete_topics([key.topic]).raise_if_any(), 29, "authorization failed."),
    "create": (lambda client, _key: client.create_topics([NewTopic("new", 1, 1)]).raise_if_any(), 29, "failed."),
    "grow": (
        lambda client, key: client.create_partitions({key.topic: NewPartitions(2)}).raise_if_any(),
        29,
        "Topic authorization failed.",
    ),
    "topic configs": (
        lambda client, key: client.incremental_alter_configs(
            {ConfigResource.topic(key.topic): [ConfigChange.delete("retention.ms")]}
        ).raise_if_any(),
        29,
        "Topic authorization failed.",
    ),
    "broker configs": (
        lambda client, _key: client.incremental_alter_configs(
            {ConfigResource.broker(0): [ConfigChange.delete("leader.replication.throttled.rate")]}
        ).raise_if_any(),
        31,
        "Cluster authorization failed.",
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_what_is_not_allowed_is_refused_in_kafkas_words(name: str, alice: AdminClient, topic_name: str) -> None:
    request, code, words = REQUESTS[name]
    with alice, pytest.raises(Rejected) as refused:
        request(alice, TopicPartition(topic_name, 0))
    assert refused.value.code == code
    assert words in str(refused.value)
    assert not refused.value.retriable


def test_a_listing_that_is_not_allowed_says_so_at_the_top_and_nothing_else(alice: AdminClient) -> None:
    """KIP-455: no responses beside an error at the top."""
    known = api.LIST_PARTITION_REASSIGNMENTS
    call = Call(
        known, lambda _version, timeout_ms: known.request(timeout_ms=timeout_ms, topics=None), lambda told: told
    )
    with alice:
        answer = alice._session.call(call, To.CONTROLLER)
    assert (answer.error_code, list(answer.topics)) == (31, [])


def test_a_permission_opens_just_what_it_is_for(
    alice: AdminClient, kafka_secure: KafkaCluster, topic_name: str
) -> None:
    with alice:
        assert alice.describe_cluster().broker_ids == (0, 1)
        kafka_secure.allow("alice", Permission("DESCRIBE"))
        try:
            assert alice.list_partition_reassignments() == {}
            assert len(alice.describe_log_dirs().ok) == 2
            with pytest.raises(Rejected, match="needs ALTER permission"):
                alice.alter_partition_reassignments({TopicPartition(topic_name, 0): (1, 0)})
        finally:
            kafka_secure.withdraw("alice")
