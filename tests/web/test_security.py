"""Access to the page: names, tokens, other sites, paths, headers, and text that would be markup."""

from __future__ import annotations

import re
import socket
import ssl
import stat
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
import trustme

from kreassign.clock import VirtualClock
from kreassign.errors import InputError
from kreassign.web import api
from kreassign.web.api import CALLS, PREFIX
from kreassign.web.guard import HEADERS, POLICY, Access
from kreassign.web.operations import Served, Streams
from kreassign.web.pages import Pages, report_policy
from kreassign.web.settings import LONGEST_S, MOST, PageTls, PageToken, Sessions, WebSettings
from tests.logs import Logged
from tests.web.conftest import Place
from tests.web.runs import HOSTILE, IMAGE
from tests.web.site import TOKEN, Site, serving_page

NAMING = ("/", "/runs/run-1", "/plans/plan.json", f"/autopilot/{quote(IMAGE)}", f"/autopilot-dry-run/{quote(IMAGE)}")
PAGES = (*NAMING, "/cluster", "/plans", "/api", "/login", "/nothing", "/runs/nothing", "/autopilot/nothing")
READ = tuple(f"{PREFIX}{call.path}".replace("{run_id}", "run-1").replace("{name}", "plan.json")
             for call in CALLS if call.request is None)  # fmt: skip
CHANGES = tuple(call.path.replace("{run_id}", "run-1").replace("{name}", "plan.json")
                for call in CALLS if call.request is not None)  # fmt: skip
ONLY_CHANGED = {f"{PREFIX}{path}" for path in CHANGES} - {*READ}
"""Paths that answer no GET."""
WITHOUT_TOKEN = {"/login", "/logout"}
"""What those see who have none; and the files of the page itself."""
STATIC = Path(__file__).parents[2] / "src/kreassign/web/static"


# Names


@pytest.mark.parametrize("host", [
    "evil.example", "evil.example:8085", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "localhost.evil.example",
    "127.0.0.2", "", "[::ffff:127.0.0.1]", "127.0.0.1:80:80", "127.0.0.1:８０",
])  # fmt: skip
def test_a_browser_that_was_led_here_by_another_name_gets_nothing(site: Site, host: str) -> None:
    answer = site.ask("/api/v1/runs/run-1", host=host.encode().decode("latin-1"))
    assert answer.status == 421
    assert "run-1" not in answer.text


def test_two_names_at_once_are_none(site: Site) -> None:
    connection = site.connection()
    connection.putrequest("GET", "/", skip_host=True)
    for name in (site.host, "evil.example"):
        connection.putheader("Host", name)
    connection.endheaders()
    with connection.getresponse() as answer:
        assert answer.status in {400, 421}
    connection.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:1", "localhost:8085", "LOCALHOST", "[::1]:8085", "[::1]"])
def test_names_of_this_machine_are_known(site: Site, host: str) -> None:
    assert site.ask("/login", host=host).status == 200


# Control


@pytest.mark.parametrize("path", CHANGES)
def test_nothing_is_changed_without_the_token(site: Site, path: str) -> None:
    assert site.post(path, token=None).status == 401
    assert site.post(path, token="wrong").status == 401
    assert site.post(path, token=TOKEN[:-1]).status == 401
    assert site.post(path, token=TOKEN.upper()).status == 401
    assert site.post(path, token=None, authorization=f"Basic {TOKEN}").status == 401
    assert site.post(f"{path}?token={TOKEN}", token=None).status == 401
    answer = site.post(path, token=None, cookie=f"kreassign={TOKEN}; token={TOKEN}")
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize("path", CHANGES)
@pytest.mark.parametrize("headers", [
    {"origin": "https://evil.example"}, {"origin": "null"}, {"origin": "http://127.0.0.1:1"},
    {"sec_fetch_site": "cross-site"}, {"sec_fetch_site": "same-site"},
])  # fmt: skip
def test_another_site_cannot_send_anything_even_with_the_token(site: Site, path: str, headers: dict[str, str]) -> None:
    assert site.post(path, **headers).status == 403


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""])
def test_what_a_form_of_another_site_can_send_is_no_request(site: Site, kind: str) -> None:
    assert site.post("/runs/run-1/cancel", content_type=kind).status == 415


