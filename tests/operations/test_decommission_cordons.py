"""Cordons of a decommission: whose they are, what a cancel takes back, and the notes that say so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from kreassign.admin import AdminClient
from kreassign.errors import ClusterError, Infeasible, InputError, JournalDamaged
from kreassign.executor.brokers import CORDON, Blocked
from kreassign.executor.history.run_history import read_history
from kreassign.executor.journal.folder import cluster_folder, make_folder
from kreassign.executor.lease import OFFSETS_TOPIC
from kreassign.executor.maintenance.record import MaintenanceRecord
from kreassign.model import Batch, ConfigChange, ConfigResource, NewTopic
from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED, INVALID_CONFIG, TOPIC_AUTHORIZATION_FAILED
from kreassign.operations.broker_changes import (
    CORDONS,
    DECOMMISSIONED,
    MaintenanceStore,
    noted_cordons,
    noted_decommissions,
)
from kreassign.operations.decommission import WITHOUT_PLAN, DecommissionRequest
from kreassign.operations.decommission_undo import cancel_decommission, uncordon_drained
from kreassign.operations.doctor import diagnose_cluster
from kreassign.operations.maintenance import Way, maintain
from kreassign.operations.run_journals import kept_facts_path
from kreassign.wire import api
from tests.executor.odd_port import Answer, OddPort, Real, lost_on_the_way_back, refusal, refused
from tests.executor.twin_runs import TwinRig, tp
from tests.operations.decommissions import (
    BROKER,
    KEY,
    OF_3,
    Killed,
    Operators,
    VirtualRuns,
    close,
    die,
    die_while_draining,
    is_opened,
    kill_while_moving,
    of_release,
)


def test_a_broker_is_unknown_after_its_decommission_was_cancelled(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    assert operators.decommission().is_finished
    operators.cancel()
    operators.stop()
    operators.rig.client.unregister_broker(3)
    with pytest.raises(InputError, match="broker 3 is not known"):
        operators.decommission(unregisters=True)


@pytest.mark.parametrize("note", [DECOMMISSIONED, CORDONS])
@pytest.mark.parametrize("garbled", [b"7 \x80", b"7 seven"])
def test_a_note_of_brokers_that_cannot_be_read_is_not_replaced(tmp_path: Path, note: str, garbled: bytes) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    folder = cluster_folder(tmp_path, operators.rig.client.describe_cluster().cluster_id)
    make_folder(folder)
    (folder / note).write_bytes(garbled)
    with pytest.raises(InputError, match=note):
        operators.decommission()
    assert ((folder / note).read_bytes(), operators.cordon) == (garbled, None)


def garble(operators: Operators, note: str) -> Path:
    """Damage a note of this state directory; its path."""
    path = cluster_folder(operators.rig.state_dir, operators.rig.twin.cluster_id) / note
    with path.open("ab") as file:
        file.write(b" \x80")
    return path


def test_no_broker_is_called_unknown_by_a_note_that_cannot_be_read(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    operators.empty_and_stop()
    assert operators.decommission(unregisters=True).is_finished
    note = garble(operators, DECOMMISSIONED)
    with pytest.raises(InputError, match=str(note)):
        operators.preview()


def test_without_a_controller_the_cordon_outlives_the_broker(operators: Operators) -> None:
    rig = operators.rig
    operators.empty_and_stop()
    assert operators.decommission(unregisters=True).is_finished
    assert "a broker that is started with it is cordoned until `kreassign decommission 3 --cancel`" in operators.said[1]
    rig.twin.start(3)
    rig.transport.sleep(30)
    assert operators.cancel() == ("uncordon broker 3",)


def test_a_cancel_of_an_unregistered_broker_names_no_refused_way(operators: Operators) -> None:
    """The controller takes settings of registered brokers alone."""
    operators.empty_and_stop()
    assert operators.decommission(unregisters=True).is_finished
    for reach in (lambda: None, operators.rig.let_reach_controllers):
        reach()
        with pytest.raises(InputError, match=f"broker 3 is not registered, and Kafka takes {KEY} of registered"):
            operators.cancel()


def test_the_drain_is_planned_before_the_cordon_once_others_move_nothing(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1, 2, 3, 4], [0, 1]]))
    operators.rig.client.alter_partition_reassignments({tp(1): (0, 3)}).raise_if_any()
    with pytest.raises(Infeasible, match=r"t-0|replica"):
        operators.decommission()
    assert operators.said == ["wait: t-1 is being reassigned to broker 3 or away from it"]
    assert operators.cordon is None


def test_a_late_unmovable_partition_is_named_and_the_cordon_stays(tmp_path: Path) -> None:
    operators = of_release(tmp_path, "4.3")
    wide = NewTopic("wide", assignments=((0, 1, 2, 3, 4),))
    runs = VirtualRuns(operators.rig, before=lambda: operators.rig.client.create_topics([wide]).raise_if_any())
    with pytest.raises(Infeasible, match=r"wide-0|replica"):
        operators.decommission(runs=runs)
    assert runs.ids == ["run-1"]
    assert operators.cordon is not None
    assert "uncordon broker 3" in operators.cancel()[0]
    assert operators.cordon is None


@pytest.mark.parametrize("phase", ["before anything", "cordoned", "draining", "drained"])
def test_a_cancel_in_any_phase_leaves_the_setting_as_it_was(operators: Operators, phase: str) -> None:
    rig = operators.rig
    match phase:
        case "cordoned":
            with pytest.raises(Killed):
                operators.decommission(runs=VirtualRuns(rig, before=die))
        case "draining":
            with pytest.raises(Killed):
                operators.decommission(runs=VirtualRuns(rig, dies_after_s=3))
        case "drained":
            assert operators.decommission().is_finished
    assert (operators.cordon == "*") is (phase != "before anything")
    rig.listener = None
    said = operators.cancel()
    assert operators.cordon is None
    assert ("cancel run run-1" in said) is (phase == "draining")
    assert rig.client.list_partition_reassignments() == {}
    assert rig.throttles == {}
    # Once more, there is nothing to undo.
    assert operators.cancel() == ("broker 3 is not cordoned",)


@pytest.mark.parametrize("release", ["4.3", "4.4"])
def test_a_cancel_leaves_alone_what_others_have_cordoned(tmp_path: Path, release: str) -> None:
    """The message names the command that takes the cordon back, and so does the doctor."""
    operators, both = of_release(tmp_path, release), "/data/3/d0,/data/3/d1"
    close(operators, both)
    assert operators.decommission().is_finished
    way = "kafka-configs --alter --entity-type brokers --entity-name 3 --delete-config cordoned.log.dirs"
    assert operators.cancel() == (
        f"broker 3 stays as it is: its cordoned.log.dirs is {both}, set by others; to open it: {way}",
    )
    assert operators.cordon == both
    (issue,) = (one for one in diagnose_cluster(operators.rig.client, tmp_path).issues if one.kind == "cordoned")
    assert tuple(way.split()) in issue.commands


@pytest.mark.parametrize(("release", "said"), [
    ("4.3", "Kafka accepts reassignments to it in silence"),
    ("4.4", "plans leave its partitions as they are, for Kafka 4.4, and 4.3 with KAFKA-20832, refuse every"),
])  # fmt: skip
def test_the_doctor_tells_what_kafka_does_with_lists_of_a_cordoned_broker(
    tmp_path: Path, release: str, said: str
) -> None:
    operators = of_release(tmp_path, release)
    client = operators.rig.client
    client.incremental_alter_configs({BROKER: [CORDON]}).raise_if_any()
    (issue,) = (one for one in diagnose_cluster(client, tmp_path).issues if one.kind == "cordoned")
    assert said in issue.seen
    refused = client.alter_partition_reassignments({tp(2): (2, 3)}).failed
    assert (tp(2) in refused) == ("refuse" in said)
    assert operators.cancel() == ("uncordon broker 3",)
    assert not any(one.kind == "cordoned" for one in diagnose_cluster(client, tmp_path).issues)


def test_a_cancel_is_refused_while_a_journal_may_be_of_its_drain(operators: Operators) -> None:
    die_while_draining(operators)
    operators.rig.path("run-1").write_bytes(b"damaged")
    with pytest.raises(JournalDamaged, match="a run on this cluster has a journal that cannot be read"):
        operators.cancel()
    assert operators.cordon == "*"


def garble_facts(operators: Operators) -> None:
    kept_facts_path(operators.rig.path("run-1")).write_bytes(b"damaged")


@pytest.mark.parametrize(("damage", "named"), [
    (lambda operators: garble(operators, CORDONS), CORDONS),
    (lambda operators: garble(operators, DECOMMISSIONED), DECOMMISSIONED),
    (garble_facts, "run-1.facts"),
], ids=["note of cordons", "note of decommissions", "facts of the run"])  # fmt: skip
def test_a_cancel_changes_nothing_while_files_of_it_cannot_be_read(
    operators: Operators, damage: Callable[[Operators], object], named: str
) -> None:
    operators.die_while_moving()
    damage(operators)
    with pytest.raises(InputError, match=named):
        operators.cancel()
    assert (operators.cordon, read_history(operators.rig.path("run-1")).ended_ms) == ("*", None)


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_a_release_without_cordons_is_drained_with_a_warning(tmp_path: Path, release: str) -> None:
    operators = of_release(tmp_path, release)
    assert operators.decommission().is_finished
    assert operators.said[0] == "drain broker 3: t-0, t-1"
    (warning,) = operators.warnings
    assert warning.startswith("broker 3 cannot be cordoned: its release has no cordoned.log.dirs (Kafka 4.3 has)")
    assert operators.cancel() == ("broker 3 is not cordoned",)


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_before_cordons_a_dead_broker_is_called_off_without_a_controller(tmp_path: Path, release: str) -> None:
    operators = of_release(tmp_path, release)
    assert operators.decommission().is_finished
    operators.stop()
    assert operators.cancel() == ("broker 3 is not cordoned",)
    assert operators.decommission(unregisters=True).is_finished
    assert operators.said == ["unregister broker 3"], "no cordon outlives it"


def test_an_interrupted_run_is_named_before_the_cordon(operators: Operators) -> None:
    rig = operators.rig
    started = rig.prepared({2: (2, 1)})
    kill_while_moving(rig, started)
    with pytest.raises(InputError, match=started.run_id):
        operators.decommission()
    assert operators.cordon is None


def test_a_later_broker_with_the_id_is_not_opened_for_the_one_that_left(operators: Operators) -> None:
    rig = operators.rig
    rig.let_reach_controllers()
    operators.decommission(unregisters=True)
    operators.stop()
    assert operators.decommission(unregisters=True).is_finished
    rig.twin.start(3)
    rig.transport.sleep(30)
    close(operators, "*")
    assert not is_opened(operators)


def test_directories_that_others_cordon_during_the_checks_stay_theirs(operators: Operators) -> None:
    path = operators.rig.twin.metadata.brokers[3].log_dirs[0].path

    def validated(real: Real, *args: object, **named: object) -> object:
        close(operators, path)
        return real(*args, **named)

    odd = OddPort(operators.rig.client)
    odd.answer("incremental_alter_configs", validated)
    operators.client = cast("AdminClient", odd)
    result = operators.decommission()
    assert isinstance(result.next_step, Blocked)
    assert f"cordoned.log.dirs of broker 3 is {path}" in str(result.next_step)
    assert (operators.cordon, operators.said, result.runs) == (path, [], ())
    assert "set by others" in operators.cancel()[0]


@pytest.mark.parametrize("way", ["refused", "finished", "opened by others"])
def test_a_cordon_of_others_is_not_opened_for_an_earlier_one_of_ours(operators: Operators, way: str) -> None:
    if way == "refused":  # only once it is no longer a mere validation

        def refuse(real: Real, changes: dict[ConfigResource, object], **named: bool) -> Batch[ConfigResource, None]:
            if named.get("validate_only") or BROKER not in changes:
                return cast("Batch[ConfigResource, None]", real(changes, **named))
            return Batch({}, {BROKER: refusal(INVALID_CONFIG)})

        operators.answer_always("incremental_alter_configs", refuse)
        die_while_draining(operators)
    elif way == "finished":
        assert operators.decommission().is_finished
    else:
        die_while_draining(operators)
    close(operators, None)
    if way == "opened by others":
        assert operators.decommission(4).is_finished
    close(operators, "*")
    assert not is_opened(operators)


def unless_validated(answer: Answer) -> Answer:
    """This answer to changes of settings that are not merely validated."""

    def changed(real: Real, changes: dict[ConfigResource, list[ConfigChange]], **named: bool) -> object:
        return real(changes, **named) if named.get("validate_only") else answer(real, changes, **named)

    return changed


@pytest.mark.parametrize(("answer", "ours"), [
    (refused(CLUSTER_AUTHORIZATION_FAILED), frozenset()), (lost_on_the_way_back, {3}),
], ids=["refused", "lost"])  # fmt: skip
def test_only_cordons_that_may_have_been_set_count_as_ours(
    operators: Operators, answer: Answer, ours: frozenset[int]
) -> None:
    """The first of two cordons fails, so that the second is never sent."""
    operators.answer_always("incremental_alter_configs", unless_validated(answer))
    with pytest.raises(ClusterError):
        operators.decommission(3, 4)
    assert noted_cordons(operators.rig.state_dir, operators.rig.twin.cluster_id) == ours


def hide_cordon(operators: Operators) -> OddPort:
    """Let broker 3 show these operators settings and directories from before a cordon."""

    def as_before(real: Real, *args: object, **named: object) -> object:
        held = real(*args, **named)
        dirs = {one: tuple(replace(each, is_cordoned=False) for each in found) for one, found in held.ok.items()}
        return Batch(dirs, held.failed)

    operators.rig.twin.views.hold_back(3, api_key=api.DESCRIBE_CONFIGS.key)
    return operators.answer_always("describe_log_dirs", as_before)


def done_before_a_death(real: Real, *args: object, **named: object) -> object:
    real(*args, **named)
    raise Killed


def refused_as_unknown(real: Real, changes: dict[ConfigResource, object], **named: object) -> object:
    del real, named
    return Batch({}, dict.fromkeys(changes, refusal(INVALID_CONFIG)))


@pytest.mark.parametrize("answer", [refused(CLUSTER_AUTHORIZATION_FAILED), refused_as_unknown])
def test_a_cordon_stays_ours_when_its_repetition_is_refused(operators: Operators, answer: Answer) -> None:
    """Its broker does not show it yet, so that the next process sends it once more."""
    rig, odd = operators.rig, hide_cordon(operators)
    for each in (done_before_a_death, answer):
        odd.answer_always("incremental_alter_configs", unless_validated(each))
        with pytest.raises((ClusterError, Killed)):
            operators.decommission(runs=VirtualRuns(rig, before=die))
    cordons = [named for method, _, named in odd.calls if method == "incremental_alter_configs"]
    assert sum(not named.get("validate_only") for named in cordons) == 2
    rig.twin.views.release(3, api_key=api.DESCRIBE_CONFIGS.key)
    assert is_opened(operators)


def test_a_cordon_stays_ours_while_its_broker_hides_it(operators: Operators) -> None:
    """Another decommission sees settings from before the cordon, beside directories that are closed already."""
    rig = operators.rig
    rig.twin.views.hold_back(3, api_key=api.DESCRIBE_CONFIGS.key)
    die_while_draining(operators)
    die_while_draining(operators, 4)
    assert is_opened(operators)


def test_an_empty_broker_stays_decommissioned_when_its_cordon_is_refused(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    assert operators.decommission().is_finished
    close(operators, None)
    operators.answer_always("incremental_alter_configs", unless_validated(refused(CLUSTER_AUTHORIZATION_FAILED)))
    with pytest.raises(ClusterError):
        operators.decommission()
    assert noted_decommissions(tmp_path, operators.rig.twin.cluster_id) == {3}


def test_no_cordon_is_set_once_a_note_cannot_be_read(operators: Operators) -> None:
    """It could not be changed after the cordon."""

    def damage(real: Real, *args: object, **named: object) -> object:
        if named.get("validate_only"):
            make_folder(cluster_folder(operators.rig.state_dir, operators.rig.twin.cluster_id))
            garble(operators, DECOMMISSIONED)
        return real(*args, **named)

    operators.answer_always("incremental_alter_configs", damage)
    with pytest.raises(InputError, match=DECOMMISSIONED):
        operators.decommission()
    assert operators.cordon is None


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["decommissioned again", "called off"])
def test_a_note_that_cannot_be_changed_hides_nothing_that_was_done(tmp_path: Path, is_cancelled: bool) -> None:
    """The broker was emptied here, and others opened it since."""
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))
    assert operators.decommission().is_finished
    if not is_cancelled:
        close(operators, None)
    lock = cluster_folder(tmp_path, operators.rig.twin.cluster_id) / f".{DECOMMISSIONED}.lock"
    lock.unlink()
    lock.mkdir()
    done = "uncordon" if is_cancelled else "cordon"
    with pytest.raises(InputError, match=f"cannot be opened: .* Done before that: {done} broker 3; move it away"):
        operators.cancel() if is_cancelled else operators.decommission()
    assert operators.cordon == (None if is_cancelled else "*")


def test_no_cordon_is_opened_while_the_note_of_ours_cannot_be_read(operators: Operators) -> None:
    die_while_draining(operators)
    note = garble(operators, CORDONS)
    assert not is_opened(operators)
    assert f"broker 3 stays cordoned, since it is not known who cordoned it ({note}" in operators.said[-1]


def test_a_note_that_cannot_be_read_is_not_taken_for_a_cancel(operators: Operators) -> None:
    """The broker does not show its cordon yet, so that it is sent once more."""
    odd = hide_cordon(operators)

    def damage(real: Real, *args: object, **named: object) -> object:
        answer: object = real(*args, **named)
        garble(operators, CORDONS)
        return answer

    odd.answer_always("incremental_alter_configs", unless_validated(damage))
    with pytest.raises(InputError, match=f"{CORDONS}: not a text in UTF-8"):
        operators.decommission()


def test_a_cordon_opened_by_a_process_that_died_is_not_opened_again(operators: Operators) -> None:
    """It died before it had noted that; others cordon the broker since."""
    die_while_draining(operators)
    close(operators, None)
    assert is_opened(operators)
    close(operators, "*")
    assert not is_opened(operators)


def enter_maintenance(operators: Operators) -> None:
    rig = operators.rig
    assert maintain(rig.client, (3,), Way.ENTER, operators.context(), wait_s=60, clock=rig.transport).is_finished


def leave_maintenance(operators: Operators) -> None:
    rig = operators.rig
    assert maintain(rig.client, (3,), Way.EXIT, operators.context(), wait_s=60, clock=rig.transport).is_finished


def test_a_cancel_leaves_the_cordon_that_maintenance_set(operators: Operators) -> None:
    enter_maintenance(operators)
    kept = "broker 3 stays cordoned, since it is in maintenance, which `kreassign maintenance exit 3` ends"
    assert operators.cancel() == (kept,)
    assert operators.cordon == "*"
    leave_maintenance(operators)
    assert operators.cordon is None


@pytest.mark.parametrize("is_noted", [False, True])
def test_a_cancel_leaves_a_cordon_of_maintenance_that_the_broker_hides(operators: Operators, is_noted: bool) -> None:
    """It answers from before the cordon, while its directories are closed already."""
    rig = operators.rig
    if is_noted:
        die_while_draining(operators)
        close(operators, None)
    record = MaintenanceRecord().entered((3,), 1, "ann", cordoned=(3,))
    MaintenanceStore(rig.client, operators.context(), rig.twin.cluster_id, "ann").write(record)
    rig.twin.views.hold_back(3, api_key=api.DESCRIBE_CONFIGS.key)
    close(operators, "*")
    kept = "broker 3 stays as it is, since it is in maintenance, which `kreassign maintenance exit 3` ends"
    assert (operators.cancel(), operators.cordon) == ((kept,), "*")


@pytest.mark.parametrize("is_open", [False, True], ids=["cordoned", "uncordoned by others"])
def test_no_decommission_goes_on_under_a_cordon_of_maintenance(operators: Operators, is_open: bool) -> None:
    enter_maintenance(operators)
    if is_open:
        close(operators, None)
    refused = operators.decommission().next_step
    assert isinstance(refused, Blocked)
    assert "the cordon of broker 3 is that of maintenance (broker 3 since " in str(refused)
    assert "end it first (`kreassign maintenance exit 3`)" in str(refused)
    assert operators.preview().next_step == refused
    assert operators.said == []
    leave_maintenance(operators)
    assert operators.decommission().is_finished
    assert operators.cordon == "*"


def test_the_end_of_maintenance_leaves_the_cordon_of_a_decommission(tmp_path: Path) -> None:
    operators = of_release(tmp_path, "4.3")
    die_while_draining(operators)
    enter_maintenance(operators)
    later = "give `kreassign maintenance exit 3`, then `kreassign decommission 3 --cancel`"
    kept = (
        f"broker 3 stays cordoned, since it is in maintenance, whose end leaves a cordon that was there before: {later}"
    )
    assert operators.cancel() == (kept,)
    leave_maintenance(operators)
    assert operators.cordon == "*"
    assert operators.cancel() == ("uncordon broker 3",)


def test_a_cordon_that_others_take_back_meanwhile_is_not_set_again(operators: Operators) -> None:
    found = operators.decommission(runs=VirtualRuns(operators.rig, before=lambda: close(operators, None)))
    assert isinstance(found.next_step, Blocked)
    assert "the cordon of broker 3 was taken back since: somebody called the decommission off" in str(found.next_step)
    assert operators.cordon is None
    assert operators.said == ["cordon the log directories of broker 3", "drain broker 3: t-0, t-1"]
    assert operators.decommission().is_finished
    assert operators.cordon == "*"


def test_a_cancel_right_after_the_cordon_is_not_overruled(operators: Operators) -> None:
    """No reading of the decommission has shown the cordon yet."""
    steps = list[str]()

    def cancelled(real: Real, *args: object, **named: object) -> object:
        if operators.cordon and not steps:
            steps.extend(operators.cancel())
        return real(*args, **named)

    operators.answer_always("list_partition_reassignments", cancelled)  # a reading begins with it
    found = operators.decommission()
    assert (steps, operators.cordon) == (["uncordon broker 3"], None)
    assert "the cordon of broker 3 was taken back since" in str(found.next_step)
    assert found.runs == ()


def test_a_cancel_between_two_cordons_is_not_overruled(operators: Operators) -> None:
    rig, steps = operators.rig, list[str]()

    def cancelled(real: Real, *args: object, **named: object) -> object:
        answer = real(*args, **named)
        if operators.cordon and not steps:
            steps.extend(cancel_decommission(rig.client, (3, 4), operators.context(), rig.transport).steps)
        return answer

    operators.answer_always("incremental_alter_configs", cancelled)
    found = operators.decommission(3, 4)
    assert steps == ["uncordon broker 3", "broker 4 is not cordoned"]
    assert "the cordon of broker 3 was taken back since" in str(found.next_step)
    assert not rig.twin.metadata.configs.get(ConfigResource.broker(4), {}).get(KEY)


def test_a_cordon_that_others_take_back_at_once_is_not_set_for_ever(operators: Operators) -> None:

    def undone(real: Real, changes: dict[ConfigResource, list[ConfigChange]], **named: object) -> object:
        answer = real(changes, **named)
        if CORDON in changes.get(BROKER, ()) and not named.get("validate_only"):
            close(operators, None)
        return answer

    operators.answer_always("incremental_alter_configs", undone)
    found = operators.go_on(OF_3, poll_s=60.0)
    assert "broker 3: no cordon shows, for 300 s since it was set" in str(found.next_step)
    assert operators.said == ["cordon the log directories of broker 3"]


def test_a_drain_of_two_brokers_is_not_called_off_for_one_of_them(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 3], [4, 1], [2, 0]])
    operators = Operators(rig)
    operators.die_while_moving(3, 4)
    with pytest.raises(
        InputError, match=r"run run-1 drains brokers 3, 4 at once.*`kreassign decommission 3,4 --cancel`"
    ):
        operators.cancel()
    assert operators.cordon == "*"
    assert "cancel run run-1" in cancel_decommission(rig.client, (3, 4), operators.context(), rig.transport).steps
    assert not operators.cordon
    assert rig.client.list_partition_reassignments() == {}


def test_a_cancel_elsewhere_names_the_moves_that_go_on(operators: Operators, tmp_path: Path) -> None:
    rig = operators.rig
    operators.die_while_moving()
    elsewhere = operators.context(tmp_path / "elsewhere")
    opened, going_on = cancel_decommission(rig.client, (3,), elsewhere, rig.transport).steps
    assert opened == "uncordon broker 3"
    assert going_on.startswith("still on the way off broker 3, by no run of this state directory: t-0")


def test_a_cancel_leaves_the_decommission_of_another_broker(operators: Operators) -> None:
    die_while_draining(operators)
    die_while_draining(operators, 4)
    assert operators.cancel() == ("uncordon broker 3",)
    assert operators.rig.twin.metadata.configs[ConfigResource.broker(4)][KEY] == "*"
    close(operators, "*")
    assert not is_opened(operators)
    uncordon_drained(operators.rig.client, (4,), operators.context(), operators.said.append, operators.rig.transport)
    assert operators.said[-1] == "uncordon broker 4"


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_a_broker_stays_closed_while_the_record_of_maintenance_is_refused(
    operators: Operators, is_asked_for: bool
) -> None:
    die_while_draining(operators)

    def hide(real: Real, names: Iterable[str] | None, **named: object) -> object:
        asked = None if names is None else [*names]
        if asked == [OFFSETS_TOPIC]:
            return Batch({}, {OFFSETS_TOPIC: refusal(TOPIC_AUTHORIZATION_FAILED, OFFSETS_TOPIC)})
        return real(asked, **named)

    operators.answer_always("describe_topics", hide)
    client, context = operators.client, operators.context()
    if is_asked_for:
        operators.said += cancel_decommission(client, (3,), context, operators.rig.transport).steps
    else:
        uncordon_drained(client, (3,), context, operators.said.append, operators.rig.transport)
    assert operators.cordon == "*"
    assert "broker 3 stays cordoned, since it may be in maintenance" in operators.said[-1]
    assert "To open it: kafka-configs --alter --entity-type brokers --entity-name 3" in operators.said[-1]


@pytest.mark.parametrize("release", ["4.3", "4.4"])
def test_a_list_between_two_cordoned_brokers_is_refused_before_the_cordon(tmp_path: Path, release: str) -> None:
    """Kafka 4.4 does not take it; whether a 4.3 does shows only in brokers that are cordoned."""
    rig = TwinRig(tmp_path, [[3, 4, 0], [4, 0, 1]], release=release)
    operators, runs = Operators(rig), VirtualRuns(rig)
    stepwise = replace(WITHOUT_PLAN, pace=replace(WITHOUT_PLAN.pace, is_stepwise=True))

    refusal = "t-0 would leave brokers 3, 4 one after the other.*decommission the brokers one after the other"
    with pytest.raises(InputError, match=refusal):
        operators.go_on(DecommissionRequest((3, 4), run=stepwise), runs)
    with pytest.raises(InputError, match=refusal):
        operators.preview(DecommissionRequest((3, 4), run=stepwise))
    assert (operators.cordon, operators.said, runs.ids) == (None, [], [])
    assert operators.go_on(DecommissionRequest((3,), run=stepwise)).is_finished


def test_a_list_between_brokers_that_stay_open_is_not_refused(tmp_path: Path) -> None:
    """Kafka refuses their cordon: brokers of 4.3 in a cluster with the metadata version of an older one."""
    operators = Operators(TwinRig(tmp_path, [[3, 4, 0], [4, 0, 1]]))

    def refuse(real: Real, changes: dict[ConfigResource, list[ConfigChange]], **named: object) -> object:
        if any(CORDON in each for each in changes.values()):
            return Batch({}, dict.fromkeys(changes, refusal(INVALID_CONFIG)))
        return real(changes, **named)

    operators.answer_always("incremental_alter_configs", refuse)
    stepwise = replace(WITHOUT_PLAN, pace=replace(WITHOUT_PLAN.pace, is_stepwise=True))
    request = DecommissionRequest((3, 4), run=stepwise)
    shown = operators.preview(request)
    assert str(shown.next_step) == "drain brokers 3, 4: t-0, t-1"
    assert "broker 3 cannot be cordoned" in shown.open_ways[0]
    assert operators.go_on(request).is_finished
    assert operators.said == [str(shown.next_step)]


def test_no_step_is_told_of_an_empty_broker_whose_cordon_is_refused(tmp_path: Path) -> None:
    operators = Operators(TwinRig(tmp_path, [[0, 1], [1, 2]]))

    def refuse(real: Real, changes: dict[ConfigResource, list[ConfigChange]], **named: object) -> object:
        is_cordon = CORDON in changes.get(BROKER, ())
        return Batch({}, {BROKER: refusal(INVALID_CONFIG)}) if is_cordon else real(changes, **named)

    operators.answer_always("incremental_alter_configs", refuse)
    found = operators.decommission()
    assert (found.is_finished, found.steps, operators.said) == (True, (), [])
