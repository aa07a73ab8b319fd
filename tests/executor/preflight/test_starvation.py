"""Throttles that are too low for what producers write."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.errors import IllegalPlan
from kreassign.executor.events import PlannedMove
from kreassign.executor.preview import ONE_AT_A_TIME, RateAdvice, Starvation, measure_writes, rate_advice, starved
from kreassign.executor.throttle_rates import CopiedPartition, demand, least_rate
from kreassign.model import TopicPartition
from kreassign.model.pace import Cap, Caps
from kreassign.model.text import least_rate_option, parse_amount
from kreassign.model.throttle import BrokerRate, ThrottleRates
from kreassign.operations.run_outlook import check_rates, measured
from tests.approved import approve
from tests.executor.odd_port import OddPort, as_it_is, each_refused
from tests.executor.twin_runs import TwinRig, tp
from tests.twin.asking import MEGABYTES

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ONE = PlannedMove(T0, (0, 1), (2, 1), 1_000)
TWO = PlannedMove(T1, (0, 1), (2, 3), 1_000)


def test_a_rate_of_five_quarters_of_what_fetches_take_of_it_is_enough() -> None:
    assert starved([ONE], {T0: 40.0}, ThrottleRates(100)) == ()
    assert starved([ONE], {}, ThrottleRates(100)) == ()


def test_a_leader_sends_writes_and_copies_from_one_budget() -> None:
    assert starved([ONE], {T0: 50.0}, ThrottleRates(100)) == (
        Starvation("t-0", 100.0, 100, is_certain=True, streams=2),
    )
    assert starved([TWO], {T1: 40.0}, ThrottleRates(100)) == (
        Starvation("t-1", 120.0, 100, is_certain=True, streams=3),
    )


def test_the_only_replica_of_a_partition_sends_to_nobody_else() -> None:
    alone = PlannedMove(T0, (0,), (2,), 1_000)
    assert starved([alone], {T0: 80.0}, ThrottleRates(100)) == ()
    assert starved([alone], {T0: 100.0}, ThrottleRates(100)) == (Starvation("t-0", 100.0, 100, is_certain=True),)


def test_a_rate_that_leaves_little_for_the_copy_is_doubtful() -> None:
    (found,) = starved([ONE], {T0: 45.0}, ThrottleRates(100))
    assert not found.is_certain
    assert rate_advice([ONE], {T0: 45.0}).bytes_per_s == 113
    assert "t-0: at 100 B/s it may never end, for" in str(found)


def test_brokers_with_too_much_traffic_at_a_time_are_named() -> None:
    found = starved([ONE, TWO], {T0: 40.0, T1: 20.0}, ThrottleRates(100))
    assert [(one.subject, one.needed_bytes_per_s, one.is_certain) for one in found] == [("broker 0", 140.0, False)]
    assert "may never end if all its copies go at the same time" in str(found[0])


def test_a_partition_that_only_changes_its_order_needs_nothing() -> None:
    assert starved([PlannedMove(T0, (0, 1), (1, 0), 1_000)], {T0: 500.0}, ThrottleRates(100)) == ()


def test_the_sentence_names_what_is_written_and_how_often_it_is_sent() -> None:
    three = PlannedMove(T0, (0, 1, 2), (0, 1, 3), 1_000)
    (found,) = starved([three], {T0: 198_000.0}, ThrottleRates(300_000))
    approve([found], "starvation")


def test_advice_names_the_rate_for_all_moves_and_for_one_at_a_time() -> None:
    advice = rate_advice([ONE, TWO], {T0: 40.0, T1: 20.0})
    assert advice == RateAdvice(bytes_per_s=175, one_at_a_time_bytes_per_s=100)
    approve([advice], "rate-advice")
    assert starved([ONE, TWO], {T0: 40.0, T1: 20.0}, ThrottleRates(175)) == ()
    assert "or" not in str(rate_advice([ONE], {T0: 40.0})).split()


@pytest.mark.parametrize(("caps", "least"), [
    (Caps(cluster=Cap(moves=1)), 100),
    (Caps(source=Cap(moves=1)), 100),
    (Caps(destination=Cap(moves=1)), 175),
    (Caps(cluster=Cap(moves=2)), 175),
])  # fmt: skip
def test_moves_that_limits_keep_apart_do_not_add_up(caps: Caps, least: int) -> None:
    writes = {T0: 40.0, T1: 20.0}
    assert rate_advice([ONE, TWO], writes, caps).bytes_per_s == least
    assert starved([ONE, TWO], writes, ThrottleRates(least), caps) == ()
    assert starved([ONE, TWO], writes, ThrottleRates(least - 1), caps) != ()


@given(
    st.lists(st.tuples(st.permutations(range(5)), st.integers(1, 3), st.integers(1, 3), st.floats(1, 1e6)), min_size=1),
    st.none() | st.integers(1, 4),
)
def test_at_the_rate_that_is_advised_nothing_is_told_to_be_too_low(
    drawn: list[tuple[list[int], int, int, float]], most: int | None
) -> None:
    moves = [
        PlannedMove(TopicPartition("t", number), tuple(order[:old]), tuple(order[old : old + new]), 1)
        for number, (order, old, new, _) in enumerate(drawn)
    ]
    writes = {TopicPartition("t", number): written for number, (*_, written) in enumerate(drawn)}
    caps = Caps(cluster=Cap(moves=most))
    advice = rate_advice(moves, writes, caps)
    assert starved(moves, writes, ThrottleRates(advice.bytes_per_s), caps) == ()
    assert starved(moves, writes, ThrottleRates(advice.one_at_a_time_bytes_per_s), ONE_AT_A_TIME) == ()


@pytest.mark.parametrize(
    ("rate", "is_refused"), [(150_000, True), (300_000, True), (500_000, True), (9_000_000, False)]
)
def test_rates_that_were_seen_to_be_too_low_on_real_brokers_are_refused(rate: int, is_refused: bool) -> None:
    """Three replicas, one of them moved, written at 198 kB/s: of these only 9 MB/s came to its end (Kafka 4.3.1)."""
    found = starved([PlannedMove(T0, (0, 1, 2), (0, 1, 3), 1_000)], {T0: 198_000.0}, ThrottleRates(rate))
    assert any(one.is_certain for one in found) is is_refused


def test_a_broker_is_judged_by_its_own_rate() -> None:
    slow = BrokerRate(2, 50)
    assert starved([ONE], {T0: 60.0}, ThrottleRates(None, (slow,))) == (Starvation("t-0", 60.0, 50, is_certain=True),)
    assert starved([ONE], {T0: 60.0}, ThrottleRates(50, (BrokerRate(0, 150), BrokerRate(2, 80)))) == ()


def test_a_source_without_a_limit_slows_nothing() -> None:
    assert starved([TWO], {T1: 60.0}, ThrottleRates(100, (BrokerRate(0, None),))) == ()


@pytest.mark.thorough
@pytest.mark.parametrize(("replicas", "copies", "partitions"), [(1, 1, 1), (2, 1, 1), (3, 1, 1), (2, 2, 1), (3, 1, 4)])
def test_the_least_rate_works_on_the_twin_and_a_lower_one_never_ends(
    tmp_path: Path, replicas: int, copies: int, partitions: int
) -> None:
    written = 400_000
    old = tuple(range(replicas))
    new = (*range(3, 3 + copies), *old[copies:])
    moves = [PlannedMove(TopicPartition("t", number), old, new, 1) for number in range(partitions)]
    needed = demand(
        CopiedPartition(written, move.original[0], replicas - 1, move.adding) for move in moves
    ).most_bytes_per_s

    def ends(folder: str, rate: int) -> bool:
        lists = [list(old)] * partitions
        rig = TwinRig(tmp_path / folder, lists, size_bytes=20 * MEGABYTES, write_bytes_per_s=written)
        rig.stop_after(600)
        return rig.run(rig.prepared(dict.fromkeys(range(partitions), new), throttle=rate)).state == "done"

    assert ends("enough", least_rate(needed))
    assert not ends("too low", int(0.8 * needed))


def test_a_run_that_would_never_end_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], write_bytes_per_s=50_000)
    slow, fast = rig.prepared({0: (2, 1)}, throttle=80_000), rig.prepared({0: (2, 1)}, throttle=140_000)
    with pytest.raises(IllegalPlan, match=r"t-0: at 80 kB/s it never ends, for producers write \d+ kB/s") as refused:
        measured(rig.client, slow, 20, rig.transport)
    assert [sentence for sentence in refused.value.violations if "the least rate that works" in sentence] == [
        refused.value.violations[0]
    ]
    measured(rig.client, fast, 20, rig.transport)
    assert rig.throttles == {}


def test_a_rate_that_may_be_too_low_is_warned_of_with_one_advice(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [0, 1]], write_bytes_per_s=50_000)
    said: list[str] = []
    measured(rig.client, rig.prepared({0: (2, 1), 1: (3, 1)}, throttle=140_000), 20, rig.transport, said.append)
    warning, advice = said
    assert warning.startswith("broker 0: ")
    assert "250kB/s, or 125kB/s with --max-moves 1" in advice


def test_of_many_copies_that_may_never_end_the_first_are_named(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]] * 30, write_bytes_per_s=50_000)
    started = rig.prepared(dict.fromkeys(range(30), (2, 1)), throttle=120_000)
    found = check_rates(started, dict.fromkeys(map(tp, range(30)), 50_000.0))
    assert (len(found), found[20]) == (22, "and 10 more partitions or brokers")


def test_writes_are_measured_over_a_while(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], write_bytes_per_s=50_000)
    started = rig.prepared({0: (2, 1)})
    found = measure_writes(rig.client, rig.transport, started.moves, 20)
    assert found.known[tp(0)] == pytest.approx(50_000, rel=0.1)


@pytest.mark.parametrize("number", [0, 1, 2], ids=["ends", "starts", "later ends"])
def test_a_write_rate_that_is_not_known_is_no_rate_of_nothing(tmp_path: Path, number: int) -> None:
    """A leader that hangs is asked again. If it stays silent, nobody knows whether the throttle is enough."""
    rig = TwinRig(tmp_path, [[0, 1], [0, 1]], write_bytes_per_s=50_000)
    slow = rig.prepared({0: (2, 1), 1: (2, 1)}, throttle=80_000)
    port, silent = OddPort(rig.client), each_refused(-1)
    before = [as_it_is] * number
    port.answer("list_offsets", *before, silent)
    with pytest.raises(IllegalPlan, match="never ends"):
        measured(port.port, slow, 20, rig.transport)
    port.answer("list_offsets", *before, silent, silent)
    with pytest.raises(IllegalPlan, match="nobody can tell whether its copy would end at this throttle") as refused:
        measured(port.port, slow, 20, rig.transport)
    (sentence,) = refused.value.violations
    assert sentence.startswith("2 partitions (t-0, t-1) each has a leader that does not say how much is written to it")


@pytest.mark.parametrize(("rate", "option"), [
    (0, "0B/s"), (999, "999B/s"), (1_688, "1.69kB/s"), (40_584_125, "40.6MB/s"), (99_999_999, "100MB/s"),
    (999_900_000, "1GB/s"),
])  # fmt: skip
def test_an_advised_rate_is_an_option_value_that_suffices(rate: int, option: str) -> None:
    assert least_rate_option(rate) == option
    assert parse_amount(option) >= rate
