"""Logins, refusals and their messages: SASL, TLS and a denied ACL on a real cluster."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)
from cryptography.x509 import load_pem_x509_certificate, load_pem_x509_certificates

from kreassign.admin import AdminClient, Connection, client_settings, read_properties
from kreassign.admin.call import Call
from kreassign.admin.properties import CLIENT_KEYS, PROVIDER_CLASSES
from kreassign.admin.sasl_properties import FROM_ENDPOINT
from kreassign.admin.session import To
from kreassign.admin.transport import AuthenticatedConnection
from kreassign.errors import ClusterError, ProtocolViolation, Rejected, Unauthenticated, Unreachable
from kreassign.model import ConfigChange, ConfigResource, NewPartitions, NewTopic, TopicPartition
from kreassign.wire import api
from testbed import KafkaCluster, Listener, Permission
from testbed.properties import render
from testbed.security import OAUTH_MODULE, USERS
from testbed.tokens import Issuer
from testbed.waiting import wait_until
from tests.admin.token_server import TokenServer, granted, refused
from tests.clusters import SHORT_LOGINS
from tests.logs import Logged

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
WRONG = "pa55-wrong"

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
    """The error of a client that is not let in, which must not tell its password."""
    with client, pytest.raises(ClusterError) as refused:
        client.describe_cluster()
    assert not [secret for secret in (*USERS.values(), WRONG) if secret in f"{refused.value} {refused.value!r}"]
    return refused.value


# Let in


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", [Listener.SASL_PLAINTEXT, Listener.SASL_SSL])
def test_sasl_lets_in_who_has_the_password(
    listener: Listener, mechanism: str, kafka_secure: KafkaCluster, enter: Enter, logged: Logged
) -> None:
    assert is_served(enter(kafka_secure.client_properties(listener, mechanism=mechanism), listener))
    assert USERS["admin"] not in logged.text


def test_tls_lets_in_who_has_a_certificate(kafka_secure: KafkaCluster, enter: Enter) -> None:
    assert is_served(enter(kafka_secure.client_properties(Listener.SSL), Listener.SSL))


def as_jks(store: Path, password: str) -> Path:
    """A copy of a PKCS12 store in Java's older form, by Java itself."""
    copy = store.with_suffix(".jks")
    options = ["-noprompt", "-srcstorepass", password, "-deststorepass", password, "-deststoretype", "JKS"]
    words = ["keytool", "-importkeystore", "-srckeystore", store, "-destkeystore", copy, *options]
    subprocess.run(words, check=True, capture_output=True, timeout=60)
    assert copy.read_bytes().startswith(bytes.fromhex("feedfeed"))
    return copy


@pytest.mark.parametrize(
    ("form", "password"), [("p12", "${file:FOLDER/secrets.properties:store}"), ("jks", "${env:STORE_PASSWORD}")]
)
def test_stores_of_java_are_as_good_as_pem(
    kafka_secure: KafkaCluster, enter: Enter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, password: str
) -> None:
    assert kafka_secure.certificates is not None
    blocks = kafka_secure.certificates.user_key_store("admin").read_bytes()
    trusted = load_pem_x509_certificate(kafka_secure.certificates.trust_store.read_bytes())
    chain = load_pem_x509_certificates(blocks[blocks.index(b"-----BEGIN CERT") :])
    key = load_pem_private_key(blocks, password=None)
    assert isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey)
    encryption = BestAvailableEncryption(b"pa55-store")
    stores = {"key": tmp_path / "key.p12", "trust": tmp_path / "trust.p12"}
    stores["key"].write_bytes(serialize_key_and_certificates(b"admin", key, chain[0], chain[1:], encryption))
    stores["trust"].write_bytes(serialize_java_truststore([PKCS12Certificate(trusted, b"ca")], encryption))
    if form == "jks":
        stores = {name: as_jks(store, "pa55-store") for name, store in stores.items()}
    monkeypatch.setenv("STORE_PASSWORD", "pa55-store")
    (tmp_path / "secrets.properties").write_text("store=pa55-store\n")
    properties = {"security.protocol": "SSL", "config.providers": "env,file"}
    properties |= {f"config.providers.{name}.class": PROVIDER_CLASSES[name] for name in ("env", "file")}
    properties |= {f"ssl.{name}store.location": str(store) for name, store in stores.items()}
    properties |= {f"ssl.{name}store.password": password.replace("FOLDER", str(tmp_path)) for name in stores}
    assert is_served(enter(properties, Listener.SSL))


