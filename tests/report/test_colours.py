"""Contrast of what pages write, computed from the colours of their style sheets: 4.5 to 1 for text (WCAG 2.1, AA)."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from kreassign import report, web
from kreassign.report.charts import Grid, heat_map

LEAST = 4.5
SHEETS = {
    "report": ("templates/page.css", "templates/charts.css"),
    "web": ("static/page.css",),
}
FOLDERS = {"report": Path(report.__file__).parent, "web": Path(web.__file__).parent}
MEDIA = {"light": "", "dark": "@media (prefers-color-scheme: dark) {", "paper": "@media print {"}
TEXTS = {
    "report": [("--ink", "--card"), ("--ink", "--page"),
               ("--soft", "--card"), ("--soft", "--page"), ("--bad", "--card")],
    "web": [("--ink", "--card"), ("--soft", "--card"), ("--soft", "--page"), ("--link", "--card"), ("--link", "--page"),
            ("--bad", "--page"), *(("--on-tone", tone) for tone in ("--good", "--bad", "--busy", "--idle"))],
}  # fmt: skip
GRID = Grid(("a",), ("b",), ((1.0,),), (("1",),))
SCALES = (
    heat_map(GRID),
    heat_map(GRID, middle=1.0, top=2.0),
    heat_map(GRID, top=1.0, colours=("--even", "--hot")),
)

Colour = tuple[float, ...]


def colours(pages: str, scheme: str) -> dict[str, Colour]:
    """The variables of the style sheets in a scheme: those of light where it says nothing else."""
    found: dict[str, Colour] = {}
    for sheet in SHEETS[pages]:
        text = (FOLDERS[pages] / sheet).read_text(encoding="utf-8")
        places = [text] if scheme == "light" else [text, text.partition(MEDIA[scheme])[2]]
        for place in places:
            block = re.search(r":root \{(.*?)\}", place, re.DOTALL)
            for name, value in re.findall(r"(--[a-z-]+): #([0-9a-f]{6});", block[1] if block else ""):
                found[name] = tuple(int(value[at : at + 2], 16) / 255 for at in (0, 2, 4))
    return found


def luminance(colour: Colour) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: Colour, other: Colour) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def between(one: Colour, other: Colour, part: float) -> Colour:
    return tuple(start + (end - start) * part for start, end in zip(one, other, strict=True))


@pytest.mark.parametrize("scheme", MEDIA)
def test_every_cell_of_a_heat_map_can_be_read(scheme: str) -> None:
    known = colours("report", scheme)
    for figure in SCALES:
        (trace,) = figure["data"]
        ink = known[trace["textfont"]["color"]]
        for (_, low), (_, high) in pairwise(trace["colorscale"]):
            cells = (between(known[low], known[high], part / 50) for part in range(51))
            assert min(contrast(ink, cell) for cell in cells) >= LEAST, (low, high)


@pytest.mark.parametrize(
    ("pages", "scheme"), [("report", "light"), ("report", "dark"), ("web", "light"), ("web", "dark")]
)
def test_text_can_be_read_on_what_is_behind_it(pages: str, scheme: str) -> None:
    known = colours(pages, scheme)
    assert {pair: contrast(*(known[name] for name in pair)) for pair in TEXTS[pages]
            if contrast(*(known[name] for name in pair)) < LEAST} == {}  # fmt: skip


def rules(sheet: Path) -> set[str]:
    found = re.findall(
        r"[^{}]+\{[^{}]*\}", re.sub(r"/\*.*?\*/", "", sheet.read_text(encoding="utf-8"), flags=re.DOTALL)
    )
    return {" ".join(rule.split()) for rule in found}


def test_what_reports_and_the_web_page_look_alike_in_is_said_once() -> None:
    own = rules(FOLDERS["report"] / "templates/page.css"), rules(FOLDERS["web"] / "static/page.css")
    assert own[0] & own[1] == set()
    assert any(rule.startswith(".wide {") for rule in rules(FOLDERS["report"] / "templates/shared/basis.css"))
