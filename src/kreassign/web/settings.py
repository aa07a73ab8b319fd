"""How the page is served: where, to whom, and what it allows. What is not safe is refused before anything is served."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path

from kreassign.errors import InputError
from kreassign.operations.cluster_names import NamedCluster

DEFAULT_PORT = 8085
SHORTEST_TOKEN = 24
"""Characters: of a token that is random, more than anybody can try."""

_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Token:
    """The token of the page. Only its hash is kept, and compared in constant time; nothing shows it."""

    __slots__ = ("_digest",)

    def __init__(self, text: str) -> None:
        if len(text) < SHORTEST_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
            raise InputError(
                f"a token has at least {SHORTEST_TOKEN} characters of ASCII without spaces; make one with "
                "`openssl rand -hex 32`"
            )
        self._digest = sha256(text.encode()).digest()

    def matches(self, text: str | None) -> bool:
        """Whether this is the token."""
        given = sha256((text or "").encode(errors="surrogatepass")).digest()
        return hmac.compare_digest(given, self._digest)

    def __repr__(self) -> str:
        return "[hidden]"


@dataclass(frozen=True, slots=True)
class Tls:
    """The files of a certificate, with its chain, and of its private key, both PEM."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class WebSettings:
    """What is served where. Raises InputError for what would let others in.

    `names` are host names by which browsers may ask besides those of this machine: all others are refused, because a
    page of somebody else could have led a browser here by one (DNS rebinding). `plans` is a directory of plans, `data`
    one of tables, for reports. `clusters` are those that have names.
    """

    state_dir: Path
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    names: tuple[str, ...] = ()
    plans: Path | None = None
    data: Path | str | None = None
    token: Token | None = None
    allows_control: bool = False
    tls: Tls | None = None
    clusters: tuple[NamedCluster, ...] = ()
    hosts: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        if self.allows_control and self.token is None:
            raise InputError(
                "--allow-control needs a token: --token-file, or the environment variable KREASSIGN_WEB_TOKEN"
            )
        if not self.is_local and (self.tls is None or self.token is None):
            raise InputError(
                f"on {self.host} others can reach the page: that needs TLS (--certificate and --key) and a token "
                "(--token-file, or the environment variable KREASSIGN_WEB_TOKEN)"
            )
        local = _LOCAL_NAMES if self.is_local else (_host_of_url(self.host),)
        object.__setattr__(self, "hosts", frozenset(map(str.lower, (*local, *self.names))))

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def needs_token_to_read(self) -> bool:
        """Whether reading needs the token too: wherever others can reach the page."""
        return not self.is_local

    @property
    def scheme(self) -> str:
        """Http or https."""
        return "http" if self.tls is None else "https"

    def address(self, port: int) -> str:
        """Where it is, once it listens on this port."""
        host = self.names[0] if self.names and not self.is_local else _host_of_url(self.host)
        return f"{self.scheme}://{host}:{port}/"


def _host_of_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
