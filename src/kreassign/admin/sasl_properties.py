"""Client properties `sasl.…` → credentials: the login, and the source of tokens and tickets.

Java classes are accepted by name if this client does the same: the class that fetches a token decides where it comes
from (KIP-768). Other classes are refused. `sasl.jaas.config` is read as Java reads it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from kreassign.admin import settings
from kreassign.admin.tls import tls_settings
from kreassign.errors import InputError
from kreassign.model.text import parse_whole, port_mistake, shortened

# Parse `sasl.jaas.config`: one login module with its options.

# Words may be quoted by either quote; a backslash escapes the next character.
_WORD = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s"'=;]+)"""
_OPTION = rf"{_WORD}\s*=\s*{_WORD}"
_LOGIN = re.compile(rf"\s*(?P<module>[\w.$]+)\s+\w+(?P<options>(?:\s+{_OPTION})*)\s*;?\s*", re.DOTALL)


class LoginModule(NamedTuple):
    """The class of the module and its options, which may be secrets."""

    class_name: str
    options: Mapping[str, str]

    @property
    def name(self) -> str:
        """The class name without its package."""
        return self.class_name.rpartition(".")[2]


def login_module(text: str) -> LoginModule | None:
    """The single login module of a JAAS configuration, `module control-flag key="value" ...;`; None if malformed."""
    login = _LOGIN.fullmatch(text)
    if login is None:
        return None
    pairs = re.findall(rf"({_WORD})\s*=\s*({_WORD})", login["options"], re.DOTALL)
    return LoginModule(login["module"], {_unquoted_option(key): _unquoted_option(value) for key, value in pairs})


def _unquoted_option(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1], flags=re.DOTALL) if word[0] in "\"'" else word


# Convert properties to credentials.

_LOGIN_HANDLER, _CLIENT_HANDLER = "sasl.login.callback.handler.class", "sasl.client.callback.handler.class"
_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
_CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
_ENDPOINT_URL = "sasl.oauthbearer.token.endpoint.url"
_SECURITY = "org.apache.kafka.common.security."
_OAUTH = f"{_SECURITY}oauthbearer."
_MSK = "software.amazon.msk.auth.iam."
FROM_ENDPOINT = (f"{_OAUTH}OAuthBearerLoginCallbackHandler", f"{_OAUTH}secured.OAuthBearerLoginCallbackHandler")
"""Kafka's class that fetches tokens: its name since 3.4, and the older name."""
UNSECURED = f"{_OAUTH}internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
FROM_AWS = f"{_MSK}IAMOAuthBearerLoginCallbackHandler"
_BY_ASSERTION = f"{_OAUTH}JwtBearerJwtRetriever"
_RETRIEVERS = (*(f"{_OAUTH}{name}JwtRetriever" for name in ("Default", "ClientCredentials", "File")), _BY_ASSERTION)
_ASSERTION = "sasl.oauthbearer.assertion."
_ASSERTION_ALGORITHMS = ("RS256", "ES256")
_REFRESH_FACTOR = "sasl.login.refresh.window.factor"
# Kafka's rules for extensions (KIP-342).
_EXTENSION_NAME, _EXTENSION_VALUE = re.compile("[A-Za-z]+"), re.compile("[\x21-\x7e \t\r\n]+")
_EXAMPLES = {
    "PlainLoginModule": f'{_SECURITY}plain.PlainLoginModule required username="alice" password="...";',
    "ScramLoginModule": f'{_SECURITY}scram.ScramLoginModule required username="alice" password="...";',
    "OAuthBearerLoginModule": f'{_OAUTH}OAuthBearerLoginModule required clientId="..." clientSecret="...";',
    "Krb5LoginModule": "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true "
    'keyTab="/etc/kafka/alice.keytab" principal="alice@EXAMPLE.COM";',
    "IAMLoginModule": f"{_MSK}IAMLoginModule required;",
}

