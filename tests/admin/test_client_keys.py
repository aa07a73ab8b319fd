"""The table of Kafka's client properties is whole, and says what the reader of properties does."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.admin import client_settings
from kreassign.admin.properties import CLIENT_KEYS, ClientKey, Use
from kreassign.errors import InputError
from tests.logs import Logged


def of(use: Use) -> list[ClientKey]:
    return [key for key in CLIENT_KEYS if key.use is use]


def test_each_property_has_one_row() -> None:
    names = [key.name for key in CLIENT_KEYS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("key", of(Use.REFUSED), ids=lambda key: key.name)
def test_what_is_refused_is_refused_with_its_reason_and_without_its_value(key: ClientKey) -> None:
    with pytest.raises(InputError) as refused:
        client_settings({key.name: "pa55-x"}, bootstrap_servers="b")
    assert str(refused.value).startswith(
        f"the property {key.name} is not supported and ignoring it could weaken security"
    )
    assert key.text in str(refused.value)
    assert "pa55" not in str(refused.value)


@pytest.mark.parametrize("key", [key for key in of(Use.REFUSED) if key.default], ids=lambda key: key.name)
def test_the_default_of_what_is_refused_is_accepted(key: ClientKey) -> None:
    assert client_settings({key.name: key.default}, bootstrap_servers="b")


def test_what_has_no_effect_changes_nothing_and_is_not_warned_of(logged: Logged) -> None:
    properties = {key.name: "7" for key in of(Use.IGNORED)}
    assert client_settings(properties, bootstrap_servers="b") == client_settings(bootstrap_servers="b")
    assert not logged.warnings


# What is heard: with each property, something is otherwise, or is refused by its name

STORES = Path(__file__).parent / "stores"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required username=a password=b;"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId=a clientSecret=b;"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true serviceName=kafka;"
ADDRESS = {"bootstrap.servers": "b"}
TLS = {"security.protocol": "SSL"}
KEY = TLS | {"ssl.keystore.location": str(STORES / "key.jks"), "ssl.keystore.password": "pa55-store"}
TRUST = TLS | {"ssl.truststore.location": str(STORES / "trust.p12"), "ssl.truststore.password": "pa55-store"}
BEARER = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": OAUTH,
    "sasl.oauthbearer.token.endpoint.url": "https://issuer.example/",
}
ASSERTION = "sasl.oauthbearer.assertion."
SIGNED = BEARER | {f"{ASSERTION}claim.iss": "us", f"{ASSERTION}private.key.file": "/k"}
LOGIN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN}
HEARD: dict[str, tuple[dict[str, str], str]] = {
    "bootstrap.controllers": ({}, "c:1"),
    "bootstrap.servers": ({}, "c:1"),
    "client.id": ({}, "x"),
    "config.providers": ({}, "x"),
    "default.api.timeout.ms": ({}, "1"),
    "request.timeout.ms": ({}, "1"),
    "retry.backoff.ms": ({}, "1"),
    "sasl.client.callback.handler.class": (LOGIN, "x"),
    "sasl.jaas.config": (LOGIN, PLAIN.replace("=b", "=c")),
    "sasl.kerberos.service.name": (
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI", "sasl.jaas.config": KERBEROS},
        "other",
    ),
    "sasl.login.callback.handler.class": (BEARER, "x"),
    "sasl.login.connect.timeout.ms": (BEARER, "1"),
    "sasl.login.read.timeout.ms": (BEARER, "1"),
    "sasl.login.refresh.window.factor": (BEARER, "0.5"),
    "sasl.mechanism": (LOGIN, "SCRAM-SHA-512"),
    **{f"{ASSERTION}{name}": (SIGNED, "x") for name in (
        "algorithm", "claim.aud", "claim.exp.seconds", "claim.iss", "claim.nbf.seconds", "claim.sub", "file",
        "private.key.file", "private.key.passphrase", "template.file",
    )},
    f"{ASSERTION}claim.jti.include": (SIGNED, "true"),
    "sasl.oauthbearer.client.credentials.client.id": (BEARER, "x"),
    "sasl.oauthbearer.client.credentials.client.secret": (BEARER, "x"),
    "sasl.oauthbearer.header.urlencode": (BEARER, "true"),
    "sasl.oauthbearer.jwt.retriever.class": (BEARER, "x"),
    "sasl.oauthbearer.scope": (BEARER, "x"),
    "sasl.oauthbearer.token.endpoint.url": (BEARER, "https://other.example/"),
    "security.protocol": ({}, "SSL"),
    "socket.connection.setup.timeout.ms": ({}, "1"),
    "ssl.enabled.protocols": (TLS, "TLSv1.3"),
    "ssl.endpoint.identification.algorithm": (TLS, ""),
    "ssl.key.password": (KEY | {"ssl.key.password": "pa55-key"}, "x"),
    "ssl.keystore.certificate.chain": (TLS, "x"),
    "ssl.keystore.key": (TLS, "x"),
    "ssl.keystore.location": (KEY | {"ssl.key.password": "pa55-key"}, str(STORES / "key.p12")),
    "ssl.keystore.password": (KEY | {"ssl.key.password": "pa55-key"}, "x"),
    "ssl.keystore.type": (KEY | {"ssl.key.password": "pa55-key"}, "PEM"),
    "ssl.truststore.certificates": (TLS, "x"),
    "ssl.truststore.location": (TLS, str(STORES / "trust.jks")),
    "ssl.truststore.password": (TRUST, "x"),
    "ssl.truststore.type": (TRUST, "PEM"),
}  # fmt: skip


def outcome(properties: dict[str, str]) -> object:
    try:
        return client_settings(properties if "bootstrap.controllers" in properties else ADDRESS | properties)
    except InputError as error:
        return str(error)


def test_every_property_that_is_said_to_be_heard_has_an_example() -> None:
    assert sorted(HEARD) == sorted(key.name for key in of(Use.HEARD))


@pytest.mark.parametrize("key", HEARD)
def test_a_supported_property_changes_settings_or_is_refused(key: str) -> None:
    base, value = HEARD[key]
    before, after = outcome(base), outcome(base | {key: value})
    assert before != after
    if isinstance(after, str):
        assert key.rpartition(".")[0] in after
