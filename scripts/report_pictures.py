#!/usr/bin/env python3
"""Write the pictures of docs/guides/show-plans-and-runs.md: pages as Chromium shows them.

PYTHONPATH=. python scripts/report_pictures.py

The plan is one for the scenario `skewed`; the run is on a twin, in virtual time: slowed down, held, left and resumed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

import kreassign
from kreassign.executor.events import HoldRequested, ReleaseRequested, ThrottleRequested
from kreassign.model.amount import parse_amount
from kreassign.operations.plan import PlanRequest
from kreassign.operations.report import report_page
from tests.browser import OPTIONS, find_chromium
from tests.executor.twin_runs import RATE, TwinRig, pace

SCENARIO = "skewed"
IMAGES = Path("docs/images")
WIDTH, HEIGHT = 1080, 1360


def main() -> None:
    """Make the pages, and take a picture of what each is for."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=list(OPTIONS))
        for name, page, section in pages(Path(folder)):
            file = Path(folder) / f"{name}.html"
            file.write_text(page, encoding="utf-8")
            shown = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            shown.goto(file.as_uri())
            shown.wait_for_selector("html[data-drawn=light]", state="attached")
            top = shown.locator("h2", has_text=section).bounding_box() if section else None
            area = {"x": 0, "y": top["y"] - 16 if top else 0, "width": WIDTH, "height": HEIGHT}
            shown.screenshot(path=IMAGES / f"{name}.png", full_page=True, clip=area)
        browser.close()


def pages(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Name of the picture, page, and the section to begin at."""
    with kreassign.serve_twin(SCENARIO) as twin, kreassign.connect(twin.bootstrap_servers) as cluster:
        snapshot = kreassign.snapshot(cluster, measure_for_s=2)
    outcome = kreassign.plan(snapshot, request=PlanRequest(rate_bytes_per_s=parse_amount("20MB/s")))
    kreassign.write_plan(folder / "plan.json", outcome.plan, outcome.facts)
    yield "report-plan", kreassign.plan_page(folder / "plan.json"), ""
    yield "report-run", report_page(eventful_run(folder), None), "What happened when"


def eventful_run(folder: Path) -> Path:
    """The journal of a run of eight moves in which something happens now and then."""
    rig = TwinRig(folder, [[number % 4, (number + 1) % 4] for number in range(8)], write_bytes_per_s=RATE / 50)
    rig.ask_after(15, lambda at_ms, number: ThrottleRequested(at_ms, number, RATE // 2))
    rig.ask_after(30, HoldRequested)
    rig.ask_after(40, ReleaseRequested)
    rig.ask_after(50, lambda at_ms, number: ThrottleRequested(at_ms, number, 2 * RATE))
    rig.stop_after(55)
    targets = {number: (4 if number % 2 else (number + 2) % 4, (number + 1) % 4) for number in range(8)}
    rig.run(rig.prepared(targets, pace=pace(moves_per_broker=1)))
    rig.resume()
    return rig.path()


if __name__ == "__main__":
    main()
