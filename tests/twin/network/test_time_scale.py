import pytest

from kreassign.twin.network.time_scale import TimeScale


def test_time_runs_beside_the_machine_at_its_speed() -> None:
    pace = TimeScale(speed=10.0, real_start_s=100.0, twin_start_ms=5_000)
    assert pace.twin_ms(100.0) == 5_000
    assert pace.twin_ms(102.5) == 30_000


def test_an_event_is_waited_for_as_long_as_it_takes_at_that_speed() -> None:
    pace = TimeScale(speed=10.0, real_start_s=100.0, twin_start_ms=5_000)
    assert pace.real_s_until(30_000, 100.0) == pytest.approx(2.5)
    assert pace.real_s_until(30_000, 102.0) == pytest.approx(0.5)
    assert pace.real_s_until(30_000, 103.0) == 0.0
