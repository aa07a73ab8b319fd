"""How each property of Kafka's AdminClient is treated here: heard, without effect, or refused. Pure.

The one table of it: the reader of properties warns and refuses by it, and docs/reference/client-properties.md is
written from it (`python scripts/client_properties_page.py`). Keys are those of Kafka 4.3.1 and 3.9.1.

A key is refused where ignoring it could make a connection weaker than was asked for; its default is accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Use(Enum):
    """What is done with a property."""

    HEARD = "heard"
    IGNORED = "no effect"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ClientKey:
    """One property: its default in Kafka, empty for none, and what it means here or why it is not heard."""

    name: str
    use: Use
    text: str
    default: str = ""


def _heard(name: str, text: str, default: str = "") -> ClientKey:
    return ClientKey(name, Use.HEARD, text, default)


def _ignored(names: str, text: str) -> tuple[ClientKey, ...]:
    return tuple(ClientKey(name, Use.IGNORED, text) for name in names.split())


def _refused(name: str, text: str, default: str = "") -> ClientKey:
    return ClientKey(name, Use.REFUSED, text, default)


_BROKERS_CHECK = "of brokers, which check tokens; a client passes them on"
_NO_BACKGROUND = "nothing is renewed in the background: a login that finds a token outdated renews it"
_TICKETS = "tickets are got at a login, by the system's library"
_METRICS = "the Java client's metrics; this one has none"
_POOL = "one connection per broker, kept while it works"
_JAVA_SECURITY = "names a part of Java; TLS is OpenSSL's here"

CLIENT_KEYS: tuple[ClientKey, ...] = (
    _heard("bootstrap.servers", "used where the command line gives no address"),
    _heard("bootstrap.controllers", "used where the command line gives no address"),
    _heard("client.id", "the name that brokers log; wins over the command's own"),
    _heard(
        "config.providers",
        "names of the providers of [values that are kept elsewhere](#values-that-are-kept-elsewhere)",
    ),
    _heard("default.api.timeout.ms", "limit of one call, retries included", "60000"),
    _heard("request.timeout.ms", "limit of one request to one broker", "30000"),
    _heard("retry.backoff.ms", "pause before a retry", "100"),
    _heard("socket.connection.setup.timeout.ms", "limit for opening a connection, the login included", "10000"),
    _heard("security.protocol", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL", "PLAINTEXT"),
    _heard("sasl.mechanism", "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI or AWS_MSK_IAM", "GSSAPI"),
    _heard("sasl.jaas.config", "one [login module](#logins) with its options"),
    _heard("sasl.client.callback.handler.class", "AWS's class with AWS_MSK_IAM, Kafka's own with OAUTHBEARER"),
    _heard("sasl.kerberos.service.name", "GSSAPI: as which service Kerberos knows the brokers"),
    _heard("sasl.login.callback.handler.class", "OAUTHBEARER: [where tokens come from](#oauthbearer)"),
    _heard(
        "sasl.login.connect.timeout.ms", "OAUTHBEARER: with the next, the limit of one request for a token", "10000"
    ),
    _heard("sasl.login.read.timeout.ms", "OAUTHBEARER: see `sasl.login.connect.timeout.ms`", "10000"),
    _heard("sasl.login.refresh.window.factor", "OAUTHBEARER: a token is renewed after so much of its lifetime", "0.8"),
    _heard("sasl.oauthbearer.assertion.algorithm", "of an [assertion](#assertions): RS256 or ES256", "RS256"),
    _heard("sasl.oauthbearer.assertion.claim.aud", "for whom an assertion is: the token endpoint"),
    _heard("sasl.oauthbearer.assertion.claim.exp.seconds", "for how long it is valid", "300"),
    _heard("sasl.oauthbearer.assertion.claim.iss", "who signs it"),
    _heard("sasl.oauthbearer.assertion.claim.jti.include", "whether each one has an id of its own", "false"),
    _heard("sasl.oauthbearer.assertion.claim.nbf.seconds", "how long before it is made it is valid", "60"),
    _heard("sasl.oauthbearer.assertion.claim.sub", "as whom a token is wanted"),
    _heard("sasl.oauthbearer.assertion.file", "an assertion that somebody else signs and renews; wins over the others"),
    _heard("sasl.oauthbearer.assertion.private.key.file", "the key that signs, in PKCS#8 form"),
    _heard("sasl.oauthbearer.assertion.private.key.passphrase", "of that key, if it is encrypted"),
    _heard("sasl.oauthbearer.assertion.template.file", "JSON with more of `header` and `payload`"),
    _heard("sasl.oauthbearer.client.credentials.client.id", "wins over `clientId` of `sasl.jaas.config`"),
    _heard("sasl.oauthbearer.client.credentials.client.secret", "wins over `clientSecret` of `sasl.jaas.config`"),
    _heard(
        "sasl.oauthbearer.header.urlencode", "id and secret are sent URL-encoded (RFC 6749, section 2.3.1)", "false"
    ),
    _heard(
        "sasl.oauthbearer.jwt.retriever.class",
        "`DefaultJwtRetriever`, `ClientCredentialsJwtRetriever`, `FileJwtRetriever`, `JwtBearerJwtRetriever`",
    ),
    _heard("sasl.oauthbearer.scope", "wins over `scope` of `sasl.jaas.config`"),
    _heard("sasl.oauthbearer.token.endpoint.url", "`https://…` where tokens are fetched, `file:///…` of a token"),
    _heard("ssl.enabled.protocols", "of TLSv1.2 and TLSv1.3; others are not offered", "TLSv1.2,TLSv1.3"),
    _heard("ssl.endpoint.identification.algorithm", "empty: host names in certificates are not checked", "https"),
    _heard("ssl.key.password", "password of the private key; defaults to the key store's"),
    _heard("ssl.keystore.certificate.chain", "certificate chain as PEM text; goes with `ssl.keystore.key`"),
    _heard("ssl.keystore.key", "private key as PEM text"),
    _heard("ssl.keystore.location", "file with this client's private key and certificate chain"),
    _heard("ssl.keystore.password", "password of that file; a PEM file has none"),
    _heard("ssl.keystore.type", "JKS or PKCS12, as Java either for both; or PEM", "JKS"),
    _heard("ssl.truststore.certificates", "certificates to trust, as PEM text"),
    _heard("ssl.truststore.location", "file with the certificates to trust; without one, what the system trusts"),
    _heard("ssl.truststore.password", "password of that file; a JKS file is read without one, but not checked"),
    _heard("ssl.truststore.type", "JKS or PKCS12, as Java either for both; or PEM", "JKS"),
    *_ignored("client.dns.lookup", "the addresses of a name are tried in turn"),
    *_ignored("connections.max.idle.ms reconnect.backoff.ms reconnect.backoff.max.ms", _POOL),
    *_ignored("receive.buffer.bytes send.buffer.bytes", "the system's sizes"),
    *_ignored("metadata.max.age.ms", "what is known of the cluster is dropped when a call fails"),
    *_ignored(
        "metadata.recovery.strategy metadata.recovery.rebootstrap.trigger.ms",
        "when no known broker answers, the bootstrap addresses are asked again",
    ),
    *_ignored("retries", "`default.api.timeout.ms` ends the retries"),
    *_ignored("retry.backoff.max.ms", "the pause stays `retry.backoff.ms`"),
    *_ignored("socket.connection.setup.timeout.max.ms", "the limit stays `socket.connection.setup.timeout.ms`"),
    *_ignored(
        "auto.include.jmx.reporter enable.metrics.push metric.reporters metrics.num.samples metrics.recording.level "
        "metrics.sample.window.ms",
        _METRICS,
    ),
    *_ignored(
        "sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.ticket.renew.jitter "
        "sasl.kerberos.ticket.renew.window.factor",
        _TICKETS,
    ),
    *_ignored(
        "sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.jitter",
        _NO_BACKGROUND,
    ),
    *_ignored(
        "sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms",
        "a login is tried again as the call that needs it",
    ),
    *_ignored(
        "sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer "
        "sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms "
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url "
        "sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name",
        _BROKERS_CHECK,
    ),
    *_ignored("security.providers", _JAVA_SECURITY),
    *_ignored("ssl.protocol", "`ssl.enabled.protocols` decides"),
    _refused("sasl.login.class", "a class of Java"),
    _refused("ssl.cipher.suites", "Java's names of ciphers; OpenSSL's safe ones are offered"),
    _refused("ssl.engine.factory.class", "a class of Java"),
    _refused("ssl.keymanager.algorithm", _JAVA_SECURITY, "SunX509"),
    _refused("ssl.provider", _JAVA_SECURITY),
    _refused("ssl.secure.random.implementation", _JAVA_SECURITY),
    _refused("ssl.trustmanager.algorithm", _JAVA_SECURITY, "PKIX"),
)
