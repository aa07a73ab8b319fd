import time

from kreassign.clock import SteadyTime, SystemClock, VirtualClock


def test_virtual_time_moves_only_by_waiting() -> None:
    clock = VirtualClock(start_ms=1_000_000)
    assert (clock.now_ms(), clock.monotonic_s()) == (1_000_000, 0.0)
    clock.sleep(2.5)
    assert (clock.now_ms(), clock.monotonic_s()) == (1_002_500, 2.5)


def test_waiting_less_than_nothing_does_not_turn_time_back() -> None:
    clock = VirtualClock()
    clock.sleep(-1)
    assert clock.monotonic_s() == 0.0
    SystemClock().sleep(-1)


def test_many_small_steps_add_up() -> None:
    clock = VirtualClock()
    for _ in range(1000):
        clock.sleep(0.001)
    assert clock.now_ms() == 1000


def test_system_time_is_the_machines() -> None:
    clock = SystemClock()
    before, now, after = time.time_ns() // 1_000_000, clock.now_ms(), time.time_ns() // 1_000_000
    assert before <= now <= after
    first = clock.monotonic_s()
    clock.sleep(0.002)
    assert clock.monotonic_s() - first >= 0.002


def test_monotonic_time_runs_on_while_the_machine_sleeps() -> None:
    """No test lets its machine sleep, so the test compares the clock that counts sleep."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    before, now, after = time.clock_gettime(clock), SystemClock().monotonic_s(), time.clock_gettime(clock)
    assert before <= now <= after


class SetClock(VirtualClock):
    """A clock that people set."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


def test_steady_time_starts_at_the_wall_clock_and_ignores_its_steps() -> None:
    clock = SetClock(start_ms=1_000)
    time_of_run = SteadyTime(clock)
    clock.sleep(2)
    clock.ahead_ms = -3_600_000
    assert (time_of_run.now_ms(), time_of_run.ahead_ms()) == (3_000, -3_600_000)
    clock.sleep(2)
    assert time_of_run.now_ms() == 5_000


def test_steady_time_is_not_before_what_was_written_down() -> None:
    time_of_run = SteadyTime(VirtualClock(start_ms=1_000))
    time_of_run.begin_after(9_000)
    time_of_run.begin_after(8_000)
    assert (time_of_run.now_ms(), time_of_run.ahead_ms()) == (9_000, -8_000)


def test_steady_time_leaves_out_a_process_stopped_in_its_sleep() -> None:
    class Stopped(VirtualClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds + 120)

    time_of_run = SteadyTime(Stopped())
    time_of_run.sleep(1)
    assert (time_of_run.now_ms(), time_of_run.ahead_ms()) == (1_000, 120_000)
