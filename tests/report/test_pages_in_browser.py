"""The pages in Chromium: they open from a file, ask nobody for anything, and can be used by anybody, on any screen.

What the fixture looks at by itself (the console, requests to others): tests/browser.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.report import Recording, rehearsal_page, rehearse
from kreassign.operations.run import RunRequest
from kreassign.operations.tables import load_page
from kreassign.operations.twin import faults_of
from kreassign.report.plan_page import render_plan
from kreassign.report.run_page import AuditView, render_run, report_view
from tests.browser import DESK, PHONE, OpenedPage, OpenPage, Scheme
from tests.cli.commands.test_rehearse import snapshot as rehearsed_snapshot
from tests.pipeline.load_tables import a_cluster, fill
from tests.report.eventful import EVENTFUL, TRAIL, huge_run
from tests.report.plans import FACTS, TARGETS, huge
from tests.report.runs import AFTER, BEFORE, MB

AUDIT = AuditView((("moves", "4", "4 complete"), ("bytes copied", "400 MB", "440 MB")), ("broker 3 used 120%",))


def plan_page() -> str:
    return render_plan(FACTS, TARGETS, "plan.json")


def huge_plan_page() -> str:
    facts, targets = huge()
    return render_plan(facts, targets, "plan.json")


def run_page() -> str:
    """With what an audit says of it, so that everything that a page of a run can have is there."""
    return render_run(report_view(EVENTFUL, BEFORE, AFTER, {}, TRAIL, FACTS), "Audit of reassignment r-1", AUDIT)


def huge_run_page() -> str:
    trail = huge_run()
    return render_run(report_view(trail.history, None, None, {}, trail, huge()[0]))


def rehearsed_page() -> str:
    """Page of a rehearsal in which a broker dies, so that guards have something to report."""
    seen, recording = rehearsed_snapshot(), Recording()
    plan = Plan((PartitionAssignment(TopicPartition("t", 0), (2, 1)),))
    request = RunRequest(PlanFile(plan), ThrottleRates(10 * MB))
    shown = rehearse(request, seen, recording=recording, faults=faults_of(("crash:0@100s+1h",)))
    return rehearsal_page(shown, recording, seen, "plan.json")


def quick_page() -> str:
    """Page of a rehearsal that is over in seconds."""
    seen, recording = rehearsed_snapshot(), Recording()
    plan = Plan((PartitionAssignment(TopicPartition("t", 0), (2, 1)),))
    shown = rehearse(RunRequest(PlanFile(plan)), seen, recording=recording)
    return rehearsal_page(shown, recording, seen, "plan.json")


PAGES = (plan_page, huge_plan_page, run_page, huge_run_page, rehearsed_page, quick_page)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every page as a file."""
    folder = tmp_path_factory.mktemp("pages")
    found = {page.__name__: folder / f"{page.__name__}.html" for page in PAGES}
    for page in PAGES:
        found[page.__name__].write_text(page(), encoding="utf-8")
    return found


def wait_for_charts(opened: OpenedPage, scheme: str) -> None:
    """Until they are drawn for light, dark or paper."""
    opened.page.wait_for_selector(f"html[data-drawn={scheme}]", state="attached")


def overflows(opened: OpenedPage) -> dict[int, int]:
    """Widths at which the page is wider than the window, with the pixels that are too many."""
    found = {}
    for width in (DESK, PHONE):
        opened.page.set_viewport_size({"width": width, "height": 800})
        if excess := opened.overflow_px():
            found[width] = excess
    return found


WRONG_CHARTS = """() => [...document.querySelectorAll(".plotly-place")].flatMap(place => {
    // Its own check fails at legends.
    const {legend, ...layout} = place.layout;
    const found = Plotly.validate(place.data, layout) ?? [];
    const wrong = found.filter(one => one.code !== "unused").map(one => `${place.id}: ${one.msg}`);
    return place.querySelector(".main-svg") ? wrong : [`${place.id} is not drawn`, ...wrong];
})"""


CELL_INKS = """() => [...new Set([...document.querySelectorAll(".heatmap-label text")].map(
    one => getComputedStyle(one).fill))]"""
INK = "document.querySelector('.plotly-place').layout.font.color"


@pytest.mark.parametrize(("page", "expected"), [
    ("plan_page", {"heat-before", "heat-after", "matrix", "traffic", "causes"}),
    ("run_page", {"heat-before", "heat-after", "timeline", "rates", "by-broker", "progress", "etas", "in-sync",
                  "matrix"}),
])  # fmt: skip
def test_a_page_works_on_any_screen_theme_and_paper(
    open_page: OpenPage, files: dict[str, Path], page: str, expected: set[str]
) -> None:
    shown = open_page(files[page])
    wait_for_charts(shown, "light")
    assert set(shown.page.evaluate("[...document.querySelectorAll('.plotly-place')].map(one => one.id)")) == expected
    assert shown.page.evaluate(WRONG_CHARTS) == []
    assert shown.findings_of_axe() == []
    shown.page.emulate_media(color_scheme="dark")
    wait_for_charts(shown, "dark")
    assert overflows(shown) == {}
    if page == "run_page":  # which has everything that pages can have
        assert shown.findings_of_axe() == []
    assert shown.page.evaluate(INK) == "#e6eaef"
    assert shown.page.evaluate(CELL_INKS) == ["rgb(230, 234, 239)"]
    shown.page.emulate_media(media="print")
    wait_for_charts(shown, "paper")
    assert shown.page.evaluate(INK) == "#1a1f26"


