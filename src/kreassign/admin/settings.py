"""Settings of a client: addresses, security and credentials."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, NamedTuple

from kreassign.errors import InputError
from kreassign.model.text import LARGEST_ID, LARGEST_PORT, parse_whole, port_mistake, shortened

KAFKA_PORT = 9092
LONGEST_HOST = 253
_NO_HOST = re.compile(r"[\s/;]|^[0-9]*$")
_SCHEME = re.compile(r"^[0-9A-Za-z_.%+-]+://")  # the name of a listener may begin with a digit
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
"""By Kafka's names, oldest first."""


class Address(NamedTuple):
    """A host and port, as `host:port` or `[v6 address]:port`."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read one address; a missing port is Kafka's 9092, and a scheme (`SASL_SSL://`) is ignored, as by Kafka."""
        address = _SCHEME.sub("", text.strip())
        host, colon, port = address.rpartition(":")
        if not colon or host.endswith(":") or port.endswith("]"):
            host, port = address, str(KAFKA_PORT)
        host = host.removeprefix("[").removesuffix("]")
        try:
            return cls(_host(host), parse_whole(port, least=1, most=LARGEST_PORT))
        except ValueError:
            form = "write host:port, for example broker-1:9092, several with commas"
            raise InputError(f"{shortened(text)!r} is not an address{port_mistake(text)}; {form}") from None

    @classmethod
    def parse_list(cls, text: str) -> tuple[Address, ...]:
        """Read a comma-separated list of at least one address."""
        addresses = tuple(cls.parse(part) for part in text.split(",") if part.strip())
        if not addresses:
            raise InputError("no bootstrap address is given; write host:port, several separated by commas")
        return addresses

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _host(text: str) -> str:
    """Return the text. Raises ValueError if it cannot be a host name, as a port alone."""
    if len(text) > LONGEST_HOST or not text.isprintable() or _NO_HOST.search(text):
        raise ValueError(text)
    return text


class SecurityProtocol(Enum):
    """Kafka's four kinds of listener."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def uses_tls(self) -> bool:
        """True if the connection is encrypted."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def uses_sasl(self) -> bool:
        """True if the client logs in by SASL."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class Secret:
    """A password that no log, error or repr shows; call `reveal()` only where the password is used."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The password itself."""
        return self._value

    def __repr__(self) -> str:
        return "[hidden]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificates that TLS trusts and presents, as PEM text.

    With `trusted_certificates` None the system's are trusted. `certificate_chain` and `private_key` are given
    together when brokers ask clients for a certificate. `versions` are some of `TLS_VERSIONS`, in that order.
    """

    trusted_certificates: str | None = None
    certificate_chain: str | None = None
    private_key: Secret | None = None
    key_password: Secret | None = None
    verifies_host_name: bool = True
    versions: tuple[str, ...] = TLS_VERSIONS


@dataclass(frozen=True, slots=True)
class Sasl:
    """SASL credentials: mechanism PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."""

    mechanism: str
    username: str
    password: Secret


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """A client id and secret (RFC 6749, section 4.4); `is_url_encoded` encodes both once more (section 2.3.1)."""

    client_id: str
    secret: Secret
    is_url_encoded: bool = False

    def __str__(self) -> str:
        return "the client secret"


@dataclass(frozen=True, slots=True)
class AssertionFile:
    """A file with an assertion that another program signs and renews; read at each request."""

    path: str


@dataclass(frozen=True, slots=True)
class SignedAssertion:
    """An assertion signed for each request with the key of a file, with `claims` and those of a template.

    Valid from `valid_before_s` seconds before it is made until `valid_s` after, with a `jti` of its own if it
    `has_id`. `algorithm` is RS256 or ES256.
    """

    key_file: str
    claims: tuple[tuple[str, str], ...] = ()
    algorithm: str = "RS256"
    passphrase: Secret | None = None
    template_file: str | None = None
    valid_s: int = 300
    valid_before_s: int = 60
    has_id: bool = False


@dataclass(frozen=True, slots=True)
class ClientAssertion:
    """An assertion, and optionally a client id, for the client credentials grant (RFC 7523, section 2.2)."""

    assertion: AssertionFile | SignedAssertion
    client_id: str | None = None

    def __str__(self) -> str:
        return "the assertion"


@dataclass(frozen=True, slots=True)
class JwtBearer:
    """An assertion as the grant itself (RFC 7523, section 2.1; KIP-1139)."""

    assertion: AssertionFile | SignedAssertion

    def __str__(self) -> str:
        return "the assertion"


Grant = ClientSecret | ClientAssertion | JwtBearer
"""The grant by which a token endpoint is asked for a token."""


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """The endpoint that tokens are fetched from, and its grant. `timeout_ms` limits one request."""

    url: str = field(repr=False)  # The query may hold a key.
    grant: Grant
    scope: str | None = None
    tls: Tls = Tls()
    timeout_ms: int = 20_000

    def __str__(self) -> str:
        # Without the query, which may hold a key.
        return f"the token endpoint {self.url.partition('?')[0]}"


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file with a token that another program renews; read again at each login."""

    path: str

    def __str__(self) -> str:
        return f"the token file {self.path}"


