#!/usr/bin/env python3
"""Write the pictures of the page of `kreassign web`, used as people do: from a recommendation to a run.

PYTHONPATH=. python scripts/web_pictures.py
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, sync_playwright

import kreassign
from kreassign.web.settings import Reach, WebSettings, parse_users
from tests.browser import OPTIONS, button, find_chromium
from tests.web.site import serving_page

SCENARIO = "skewed"
IMAGES = Path("docs/images")
WIDTH, HEIGHT = 1080, 1360
ANN, BOB = (f"{name}-{'x' * 24}" for name in ("ann", "bob"))
USERS = parse_users(f"ann approver {ANN}\nbob operator {BOB}")


def main() -> None:
    """Take the pictures in light colours."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=list(OPTIONS))
        take_web_pages(browser, Path(name))
        browser.close()


def take_web_pages(browser: Browser, folder: Path) -> None:
    """Pictures of the page of `kreassign web`: the cluster, a preview, and the run that begins with it."""
    (folder / "plans").mkdir(parents=True)
    with kreassign.serve_twin(SCENARIO) as twin:
        settings = WebSettings(
            folder / "state", port=0, plans=folder / "plans", allows_control=True, users=USERS,
            reach=Reach(twin.bootstrap_servers),
        )  # fmt: skip
        with serving_page(settings) as site:
            shown = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            shown.goto(f"{site.address}cluster")
            unlock(shown, BOB)
            take(shown, "web-cluster", None)
            button(shown, "Plan it").click()
            shown.wait_for_url("**/plans/*")
            unlock(shown, ANN)
            button(shown, "Approve").click()
            shown.get_by_text("by ann").wait_for()
            unlock(shown, BOB)
            shown.fill("#limit", "50")
            button(shown, "Preview").click()
            shown.get_by_text("It changes").wait_for()
            take(shown, "web-plan", shown.get_by_role("heading", name="Run", exact=True))
            button(shown, "Start the run").click()
            shown.locator("[data-field=copied]", has_text=re.compile(r"^[4-9].* GB")).wait_for(timeout=300_000)
            take(shown, "web-run", None)
            shown.on("dialog", lambda dialog: dialog.accept())
            button(shown, "Cancel now").click()
            shown.locator("[data-field=state]", has_text="cancelled").wait_for(timeout=60_000)
            shown.close()


def take(shown: Page, picture: str, section: Locator | None) -> None:
    """A picture of the page, from a section on."""
    top = section.bounding_box() if section else None
    begin = top["y"] - 32 if top else 0
    height = min(HEIGHT, shown.evaluate("document.documentElement.scrollHeight") - begin)
    area = {"x": 0, "y": begin, "width": WIDTH, "height": height}
    shown.screenshot(path=IMAGES / f"{picture}.png", full_page=True, clip=area)


def unlock(shown: Page, token: str) -> None:
    """Be the user with this token."""
    button(shown, "Lock control").or_(button(shown, "Unlock control")).wait_for()
    if button(shown, "Lock control").is_visible():
        button(shown, "Lock control").click()
    shown.fill("#token", token)
    button(shown, "Unlock control").click()
    button(shown, "Lock control").wait_for()


if __name__ == "__main__":
    main()
