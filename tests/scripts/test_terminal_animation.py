"""The moving picture of README: made of what commands say, and shown without scripts."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from scripts.terminal_animation import COLUMNS, Line, picture, record


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ET.fromstring(svg).iter() if element.tag.endswith("}text")]


def test_the_picture_shows_each_line_as_it_stands() -> None:
    svg = picture([Line("command", "kreassign plan"), Line("output", "  0 B < 1 & 2"), Line("note", "Killed")])
    assert texts(svg) == ["$ kreassign plan", "  0 B < 1 & 2", "Killed"]
    assert len(re.findall(r"@keyframes l\d", svg)) == 2, "the first line stands there from the start"
    assert "<script" not in svg


def test_the_recording_kills_a_run_and_resumes_it(tmp_path: Path) -> None:
    lines = record(tmp_path, "--speed", "4")
    commands = [line.text.split()[1] for line in lines if line.kind == "command"]
    assert commands == ["plan", "run", "status", "resume", "verify", "doctor"]
    shown = "\n".join(line.text for line in lines)
    for words in (
        "Killed",
        "its process is gone",
        "throttle in force",
        ": done; ",
        "all as planned",
        "all is well",
    ):
        assert words in shown, shown
    assert max(len(line.text) for line in lines) <= COLUMNS
