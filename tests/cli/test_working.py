from __future__ import annotations

import io
import sys

import pytest

from kreassign.cli.streams import PLAIN_EVERY_S, WorkingLine


class Terminal(io.StringIO):
    """An error stream that somebody looks at."""

    def isatty(self) -> bool:
        return True


class HandClock:
    """Time that goes on by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now_ms(self) -> int:
        return round(1000 * self.seconds)

    def monotonic_s(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def test_on_a_terminal_one_line_is_replaced_until_results_come(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    working = WorkingLine(HandClock())
    working.say("starting Spark")
    assert terminal.getvalue() == ""
    for text in ("samples: 1 of 9 tasks", "samples: 2 of 9 tasks"):
        working.show(text)
    working.say("samples: 3 rows")
    working.end()
    erase = "\r\x1b[2K"
    assert terminal.getvalue() == f"{erase}samples: 1 of 9 tasks{erase}samples: 2 of 9 tasks{erase}"
    assert capsys.readouterr().out == "starting Spark\nsamples: 3 rows\n"
    working.show("again")
    working.end()
    assert terminal.getvalue().endswith(f"again{erase}")


def test_without_a_terminal_a_line_a_minute_and_none_for_quick_work(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = HandClock()
    working = WorkingLine(clock)
    for second in range(150):
        clock.seconds = float(second)
        working.show(f"load_hours: {second} of 150 tasks")
    working.end()
    minute = round(PLAIN_EVERY_S)
    assert capsys.readouterr().err.splitlines() == [
        f"working: load_hours: {second} of 150 tasks" for second in (minute, 2 * minute)
    ]
