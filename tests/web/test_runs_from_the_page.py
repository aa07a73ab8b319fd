"""From a task to a run and back, all on the page: planned, previewed, approved, started, steered, rolled back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kreassign.errors import InputError
from kreassign.executor.history.run_history import read_history
from kreassign.executor.journal import find_journals, first_event
from kreassign.model.plan import PartitionAssignment, Plan, format_plan
from kreassign.model.run import RunHistory
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.connect import connect
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import RunContext, RunRequest, Show
from kreassign.operations.run_journals import NamedCluster, is_active
from kreassign.operations.whole_runs import execute_whole
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import ServerThread, serving
from kreassign.twin.version import DEFAULT, KAFKA_4_3, KafkaVersion
from kreassign.web.operations import Served
from kreassign.web.previews import PreviewRequest, settings_of
from kreassign.web.settings import Reach, WebSettings, parse_users
from kreassign.web.tasks import CHOICES, TaskRequest, task_of_remedy
from testbed.waiting import wait_until
from tests.browser import DESK, PHONE, OpenPage, Scheme, button
from tests.cli.commands.test_rollback import cordon
from tests.cli.test_plan_command import tables
from tests.executor.twin_runs import tp
from tests.twin.asking import MEGABYTES, cluster
from tests.web.site import Site, serving_page

ANN, BOB = (f"{name}-{'x' * 24}" for name in ("ann", "bob"))
USERS = parse_users(f"ann approver {ANN}\nbob operator {BOB}")
LISTS = [[0, 1], [0, 1], [0, 2], [0, 2]]
SLOW = 20_000
"""A throttle in bytes per second at which the copies of the twin take hours."""


@dataclass(frozen=True, slots=True)
class Shop:
    """A page with users and a cluster, and the twin behind it."""

    site: Site
    folder: Path
    twin: ServerThread

    def post(self, path: str, content: object = None, token: str = BOB, status: int = 200) -> Any:
        answer = self.site.post(path, content, token=token)
        assert answer.status == status, answer.text
        return answer.document

    def approve(self, name: str) -> None:
        plan_id = self.site.ask(f"/api/v1/plans/{name}").document["summary"]["plan_id"]
        self.post(f"/plans/{name}/approve", {"plan_id": plan_id}, token=ANN)

    def start(self, name: str, rate: int | None = None) -> str:
        self.approve(name)
        seen = self.post(f"/plans/{name}/preview", {"throttle_bytes_per_s": rate})
        run_id: str = self.post(f"/plans/{name}/start", {"preview_id": seen["preview_id"]})["run_id"]
        return run_id

    def write(self, name: str, replicas: dict[int, tuple[int, ...]]) -> None:
        moves = tuple(PartitionAssignment(tp(number), wanted) for number, wanted in replicas.items())
        (self.folder / "plans" / name).write_text(format_plan(Plan(moves)))

    def journal(self, run_id: str) -> Path:
        (found,) = find_journals(self.folder / "state", run_id)
        return found

    def wait_for_end(self, run_id: str) -> RunHistory:
        wait_until(lambda: not is_active(self.journal(run_id)), what="the end of the run")
        return read_history(self.journal(run_id))


@contextmanager
def serving_shop(
    folder: Path, version: KafkaVersion = DEFAULT, clusters: tuple[NamedCluster, ...] = ()
) -> Iterator[Shop]:
    (folder / "plans").mkdir(exist_ok=True)
    twin = Twin(cluster({"t": LISTS}, size_bytes=MEGABYTES), TwinSettings(version=version))
    with serving(twin) as thread:
        settings = WebSettings(
            folder / "state", port=0, plans=folder / "plans", allows_control=True, users=USERS,
            reach=Reach(thread.bootstrap_servers), measure_for_s=0.0, clusters=clusters,
        )  # fmt: skip
        with serving_page(settings) as site:
            yield Shop(site, folder, thread)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with serving_shop(tmp_path) as found:
        yield found


def test_a_task_becomes_a_plan_a_run_and_a_rollback(shop: Shop) -> None:
    planned = shop.post("/plans", {"task": "drain-brokers", "brokers": [0]})
    name = planned["name"]
    assert planned["sentence"] == "drain broker 0: 4 partitions to change"

    way = {"windows": ["22:00-23:00", "23:00-22:00"], "max_moves": 3, "guards": ["stall=hold"]}
    chosen = shop.post(f"/plans/{name}/preview", way)["sentences"]
    hours = "22:00-23:00 and 23:00-22:00 UTC"
    assert {
        "Window: open at any time.",
        f"Pace: order makespan, at most 3 moves in flight, 100 elections per step, {hours}.",
        "Guards other than by default: stall=hold.",
    } <= set(chosen)
    seen = shop.post(f"/plans/{name}/preview", {"throttle_bytes_per_s": None})
    assert (seen["moved_bytes"], seen["change_count"]) == (4 * MEGABYTES, 4)
    assert "This run changes 4 partitions: 4 copies, 4 MB." in seen["sentences"]
    refused = shop.post(f"/plans/{name}/start", {"preview_id": seen["preview_id"]}, status=422)
    assert f"nobody has approved {name}" in refused["detail"]
    page = shop.site.ask(f"/plans/{name}").text
    assert "Loads: measured for 0 s, " in page
    assert "LoadBasis" not in page
    run_id = shop.start(name)
    done = shop.wait_for_end(run_id)
    assert done.state == "done"
    assert [str(one).partition("@")[0] for one in done.operators] == ["bob"]
    page = shop.site.ask(f"/runs/{run_id}").text
    assert page.count('<path d="M0,120 L0.0,') == 2, "the curves of what was copied, and how fast"

    over = shop.post(f"/runs/{run_id}/resume", status=422)
    assert f"run {run_id} is done: there is nothing to resume" in over["detail"]
    back = shop.post(f"/runs/{run_id}/preview-rollback")
    assert back["sentences"] == [f"Rollback of run {run_id}: 4 of 4 partitions move back, 4 copies, 4 MB."]
    undo = shop.post(f"/runs/{run_id}/rollback", {"preview_id": back["preview_id"]})["run_id"]
    assert shop.wait_for_end(undo).state == "done"
    assert first_event(shop.journal(undo)).undoes == run_id
    nothing = shop.post(f"/runs/{run_id}/preview-rollback")
    assert nothing["preview_id"] is None


def test_the_way_back_of_one_partition_is_shown(shop: Shop) -> None:
    shop.write("plan.json", {0: (3, 1)})
    run_id = shop.start("plan.json")
    assert shop.wait_for_end(run_id).state == "done"
    back = f"Rollback of run {run_id}: 1 of 1 partition moves back, 1 copy, 1 MB."
    assert shop.post(f"/runs/{run_id}/preview-rollback")["sentences"] == [back]


def test_what_changed_since_the_preview_is_refused_by_name(shop: Shop) -> None:
    shop.write("plan.json", {0: (3, 1), 1: (3, 1)})
    shop.approve("plan.json")
    seen = shop.post("/plans/plan.json/preview")
    shop.write("other.json", {1: (2, 1)})
    assert shop.wait_for_end(shop.start("other.json")).state == "done"
    refused = shop.post("/plans/plan.json/start", {"preview_id": seen["preview_id"]}, status=409)
    assert refused["detail"] == "nothing was started: t-1 changed since the preview. Look at a new preview"

    seen = shop.post("/plans/plan.json/preview")
    shop.write("plan.json", {0: (2, 1)})
    shop.approve("plan.json")
    refused = shop.post("/plans/plan.json/start", {"preview_id": seen["preview_id"]}, status=409)
    assert "plan.json was changed since the preview" in refused["detail"]


def test_a_preview_begins_one_run_of_its_own_plan(shop: Shop) -> None:
    for name in ("one.json", "two.json"):
        shop.write(name, {0: (3, 1)})
        shop.approve(name)
    seen = shop.post("/plans/one.json/preview")["preview_id"]
    for name, preview_id in (("two.json", seen), ("one.json", "guessed")):
        refused = shop.post(f"/plans/{name}/start", {"preview_id": preview_id}, status=409)
        assert f"there is no such preview of {name}" in refused["detail"]
    run_id = shop.post("/plans/one.json/start", {"preview_id": seen})["run_id"]
    assert "there is no such preview" in shop.post("/plans/one.json/start", {"preview_id": seen}, status=409)["detail"]
    assert shop.wait_for_end(run_id).state == "done"


def test_a_run_of_the_page_is_paused_when_the_page_ends_and_resumed(tmp_path: Path) -> None:
    with serving_shop(tmp_path) as shop:
        shop.write("plan.json", {0: (3, 1)})
        run_id = shop.start("plan.json", SLOW)
        again = shop.post("/plans/plan.json/preview", status=422)
        assert run_id in again["detail"], "one run at a time, as on the command line"
        early = shop.post(f"/runs/{run_id}/preview-rollback", status=422)
        assert f"run {run_id} has not ended" in early["detail"]
    left = read_history(find_journals(tmp_path / "state", run_id)[0])
    assert left.ended_ms is None


def test_an_interrupted_run_goes_on_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "plans").mkdir()
    with serving(Twin(cluster({"t": LISTS}, size_bytes=MEGABYTES), TwinSettings())) as thread:
        settings = WebSettings(
            tmp_path / "state", port=0, plans=tmp_path / "plans", allows_control=True, users=USERS,
            reach=Reach(thread.bootstrap_servers), measure_for_s=0.0,
        )  # fmt: skip
        with serving_page(settings) as site:
            shop = Shop(site, tmp_path, thread)
            shop.write("plan.json", {0: (3, 1)})
            run_id = shop.start("plan.json", SLOW)
        assert not is_active(shop.journal(run_id))
        with serving_page(settings) as site:
            shop = Shop(site, tmp_path, thread)
            shop.post(f"/runs/{run_id}/resume")
            assert is_active(shop.journal(run_id))
            shop.post(f"/runs/{run_id}/throttle", {"bytes_per_s": 100 * MEGABYTES})
            assert shop.wait_for_end(run_id).state == "done"


def replicas_of(bootstrap: str) -> list[tuple[int, ...]]:
    with connect(bootstrap) as client:
        return [partition.replicas for partition in client.describe_topics(["t"]).raise_if_any()["t"].partitions]


@pytest.mark.thorough
def test_a_run_of_the_page_is_rolled_back_where_a_guard_demands_it(tmp_path: Path) -> None:
    """Kafka 4.3 takes moves to cordoned brokers. The first copy takes so long that the guard is asked after it."""
    with serving_shop(tmp_path, KAFKA_4_3) as shop:
        shop.write("plan.json", dict.fromkeys(range(4), (3, 1)))
        shop.approve("plan.json")
        way = {"max_moves": 1, "throttle_bytes_per_s": MEGABYTES // 11, "guards": ["cordoned=rollback"]}
        seen = shop.post("/plans/plan.json/preview", way)
        run_id = shop.post("/plans/plan.json/start", {"preview_id": seen["preview_id"]})["run_id"]
        wait_until(lambda: read_history(shop.journal(run_id)).in_flight_count > 0, what="a move")
        cordon(shop.twin.bootstrap_servers, 3)
        assert shop.wait_for_end(run_id).wants_rollback
        wait_until(lambda: len(find_journals(tmp_path / "state")) == 2, what="the rollback")
        (undo,) = (path.stem for path in find_journals(tmp_path / "state") if path.stem != run_id)
        shop.post(f"/runs/{undo}/throttle", {"bytes_per_s": 100 * MEGABYTES})
        assert shop.wait_for_end(undo).state == "done"
        assert first_event(shop.journal(undo)).undoes == run_id
        assert replicas_of(shop.twin.bootstrap_servers) == [tuple(replicas) for replicas in LISTS]


@pytest.fixture
def two_folders(tmp_path: Path) -> Iterator[Shop]:
    """A page whose cluster has a name too, and by that a state directory of its own."""
    with serving_shop(tmp_path, clusters=(NamedCluster("prod", None, tmp_path / "prod"),)) as found:
        yield found


def run_in_its_own(shop: Shop, rate: int | None = None, show: Show | None = None) -> RunHistory:
    plan = PlanFile(Plan((PartitionAssignment(tp(0), (3, 1)),)))
    context = RunContext(shop.folder / "prod", poll_s=0.1, watch=lambda *_: nullcontext(show))
    with connect(shop.twin.bootstrap_servers) as client:
        return execute_whole(client, RunRequest(plan, ThrottleRates(rate), measure_for_s=0.0), context).run


def test_a_run_is_rolled_back_in_the_state_directory_of_its_journal(two_folders: Shop) -> None:
    shop, run_id = two_folders, run_in_its_own(two_folders).run_id
    seen = shop.post(f"/runs/{run_id}/preview-rollback")
    undo = shop.post(f"/runs/{run_id}/rollback", {"preview_id": seen["preview_id"]})["run_id"]
    (journal,) = find_journals(shop.folder / "prod", undo)
    wait_until(lambda: not is_active(journal), what="the end of the rollback")
    assert (read_history(journal).state, first_event(journal).undoes) == ("done", run_id)


def test_a_run_left_in_another_state_directory_keeps_runs_back(two_folders: Shop) -> None:
    def leave(run: RunHistory) -> None:
        if run.in_flight_count:
            raise KeyboardInterrupt

    shop = two_folders
    with pytest.raises(KeyboardInterrupt):
        run_in_its_own(shop, SLOW, leave)
    (left,) = find_journals(shop.folder / "prod")
    found = shop.site.ask("/api/v1/cluster").text
    assert f"kreassign resume {left.stem}" in found
    assert "by no run" not in found
    shop.write("plan.json", {3: (0, 1)})
    refused = shop.post("/plans/plan.json/preview", status=422)
    assert f"run {left.stem} was left on this cluster" in refused["detail"]


@pytest.mark.parametrize(("request_", "reason"), [
    ({"task": "fly"}, "'fly' is no task"),
    ({"task": "drain-brokers"}, "drain-brokers needs the field brokers"),
    ({"task": "repair", "brokers": [1]}, "repair takes no brokers"),
    ({"task": "drain-brokers", "brokers": [9]}, "9"),
    ({"task": "replication-factor", "replication_factor": 9}, "9"),
    ({"task": "rebalance", "from_tables": True}, "the page has no tables: it was started without --data"),
])  # fmt: skip
def test_a_task_that_cannot_be_planned_is_refused(shop: Shop, request_: object, reason: str) -> None:
    answer = shop.site.post("/plans", request_, token=BOB)
    assert 400 <= answer.status < 500, answer.text
    assert reason in answer.document["detail"]
    assert list((shop.folder / "plans").iterdir()) == []


@pytest.mark.parametrize(("way", "reason"), [
    ({"windows": ["22-6"]}, "'22-6' is not a window; write for example 22:00-06:00"),
    ({"time_zone": "Berlin"}, "unknown time zone 'Berlin'; write for example Europe/Berlin"),
    ({"order": "fast"}, "'fast' is no order"),
    ({"max_moves": -1}, "a limit is a number of moves"),
    ({"guards": ["disc=hold"]}, "'disc=hold' is not a guard and its reaction, such as disk=hold"),
    ({"throttle_bytes_per_s": 0}, "with 0 no move would ever end"),
])  # fmt: skip
def test_a_run_cannot_be_asked_for_in_a_way_that_is_none(way: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=re.escape(reason)):
        settings_of(PreviewRequest(**way))


def test_a_plan_is_by_the_loads_of_tables(tmp_path: Path) -> None:
    tables(tmp_path / "data", *(((0, 1), 8) for _ in LISTS), cluster="twin", write_bytes_per_s=1e6)
    (tmp_path / "plans").mkdir()
    with serving(Twin(cluster({"t": LISTS}, size_bytes=MEGABYTES), TwinSettings())) as thread:
        reach = Reach(thread.bootstrap_servers)
        served = Served(WebSettings(tmp_path, plans=tmp_path / "plans", data=tmp_path / "data", reach=reach))
        name = served.make_plan(TaskRequest("drain-brokers", (0,), from_tables=True)).name
        assert name is not None
        assert "measured" not in (served.plan(name).loads or "")


def test_every_choice_is_a_task_and_remedies_name_them() -> None:
    assert task_of_remedy(("kreassign", "plan", "--out", "plan.json")) == TaskRequest("rebalance")
    assert task_of_remedy(("kreassign", "plan", "repair", "--out", "plan.json")) == TaskRequest("repair")
    drain = ("kreassign", "plan", "drain-brokers", "3,4", "--out", "plan.json")
    assert task_of_remedy(drain) == TaskRequest("drain-brokers", brokers=(3, 4))
    more = ("kreassign", "plan", "replication-factor", "2", "--topic", "t", "--out", "plan.json")
    assert task_of_remedy(more) == TaskRequest("replication-factor", topics=("t",), replication_factor=2)
    assert task_of_remedy(("kreassign", "resume", "run-1")) is None
    assert {*CHOICES} >= {"rebalance", "repair", "drain-brokers", "disks", "replication-factor"}


@pytest.mark.parametrize(
    ("width", "scheme"), [(PHONE, "dark"), (DESK, "light")], ids=["phone in dark", "desk in light"]
)
def test_everything_is_done_in_the_browser(shop: Shop, open_page: OpenPage, width: int, scheme: Scheme) -> None:
    opened = open_page(f"{shop.site.address}cluster", width=width, scheme=scheme, hosts=(shop.site.host,))
    page = opened.page

    def unlock(token: str) -> None:
        page.fill("#token", token)
        page.keyboard.press("Enter")
        button(page, "Lock control").wait_for()

    def judge() -> None:
        assert opened.findings_of_axe() == []
        assert opened.overflow_px() <= 0
        assert opened.values_of_programs() == []

    unlock(BOB)
    judge()
    page.select_option("#task", "drain-brokers")
    page.fill("#brokers-of-plan", "0")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Run", exact=True).wait_for()
    page.fill("#limit", "100")
    page.keyboard.press("Enter")
    page.get_by_text("This run changes 4 partitions: 4 copies, 4 MB.").wait_for()
    page.get_by_text("Partitions: 4", exact=True).click()
    judge()
    assert button(page, "Start the run").count() == 0, "nobody has approved it"
    button(page, "Lock control").click()
    unlock(ANN)
    button(page, "Approve").click()
    page.get_by_text("by ann").wait_for()
    button(page, "Lock control").click()
    unlock(BOB)
    button(page, "Preview").click()
    button(page, "Start the run").click()
    page.locator("[data-field=state]", has_text="done").wait_for()
    button(page, "Preview a rollback").click()
    page.get_by_text("4 of 4 partitions move back, 4 copies, 4 MB.").wait_for()
    judge()
    run_id = page.url.rpartition("/")[2]
    button(page, "Roll back").click()
    page.wait_for_url(lambda url: run_id not in url)
    page.locator("[data-field=state]", has_text="done").wait_for()
    judge()