_Reader = Callable[[str, LoginModule, Mapping[str, str]], settings.Credentials]


def credentials(properties: Mapping[str, str]) -> settings.Credentials:
    """Credentials from properties. Raises InputError, which names the property and shows no secret."""
    mechanism = properties.get("sasl.mechanism", "GSSAPI")
    if mechanism not in _MECHANISMS:
        raise InputError(f"sasl.mechanism={mechanism} is not supported; use one of {', '.join(_MECHANISMS)}")
    module, read = _MECHANISMS[mechanism]
    login = login_module(properties.get("sasl.jaas.config", ""))
    if login is not None and login.name not in (module, *(_PASSWORDS if module in _PASSWORDS else ())):
        # Without `sasl.mechanism`, Kafka's default applies, which is Kerberos.
        suited = " or ".join(name for name, (known, _) in _MECHANISMS.items() if known == login.name)
        raise InputError(
            f"the login module {login.class_name} of sasl.jaas.config is not supported with "
            f"sasl.mechanism={mechanism}{'' if 'sasl.mechanism' in properties else ', the default'}; use "
            f"{_EXAMPLES[module].split()[0]}{f', or set sasl.mechanism to {suited}' if suited else ''}"
        )
    if login is None:
        # The text may hold a password: show the expected form, not the text.
        what = " with username and password" if module in _PASSWORDS else ""
        others = ", ".join(name for name in _MECHANISMS if name != mechanism)
        default = f" That is for {mechanism}, the default of sasl.mechanism; set it for {others}"
        raise InputError(
            f"sasl.jaas.config must be one login module{what}, for example {_EXAMPLES[module]}"
            f"{'' if 'sasl.mechanism' in properties else default}"
        )
    return read(mechanism, login, properties)


def _no_handlers(properties: Mapping[str, str], mechanism: str) -> None:
    for key in (_LOGIN_HANDLER, _CLIENT_HANDLER):
        _class(properties, key, (), mechanism)


def _class(properties: Mapping[str, str], key: str, known: tuple[str, ...], mechanism: str) -> str:
    """The class that a property names, empty if unset. Raises InputError for a class not in `known`."""
    name = properties.get(key, "").strip()
    if name and name not in known:
        instead = f"use one of {', '.join(known)}" if known else "remove it"
        raise InputError(f"{key}={shortened(name)} is not supported with sasl.mechanism={mechanism}; {instead}")
    return name


# --- PLAIN and SCRAM --------------------------------------------------------------------------------------------


def _password(mechanism: str, login: LoginModule, properties: Mapping[str, str]) -> settings.Sasl:
    _no_handlers(properties, mechanism)
    if "username" not in login.options or "password" not in login.options:
        example = _EXAMPLES[_MECHANISMS[mechanism][0]]
        raise InputError(f"sasl.jaas.config must be one login module with username and password, for example {example}")
    return settings.Sasl(mechanism, login.options["username"], settings.Secret(login.options["password"]))


# --- OAUTHBEARER ------------------------------------------------------------------------------------------------


def _oauth(mechanism: str, login: LoginModule, properties: Mapping[str, str]) -> settings.OAuth:
    handler = _class(properties, _LOGIN_HANDLER, (*FROM_ENDPOINT, UNSECURED, FROM_AWS), mechanism)
    _class(properties, _CLIENT_HANDLER, (f"{_OAUTH}internals.OAuthBearerSaslClientCallbackHandler",), mechanism)
    prefix = "extension_"
    tokens: settings.Tokens
    if handler == FROM_AWS:
        tokens = _msk(login)
    elif handler in FROM_ENDPOINT or (not handler and properties.get(_ENDPOINT_URL)):
        tokens = _fetched(login, properties)
    else:
        prefix = "unsecuredLoginExtension_"
        tokens = _unsecured(login)
    return settings.OAuth(tokens, _extensions(login, prefix), _refresh_factor(properties))


