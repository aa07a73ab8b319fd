"""Faults between a run and the brokers, between brokers, and of the rights and logins of a run.

Connections pass proxies. A run that logs in comes by SASL.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from random import Random

from kreassign.model import TopicPartition
from kreassign.twin import Twin
from kreassign.twin.blueprint import Blueprint, PartitionPlan, TopicPlan, small_cluster
from kreassign.twin.server import serving
from kreassign.wire import api
from testbed import Listener
from testbed.proxy import Deed, Interference
from testbed.security import USERS
from testbed.waiting import wait_until
from tests.torture.broker_faults import Role, node_of
from tests.torture.fault import Fault, Strike
from tests.torture.scene import CHANGING, LOGIN_S, LOOKING, OPERATOR, RECREATED, Scene, need

PROXIED, SASL = Listener.PROXIED, Listener.SASL_PLAINTEXT
WRITES = frozenset(
    entry.key for entry in (api.ALTER_PARTITION_REASSIGNMENTS, api.INCREMENTAL_ALTER_CONFIGS, api.ELECT_LEADERS,
                            api.OFFSET_COMMIT)
)  # fmt: skip
WAIT_S, ELSEWHERE_S, REVOKED_S, LOCKED_S = 60.0, 20.0, 15.0, 10.0


def spoil(make: Callable[[Random], Interference], what: str, lasts_s: float = 20.0) -> Strike:
    """Interfere with all that passes between the run and its brokers, for so long."""

    def strike(scene: Scene) -> str:
        need(scene.is_running())
        interference = make(scene.chance)
        scene.interfere(interference)
        scene.repair_after(lasts_s, lambda: scene.interfere(None))
        return _seen_to_strike(scene, lambda: interference.strikes, what.format(interference))

    return strike


def arm(deed: Deed) -> Callable[[Scene], None]:
    """Lie in wait for some of the writes of the run, from its first one on."""

    def prepare(scene: Scene) -> None:
        scene.interfere(
            Interference(deed, WRITES, spared=scene.chance.randint(0, 12), times=scene.chance.randint(1, 4))
        )

    return prepare


def spring(deed: Deed, what: str) -> Strike:
    """Wait until what lies in wait has struck."""

    def strike(scene: Scene) -> str:
        armed = scene.interference
        need(armed is not None and armed.deed is deed)
        assert armed is not None
        return f"{_seen_to_strike(scene, lambda: armed.strikes, what)} (up to {armed.times})"

    return strike


def _seen_to_strike(scene: Scene, strikes: Callable[[], int], what: str) -> str:
    wait_until(lambda: strikes() > 0 or not scene.is_running(), timeout_s=WAIT_S, what=what, every_s=0.2)
    need(strikes())
    return what


def lead_elsewhere(scene: Scene) -> str:
    """The brokers' addresses belong to another cluster for a while: the same ids, topics and replicas, another id."""
    proxy = scene.cluster.proxy
    need(scene.is_running())
    assert proxy is not None
    replicas = scene.replicas() | scene.replicas(RECREATED)
    # The present replicas: a run that believed this cluster would find nothing moving, and begin it all again.
    stack = ExitStack()
    other = stack.enter_context(serving(Twin(_with_topics(small_cluster(len(scene.cluster.brokers)), replicas))))
    before = other.do(lambda twin: twin.metadata.copy())
    there = {node.place.ports[PROXIED]: node.id for node in scene.cluster.brokers.values()}
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
    return _seen_to_strike(scene, lambda: proxy.led_elsewhere, what)


def _with_topics(blueprint: Blueprint, replicas: Mapping[TopicPartition, tuple[int, ...]]) -> Blueprint:
    topics: dict[str, list[PartitionPlan]] = {}
    for partition, brokers in sorted(replicas.items()):
        topics.setdefault(partition.topic, []).append(PartitionPlan(brokers))
    return replace(blueprint, topics=tuple(TopicPlan(name, tuple(each)) for name, each in topics.items()))


