"""A run that is monitored: its metrics while it goes on, and what a webhook is told of it."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kreassign.errors import InputError
from kreassign.executor.events import Event, HoldRequested, ReleaseRequested
from kreassign.executor.journal import read_events
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.state import RunView
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.monitoring.webhooks import Message, Webhook
from kreassign.operations.connect import connect
from kreassign.operations.monitoring import LatestMetrics, Monitoring, Newsroom, metrics_of_journals, monitored
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import RunContext, RunRequest
from kreassign.operations.whole_runs import execute_whole
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving
from testbed.ports import HOST, reserved_ports
from testbed.waiting import PATIENCE_S
from tests.executor.twin_runs import TwinRig, tp
from tests.monitoring.pages import Page
from tests.monitoring.receiver import receiving
from tests.twin.asking import cluster

SECRET = b"0123456789abcdef0123"


def get(address: str) -> Page:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port or 0, timeout=PATIENCE_S)
    try:
        connection.request("GET", parts.path)
        with connection.getresponse() as answer:
            return Page(answer.read().decode())
    finally:
        connection.close()


def test_a_run_is_scraped_and_its_end_is_signed_without_secrets(
    tmp_path: Path,
) -> None:
    addresses: list[str] = []
    pages: list[Page] = []

    def scrape(run: RunView, meter: ProgressMeter) -> None:
        pages.append(get(addresses[0]))

    twin = Twin(cluster({"t": [[0, 1]]}), TwinSettings())
    request = RunRequest(PlanFile(Plan((PartitionAssignment(tp(0), (2, 1)),))))
    context = RunContext(tmp_path, poll_s=0.1, observers=(scrape,))
    with (
        receiving() as receiver,
        serving(twin, speed=20.0) as thread,
        connect(thread.bootstrap_servers) as client,
        monitored(context, Monitoring(0, Webhook(receiver.url, SECRET)), addresses.append) as watched,
    ):
        found = execute_whole(client, request, watched).run
    assert found.state == "done"
    assert not pages[0].samples
    assert {page.value("run_phase", phase="moving") for page in pages[1:]} == {0, 1}
    assert [json.loads(body)["event"] for _, body in receiver.got] == ["done"]
    assert json.loads(receiver.got[0][1])["run_id"] == found.run_id
    (journal,) = tmp_path.glob("*/*.sqlite")
    assert SECRET not in journal.read_bytes()
    # The same figures from the journal, when no process executes it any more.
    page = Page(metrics_of_journals([journal]).decode())
    assert (page.value("run_phase", phase="done"), page.value("run_moves", state="complete")) == (1, 1)


def test_a_webhook_that_is_away_leaves_a_run_as_it_is(tmp_path: Path) -> None:
    warnings: list[str] = []
    twin = Twin(cluster({"t": [[0, 1]]}), TwinSettings())
    request = RunRequest(PlanFile(Plan((PartitionAssignment(tp(0), (2, 1)),))))
    context = RunContext(tmp_path, poll_s=0.1, warn=warnings.append)
    with (
        reserved_ports() as ports,
        serving(twin, speed=20.0) as thread,
        connect(thread.bootstrap_servers) as client,
        monitored(
            context, Monitoring(None, Webhook(f"http://{HOST}:{ports.take()}", SECRET)), warnings.append, last_s=0.2
        ) as watched,
    ):
        assert execute_whole(client, request, watched).run.state == "done"
    assert [warning.partition(":")[0] for warning in warnings] == ["messages of the run that were not delivered"]


def test_a_failing_observer_is_told_once_and_the_run_goes_on(tmp_path: Path) -> None:
    def fail(run: RunView, meter: ProgressMeter) -> None:
        raise ValueError(f"no such {run.phase}")

    warnings: list[str] = []
    twin = Twin(cluster({"t": [[0, 1]]}), TwinSettings())
    request = RunRequest(PlanFile(Plan((PartitionAssignment(tp(0), (2, 1)),))))
    context = RunContext(tmp_path, poll_s=0.1, warn=warnings.append, observers=(fail,))
    with serving(twin, speed=20.0) as thread, connect(thread.bootstrap_servers) as client:
        assert execute_whole(client, request, context).run.state == "done"
    assert len(warnings) == 1
    assert "is not monitored any more, because that failed: ValueError" in warnings[0]


def test_a_port_that_is_taken_keeps_the_run_from_beginning(tmp_path: Path) -> None:
    addresses: list[str] = []
    with monitored(RunContext(tmp_path), Monitoring(0), addresses.append):
        again = monitored(RunContext(tmp_path), Monitoring(urlsplit(addresses[0]).port), addresses.append)
        with pytest.raises(InputError, match="Specify another --metrics-port"), again:
            pytest.fail("the port was taken")


def followed(rig: TwinRig, room: Newsroom, latest: LatestMetrics) -> None:
    """Let them observe the runs of a rig from now on."""
    meters: list[ProgressMeter] = []

    def listen(event: Event, run: RunView) -> None:
        if not meters:
            meters.append(ProgressMeter(run))
        meters[0].follow(event)
        room.observe(run, meters[0])
        latest.observe(run, meters[0])

    rig.listener = listen


def test_holds_and_pauses_are_news_once_each(tmp_path: Path) -> None:
    told: list[Message] = []
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]])
    latest = LatestMetrics()
    followed(rig, Newsroom(told.append), latest)
    rig.ask_after(2, HoldRequested)
    rig.ask_after(4, ReleaseRequested)
    rig.ask_after(5, HoldRequested)  # so soon again is not told again
    rig.stop_after(8)
    rig.end_within(60)
    assert rig.run(rig.prepared({0: (2, 1), 1: (1, 3)})).state == "paused"
    assert [one.news.value for one in told] == ["held", "paused"]
    assert "paused by an operator" in json.loads(told[0].body)["why_held"]
    (shown,) = latest.runs()
    assert (shown.state, shown.why_held) == ("paused", None), "what is at rest is held by nothing"
    assert len(read_events(rig.path())) > 5