@dataclass(frozen=True, slots=True)
class UnsecuredToken:
    """An unsigned token, for brokers that accept any; made again at each login."""

    claims: tuple[tuple[str, str | float | tuple[str, ...]], ...]
    lifetime_s: int = 3600

    def __str__(self) -> str:
        return "the unsecured token"


@dataclass(frozen=True, slots=True)
class MskIam:
    """An AWS signature as the token, for Amazon MSK; None takes AWS's default chain."""

    region: str | None = None
    profile: str | None = None
    role_arn: str | None = None
    role_session_name: str | None = None

    def __str__(self) -> str:
        return "the signature of AWS"


Tokens = TokenEndpoint | TokenFile | UnsecuredToken | MskIam
"""A source of bearer tokens."""


@dataclass(frozen=True, slots=True)
class OAuth:
    """Mechanism OAUTHBEARER: tokens with SASL extensions (KIP-342).

    A token is renewed after the fraction `refresh_factor` (0.5 to 1) of its lifetime.
    """

    tokens: Tokens
    extensions: tuple[tuple[str, str], ...] = ()
    refresh_factor: float = 0.8
    mechanism: ClassVar[str] = "OAUTHBEARER"


@dataclass(frozen=True, slots=True)
class Kerberos:
    """Mechanism GSSAPI: the brokers' service name, and our principal with its keytab, or the tickets of kinit."""

    service_name: str
    principal: str | None = None
    keytab: str | None = None
    ticket_cache: str | None = None
    mechanism: ClassVar[str] = "GSSAPI"


Credentials = Sasl | OAuth | Kerberos
"""Credentials of any SASL mechanism."""


def check_timeout(name: str, timeout_ms: float) -> None:
    """Raise InputError for a timeout that Kafka's signed 32 bits do not hold; a negative one is over at once."""
    if not timeout_ms <= LARGEST_ID:  # NaN is neither more nor less
        raise InputError(f"{name} is {timeout_ms}, and it must be at most {LARGEST_ID} (24 days)")


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Addresses, security and timeouts of an `AdminClient`.

    Exactly one of `bootstrap_servers` and `bootstrap_controllers` is given; with the latter every call goes to the
    controller quorum (Kafka 4.0 and later) and what needs brokers is refused.
    """

    bootstrap_servers: tuple[Address, ...] = ()
    bootstrap_controllers: tuple[Address, ...] = ()
    client_id: str = "kreassign"
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    sasl: Credentials | None = None
    tls: Tls = Tls()
    request_timeout_ms: int = 30_000
    api_timeout_ms: int = 60_000
    connect_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100

    def __post_init__(self) -> None:
        for name in ("request_timeout_ms", "api_timeout_ms", "connect_timeout_ms", "retry_backoff_ms"):
            check_timeout(name, getattr(self, name))
        if bool(self.bootstrap_servers) == bool(self.bootstrap_controllers):
            raise InputError("specify addresses of brokers or of controllers: exactly one of the two")
        if self.security_protocol.uses_sasl and self.sasl is None:
            raise InputError(
                f"security.protocol={self.security_protocol.value} needs credentials: "
                "set sasl.mechanism and sasl.jaas.config"
            )

    @property
    def bootstrap(self) -> tuple[Address, ...]:
        """The addresses to connect to first."""
        return self.bootstrap_servers or self.bootstrap_controllers
