"""Access control: checks before and after every request.

- The header Host must name this page, or the request is refused: a foreign name may lead a browser to 127.0.0.1.
- Reading needs a token if other machines can reach the page, and for a request that came by way of a proxy, which
  may stand for anybody: in `Authorization: Bearer`, or by a session that a browser began with it. The session is a
  cookie that scripts cannot read and other sites cannot send.
- Changes need `Authorization: Bearer`, each time, with the token of a user who has the role. Unlike cookies, browsers
  never add it by themselves, so no other page can make them do it (CSRF). The origin that browsers report is checked
  as well.
- Every answer forbids foreign scripts and styles, requests to other hosts, and display in frames.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from kreassign.model.listeners import FORWARDED, is_forwarded, name_of_host
from kreassign.web.settings import WAYS, HttpError, Role, Sessions, User, WebSettings

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_BODY = 64 * 1024
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
LONG_TLS = "max-age=31536000"


def guarded(app: App, settings: WebSettings) -> App:
    """Wrap the application in the checks for all requests."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
        if scope["type"] != "http":
            return  # no web sockets are served

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if settings.tls is not None:
                    headers.setdefault("Strict-Transport-Security", LONG_TLS)
            await send(message)

        names = Headers(scope=scope).getlist("host")
        if len(names) != 1 or name_of_host(names[0]) not in settings.hosts:
            refusal = PlainTextResponse("This page is not known by that name; see --host-name.\n", 421)
            await refusal(scope, receive, send_with_headers)
            return
        await app(scope, receive, send_with_headers)

    return answer


class Access:
    """Permissions of a request."""

    def __init__(self, settings: WebSettings, sessions: Sessions) -> None:
        self._settings, self._sessions = settings, sessions

    def may_read(self, request: Request) -> bool:
        """True if the request may read anything besides the login page."""
        headers = request.headers
        is_local = not is_forwarded(headers.keys(), headers.getlist("host"), request.scope["http_version"])
        is_open = is_local and self._settings.is_local
        session = request.cookies.get(cookie_name(self._settings))
        return is_open or self.user(request) is not None or self._sessions.is_open(session)

    def check_read(self, request: Request) -> None:
        """Raise HttpError unless the request may read."""
        if self.may_read(request):
            return
        if not self._settings.everybody:
            raise HttpError(401, "no token", f"{FORWARDED}: that needs a token. Start the page with {WAYS}")
        raise HttpError(401, "no token", "from here everything needs the header `Authorization: Bearer TOKEN`")

    def check_control(self, request: Request, role: Role) -> User:
        """Return the user who makes this change. Raises HttpError unless there is one with this role."""
        if not self._settings.allows_control:
            raise HttpError(403, "read-only", "this page was started without --allow-control")
        check_origin(request, self._settings)
        user = self.user(request)
        if user is None:
            raise HttpError(
                401, "no token", "whatever changes something needs the header `Authorization: Bearer TOKEN`"
            )
        if role not in user.roles:
            roles = " and ".join(sorted(one.value for one in user.roles))
            raise HttpError(403, "another role", f"{user.name} is {roles}; this needs the role {role.value}")
        return user

    def user(self, request: Request) -> User | None:
        """The user whose token the request carries; None without one."""
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        return self._settings.user_of(given.strip()) if kind.lower() == "bearer" else None


def check_origin(request: Request, settings: WebSettings) -> None:
    """Raise HttpError if the browser reports that another site sent the request. Programs report nothing."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "same-origin")
    ours = f"{settings.scheme}://{request.headers.get('host', '')}"
    if site not in {"same-origin", "none"} or (origin is not None and origin.lower() != ours.lower()):
        raise HttpError(403, "another site", "only this page may send this, not one of another address")


def cookie_name(settings: WebSettings) -> str:
    """Name of the session cookie; with the prefix browsers enforce its host, path and TLS."""
    return "kreassign" if settings.tls is None else "__Host-kreassign"


async def body_of(request: Request) -> bytes:
    """Content of a request. Raises HttpError if it is too long."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > LARGEST_BODY:
            raise HttpError(413, "too large", f"a request has at most {LARGEST_BODY} bytes")
    return content