def _refresh_factor(properties: Mapping[str, str]) -> float:
    text = properties.get(_REFRESH_FACTOR, "0.8").strip()
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0.5 <= factor <= 1.0:
        raise InputError(f"{_REFRESH_FACTOR}={shortened(text)} is not a number from 0.5 to 1.0")
    return factor


def _extensions(login: LoginModule, prefix: str) -> tuple[tuple[str, str], ...]:
    found = {key.removeprefix(prefix): value for key, value in login.options.items() if key.startswith(prefix)}
    for name, value in found.items():
        if name == "auth" or not _EXTENSION_NAME.fullmatch(name) or not _EXTENSION_VALUE.fullmatch(value):
            raise InputError(
                f"{prefix}{shortened(name)} of sasl.jaas.config is no SASL extension: a name is letters, a value "
                "printable ASCII"
            )
    return tuple(found.items())


def _fetched(login: LoginModule, properties: Mapping[str, str]) -> settings.TokenEndpoint | settings.TokenFile:
    retriever = _class(properties, _RETRIEVER, _RETRIEVERS, "OAUTHBEARER")
    url = properties.get(_ENDPOINT_URL, "").strip()
    parts = _split(url)
    if parts.scheme == "file" and retriever != _BY_ASSERTION:
        return settings.TokenFile(unquote(parts.path))
    if parts.scheme == "file":
        raise InputError(f"{_RETRIEVER}={_BY_ASSERTION} asks a server: {_ENDPOINT_URL} must be https://HOST/PATH")
    return settings.TokenEndpoint(
        url,
        settings.JwtBearer(_assertion(properties))
        if retriever == _BY_ASSERTION
        else _client_credentials(login, properties),
        properties.get("sasl.oauthbearer.scope", login.options.get("scope", "")).strip() or None,
        # Like Java, configure TLS to the endpoint beside the secret, not by the brokers' stores.
        tls=tls_settings({key: value for key, value in login.options.items() if key.startswith("ssl.")}),
        timeout_ms=_timeout_ms(properties),
    )


def _client_credentials(login: LoginModule, properties: Mapping[str, str]) -> settings.Grant:
    """Choose like Kafka 4.3: the assertion file, else a self-signed assertion if an issuer is set, else the secret."""
    if any(properties.get(f"{_ASSERTION}{key}", "").strip() for key in ("file", "claim.iss")):
        named = properties.get(_CLIENT_ID) or login.options.get("clientId", "")
        return settings.ClientAssertion(_assertion(properties), named.strip() or None)
    return settings.ClientSecret(
        _option(login, "clientId", properties, _CLIENT_ID),
        settings.Secret(
            _option(login, "clientSecret", properties, "sasl.oauthbearer.client.credentials.client.secret")
        ),
        is_url_encoded=properties.get("sasl.oauthbearer.header.urlencode", "false").strip().lower() == "true",
    )


def _assertion(properties: Mapping[str, str]) -> settings.AssertionFile | settings.SignedAssertion:
    """The assertion of `sasl.oauthbearer.assertion.…` (KIP-1139). A set file disables the other keys, as in Java."""
    given = {key.removeprefix(_ASSERTION): value.strip() for key, value in properties.items() if value.strip()}
    if path := given.get("file"):
        return settings.AssertionFile(_path(path))
    algorithm = next((one for one in _ASSERTION_ALGORITHMS if one == given.get("algorithm", "RS256").upper()), None)
    if algorithm is None:
        raise InputError(
            f"{_ASSERTION}algorithm={shortened(given['algorithm'])} is not one of {', '.join(_ASSERTION_ALGORITHMS)}"
        )
    if "private.key.file" not in given:
        raise InputError(
            f"an assertion needs {_ASSERTION}file, which somebody else renews, or {_ASSERTION}private.key.file to "
            "sign one"
        )
    passphrase, template = given.get("private.key.passphrase"), given.get("template.file")
    return settings.SignedAssertion(
        _path(given["private.key.file"]),
        tuple((name, given[f"claim.{name}"]) for name in ("aud", "iss", "sub") if f"claim.{name}" in given),
        algorithm,
        None if passphrase is None else settings.Secret(passphrase),
        None if template is None else _path(template),
        valid_s=whole_number(f"{_ASSERTION}claim.exp.seconds", given.get("claim.exp.seconds", "300"), "seconds"),
        valid_before_s=whole_number(f"{_ASSERTION}claim.nbf.seconds", given.get("claim.nbf.seconds", "60"), "seconds"),
        has_id=given.get("claim.jti.include", "false").lower() == "true",
    )


