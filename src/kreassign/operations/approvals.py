"""Signed approvals on disk: a request beside its plan, the signatures beside the request, and their check before a run.

Everybody signs `plan.request.json`; `plan.request.json.*.sig` are the signatures, as `ssh-keygen -Y sign` writes them,
those of proposers with `.proposal.sig` at the end. So OpenSSH alone can approve, and any means can send an approval.
Which signatures count is decided in `kreassign.model.approvals`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from kreassign.errors import InputError, JournalLocked, JournalUnreadable
from kreassign.executor.events import RunStarted
from kreassign.executor.journal import all_journals, first_event
from kreassign.model.approvals import (
    CLOCKS_MS,
    LIFETIME_S,
    ApprovalRequest,
    ApprovalRule,
    Changes,
    Judgement,
    ListChange,
    PlanNow,
    Purpose,
    Signature,
    SignedApproval,
    format_request,
    judge,
    parse_request,
)
from kreassign.model.plan import ANY_LOG_DIR, Plan
from kreassign.model.plan_facts import PlanOrigin
from kreassign.model.reassignment import Replicas
from kreassign.model.run import Operator
from kreassign.operations.plan_files import PlanFile, read_plan_file, request_path
from kreassign.operations.ssh_signatures import is_signed_with, signed, verified
from kreassign.operations.text_files import decoded_file, read_text
from kreassign.operations.whole_file import replace_file

PROPOSAL_SUFFIX = ".proposal.sig"
MOST_SIGNATURES = 50
MOST_BYTES = 1 << 16
DEFAULT_RULE = ApprovalRule()


@dataclass(frozen=True, slots=True)
class SignedApprovals:
    """Approvals that a run needs: the request, who may sign, and the rule.

    `proposers` are names of who proposed it without a key of their own, as an autopilot does, its operator first.
    """

    request: Path
    allowed_signers: Path
    rule: ApprovalRule = DEFAULT_RULE
    proposers: tuple[str, ...] = ()


def read_request(path: Path) -> bytes:
    """Read the bytes of a request, which are signed. Raises InputError if there is none."""
    if not path.exists():
        raise InputError(f"there is no {path}: `kreassign approve PLAN --propose --key FILE` writes it")
    return path.read_bytes()


def request_of(path: Path) -> ApprovalRequest:
    """Read a request. Raises InputError if there is none, MalformedPlan."""
    return _parsed(path, read_request(path))


def approved_plan(request: ApprovalRequest) -> PlanFile:
    """The plan of a request, with the lists that it starts from."""
    before = {name: one.before for name, one in request.changes.items()}
    return PlanFile(request.plan, before, None, PlanOrigin(request.cluster_id))


def _parsed(path: Path, content: bytes) -> ApprovalRequest:
    return parse_request(decoded_file(path, content), str(path))


# Propose, and sign.


def propose(plan: Path, key: Path, operator: Operator, now_ms: int) -> ApprovalRequest:
    """Write the request for a plan, signed by its proposer; an earlier one, with its signatures, is over.

    Raises InputError if the plan has no facts: nothing says for which cluster and lists it was made.
    """
    file = read_plan_file(plan)
    facts = file.facts
    if facts is None or facts.cluster_id is None:
        raise InputError(
            f"{plan.name} has no facts file that names its cluster, so that no drift could be seen; "
            "`kreassign plan import` makes one"
        )
    request = ApprovalRequest(
        operator.name,
        facts.cluster_id,
        now_ms,
        now_ms + round(LIFETIME_S * 1000),
        tuple(one.broker for one in facts.brokers),
        (facts.task, *facts.factors),
        changes_of(file.plan, file.expected, facts.topic_ids),
    )
    path = request_path(plan)
    signature = signed(format_request(request).encode(), key, Purpose.PROPOSE)
    write_request(path, request)
    replace_file(path.with_name(f"{path.name}{PROPOSAL_SUFFIX}"), signature)
    return request


def changes_of(plan: Plan, before: Replicas, topic_ids: Mapping[str, str | None]) -> Changes:
    """The changes of a plan; a partition without a list before it has that of the plan already."""
    return {
        one.topic_partition: ListChange(
            tuple(before.get(one.topic_partition, one.replicas)),
            one.replicas,
            one.log_dirs if set(one.log_dirs) - {ANY_LOG_DIR} else (),
            topic_ids.get(one.topic_partition.topic),
        )
        for one in plan.assignments
    }


def write_request(path: Path, request: ApprovalRequest) -> None:
    """Write a request for people to sign; an earlier one, with its signatures, is over."""
    withdraw(path)
    replace_file(path, format_request(request).encode())


def approve_request(path: Path, key: Path, user: str) -> Path:
    """Sign a request as an approver; return the file of the signature. Raises InputError."""
    content = read_request(path)
    _parsed(path, content)
    proposal = path.with_name(f"{path.name}{PROPOSAL_SUFFIX}")
    if proposal.exists() and is_signed_with(key, content, proposal, Purpose.PROPOSE):
        raise InputError(
            f"{key} proposed this plan, and cannot approve it, too: another person approves it with their key"
        )
    signature = signed(content, key, Purpose.APPROVE)
    place = path.with_name(f"{path.name}.{user}-{sha256(signature).hexdigest()[:8]}.sig")
    replace_file(place, signature)
    return place


def withdraw(path: Path) -> bool:
    """Remove a request and its signatures; False if there is none."""
    found = (path, *_signatures(path))
    is_there = path.exists()
    for one in found:
        one.unlink(missing_ok=True)
    return is_there


def _signatures(path: Path) -> list[Path]:
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    return sorted(one for one in beside if one.name.startswith(f"{path.name}.") and one.suffix == ".sig")


# Check before a run.

KEY_TYPES = ("ssh-", "ecdsa-", "sk-")


def check_signers(path: Path) -> None:
    """Raise InputError, which names the file, if it has no signer."""
    lines = (line.split() for line in read_text(path).splitlines() if not line.startswith("#"))
    if not any(word.startswith(KEY_TYPES) for words in lines for word in words[1:-1]):
        raise InputError(f"{path} names no signer; a line of it is: NAME ssh-ed25519 KEY")


def judgement(wanted: SignedApprovals, now: PlanNow) -> Judgement:
    """Judge a request with the signatures beside it. Raises InputError if a file or ssh-keygen is missing."""
    content = read_request(wanted.request)
    request = _parsed(wanted.request, content)
    check_signers(wanted.allowed_signers)
    found: dict[Purpose, list[Signature]] = {purpose: [] for purpose in Purpose}
    for place in _signatures(wanted.request)[:MOST_SIGNATURES]:
        purpose = Purpose.PROPOSE if place.name.endswith(PROPOSAL_SUFFIX) else Purpose.APPROVE
        found[purpose].append(_verified(wanted, content, place, purpose))
    proposals = found[Purpose.PROPOSE]
    if wanted.proposers:
        # A process that goes on with the request of another one proposed nothing.
        operator, *others = wanted.proposers
        later = Signature("", (operator,), did="runs the autopilot that proposed it")
        proposals = [Signature("", (request.proposed_by, *others)), later]
    return judge(request, wanted.rule, now, proposals, found[Purpose.APPROVE])


def _verified(wanted: SignedApprovals, content: bytes, place: Path, purpose: Purpose) -> Signature:
    if place.stat().st_size > MOST_BYTES:
        return Signature(place.name, problem="it is too large for a signature")
    return verified(content, place, wanted.allowed_signers, purpose)


def approval_for(
    wanted: SignedApprovals, plan: Plan, started: RunStarted, state_dirs: Iterable[Path]
) -> SignedApproval:
    """Return the approval that permits this run. Raises InputError with the reason if none does."""
    before = {move.topic_partition: move.original for move in started.moves}
    topic_ids = {move.topic_partition.topic: move.topic_id for move in started.moves}
    changes = changes_of(plan, before, topic_ids)
    found = judgement(wanted, PlanNow(started.at_ms, started.cluster_id, changes, started.live_brokers))
    if why := found.dead or found.lacking:
        raise InputError(f"the run is not approved: {why}")
    approval = SignedApproval(found.request_id, found.proposed_by, found.approved_by, found.proposed_ms)
    refuse_spent(approval, state_dirs, started.cluster_id)
    return approval


def refuse_spent(approval: SignedApproval, state_dirs: Iterable[Path], cluster_id: str) -> None:
    """Raise InputError if a run began with this approval, or may have: each permits one. JournalLocked in doubt.

    A journal that was set aside counts as well. An unreadable one that is older than the request did not use it.
    """
    since = datetime.fromtimestamp(max(0, approval.proposed_ms - CLOCKS_MS) / 1000, tz=UTC)
    oldest = f"{since:%Y%m%dT%H%M%SZ}"  # as run ids begin
    again = "which permits one run; propose the plan again"
    for path in (one for folder in state_dirs for one in all_journals(folder, cluster_id)):
        try:
            first = first_event(path)
        except JournalUnreadable as error:
            if path.name < oldest:
                continue
            if isinstance(error, JournalLocked):
                raise
            raise InputError(
                f"the run is not approved: the run of {path}, which cannot be read, may have begun with this approval, "
                f"{again}"
            ) from error
        if first.approval is not None and first.approval.request_id == approval.request_id:
            raise InputError(f"the run is not approved: run {first.run_id} began with this approval, {again}")