@pytest.mark.parametrize("path", CHANGES)
def test_reading_methods_change_nothing(site: Site, path: str) -> None:
    reading = ("GET", "HEAD") if f"{PREFIX}{path}" in ONLY_CHANGED else ()
    for method in (*reading, "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
        assert site.ask(f"{PREFIX}{path}", method, authorization=f"Bearer {TOKEN}").status == 405
    assert not [header for header in site.ask(f"{PREFIX}{path}", "OPTIONS", origin="https://evil.example").headers
                if header.startswith("access-control")]  # fmt: skip


def test_a_page_that_is_read_only_changes_nothing_whoever_asks(place: Place) -> None:
    with serving_page(WebSettings(place.state_dir, port=0, plans=place.plans, token=PageToken(TOKEN))) as site:
        for path in CHANGES:
            answer = site.post(path)
            assert (answer.status, answer.document["detail"]) == (403, "this page was started without --allow-control")
        assert "Unlock control" not in site.ask("/runs/run-1").text


def test_a_request_that_is_too_long_is_refused_before_it_is_read(site: Site) -> None:
    answer = site.ask("/api/v1/plans/plan.json/approve", "POST", b'"' + b"x" * 70_000,
                      content_type="application/json", authorization=f"Bearer {TOKEN}")  # fmt: skip
    assert answer.status == 413


# Where others can reach it


@pytest.mark.parametrize(("host", "token", "tls"), [
    ("0.0.0.0", PageToken(TOKEN), None), ("0.0.0.0", None, PageTls(Path("c"), Path("k"))),
    ("::", PageToken(TOKEN), None), ("192.0.2.1", None, None), ("kafka-ops.example", None, None),
])  # fmt: skip
def test_what_would_let_others_in_is_refused_before_anything_is_served(
    host: str, token: PageToken | None, tls: PageTls | None
) -> None:
    with pytest.raises(InputError, match=r"needs TLS .* and a token"):
        WebSettings(Path("state"), host, token=token, tls=tls)
    with pytest.raises(InputError, match="--allow-control needs a token"):
        WebSettings(Path("state"), allows_control=True)


def every_path(settings: WebSettings) -> list[str]:
    """Every path that is answered, but for files of the page itself."""
    served, sessions, streams = Served(settings), Sessions(VirtualClock()), Streams()
    access = Access(settings, sessions)
    routes = [*api.routes(served, access), *Pages(settings, served, access, sessions, streams).routes()]
    found = (route.path for route in routes)
    return [path.replace("{run_id}", "run-1").replace("{name}", "plan.json") for path in (*found, api.STREAM_PATH)]


def test_from_elsewhere_reading_needs_the_token_or_its_session(place: Place, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    files = PageTls(tmp_path / "tls.pem", tmp_path / "tls.key")
    files.certificate.write_bytes(b"".join(one.bytes() for one in issued.cert_chain_pems))
    files.key.write_bytes(issued.private_key_pem.bytes())
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    settings = WebSettings(
        place.state_dir, "0.0.0.0", 0, ("ops.example",), place.plans, None, PageToken(TOKEN), True, files,
        reach=place.reach,
    )  # fmt: skip
    with serving_page(settings, "ops.example", trust) as site:
        assert site.ask("/login", host="127.0.0.1").status == 421, "only by the name that was given"
        assert site.ask("/login").headers["strict-transport-security"].startswith("max-age=")
        paths = {*every_path(settings)} - ONLY_CHANGED
        assert {*READ, "/", "/plans", "/metrics", "/runs/run-1/live", "/runs/run-1/report"} <= paths
        for path in sorted(paths - WITHOUT_TOKEN):
            for refused in (
                site.ask(path),
                site.ask(path, authorization="Bearer wrong"),
                site.ask(path, cookie=f"__Host-kreassign={TOKEN}"),
            ):
                assert refused.status == 401, path
                assert not [name for name in (*HOSTILE, "run-1", "plan.json") if name in refused.text], path
        for path in READ:
            assert site.ask(path, authorization=f"Bearer {TOKEN}").status == 200, path
        led = site.ask("/runs/run-1", accept="text/html")
        assert (led.status, led.headers["location"]) == (303, "/login")

        assert site.ask("/login", "POST", b"token=wrong").status == 401
        assert site.ask("/login", "POST", f"token={TOKEN}".encode(), origin="https://evil.example").status == 403
        begun = site.ask("/login", "POST", f"token={TOKEN}".encode())
        cookie = begun.headers["set-cookie"]
        assert begun.status == 303
        assert cookie.startswith("__Host-kreassign=")
        assert {"HttpOnly", "Path=/", "SameSite=strict", "Secure"} <= {part.strip() for part in cookie.split(";")}
        session = cookie.partition(";")[0]
        assert TOKEN not in cookie
        assert site.ask("/runs/run-1", cookie=session).status == 200
        # A session reads; it never changes anything.
        assert [site.post(path, token=None, cookie=session).status for path in CHANGES] == [401] * len(CHANGES)

        assert site.ask("/logout", "POST", b"", cookie=session).status == 303
        assert site.ask("/runs/run-1", cookie=session).status == 401


FORWARDED = (
    {"forwarded": "for=192.0.2.7"}, {"x_forwarded_for": "192.0.2.7"}, {"X_Forwarded_Host": "ops.example"},
    {"x_forwarded_proto": "https"}, {"via": "1.1 proxy"}, {"x_real_ip": "192.0.2.7"}, {"host": "ops.example"},
    {"x_original_host": "ops.example"}, {"cf_connecting_ip": "192.0.2.7"}, {"x_forwarded_for": ""},
)  # fmt: skip
"""What a proxy adds on this machine, which forwards requests of anybody to the page."""


@pytest.mark.parametrize("token", [None, PageToken(TOKEN)], ids=["no token", "token"])
def test_what_a_proxy_forwards_is_not_read_without_the_token(place: Place, token: PageToken | None) -> None:
    settings = WebSettings(
        place.state_dir, port=0, names=("ops.example",), plans=place.plans, token=token, reach=place.reach
    )
    paths = {*every_path(settings)} - ONLY_CHANGED - WITHOUT_TOKEN
    with serving_page(settings) as site:
        assert site.ask("/runs/run-1").status == 200
        for headers in FORWARDED:
            for path in sorted(paths) if headers == FORWARDED[0] else ("/runs/run-1", READ[0]):
                refused = site.ask(path, **headers)
                assert refused.status == 401, (path, headers)
                assert "run-1" not in refused.text
                held = site.ask(path, authorization=f"Bearer {TOKEN}", **headers).status
                assert (held == 401) is (token is None), (path, headers)
        led = site.ask("/runs/run-1", accept="text/html", via="1.1 proxy")
        assert (led.status, "--token-file" in led.text) == ((401, True) if token is None else (303, False))


def test_requests_in_an_old_version_of_http_need_the_token(place: Place) -> None:
    """So nginx forwards, with no header of its own and the name of this machine, unless it is told otherwise."""
    settings = WebSettings(place.state_dir, port=0, token=PageToken(TOKEN))
    with serving_page(settings) as site:
        for login, status in (("", b" 401 "), (f"Authorization: Bearer {TOKEN}\r\n", b" 200 ")):
            request = f"GET /runs/run-1 HTTP/1.0\r\nHost: {site.host}\r\nConnection: close\r\n{login}\r\n"
            with socket.create_connection(("127.0.0.1", site.port), timeout=60) as asked:
                asked.sendall(request.encode())
                with asked.makefile("rb") as answer:
                    assert status in answer.readline()


def test_sessions_end_by_themselves_and_do_not_become_too_many() -> None:
    clock = VirtualClock()
    sessions = Sessions(clock)
    names = [sessions.begin() for _ in range(MOST + 1)]
    assert len(set(names)) == len(names)
    assert not sessions.is_open(names[0])
    assert sessions.is_open(names[1])
    assert not sessions.is_open("")
    assert not sessions.is_open(None)
    sessions.close(names[1])
    assert not sessions.is_open(names[1])
    clock.sleep(LONGEST_S + 1)
    assert not sessions.is_open(names[2])


def test_a_token_is_shown_nowhere_and_a_short_one_is_refused() -> None:
    token = PageToken(TOKEN)
    assert TOKEN not in repr(token) + repr(WebSettings(Path("state"), token=token))
    assert [token.matches(text) for text in (TOKEN, TOKEN + " ", "", None, "\udc80")] == [True, *[False] * 4]
    assert not [number for number in range(2_000) if token.matches(f"{TOKEN}{number}")]
    for text in ("short", "x" * 23, "with spaces in between it", "größer" * 6):
        with pytest.raises(InputError, match="at least 24 characters") as refused:
            PageToken(text)
        assert text not in str(refused.value)


# Paths


@pytest.mark.parametrize("path", [
    "/static/../settings.py", "/static/%2e%2e/settings.py", "/static/..%2fsettings.py", "/static//etc/passwd",
    "/static/%2fetc%2fpasswd", "/static/....//settings.py", "/static/..%5csettings.py", "/static/",
    "/plans/..%2fsecret.json", "/plans/%2e%2e%2fsecret.json", "/plans/%2fetc%2fpasswd", "/plans/plan.json%00",
    "/plans/.", "/plans/..", "/plans/plan", "/api/v1/plans/..%2fsecret.json", "/api/v1/plans/%2e%2e",
    "/api/v1/plans/plan.json%00.json",
    "/runs/..%2fsecret", "/runs/%2fetc%2fpasswd", "/runs/%00", "/runs/.", "/api/v1/runs/..%2f..%2fsecret",
    "/api/v1/runs/*", "/api/v1/runs/%ff",
])  # fmt: skip
def test_no_path_leads_out_of_what_is_served(site: Site, path: str) -> None:
    answer = site.ask(path)
    assert answer.status in {400, 404, 405}, answer.text
    assert not [word for word in ('secret"', "root:", "SHORTEST_TOKEN") if word in answer.text]


def test_a_run_is_named_by_its_id_and_never_by_the_path_of_a_journal(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the command line it may be either."""
    (journal,) = place.state_dir.glob("*/*.sqlite")
    monkeypatch.chdir(journal.parent)
    assert place.site.ask(f"/api/v1/runs/{journal.name}").status == 404
    assert place.site.ask(f"/api/v1/runs/{journal.stem}").status == 200


def test_files_beside_plans_are_no_plans(place: Place) -> None:
    (place.plans / "other.facts.json").write_text("{}")
    (place.plans / "notes.txt").write_text("secret")
    try:
        assert place.site.ask("/plans/other.facts.json").status == 404
        assert place.site.ask("/plans/plan.facts.json").status == 404
        assert place.site.ask("/plans/notes.txt").status == 404
    finally:
        (place.plans / "other.facts.json").unlink()
        (place.plans / "notes.txt").unlink()


# Headers, and what a page may do


@pytest.mark.parametrize(
    "path", [*PAGES, *READ, "/static/page.js", "/static/page.css", "/static/basis.css", "/metrics"]
)
def test_every_answer_forbids_what_this_page_does_not_need(site: Site, path: str) -> None:
    headers = site.ask(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert (policy["script-src"], policy["style-src"], policy["connect-src"]) == ("'self'", "'self'", "'self'")
    assert (policy["frame-ancestors"], policy["base-uri"], policy["form-action"]) == ("'none'", "'none'", "'self'")
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


ANY_ANSWER = {
    "a report of a run": ("GET", "/runs/run-1/report", {}, 200),
    "a report of a plan": ("GET", "/plans/plan.json/report", {}, 200),
    "the document": ("GET", "/api/v1/openapi.json", {}, 200),
    "a stream for programs": ("GET", "/api/v1/runs/run-1/stream", {}, 200),
    "a stream for the page": ("GET", "/runs/run-1/live", {}, 200),
    "a picture": ("GET", "/static/icon.svg", {}, 200),
    "a head": ("HEAD", "/", {}, 200),
    "another name": ("GET", "/", {"host": "evil.example"}, 421),
    "a wrong token": ("POST", "/login", {}, 401),
    "no session any more": ("POST", "/logout", {}, 303),
    "another site": ("POST", "/api/v1/runs/run-1/pause", {"origin": "null"}, 403),
    "no token": ("POST", "/api/v1/runs/run-1/pause", {}, 401),
    "no JSON": ("POST", "/api/v1/runs/run-1/pause", {"authorization": f"Bearer {TOKEN}"}, 415),
    "another method": ("DELETE", "/api/v1/runs", {}, 405),
    "an odd parameter": ("GET", "/api/v1/runs?x=1", {}, 422),
    "no file": ("GET", "/static/nothing.js", {}, 404),
    "a run that has ended": (
        "POST", "/api/v1/runs/run-1/pause",
        {"authorization": f"Bearer {TOKEN}", "content_type": "application/json"}, 422,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", ANY_ANSWER)
def test_no_kind_of_answer_lacks_the_headers(site: Site, what: str) -> None:
    method, path, headers, status = ANY_ANSWER[what]
    answer = site.ask(path, method, b"" if method == "POST" else None, **headers)
    assert answer.status == status
    for name, value in HEADERS.items():
        given = answer.headers[name.lower()]
        assert given == value or (what.startswith("a report") and name == "Content-Security-Policy"), name
    assert "access-control-allow-origin" not in answer.headers


def test_a_bug_is_answered_with_the_headers_and_without_its_words(
    site: Site, monkeypatch: pytest.MonkeyPatch, logged: Logged
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("planted-0nly-here")

    monkeypatch.setattr("kreassign.web.records.plan_of", broken)
    for path in ("/api/v1/plans/plan.json", "/plans/plan.json"):
        answer = site.ask(path)
        assert answer.status == 500
        assert answer.headers["content-security-policy"] == POLICY
        assert "planted-0nly-here" not in answer.text
    assert "planted-0nly-here" in logged.text, "the log says what"


class Markup(HTMLParser):
    """Parts of a page that the policy would forbid, and links to other hosts."""

    def __init__(self) -> None:
        super().__init__()
        self.findings: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.findings += [f"{tag} {name}" for name in given if name.startswith("on") or name == "style"]
        self.findings += [f"{tag} without src" for _ in range(1) if tag == "script" and "src" not in given]
        self.findings += [tag] if tag in {"style", "iframe", "object", "embed", "base", "img"} else []
        for name in ("href", "src", "action"):
            value = given.get(name) or ""
            if re.match(r"[a-z]+:|//", value):
                self.findings.append(f"{tag} {name}={value}")


@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_inline_scripts_or_styles_nor_asks_another_host(site: Site, path: str) -> None:
    markup = Markup()
    markup.feed(site.ask(path).text)
    assert markup.findings == []


@pytest.mark.parametrize("path", [*PAGES, *READ, "/metrics", "/runs/run-1/live", "/api/v1/runs/run-1/stream"])
def test_no_name_of_a_cluster_is_markup_anywhere(site: Site, path: str) -> None:
    text = site.ask(path).text
    if "metrics" not in path:  # plain text, which no browser takes for a page: the type is not guessed
        assert not [name for name in HOSTILE if name in text]
    if path.startswith("/api/") or path.endswith("/live"):
        assert "<" not in text
        assert ">" not in text
    if path in NAMING:
        assert "&lt;" in text


def test_scripts_of_the_page_write_text_and_never_markup() -> None:
    script = (STATIC / "page.js").read_text()
    sinks = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", 'setTimeout("',
             "javascript:", "localStorage", "document.cookie", "createContextualFragment", "srcdoc")  # fmt: skip
    assert not [sink for sink in sinks if sink in script]


@pytest.mark.parametrize("path", ["/runs/run-1/report", "/plans/plan.json/report"])
def test_a_report_runs_its_own_scripts_without_the_pages_rights(site: Site, path: str) -> None:
    answer = site.ask(path)
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    assert "connect-src" not in policy, "nothing may be asked: default-src is 'none'"
    assert "script-src 'unsafe-inline'" not in policy
    assert not [name for name in HOSTILE if name in answer.text]


def test_scripts_of_a_report_are_named_by_their_hashes() -> None:
    page = '<script>a()</script><script type="application/json">{}</script><script src="x.js"></script>'
    # printf 'a()' | openssl dgst -sha256 -binary | base64
    assert "'sha256-qVpDBgj7bpq5hMAcGp3AOc79J3Y1Z4HvySTwKrWDoy4='" in report_policy(page)
    assert report_policy(page).count("'sha256-") == 2


def test_an_approval_is_not_readable_by_more_than_a_plan_is(place: Place) -> None:
    mode = stat.S_IMODE((place.plans / "plan.json").stat().st_mode)
    plan_id = place.site.ask("/api/v1/plans/plan.json").document["summary"]["plan_id"]
    asked = {"plan_id": plan_id, "approved_by": HOSTILE[0], "note": HOSTILE[1]}
    assert place.site.post("/plans/plan.json/approve", asked).status == 200
    try:
        approval = place.plans / "plan.approval.json"
        assert stat.S_IMODE(approval.stat().st_mode) & ~mode == 0
        page = place.site.ask("/plans/plan.json").text
        assert "approved" in page
        assert not [name for name in HOSTILE if name in page]
    finally:
        assert place.site.post("/plans/plan.json/revoke").status == 200
