import time

from kreassign.clock import SystemClock, VirtualClock


def test_virtual_time_moves_only_by_waiting() -> None:
    clock = VirtualClock(start_ms=1_000_000)
    assert (clock.now_ms(), clock.monotonic_s()) == (1_000_000, 0.0)
    clock.sleep(2.5)
    assert (clock.now_ms(), clock.monotonic_s()) == (1_002_500, 2.5)


def test_virtual_waiting_takes_no_time() -> None:
    before = time.monotonic()
    VirtualClock().sleep(3600)
    assert time.monotonic() - before < 1


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
    before = time.time()
    assert abs(clock.now_ms() / 1000 - before) < 5
    first = clock.monotonic_s()
    clock.sleep(0.002)
    assert 0.002 <= clock.monotonic_s() - first < 5