def test_every_property_that_kafkas_client_knows_has_its_row(kafka_secure: KafkaCluster) -> None:
    told = kafka_secure.java_tool("org.apache.kafka.clients.admin.AdminClientConfig", in_own_java=True)
    names = set(re.findall(r'<h4><a id="([a-z0-9.]+)"', told.stdout))
    assert "sasl.jaas.config" in names
    assert names <= {key.name for key in CLIENT_KEYS}


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


def test_clients_outlive_their_logins_on_the_same_connections(
    kafka_secure: KafkaCluster, enter: Enter, token_server: TokenServer
) -> None:
    """A broker hangs up on who asks anything but for a login after its time: brokers that are asked, or left idle.

    One login ends as the broker says, the other, of 20 s, with the token of it.
    """
    lifetime_s = min(int(text) for text in SHORT_LOGINS.values()) / 1000
    assert kafka_secure.issuer is not None
    issuer = kafka_secure.issuer
    token_server.reply = lambda: granted(issuer.token(lifetime_s=2 * lifetime_s))
    by_token = bearer(kafka_secure, token_server) | {"sasl.login.refresh.window.factor": "0.5"}
    by_password = kafka_secure.client_properties(Listener.SASL_PLAINTEXT, mechanism="SCRAM-SHA-256")
    with enter(by_password, Listener.SASL_PLAINTEXT) as first, enter(by_token, Listener.SASL_SSL) as second:
        clients = (first, second)

        def are_outlived() -> bool:
            """False where the machine let a client wait so long that its login ended in the middle of a call."""
            assert all(len(client.describe_log_dirs().ok) == 2 for client in clients)
            asked = len(token_server.asked)
            before, end_s = [connections(client) for client in clients], time.monotonic() + 1.5 * lifetime_s
            while time.monotonic() < end_s or len(token_server.asked) == asked:
                first.describe_cluster()
                second.describe_cluster()
            assert all(len(client.describe_log_dirs().ok) == 2 for client in clients)
            return [connections(client) for client in clients] == before

        wait_until(are_outlived, what="connections to outlive their logins")
        assert all(
            isinstance(one, AuthenticatedConnection) and one._renew_at_s is not None
            for client in clients
            for one in connections(client)
        )


# Bearer tokens


@pytest.fixture
def token_server() -> Iterator[TokenServer]:
    with closing(TokenServer(refused("nobody_has_told_it"))) as server:
        yield server


def bearer(kafka: KafkaCluster, server: TokenServer) -> dict[str, str]:
    """A client that fetches tokens for id and secret (KIP-768)."""
    return kafka.client_properties(Listener.SASL_SSL) | {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": FROM_ENDPOINT[0],
        "sasl.oauthbearer.token.endpoint.url": server.url,
        "sasl.jaas.config": f'{OAUTH_MODULE} required clientId="us" clientSecret="{WRONG}" scope="admin";',
    }


