"""A broker that is lost for good locks nobody out: its settings are given up, by request or because it is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kreassign.errors import InputError, Rejected
from kreassign.executor.events import BrokersForgotten, ThrottleRestored
from kreassign.executor.history.run_history import read_history, refuse_if_interrupted_runs
from kreassign.executor.journal import Journal, read_events
from kreassign.model import Batch, ConfigChange, ConfigResource
from kreassign.model.error_codes import BROKER_ID_NOT_REGISTERED
from kreassign.operations.run_journals import forget_brokers
from tests.executor.twin_runs import RATE, TwinRig

pytestmark = pytest.mark.thorough

LEFT = f"follower.replication.throttled.rate of broker 2 is still '{RATE // 8}'; before the run it was not set"
WAS_LEFT = LEFT.replace("is still", "was still")


class ForgetfulControllers:
    """Controllers that do not know a broker any more."""

    def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Sequence[ConfigChange]], **_: object
    ) -> Batch[ConfigResource, None]:
        refusal = Rejected(
            "The given broker ID was not registered.",
            api="INCREMENTAL_ALTER_CONFIGS",
            code=BROKER_ID_NOT_REGISTERED,
            name="BROKER_ID_NOT_REGISTERED",
        )
        return Batch({}, dict.fromkeys(changes, refusal))


def lost(rig: TwinRig) -> None:
    """A run whose destination died for good, so that its rate cannot be restored there."""
    rig.after(4, lambda: rig.twin.crash(2))
    found = rig.run(rig.prepared({0: (2, 1), 1: (3, 0)}, throttle=RATE // 8))
    assert found.throttle_residue == (LEFT,)


def test_a_run_whose_broker_is_forgotten_is_in_nobodys_way(rig: TwinRig) -> None:
    lost(rig)
    with pytest.raises(InputError, match="kreassign forget run-1 --broker"):
        refuse_if_interrupted_runs(rig.state_dir, rig.twin.cluster_id)
    found = forget_brokers(rig.path(), (2,), rig.transport)
    assert (found.left_behind, found.residue) == ((LEFT,), ())
    refuse_if_interrupted_runs(rig.state_dir, rig.twin.cluster_id)
    history = read_history(rig.path())
    assert history.throttle_residue == ()
    assert any(WAS_LEFT in problem and "given up as lost by " in problem for problem in history.problems)
    with pytest.raises(InputError, match="nothing to resume"):
        rig.resume()
    last = read_events(rig.path())[-1]
    assert isinstance(last, BrokersForgotten)
    assert (last.brokers, last.operator is not None) == ((2,), True)


def test_what_is_left_elsewhere_is_still_restored_by_a_resumed_run(rig: TwinRig) -> None:
    rig.stop_after(4)
    rig.run(rig.prepared({0: (2, 1), 1: (3, 0)}, throttle=RATE // 2))
    rig.twin.crash(2)
    found = forget_brokers(rig.path(), (2,), rig.transport)
    assert len(found.left_behind) == 1
    assert len(found.residue) == 5
    done = rig.resume()
    assert [move.status for move in done.moves] == ["failed", "complete"]
    assert done.throttle_residue == ()
    assert list(rig.throttles) == ["broker 2 follower.replication.throttled.rate"]


@pytest.mark.parametrize(("others", "is_kept"), [(None, False), (str(RATE // 2 + 1), True)])
def test_a_forgotten_broker_that_is_back_gets_its_old_rate(rig: TwinRig, others: str | None, *, is_kept: bool) -> None:
    rig.stop_after(4)
    rig.run(rig.prepared({0: (2, 1), 1: (3, 0)}, throttle=RATE // 2))
    rig.twin.crash(2)
    forget_brokers(rig.path(), (2,), rig.transport)
    rig.twin.start(2)
    rig.transport.sleep(30)
    rate = "broker 2 follower.replication.throttled.rate"
    if others is not None:
        changes = {ConfigResource.broker(2): [ConfigChange.set("follower.replication.throttled.rate", others)]}
        rig.client.incremental_alter_configs(changes).raise_if_any()
    assert rig.resume().state == "done"
    assert rig.throttles == ({rate: others} if is_kept else {})


def test_forget_names_the_brokers_with_something_to_restore(rig: TwinRig) -> None:
    lost(rig)
    before = read_events(rig.path())
    with pytest.raises(InputError, match=r"nothing to restore on broker 4; it has on broker 2"):
        forget_brokers(rig.path(), (4,), rig.transport)
    assert read_events(rig.path()) == before


def test_a_run_that_goes_on_forgets_nothing(rig: TwinRig) -> None:
    lost(rig)
    with Journal.resume(rig.path(), rig.twin.cluster_id)[0], pytest.raises(InputError, match="run run-1 is active"):
        forget_brokers(rig.path(), (2,), rig.transport)


def test_an_unknown_broker_is_forgotten_without_asking_it(rig: TwinRig) -> None:
    lost(rig)
    rig.controllers = ForgetfulControllers()
    found = rig.resume()
    assert found.throttle_residue == ()
    assert any(WAS_LEFT in problem and "did not know that broker any more" in problem for problem in found.problems)
    assert [event.unregistered for event in rig.seen if isinstance(event, ThrottleRestored)][-1] == (2,)
    refuse_if_interrupted_runs(rig.state_dir, rig.twin.cluster_id)


def test_an_unregistered_broker_is_forgotten_without_a_controller(rig: TwinRig) -> None:
    lost(rig)
    rig.client.unregister_broker(2)
    found = rig.resume()
    assert found.throttle_residue == ()
    assert any(WAS_LEFT in problem and "did not know that broker any more" in problem for problem in found.problems)
    refuse_if_interrupted_runs(rig.state_dir, rig.twin.cluster_id)
