"""Sequels of a run on real Kafka: an operator works by hand, another host goes on, and each next run is judged.

A sequel is a function of the scene and the run before; it says in sentences what was promised of sequences and is not
so. The host of the run before has its journals in `scene.state_dir`, another one has none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kreassign.model import TopicPartition
from kreassign.model.run import ENDED, RunHistory
from kreassign.model.throttle import LEADER_THROTTLED_REPLICAS, LOG_DIR_RATE
from testbed.processes import Finished
from testbed.waiting import wait_until
from tests.campaigns import promises
from tests.campaigns.promises import Aftermath
from tests.torture.operator_faults import alter
from tests.torture.scene import BYSTANDER, RATE, RECREATED, Scene

Sequel = Callable[[Scene, RunHistory], Iterator[str]]
MOVES_S = 90.0


def set_by_hand(scene: Scene, _: RunHistory) -> Iterator[str]:
    """An operator sets a rate and a list; the next run is refused, and with consent puts back exactly these values."""
    broker = scene.chance.choice(sorted(scene.cluster.brokers))
    rate, listed = f"{LOG_DIR_RATE}=7000001", f"{LEADER_THROTTLED_REPLICAS}=[97:1]"
    # The brokers may still be recovering from a fault.
    wait_until(lambda: alter(scene, "broker", broker, "--add-config", rate), what="the rate that an operator sets")
    wait_until(lambda: alter(scene, "topic", BYSTANDER, "--add-config", listed), what="the list of an operator")
    before = scene.throttles()
    refused = _small_run(scene, "here")
    if refused.exit_code == 0 or not all(key.rpartition(" ")[2] in refused.stderr for key in before):
        yield f"settings of an operator were not named: {before}, {refused.exit_code}: {refused.stderr[-300:]}"
    for adopted, left in (("restore", before), ("remove", {})):
        done = _small_run(scene, "elsewhere", "--adopt", adopted)
        if done.exit_code or scene.throttles() != left:
            yield f"--adopt {adopted} left {scene.throttles()} of {before}: {done.exit_code} {done.stderr[-300:]}"


def lose_host(scene: Scene, _: RunHistory) -> Iterator[str]:
    """The host of another run is lost while it moves: the next run elsewhere names what is set, and may remove it."""
    scene.start("run", "--yes", scene.plan(), "--throttle", scene.rate, "--measure-for", 0)
    try:
        wait_until(lambda: scene.is_running() and scene.moving(), timeout_s=30, what="moves of the run")
    except TimeoutError:
        return
    scene.kill_run()
    wait_until(lambda: not scene.moving(), timeout_s=MOVES_S, what="the end of the moves", every_s=0.5)
    before = scene.throttles()
    refused = _small_run(scene, "elsewhere", "--lease", "off")
    if before and (refused.exit_code == 0 or "--adopt remove" not in refused.stderr or scene.throttles() != before):
        yield f"left by a lost host and not named: {before}, {refused.exit_code}: {refused.stderr[-300:]}"
    done = _small_run(scene, "elsewhere", "--lease", "off", "--adopt", "remove")
    if done.exit_code or (left := scene.throttles()):
        yield f"what a lost host left was not removed: {left}, {done.exit_code}: {done.stderr[-300:]}"


def roll_back(scene: Scene, run: RunHistory) -> Iterator[str]:
    """The run is rolled back, and what the rollback says is so."""
    words = ("rollback", run.run_id, "--yes", "--throttle", "5MB/s")
    done = scene.kreassign(*words, *scene.where)
    back = scene.history(latest=True)
    if back is None or back.run_id == run.run_id:
        return
    after = Aftermath(
        back, scene.replicas() | scene.replicas(RECREATED), scene.moving(with_endless=False), [*scene.throttles()]
    )
    yield from (f"rolled back: {each}" for each in promises.broken(after))
    if "Traceback" in done.stderr:
        yield f"rolled back with a traceback: {done.stderr[-300:]}"


def maintain(scene: Scene, _: RunHistory) -> Iterator[str]:
    """A broker is in maintenance and out of it again: replicas have the order of before, and the next run begins."""
    broker = scene.chance.choice(sorted(scene.cluster.brokers))
    before = scene.replicas() | scene.replicas(BYSTANDER)
    ways = [scene.kreassign("maintenance", way, broker, "--yes", *scene.where) for way in ("enter", "exit")]
    if codes := [f"{way.exit_code}: {way.stderr[-300:]}" for way in ways if way.exit_code]:
        yield f"maintenance of broker {broker} ended with {codes}"
    elif (now := scene.replicas() | scene.replicas(BYSTANDER)) != before:
        yield f"maintenance of broker {broker} left other replicas: {_differing(before, now)}"
    if (done := _small_run(scene, "here")).exit_code:
        yield f"the run after a maintenance ended with {done.exit_code}: {done.stderr[-300:]}"


def _differing(before: dict[TopicPartition, tuple[int, ...]], now: dict[TopicPartition, tuple[int, ...]]) -> str:
    return ", ".join(f"{key}: {before[key]} became {now.get(key)}" for key in before if before[key] != now.get(key))


def _small_run(scene: Scene, host: str, *words: object) -> Finished:
    """Run the other plan from this host, which has a state directory of its own."""
    state_dir = scene.state_dir if host == "here" else scene.folder / host
    where = ("--state-dir", state_dir, "--bootstrap-server", scene.cluster.bootstrap_servers)
    return scene.kreassign("run", "--yes", scene.small_plan(), "--throttle", RATE, "--measure-for", 0, *words, *where)


SEQUELS: tuple[Sequel, ...] = (set_by_hand, lose_host, roll_back, maintain)


def sequel(scene: Scene, run: RunHistory | None, number: int) -> list[str]:
    """The sequel of a run, all in turn; none of a run that did not end, or whose brokers are down still."""
    if run is None or run.state not in ENDED or scene.lost or scene.repairs:
        return []
    chosen = SEQUELS[number % len(SEQUELS)]
    scene.tell(f"sequel: {chosen.__name__}")
    return [f"{chosen.__name__}: {each}" for each in chosen(scene, run)]
