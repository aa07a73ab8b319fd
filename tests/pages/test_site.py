"""The site of the documentation: it is built in strict mode, and its pages work without another host."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kreassign.cli.main import COMMANDS
from kreassign.executor.journal.file import KINDS
from scripts.site_pages import SOURCE, events_page, options_page, site_text
from testbed.processes import Finished, ProcessGroup
from tests.browser import DESK, PHONE, OpenPage, Scheme
from tests.checks.source import ROOT

PAGES = ("index.html", "incidents/disk-fills.html", "start/comparison.html", "reference/options.html")
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(https?:)?//|<link[^>]*rel=["']?(?:stylesheet|preload|icon|preconnect)[^>]*href=["']?(https?:)?//"""
)


def build(folder: Path, config: Path = ROOT / "mkdocs.yml") -> Finished:
    """Build the site into a folder as `make docs` does."""
    group = ProcessGroup()
    command = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-W", "ignore::DeprecationWarning", "-m", "mkdocs", "build"]
    try:
        return group.run([*command, "--strict", "--config-file", str(config), "--site-dir", str(folder)], timeout_s=240)
    finally:
        group.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(folder)
    assert built.exit_code == 0, built.stderr
    return folder


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def host(site: Path) -> Iterator[str]:
    """Host of the site, since files may not search."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.thorough
def test_no_page_of_the_site_fetches_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 80
    assert [str(page) for page in pages if FETCHED.search(page.read_text(encoding="utf-8"))] == []
    styles = [path for path in site.rglob("*.css") if re.search(r"url\(['\"]?(?:https?:)?//", path.read_text("utf-8"))]
    assert styles == []


def test_pages_of_the_site_work_on_phone_and_desk(host: str, open_page: OpenPage) -> None:
    for name in PAGES:
        for width in (PHONE, DESK):
            shown = open_page(f"http://{host}/{name}", width=width, hosts=(host,))
            shown.page.wait_for_selector("main h1")
            assert shown.overflow_px() == 0, (name, width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_the_site_can_be_used_by_anybody(host: str, open_page: OpenPage, scheme: Scheme) -> None:
    for name in PAGES:
        shown = open_page(f"http://{host}/{name}", scheme=scheme, hosts=(host,))
        shown.page.wait_for_selector("main h1")
        assert shown.findings_of_axe() == [], name


def test_search_finds_an_incident(host: str, open_page: OpenPage) -> None:
    shown = open_page(f"http://{host}/index.html", hosts=(host,))
    # By keys: the search looks at what stands there when a key goes up, not when the text changes.
    shown.page.locator("input[name=query]").press_sequentially("disk fills")
    shown.page.wait_for_selector(".md-search-result__link[href*='incidents/disk-fills']", state="attached")


@pytest.mark.thorough
def test_a_link_that_leads_nowhere_ends_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "README.md").write_text("# A\n\n[there](#a) [gone](gone.md) [no heading](#gone)\n", "utf-8")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    config = re.sub(r"^(hooks|nav):.*?(?=^\S|\Z)", "", config, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "mkdocs.yml").write_text(config, encoding="utf-8")
    built = build(tmp_path / "site", tmp_path / "mkdocs.yml")
    assert built.exit_code != 0
    assert "gone.md" in built.stderr
    assert "#gone" in built.stderr
    assert "'#a'" not in built.stderr


# What the site adds to the pages.


def test_every_command_with_its_options_is_on_the_page_of_options() -> None:
    page = options_page()
    assert [name for name in COMMANDS if f"\n## kreassign {name}\n" not in page] == []
    assert "\n## kreassign plan rebalance\n" in page
    assert "| `--throttle RATE` | `KREASSIGN_THROTTLE` |" in page


def test_every_event_that_a_journal_may_hold_is_on_the_page_of_events() -> None:
    page = events_page()
    assert [name for name in KINDS if f"\n## {name}\n" not in page] == []
    assert "| `request` |" in page


@pytest.mark.parametrize(("link", "becomes"), [
    ("../reference/guards.md#what", "../reference/guards.md#what"),
    ("../../CONTRIBUTING.md", "../contributing.md"),
    ("../../bench/planner_cases/README.md", f"{SOURCE}bench/planner_cases/README.md"),
    ("../gone.md", "../gone.md"),
    ("https://example.org/a.md", "https://example.org/a.md"),
    ("#here", "#here"),
])  # fmt: skip
def test_links_to_what_is_not_on_the_site_lead_to_the_sources(link: str, becomes: str) -> None:
    assert site_text(f"See [it]({link}).", "docs/guides/rebalance.md") == f"See [it]({becomes})."


def test_links_of_pages_of_the_root_lead_to_the_pages_of_the_site() -> None:
    assert site_text("[a](docs/design/architecture.md#x)", "CONTRIBUTING.md") == "[a](design/architecture.md#x)"
