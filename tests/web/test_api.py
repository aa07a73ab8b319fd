"""The HTTP API: its document, that answers are as it says, and what runs and plans do when they are asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from kreassign.cli.main import kreassign
from kreassign.executor.events import (
    CancelRequested,
    HoldRequested,
    PaceRequested,
    ReleaseRequested,
    Request,
    ThrottleRequested,
)
from kreassign.executor.journal import read_events
from kreassign.model.plan import PartitionAssignment, Plan, format_plan
from kreassign.model.plan_facts import PlanFacts, Prediction, plan_id
from kreassign.operations.plan_files import facts_path, write_plan
from kreassign.operations.run_journals import NamedCluster
from kreassign.web.api import CALLS, DOCUMENT_PATH, PREFIX, STREAM_PATH, openapi
from kreassign.web.operations import MOST_STREAMS
from kreassign.web.records import SHOWN_MOVES, run_document
from testbed.waiting import wait_until
from tests.executor.twin_runs import tp
from tests.monitoring.pages import Page
from tests.report.plans import FACTS
from tests.report.runs import TWO_MOVES, a_run
from tests.web.conftest import PLAN, Place, write_hostile_plan
from tests.web.runs import IMAGE, SCRIPT, LiveRun, hostile_journal, live_run
from tests.web.site import Site, serving_page, with_control


def checked(answer: Any, path: str, method: str = "get") -> Any:
    """A document, after a look whether it is as the OpenAPI document says."""
    described = openapi()
    schema = described["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": described["components"]}).validate(answer)
    return answer


# The document


def test_the_document_is_openapi_and_has_every_call(site: Site) -> None:
    found = site.ask(DOCUMENT_PATH).document
    validate(found)
    assert found == openapi()
    calls = {(path, method) for path, methods in found["paths"].items() for method in methods}
    assert calls == {(PREFIX + call.path, call.method.lower()) for call in CALLS} | {(STREAM_PATH, "get")}
    names = [call.name for call in CALLS]
    assert len(names) == len(set(names))


def test_whatever_changes_something_is_said_to_need_the_token() -> None:
    for methods in openapi()["paths"].values():
        for method, operation in methods.items():
            assert (operation.get("security") == [{"token": []}]) is (method == "post")


def test_answers_have_every_field_and_requests_may_omit_defaults() -> None:
    schemas, paths = openapi()["components"]["schemas"], openapi()["paths"]
    asked = {
        operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for methods in paths.values()
        for operation in methods.values()
        if "requestBody" in operation
    }
    assert schemas["TaskRequest"]["required"] == ["task"]
    assert schemas["ApproveRequest"]["required"] == ["plan_id"]
    for name in schemas.keys() - asked:
        assert schemas[name]["required"] == [*schemas[name]["properties"]], name


@pytest.mark.parametrize("path", [f"{PREFIX}{call.path}" for call in CALLS if call.request is None])
def test_answers_are_as_the_document_says(site: Site, path: str) -> None:
    answer = site.ask(path.replace("{run_id}", "run-1").replace("{name}", "plan.json"))
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    checked(answer.document, path)


# Reading


def test_runs_and_clusters_are_listed_with_their_names_as_they_are(site: Site) -> None:
    (run,) = site.ask("/api/v1/runs").document["runs"]
    assert (run["run_id"], run["cluster_id"], run["failed_count"], run["is_active"]) == ("run-1", IMAGE, 1, False)
    (cluster,) = site.ask("/api/v1/clusters").document["clusters"]
    assert (cluster["cluster_id"], cluster["run_count"], cluster["active_run"]) == (IMAGE, 1, None)
    assert site.ask("/api/v1/runs?cluster_id=other").document == {"runs": []}
    assert site.ask("/api/v1/runs?limit=0").document == {"runs": []}


def test_clusters_that_have_names_are_listed_by_them_also_without_runs(tmp_path: Path) -> None:
    hostile_journal(tmp_path / "prod")
    prod = NamedCluster("prod", "broker-1:9092", (tmp_path / "prod").resolve())
    settings = replace(with_control(tmp_path / "state"), clusters=(prod, NamedCluster("test", "t-1:9092")))
    with serving_page(settings) as site:
        first, second = checked(site.ask("/api/v1/clusters").document, f"{PREFIX}/clusters")["clusters"]
        assert (first["name"], first["cluster_id"], first["run_count"]) == ("prod", IMAGE, 1)
        assert (second["name"], second["bootstrap_server"], second["run_count"]) == ("test", "t-1:9092", 0)
        page = site.ask("/").text
        assert "kreassign plan --cluster test" in page
        assert '<td class="name">prod</td>' in page
        assert ">prod</span> · started" in site.ask("/runs/run-1").text
        assert site.ask("/api/v1/runs/run-1").status == 200, "its own state directory is served, too"


def test_a_run_has_its_moves_and_moves_come_in_parts(site: Site) -> None:
    run = site.ask("/api/v1/runs/run-1").document
    assert [(move["topic"], move["status"]) for move in run["moves"]] == [(SCRIPT, "failed")]
    assert SCRIPT in run["moves"][0]["problem"]
    moves = site.ask("/api/v1/runs/run-1/moves?offset=1&limit=1").document
    assert (moves["total"], moves["offset"], moves["moves"]) == (1, 1, [])


def test_a_run_is_the_document_that_status_prints(place: Place) -> None:
    shown = CliRunner().invoke(kreassign, ["status", "run-1", "--state-dir", str(place.state_dir), "--format", "json"])
    assert place.site.ask("/api/v1/runs/run-1").document == json.loads(shown.output)


def test_a_run_names_as_many_partitions_of_a_problem_as_moves() -> None:
    sentence, names = "1,000 partitions (t-0 and 999 more) each was refused", tuple(f"t-{one}" for one in range(1_000))
    document = run_document(a_run(TWO_MOVES, problem_partitions={sentence: names, "in short": names[:2]}))
    assert document["problem_partitions"] == {sentence: [*names[:SHOWN_MOVES]], "in short": ["t-0", "t-1"]}


@pytest.mark.parametrize(("path", "status"), [
    ("/api/v1/runs?limit=many", 422), ("/api/v1/runs?limit=-1", 422), ("/api/v1/runs?limit=501", 422),
    ("/api/v1/runs?limt=5", 422), ("/api/v1/runs/run-1/moves?limit=1e9", 422), ("/api/v1/runs/run-2", 404),
    ("/api/v1/plans/other.json", 404), ("/api/v1/nothing", 404), ("/api/v2/runs", 404),
])  # fmt: skip
def test_what_cannot_be_answered_is_a_problem_with_its_reason(site: Site, path: str, status: int) -> None:
    answer = site.ask(path)
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.document.keys() == {"title", "status", "detail"}
    assert answer.document["status"] == status


def test_an_unreadable_journal_is_listed_with_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "cluster-1"
    folder.mkdir()
    (folder / "run-2.sqlite").write_bytes(b"no journal")
    with serving_page(with_control(tmp_path)) as site:
        (run,) = site.ask("/api/v1/runs").document["runs"]
        assert (run["run_id"], run["state"]) == ("run-2", "unreadable")
        assert "kreassign forget" in run["problem"]
        assert site.ask("/api/v1/runs/run-2").status == 409
        assert "unreadable" in site.ask("/").text
        assert site.ask("/metrics").status == 200


# Plans


@pytest.mark.parametrize(("content", "why"), [
    (b"{}", "does not fit its schema: it has no 'plan_id'"),
    (b'{"plan_id": "x", "approved_by": 5}', "approved_by is 5, which is no string"),
    (b'{"plan_id": "x", "approved_by": "a", "by": "b"}', "there is no field 'by'"),
    (b'{"plan_id": "x", "approved_by": "a"}', "look again"),
    (b"[]", "no JSON object"),
    (b"{", "is no JSON"),
    (b'{"plan_id": NaN}', "is no JSON"),
    (b"\xff", "is no JSON"),
])  # fmt: skip
def test_a_malformed_request_is_refused_and_approves_nothing(place: Place, content: bytes, why: str) -> None:
    answer = place.site.ask(
        "/api/v1/plans/plan.json/approve", "POST", content, content_type="application/json; charset=utf-8",
        authorization="Bearer correct-horse-battery-staple-42",
    )  # fmt: skip
    assert answer.status == 422
    assert why in answer.document["detail"]
    assert not list(place.plans.glob("*.approval.json"))


def test_an_approval_holds_until_the_plan_changes_or_it_is_revoked(place: Place) -> None:
    site = place.site
    plan_id = site.ask("/api/v1/plans/plan.json").document["summary"]["plan_id"]
    assert site.post("/plans/plan.json/approve", {"plan_id": plan_id, "approved_by": " "}).status == 422
    asked = {"plan_id": plan_id, "approved_by": "Ada", "note": "change 4711"}
    approved = checked(
        site.post("/plans/plan.json/approve", asked).document, f"{PREFIX}/plans/{{name}}/approve", "post"
    )
    assert approved["approval"]["plan_id"] == plan_id
    (shown,) = site.ask("/api/v1/plans").document["plans"]
    assert shown["approval"]["approved_by"] == "Ada"
    try:
        (place.plans / "plan.facts.json").unlink(missing_ok=True)
        (place.plans / "plan.json").write_text(format_plan(Plan((PartitionAssignment(tp(0), (3, 1)),))))
        (changed,) = site.ask("/api/v1/plans").document["plans"]
        assert (changed["approval"], changed["plan_id"] == plan_id) == (None, False)
        assert site.post("/plans/plan.json/approve", asked).status == 422
    finally:
        write_hostile_plan(place.plans / "plan.json")
    assert site.post("/plans/plan.json/revoke").document == {"name": "plan.json", "approval": None}
    assert site.post("/plans/plan.json/revoke").status == 422


def test_a_file_that_is_no_plan_is_listed_with_the_reason(place: Place) -> None:
    odd = place.plans / "odd.json"
    odd.write_text("[]")
    try:
        listed = {plan["name"]: plan for plan in place.site.ask("/api/v1/plans").document["plans"]}
        assert "odd.json" in listed["odd.json"]["problem"]
        assert listed["plan.json"]["problem"] is None
        assert place.site.ask("/api/v1/plans/odd.json").status == 422
        assert place.site.ask("/plans").status == 200
    finally:
        odd.unlink()


@pytest.mark.parametrize(("facts", "words"), [
    (replace(FACTS, plan_id=plan_id(PLAN), prediction=Prediction(1e6, inf, inf)), "<dt>Predicted</dt><dd>never</dd>"),
    (None, "What it copies is not known: the plan has no facts file beside it."),
], ids=["never ends", "no facts"])  # fmt: skip
def test_a_plan_of_which_figures_are_missing_has_a_page(place: Place, facts: PlanFacts | None, words: str) -> None:
    path = place.plans / "odd.json"
    write_plan(path, PLAN, facts)
    try:
        page = place.site.ask("/plans/odd.json")
        assert (page.status, words in page.text) == (200, True)
        assert "<dd>-</dd>" not in page.text
    finally:
        path.unlink()
        facts_path(path).unlink(missing_ok=True)


# A run that goes on


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[Site, LiveRun]]:
    with live_run(tmp_path) as run, serving_page(with_control(tmp_path)) as site:
        yield site, run


class Events:
    """Events of a stream, collected in a thread."""

    def __init__(self, site: Site, path: str) -> None:
        self.runs: list[Any] = []
        self.has_ended = False
        self._connection = site.connection()
        self._connection.putrequest("GET", path, skip_host=True)
        self._connection.putheader("Host", site.host)
        self._connection.endheaders()
        self.answer = self._connection.getresponse()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        kind = ""
        for line in self.answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            if name == "data" and kind == "run":
                self.runs.append(json.loads(value))
            self.has_ended = self.has_ended or (name, value) == ("event", "end")

    def close(self) -> None:
        self._thread.join(60)
        self._connection.close()


def test_a_run_that_goes_on_is_streamed_and_does_what_it_is_asked(live: tuple[Site, LiveRun]) -> None:
    site, run = live
    path = f"/api/v1/runs/{run.run_id}"

    def asked(what: str, content: object = None) -> str:
        answer = site.post(f"/runs/{run.run_id}/{what}", content)
        assert answer.status == 200, answer.text
        return str(checked(answer.document, f"{PREFIX}/runs/{{run_id}}/{what}", "post")["request"])

    def limits() -> tuple[object, ...]:
        pace = events.runs[-1]["pace"]
        return (pace["order"], *(pace["caps"][end]["moves"] for end in ("cluster", "source", "destination")))

    with closing(Events(site, f"{path}/stream")) as events:
        assert events.answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        wait_until(lambda: bool(events.runs), what="the first event")
        assert site.streams.count == 1
        with closing(site.connection()) as leaving:
            leaving.request("GET", f"{path}/stream")
            wait_until(lambda: site.streams.count == 2, what="another stream")
        wait_until(lambda: site.streams.count == 1, what="the end of a stream that nobody reads")
        site.streams.count += MOST_STREAMS
        assert site.ask(f"{path}/stream").status == 503
        site.streams.count -= MOST_STREAMS
        checked(events.runs[0], f"{PREFIX}/runs/{{run_id}}")
        assert events.runs[0]["is_active"]
        assert Page(site.ask("/metrics").text).value("run_held") == 0

        assert asked("pause") == "HoldRequested"
        wait_until(lambda: bool(events.runs[-1]["why_held"]), what="a pause in the stream")
        assert ">paused, 2 moves in flight go on<" in site.ask(f"/runs/{run.run_id}").text
        assert asked("resume") == "ReleaseRequested"
        assert asked("throttle", {"bytes_per_s": 30_000}) == "ThrottleRequested"
        wait_until(lambda: events.runs[-1]["rates"]["bytes_per_s"] == 30_000, what="the throttle")
        for wrong in (
            {"bytes_per_s": 0},
            {"bytes_per_s": -1},
            {"bytes_per_s": 2**63},
            {"bytes_per_s": True},
            {"bytes_per_s": "5MB/s"},
            {},
        ):
            assert site.post(f"/runs/{run.run_id}/throttle", wrong).status == 422

        assert asked("pace", {"order": "name", "max_moves": 7, "max_moves_per_broker": 2}) == "PaceRequested"
        wait_until(lambda: limits() == ("name", 7, 2, 2), what="the pace")
        assert asked("pace", {"max_moves": 0}) == "PaceRequested"
        wait_until(lambda: limits() == ("name", None, 2, 2), what="no limit")
        for wrong in ({}, {"order": "best"}, {"max_moves": -1}, {"max_moves": 1.5}, {"max_copies": 1}):
            assert site.post(f"/runs/{run.run_id}/pace", wrong).status == 422

        assert asked("cancel") == "CancelRequested"
        assert run.wait_for_end().state == "cancelled"
        wait_until(lambda: events.has_ended, what="the end of the stream")
    assert events.runs[-1]["state"] == "cancelled"
    assert [type(event) for event in read_events(run.journal) if isinstance(event, Request)] == [
        HoldRequested, ReleaseRequested, ThrottleRequested, PaceRequested, PaceRequested, CancelRequested,
    ]  # fmt: skip
    ended = site.post(f"/runs/{run.run_id}/pause")
    assert (ended.status, "is cancelled: there is nothing to steer" in ended.document["detail"]) == (422, True)
    assert site.ask(path).document["state"] == "cancelled"
