"""Level "ask": a repair runs when others have signed just its plan, and asks again after any change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.autopilot.events import Name, State
from kreassign.autopilot.policy import Kind, Policy
from kreassign.errors import InputError
from kreassign.executor.journal import first_event, journal_path
from kreassign.model import NewTopic, TopicPartition
from kreassign.model.run import Operator
from kreassign.operations.autopilot_journal import Requests, approval_path, decisions_path
from kreassign.twin.faults.schedule import read_fault, schedule_faults
from tests.autopilot.fleet import HOUR_S, Fleet
from tests.executor.twin_runs import TwinRig
from tests.ssh_keys import Keyring

GONE = Name(Kind.BROKER_GONE, "broker 3")
LOOKS_S = 300.0
FEW = 4


class Asking(Fleet):
    """A cluster whose repairs need two approvals; zoe runs the autopilot, and brokers from 6 on are empty.

    One of four brokers has all lists on broker 3, and so one plan without it.
    """

    def __init__(self, folder: Path, expire_after: str = "24h", name: Name = GONE, brokers: int = 6) -> None:
        self.keys = Keyring(folder / "keys", "ann", "bob", "zoe")
        policy = (
            f"[{name.kind}]\nlevel = 'ask'\n[care]\ninterval = '5m'\n[approvals]\nleast = 2\nproposer = 'zoe@x'\n"
            f"allowed-signers = '{self.keys.signers}'\nexpire-after = '{expire_after}'\n"
        )
        lists = [[one, (one + 1) % 6, (one + 2) % 6] for one in range(6)]
        others = {"u": lists} if brokers > len(lists) else {}
        if brokers == FEW:
            lists, others = [[one, (one + 1) % 3, 3] for one in range(3)], {"u": [[0, 1, 2]] * 3}
        super().__init__(folder, TwinRig(folder, lists, brokers=brokers, others=others), policy)
        self.name = name
        self.context = replace(self.context, operator=Operator("zoe", "host"))

    @property
    def request(self) -> Path:
        return approval_path(decisions_path(self.state_dir, self.rig.twin.cluster_id), self.name)

    def approve(self, *names: str) -> None:
        for name in names:
            Requests(self.state_dir, self.rig.twin.cluster_id).approve(self.name, self.keys[name], name)


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    return Asking(tmp_path)


def test_a_repair_waits_for_approvals_and_runs_just_what_was_signed(asking: Asking) -> None:
    with asking.opened() as autopilot:
        asking.rig.twin.crash(3)
        asking.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        assert 3 in asking.holders()
        wanted = [one for one in asking.messages if "2 approvals wanted" in one.what]
        assert len(wanted) == 1
        assert wanted[0].commands[0] == "kreassign autopilot approve broker-gone 'broker 3' --key FILE"
        asking.approve("ann", "zoe")
        asking.watch(autopilot, HOUR_S, LOOKS_S)
        judged = autopilot.memory.findings[GONE].judged
        assert judged is not None
        assert judged.lacking.startswith("1 approval of 2 (ann@x); ")
        assert "zoe@x proposed it, and cannot approve it" in judged.lacking
        asking.approve("bob")
        asking.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
        assert 3 not in asking.holders()
        (act,) = autopilot.memory.acts
        begun = first_event(journal_path(asking.state_dir, asking.rig.twin.cluster_id, act.run_id))
        assert str(begun.approval) == "approved by ann@x, bob@x, proposed by zoe@host"


def test_a_change_of_the_cluster_voids_approvals_and_asks_again(asking: Asking) -> None:
    with asking.opened() as autopilot:
        asking.rig.twin.crash(3)
        asking.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
        first = autopilot.memory.findings[GONE].asked
        asking.approve("ann", "bob")
        asking.rig.client.alter_partition_reassignments({TopicPartition("t", 3): (4, 3, 5)}).raise_if_any()
        asking.rig.transport.sleep(LOOKS_S)
        asking.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
        (void,) = [one for one in asking.messages if "its approval is void" in one.what]
        assert "t-3 had replicas [3, 4, 5], and has [4, 3, 5]" in void.why
        second = autopilot.memory.findings[GONE].asked
        assert first is not None
        assert second is not None
        assert first.request_id != second.request_id
        asking.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        assert 3 in asking.holders()


def test_an_approval_is_not_for_a_topic_that_is_created_again(tmp_path: Path) -> None:
    asking = Asking(tmp_path, name=Name(Kind.NEW_BROKER, "broker 6"), brokers=7)
    lists = tuple(asking.rig.replicas.values())
    with asking.opened() as autopilot:
        asking.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
        asking.approve("ann", "bob")
        asking.rig.client.delete_topics(["t"]).raise_if_any()
        asking.rig.transport.sleep(10.0)
        asking.rig.client.create_topics([NewTopic("t", assignments=lists)]).raise_if_any()
        asking.rig.transport.sleep(10.0)
        asking.watch(autopilot, 4 * LOOKS_S, LOOKS_S)
        assert autopilot.memory.acts == ()
    assert sum("2 approvals wanted" in one.what for one in asking.messages) == 2


def test_a_topic_created_again_is_asked_for_again_by_the_same_plan(tmp_path: Path) -> None:
    """Right before its run. Signatures from before count for nothing, new ones at once: that is no failure of it."""
    asking = Asking(tmp_path, brokers=FEW)
    lists = tuple(asking.rig.replicas.values())
    with asking.opened() as autopilot:
        asking.rig.twin.crash(3)
        asking.watch(autopilot, 1.25 * HOUR_S, LOOKS_S)
        first = autopilot.memory.findings[GONE]
        asking.approve("ann", "bob")
        asking.rig.client.delete_topics(["t"]).raise_if_any()
        asking.rig.transport.sleep(10.0)
        asking.rig.client.create_topics([NewTopic("t", assignments=lists)]).raise_if_any()
        asking.rig.transport.sleep(10.0)
        asking.watch(autopilot, LOOKS_S, LOOKS_S)
        second = autopilot.memory.findings[GONE]
        assert (first.proposal and first.proposal.plan_id) == (second.proposal and second.proposal.plan_id)
        assert (autopilot.memory.acts, second.problem) == ((), "")
        assert second.asked not in {None, first.asked}
        asking.approve("ann", "bob")
        asking.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    (void,) = [one for one in asking.messages if "its approval is void" in one.what]
    assert "topic t was deleted and created again" in void.why
    assert sum("2 approvals wanted" in one.what for one in asking.messages) == 2


def test_who_proposed_a_repair_approves_it_in_no_later_process(asking: Asking) -> None:
    """Ann's process asked, and one of Bob goes on. Both sign, and then Zoe, who is enough."""
    asking.policy = replace(asking.policy, approvals=replace(asking.policy.approvals, proposer="", least=1))
    asking.context = replace(asking.context, operator=Operator("ann", "x"))
    with asking.opened() as autopilot:
        asking.rig.twin.crash(3)
        asking.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
    asking.context = replace(asking.context, operator=Operator("bob", "x"))
    with asking.opened() as autopilot:
        asking.approve("ann", "bob")
        asking.watch(autopilot, 0.5 * HOUR_S, LOOKS_S)
        judged = autopilot.memory.findings[GONE].judged
        asking.approve("zoe")
        asking.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
        (act,) = autopilot.memory.acts
    assert judged is not None
    assert "ann@x proposed it, and cannot approve it" in judged.lacking
    assert "bob@x runs the autopilot that proposed it, and cannot approve it" in judged.lacking
    begun = first_event(journal_path(asking.state_dir, asking.rig.twin.cluster_id, act.run_id))
    assert str(begun.approval) == "approved by zoe@x, proposed by ann@x"


