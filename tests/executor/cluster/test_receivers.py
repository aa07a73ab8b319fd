"""Brokers that receive nothing, and if lists may name them: read on twins, with odd answers in between."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from kreassign.admin import AdminClient
from kreassign.errors import ClusterError, IllegalPlan, Unreachable
from kreassign.executor.cluster.readings import read_log_dirs
from kreassign.executor.cluster.receivers import closures_of, read_closures
from kreassign.model import Batch, ConfigChange, ConfigResource, LogDir, NewTopic
from kreassign.model.closures import Closure
from kreassign.model.error_codes import INVALID_REPLICA_ASSIGNMENT, TOPIC_AUTHORIZATION_FAILED
from kreassign.model.pace import Pace
from kreassign.operations.plan import PlanRequest, make_plan
from kreassign.operations.plan_inputs import inputs_of_cluster
from kreassign.operations.plan_tasks import DrainBrokers
from kreassign.planner.problem.policy import PlanPolicy
from tests.executor.odd_port import Answer, OddPort, Real, as_it_is, refusal
from tests.executor.twin_runs import TwinRig, tp

SILENT, BINDING = Closure.CORDONED, Closure.CORDONED | Closure.BINDING
CORDON = {ConfigResource.broker(2): [ConfigChange.set("cordoned.log.dirs", "*")]}


def new_rig(folder: Path, release: str) -> TwinRig:
    return TwinRig(folder, [[0, 1], [2, 1]], release=release)


def cordon(rig: TwinRig) -> None:
    rig.client.incremental_alter_configs(CORDON).raise_if_any()


def one_differs(real: Real, brokers: Iterable[int]) -> Batch[int, frozenset[tuple[str, int, int]]]:
    """Broker 1 is of another release, as in a rolling upgrade."""
    found: Batch[int, frozenset[tuple[str, int, int]]] = real(brokers)
    return Batch({**found.ok, 1: frozenset({("metadata.version", 7, 33)})}, {})


def denied(real: Real, topics: Iterable[Any], **named: Any) -> Batch[str, None]:
    del real, named
    return Batch({}, {one.name: refusal(TOPIC_AUTHORIZATION_FAILED, one.name) for one in topics})


def like_another_release(real: Real, topics: Iterable[NewTopic], **named: Any) -> Batch[str, None]:
    """The controller answers the other way: a later 4.3 refuses as 4.4 does, and a 4.4 may come that does not."""
    answer: Batch[str, None] = real(topics, **named)
    if answer.failed:
        return Batch(dict.fromkeys(answer.failed), {})
    return Batch({}, {one.name: refusal(INVALID_REPLICA_ASSIGNMENT, one.name) for one in topics})


def lost(real: Real, *args: Any, **named: Any) -> None:
    del real, args, named
    raise Unreachable("no answer")


@pytest.mark.parametrize(("release", "method", "answer", "found"), [
    ("4.3", "create_topics", as_it_is, SILENT),
    ("4.4", "create_topics", as_it_is, BINDING),
    ("4.3", "create_topics", like_another_release, BINDING),
    ("4.4", "create_topics", like_another_release, SILENT),
    ("4.3", "offered_versions", one_differs, BINDING),
    ("4.3", "offered_versions", lost, BINDING),
    ("4.3", "create_topics", denied, BINDING),
    ("4.3", "create_topics", lost, BINDING),
])  # fmt: skip
def test_a_cordon_binds_if_all_brokers_know_it_and_the_controller_accepts(
    tmp_path: Path, release: str, method: str, answer: Answer, found: Closure
) -> None:
    rig = new_rig(tmp_path, release)
    cordon(rig)
    odd = OddPort(rig.client)
    odd.answer_always(method, answer)
    assert read_closures(odd.port, range(5)) == {2: found}
    assert [*rig.twin.metadata.topics] == ["t"]


def test_nothing_is_asked_where_every_broker_is_open(tmp_path: Path) -> None:
    rig = new_rig(tmp_path, "4.4")
    odd = OddPort(rig.client)
    log_dirs = read_log_dirs(odd.port, range(5), copies_of=())
    assert closures_of(odd.port, range(5), log_dirs.ok, {1}) == {1: Closure.MAINTENANCE}
    assert [method for method, _, _ in odd.calls] == ["describe_log_dirs"]


def none_of_2(real: Real, brokers: Iterable[int], **named: Any) -> Batch[int, tuple[LogDir, ...]]:
    found: Batch[int, tuple[LogDir, ...]] = real(brokers, **named)
    return Batch({broker: dirs for broker, dirs in found.ok.items() if broker != 2}, {2: ClusterError("busy")})


@pytest.mark.parametrize(("times", "found"), [(1, {}), (2, {2: Closure.UNREAD})])
def test_a_broker_that_does_not_answer_is_asked_twice(tmp_path: Path, times: int, found: dict[int, Closure]) -> None:
    odd = OddPort(new_rig(tmp_path, "4.4").client)
    odd.answer("describe_log_dirs", *[none_of_2] * times)
    assert read_closures(odd.port, range(5)) == found


@pytest.mark.parametrize(("release", "answer"), [("4.3", like_another_release), ("4.4", as_it_is)])
def test_a_plan_leaves_whole_what_the_controller_would_refuse(tmp_path: Path, release: str, answer: Answer) -> None:
    rig = new_rig(tmp_path, release)
    cordon(rig)
    odd = OddPort(rig.client)
    odd.answer_always("create_topics", answer)
    inputs = inputs_of_cluster(cast("AdminClient", odd), PlanPolicy(), measure_for_s=0.0, warn=lambda _: None)
    moved = make_plan(inputs, DrainBrokers((1,)), PlanRequest(allow_factor_change=True)).plan.replicas
    assert set(moved) == {tp(0), tp(1)}
    assert not {1, 2} & set(moved[tp(1)])


@pytest.mark.parametrize("release", ["4.3", "4.4"])
def test_a_run_is_refused_a_replica_on_a_cordoned_broker_like_kafka(tmp_path: Path, release: str) -> None:
    rig = new_rig(tmp_path, release)
    cordon(rig)
    if release == "4.3":
        assert rig.run(rig.prepared({1: (2, 0)})).state == "done"
        return
    with pytest.raises(IllegalPlan, match=r"t-1: broker 2 stays in its list, which changes, but .* Kafka 4.4, and 4.3"):
        rig.prepared({1: (2, 0)})
    rig.prepared({1: (0, 3)})
    with pytest.raises(IllegalPlan, match=r"t-1: broker 2 stays in a list between two steps, .* without --stepwise"):
        rig.prepared({1: (0, 3)}, pace=Pace(is_stepwise=True))
    assert rig.throttles == {}


def test_a_cordon_that_comes_after_the_checks_holds_the_moves(tmp_path: Path) -> None:
    rig = new_rig(tmp_path, "4.4")
    started = rig.prepared({0: (3, 1), 1: (2, 0)})
    cordon(rig)
    uncordon = {ConfigResource.broker(2): [ConfigChange.delete("cordoned.log.dirs")]}
    rig.between_steps(120, lambda: rig.client.incremental_alter_configs(uncordon).raise_if_any())
    found = rig.run(started)
    assert (found.state, rig.replicas) == ("done", {0: (3, 1), 1: (2, 0)})
    assert rig.transport.now_ms() - started.at_ms >= 120_000