def spoil_replication(deed: Deed, what: str, lasts_s: float) -> Strike:
    """Other brokers reach the leader of a move badly or not at all: what fetches from it cannot."""

    def strike(scene: Scene) -> str:
        node = node_of(scene, Role.LEADER)
        link = scene.cluster.links[node.id]
        link.interfere(Interference(deed, bytes_per_s=100_000.0))
        scene.repair_after(lasts_s, lambda: link.interfere(None))
        return f"links to broker {node.id} {what} for {lasts_s:.0f} s"

    return strike


# --- rights and logins ---------------------------------------------------------------------------------------------


def revoke_permissions(scene: Scene) -> str:
    """All rights of the run's user but those to look are taken away, and given back."""
    need(scene.is_running())
    scene.cluster.withdraw(OPERATOR)
    scene.allow(LOOKING)
    scene.repair_after(REVOKED_S, lambda: scene.allow(CHANGING))
    return f"the right to change anything revoked for {REVOKED_S:.0f} s"


def outlive_logins(scene: Scene) -> str:
    """The run goes on for longer than brokers believe a login (KIP-368)."""
    until_s = scene.begun_s + 3 * LOGIN_S
    wait_until(
        lambda: time.monotonic() >= until_s or not scene.is_running(), timeout_s=5 * LOGIN_S, what="the end of logins"
    )
    need(scene.is_running())
    return f"logins of {LOGIN_S:.0f} s ended"


def lock_out(scene: Scene) -> str:
    """The password of the run's user is another one for a while, so that no login can be renewed."""
    need(scene.is_running())
    _set_password(scene, "another-secret")
    scene.repair_after(LOCKED_S, lambda: _set_password(scene, USERS[OPERATOR]))
    need(scene.is_running())
    return f"another password for {LOCKED_S:.0f} s"


def _set_password(scene: Scene, password: str) -> None:
    of_user = ("--entity-type", "users", "--entity-name", OPERATOR)
    setting = f"SCRAM-SHA-256=[iterations=4096,password={password}]"
    done = scene.alter_configs(*of_user, "--add-config", setting)
    if done.exit_code:
        raise OSError(f"the password could not be set: {done.stderr}")


def _cut_off(name: str, deed: Deed) -> Fault:
    return _proxied(f"1 to 4 {name}", spring(deed, name), arm(deed))


_proxied = partial(Fault, listener=PROXIED, harmless=True)
_by_login = partial(Fault, listener=SASL)
NETWORK_FAULTS = (
    _proxied("answers cut in the middle",
             spoil(lambda chance: Interference(Deed.CUT_ANSWER, times=chance.randint(1, 12)),
                   "{0.times} answers cut in the middle")),
    _cut_off("writes cut off before they were carried out", Deed.LOSE_REQUEST),
    _cut_off("writes cut off after they were carried out", Deed.LOSE_ANSWER),
    _proxied("answers 10 s late",
             spoil(lambda _: Interference(Deed.DELAY_ANSWER, delay_s=10.0), "answers delayed by 10 s")),
    _proxied("network silent for 20 s", spoil(lambda _: Interference(Deed.SILENCE), "silence for 20 s")),
    _proxied("links of the run cut",
             spoil(lambda _: Interference(Deed.SEVER), "all links of the run cut for 15 s", lasts_s=15.0)),
    _proxied("links of the run slowed",
             spoil(lambda _: Interference(Deed.SLOW, bytes_per_s=2_000.0), "all links of the run at 2000 B/s")),
    _proxied("addresses that lead to another cluster", lead_elsewhere),
    Fault("links to a leader cut", spoil_replication(Deed.SEVER, "cut", 15)),
    Fault("links to a leader slowed", spoil_replication(Deed.SLOW, "slowed", 20)),
)  # fmt: skip
SECURITY_FAULTS = (
    _by_login("permissions revoked and given back", revoke_permissions),
    _by_login("logins that end while the run goes on", outlive_logins, harmless=True),
    _by_login("password changed and put back", lock_out, harmless=True),
)
