"""Addresses over HTTP: which are of this machine, and which are taken from people. Pure.

A listener on loopback answers this machine without a token. A proxy on it may stand for anybody, so that what one
forwards counts as a request from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

from kreassign.errors import InputError
from kreassign.model.text import LARGEST_PORT, parse_whole, port_mistake, shortened

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
"""Names of this machine, as parts of an address."""

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
"""Names of this machine in a header Host."""

_ON_THE_WAY = ("x-forwarded", "x-real-", "x-original-", "x-client-", "x-cluster-client-", "x-envoy-", "x-amzn-", "cf-")
"""Beginnings of the names of headers that proxies and load balancers add."""

_BY_A_PROXY = frozenset({"forwarded", "via", "true-client-ip", "client-ip", "proxy-authorization", "max-forwards"})
"""Headers of RFC 7239 and RFC 9110, and of content networks, that only a proxy adds."""

_OLD_VERSIONS = frozenset({"0.9", "1.0"})
"""Versions of HTTP that no browser speaks, and no client of programs unasked: nginx does to what it forwards to."""

FORWARDED = "this came by way of a proxy, so that others than this machine may read it"


def is_forwarded(headers: Iterable[str], hosts: Iterable[str], version: str) -> bool:
    """True unless a request came from this machine itself, by the names of its headers, its hosts and its version.

    Any sign of a proxy counts.
    """
    if version.rpartition("/")[2] in _OLD_VERSIONS:
        return True
    if any(name in _BY_A_PROXY or name.startswith(_ON_THE_WAY) for name in map(str.lower, headers)):
        return True
    return any(name_of_host(host) not in LOCAL_NAMES for host in hosts)


def name_of_host(host: str) -> str:
    """The name in a header Host, without its port."""
    # An IPv6 address contains colons, within brackets.
    name, colon, port = host.lower().rpartition(":")
    return name if colon and _is_port(port) else host.lower()


def _is_port(text: str) -> bool:
    try:
        return parse_whole(text, most=LARGEST_PORT) >= 0
    except ValueError:
        return False


def http_address(text: str, owner: str, *, example: str, login: str, takes_query: bool = False) -> SplitResult:
    """Parts of an address that is asked or told over HTTP. Raises InputError naming its `owner`, and no secret in it.

    `login` says what stands in place of a user and a password, which an address does not take.
    """
    refusal = InputError(
        f"{shortened(text)!r} is no address of {owner}{port_mistake(text)}; write for example {example}"
    )
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:  # brackets that hold no address, or a port that is none
        raise refusal from None
    is_plain = text.isascii() and text.isprintable() and " " not in text
    is_whole = takes_query or not (parts.query or parts.fragment)
    if not host or port == 0 or parts.scheme not in {"http", "https"} or not is_plain or not is_whole:
        raise refusal
    if parts.username is not None or parts.password is not None:
        raise InputError(f"the address of {owner} takes no user and password; {login}")
    return parts


def is_readable(parts: SplitResult) -> bool:
    """True if others can read on the way to this address: without TLS, and not on this machine."""
    return parts.scheme == "http" and parts.hostname not in LOCAL_HOSTS
