"""Meaning of an answer about clients, and the rate that follows from it."""

from __future__ import annotations

import pytest

from kreassign.errors import InputError
from kreassign.executor.client_guard import (
    EXIT_CODES,
    Backoff,
    ClientAnswer,
    ClientGuard,
    ClientQuery,
    ClientWatch,
    Comparison,
    Feeling,
    read_exit_code,
    slowed_rate,
    together,
)

P99 = ClientQuery.parse("histogram_quantile(0.99, sum by (le) (rate(x_bucket[1m]))) < 0.2")
GUARD = ClientGuard((P99,), "http://localhost:9090")
GOOD, BAD, UNKNOWN = (ClientAnswer("p99", feeling, f"it is {feeling}") for feeling in Feeling)
MINUTE_MS = 60_000


@pytest.mark.parametrize(("text", "query"), [
    ("a < 0.2", ClientQuery("a", Comparison.LESS, 0.2)),
    ("a<=5", ClientQuery("a", Comparison.AT_MOST, 5.0)),
    ("sum(a > 3) by (b)\n>= 1e-3 ", ClientQuery("sum(a > 3) by (b)", Comparison.AT_LEAST, 0.001)),
    ("a > -1", ClientQuery("a", Comparison.MORE, -1.0)),
])  # fmt: skip
def test_a_condition_is_split_at_its_last_comparison(text: str, query: ClientQuery) -> None:
    assert ClientQuery.parse(text) == query


@pytest.mark.parametrize("text", ["", "a", "a <", "< 1", "a < bool 1", "a == 1", "a < b", "a < 1.2.3", "a < inf"])
def test_a_condition_without_a_comparison_with_a_number_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no condition"):
        ClientQuery.parse(text)


@pytest.mark.parametrize(("condition", "value", "feeling"), [
    ("a < 0.2", 0.1, Feeling.GOOD),
    ("a < 0.2", 0.2, Feeling.BAD),
    ("a <= 0.2", 0.2, Feeling.GOOD),
    ("a > 5", 4.0, Feeling.BAD),
    ("a < 0.2", float("nan"), Feeling.UNKNOWN),
    ("a < 0.2", float("inf"), Feeling.BAD),
    ("a < 0.2", float("-inf"), Feeling.UNKNOWN),
    ("a > 5", float("inf"), Feeling.UNKNOWN),
    ("a > 5", float("-inf"), Feeling.BAD),
])  # fmt: skip
def test_a_value_is_good_only_if_it_is_finite_and_as_it_is_to_be(
    condition: str, value: float, feeling: Feeling
) -> None:
    assert ClientQuery.parse(condition).read(value).feeling is feeling


def test_a_bad_value_is_told_with_what_it_is_to_be() -> None:
    assert ClientQuery.parse("p99 < 0.2").read(0.41).seen == "p99 is 0.41, and is to be < 0.2"


@pytest.mark.parametrize("code", [*EXIT_CODES, 4, 42, 255, -9, -15])
def test_only_exit_code_zero_is_good(code: int) -> None:
    reading = read_exit_code(("./check",), code, "\n p99 0.4 s\nmore\n")
    assert (reading.feeling is Feeling.GOOD) == (code == 0)
    assert (reading.feeling is Feeling.BAD) == (code in {1, 2})
    assert ": p99 0.4 s" in reading.seen
    assert "more" not in reading.seen


def test_readings_are_good_together_only_if_each_is() -> None:
    assert together((GOOD, GOOD)) is Feeling.GOOD
    assert together((GOOD, UNKNOWN)) is Feeling.UNKNOWN
    assert together((UNKNOWN, BAD, GOOD)) is Feeling.BAD
    assert together(()) is Feeling.UNKNOWN


def test_a_guard_needs_a_query_or_a_command_and_queries_an_address() -> None:
    for wrong in ((), ((P99,),), ((), "http://localhost:9090")):
        with pytest.raises(InputError):
            ClientGuard(*wrong)
    assert ClientGuard(command=("./check", "-v")).sources == ("`./check -v`",)


