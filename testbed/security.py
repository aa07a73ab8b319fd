"""Users, passwords and permissions of a secure cluster, for its brokers and for its clients."""

from __future__ import annotations

from pathlib import Path

from testbed import tokens
from testbed.certificates import Certificates
from testbed.spec import Listener

# `admin` may do everything, `alice` nothing until an ACL allows it.
USERS = {"admin": "admin-secret", "alice": "alice-secret"}
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
OAUTH_MODULE = f"{_OAUTH}.OAuthBearerLoginModule"


def authorizer_settings() -> dict[str, str]:
    """The standard authorizer, on brokers and controllers alike.

    Nodes talk to each other without credentials, as ANONYMOUS; so ANONYMOUS must be a super user, and with it every
    client of the PLAINTEXT listener.
    """
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        "super.users": "User:ANONYMOUS;User:admin",
    }


def broker_security_settings(certificates: Certificates, token_keys: Path) -> dict[str, str]:
    """SASL and TLS listeners of a broker. SSL wants a client certificate, whose common name is the user.

    Bearer tokens are believed unsigned by SASL_PLAINTEXT, if they have the scope, and signed by SASL_SSL.
    """
    accounts = " ".join(f'user_{user}="{password}"' for user, password in USERS.items())
    settings = {
        **authorizer_settings(),
        "sasl.enabled.mechanisms": ",".join(("PLAIN", "OAUTHBEARER", *SCRAM_MECHANISMS)),
        "sasl.oauthbearer.jwks.endpoint.url": token_keys.as_uri(),
        "sasl.oauthbearer.expected.audience": tokens.AUDIENCE,
        "sasl.oauthbearer.expected.issuer": tokens.ISSUER,
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
            f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="broker" '
            f'unsecuredValidatorRequiredScope="{tokens.SCOPE}";'
        ),
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} required;",
        "listener.name.sasl_ssl.oauthbearer.sasl.server.callback.handler.class": (
            f"{_OAUTH}.OAuthBearerValidatorCallbackHandler"
        ),
        **_pem_stores(certificates.trust_store, certificates.broker_key_store),
        "ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/,DEFAULT",
        "listener.name.ssl.ssl.client.auth": "required",
        # So that a test can give a broker another certificate.
        "ssl.allow.dn.changes": "true",
        "ssl.allow.san.changes": "true",
    }
    for listener in (Listener.SASL_PLAINTEXT, Listener.SASL_SSL):
        prefix = f"listener.name.{listener.lower()}"
        settings[f"{prefix}.plain.sasl.jaas.config"] = f"{_PLAIN_MODULE} required {accounts};"
        for mechanism in SCRAM_MECHANISMS:
            settings[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = f"{_SCRAM_MODULE} required;"
    return settings


def java_flags(token_keys: Path) -> tuple[str, ...]:
    """Java flags of a broker since Kafka 4.0: where it may read keys from."""
    names = ("urls", "files")
    places = (token_keys.as_uri(), str(token_keys))
    return tuple(
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.{name}={place}" for name, place in zip(names, places, strict=True)
    )


def scram_credentials() -> tuple[str, ...]:
    """Every user's SCRAM credentials as values of the option --add-scram of Kafka's storage tool."""
    return tuple(
        f"{mechanism}=[name={user},password={password}]"
        for mechanism in SCRAM_MECHANISMS
        for user, password in USERS.items()
    )


def client_properties(
    listener: Listener,
    certificates: Certificates | None,
    *,
    user: str = "admin",
    password: str | None = None,
    mechanism: str = "PLAIN",
) -> dict[str, str]:
    """Client properties (Java) for a login by a listener; the password defaults to the right one."""
    settings = {"security.protocol": str(listener)}
    if listener.startswith("SASL"):
        module = _PLAIN_MODULE if mechanism == "PLAIN" else _SCRAM_MODULE
        secret = USERS[user] if password is None else password
        settings["sasl.mechanism"] = mechanism
        settings["sasl.jaas.config"] = f'{module} required username="{user}" password="{secret}";'
    if listener.endswith("SSL") and certificates is not None:
        key_store = certificates.user_key_store(user) if listener is Listener.SSL else None
        settings |= _pem_stores(certificates.trust_store, key_store)
    return settings


def _pem_stores(trust_store: Path, key_store: Path | None) -> dict[str, str]:
    settings = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trust_store)}
    if key_store is not None:
        settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(key_store)}
    return settings
