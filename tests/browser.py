"""Pages in headless Chromium, for every test that asks for `open_page`: one browser for all of them.

Each page is judged when its test is over, so that no test can forget to: no warning or error on the console, no
exception in a script, and no request but to the addresses that the test names. `OpenedPage.findings_of_axe`
asks axe-core what keeps people from using the page.

Tests that ask for it carry the mark `browser` and form a group without doing anything for it (`tests/clusters.py`).
Wait for what is to be seen by `page.wait_for_selector`: pages with a policy forbid the text of scripts that
`page.wait_for_function` takes. The browser ends after the last of these tests: while it is there, its driver has an
event loop in this thread, in which `asyncio.run` of another test would fail.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:  # every process of pytest loads this file, and few open pages: those import the driver themselves
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Request

REQUIRE_VARIABLE = "KREASSIGN_REQUIRE_CHROMIUM"
CHROMIUM_VARIABLE = "KREASSIGN_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FIXTURE = "open_page"
# Root may not start Chromium's sandbox; the rest keeps it from asking its makers for anything.
OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
PATIENCE_MS = 60_000
"""How long to wait for anything on a page: a machine under load is slow, and a test that waits in vain fails anyway."""

PHONE, DESK = 360, 1920
"""Widths in pixels at which every page has to work."""

ALARMING = ("serious", "critical")
"""What axe-core calls findings that keep people from using a page."""

VALUES = re.compile(
    r"\b(?:None|True|False|nan|NaN|null|undefined|Infinity)\b|\[object|\[\]|\{\}|[\[\(\{]'|\w\(\w+=|<[\w.]+ object"
)
"""Patterns that no page shows: values and containers as Python and JavaScript write them."""

Scheme = Literal["light", "dark"]


class ChromiumMissingError(Exception):
    """There is no Chromium on this machine."""


@dataclass
class OpenedPage:
    """A page in the browser. `page` is Playwright's; `alarms` is all that a page must not do, in words."""

    page: Page
    hosts: tuple[str, ...]
    alarms: list[str] = field(default_factory=list)

    def hear(self, message: ConsoleMessage) -> None:
        """Note a line on the console, if it is a warning or an error."""
        if message.type in {"warning", "error"}:
            self.alarms.append(f"the console says: {message.text}")

    def note_request(self, request: Request) -> None:
        """Note a request, if it goes to a host that the test did not name."""
        parts = urlsplit(request.url)
        if parts.scheme not in {"file", "data", "blob", "about"} and parts.netloc not in self.hosts:
            self.alarms.append(f"the page asks {request.url}")

    def findings_of_axe(self, *impacts: str) -> list[str]:
        """Findings of axe-core with these impacts, by default the alarming ones: rule, impact, first places of each."""
        axe = import_module("axe_playwright_python.sync_playwright").Axe()
        found = axe.run(self.page).response["violations"]
        return [
            f"{one['id']} ({one['impact']}): {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}"
            for one in found
            if one["impact"] in (impacts or ALARMING)
        ]

    def overflow_px(self) -> int:
        """By how many pixels the page is wider than the window: more than 0 makes people scroll to and fro."""
        found: int = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        return found

    def values_of_programs(self) -> list[str]:
        """Values as Python and JavaScript write them, in what is to be seen: no reader should need to know those."""
        return VALUES.findall(self.words())

    def words(self) -> str:
        """All text that is to be seen, with single spaces."""
        return " ".join(self.page.locator("body").inner_text().split())


def button(page: Page, name: str) -> Locator:
    """The button of this name, and of no other: by a part of it, "Lock control" is found in "Unlock control" too."""
    return page.get_by_role("button", name=name, exact=True)


class OpenPage(Protocol):
    """Opens a page: a file, or an address together with the `hosts` (host:port) that it may ask."""

    def __call__(
        self, target: Path | str, *, width: int = DESK, scheme: Scheme = "light", hosts: tuple[str, ...] = ()
    ) -> OpenedPage:
        """Open it in a context of its own: without cookies, and as wide as is said."""
        ...


class SharedBrowser:
    """The browser of this process, started when it is first asked for."""

    def __init__(self) -> None:
        self._ends = ExitStack()
        self._browser: Browser | None = None

    def get(self) -> Browser:
        """The browser. Raises ChromiumMissingError."""
        if self._browser is None:
            program = find_chromium()
            driver = self._ends.enter_context(import_module("playwright.sync_api").sync_playwright())
            browser: Browser = driver.chromium.launch(
                executable_path=program, args=list(OPTIONS), timeout=2 * PATIENCE_MS
            )
            self._ends.callback(browser.close)
            self._browser = browser
        return self._browser

    def end_unless_used(self, item: pytest.Item | None) -> None:
        """End it, unless this test uses it, too."""
        if self._browser is not None and (item is None or not uses_browser(item)):
            self._browser = None
            self._ends.close()


_shared = SharedBrowser()


def find_chromium() -> str:
    """Find Chromium. Raises ChromiumMissingError, which says how to get it."""
    named = os.environ.get(CHROMIUM_VARIABLE)
    found = next(filter(None, map(shutil.which, [named] if named else NAMES)), None)
    if found is None:
        raise ChromiumMissingError(
            f"there is no Chromium ({named or ', '.join(NAMES)}); install it (Debian: apt install chromium), "
            f"or name one: {CHROMIUM_VARIABLE}=/path/of/chrome"
        )
    return found


def uses_browser(item: pytest.Item) -> bool:
    """True if a test opens pages."""
    return FIXTURE in getattr(item, "fixturenames", ())


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """After a test and its fixtures: end the browser if the next one does not use it."""
    _shared.end_unless_used(nextitem)


@pytest.fixture
def open_page() -> Iterator[OpenPage]:
    """Open pages; at the end none of them may have done what no page must do."""
    try:
        browser = _shared.get()
    except ChromiumMissingError as missing:
        if os.environ.get(REQUIRE_VARIABLE) == "1":
            raise
        pytest.skip(str(missing))
    contexts: list[BrowserContext] = []
    opened: list[OpenedPage] = []

    def open_one(
        target: Path | str, *, width: int = DESK, scheme: Scheme = "light", hosts: tuple[str, ...] = ()
    ) -> OpenedPage:
        context = browser.new_context(
            viewport={"width": width, "height": 1000}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        found = OpenedPage(context.new_page(), hosts)
        opened.append(found)
        found.page.on("console", found.hear)
        found.page.on("pageerror", lambda error: found.alarms.append(f"a script fails: {error}"))
        found.page.on("request", found.note_request)
        found.page.goto(target.resolve().as_uri() if isinstance(target, Path) else target)
        return found

    yield open_one
    alarms = [(alarm, one.words()) for one in opened for alarm in one.alarms]  # The page says why it was refused.
    for context in contexts:
        context.close()
    assert alarms == []
