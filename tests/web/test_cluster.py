"""The cluster of the page: what to do about it, its brokers and topics, before any run."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import quote

from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving
from kreassign.web.settings import Reach, WebSettings
from tests.twin.asking import cluster
from tests.web.runs import IMAGE, SCRIPT
from tests.web.site import Site, serving_page


def test_findings_come_with_their_commands_and_skew_is_recommended(tmp_path: Path) -> None:
    twin = Twin(cluster({"t": [[0, 1, 2], [0, 1, 2], [0, 1]]}), TwinSettings())
    with serving(twin) as thread:
        reach = Reach(thread.bootstrap_servers)
        with serving_page(WebSettings(tmp_path, port=0, reach=reach)) as site:
            found = site.ask("/api/v1/cluster").document
            page = site.ask("/cluster").text
    by_kind = {one["kind"]: one for one in found["recommendations"]}
    server = thread.bootstrap_servers
    assert by_kind["factor"]["commands"] == [f"kreassign plan repair --out plan.json --bootstrap-server {server}"]
    assert by_kind["balance"]["commands"] == [f"kreassign plan --out plan.json --bootstrap-server {server}"]
    assert "broker 0: disk is " in by_kind["balance"]["seen"]
    assert [one["broker"] for one in found["brokers"]] == [0, 1, 2, 3]
    assert [(one["topic"], one["fullest_broker"]) for one in found["topics"]] == [("t", 0)]
    assert page.index("What to do") < page.index("Brokers</h2>")
    assert "kreassign plan repair" in page
    assert "None" not in page
    assert "(&#39;" not in page


def test_what_an_autopilot_sees_and_does_has_a_page(site: Site) -> None:
    address = f"/autopilot/{quote(IMAGE)}"
    first = site.ask("/").text
    assert f'href="{address}"' in first
    assert f'href="{address.replace("/autopilot", "/autopilot-dry-run")}"' in first
    page = site.ask(address).text
    for shown in (
        "No look for", "Off until 2286-11-20", "there since 1970-01-01 00:00:05 UTC, proposed since",
        "7 MB to copy.", "Lacking: 1 approval of 2", "kreassign autopilot approve disk-fills",
        "<strong>window</strong>: no window is open; the next one begins at 22:00",
        '<a href="/runs/run-1">run-1</a>', '<span class="badge good">done</span>', ">5 MB copied in ",
    ):  # fmt: skip
        assert shown in page, shown
    assert "--dry-run" not in page
    assert "--dry-run" in site.ask(address.replace("/autopilot", "/autopilot-dry-run")).text
    assert site.ask("/autopilot/nothing").status == 404


def test_a_finding_has_a_page_with_its_story(site: Site) -> None:
    listed = site.ask(f"/autopilot/{quote(IMAGE)}").text
    addresses = [unescape(one) for one in re.findall(r'href="(/finding\?[^"]+)"', listed)]
    disk, gone = (next(one for one in addresses if kind in one) for kind in ("disk-fills", "broker-gone"))
    page = site.ask(disk).text
    for shown in (
        "7 MB to copy", "<strong>window</strong>: no window is open", "planned: 7 MB to copy",
        "approval asked for, request r", "1 approval of 2", "closed gates", "2.0 % at", "92.0 % at", "<path d=",
    ):  # fmt: skip
        assert shown in page, shown
    assert SCRIPT not in page
    page = site.ask(gone).text
    for shown in (
        "run run-1 begins, 5 MB to copy",
        "its run ended: done, 5 MB copied",
        'href="/runs/run-1"',
        "promised",
    ):
        assert shown in page, shown
    assert "dry-run" not in disk
    nowhere = "/finding?kind=broker-gone&subject=broker+9&cluster=nothing"
    for odd in ("/finding", nowhere, disk.replace("disk-fills", "odd"), gone.replace("broker+3", "broker+9")):
        assert site.ask(odd).status == 404


def test_a_page_without_a_cluster_asks_none(tmp_path: Path) -> None:
    with serving_page(WebSettings(tmp_path, port=0)) as site:
        refused = site.ask("/api/v1/cluster")
        assert (refused.status, "--bootstrap-server" in refused.document["detail"]) == (404, True)
        first = site.ask("/").text
        assert 'href="/cluster"' not in first
        assert "Autopilots" not in first


def test_a_cluster_that_does_not_answer_is_said_with_its_address(tmp_path: Path) -> None:
    properties = {"default.api.timeout.ms": "2000", "request.timeout.ms": "1000"}
    with serving_page(WebSettings(tmp_path, port=0, reach=Reach("127.0.0.1:1", properties))) as site:
        refused = site.ask("/api/v1/cluster")
        assert (refused.status, "127.0.0.1:1" in refused.document["detail"]) == (502, True)
        assert site.ask("/").status == 200, "what journals have is shown all the same"


def test_people_who_look_at_once_share_one_reading(site: Site) -> None:
    first, second = (site.ask("/api/v1/cluster").document for _ in range(2))
    assert first["at_ms"] == second["at_ms"]