def test_a_signature_taken_back_while_a_repair_is_planned_is_no_failure(asking: Asking) -> None:
    """The repair waits for another one, with the same request."""
    taken = list[Path]()

    def take_back() -> Policy:
        """Take it back in the look that finds both, before it plans."""
        judged = autopilot.memory.findings[GONE].judged if GONE in autopilot.memory.findings else None
        if judged is not None and not judged.lacking and not taken:
            taken.extend(asking.request.parent.glob("*.bob-*.sig"))
            taken[0].unlink()
        return asking.policy

    with asking.opened(reread=take_back) as autopilot:
        asking.rig.twin.crash(3)
        asking.watch(autopilot, 1.25 * HOUR_S, LOOKS_S)
        asking.approve("ann", "bob")
        asking.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
        found = autopilot.memory.findings[GONE]
        assert (autopilot.memory.acts, found.failures, found.problem) == ((), 0, "")
        asking.approve("bob")
        asking.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    assert len(taken) == 1
    assert sum("2 approvals wanted" in one.what for one in asking.messages) == 1


def test_a_rolling_restart_voids_an_approval_once(asking: Asking) -> None:
    with asking.opened() as autopilot:
        asking.rig.twin.crash(3)
        asking.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
        for broker in (4, 5, 2):
            asking.rig.twin.stop(broker)
            asking.watch(autopilot, 240.0, 120.0)
            asking.rig.twin.start(broker)
            asking.watch(autopilot, 120.0, 120.0)
        asking.watch(autopilot, 0.5 * HOUR_S, LOOKS_S)
    texts = [one.what for one in asking.messages]
    assert sum("its approval is void" in one for one in texts) == 1
    assert sum("2 approvals wanted" in one for one in texts) == 2


def test_an_approval_outlasts_a_look_that_could_not_be_read(asking: Asking) -> None:
    with asking.opened() as autopilot:
        asking.rig.twin.crash(3)
        asking.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        asking.approve("ann")
        refusals = (f"refuse:CLUSTER_AUTHORIZATION_FAILED:DescribeCluster:{broker}@1s+8m" for broker in range(6))
        schedule_faults(asking.rig.twin, [read_fault(one) for one in refusals])
        asking.watch(autopilot, HOUR_S, LOOKS_S)
        asking.approve("bob")
        asking.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
        assert 3 not in asking.holders()
    assert not [one for one in asking.messages if "void" in one.what]


