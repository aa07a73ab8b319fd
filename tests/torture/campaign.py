"""A campaign: runs on real Kafka, one after the other, each struck by up to four faults, resumed until its end.

What is demanded of every run, once its faults are repaired:

- no throttle is left, or the run named what is;
- a move that is told complete is complete, and a run that is told done without a problem is done;
- what somebody else did to its settings or moves is told;
- where nothing happened that can make a move fail, none does;
- nothing of its plan is still moving (but for what others overrode so that Kafka can never complete it), and no command
  ended in a traceback;
- where a broker is lost for good, the next run begins, and what is left there was told.

And at the end of all: each acknowledged record is there, unchanged and in the order in which it was sent.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from subprocess import SubprocessError
from typing import Any

import click
from kafka.errors import KafkaError

from kreassign.errors import KreassignError
from testbed import KafkaCluster, NodeFailed, Refused
from testbed.producing import Producing
from testbed.records import read_all
from testbed.waiting import wait_until
from tests.real.run_processes import end_throttles_and_moves, free_lease
from tests.torture.fault import Fault
from tests.torture.operator_faults import FOREIGN_RATE
from tests.torture.scene import PARTITIONS, RATE, RECORD_BYTES, RECORDS_PER_S, TOPIC, Scene, opened, spec

LEG_S, STRIKE_S = 300.0, 60.0
LOST_S = 45.0
"""For so long an operator hopes that a broker comes back."""
ENDS = ("done", "cancelled", "failed")
_FAILURES = (KreassignError, NodeFailed, Refused, OSError, SubprocessError)
STRUCK_AT_ONCE = 4
LEFT = ("throttles left", "ended, and still moving", "left on the lost broker")
"""How sentences begin that tell of something that a run left behind; all others tell of what it said or did wrong."""


@dataclass(slots=True)
class Tally:
    """What came of one kind of fault: how often it struck, how runs ended, how long after it, promises broken."""

    struck: int = 0
    ends: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    seconds: list[float] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def take_in(self, end: str, seconds: float, broken: Sequence[str]) -> None:
        """Count a run that it struck so many seconds before its end."""
        self.struck += 1
        self.ends[end] += 1
        self.seconds.append(seconds)
        self.broken += broken

    def row(self, name: str) -> str:
        """As the table has it."""
        ends = ", ".join(f"{count} {end}" for end, count in sorted(self.ends.items()))
        took = sorted(self.seconds)
        spread = f"{took[len(took) // 2]:.0f} ({took[-1]:.0f})" if took else ""
        left = sum(each.startswith(LEFT) for each in self.broken)
        return f"| {name} | {self.struck} | {ends} | {spread} | {left} | {len(self.broken) - left} |"


class Campaign:
    """Strikes faults by seed; `broken` has a sentence per broken promise."""

    def __init__(self, faults: Sequence[Fault], seed: int, folder: Path) -> None:
        self._faults = faults
        self._chance = Random(seed)
        self._folder = folder
        self._tallies = {fault.name: Tally() for fault in faults}
        self.broken: list[str] = []
        self.records = 0
        self.refused = 0
        self.lost = 0
        self._runs = 0

    def execute(self, wanted: int, minutes: float | None = None) -> None:
        """Strike so many faults, all kinds in turn, and read all records back. No run begins after so many minutes."""
        until_s = time.monotonic() + 60 * minutes if minutes else None
        with KafkaCluster.start(spec()) as cluster:
            scene = opened(cluster, self._chance, self._folder)
            try:
                with Producing(
                    cluster.bootstrap_servers,
                    TOPIC,
                    partitions=PARTITIONS,
                    records_per_s=RECORDS_PER_S,
                    value_bytes=RECORD_BYTES,
                ) as producer:
                    self._strike_all(scene, wanted, until_s)
            except (KafkaError, TimeoutError) as error:
                self.broken.append(f"the producer did not last: {error!r}")
            finally:
                if scene.disk is not None:
                    scene.disk.close()
            self.records, self.refused = producer.ledger.count, len(producer.failures)
            missing = producer.ledger.missing_from(read_all(cluster.bootstrap_servers, TOPIC))
            self.lost = len(missing)
            self.broken += missing

    def _strike_all(self, scene: Scene, wanted: int, until_s: float | None) -> None:
        order: list[Fault] = []
        number = 0
        while sum(each.struck for each in self._tallies.values()) < wanted and number < 2 * wanted:
            if until_s is not None and time.monotonic() > until_s:
                return
            while len(order) < STRUCK_AT_ONCE:
                order += self._chance.sample(self._faults, len(self._faults))
            count = self._chance.randint(1, STRUCK_AT_ONCE)
            faults, order = order[:count], order[count:]
            try:
                self._leg(scene, number, faults)
            except _FAILURES as error:
                self.broken.append(f"run {number}: the campaign could not go on with it: {error!r}")
                self._start_afresh(scene)
            number += 1

    def _start_afresh(self, scene: Scene) -> None:
        """After a leg that could not be judged."""
        if scene.run is not None:
            scene.run.kill()
        scene.interfere(None)
        scene.lost, scene.unregistered, scene.repairs = set(), set(), []
        scene.heal()
        self._tidy_up(scene)

    def table(self) -> str:
        """What came of it, a row per kind of fault."""
        rows = [
            "| fault | times | ended | seconds to the end, median (most) | left behind | untrue, or not ended |",
            "|---|---|---|---|---|---|",
            *(tally.row(name) for name, tally in self._tallies.items()),
        ]
        struck = sum(each.struck for each in self._tallies.values())
        kinds = sum(each.struck > 0 for each in self._tallies.values())
        rows.append(
            f"\n{struck} faults of {kinds} kinds at {self._runs} runs; {self.records} records acknowledged and"
            f" read back, {self.lost} of them lost, changed or out of order, {self.refused} refused;"
            f" {len(self.broken)} promises broken."
        )
        return "\n".join([*rows, *(f"- {each}" for each in self.broken)])

    def _leg(self, scene: Scene, number: int, faults: Sequence[Fault]) -> None:
        scene.folder = self._folder / str(number)
        scene.folder.mkdir()
        scene.run_id, scene.untrue, scene.begun_s = None, [], time.monotonic()
        scene.is_proxied = scene.is_cancelled = False
        for fault in faults:
            fault.prepare(scene)
        scene.start("run", "--yes", scene.plan(), "--throttle", RATE, "--max-moves", 4, "--measure-for", 0)
        self._runs += 1
        struck, struck_s = [], []
        for fault in faults:
            if said := self._strike(scene, fault):
                struck.append((fault, said))
                struck_s.append(time.monotonic())
        found = self._bring_to_its_end(scene)
        ended_s = time.monotonic()
        broken = [*self._judge(scene, struck, found), *self._bring_back_lost(scene, found), *scene.untrue]
        for (fault, _), at_s in zip(struck, struck_s, strict=True):
            self._tallies[fault.name].take_in(found["state"] if found else "nothing", ended_s - at_s, broken)
        told = "; ".join(said for _, said in struck)
        self.broken += [f"run {number} ({told}): {each}" for each in broken]
        state = found["state"] if found else "no journal"
        heading = f"run {number}: {told or 'nothing struck'} → {state}, {ended_s - scene.begun_s:.0f} s"
        click.echo("\n  ".join([heading, *broken]), err=True)
        self._tidy_up(scene)

    def _strike(self, scene: Scene, fault: Fault) -> str:
        """Strike while something moves, also when the run had to be resumed; "" if it ended before."""
        said = ""

        def is_over() -> bool:
            nonlocal said
            if not (scene.is_running() and scene.moving()):
                return self._is_at_its_end(scene)
            scene.repair_due()
            said = fault.strike(scene)
            scene.tell(f"{fault.name}: {said or 'not yet'}")
            return bool(said)

        try:
            wait_until(is_over, timeout_s=STRIKE_S, what=fault.name, every_s=0.2)
        except (KreassignError, TimeoutError) as error:
            # A cluster without its controllers cannot do what a second operator wants either.
            click.echo(f"{fault.name}: {error}", err=True)
        return said

    def _bring_to_its_end(self, scene: Scene) -> Mapping[str, Any] | None:
        """Mend, resume and answer what the run asks for, as an operator does, until the run is over."""
        try:
            wait_until(lambda: self._is_at_its_end(scene), timeout_s=LEG_S, what="the run", every_s=0.5)
        except TimeoutError as error:
            scene.untrue.append(str(error))
            if scene.run is not None:
                scene.run.kill()
                self._collect_output(scene)
            for _, repair in scene.repairs:
                repair()
            scene.repairs = []
            scene.heal()
        return scene.status()

    def _is_at_its_end(self, scene: Scene) -> bool:
        is_repaired = scene.repair_due()
        if scene.is_running():
            found = scene.status() if is_repaired else None
            if found is not None and found["state"] not in ENDS:
                self._answer(scene, found)
            return False
        self._collect_output(scene)
        if not is_repaired:
            return False
        scene.tell("the run is not there")
        scene.heal()
        found = scene.status()
        scene.tell(f"found {found['state'] if found else 'nothing'}")
        if found is None or (found["state"] in ENDS and not found["throttle_residue"]):
            return True
        if found["state"] in ENDS and scene.lost - scene.unregistered:
            self._forget_lost(scene, found)
            return True
        scene.start("resume", scene.run_id)
        return False

    def _forget_lost(self, scene: Scene, found: Mapping[str, Any]) -> None:
        """Give up what a run cannot restore, because the broker does not come back."""
        brokers = [word for broker in sorted(scene.lost) for word in ("--broker", broker)]
        done = scene.kreassign("forget", found["run_id"], *brokers, "--state-dir", scene.state_dir)
        if done.exit_code:
            scene.untrue.append(f"the brokers {sorted(scene.lost)} could not be forgotten: {done.stderr[-300:]}")

    def _bring_back_lost(self, scene: Scene, found: Mapping[str, Any] | None) -> list[str]:
        """Where a broker is lost the next run must begin; then the broker comes back with what is still set on it."""
        if not scene.lost or found is None:
            return []
        broken = []
        where = ("--state-dir", scene.state_dir, "--bootstrap-server", scene.cluster.bootstrap_servers)
        following = scene.kreassign("run", "--yes", scene.small_plan(), "--throttle", RATE, "--measure-for", 0, *where)
        if following.exit_code:
            broken.append(f"the next run ended with {following.exit_code}: {following.stderr[-300:]}")
        told = json.dumps([found["problems"], found["throttle_residue"]])
        lost, scene.lost, scene.unregistered = scene.lost, set(), set()
        scene.heal()
        left = {key: value for key, value in scene.throttles().items() if key.startswith("broker ")}
        for broker in sorted(lost):
            mine = [f"{key} = {value}" for key, value in left.items() if key.split()[1] == str(broker)]
            if mine and f"broker {broker}" not in told:
                broken.append(f"left on the lost broker and not told of: {mine}")
        return broken

    def _answer(self, scene: Scene, found: Mapping[str, Any]) -> None:
        """Set the throttle again where somebody took it away; end the run that waits for a broker that is lost."""
        verdicts = " ".join(found["verdicts"])
        if "foreign-throttle" in verdicts:
            scene.kreassign("throttle", found["run_id"], RATE, "--state-dir", scene.state_dir)
        elif scene.lost and not scene.is_cancelled and time.monotonic() - scene.begun_s > LOST_S:
            scene.is_cancelled = True
            scene.kreassign("cancel", found["run_id"], "--drain", "--state-dir", scene.state_dir)

    def _collect_output(self, scene: Scene) -> None:
        if scene.run is not None and scene.run.stderr is not None and not scene.run.stderr.closed:
            _, errors = scene.run.communicate(timeout=60)
            if "Traceback" in errors:
                scene.untrue.append(f"a traceback: {errors[-300:]}")
            (scene.folder / "stderr.txt").open("a").write(errors)

    def _judge(self, scene: Scene, struck: Sequence[tuple[Fault, str]], found: Mapping[str, Any] | None) -> list[str]:
        if found is None:
            return ["the run has no journal"]
        broken = []
        left = {key: value for key, value in scene.throttles().items() if value != FOREIGN_RATE}
        if left:
            broken.append(f"throttles left{'' if found['throttle_residue'] else ' and not told of'}: {left}")
        # What others overrode is theirs; the run has told of it (`tells`), and `kreassign doctor` how to free it.
        if moving := sorted(set(scene.moving()) - set(scene.endless())):
            broken.append(f"ended, and still moving: {', '.join(map(str, moving))}")
        told = json.dumps([found["problems"], [move["problem"] for move in found["moves"]]])
        broken += [
            f"not told of: {said}" for fault, said in struck if fault.tells is not None and fault.tells not in told
        ]
        if struck and all(fault.harmless for fault, _ in struck) and found["state"] != "done":
            broken.append(f"{found['state']}, and nothing was struck that makes a move fail: {found['problems']}")
        # What somebody else moves after its end is not the run's word any more.
        if not any(fault.moves for fault, _ in struck):
            present = scene.replicas()
            complete = {
                f"{move['topic']}-{move['partition']}" for move in found["moves"] if move["status"] == "complete"
            }
            broken += [
                f"told complete, and {partition} is on {present[partition]}, not on {target}"
                for partition, target in scene.targets.items()
                if str(partition) in complete and partition.topic == TOPIC and present[partition] != target
            ]
            if found["state"] == "done" and (open_moves := len(scene.targets) - len(complete)):
                broken.append(f"told done, and {open_moves} moves are not complete")
        (scene.folder / "found.json").write_text(json.dumps(found, indent=1))
        return broken

    def _tidy_up(self, scene: Scene) -> None:
        """So that a broken promise does not break the next run: nothing moves, nothing is throttled."""
        scene.interfere(None)
        if scene.disk is not None:
            scene.disk.close()
            scene.disk = None
        with scene.client() as client:
            free_lease(client)
            end_throttles_and_moves(client)
