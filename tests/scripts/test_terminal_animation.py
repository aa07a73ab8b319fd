"""The moving picture of README: made of what commands say, and shown without scripts."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from scripts.terminal_animation import COLUMNS, Line, picture, record


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ET.fromstring(svg).iter() if element.tag.endswith("}text")]


def test_the_picture_shows_each_line_as_it_stands() -> None:
    svg = picture([Line("command", "kreassign plan"), Line("output", "  0 B < 1 & 2"), Line("note", "Killed")])
    assert texts(svg) == ["$ kreassign plan", "  0 B < 1 & 2", "Killed"]
    assert len(re.findall(r"@keyframes l\d", svg)) == 2, "the first line stands there from the start"
    assert "<script" not in svg


def test_the_picture_keeps_commands_that_it_knows_and_the_kill() -> None:
    demo = [
        "── 1 of 2. Run", "$ export A=b", "$ kreassign snapshot --out s", "snapshot of 5 brokers",
        "$ kreassign run plan.json", "run 1", "moving", *(f"  t-{number} complete" for number in range(9)),
        "$ kill -9 7", "$ kreassign resume", f"run 1: done; {'very ' * 20}well", "next: kreassign verify 1",
    ]  # fmt: skip
    lines = record(demo)
    assert [(line.kind, line.text) for line in lines if line.kind != "output"] == [
        ("command", "kreassign run plan.json"), ("note", "$ kill -9 7"), ("note", "Killed"),
        ("command", "kreassign resume"),
    ]  # fmt: skip
    assert [line.text for line in lines if line.kind == "output"][:6] == [
        "run 1",
        *(f"  t-{n} complete" for n in range(5)),
    ]
    assert (lines[-1].text, max(len(line.text) for line in lines) <= COLUMNS) == (
        "    very very very very very well",
        True,
    )
