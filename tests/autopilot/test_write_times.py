"""Brokers whose writes take long by a metric of Prometheus, though no replica falls out of sync."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from kreassign.autopilot.events import Name
from kreassign.autopilot.observation import Asked, Known, Observation, Unknown, WriteTime
from kreassign.autopilot.policy import Kind, parse_policy
from kreassign.clock import VirtualClock
from kreassign.operations.autopilot_looks import write_times
from tests.autopilot.test_judgement import SLOW_3, lagging
from tests.autopilot.test_scenarios import LISTS
from tests.autopilot.values import HOUR, MINUTE, Watched, cluster
from tests.monitoring.prometheus import FakePrometheus, prometheus, success

POLICY = "[slow-broker]\nlevel = 'act'\nmetric = 'flush_p999'\n[clients]\nurl = 'https://prometheus:9090'\n"
WELL = dict.fromkeys(range(9), WriteTime(0.1, 0.2))


def watched_with(times: Asked[Mapping[int, WriteTime]]) -> Watched:
    """A cluster of nine brokers whose write times are these from the first hour to the second."""

    def seen(now_s: float) -> Asked[Mapping[int, WriteTime]]:
        return times if HOUR <= now_s < 2 * HOUR else Known(WELL)

    return Watched(POLICY, lambda now_s: replace(cluster(0, LISTS), write_times=seen(now_s)))


@pytest.mark.parametrize(("own", "usual", "others", "is_slow"), [
    (2.0, 0.2, 0.1, True),
    (float("inf"), 0.2, 0.1, True),
    (0.9, 0.2, 0.1, False),  # below the least time
    (2.0, 0.8, 0.1, False),  # as on each evening
    (2.0, 0.2, 0.8, False),  # as all others now
])  # fmt: skip
def test_leaders_leave_a_broker_whose_writes_take_long(
    own: float, usual: float, others: float, *, is_slow: bool
) -> None:
    times = {**dict.fromkeys(range(9), WriteTime(others, 0.2)), 3: WriteTime(own, usual)}
    watched = watched_with(Known(times))
    watched.watch(2 * HOUR)
    assert watched.runs == ([SLOW_3] if is_slow else [])


def test_many_brokers_with_long_writes_are_only_told() -> None:
    watched = watched_with(Known({**WELL, 3: WriteTime(2.0, 0.2), 4: WriteTime(2.0, 0.2)}))
    watched.watch(2 * HOUR)
    assert watched.runs == []
    (gates,) = {one.gates for one in watched.memory.open if one.name == SLOW_3}
    assert gates is not None
    assert ("people", "22% of the brokers are slow at once: people decide") in gates.closed


@pytest.mark.parametrize(
    "silent",
    [
        Unknown("no answer"),
        Known({broker: WELL[broker] for broker in WELL if broker != 3}),
        Known({broker: WELL[broker] for broker in (3, 4)}),
    ],
)
def test_a_slow_broker_is_not_well_while_its_metric_is_silent(silent: Asked[Mapping[int, WriteTime]]) -> None:
    slow = Known({**WELL, 3: WriteTime(2.0, 0.2)})

    def world(now_s: float) -> Asked[Mapping[int, WriteTime]]:
        return slow if now_s < 20 * MINUTE else silent

    watched = Watched("[slow-broker]\nlasting = '10m'\nmetric = 'm'\n[clients]\nurl = 'https://p:9090'\n",
                      lambda now_s: replace(cluster(0, LISTS), write_times=world(now_s)))  # fmt: skip
    watched.watch(3 * HOUR)
    assert SLOW_3 in {one.name for one in watched.memory.open}
    (told,) = (one.what for one in watched.messages if one.name == Name(Kind.UNREAD, "write times"))
    assert "write times of broker" in told


@pytest.mark.parametrize("times", [{**WELL, 3: WriteTime(2.0, 2.0)}, {3: WELL[3], 4: WELL[4]}])
def test_a_broker_out_of_sync_is_well_in_sync_whatever_its_writes_take(times: Mapping[int, WriteTime]) -> None:
    """As long as on each day, or where too few others are known: it was told for replicas out of sync alone."""

    def world(now_s: float) -> Observation:
        seen = replace(cluster(0, LISTS), write_times=Known(times))
        return lagging(seen) if now_s < HOUR else seen

    watched = Watched("[slow-broker]\nmetric = 'm'\n[clients]\nurl = 'https://p:9090'\n", world)
    watched.watch(3 * HOUR)
    assert [one.is_over for one in watched.messages if one.name == SLOW_3] == [False, True]


def test_write_times_that_come_back_end_their_finding() -> None:
    def world(now_s: float) -> Asked[Mapping[int, WriteTime]]:
        return Unknown("no answer") if HOUR <= now_s < 2 * HOUR else Known(WELL)

    watched = Watched("[slow-broker]\nmetric = 'm'\n[clients]\nurl = 'https://p:9090'\n",
                      lambda now_s: replace(cluster(0, LISTS), write_times=world(now_s)))  # fmt: skip
    watched.watch(3 * HOUR)
    unread = Name(Kind.UNREAD, "write times")
    assert [one.is_over for one in watched.messages if one.name == unread] == [False, True]
    assert unread not in {one.name for one in watched.memory.open}


def test_a_broker_that_stays_slow_is_not_well_once_that_is_usual() -> None:
    """After 17 hours a tenth of its week is slow."""
    times = {**WELL, 3: WriteTime(2.0, 0.2)}

    def world(now_s: float) -> Asked[Mapping[int, WriteTime]]:
        return Known(times if now_s < 17 * HOUR else {**WELL, 3: WriteTime(2.0, 2.0)})

    watched = Watched("[slow-broker]\nmetric = 'm'\n[clients]\nurl = 'https://p:9090'\n",
                      lambda now_s: replace(cluster(0, LISTS), write_times=world(now_s)))  # fmt: skip
    watched.watch(24 * HOUR)
    assert SLOW_3 in {one.name for one in watched.memory.open}


def answered(server: FakePrometheus, *series: tuple[dict[str, str], str], policy: str = "") -> object:
    """Return the write times of a look where Prometheus answers each query with these series."""
    server.answer = success("vector", [{"metric": labels, "value": [0, value]} for labels, value in series])
    text = POLICY.replace("https://prometheus:9090", server.url)
    return write_times(parse_policy(f"{text}{policy}", "p.toml"), VirtualClock())


def test_write_times_are_read_by_the_label_with_the_broker() -> None:
    with prometheus() as server:
        found = answered(server, ({"broker": "3"}, "0.2"), ({"broker": "4"}, "NaN"), ({"broker": "5"}, "+Inf"))
        assert found == Known({3: WriteTime(0.2, 0.2), 5: WriteTime(float("inf"), float("inf"))})
        assert [one.query for one in server.asked] == ["flush_p999", "quantile_over_time(0.9, (flush_p999)[7d:10m])"]


@pytest.mark.parametrize(("series", "why"), [
    ([], "the query yields no series"),
    ([({"broker": "3"}, "1"), ({"broker": "3"}, "2")], "the query yields 2 series, some with the same label broker"),
    ([({"instance": "b3:9404"}, "1")], "label broker of the metric has no ids of brokers"),
    ([({"broker": "three"}, "1")], "label broker of the metric has no ids of brokers"),
    ([({"broker": "3"}, "1"), ({"broker": "03"}, "2")], "some series have the same broker as label broker"),
])  # fmt: skip
def test_series_that_name_no_brokers_are_unknown(series: list[tuple[dict[str, str], str]], why: str) -> None:
    with prometheus() as server:
        assert answered(server, *series) == Unknown(why)


@pytest.mark.parametrize(("status", "answer", "why"), [
    (503, "", "Prometheus answered 503: these are no series"),
    (401, "Unauthorized", "Prometheus answered 401: the login is refused"),
    (200, json.dumps({"status": "error", "error": "parse error"}), "Prometheus refuses the query: parse error"),
    (200, success("scalar", [0, "1"]), "Prometheus answered 200: these are no series"),
    (200, success("vector", [], warnings=["store is away"]), "Prometheus warns that data may be missing"),
])  # fmt: skip
def test_an_answer_without_series_is_unknown(status: int, answer: str, why: str) -> None:
    with prometheus() as server:
        server.status, server.answer = status, answer
        found = write_times(parse_policy(POLICY.replace("https://prometheus:9090", server.url), "p"), VirtualClock())
        assert isinstance(found, Unknown)
        assert found.why.startswith(why)
    found = write_times(parse_policy(POLICY.replace("https://prometheus:9090", server.url), "p"), VirtualClock())
    assert isinstance(found, Unknown)
    assert found.why.startswith("Prometheus could not be asked: ")
