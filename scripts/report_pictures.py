#!/usr/bin/env python3
"""Write the pictures of docs/images: pages as Chromium shows them, and what a terminal shows.

PYTHONPATH=. python scripts/report_pictures.py

The plan is one for the scenario `skewed`; the run is on a twin, in virtual time: slowed down, held, left and resumed.
Those of the page that `kreassign web` serves are made by web_pictures.py.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from click.testing import CliRunner
from playwright.sync_api import Browser, Locator, Page, sync_playwright
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, RenderableType
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

import kreassign
from kreassign.cli.main import kreassign as command_line
from kreassign.cli.run_text import screen
from kreassign.cli.streams import folded
from kreassign.executor.events import HoldRequested, MovesObserved, ReleaseRequested, ThrottleRequested
from kreassign.executor.journal import read_events
from kreassign.model.text import parse_amount
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.plan import PlanRequest
from kreassign.operations.plan_files import read_plan_file
from kreassign.operations.report import Recording, rehearsal_page, rehearse, report_page
from kreassign.operations.run import RunRequest
from kreassign.operations.snapshot_files import write_snapshot
from kreassign.operations.twin import faults_of
from tests.browser import OPTIONS, find_chromium
from tests.executor.run_events import measured
from tests.executor.twin_runs import RATE, TwinRig, pace

SCENARIO = "skewed"
IMAGES = Path("docs/images")
WIDTH, HEIGHT = 1080, 1360
COLUMNS, LINES = 100, 26
WHAT_HAPPENED = "What happened when"


def main() -> None:
    """Make the pages, and take a picture of what each is for."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        browser = driver.chromium.launch(executable_path=find_chromium(), args=list(OPTIONS))
        journal = eventful_run(folder)
        for picture, page, section in pages(folder, journal):
            file = folder / f"{picture}.html"
            file.write_text(page, encoding="utf-8")
            shown = opened(browser, file.as_uri())
            shown.wait_for_selector("html[data-drawn=light]", state="attached")
            take(shown, picture, shown.locator("h2", has_text=section) if section else None)
        browser.close()
        for picture, title, drawn in terminals(folder, journal):
            write_terminal(picture, title, drawn)


def opened(browser: Browser, address: str) -> Page:
    """A page in light colours."""
    shown = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    shown.goto(address)
    return shown


def take(shown: Page, picture: str, section: Locator | None) -> None:
    """A picture of the page, from a section on."""
    top = section.bounding_box() if section else None
    begin = top["y"] - 16 if top else 0
    height = min(HEIGHT, shown.evaluate("document.documentElement.scrollHeight") - begin)
    area = {"x": 0, "y": begin, "width": WIDTH, "height": height}
    shown.screenshot(path=IMAGES / f"{picture}.png", full_page=True, clip=area)


def pages(folder: Path, journal: Path) -> Iterator[tuple[str, str, str]]:
    """Name of the picture, page, and the section to begin at."""
    with kreassign.serve_twin(SCENARIO) as twin, kreassign.connect(twin.bootstrap_servers) as cluster:
        snapshot = kreassign.snapshot(cluster, measure_for_s=2)
    outcome = kreassign.plan(snapshot, request=PlanRequest(rate_bytes_per_s=parse_amount("20MB/s")))
    kreassign.write_plan(folder / "plan.json", outcome.plan, outcome.facts)
    write_snapshot(folder / "cluster.json", snapshot)
    yield "report-plan", kreassign.plan_page(folder / "plan.json"), ""
    yield "report-run", report_page(journal, None), WHAT_HAPPENED
    recording = Recording()
    request = RunRequest(read_plan_file(folder / "plan.json"), ThrottleRates(50_000_000), pace=pace(moves_per_broker=1))
    shown = rehearse(request, snapshot, recording=recording, faults=faults_of(("crash:3@60s+45s",)))
    yield "report-rehearsal", rehearsal_page(shown, recording, snapshot, "plan.json", outcome.facts), ""


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


def terminals(folder: Path, journal: Path) -> Iterator[tuple[str, str, RenderableType]]:
    """Name of the picture, the command, and what it shows on a terminal."""
    planned = CliRunner().invoke(
        command_line,
        ["plan", "--snapshot", str(folder / "cluster.json"), "--rate", "20MB/s"],
        env={"COLUMNS": str(COLUMNS), "KREASSIGN_CONFIG": "/dev/null"},
    )
    assert planned.exit_code == 0, planned.output
    yield "terminal-plan", "kreassign plan", Text(folded(planned.stderr.partition("next:")[0].rstrip(), COLUMNS))
    events = read_events(journal)
    looks = [number for number, event in enumerate(events) if isinstance(event, MovesObserved)]
    progress = measured(events[: looks[5 * len(looks) // 12]])
    yield "terminal-run", "kreassign watch", screen(progress, COLUMNS, LINES)


def write_terminal(picture: str, title: str, drawn: RenderableType) -> None:
    """A terminal as SVG, which asks nobody for a font, as rich's own form of it would."""
    console = Console(file=StringIO(), record=True, width=COLUMNS, height=LINES, highlight=False, force_terminal=True)
    console.print(drawn)
    form = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    form = form.replace("Fira Code, monospace", "ui-monospace, DejaVu Sans Mono, monospace")
    text = console.export_svg(title=title, theme=SVG_EXPORT_THEME, code_format=form, unique_id=picture)
    text = "\n".join(line.rstrip() for line in text.splitlines() if line.strip())
    (IMAGES / f"{picture}.svg").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
