"""Users of the page: each with a token of their own, which says what they may do, and by what name they approve."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kreassign.errors import InputError
from kreassign.web.api import CALLS
from kreassign.web.settings import PageToken, Role, WebSettings, parse_users
from tests.browser import OpenPage, button
from tests.web.conftest import Place
from tests.web.site import Site, serving_page

ANN, BOB, EVE = (f"{name}-{'x' * 24}" for name in ("ann", "bob", "eve"))
USERS = f"""
# who may do what
ann  approver           {ANN}
bob  operator,approver  {BOB}  # both
eve  viewer             {EVE}
"""


@pytest.fixture(scope="module")
def shared(place: Place) -> Iterator[Site]:
    settings = WebSettings(place.state_dir, port=0, plans=place.plans, allows_control=True, users=parse_users(USERS))
    with serving_page(settings) as site:
        yield site


def test_a_user_has_a_name_roles_and_a_hidden_token() -> None:
    ann, bob, eve = parse_users(USERS)
    assert (ann.name, bob.name, eve.name) == ("ann", "bob", "eve")
    assert bob.roles == {Role.OPERATOR, Role.APPROVER}
    assert ann.token.matches(ANN)
    assert not ann.token.matches(BOB)
    assert ANN not in repr(ann)


@pytest.mark.parametrize(("text", "reason"), [
    ("", "there are no users"),
    ("ann approver", "line 1: a user is a line NAME ROLE"),
    (f"ann admin {ANN}", "line 1: its second word is not a list of roles"),
    (f"ann {ANN} approver", "line 1: its second word is not a list of roles"),
    ("ann viewer planted-token", "line 1: a token has at least 24 characters"),
    (f"ann viewer {ANN}\nann viewer {BOB}", "line 2: the name ann is taken"),
    (f"ann viewer {ANN}\n\nbob viewer {ANN}", "line 3: bob has the token of another user"),
])  # fmt: skip
def test_users_are_refused_by_line_and_without_their_tokens(text: str, reason: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_users(text)
    assert reason in str(refused.value)
    assert ANN not in str(refused.value)
    assert "planted" not in str(refused.value)


def test_a_page_has_one_token_or_users_but_not_both() -> None:
    with pytest.raises(InputError, match="either one token or users"):
        WebSettings(Path("state"), token=PageToken(ANN), users=parse_users(USERS))


def test_each_change_needs_the_role_of_its_call(shared: Site) -> None:
    for call in CALLS:
        if call.request is None:
            continue
        path = call.path.replace("{run_id}", "run-1").replace("{name}", "plan.json")
        without = {Role.OPERATOR: ANN, Role.APPROVER: EVE}[call.role]
        refused = shared.post(path, token=without)
        assert refused.status == 403, path
        assert f"needs the role {call.role.value}" in refused.document["detail"]
        assert shared.post(path, token=EVE).status == 403
        assert shared.post(path, {"not": "known"}, token=BOB).status == 422


def test_me_names_the_user_of_the_token(shared: Site) -> None:
    def me(**headers: str) -> object:
        return shared.ask("/api/v1/me", **headers).document

    assert me(authorization=f"Bearer {BOB}") == {"name": "bob", "roles": ["approver", "operator"]}
    assert me() == me(authorization="Bearer wrong") == {"name": "", "roles": []}


def test_an_approval_has_the_name_of_the_token(shared: Site, place: Place) -> None:
    plan_id = shared.ask("/api/v1/plans/plan.json").document["summary"]["plan_id"]
    forged = shared.post("/plans/plan.json/approve", {"plan_id": plan_id, "approved_by": "bob"}, token=ANN)
    assert (forged.status, forged.document["detail"]) == (
        422, "the token is that of ann, who approves by no other name",
    )  # fmt: skip
    approved = shared.post("/plans/plan.json/approve", {"plan_id": plan_id}, token=ANN)
    assert approved.document["approval"]["approved_by"] == "ann"
    assert approved.document["approval"]["plan_id"] == plan_id
    assert approved.document["approval"]["approved_ms"] > 0
    assert shared.post("/plans/plan.json/revoke", token=ANN).status == 200
    assert not (place.plans / "plan.approval.json").exists()


def test_the_page_shows_what_the_user_may_do(shared: Site, open_page: OpenPage) -> None:
    page = open_page(f"{shared.address}plans/plan.json", hosts=(shared.host,)).page
    user = page.locator("[data-user]")
    for token, shown, may_approve in (
        ("wrong", "That is no token of this page.", False), (EVE, "eve: viewer", False), (ANN, "ann: approver", True),
    ):  # fmt: skip
        page.fill("#token", token)
        button(page, "Unlock control").click()
        page.locator("[data-user]", has_text=shown).wait_for()
        assert page.locator("[data-approve]").is_visible() is may_approve
        assert page.locator("#approved_by").count() == 0, "the name is that of the token"
        if token != "wrong":
            button(page, "Lock control").click()
    assert user.inner_text() == ""
