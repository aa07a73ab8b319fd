"""The page that most tests ask: with control, a hostile run and a plan; and one that others could reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts import GoalLimit, PlannedPartition, Reason, UnevenTopic, plan_id
from kreassign.operations.plan_files import write_plan
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving
from kreassign.web.settings import Reach
from tests.report.plans import FACTS, GB
from tests.twin.asking import cluster
from tests.web.runs import IMAGE, QUOTES, SCRIPT, hostile_decisions, hostile_journal
from tests.web.site import Site, serving_page, with_control

PLAN = Plan((PartitionAssignment(TopicPartition("orders", 0), (2, 1)),))


def write_hostile_plan(path: Path) -> None:
    """A plan with its facts, in which every name and sentence would be markup."""
    moved = PlannedPartition(TopicPartition(SCRIPT, 0), (0, 1), GB, reasons=(Reason("drain", 0, 2),))
    facts = replace(
        FACTS,
        plan_id=plan_id(PLAN),
        cluster_id=IMAGE,
        task=SCRIPT,
        remaining=(QUOTES,),
        factors=(QUOTES,),
        partitions=(moved,),
        limits=(GoalLimit("disk", "B", f"the goals file {IMAGE}", 3, GB, 2 * GB),),
        unknown_goals=(QUOTES,),
        uneven_topics=(UnevenTopic(f"{SCRIPT}-0", 2 * GB, GB, 2),),
    )
    write_plan(path, PLAN, facts)


@dataclass(frozen=True, slots=True)
class Place:
    """Address and content of the served page."""

    site: Site
    state_dir: Path
    plans: Path
    reach: Reach


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A page with control and a cluster. Its plans are restored by whoever changes them."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "plans").mkdir()
    hostile_journal(folder / "state")
    hostile_decisions(folder / "state")
    write_hostile_plan(folder / "plans" / "plan.json")
    (folder / "secret.json").write_text('{"secret": 1}')
    twin = Twin(cluster({"t": [[0, 1], [0, 1], [0, 2]]}), TwinSettings())
    with serving(twin) as thread:
        reach = Reach(thread.bootstrap_servers)
        settings = replace(with_control(folder / "state", folder / "plans"), reach=reach)
        with serving_page(settings) as site:
            yield Place(site, folder / "state", folder / "plans", reach)


@pytest.fixture
def site(place: Place) -> Site:
    return place.site