def whole_number(key: str, text: str, unit: str, *, least: int = 0) -> int:
    """The value of a property as a number. Raises InputError, which names the property."""
    try:
        return parse_whole(text, least=least)
    except ValueError as error:
        raise InputError(f"{key}={shortened(text)} is not a number of {unit}: {error}") from None


def _split(url: str) -> SplitResult:
    if not url:
        raise InputError(
            f"{_ENDPOINT_URL} is missing: the address where tokens are fetched, or file:///PATH of a token"
        )
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in ("http", "https", "file") and (parts.port is None or parts.port > 0)
    except ValueError:
        is_right = False
    if not is_right or not url.isascii() or not url.isprintable() or " " in url:
        raise InputError(
            f"{_ENDPOINT_URL} is not an address{port_mistake(url)}; write https://HOST/PATH, or file:///PATH"
        )
    if "@" in parts.netloc or parts.fragment:
        raise InputError(f"{_ENDPOINT_URL} has a name, password or fragment; credentials belong to sasl.jaas.config")
    if parts.scheme == "file" and (
        parts.netloc not in ("", "localhost") or not PurePosixPath(parts.path).is_absolute()
    ):
        raise InputError(f"{_ENDPOINT_URL} must name a file of this machine: file:///PATH")
    if parts.scheme != "file" and not parts.hostname:
        raise InputError(f"{_ENDPOINT_URL} names no host; write https://HOST/PATH")
    return parts


def _option(login: LoginModule, name: str, properties: Mapping[str, str], key: str) -> str:
    value = (properties.get(key) or login.options.get(name, "")).strip()
    if not value:
        raise InputError(f"OAUTHBEARER with {_ENDPOINT_URL} needs {name} in sasl.jaas.config, or {key}")
    return value


def _timeout_ms(properties: Mapping[str, str]) -> int:
    keys = ("sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms")
    return sum(whole_number(key, properties.get(key, "10000").strip(), "milliseconds", least=1) for key in keys)


_CLAIM = re.compile("unsecuredLogin(String|Number|List)Claim_(.+)", re.DOTALL)


def _unsecured(login: LoginModule) -> settings.UnsecuredToken:
    """An unsigned token: Kafka's default, for tests against brokers that accept any token."""
    options = login.options
    claims: dict[str, str | float | tuple[str, ...]] = {}
    option = ""
    try:
        for option, value in options.items():
            if (found := _CLAIM.fullmatch(option)) is not None:
                claims[found[2]] = _claim(found[1], value)
        option = "unsecuredLoginLifetimeSeconds"
        lifetime_s = parse_whole(options.get(option, "3600"), least=1)
    except ValueError:
        raise InputError(f"{shortened(option)} of sasl.jaas.config is not a number") from None
    principal = options.get("unsecuredLoginPrincipalClaimName", "").strip() or "sub"
    if {"iat", "exp"} & claims.keys() or not claims.get(principal):
        raise InputError(
            f"sasl.jaas.config says neither where a token comes from ({_LOGIN_HANDLER}={FROM_ENDPOINT[0]} and "
            f'{_ENDPOINT_URL}) nor who we are: unsecuredLoginStringClaim_{shortened(principal)}="alice" is missing, or '
            "sets iat or exp"
        )
    return settings.UnsecuredToken(tuple(claims.items()), lifetime_s)