def unsecured(kafka: KafkaCluster, scope: str) -> dict[str, str]:
    login = f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="admin" unsecuredLoginStringClaim_scope="{scope}";'
    properties = kafka.client_properties(Listener.SASL_PLAINTEXT)
    return properties | {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": login}


def test_who_has_a_token_is_let_in_by_both_of_kafkas_validators(
    kafka_secure: KafkaCluster,
    enter: Enter,
    token_server: TokenServer,
    tmp_path: Path,
    logged: Logged,
) -> None:
    assert kafka_secure.issuer is not None
    token = kafka_secure.issuer.token(lifetime_s=300)
    token_server.reply = granted(token)
    assert is_served(enter(bearer(kafka_secure, token_server), Listener.SASL_SSL))
    assert len(token_server.asked) == 1
    (tmp_path / "token").write_text(token)
    url = {"sasl.oauthbearer.token.endpoint.url": (tmp_path / "token").as_uri()}
    assert is_served(enter(bearer(kafka_secure, token_server) | url, Listener.SASL_SSL))
    (tmp_path / "assertion").write_text("header.claims.signature")
    assertion = {"sasl.oauthbearer.assertion.file": str(tmp_path / "assertion")}
    for retriever, sent in (("JwtBearer", "&assertion=header"), ("ClientCredentials", "&client_assertion=header")):
        named = {"sasl.oauthbearer.jwt.retriever.class": f"{OAUTH_MODULE.rpartition('.')[0]}.{retriever}JwtRetriever"}
        assert is_served(enter(bearer(kafka_secure, token_server) | assertion | named, Listener.SASL_SSL))
        assert sent in token_server.asked[-1].body
    assert is_served(enter(unsecured(kafka_secure, "admin"), Listener.SASL_PLAINTEXT))
    assert token not in logged.text
    assert WRONG not in logged.text


def test_unaccepted_tokens_are_refused_at_once_and_not_shown(
    kafka_secure: KafkaCluster, enter: Enter, token_server: TokenServer
) -> None:
    assert kafka_secure.issuer is not None
    issuer = kafka_secure.issuer
    tokens = (
        Issuer().token(),
        issuer.token(aud="other"),
        issuer.token(exp=time.time() - 60, iat=time.time() - 120),
    )
    for token in tokens:
        token_server.reply = granted(token)
        error = failure(enter(bearer(kafka_secure, token_server), Listener.SASL_SSL))
        assert isinstance(error, Unauthenticated)
        assert "SASL OAUTHBEARER with the token endpoint" in str(error)
        assert "was refused" in str(error)
        assert token not in f"{error} {error!r}"


def test_the_scope_that_a_broker_wants_is_told(kafka_secure: KafkaCluster, enter: Enter) -> None:
    error = failure(enter(unsecured(kafka_secure, "other"), Listener.SASL_PLAINTEXT))
    assert isinstance(error, Unauthenticated)
    assert "The broker wants a token of the scope admin: set scope in sasl.jaas.config" in str(error)


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


@pytest.fixture
def key_store(kafka_secure: KafkaCluster, enter: Enter) -> Iterator[Callable[[Path | None], None]]:
    """Gives the brokers' SSL listener another certificate while they run (KIP-226); at the end it has its own again."""
    name = "listener.name.ssl.ssl.keystore.location"

    def change(store: Path | None) -> None:
        what = ConfigChange.delete(name) if store is None else ConfigChange.set(name, str(store))
        with enter({}, Listener.PLAINTEXT) as admin:
            changes = {ConfigResource.broker(broker): [what] for broker in (0, 1)}
            admin.incremental_alter_configs(changes).raise_if_any()

    yield change
    change(None)
    own = kafka_secure.client_properties(Listener.SSL)
    wait_until(lambda: not distrust(enter(own, Listener.SSL)), what="their own certificate")


def distrust(client: AdminClient) -> list[str]:
    """Why it does not trust those brokers that show another certificate by now; nothing if it trusts all."""
    with client:
        try:
            return [str(error) for error in client.describe_log_dirs().failed.values()]
        except Unauthenticated as error:
            return [str(error)]


@pytest.mark.parametrize(
    ("why", "cause"),
    [("expired", "certificate has expired"), ("misnamed", "IP address mismatch")],
)
def test_brokers_with_expired_or_foreign_certificates_are_refused(
    why: str, cause: str, kafka_secure: KafkaCluster, enter: Enter, key_store: Callable[[Path | None], None]
) -> None:
    assert kafka_secure.certificates is not None
    properties = kafka_secure.client_properties(Listener.SSL)
    # Each listener thread of a broker changes its certificate by itself, so that a former one may be shown once more.
    wait_until(lambda: not distrust(enter(properties, Listener.SSL)), what="their own certificate")
    key_store(kafka_secure.certificates.bad_key_store(why))

    def brokers_show_it() -> bool:
        reasons = distrust(enter(properties, Listener.SSL))
        return bool(reasons) and all(f"is not trusted: {cause}" in reason for reason in reasons)

    wait_until(brokers_show_it, what="the other certificate")


def test_who_has_no_certificate_is_refused_where_one_is_wanted(kafka_secure: KafkaCluster, enter: Enter) -> None:
    properties = kafka_secure.client_properties(Listener.SSL)
    del properties["ssl.keystore.location"], properties["ssl.keystore.type"]

    def is_refused() -> bool:
        # A listener thread may show the certificate of a former test once more.
        return "refused the TLS connection" in str(failure(enter(properties, Listener.SSL)))

    wait_until(is_refused, what="a refusal for want of a certificate")


# The wrong listener


@pytest.mark.parametrize("at", [Listener.SSL, Listener.SASL_SSL])
def test_without_tls_a_tls_listener_is_recognised(at: Listener, enter: Enter) -> None:
    error = failure(enter({"security.protocol": "PLAINTEXT"}, at))
    assert isinstance(error, ProtocolViolation)
    assert "it looks like TLS" in str(error)


def test_sasl_at_a_listener_without_it_is_named(kafka_secure: KafkaCluster, enter: Enter) -> None:
    error = failure(enter(kafka_secure.client_properties(Listener.SASL_PLAINTEXT), Listener.PLAINTEXT))
    assert isinstance(error, Unauthenticated)
    assert "Check that security.protocol fits the listener" in str(error)


def test_a_tls_or_sasl_mismatch_points_at_the_protocol(kafka_secure: KafkaCluster, enter: Enter) -> None:
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
