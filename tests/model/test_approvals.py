"""The judgement of requests and signatures: everything that keeps a run from being approved, with its sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.errors import MalformedPlan
from kreassign.model import TopicPartition
from kreassign.model.approvals import (
    ApprovalRequest,
    ApprovalRule,
    ListChange,
    PlanNow,
    Signature,
    SignedApproval,
    format_request,
    judge,
    parse_request,
)
from kreassign.model.text import HOUR_MS

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
CHANGES = {T0: ListChange((1, 2), (1, 3), topic_id="a"), T1: ListChange((2, 1), (2, 3), ("any", "/d0"))}
REQUEST = ApprovalRequest("ann@host", "c", 1_000, 1_000 + 24 * HOUR_MS, (1, 2, 3), ("drain broker 1",), CHANGES)
REQUEST_TEXT = format_request(REQUEST)
NOW = PlanNow(1_000 + HOUR_MS, "c", CHANGES, (1, 2, 3))
ANN, BOB, CAT = (Signature(f"{name}.sig", (f"{name}@x",), f"key of {name}") for name in ("ann", "bob", "cat"))
TWO = ApprovalRule(2)


def lacking(*approvals: Signature, rule: ApprovalRule = TWO) -> str:
    return judge(REQUEST, rule, NOW, [ANN], approvals).lacking


def dead(now: PlanNow, request: ApprovalRequest = REQUEST) -> str:
    return judge(request, TWO, now, [ANN], [BOB, CAT]).dead


def test_enough_signers_approve_who_did_not_propose() -> None:
    found = judge(REQUEST, TWO, NOW, [ANN], [BOB, CAT])
    assert (found.proposed_by, found.approved_by, found.dead, found.lacking) == ("ann@x", ("bob@x", "cat@x"), "", "")


def test_an_approval_tells_who_approved_and_who_proposed() -> None:
    assert str(SignedApproval("r", "ann@x", ("bob@x", "cat@x"))) == "approved by bob@x, cat@x, proposed by ann@x"


def test_too_few_approvals_are_counted_and_named() -> None:
    assert lacking() == "0 approvals of 2"
    assert lacking(BOB) == "1 approval of 2 (bob@x)"


def test_the_proposer_cannot_approve() -> None:
    assert lacking(ANN, BOB) == "1 approval of 2 (bob@x); ann.sig: ann@x proposed it, and cannot approve it"
    other_name = Signature("a.sig", ("andrea@x",), ANN.key)
    other_key = Signature("b.sig", ("root@x", "ann@x"), "another key")
    assert "andrea@x proposed it" in lacking(other_name, BOB)
    assert "root@x proposed it" in lacking(other_key, BOB)


def test_one_person_with_two_keys_or_names_counts_once() -> None:
    same_name, same_key = BOB._replace(file="c.sig", key="k2"), BOB._replace(file="c.sig", names=("bobby@x",))
    assert lacking(BOB, same_name) == "1 approval of 2 (bob@x); c.sig: bob@x has approved it already"
    assert "bobby@x has approved it already" in lacking(BOB, same_key)


def test_a_signature_that_does_not_count_is_named_with_its_reason() -> None:
    assert lacking(BOB, Signature("x.sig", problem="no signer")) == "1 approval of 2 (bob@x); x.sig: no signer"


def test_a_request_that_its_proposer_did_not_sign_permits_nothing() -> None:
    for proposals in ([], [Signature("p.sig", problem="no signer")]):
        assert judge(REQUEST, TWO, NOW, proposals, [BOB, CAT]).lacking == "its proposer has not signed it"


def test_a_request_expires_whatever_it_says() -> None:
    late = replace(NOW, at_ms=1_000 + 25 * HOUR_MS)
    assert dead(late) == "the request expired 1h ago; propose the plan again"
    assert dead(late, replace(REQUEST, expires_ms=10**15)) == "the request expired 1h ago; propose the plan again"
    assert "dated 1h ahead of this machine's clock" in dead(NOW, replace(REQUEST, at_ms=NOW.at_ms + HOUR_MS))
    assert dead(NOW, replace(REQUEST, at_ms=NOW.at_ms + 1_000)) == ""


@pytest.mark.parametrize(("now", "said"), [
    (replace(NOW, cluster_id="d"), "the request is for cluster c, and this is cluster d"),
    (replace(NOW, changes={T0: CHANGES[T0]}), "the plan was changed since it was proposed: t-1 is not in the plan"),
    (replace(NOW, changes={**CHANGES, TopicPartition("t", 2): CHANGES[T0]}), "t-2 was not in the plan"),
    (replace(NOW, changes={**CHANGES, T0: CHANGES[T0]._replace(after=(1, 4))}),
     "t-0 was to have [1, 3], and is to have [1, 4] now"),
    (replace(NOW, changes={**CHANGES, T1: CHANGES[T1]._replace(log_dirs=())}), "t-1 is to have other log directories"),
    (replace(NOW, changes={**CHANGES, T0: CHANGES[T0]._replace(before=(2, 1))}),
     "the cluster has changed since it was proposed: t-0 had replicas [1, 2], and has [2, 1]"),
    (replace(NOW, changes={**CHANGES, T0: CHANGES[T0]._replace(topic_id="b")}),
     "topic t was deleted and created again"),
    (replace(NOW, live=(1, 2)), "broker 3 is down, which the plan gives replicas"),
    (replace(NOW, live=(1, 2, 3, 4)), "broker 4 is live, which the plan did not know"),
])  # fmt: skip
def test_any_drift_of_plan_or_cluster_kills_the_approval(now: PlanNow, said: str) -> None:
    assert said in dead(now)
    assert dead(now).endswith("; propose it again") or "for cluster" in said


def test_a_long_list_of_differences_is_cut() -> None:
    many = {TopicPartition("t", number): CHANGES[T0] for number in range(9)}
    changed = {name: one._replace(before=(9, 9)) for name, one in many.items()}
    said = dead(replace(NOW, changes=changed), replace(REQUEST, changes=many))
    assert said.count("had replicas") == 3
    assert said.endswith(" …; propose it again")


def test_a_request_is_read_as_it_was_written() -> None:
    text = format_request(REQUEST)
    assert parse_request(text, "r.json") == REQUEST
    assert format_request(parse_request(text, "r.json")) == text


@pytest.mark.parametrize(("text", "said"), [
    ("", "this is not JSON: it is empty"),
    ("[]", "this is JSON, but not an object"),
    ("{}", "the key 'kreassign_approval_request' is missing; it must be a whole number of at least 1 and at most 1"),
    ('{"kreassign_approval_request": 2}', "'kreassign_approval_request' is 2; it must be a whole number"),
    ('{"kreassign_approval_request": 1}', "the key 'proposed_by' is missing"),
    (REQUEST_TEXT.replace('"at_ms": 1000', '"at_ms": "soon"'), "'at_ms' is 'soon'; it must be a whole number"),
    (REQUEST_TEXT.replace('"before": [1, 2]', '"before": 7'), "[[partitions]] 1: 'before' is 7; it must be a list"),
    (REQUEST_TEXT.replace('"partition": 0', '"partition": true'), "[[partitions]] 1: 'partition' is true"),
    (REQUEST_TEXT.replace('"before": [1, 2]', '"before": [1, "2"]'), "[[partitions]] 1: 'before' is [1, '2']"),
    (REQUEST_TEXT.replace('"after"', '"later"', 1), "[[partitions]] 1: there is no key 'later' here"),
])  # fmt: skip
def test_a_file_that_is_no_request_is_refused_by_its_key(text: str, said: str) -> None:
    with pytest.raises(MalformedPlan) as refused:
        parse_request(text, "r.json")
    assert said in str(refused.value).removeprefix("r.json: ")
    assert str(refused.value).endswith("; this is no request for approval")
