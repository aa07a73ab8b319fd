"""OAUTHBEARER, Kerberos and MSK of client properties, as Kafka's own clients and AWS's library name them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.admin import client_settings, settings
from kreassign.admin.properties import CLIENT_KEYS, Use
from kreassign.admin.sasl_properties import FROM_AWS, FROM_ENDPOINT, UNSECURED
from kreassign.errors import InputError

OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
MSK_MODULE = "software.amazon.msk.auth.iam.IAMLoginModule"
FROM_AWS_CLIENT = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
URL = "sasl.oauthbearer.token.endpoint.url"
HANDLER = "sasl.login.callback.handler.class"
CLIENT = 'clientId="alice" clientSecret="pa55-client"'
STORES = Path(__file__).parent / "stores"
ISSUER = "https://issuer.example/token"
BEARER = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"
RETRIEVER, ASSERTION = "sasl.oauthbearer.jwt.retriever.class", "sasl.oauthbearer.assertion."


def credentials(mechanism: str, jaas: str, **properties: str) -> settings.Credentials | None:
    """Credentials from properties; an underscore stands for a dot."""
    named = {key.replace("_", "."): value for key, value in properties.items()}
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    return client_settings(login | named, bootstrap_servers="b").sasl


def oauth(options: str, url: str | None = "https://issuer.example/token", **properties: str) -> settings.OAuth:
    named = {} if url is None else {URL: url, HANDLER: FROM_ENDPOINT[0]}
    found = credentials("OAUTHBEARER", f"{OAUTH_MODULE} required {options};", **named | properties)
    assert isinstance(found, settings.OAuth)
    return found


def refusal(mechanism: str, jaas: str, **properties: str) -> str:
    with pytest.raises(InputError) as refused:
        credentials(mechanism, jaas, **properties)
    assert "pa55" not in f"{refused.value} {refused.value!r}"
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
    return str(refused.value)


def oauth_refusal(options: str, **properties: str) -> str:
    return refusal("OAUTHBEARER", f"{OAUTH_MODULE} required {options};", **properties)


# OAUTHBEARER from an endpoint


@pytest.mark.parametrize("handler", [*FROM_ENDPOINT, ""])
def test_client_credentials_come_from_the_login_module(handler: str) -> None:
    found = oauth(f'{CLIENT} scope="kafka admin"', **{HANDLER: handler})
    assert found.tokens == settings.TokenEndpoint(
        ISSUER, settings.ClientSecret("alice", settings.Secret("pa55-client")), "kafka admin"
    )
    assert "pa55" not in repr(found)


def test_properties_of_kafka_4_1_win_over_the_login_module() -> None:
    found = oauth(
        CLIENT,
        sasl_oauthbearer_client_credentials_client_id="bob",
        sasl_oauthbearer_client_credentials_client_secret="pa55-bob",
        sasl_oauthbearer_scope="s",
        sasl_oauthbearer_header_urlencode="true",
        sasl_login_connect_timeout_ms="1000",
        sasl_login_read_timeout_ms="2000",
    )
    bob = settings.ClientSecret("bob", settings.Secret("pa55-bob"), is_url_encoded=True)
    assert found.tokens == settings.TokenEndpoint(ISSUER, bob, "s", timeout_ms=3000)


def test_tls_to_the_endpoint_is_configured_in_the_login_module_as_in_java() -> None:
    found = oauth(f'{CLIENT} ssl.truststore.location="{STORES}/trust.p12" ssl.truststore.password="pa55-store"')
    assert isinstance(found.tokens, settings.TokenEndpoint)
    assert found.tokens.tls == settings.Tls(trusted_certificates=(STORES / "alice.pem").read_text().strip())


def test_extensions_go_with_the_token() -> None:
    found = oauth(f'{CLIENT} extension_logicalCluster="lkc-1" extension_identityPoolId="pool-1"')
    assert found.extensions == (("logicalCluster", "lkc-1"), ("identityPoolId", "pool-1"))
    for wrong in ('extension_auth="x"', 'extension_a.b="x"', 'extension_a="ü"', 'extension_a=""'):
        assert "of sasl.jaas.config is no SASL extension" in oauth_refusal(f"{CLIENT} {wrong}", **{URL: "https://i/"})


def test_a_token_is_renewed_after_so_much_of_its_lifetime() -> None:
    assert oauth(CLIENT).refresh_factor == 0.8
    assert oauth(CLIENT, sasl_login_refresh_window_factor="0.5").refresh_factor == 0.5
    for wrong in ("0.4", "1.1", "x", "nan"):
        said = oauth_refusal(CLIENT, **{URL: "https://i/", "sasl_login_refresh_window_factor": wrong})
        assert f"sasl.login.refresh.window.factor={wrong} is not a number from 0.5 to 1.0" in said


SIGNED = {f"{ASSERTION}private.key.file": "/k.pem", f"{ASSERTION}claim.iss": "us", f"{ASSERTION}claim.sub": "alice"}


def test_an_assertion_is_the_grant_where_that_class_is_named() -> None:
    found = oauth("", **{RETRIEVER: BEARER, f"{ASSERTION}file": "/run/assertion", "sasl.oauthbearer.scope": "s"})
    assert found.tokens == settings.TokenEndpoint(
        ISSUER, settings.JwtBearer(settings.AssertionFile("/run/assertion")), "s"
    )
    every = {
        f"{ASSERTION}claim.aud": "issuer",
        f"{ASSERTION}claim.exp.seconds": "90",
        f"{ASSERTION}claim.nbf.seconds": "30",
        f"{ASSERTION}claim.jti.include": "true",
        f"{ASSERTION}algorithm": "es256",
        f"{ASSERTION}private.key.passphrase": "pa55-key",
        f"{ASSERTION}template.file": "/t.json",
    }
    found = oauth("", **{RETRIEVER: BEARER, **SIGNED, **every})
    claims = (("aud", "issuer"), ("iss", "us"), ("sub", "alice"))
    signed = settings.SignedAssertion(
        "/k.pem", claims, "ES256", settings.Secret("pa55-key"), "/t.json", valid_s=90, valid_before_s=30, has_id=True
    )
    assert found.tokens == settings.TokenEndpoint(ISSUER, settings.JwtBearer(signed))
    assert "pa55" not in repr(found)


def test_an_assertion_takes_the_place_of_the_secret() -> None:
    claims = (("iss", "us"), ("sub", "alice"))
    found = oauth(CLIENT, **SIGNED)
    assert found.tokens == settings.TokenEndpoint(
        ISSUER, settings.ClientAssertion(settings.SignedAssertion("/k.pem", claims), "alice")
    )
    found = oauth("", **{**SIGNED, f"{ASSERTION}file": "/run/assertion"})
    assert found.tokens == settings.TokenEndpoint(
        ISSUER, settings.ClientAssertion(settings.AssertionFile("/run/assertion"))
    )


@pytest.mark.parametrize(("properties", "words"), [
    ({}, "needs sasl.oauthbearer.assertion.file, which somebody else renews, or sasl.oauthbearer.assertion.private"),
    ({**SIGNED, f"{ASSERTION}algorithm": "HS256"}, "assertion.algorithm=HS256 is not one of RS256, ES256"),
    ({**SIGNED, f"{ASSERTION}claim.exp.seconds": "5m"}, "assertion.claim.exp.seconds=5m is not a number of seconds"),
    ({URL: "file:///t"}, "JwtBearerJwtRetriever asks a server: sasl.oauthbearer.token.endpoint.url must be https"),
])  # fmt: skip
def test_what_keeps_an_assertion_from_being_made_is_named(properties: dict[str, str], words: str) -> None:
    given = {URL: ISSUER, HANDLER: FROM_ENDPOINT[0], RETRIEVER: BEARER, **properties}
    assert words in oauth_refusal("", **given)


@pytest.mark.parametrize(("url", "path"), [("file:///etc/kafka/token", "/etc/kafka/token"), ("file:/a%20b", "/a b")])
def test_a_token_may_be_kept_in_a_file(url: str, path: str) -> None:
    assert oauth("", url).tokens == settings.TokenFile(path)


@pytest.mark.parametrize(("options", "properties", "words"), [
    (CLIENT, {HANDLER: FROM_ENDPOINT[0]}, f"{URL} is missing: the address where tokens are fetched"),
    ("", {URL: "https://i/"}, "needs clientId in sasl.jaas.config, or sasl.oauthbearer.client."),
    ('clientId="a"', {URL: "https://i/"}, "needs clientSecret in sasl.jaas.config"),
    (CLIENT, {URL: "issuer.example/token"}, "is not an address; write https://HOST/PATH, or file:///PATH"),
    (CLIENT, {URL: "https://issuer.example:x/"}, "is not an address"),
    (CLIENT, {URL: "https://issuer.example/a b"}, "is not an address"),
    (CLIENT, {URL: "https:///token"}, "names no host"),
    (CLIENT, {URL: "https://u:pa55@issuer.example/"}, "credentials belong to sasl.jaas.config"),
    ("", {URL: "file://elsewhere/token"}, "must name a file of this machine"),
    (CLIENT, {URL: "https://i/", "sasl.login.read.timeout.ms": "1s"}, "read.timeout.ms=1s is not a number"),
    (CLIENT, {URL: "https://i/", HANDLER: "com.example.Own"}, f"{HANDLER}=com.example.Own is not supported"),
    (CLIENT, {URL: "https://i/", "sasl.client.callback.handler.class": "com.example.Own"}, "is not supported"),
    (CLIENT, {URL: "https://i/", "sasl.oauthbearer.jwt.retriever.class": "org.example.OwnJwtRetriever"},
     "is not supported with sasl.mechanism=OAUTHBEARER; use one of"),
    (f'{CLIENT} ssl.truststore.location="/absent"', {URL: "https://i/"}, "cannot read ssl.truststore.location"),
])  # fmt: skip
def test_what_keeps_a_token_from_being_fetched_is_named(options: str, properties: dict[str, str], words: str) -> None:
    assert words in oauth_refusal(options, **properties)


# Unsecured tokens


@pytest.mark.parametrize("handler", [{}, {HANDLER: UNSECURED}])
def test_without_a_class_tokens_are_unsecured_as_in_kafka(handler: dict[str, str]) -> None:
    options = (
        'unsecuredLoginStringClaim_sub="alice" unsecuredLoginNumberClaim_level="7" unsecuredLoginListClaim_scope="|a|b"'
        ' unsecuredLoginLifetimeSeconds="60" unsecuredLoginExtension_zone="x"'
    )
    found = oauth(options, None, **handler)
    assert found.tokens == settings.UnsecuredToken((("sub", "alice"), ("level", 7.0), ("scope", ("a", "b"))), 60)
    assert found.extensions == (("zone", "x"),)


@pytest.mark.parametrize(
    "options", ["", CLIENT, 'unsecuredLoginStringClaim_sub=""', 'unsecuredLoginStringClaim_exp="1"']
)
def test_a_login_that_says_nothing_is_told_both_ways(options: str) -> None:
    said = oauth_refusal(options)
    assert f"{HANDLER}={FROM_ENDPOINT[0]} and {URL}" in said
    assert "unsecuredLoginStringClaim_sub" in said


@pytest.mark.parametrize("odd", ["inf", "nan", "x", "1e999"])
def test_a_claim_that_is_no_number_is_refused(odd: str) -> None:
    said = oauth_refusal(f'unsecuredLoginStringClaim_sub="a" unsecuredLoginNumberClaim_n="{odd}"')
    assert said.endswith("unsecuredLoginNumberClaim_n of sasl.jaas.config is not a number")


def test_an_odd_lifetime_is_refused_by_the_name_of_its_option() -> None:
    said = oauth_refusal('unsecuredLoginStringClaim_sub="a" unsecuredLoginLifetimeSeconds="pa55"')
    assert said.endswith("unsecuredLoginLifetimeSeconds of sasl.jaas.config is not a number")


# Kerberos


def kerberos(options: str, **properties: str) -> settings.Credentials | None:
    named = {"sasl.kerberos.service.name": "kafka"} | properties
    return credentials("GSSAPI", f"{KERBEROS_MODULE} required {options};", **named)


@pytest.mark.parametrize("path", ["/a.keytab", "file:/a.keytab", "FILE:/a.keytab", "file:///a.keytab"])
def test_a_keytab_goes_with_its_principal(path: str) -> None:
    found = kerberos(f'useKeyTab=true storeKey=true keyTab="{path}" principal="alice@EXAMPLE.COM"')
    assert found == settings.Kerberos("kafka", "alice@EXAMPLE.COM", "/a.keytab")


def test_tickets_of_kinit_may_be_used() -> None:
    assert kerberos("useTicketCache=true") == settings.Kerberos("kafka")
    assert kerberos('useTicketCache=true ticketCache="/tmp/c"') == settings.Kerberos("kafka", ticket_cache="/tmp/c")


def test_the_service_name_may_stand_in_the_login_module() -> None:
    found = kerberos("useTicketCache=true serviceName=kafka", **{"sasl.kerberos.service.name": ""})
    assert found == settings.Kerberos("kafka")


@pytest.mark.parametrize(("options", "service", "words"), [
    ("useTicketCache=true", "", "sasl.kerberos.service.name must say, once, as which service"),
    ("useTicketCache=true serviceName=other", "kafka", "must say, once"),
    ("useKeyTab=true", "kafka", "useKeyTab=true of sasl.jaas.config needs keyTab and principal"),
    ("debug=true", "kafka", "names neither a keytab (useKeyTab=true"),
])  # fmt: skip
def test_a_login_that_kerberos_cannot_make_is_told_what_it_lacks(options: str, service: str, words: str) -> None:
    said = refusal("GSSAPI", f"{KERBEROS_MODULE} required {options};", sasl_kerberos_service_name=service)
    assert words in said


# Amazon MSK


@pytest.mark.parametrize(("mechanism", "module", "handler"), [
    ("AWS_MSK_IAM", MSK_MODULE, {"sasl.client.callback.handler.class": FROM_AWS_CLIENT}),
    ("OAUTHBEARER", OAUTH_MODULE, {HANDLER: FROM_AWS}),
])  # fmt: skip
def test_both_of_awss_ways_are_a_signed_token(mechanism: str, module: str, handler: dict[str, str]) -> None:
    assert credentials(mechanism, f"{module} required;", **handler) == settings.OAuth(settings.MskIam())
    options = 'awsProfileName="p" awsRoleArn="arn" awsRoleSessionName="s" awsStsRegion="eu-west-1" awsDebugCreds="true"'
    found = credentials(mechanism, f"{module} required {options};", **handler)
    assert found == settings.OAuth(settings.MskIam("eu-west-1", "p", "arn", "s"))
    assert "the option awsOther of sasl.jaas.config is not supported for MSK" in refusal(
        mechanism, f'{module} required awsOther="x";', **handler
    )


# What does not go together


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("GSSAPI", OAUTH_MODULE), ("OAUTHBEARER", KERBEROS_MODULE), ("AWS_MSK_IAM", OAUTH_MODULE), ("PLAIN", MSK_MODULE)],
)
def test_a_login_module_of_another_mechanism_is_named_with_the_right_one(mechanism: str, module: str) -> None:
    said = refusal(mechanism, f'{module} required password="pa55-x";')
    assert (
        f"the login module {module} of sasl.jaas.config is not supported with sasl.mechanism={mechanism}; use " in said
    )


def test_who_forgot_the_mechanism_is_told_the_one_that_fits_the_module() -> None:
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required username=a password=pa55-x;"
    with pytest.raises(InputError) as refused:
        client_settings({"security.protocol": "SASL_SSL", "sasl.jaas.config": login}, bootstrap_servers="b")
    said = str(refused.value)
    assert "with sasl.mechanism=GSSAPI, the default; use com.sun.security.auth.module.Krb5LoginModule, or set" in said
    assert said.endswith("sasl.mechanism to SCRAM-SHA-256 or SCRAM-SHA-512")


@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM"])
def test_an_unusable_login_is_refused_with_an_example(mechanism: str) -> None:
    said = refusal(mechanism, "password=pa55-x")
    assert "sasl.jaas.config must be one login module, for example " in said


@pytest.mark.parametrize("key", [HANDLER, "sasl.client.callback.handler.class"])
def test_a_class_that_would_find_a_password_elsewhere_is_refused(key: str) -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="pa55-x";'
    said = refusal("PLAIN", jaas, **{key: "com.example.Vault"})
    assert f"{key}=com.example.Vault is not supported with sasl.mechanism=PLAIN; remove it" in said


# Whatever stands there

OPTIONS = (
    *("username", "password", "clientId", "clientSecret", "scope", "extension_a", "unsecuredLoginStringClaim_sub"),
    *("unsecuredLoginNumberClaim_n", "unsecuredLoginListClaim_l", "unsecuredLoginLifetimeSeconds", "awsRoleArn"),
    *("unsecuredLoginPrincipalClaimName", "useKeyTab", "keyTab", "principal", "useTicketCache", "serviceName"),
    *("ssl.truststore.location", "ssl.truststore.certificates", "ssl.keystore.key", "ssl.keystore.certificate.chain"),
)
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "OAUTHBEARER": OAUTH_MODULE,
    "GSSAPI": KERBEROS_MODULE,
    "AWS_MSK_IAM": MSK_MODULE,
}
TEXTS = st.sampled_from(["true", "https://i.example/", "file:///a", "1", "alice", "|a|b"]) | st.text(max_size=8)
KEYS = [key.name for key in CLIENT_KEYS if key.use is Use.HEARD and key.name.startswith("sasl.")]


@given(
    st.sampled_from(sorted(MODULES)),
    st.dictionaries(st.sampled_from(OPTIONS), TEXTS),
    st.dictionaries(st.sampled_from(sorted({*KEYS} - {"sasl.mechanism", "sasl.jaas.config"})), TEXTS),
)
def test_any_login_is_credentials_or_an_error_without_secrets(
    mechanism: str, options: dict[str, str], properties: dict[str, str]
) -> None:
    options = options | {"clientSecret": "pa55-client", "password": "pa55-sasl"}
    quoted = {key: value.replace("\\", "\\\\").replace('"', '\\"') for key, value in options.items()}
    words = " ".join(f'{key}="{value}"' for key, value in quoted.items())
    jaas = f"{MODULES[mechanism]} required {words};"
    try:
        shown = repr(credentials(mechanism, jaas, **properties))
    except InputError as error:
        shown = str(error)
    assert "pa55" not in shown
