"""Settings of the page (address, users, permissions, cluster), sessions of browsers, and errors as answers.

Unsafe settings are refused before serving. Needs no package of the extra, because the command reads it first.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path

from kreassign.clock import Clock
from kreassign.errors import ExecutionError, InputError, KreassignError
from kreassign.model.listeners import LOCAL_NAMES
from kreassign.model.load import MEASURED_S
from kreassign.model.text import printable, shortened
from kreassign.operations.run_journals import NamedCluster

LOCAL_HOST, DEFAULT_PORT = "127.0.0.1", 8085
SHORTEST_TOKEN = 24
"""In characters: too many to guess, if the token is random."""


class PageToken:
    """A token of the page. Only its hash is kept, and compared in constant time; it is never shown."""

    __slots__ = ("_digest",)

    def __init__(self, text: str) -> None:
        if len(text) < SHORTEST_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
            raise InputError(
                f"a token has at least {SHORTEST_TOKEN} characters of ASCII without spaces; make one with "
                "`openssl rand -hex 32`"
            )
        self._digest = sha256(text.encode()).digest()

    def matches(self, text: str | None) -> bool:
        """True if `text` is the token."""
        given = sha256((text or "").encode(errors="surrogatepass")).digest()
        return hmac.compare_digest(given, self._digest)

    def __repr__(self) -> str:
        return "[hidden]"


class Role(Enum):
    """Permissions of a user: to read, to plan and to run, to approve plans. Each role may read."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    APPROVER = "approver"


@dataclass(frozen=True, slots=True)
class User:
    """Name, roles and token of a user; the name is empty if the page has one token for all."""

    name: str
    roles: frozenset[Role]
    token: PageToken


USER_LINE = "a user is a line NAME ROLE[,ROLE] TOKEN, with roles of viewer, operator and approver"


def parse_users(text: str) -> tuple[User, ...]:
    """Parse lines `NAME ROLE[,ROLE] TOKEN`; `#` begins a comment. Raises InputError, which shows no token."""
    users: list[User] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            try:
                user = _user(words)
            except InputError as error:
                raise InputError(f"line {number}: {error}") from None
            if user.name in {one.name for one in users}:
                raise InputError(f"line {number}: the name {user.name} is taken; give each user one line")
            if any(one.token.matches(words[-1]) for one in users):
                raise InputError(f"line {number}: {user.name} has the token of another user; make one for each")
            users.append(user)
    if not users:
        raise InputError(f"there are no users; {USER_LINE}")
    return tuple(users)


def _user(words: list[str]) -> User:
    if len(words) != 3:
        raise InputError(USER_LINE)
    name, roles, token = words
    try:
        return User(shortened(printable(name)), frozenset(map(Role, roles.split(","))), PageToken(token))
    except ValueError:
        raise InputError(f"its second word is not a list of roles; {USER_LINE}") from None


@dataclass(frozen=True, slots=True)
class Reach:
    """Addresses of the cluster that the page may ask, and the properties of its client, which may have secrets."""

    bootstrap_server: str
    properties: Path | Mapping[str, str] | None = field(default=None, repr=False)
    bootstrap_controller: str | None = None


WAYS = "--users, --token-file, or the environment variable KREASSIGN_WEB_TOKEN"


