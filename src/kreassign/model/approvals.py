"""Approvals of plans: the request that approvers sign, and the judgement of their signatures. Pure.

A request is a JSON document with the plan, the replica lists that it was made for, who proposes it, and when it
expires. Proposer and approvers sign the same bytes, each for a purpose of its own, so that neither signature can stand
for the other. A request permits one run: its id is in the journal of that run.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from itertools import islice
from typing import NamedTuple

from kreassign.errors import InputError, MalformedPlan
from kreassign.model.cluster import TopicPartition
from kreassign.model.documents import KeyedTable
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.text import counted, format_seconds, printable

LIFETIME_S = 24 * 3600.0
"""Time until a request expires, unless a policy says otherwise."""

CLOCKS_MS = 300_000
"""Difference between the clocks of two hosts that is taken for none."""

MOST_SAID = 3
"""Most differences that a refusal names."""


class Purpose(StrEnum):
    """Purpose of a signature: the namespace of `ssh-keygen -Y sign -n`."""

    PROPOSE = "kreassign-propose"
    APPROVE = "kreassign-approve"


class ListChange(NamedTuple):
    """Replica list of a partition, before and after; the directory of each replica, if the plan names some."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    log_dirs: tuple[str, ...] = ()
    topic_id: str | None = None


Changes = Mapping[TopicPartition, ListChange]


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """The document that people sign. `brokers` are those that the plan knew, `about` says what it is for."""

    proposed_by: str
    cluster_id: str
    at_ms: int
    expires_ms: int
    brokers: tuple[int, ...]
    about: tuple[str, ...]
    changes: Changes

    @property
    def plan(self) -> Plan:
        """The plan that is to be approved."""
        return Plan(tuple(PartitionAssignment(name, one.after, one.log_dirs) for name, one in self.changes.items()))

    @property
    def request_id(self) -> str:
        """Digest of what is signed: another time, plan or state is another request."""
        return sha256(format_request(self).encode()).hexdigest()[:ID_LENGTH]


ID_LENGTH = 16
VERSION_KEY, VERSION = "kreassign_approval_request", 1


def format_request(request: ApprovalRequest) -> str:
    """The document to sign; one line for each partition, for those who read it first."""
    head = {
        VERSION_KEY: VERSION,
        "proposed_by": request.proposed_by,
        "cluster_id": request.cluster_id,
        "at_ms": request.at_ms,
        "expires_ms": request.expires_ms,
        "brokers": list(request.brokers),
        "about": list(request.about),
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items()]
    rows = ",\n".join(f"  {json.dumps(_row(name, one))}" for name, one in sorted(request.changes.items()))
    return f'{{\n{"".join(lines)} "partitions": [\n{rows}\n ]\n}}\n'


def _row(name: TopicPartition, change: ListChange) -> dict[str, object]:
    row: dict[str, object] = {
        "topic": name.topic,
        "partition": name.partition,
        "before": list(change.before),
        "after": list(change.after),
    }
    dirs = {"log_dirs": list(change.log_dirs)} if change.log_dirs else {}
    return row | dirs | ({} if change.topic_id is None else {"topic_id": change.topic_id})


def parse_request(text: str, name: str) -> ApprovalRequest:
    """Parse a request; `name` is that of its file. Raises MalformedPlan."""
    try:
        with KeyedTable.from_json(text, name).taken_whole() as top:
            top.whole(VERSION_KEY, least=VERSION, most=VERSION)
            return ApprovalRequest(
                top.text("proposed_by"),
                top.text("cluster_id"),
                top.whole("at_ms"),
                top.whole("expires_ms"),
                top.wholes("brokers"),
                top.texts("about"),
                dict(map(_change, top.tables("partitions"))),
            )
    except InputError as error:
        raise MalformedPlan(f"{error}; this is no request for approval") from error


def _change(row: KeyedTable) -> tuple[TopicPartition, ListChange]:
    with row.taken_whole():
        topic_id = row.text("topic_id") if row.has("topic_id") else None
        change = ListChange(row.wholes("before"), row.wholes("after"), row.texts("log_dirs"), topic_id)
        return TopicPartition(row.text("topic"), row.whole("partition")), change


# Signatures, as `ssh-keygen -Y verify` finds them.


class Signature(NamedTuple):
    """A signature in a file: names and key of its signer, or the reason why it does not count.

    Of a proposer it says what they `did`, for which they cannot approve.
    """

    file: str
    names: tuple[str, ...] = ()
    key: str = ""
    problem: str = ""
    did: str = "proposed it"

    @property
    def signer(self) -> str:
        """First name of the signer."""
        return self.names[0]

    def is_of(self, other: Signature) -> bool:
        """True if both have a name or the key in common: they are of one person."""
        return self.key == other.key or not set(self.names).isdisjoint(other.names)


