"""The pages in Chromium: they can be read at every width and by everybody, follow a run, and steer it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts import plan_id
from kreassign.operations.plan_files import approve, read_plan_file, revoke, write_plan
from kreassign.operations.run_journals import this_operator
from tests.browser import DESK, PHONE, OpenPage, Scheme, button
from tests.web.conftest import Place
from tests.web.runs import HOSTILE, IMAGE, live_run
from tests.web.site import TOKEN, serving_page, with_control

if TYPE_CHECKING:
    from playwright.sync_api import Dialog, Page

NAMING = ("", "runs/run-1", "plans/plan.json", f"autopilot/{quote(IMAGE)}")
OTHERS = ("cluster", "plans", "api", "login")


@pytest.mark.parametrize(
    ("width", "scheme", "paths"),
    [
        (PHONE, "dark", NAMING + OTHERS),
        (DESK, "light", (*NAMING, *OTHERS, "runs/run-1/report", "plans/plan.json/report")),
    ],
    ids=["phone in dark", "desk in light"],
)
def test_every_page_can_be_read_by_everybody_at_every_width(
    place: Place, open_page: OpenPage, width: int, scheme: Scheme, paths: tuple[str, ...]
) -> None:
    site = place.site
    for path in paths:
        opened = open_page(f"http://{site.host}/{path}", width=width, scheme=scheme, hosts=(site.host,))
        assert opened.findings_of_axe() == [], path
        assert opened.overflow_px() <= 0, path
        assert opened.values_of_programs() == [], path
        if path in NAMING:
            assert any(name in opened.words() for name in HOSTILE), "names are shown as they are"


def test_a_run_is_followed_and_steered_by_who_has_the_token(tmp_path: Path, open_page: OpenPage) -> None:
    with live_run(tmp_path) as run, serving_page(with_control(tmp_path)) as site:
        opened = open_page(f"http://{site.host}/runs/{run.run_id}", hosts=(site.host,))
        page = opened.page
        state, answer = page.locator("[data-field=state]"), page.locator("[data-answer]")
        page.locator("[data-field=copied]:not(:text-is('0 B'))").wait_for()
        assert page.locator("[data-table=moves] tr").count() == 2
        assert not page.locator("[data-control]").is_visible(), "nothing to press without the token"

        page.fill("#token", TOKEN)
        assert opened.findings_of_axe() == [], "of a run that goes on"
        button(page, "Unlock control").click()
        button(page, "Pause").wait_for()
        assert opened.findings_of_axe() == [], "with all that steers"
        page.set_viewport_size({"width": PHONE, "height": 800})
        assert opened.overflow_px() <= 0
        button(page, "Pause").click()
        page.locator("[data-field=state]", has_text="paused").wait_for()
        page.get_by_text(f"paused by {this_operator().name}").wait_for()
        button(page, "Resume").click()
        page.locator("[data-list=held]").wait_for(state="hidden")
        page.fill("#rate", "0.03")
        button(page, "Change throttle").click()
        page.locator("[data-field=throttle]", has_text="30 kB/s").wait_for()
        assert (
            page.locator("[data-field=pace]").inner_text()
            == "order makespan, no limit on moves in flight, 100 elections per step"
        )
        page.select_option("#order", "small-first")
        page.fill("#max_moves_per_broker", "3")
        button(page, "Change pace").click()
        page.locator(
            "[data-field=pace]", has_text="order small-first, at most 3 moves per source, 3 moves per destination"
        ).wait_for()

        said: list[str] = []

        def agree(dialog: Dialog) -> None:
            said.append(dialog.message)
            dialog.accept()

        page.on("dialog", agree)
        button(page, "Cancel now").click()
        assert run.wait_for_end().state == "cancelled"
        page.locator("[data-field=state]", has_text="cancelled").wait_for()
        assert said == ["Cancel moves in flight too, and discard their copies?"]
        answer.get_by_text("accepted", exact=True).wait_for()
        assert re.search(r"\bbad\b", state.get_attribute("class") or "")
        button(page, "Lock control").click()
        assert not page.locator("[data-control]").is_visible()


def test_a_plan_is_approved_on_its_page(place: Place, open_page: OpenPage) -> None:
    opened = open_page(f"http://{place.site.host}/plans/plan.json", hosts=(place.site.host,))
    page = opened.page
    page.fill("#token", TOKEN)
    button(page, "Unlock control").click()
    page.fill("#approved_by", HOSTILE[0])
    button(page, "Approve").click()
    button(page, "Revoke the approval").wait_for()
    assert HOSTILE[0] in opened.words()
    assert (place.plans / "plan.approval.json").exists()
    button(page, "Revoke the approval").click()
    page.get_by_text("not approved").wait_for()


FOCUSED = """() => {
    const one = document.activeElement, style = getComputedStyle(one);
    const name = one.getAttribute("aria-label") ?? one.labels?.[0]?.textContent ?? one.innerText;
    const box = one.getBoundingClientRect();
    return {name: name.trim(), is_seen: style.outlineStyle !== "none" && box.width > 0 && box.right > 0};
}"""
ALL = """() => [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")]
    .filter(one => one.checkVisibility()).length"""


def focused(page: Page) -> str:
    """Name of what has the focus, which must be seen to have it."""
    found = page.evaluate(FOCUSED)
    name: str = found["name"]
    assert (bool(name), found["is_seen"]) == (True, True), found
    return name


def tab_to(page: Page, name: str) -> None:
    """Press Tab until what has this name has the focus."""
    passed: list[str] = []
    while not passed or passed[-1] != name:
        assert len(passed) < page.evaluate(ALL) + 1, (name, passed)
        page.keyboard.press("Tab")
        passed.append(focused(page))


def unlock_by_keyboard(page: Page) -> None:
    tab_to(page, "Token")
    page.keyboard.type(TOKEN)
    page.keyboard.press("Enter")
    button(page, "Lock control").wait_for()


@pytest.mark.parametrize("path", ["", "runs/run-1", "plans", "plans/plan.json", "cluster", "api"])
def test_tab_reaches_everything_in_order_and_shows_where_it_is(place: Place, open_page: OpenPage, path: str) -> None:
    page = open_page(f"http://{place.site.host}/{path}", hosts=(place.site.host,)).page
    assert page.locator("[tabindex]:not([tabindex='0'], [tabindex='-1'])").count() == 0
    unlock_by_keyboard(page)
    page.reload()
    button(page, "Lock control").wait_for()
    passed = []
    for _ in range(page.evaluate(ALL)):
        page.keyboard.press("Tab")
        passed.append(focused(page))
    assert passed[:2] == ["Skip to content", "kreassign"]
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement === document.body || document.activeElement.className === 'skip'")


def test_the_focus_stays_where_control_is_unlocked_and_locked(place: Place, open_page: OpenPage) -> None:
    page = open_page(f"http://{place.site.host}/plans/plan.json", hosts=(place.site.host,)).page
    unlock_by_keyboard(page)
    assert focused(page) == "Lock control"
    page.keyboard.press("Enter")
    assert focused(page) == "Token"


def test_a_preview_gets_the_focus_and_its_button_is_near(place: Place, open_page: OpenPage) -> None:
    plan = place.plans / "own.json"
    write_plan(plan, Plan((PartitionAssignment(TopicPartition("t", 0), (2, 1)),)), None)
    approve(plan, plan_id(read_plan_file(plan).plan), "Ada", "", 1)
    try:
        page = open_page(f"http://{place.site.host}/plans/own.json", hosts=(place.site.host,)).page
        unlock_by_keyboard(page)
        tab_to(page, "Preview")
        page.keyboard.press("Enter")
        page.locator("[data-preview] h3:focus").wait_for()
        page.keyboard.press("Tab")
        assert focused(page) == "Start the run"
    finally:
        revoke(plan)
        plan.unlink()


def test_a_run_is_steered_by_keyboard_alone(tmp_path: Path, open_page: OpenPage) -> None:
    with live_run(tmp_path) as run, serving_page(with_control(tmp_path)) as site:
        page = open_page(f"http://{site.host}/runs/{run.run_id}", hosts=(site.host,)).page
        unlock_by_keyboard(page)
        tab_to(page, "Pause")
        page.keyboard.press("Enter")
        page.locator("[data-field=state]", has_text="paused").wait_for()
        tab_to(page, "Cancel now")
        asked: list[str] = []

        def agree_at_last(dialog: Dialog) -> None:
            """Dismiss the first question, as Escape does. It may come after the second key."""
            asked.append(dialog.message)
            (dialog.dismiss if len(asked) == 1 else dialog.accept)()

        page.on("dialog", agree_at_last)
        page.keyboard.press("Enter")
        assert focused(page) == "Cancel now"
        page.keyboard.press("Enter")
        assert run.wait_for_end().state == "cancelled"
        page.locator("[data-stage=ended]").wait_for()
        assert page.evaluate("document.activeElement !== document.body && document.activeElement.checkVisibility()")
