from __future__ import annotations

from kreassign.cli.commands.collect import paced
from kreassign.clock import VirtualClock


def test_rounds_begin_at_even_times_and_a_slow_one_is_not_made_up_for() -> None:
    clock = VirtualClock()
    begun = []
    for number in paced(4, 10.0, clock):
        begun.append((number, clock.monotonic_s()))
        clock.sleep(25.0 if number == 2 else 3.0)
    assert begun == [(1, 0.0), (2, 10.0), (3, 35.0), (4, 38.0)]