class SignedApproval(NamedTuple):
    """Approval with which a run began: the id and time of the request, and who proposed and approved it."""

    request_id: str
    proposed_by: str
    approved_by: tuple[str, ...]
    proposed_ms: int = 0

    def __str__(self) -> str:
        return printable(f"approved by {', '.join(self.approved_by)}, proposed by {self.proposed_by}")


# The judgement.


class ApprovalRule(NamedTuple):
    """Number of approvals needed, and the time for which a request is good, whatever the request says itself."""

    least: int = 1
    lifetime_s: float = LIFETIME_S


@dataclass(frozen=True, slots=True)
class PlanNow:
    """Plan and cluster as they are now: the plan's partitions with their present lists, and brokers that are live."""

    at_ms: int
    cluster_id: str
    changes: Changes
    live: Collection[int]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The signers that count, why the request is dead (for ever), and what is lacking (until others sign)."""

    request_id: str
    proposed_ms: int = 0
    proposed_by: str = ""
    approved_by: tuple[str, ...] = ()
    dead: str = ""
    lacking: str = ""


def judge(
    request: ApprovalRequest,
    rule: ApprovalRule,
    now: PlanNow,
    proposals: Iterable[Signature],
    approvals: Iterable[Signature],
) -> Judgement:
    """Judge a request and its signatures. A proposer without a key is a value in `proposals`."""
    if dead := _dead(request, rule, now):
        return Judgement(request.request_id, dead=dead)
    proposers = [one for one in proposals if not one.problem]
    if not proposers:
        return Judgement(request.request_id, lacking="its proposer has not signed it")
    counted_in: list[Signature] = []
    ignored: list[str] = []
    for one in approvals:
        if one.problem:
            ignored.append(f"{one.file}: {one.problem}")
        elif did := next((proposer.did for proposer in proposers if one.is_of(proposer)), ""):
            ignored.append(f"{one.file}: {one.signer} {did}, and cannot approve it")
        elif any(one.is_of(other) for other in counted_in):
            ignored.append(f"{one.file}: {one.signer} has approved it already")
        else:
            counted_in.append(one)
    by, proposer = tuple(one.signer for one in counted_in), proposers[0].signer
    if len(by) >= rule.least:
        return Judgement(request.request_id, request.at_ms, proposer, by)
    have = f"{counted(len(by), 'approval')} of {rule.least}" + (f" ({', '.join(by)})" if by else "")
    return Judgement(request.request_id, request.at_ms, proposer, by, lacking=printable("; ".join((have, *ignored))))


def _dead(request: ApprovalRequest, rule: ApprovalRule, now: PlanNow) -> str:
    """Why a request permits nothing any more; empty if it still may."""
    ends_ms = min(request.expires_ms, request.at_ms + round(rule.lifetime_s * 1000))
    if request.at_ms > now.at_ms + CLOCKS_MS:
        ahead = format_seconds((request.at_ms - now.at_ms) / 1000)
        return f"the request is dated {ahead} ahead of this machine's clock"
    if now.at_ms >= ends_ms:
        return f"the request expired {format_seconds((now.at_ms - ends_ms) / 1000)} ago; propose the plan again"
    if request.cluster_id != now.cluster_id:
        return f"the request is for cluster {request.cluster_id}, and this is cluster {now.cluster_id}"
    for what, found in (
        ("the plan was changed", _edits(request, now)),
        ("the cluster has changed", _drift(request, now)),
    ):
        said = list(islice(found, MOST_SAID + 1))
        if said:
            more = " …" if len(said) > MOST_SAID else ""
            return printable(f"{what} since it was proposed: {'; '.join(said[:MOST_SAID])}{more}; propose it again")
    return ""


def _edits(request: ApprovalRequest, now: PlanNow) -> Iterator[str]:
    for name in sorted(request.changes.keys() | now.changes.keys()):
        approved, planned = request.changes.get(name), now.changes.get(name)
        if planned is None:
            yield f"{name} is not in the plan any more"
        elif approved is None:
            yield f"{name} was not in the plan"
        elif approved.after != planned.after:
            yield f"{name} was to have {list(approved.after)}, and is to have {list(planned.after)} now"
        elif approved.log_dirs != planned.log_dirs:
            yield f"{name} is to have other log directories"


def _drift(request: ApprovalRequest, now: PlanNow) -> Iterator[str]:
    for name, approved in sorted(request.changes.items()):
        present = now.changes[name]
        if present.before != approved.before:
            yield f"{name} had replicas {list(approved.before)}, and has {list(present.before)}"
        elif None not in {present.topic_id, approved.topic_id} and present.topic_id != approved.topic_id:
            yield f"topic {name.topic} was deleted and created again"
    targets = {broker for one in request.changes.values() for broker in one.after}
    for broker in sorted(targets - set(now.live)):
        yield f"broker {broker} is down, which the plan gives replicas"
    for broker in sorted(set(now.live) - set(request.brokers)):
        yield f"broker {broker} is live, which the plan did not know"
