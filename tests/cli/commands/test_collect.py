from __future__ import annotations

import click
import pytest

from kreassign.cli.commands.collect import paced, parse_duration
from kreassign.clock import VirtualClock


@pytest.mark.parametrize(
    ("text", "seconds"), [("5s", 5), ("500ms", 0.5), ("1.5m", 90), ("2h", 7200), ("7", 7), (" 3 s ", 3), ("0s", 0)]
)
def test_durations_are_read_with_their_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "5 parsecs", "-1s", "1s2s"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write for example 5s"):
        parse_duration(text)


def test_rounds_begin_at_even_times_and_a_slow_one_is_not_made_up_for() -> None:
    clock = VirtualClock()
    begun = []
    for number in paced(4, 10.0, clock):
        begun.append((number, clock.monotonic_s()))
        clock.sleep(25.0 if number == 2 else 3.0)
    assert begun == [(1, 0.0), (2, 10.0), (3, 35.0), (4, 38.0)]