@dataclass(frozen=True, slots=True)
class PageTls:
    """Files of a certificate with its chain, and of its private key, both PEM."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class WebSettings:
    """Settings of the page. Raises InputError for settings that would let others in.

    `names` are allowed host names besides those of this machine: requests with others are refused, because a foreign
    page could have led a browser here by them (DNS rebinding). `plans` is a directory of plans, `data` one of tables,
    for reports. `clusters` are the named ones. Instead of `users` there may be one `token`, with which everything is
    permitted. Without `reach` the page asks no cluster;
    before plans and runs it measures traffic for `measure_for_s`.
    """

    state_dir: Path
    host: str = LOCAL_HOST
    port: int = DEFAULT_PORT
    names: tuple[str, ...] = ()
    plans: Path | None = None
    data: Path | str | None = None
    token: PageToken | None = None
    allows_control: bool = False
    tls: PageTls | None = None
    clusters: tuple[NamedCluster, ...] = ()
    users: tuple[User, ...] = ()
    reach: Reach | None = None
    measure_for_s: float = MEASURED_S
    hosts: frozenset[str] = field(init=False)
    everybody: tuple[User, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.token is not None:
            if self.users:
                raise InputError("a page has either one token or users with their own; leave out one of the two")
            object.__setattr__(self, "everybody", (User("", frozenset(Role), self.token),))
        else:
            object.__setattr__(self, "everybody", self.users)
        if self.allows_control and not self.everybody:
            raise InputError(f"--allow-control needs a token: {WAYS}")
        if not self.is_local and (self.tls is None or not self.everybody):
            raise InputError(
                f"on {self.host} others can reach the page: that needs TLS (--certificate and --key) and a token "
                f"({WAYS})"
            )
        local = LOCAL_NAMES if self.is_local else (_host_of_url(self.host),)
        object.__setattr__(self, "hosts", frozenset(map(str.lower, (*local, *self.names))))

    def user_of(self, token: str | None) -> User | None:
        """The user with this token. Compares with all of them, so that the time does not tell which one is close."""
        matching = [user for user in self.everybody if user.token.matches(token)]
        return matching[0] if matching else None

    @property
    def state_dirs(self) -> tuple[Path, ...]:
        """All state directories with runs: that of the page, in which runs begin, and those of named clusters."""
        named = (one.state_dir for one in self.clusters if one.state_dir is not None)
        return tuple(dict.fromkeys(folder.resolve() for folder in (self.state_dir, *named)))

    @property
    def is_local(self) -> bool:
        """True if only this machine can reach the page; else reading needs the token too."""
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def scheme(self) -> str:
        """URL scheme: http or https."""
        return "http" if self.tls is None else "https"

    def address(self, port: int) -> str:
        """URL of the page when it listens on this port."""
        host = self.names[0] if self.names and not self.is_local else _host_of_url(self.host)
        return f"{self.scheme}://{host}:{port}/"


def _host_of_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


# Sessions of browsers that may read: random names, kept in memory for half a day.

LONGEST_S = 12 * 3_600
MOST = 100


class Sessions:
    """Open sessions. Only hashes of their names are kept."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._opened: dict[bytes, float] = {}

    def begin(self) -> str:
        """Begin a session and return its name. The oldest ones end if there are too many."""
        name = random_name()
        self._opened[_key(name)] = self._clock.monotonic_s()
        while len(self._opened) > MOST:
            del self._opened[next(iter(self._opened))]
        return name

    def is_open(self, name: str | None) -> bool:
        """True if this session is open. The lookup is by hash, so its timing reveals nothing."""
        opened_s = None if name is None else self._opened.get(_key(name))
        return opened_s is not None and self._clock.monotonic_s() - opened_s < LONGEST_S

    def close(self, name: str | None) -> None:
        """End the session of this name, if there is one."""
        if name is not None:
            self._opened.pop(_key(name), None)


def random_name() -> str:
    """A name that nobody can guess."""
    return secrets.token_urlsafe(32)


def _key(name: str) -> bytes:
    return sha256(name.encode(errors="surrogatepass")).digest()


# Errors of requests as answers: RFC 9457 documents for programs, a page for people.


class HttpError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, title: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.title, self.detail = status, title, detail


@contextmanager
def not_found() -> Iterator[None]:
    """Turn an InputError within the block into 404: the address names something unknown."""
    try:
        yield
    except InputError as error:
        raise HttpError(404, "not found", str(error)) from error


def problem_of(error: KreassignError | OSError) -> HttpError:
    """Convert an error of an operation to the answer."""
    if isinstance(error, ExecutionError):
        return HttpError(409, "the run cannot do that now", str(error))
    if isinstance(error, InputError):
        return HttpError(422, "that cannot be done", str(error))
    if isinstance(error, KreassignError):
        return HttpError(502, "an operation failed", str(error))
    return HttpError(500, "a file could not be read or written", error.strerror or type(error).__name__)
