"""What can happen between a run and the brokers, and between brokers: their connections pass proxies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace

from kreassign.model import TopicPartition
from kreassign.twin import Twin
from kreassign.twin.blueprint import Blueprint, PartitionPlan, TopicPlan, small_cluster
from kreassign.twin.network.server import serving
from kreassign.wire import api
from testbed import Listener
from testbed.proxy import Deed, Interference
from testbed.waiting import wait_until
from tests.torture.broker_faults import Role, node_of
from tests.torture.scene import RECREATED, Scene

WRITES = frozenset(
    entry.key
    for entry in (
        api.ALTER_PARTITION_REASSIGNMENTS,
        api.INCREMENTAL_ALTER_CONFIGS,
        api.ELECT_LEADERS,
        api.OFFSET_COMMIT,
    )
)
WAIT_S, SPOILED_S, SILENT_S, DELAY_S, CUT_S, ELSEWHERE_S = 60.0, 20.0, 20.0, 10.0, 15.0, 20.0
NARROW_BYTES_PER_S, NARROW_LINK_BYTES_PER_S = 2_000.0, 100_000.0


def arm(deed: Deed) -> Callable[[Scene], None]:
    """Lie in wait for some of the writes of the run, from its first one on."""

    def prepare(scene: Scene) -> None:
        scene.interfere(
            Interference(deed, WRITES, spared=scene.chance.randint(0, 12), times=scene.chance.randint(1, 4))
        )

    return prepare


def spring(deed: Deed, what: str) -> Callable[[Scene], str]:
    """Wait until what lies in wait has struck."""

    def strike(scene: Scene) -> str:
        armed = scene.interference
        if armed is None or armed.deed is not deed:
            return ""
        wait_until(lambda: armed.strikes > 0 or not scene.is_running(), timeout_s=WAIT_S, what=what, every_s=0.2)
        return f"{what} (up to {armed.times})" if armed.strikes else ""

    return strike


def cut_answers(scene: Scene) -> str:
    """Half of an answer, of whatever API, and then nothing."""
    if not scene.is_running():
        return ""
    cut = Interference(Deed.CUT_ANSWER, times=scene.chance.randint(1, 12))
    return _spoil(scene, cut, f"{cut.times} answers cut in the middle")


def delay_answers(scene: Scene) -> str:
    """Every answer takes longer."""
    late = Interference(Deed.DELAY_ANSWER, delay_s=DELAY_S)
    return _spoil(scene, late, f"answers delayed by {DELAY_S:.0f} s")


def fall_silent(scene: Scene) -> str:
    """Nothing passes, and no connection is closed."""
    return _spoil(scene, Interference(Deed.SILENCE), f"silence for {SILENT_S:.0f} s", SILENT_S)


def cut_links(scene: Scene) -> str:
    """Every connection of the run is closed, and so is each new one."""
    return _spoil(scene, Interference(Deed.SEVER), f"all links of the run cut for {CUT_S:.0f} s", CUT_S)


def slow_links(scene: Scene) -> str:
    """All that the run says and hears passes a narrow line."""
    slow = Interference(Deed.SLOW, bytes_per_s=NARROW_BYTES_PER_S)
    return _spoil(scene, slow, f"all links of the run at {NARROW_BYTES_PER_S:.0f} B/s")


def lead_elsewhere(scene: Scene) -> str:
    """The brokers' addresses belong to another cluster for a while: the same ids, topics and replicas, another id."""
    proxy = scene.cluster.proxy
    if proxy is None or not scene.is_running():
        return ""
    replicas = scene.replicas() | scene.replicas(RECREATED)
    # The present replicas: whoever believed this cluster would find nothing moving, and begin it all again.
    stack = ExitStack()
    other = stack.enter_context(serving(Twin(_with_topics(small_cluster(len(scene.cluster.brokers)), replicas))))
    before = other.do(lambda twin: twin.metadata.copy())
    there = {node.place.ports[Listener.PROXIED]: node.id for node in scene.cluster.brokers.values()}
    proxy.lead_to({port: other.server.addresses()[broker][1] for port, broker in there.items()})

    def repair() -> None:
        came = proxy.led_elsewhere
        proxy.lead_to({})
        with stack:
            is_untouched = other.do(lambda twin: twin.metadata == before)
        if not is_untouched:
            scene.untrue.append("another cluster was changed")
        scene.tell(f"{came} connections came to another cluster")

    scene.repair_after(ELSEWHERE_S, repair)
    what = f"addresses that lead to another cluster for {ELSEWHERE_S:.0f} s"
    wait_until(lambda: proxy.led_elsewhere > 0 or not scene.is_running(), timeout_s=WAIT_S, what=what, every_s=0.2)
    return what if proxy.led_elsewhere else ""


def _with_topics(blueprint: Blueprint, replicas: Mapping[TopicPartition, tuple[int, ...]]) -> Blueprint:
    topics: dict[str, list[PartitionPlan]] = {}
    for partition, brokers in sorted(replicas.items()):
        topics.setdefault(partition.topic, []).append(PartitionPlan(brokers))
    return replace(blueprint, topics=tuple(TopicPlan(name, tuple(each)) for name, each in topics.items()))


def spoil_replication(deed: Deed, what: str, lasts_s: float) -> Callable[[Scene], str]:
    """Other brokers reach the leader of a move badly or not at all: what fetches from it cannot."""

    def strike(scene: Scene) -> str:
        node = node_of(scene, Role.LEADER)
        if node is None:
            return ""
        link = scene.cluster.links[node.id]
        link.interfere(Interference(deed, bytes_per_s=NARROW_LINK_BYTES_PER_S))
        scene.repair_after(lasts_s, lambda: link.interfere(None))
        return f"links to broker {node.id} {what} for {lasts_s:.0f} s"

    return strike


def _spoil(scene: Scene, interference: Interference, what: str, lasts_s: float = SPOILED_S) -> str:
    if not scene.is_running():
        return ""
    scene.interfere(interference)
    scene.repair_after(lasts_s, lambda: scene.interfere(None))
    wait_until(lambda: interference.strikes > 0 or not scene.is_running(), timeout_s=WAIT_S, what=what, every_s=0.2)
    return what if interference.strikes else ""