def _claim(kind: str, text: str) -> str | float | tuple[str, ...]:
    if kind == "String":
        return text
    if kind == "Number":
        number = float(text)
        if not math.isfinite(number):
            raise ValueError("it is not finite")
        return number
    return tuple(text[1:].split(text[0])) if len(text) > 1 else ()


# --- AWS --------------------------------------------------------------------------------------------------------


def _msk_iam(mechanism: str, login: LoginModule, properties: Mapping[str, str]) -> settings.OAuth:
    """Tokens for AWS_MSK_IAM of AWS's Java library; MSK brokers take the same signature as a bearer token."""
    _class(properties, _CLIENT_HANDLER, (f"{_MSK}IAMClientCallbackHandler",), mechanism)
    _class(properties, _LOGIN_HANDLER, (), mechanism)
    return settings.OAuth(_msk(login))


_MSK_OPTIONS = {"awsProfileName", "awsRoleArn", "awsRoleSessionName", "awsStsRegion"}
# These tune Java or add debug output, which would log a secret.
_MSK_IGNORED = {"awsDebugCreds", "awsMaxRetries", "awsMaxBackOffTimeMs"}


def _msk(login: LoginModule) -> settings.MskIam:
    options = login.options
    if unknown := sorted(options.keys() - _MSK_OPTIONS - _MSK_IGNORED):
        raise InputError(
            f"the option {shortened(unknown[0])} of sasl.jaas.config is not supported for MSK; "
            f"supported: {', '.join(sorted(_MSK_OPTIONS))}"
        )
    return settings.MskIam(
        region=options.get("awsStsRegion"),
        profile=options.get("awsProfileName"),
        role_arn=options.get("awsRoleArn"),
        role_session_name=options.get("awsRoleSessionName"),
    )


# --- GSSAPI -----------------------------------------------------------------------------------------------------


def _kerberos(mechanism: str, login: LoginModule, properties: Mapping[str, str]) -> settings.Kerberos:
    _no_handlers(properties, mechanism)
    options = login.options
    services = {properties.get("sasl.kerberos.service.name"), options.get("serviceName")} - {None, ""}
    if len(services) != 1:
        raise InputError(
            "sasl.kerberos.service.name must say, once, as which service Kerberos knows the brokers: most often kafka"
        )
    principal, keytab = options.get("principal"), options.get("keyTab")
    if _is_true(options, "useKeyTab"):
        if not principal or not keytab:
            raise InputError("useKeyTab=true of sasl.jaas.config needs keyTab and principal")
        return settings.Kerberos(str(services.pop()), principal, _path(keytab))
    if _is_true(options, "useTicketCache"):
        cache = options.get("ticketCache")
        return settings.Kerberos(str(services.pop()), principal, ticket_cache=_path(cache) if cache else None)
    raise InputError(
        "sasl.jaas.config names neither a keytab (useKeyTab=true keyTab=... principal=...) nor the tickets of kinit "
        "(useTicketCache=true); a password is not asked for"
    )


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false").strip().lower() == "true"


def _path(text: str) -> str:
    """A file path as Java accepts it, with or without `file:`."""
    return re.sub(r"(?i)^file:(//(?=/))?", "", text)


_PASSWORDS = ("PlainLoginModule", "ScramLoginModule")
_MECHANISMS: Mapping[str, tuple[str, _Reader]] = {
    "PLAIN": ("PlainLoginModule", _password),
    "SCRAM-SHA-256": ("ScramLoginModule", _password),
    "SCRAM-SHA-512": ("ScramLoginModule", _password),
    "OAUTHBEARER": ("OAuthBearerLoginModule", _oauth),
    "GSSAPI": ("Krb5LoginModule", _kerberos),
    "AWS_MSK_IAM": ("IAMLoginModule", _msk_iam),
}
