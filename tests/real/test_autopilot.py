"""An autopilot that looks after a real cluster: brokers that return and that do not, the brake, and a kill."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.autopilot.events import Name, Result, State
from kreassign.autopilot.memory import SOON_MS, Memory
from kreassign.autopilot.policy import Kind
from kreassign.executor.history.run_history import read_history
from kreassign.executor.journal import find_journals
from kreassign.model.requests import NewTopic
from kreassign.operations.autopilot_journal import BRAKE, clusters_looked_after, remembered
from testbed import ClusterSpec, KafkaCluster
from testbed.fork_server import Forked
from testbed.records import verify_readable
from testbed.waiting import wait_until
from tests.real.run_processes import start
from tests.real.test_foreign_throttle import configs
from tests.real.test_run import MEGABYTE, assignments, loaded, throttles

LISTS = [(0, 3), (3, 1), (1, 2), (2, 0)]
POLICY = """
[care]
interval = "1s"
looks-apart = "2s"
settle = "2s"
quiet = "2s"

[runs]
throttle = "RATE"

[broker-gone]
level = "act"
tell-after = "1s"
propose-after = "2s"
act-after = "ACT_AFTER"
"""
ACT_AFTER, NOT_YET = "10s", "1h"
GONE_3 = Name(Kind.BROKER_GONE, "broker 3")
PATIENCE_S = 120.0


class Host:
    """A machine with an autopilot of a cluster, and its state directory."""

    def __init__(
        self, cluster: KafkaCluster, folder: Path, rate: str = "50MB/s", *options: str, act_after: str = ACT_AFTER
    ) -> None:
        self._cluster, self._policy, self.state_dir = cluster, folder / "policy.toml", folder / "state"
        self._options, self._rate = options, rate
        folder.mkdir()
        self.let_act_after(act_after)
        self.start()

    def let_act_after(self, patience: str) -> None:
        """Write the policy, which holds from the next look on."""
        whole = self._policy.with_suffix(".new")
        whole.write_text(POLICY.replace("RATE", self._rate).replace("ACT_AFTER", patience))
        whole.replace(self._policy)

    def start(self) -> None:
        """Start the autopilot, as after a restart of the machine."""
        words = ("autopilot", "watch", str(self._policy), "--state-dir", str(self.state_dir))
        reach = (
            "--bootstrap-server", self._cluster.bootstrap_servers,
            "--bootstrap-controller", self._cluster.bootstrap_controllers,
        )  # fmt: skip
        self.process: Forked = start(self._cluster, "kreassign.cli.commands.autopilot", *words, *reach, *self._options)
        self.wait_for("a look", lambda memory: memory.looked_ms is not None)

    def kill(self) -> None:
        """Kill the autopilot as a machine that loses its power does."""
        self.process.kill()
        self.process.communicate()

    @property
    def memory(self) -> Memory:
        """All that it remembers; nothing before its first look."""
        known = clusters_looked_after(self.state_dir)
        return remembered(self.state_dir, known[0]) if known else Memory()

    def wait_for(self, what: str, is_so: Callable[[Memory], bool]) -> None:
        """Wait until its memory is so; what it printed is told if it ended."""
        wait_until(lambda: is_so(self.memory) or self._fail_if_ended(), timeout_s=PATIENCE_S, what=what)

    def _fail_if_ended(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()
        return False


def state(memory: Memory) -> State | None:
    """State of the finding about broker 3."""
    finding = memory.findings.get(GONE_3)
    return None if finding is None else finding.state


def closed(memory: Memory) -> set[str]:
    """Gates that keep its repair from running."""
    finding = memory.findings.get(GONE_3)
    return set() if finding is None or finding.gates is None else {one.gate for one in finding.gates.closed}


def is_done(memory: Memory) -> bool:
    """True if the last repair ended as done."""
    return bool(memory.acts) and memory.acts[-1].result is Result.DONE


def test_a_broker_that_stays_away_is_replaced_and_one_that_returns_is_not(
    start_cluster: Callable[[ClusterSpec], KafkaCluster], topic_name: str, tmp_path: Path
) -> None:
    cluster = start_cluster(ClusterSpec(brokers=4))
    acknowledged = loaded(cluster, topic_name, LISTS, MEGABYTE)
    # However long the broker takes to return.
    host = Host(cluster, tmp_path / "host", act_after=NOT_YET)

    cluster.brokers[3].kill()
    host.wait_for("the finding to be told", lambda memory: state(memory) is State.TOLD)
    cluster.brokers[3].start()
    host.wait_for("the finding to be over", lambda memory: state(memory) is State.CLOSED)
    assert host.memory.acts == ()
    assert assignments(cluster, topic_name) == dict(enumerate(LISTS))
    host.let_act_after(ACT_AFTER)

    configs(cluster, "brokers", None, "--add-config", f"{BRAKE}=true")
    cluster.wait_ready()
    cluster.brokers[3].kill()
    host.wait_for("the brake to hold it", lambda memory: closed(memory) == {"brake", "two looks"})
    assert host.memory.acts == ()
    configs(cluster, "brokers", None, "--delete-config", BRAKE)
    host.wait_for("the repair to be done", is_done)

    found = assignments(cluster, topic_name)
    assert all(3 not in replicas and len(replicas) == 2 for replicas in found.values())
    assert [found[number] for number in (2, 3)] == LISTS[2:], "only what the broker had is copied"
    cluster.brokers[3].start()
    cluster.wait_ready()
    assert throttles(cluster, topic_name) == {}
    verify_readable(cluster.bootstrap_servers, acknowledged)


def has_begun(host: Host) -> bool:
    """True once it decided to repair."""
    return bool(host.memory.acts)


def copies(host: Host) -> bool:
    """True once its run has copied something."""
    found = find_journals(host.state_dir)
    return bool(found) and read_history(found[0]).bytes_copied > 0


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize("moment", [has_begun, copies])
def test_a_host_that_loses_its_power_leaves_one_repair_and_no_throttle(
    start_cluster: Callable[[ClusterSpec], KafkaCluster],
    topic_name: str,
    tmp_path: Path,
    moment: Callable[[Host], bool],
) -> None:
    """Of two hosts with an autopilot the one that repairs is killed, between decision and act or later, and returns."""
    cluster = start_cluster(ClusterSpec(brokers=4))
    acknowledged = loaded(cluster, topic_name, LISTS, 4 * MEGABYTE)
    hosts = [Host(cluster, tmp_path / name, "200kB/s") for name in ("one", "two")]

    cluster.brokers[3].kill()
    wait_until(lambda: any(map(moment, hosts)), timeout_s=PATIENCE_S, what=moment.__name__)
    killed = next(host for host in hosts if moment(host))
    killed.kill()
    killed.start()
    # Killed before its run had a journal, the repair is tried again five minutes later.
    wait_until(
        lambda: any(is_done(host.memory) for host in hosts),
        timeout_s=PATIENCE_S + SOON_MS / 1000,
        what="a repair that is done",
    )

    acts = [one for host in hosts for one in host.memory.acts]
    assert [one.result for one in acts if one.result is not Result.NOT_BEGUN] == [Result.DONE]
    assert all(3 not in replicas for replicas in assignments(cluster, topic_name).values())
    cluster.brokers[3].start()
    cluster.wait_ready()
    assert throttles(cluster, topic_name) == {}
    verify_readable(cluster.bootstrap_servers, acknowledged)


@pytest.mark.exhaustive
@pytest.mark.parametrize("moment", [has_begun, copies])
def test_another_host_goes_on_with_decisions_in_a_topic(
    start_cluster: Callable[[ClusterSpec], KafkaCluster],
    topic_name: str,
    tmp_path: Path,
    moment: Callable[[Host], bool],
) -> None:
    """The host that repairs is lost, between decision and act or later; one without a state directory goes on."""
    cluster = start_cluster(ClusterSpec(brokers=4))
    acknowledged = loaded(cluster, topic_name, LISTS, 4 * MEGABYTE)
    kept = {"cleanup.policy": "compact", "min.insync.replicas": "2"}
    with AdminClient.connect(client_settings(bootstrap_servers=cluster.bootstrap_servers)) as client:
        client.create_topics([NewTopic("journals", assignments=((0, 1, 2),), configs=kept)]).raise_if_any()
    lost = Host(cluster, tmp_path / "lost", "200kB/s", "--journal-to", "topic:journals")
    cluster.brokers[3].kill()
    wait_until(lambda: moment(lost), timeout_s=PATIENCE_S, what=moment.__name__)
    lost.kill()
    (act,) = lost.memory.acts

    host = Host(cluster, tmp_path / "another", "200kB/s", "--take-over", "--journal-to", "topic:journals")
    host.wait_for("the repair to be settled", lambda memory: memory.acts[0].ended_ms is not None)
    settled = host.memory.acts[0]
    assert (settled.run_id, settled.result in {Result.DONE, Result.NOT_BEGUN}) == (act.run_id, True)
    is_replaced = all(3 not in replicas for replicas in assignments(cluster, topic_name).values())
    assert is_replaced == (settled.result is Result.DONE), "one that was not begun is planned again later"
    cluster.brokers[3].start()
    cluster.wait_ready()
    assert throttles(cluster, topic_name) == {}
    verify_readable(cluster.bootstrap_servers, acknowledged)