@pytest.mark.parametrize(("url", "why"), [
    ("prometheus:9090", "is no address"),
    ("ftp://prometheus", "is no address"),
    ("https://prometheus:port", "is no address"),
    ("https://prometheus/?token=1", "is no address"),
    ("https://ops:secret@prometheus", "takes no user and password"),
    ("http://prometheus:9090", "would carry the login without TLS"),
])  # fmt: skip
def test_an_address_that_would_tell_a_secret_is_refused(url: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        ClientGuard((P99,), url, login_file="/etc/login")


def test_a_login_goes_to_this_machine_without_tls() -> None:
    for url in ("http://localhost:9090", "http://[::1]:9090", "https://prometheus/path"):
        assert ClientGuard((P99,), url, login_file="/etc/login").url == url
    assert ClientGuard((P99,), "http://prometheus:9090").login_file is None
    with pytest.raises(InputError, match="are for queries"):
        ClientGuard(command=("./check",), ca_file="/etc/ca")


def felt(backoff: Backoff, *feelings: Feeling, every_ms: int = MINUTE_MS, from_ms: int = 0) -> Backoff:
    for number, feeling in enumerate(feelings):
        backoff = backoff.after(feeling, from_ms + number * every_ms)
    return backoff


def test_a_rate_is_halved_at_once_and_each_minute_down_to_a_floor() -> None:
    bad = [Feeling.BAD] * 6
    assert [felt(Backoff(), *bad[:count]).percent for count in range(1, 6)] == [50, 25, 12, 10, 10]
    assert felt(Backoff(), *bad, every_ms=10_000).percent == 50


def test_a_rate_rises_by_a_twentieth_a_minute_up_to_the_whole() -> None:
    low = felt(Backoff(), Feeling.BAD)
    rises = [felt(low, *[Feeling.GOOD] * count, from_ms=MINUTE_MS).percent for count in (1, 2, 3, 11, 20)]
    assert rises == [50, 55, 60, 100, 100]
    assert felt(low, *[Feeling.GOOD] * 6, every_ms=10_000, from_ms=MINUTE_MS).percent == 50


def test_an_unknown_reading_never_raises_a_rate() -> None:
    low = felt(Backoff(), Feeling.BAD)
    mixed = [Feeling.GOOD, Feeling.UNKNOWN] * 20
    assert felt(low, *mixed, every_ms=30_000, from_ms=MINUTE_MS).percent == 50
    assert felt(Backoff(), *[Feeling.UNKNOWN] * 20).percent == 100


def test_an_operator_overrules_until_clients_feel_well_again() -> None:
    overruled = felt(Backoff(), Feeling.BAD, Feeling.BAD).overruled
    assert felt(overruled, Feeling.BAD, Feeling.UNKNOWN, Feeling.BAD, from_ms=5 * MINUTE_MS).percent == 100
    assert felt(overruled, Feeling.GOOD, Feeling.BAD, from_ms=5 * MINUTE_MS).percent == 50


def test_a_slowed_rate_is_enough_for_producers_within_that_of_the_run() -> None:
    assert slowed_rate(1_000, 50, 0) == 500
    assert slowed_rate(1_000, 10, 400) == 400
    assert slowed_rate(1_000, 10, 4_000) == 1_000
    assert slowed_rate(3, 10, 0) == 1


def test_what_clients_cost_is_told() -> None:
    watch = ClientWatch(GUARD)
    assert str(watch.cost) == "clients: it was neither held nor slowed for them"
    for minute, reading in enumerate((GOOD, BAD, BAD, GOOD, GOOD, UNKNOWN)):
        watch = watch.after((reading,), minute * MINUTE_MS, is_holding=True)
    assert (watch.cost.held_ms, watch.cost.slowed_ms) == (2 * MINUTE_MS, 4 * MINUTE_MS)
    # A minute at 50 %, two at 25 %, one at 30 %.
    assert watch.cost.slowdown_percent == 68
    assert str(watch.cost) == (
        "clients: held for 2 min, 68 % slower for 4 min, at 30 % of its rate now; the last reason: it is unknown"
    )


def test_a_guard_that_only_warns_slows_nothing() -> None:
    watch = ClientWatch(GUARD).after((BAD,), 0, is_holding=False).after((BAD,), MINUTE_MS, is_holding=False)
    assert (watch.backoff.percent, watch.cost.held_ms, watch.readings) == (100, 0, (BAD,))


def test_no_readings_at_all_are_unknown_in_a_run_that_asks() -> None:
    (reading,) = ClientWatch(GUARD).after((), 0, is_holding=True).readings
    assert (reading.source, reading.feeling, reading.seen) == (str(P99), Feeling.UNKNOWN, "it was not asked")
    assert ClientWatch().after((), 0, is_holding=True) == ClientWatch()