def test_an_approval_outlasts_a_break_after_which_evidence_ripens_again(asking: Asking) -> None:
    with asking.opened() as autopilot:
        asking.rig.twin.crash(3)
        asking.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
        asking.approve("ann", "bob")
        asking.watch(autopilot, LOOKS_S, LOOKS_S)
    asking.rig.transport.sleep(660.0)
    with asking.opened() as autopilot:
        asking.watch(autopilot, 0.4 * HOUR_S, LOOKS_S)
        assert 3 in asking.holders()
        asking.watch(autopilot, HOUR_S, LOOKS_S)
        assert 3 not in asking.holders()
    assert sum("approvals wanted" in one.what for one in asking.messages) == 1


def test_old_signatures_count_for_no_later_repair(asking: Asking) -> None:
    with asking.opened() as autopilot:
        asking.rig.twin.crash(3)
        asking.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
        asking.approve("ann", "bob")
        kept = {one: one.read_bytes() for one in asking.request.parent.iterdir()}
        asking.watch(autopilot, HOUR_S, LOOKS_S)
        assert 3 not in asking.holders()
        with pytest.raises(InputError, match="asks for no approval of broker-gone broker 3"):
            asking.approve("ann")
        for path, content in kept.items():
            path.write_bytes(content)
        asking.watch(autopilot, HOUR_S, LOOKS_S)
        assert len(autopilot.memory.acts) == 1


def test_a_request_that_was_void_permits_nothing_when_it_is_back(asking: Asking) -> None:
    """The cluster is as it was when it was signed, and its file and signatures come back from a backup."""
    drifts = iter([(4, 3, 5), (3, 4, 5)])
    with asking.opened() as autopilot:
        asking.rig.twin.crash(3)
        asking.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
        asking.approve("ann", "bob")
        kept = {one: one.read_bytes() for one in asking.request.parent.iterdir()}
        for replicas in drifts:
            asking.rig.client.alter_partition_reassignments({TopicPartition("t", 3): replicas}).raise_if_any()
            asking.rig.transport.sleep(LOOKS_S)
            asking.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
        for path, content in kept.items():
            path.write_bytes(content)
        asking.watch(autopilot, 3 * LOOKS_S, LOOKS_S)
        assert autopilot.memory.acts == ()
    voids = [one.why for one in asking.messages if "its approval is void" in one.what]
    assert voids[2:] == ["its request is gone, or not the one that was asked"]


def test_without_its_signers_an_autopilot_runs_nothing_and_says_why(asking: Asking) -> None:
    with asking.opened() as autopilot:
        asking.rig.twin.crash(3)
        asking.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
        asking.approve("ann", "bob")
        asking.keys.signers.unlink()
        asking.watch(autopilot, HOUR_S, LOOKS_S)
        finding = autopilot.memory.findings[GONE]
        assert finding.judged is not None
        assert finding.judged.lacking.startswith("approvals could not be read: ")
        assert finding.state is State.PROPOSED
        assert 3 in asking.holders()


@pytest.mark.parametrize("content", [None, b"{"], ids=["gone", "damaged"])
def test_a_request_that_cannot_be_read_any_more_is_asked_again(asking: Asking, content: bytes | None) -> None:
    """Else nobody could sign it, and the repair would wait for ever."""
    with asking.opened() as autopilot:
        asking.rig.twin.crash(3)
        asking.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
        asking.request.unlink()
        if content is not None:
            asking.request.write_bytes(content)
        asking.watch(autopilot, 3 * LOOKS_S, LOOKS_S)
        asking.approve("ann", "bob")
        asking.watch(autopilot, HOUR_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    (void,) = [one.why for one in asking.messages if "its approval is void" in one.what]
    assert void == "its request is gone, or not the one that was asked"


def test_a_request_that_cannot_be_written_is_told_and_written_later(asking: Asking) -> None:
    folder = asking.request.parent
    with asking.opened() as autopilot:
        folder.write_text("in the way")
        asking.rig.twin.crash(3)
        asking.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
        (told,) = [one for one in asking.messages if "it is not repaired" in one.what]
        assert told.why == f"it could not be proposed: {asking.request}: not a directory"
        folder.unlink()
        asking.watch(autopilot, 1.25 * HOUR_S, LOOKS_S)
        asking.approve("ann", "bob")
        asking.watch(autopilot, HOUR_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    assert sum("2 approvals wanted" in one.what for one in asking.messages) == 1


def test_an_approval_that_expires_is_asked_again(tmp_path: Path) -> None:
    asking = Asking(tmp_path, "2h")
    with asking.opened() as autopilot:
        asking.rig.twin.crash(3)
        asking.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
        asking.approve("ann")
        asking.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        (void,) = [one for one in asking.messages if "its approval is void" in one.what]
        assert "the request expired" in void.why
        assert sum("approvals wanted" in one.what for one in asking.messages) == 2
