"""The fixture that opens pages finds what pages must not do, and lets them be."""

from __future__ import annotations

from pathlib import Path

from tests.browser import DESK, PHONE, OpenPage

BAD = """<!doctype html><html><head></head><body>
<img src='http://127.0.0.1:9/x.png'><div style='width: 4000px'>wide</div>
<script>console.error('bad'); throw new Error('worse')</script>
</body></html>"""
GOOD = """<!doctype html><html lang="en"><head><title>good</title><meta name="viewport" content="width=device-width">
<style>:root { color-scheme: light dark; --is: light }
@media (prefers-color-scheme: dark) { :root { --is: dark } }</style>
</head><body><main><h1>Good</h1><p>in words</p></main></body></html>"""


def written(folder: Path, text: str) -> Path:
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_a_page_must_not_do_is_noticed(open_page: OpenPage, tmp_path: Path) -> None:
    shown = open_page(written(tmp_path, BAD))
    assert any("the page asks http://127.0.0.1:9/x.png" in alarm for alarm in shown.alarms)
    assert any("the console says: bad" in alarm for alarm in shown.alarms)
    assert any("a script fails: worse" in alarm for alarm in shown.alarms)
    assert shown.overflow_px() > 0
    assert any(finding.startswith("image-alt (critical)") for finding in shown.findings_of_axe())
    shown.alarms.clear()  # else the fixture would fail this test, too


def test_a_host_that_a_test_names_may_be_asked(open_page: OpenPage, tmp_path: Path) -> None:
    shown = open_page(written(tmp_path, BAD), hosts=("127.0.0.1:9",))
    assert not any("the page asks" in alarm for alarm in shown.alarms)
    shown.alarms.clear()


def test_a_good_page_is_let_be_at_every_width_in_light_and_dark(open_page: OpenPage, tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    for width, scheme in ((DESK, "dark"), (PHONE, "light")):
        shown = open_page(path, width=width, scheme=scheme)
        assert shown.page.evaluate("innerWidth") == width
        assert shown.page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--is')") == scheme
        assert shown.words() == "Good in words"
        assert (shown.findings_of_axe(), shown.overflow_px(), shown.alarms) == ([], 0, [])