TIMES = """() => [...document.querySelectorAll(".plotly-place")].flatMap(place => ["x", "y"].flatMap(side => {
    if (place.layout[`${side}axis`].ticktext === undefined) return [];
    const labels = [...place.querySelectorAll(`.${side}tick text`)];
    const [from, to] = side === "x" ? ["left", "right"] : ["top", "bottom"];
    const boxes = labels.map(one => one.getBoundingClientRect()).sort((one, other) => one[from] - other[from]);
    const overlaps = boxes.slice(1).filter((one, place) => one[from] < boxes[place][to]).length;
    return [[`${place.id} ${side}`, overlaps, labels.map(one => one.textContent)]];
}))"""


@pytest.mark.parametrize("width", [DESK, PHONE])
@pytest.mark.parametrize(("page", "unit"), [("quick_page", "s"), ("run_page", "")])
def test_axes_of_time_can_be_read_on_any_screen(
    open_page: OpenPage, files: dict[str, Path], page: str, unit: str, width: int
) -> None:
    shown = open_page(files[page], width=width)
    wait_for_charts(shown, "light")
    axes = shown.page.evaluate(TIMES)
    assert {"timeline x", "rates x", "by-broker x", "in-sync x"} <= {name for name, _, _ in axes}
    for name, overlaps, labels in axes:
        assert overlaps == 0, (name, labels)
        assert len(set(labels)) == len(labels) >= 2, (name, labels)
        assert all(re.fullmatch(rf"[\d.]+ {unit}" if unit else r"\d+(:\d\d)+", one) for one in labels), (name, labels)


def test_a_run_without_marks_does_not_speak_of_their_numbers(open_page: OpenPage, files: dict[str, Path]) -> None:
    assert "Numbers stand for" not in open_page(files["quick_page"]).words()
    assert "Numbers stand for" in open_page(files["run_page"]).words()


def test_the_page_of_a_rehearsal_works_on_any_screen_for_anybody(open_page: OpenPage, files: dict[str, Path]) -> None:
    shown = open_page(files["rehearsed_page"])
    wait_for_charts(shown, "light")
    assert shown.page.evaluate(WRONG_CHARTS) == []
    assert shown.findings_of_axe() == []
    assert overflows(shown) == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_load_works_on_any_screen_for_anybody(
    open_page: OpenPage, tmp_path: Path, scheme: Scheme
) -> None:
    fill(tmp_path / "data", **a_cluster())
    (tmp_path / "load.html").write_text(load_page(tmp_path / "data"), encoding="utf-8")
    shown = open_page(tmp_path / "load.html", scheme=scheme)
    assert "Load of cluster c.1" in shown.words()
    assert shown.findings_of_axe() == []
    assert overflows(shown) == {}


@pytest.mark.parametrize("page", ["huge_plan_page", "huge_run_page"])
def test_a_page_of_a_hundred_thousand_moves_fits_any_screen(
    open_page: OpenPage, files: dict[str, Path], page: str
) -> None:
    shown = open_page(files[page])
    wait_for_charts(shown, "light")
    assert shown.page.evaluate(WRONG_CHARTS) == []
    assert overflows(shown) == {}


def test_what_pictures_show_can_be_read_by_keyboard(open_page: OpenPage, files: dict[str, Path]) -> None:
    shown = open_page(files["plan_page"])
    wait_for_charts(shown, "light")
    summary = shown.page.locator("summary").first
    table = shown.page.locator(".chart-card details table").first
    assert not table.is_visible()
    shown.page.keyboard.press("Tab")
    assert summary.evaluate("one => one === document.activeElement")
    shown.page.keyboard.press("Enter")
    table.wait_for(state="visible")
    assert "broker 1 7.05 GB" in " ".join(table.inner_text().split())


def test_a_script_that_is_not_the_pages_own_is_not_executed(open_page: OpenPage, tmp_path: Path) -> None:
    """A script within a name of the cluster is not executed."""
    whole = re.sub("<script>.*?</script>", "", plan_page(), flags=re.DOTALL)
    path = tmp_path / "page.html"
    path.write_text(whole.replace("<main>", "<main><script>document.title = 'taken'</script>", 1), encoding="utf-8")
    shown = open_page(path)
    assert shown.page.title() == "Plan 0123456789abcdef"
    (alarm,) = shown.alarms
    assert "Content Security Policy" in alarm
    shown.alarms.clear()
