"""Signed approvals with real keys: a run begins with enough of them, once, and for nothing that has changed."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.errors import InputError
from kreassign.executor.journal import first_event, journal_path, set_aside
from kreassign.executor.journal.folder import make_folder
from kreassign.executor.lease import LeasePolicy
from kreassign.model import TopicPartition
from kreassign.model.approvals import ApprovalRule
from kreassign.model.plan import PartitionAssignment, Plan, format_plan
from kreassign.model.run import Operator
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.approvals import SignedApprovals, approve_request, propose, withdraw
from kreassign.operations.connect import tell_nobody
from kreassign.operations.plan import PlanRequest, make_plan
from kreassign.operations.plan_files import PlanDirectory, read_plan_file, request_path, write_plan
from kreassign.operations.plan_inputs import inputs_of_cluster
from kreassign.operations.plan_tasks import DrainBrokers
from kreassign.operations.run import RunContext, RunRequest, new_run_id, prepare_run, start_run
from kreassign.planner.problem.policy import PlanPolicy
from tests.executor.twin_runs import RATE, TwinRig, tp
from tests.ssh_keys import Keyring

ANN = Operator("ann", "host")
HOUR_S = 3600.0


class Team:
    """A plan for a twin, its proposer ann, and others who approve it."""

    def __init__(self, folder: Path) -> None:
        self.rig = TwinRig(folder / "state", [[0, 1], [1, 2]])
        self.keys = Keyring(folder / "keys", "ann", "bob", "cat")
        self.plan = folder / "plan.json"
        inputs = inputs_of_cluster(self.rig.client, PlanPolicy(), measure_for_s=0, clock=self.rig.transport)
        made = make_plan(inputs, DrainBrokers((0,)), PlanRequest())
        write_plan(self.plan, made.plan, made.facts)
        self.context = RunContext(folder / "state", warn=tell_nobody, lease=LeasePolicy.OFF)

    def propose(self, by: str = "ann") -> None:
        propose(self.plan, self.keys[by], ANN, self.rig.transport.now_ms())

    def approve(self, *names: str) -> None:
        for name in names:
            approve_request(request_path(self.plan), self.keys[name], name)

    @property
    def request(self) -> RunRequest:
        wanted = SignedApprovals(request_path(self.plan), self.keys.signers, ApprovalRule(2))
        return RunRequest(read_plan_file(self.plan), measure_for_s=0, approvals=wanted)

    def refusal(self) -> str:
        with pytest.raises(InputError) as refused:
            prepare_run(self.rig.client, self.request, self.context, self.rig.transport)
        return str(refused.value)

    def run(self) -> str:
        started = prepare_run(self.rig.client, self.request, self.context, self.rig.transport)
        return start_run(self.rig.client, started, self.context, clock=self.rig.transport).run_id


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)


def test_a_run_begins_once_others_have_signed_and_its_journal_names_them(team: Team) -> None:
    assert "there is no " in team.refusal()
    team.propose()
    assert team.refusal() == "the run is not approved: 0 approvals of 2"
    team.approve("bob")
    assert team.refusal() == "the run is not approved: 1 approval of 2 (bob@x)"
    team.approve("cat")
    run_id = team.run()
    approval = first_event(journal_path(team.rig.state_dir, team.rig.twin.cluster_id, run_id)).approval
    assert str(approval) == "approved by bob@x, cat@x, proposed by ann@x"


def test_the_proposer_and_strangers_are_not_counted(team: Team) -> None:
    for name in ("eve", "second"):
        team.keys.create(name)
    team.keys.signers.write_text(
        f"{team.keys.signers.read_text()}ann@x {team.keys.folder.joinpath('second.pub').read_text()}"
    )
    team.propose()
    team.approve("second", "bob", "eve")
    said = team.refusal()
    assert said.startswith("the run is not approved: 1 approval of 2 (bob@x); ")
    assert "ann@x proposed it, and cannot approve it" in said
    assert "no signer of " in said
    assert "has this key (No principal matched.)" in said


def test_the_key_of_a_proposal_approves_nothing(team: Team) -> None:
    team.propose()
    with pytest.raises(InputError, match="ann proposed this plan, and cannot approve it, too: another person approves"):
        team.approve("ann")
    assert team.refusal() == "the run is not approved: 0 approvals of 2"


def test_an_approval_permits_one_run(team: Team) -> None:
    team.propose()
    team.approve("bob", "cat")
    started = prepare_run(team.rig.client, team.request, team.context, team.rig.transport)
    again = prepare_run(team.rig.client, team.request, team.context, team.rig.transport)
    run_id = start_run(team.rig.client, started, team.context, clock=team.rig.transport).run_id
    elsewhere = replace(team.context, state_dir=team.rig.state_dir / "other", beside=(team.rig.state_dir,))
    for context in (team.context, elsewhere):
        with pytest.raises(InputError, match=f"run {run_id} began with this approval, which permits one run"):
            start_run(team.rig.client, again, context, clock=team.rig.transport)


def test_a_replan_goes_beyond_what_was_approved(team: Team) -> None:
    """The person who begins the run decides on --replan: the guide says so."""
    team.propose()
    team.approve("bob", "cat")
    request = replace(team.request, replan=True, throttle=ThrottleRates(RATE // 8))
    approved = request.plan.plan.replicas[tp(0)]
    (lost,) = set(approved) - {0, 1}
    team.rig.after(4, lambda: team.rig.twin.crash(lost))
    started = prepare_run(team.rig.client, request, team.context, team.rig.transport)
    ended = start_run(team.rig.client, started, team.context, clock=team.rig.transport)
    assert (started.approval is None, [str(move.status) for move in ended.moves]) == (False, ["complete"])
    assert not {0, lost} & {*team.rig.replicas[0]}


def test_an_approval_permits_nothing_once_its_journal_is_damaged(team: Team) -> None:
    team.propose()
    team.approve("bob", "cat")
    again = prepare_run(team.rig.client, team.request, team.context, team.rig.transport)
    run_id = team.run()
    path = journal_path(team.rig.state_dir, team.rig.twin.cluster_id, run_id)
    path.write_bytes(b"torn")
    refusal = "may have begun with this approval, which permits one run; propose the plan again"
    with pytest.raises(InputError, match=refusal):
        start_run(team.rig.client, again, team.context, clock=team.rig.transport)
    set_aside(path)
    with pytest.raises(InputError, match=refusal):
        start_run(team.rig.client, again, team.context, clock=team.rig.transport)


def test_an_approval_outlives_an_older_journal_that_cannot_be_read(team: Team) -> None:
    path = journal_path(team.rig.state_dir, team.rig.twin.cluster_id, new_run_id(team.rig.transport.now_ms()))
    make_folder(path.parent)
    path.write_bytes(b"torn")
    set_aside(path)
    team.rig.transport.sleep(HOUR_S)
    team.propose()
    team.approve("bob", "cat")
    assert team.run()


def test_an_approval_expires(team: Team) -> None:
    team.propose()
    team.approve("bob", "cat")
    team.rig.transport.sleep(25 * HOUR_S)
    assert "the request expired 1h" in team.refusal()


def test_a_changed_plan_or_cluster_needs_new_approvals(team: Team) -> None:
    team.propose()
    team.approve("bob", "cat")
    name = TopicPartition("t", 0)
    team.rig.client.alter_partition_reassignments({name: (1, 0)}).raise_if_any()
    team.rig.transport.sleep(60)
    write_plan(team.plan, read_plan_file(team.plan).plan, None)  # without facts, which would refuse it before
    assert "the cluster has changed since it was proposed: t-0 had replicas [0, 1], and has [1, 0]" in team.refusal()
    team.rig.client.alter_partition_reassignments({name: (0, 1)}).raise_if_any()
    team.rig.transport.sleep(60)
    edited = Plan((PartitionAssignment(name, (1, 3)),))
    with pytest.raises(InputError, match=r"plan\.json is not replaced: another plan is proposed there"):
        write_plan(team.plan, edited, None)
    team.plan.write_text(format_plan(edited))
    assert "the plan was changed since it was proposed: t-0 was to have" in team.refusal()


def test_a_changed_request_has_no_signatures(team: Team) -> None:
    team.propose()
    team.approve("bob", "cat")
    path = request_path(team.plan)
    path.write_text(path.read_text().replace("drain", "drown"))
    assert team.refusal() == "the run is not approved: its proposer has not signed it"


def test_a_proposal_does_not_stand_for_an_approval(team: Team) -> None:
    team.propose()
    path = request_path(team.plan)
    own = path.with_name(f"{path.name}.proposal.sig").read_bytes()
    path.with_name(f"{path.name}.other.sig").write_bytes(own)
    assert "plan.request.json.other.sig: not a signature of ann@x on this request" in team.refusal()


def test_allowed_signers_decide_who_may_approve(team: Team) -> None:
    team.propose()
    team.approve("bob", "cat")
    team.keys.allow("ann", "bob", "cat", options='namespaces="kreassign-propose"')
    assert "not a signature of bob@x on this request" in team.refusal()
    team.keys.signers.write_text(team.keys.signers.read_text().replace("bob@x", "*@x"))
    assert "*@x in " in team.refusal()
    team.keys.signers.write_text("# nobody\n")
    assert team.refusal() == f"{team.keys.signers} names no signer; a line of it is: NAME ssh-ed25519 KEY"


def test_ssh_keygen_alone_signs_as_well(team: Team) -> None:
    team.propose()
    path = request_path(team.plan)
    for name in ("bob", "cat"):
        words = ("ssh-keygen", "-Y", "sign", "-q", "-n", "kreassign-approve", "-f", str(team.keys[name]))
        done = subprocess.run(words, input=path.read_bytes(), capture_output=True, check=True)
        path.with_name(f"{path.name}.{name}.sig").write_bytes(done.stdout)
    assert team.run()


def test_a_new_proposal_and_a_withdrawal_end_the_old_one(team: Team) -> None:
    team.propose()
    team.approve("bob", "cat")
    team.propose()
    assert team.refusal() == "the run is not approved: 0 approvals of 2"
    assert PlanDirectory(team.plan.parent).names() == ("plan.json",)
    assert withdraw(request_path(team.plan))
    assert not withdraw(request_path(team.plan))
    assert sorted(one.name for one in team.plan.parent.glob("plan*")) == ["plan.facts.json", "plan.json"]


def test_what_no_key_signs_is_refused(team: Team) -> None:
    with pytest.raises(InputError, match=r"ssh-keygen did not sign with .*nobody"):
        team.propose("nobody")
    assert not request_path(team.plan).exists()
    write_plan(team.plan, read_plan_file(team.plan).plan, None)
    with pytest.raises(InputError, match=r"plan\.json has no facts file"):
        team.propose()


def test_without_ssh_keygen_nothing_is_approved(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    team.propose()
    team.approve("bob", "cat")
    monkeypatch.setenv("PATH", str(team.keys.folder))
    assert team.refusal().startswith("ssh-keygen is not installed, which signs and verifies approvals; install OpenSSH")


def test_a_file_that_is_no_signature_is_named(team: Team) -> None:
    team.propose()
    path = request_path(team.plan)
    for name, content in (("a", b""), ("b", b"\xff" * 100), ("c", b"x" * 100_000)):
        path.with_name(f"{path.name}.{name}.sig").write_bytes(content)
    said = team.refusal()
    assert "plan.request.json.a.sig: no signer of" in said
    assert "plan.request.json.b.sig: no signer of" in said
    assert "plan.request.json.c.sig: it is too large for a signature" in said
