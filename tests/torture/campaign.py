"""A campaign: runs on real Kafka, one after the other, each struck by up to five faults, resumed until its end.

What is demanded of every run, once its faults are repaired:

- no throttle is left, or the run named what is;
- a move that is told complete is complete, and a run that is told done without a problem is done;
- what somebody else did to its settings or moves is told;
- where nothing happened that can make a move fail, none does;
- nothing of its plan is still moving (but for what others overrode so that Kafka can never complete it), and no command
  ended in a traceback;
- where a broker is lost for good, the next run begins, and what is left there was told.

And after each run, and once more at the end of all: each acknowledged record is there, once, unchanged and in the
order in which its producer sent it.

What was drawn and not struck, because nothing moved any more, is drawn again for a later run. Every other run gets
`harmless` faults only, so that what makes a move fail does not hide what must not.
"""

from __future__ import annotations

import json
import signal
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import click
from kafka.errors import KafkaError

from testbed import KafkaCluster, Listener
from testbed.waiting import wait_until
from tests.real.run_processes import end_throttles_and_moves, free_lease
from tests.torture.checked_records import PRODUCERS, CheckedRecords
from tests.torture.fault import Fault
from tests.torture.faults import FULL_LOG_DIR, OPERATOR_FAULTS, UPGRADE
from tests.torture.kafkas_tools import topics
from tests.torture.operator_faults import FOREIGN_RATE
from tests.torture.order import Order
from tests.torture.rolling_faults import FORMER, PRESENT
from tests.torture.scene import NOT_YET, PARTITIONS, RATE, RECREATED, TOPIC, Scene, opened, spec

LEG_S, STRIKE_S = 420.0, 75.0
LOST_S = 45.0
"""For so long an operator hopes that a broker comes back."""
ENDS = ("done", "cancelled", "failed")
SAID = {"done": "finished"}
"""What the table calls an end that it does not call by its name."""
_FAILURES = (*NOT_YET, KafkaError)
LEAST_AT_ONCE, MOST_AT_ONCE = 4, 5
LEFT = ("throttles left", "ended, and still moving", "left on the lost broker")
"""How sentences begin that tell of something that a run left behind; all others tell of what it said or did wrong."""


@dataclass(slots=True)
class Tally:
    """What came of one kind of fault: how often it struck, how runs ended, how long after it, promises broken."""

    struck: int = 0
    ends: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    seconds: list[float] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    lost: int = 0

    def take_in(self, end: str, seconds: float, broken: Sequence[str], lost: int) -> None:
        """Count a run that it struck so many seconds before its end, and after which so much was lost."""
        self.struck += 1
        self.ends[end] += 1
        self.seconds.append(seconds)
        self.broken += broken
        self.lost += lost

    def row(self, name: str) -> str:
        """As the table has it."""
        ends = ", ".join(f"{count} {end}" for end, count in sorted(self.ends.items()))
        took = sorted(self.seconds)
        spread = f"{took[len(took) // 2]:.0f} ({took[-1]:.0f})" if took else ""
        left = sum(each.startswith(LEFT) for each in self.broken)
        return f"| {name} | {self.struck} | {ends} | {spread} | {self.lost} | {left} | {len(self.broken) - left} |"


class Campaign:
    """Strikes faults by seed; `broken` has a sentence per broken promise."""

    def __init__(self, faults: Sequence[Fault], seed: int, folder: Path) -> None:
        self._faults = faults
        self._chance = Random(seed)
        self._folder = folder
        self._tallies = {fault.name: Tally() for fault in faults}
        self._order = Order(faults, self._chance)
        self.broken: list[str] = []
        self.records = 0
        self.refused = 0
        self.lost = 0
        self._runs = 0

    def execute(self, wanted: int, minutes: float | None = None) -> None:
        """Strike so many faults, all kinds in turn, and read all records back. No run begins after so many minutes."""
        until_s = time.monotonic() + 60 * minutes if minutes else None
        version = FORMER if UPGRADE in self._faults else PRESENT
        with KafkaCluster.start(spec(version)) as cluster:
            has_full = FULL_LOG_DIR in self._faults
            scene, written = opened(cluster, self._chance, self._folder, with_small_log_dir=has_full)
            try:
                if set(OPERATOR_FAULTS) & set(self._faults):
                    # Kafka's tools run in a Java that takes longer to start than some moves take.
                    topics(scene, "--list")
                with CheckedRecords(cluster.bootstrap_servers, TOPIC, PARTITIONS, written) as records:
                    self._strike_all(scene, records, wanted, until_s)
                scene.heal()
                missing = records.all_missing()
            finally:
                scene.close()
            self.records, self.refused = records.count, records.refused
            self.lost = len(missing)
            self.broken += [*records.broken, *missing]

    def _strike_all(self, scene: Scene, records: CheckedRecords, wanted: int, until_s: float | None) -> None:
        number = 0
        while self.struck < wanted and number < wanted:
            if until_s is not None and time.monotonic() > until_s:
                return
            most = min(self._chance.randint(LEAST_AT_ONCE, MOST_AT_ONCE), wanted - self.struck)
            try:
                self._leg(scene, records, number, self._order.next(most, harmless=number % 2 == 1))
            except _FAILURES as error:
                self.broken.append(f"run {number}: the campaign could not go on with it: {error!r}")
                self._start_afresh(scene)
            number += 1

    @property
    def struck(self) -> int:
        """How many faults have been struck."""
        return sum(each.struck for each in self._tallies.values())

    def _start_afresh(self, scene: Scene) -> None:
        """After a leg that could not be judged."""
        if scene.run is not None:
            scene.run.kill()
        scene.repair_all()
        scene.interfere(None)
        scene.lost, scene.unregistered = set(), set()
        scene.heal()
        self._tidy_up(scene)

    def table(self) -> str:
        """What came of it, a row per kind of fault."""
        rows = [
            "| fault | times | how runs ended | recovered in s, median (most) | records lost | residue | untrue |",
            "|---|---|---|---|---|---|---|",
            *(tally.row(name) for name, tally in self._tallies.items()),
        ]
        kinds = sum(each.struck > 0 for each in self._tallies.values())
        rows.append(
            f"\n{self.struck} faults of {kinds} kinds at {self._runs} runs; {self.records} records of {PRODUCERS}"
            f" producers acknowledged and read back, {self.lost} of {PARTITIONS} partitions with any that is lost,"
            f" changed, there twice or out of order; {self.refused} refused; {len(self.broken)} promises broken."
        )
        return "\n".join([*rows, *(f"- {each}" for each in self.broken)])

    def _leg(self, scene: Scene, records: CheckedRecords, number: int, faults: Sequence[Fault]) -> None:
        scene.folder = self._folder / str(number)
        scene.folder.mkdir()
        scene.run_id, scene.untrue, scene.begun_s = None, [], time.monotonic()
        scene.is_cancelled, scene.was_held, scene.needless, scene.rate = False, False, set(), RATE
        scene.listener = next((fault.listener for fault in faults if fault.listener), Listener.PLAINTEXT)
        for fault in faults:
            fault.prepare(scene)
        scene.words = (scene.plan(), "--throttle", scene.rate, "--max-moves", 4, "--measure-for", 0)
        scene.begin()
        self._runs += 1
        struck, struck_s = [], []
        for fault in faults:
            if said := self._strike(scene, fault):
                struck.append((fault, said))
                struck_s.append(time.monotonic())
            else:
                self._order.put_off(fault)
        found = self._bring_to_its_end(scene)
        ended_s = time.monotonic()
        broken = [*self._judge(scene, struck, found), *self._bring_back_lost(scene, found), *scene.untrue]
        lost = records.newly_missing()
        end = _end(scene, found)
        for (fault, _), at_s in zip(struck, struck_s, strict=True):
            self._tallies[fault.name].take_in(end, ended_s - at_s, broken, len(lost))
        told = "; ".join(said for _, said in struck)
        self.broken += [f"run {number} ({told}): {each}" for each in (*broken, *lost)]
        heading = f"run {number}: {told or 'nothing struck'} → {end}, {ended_s - scene.begun_s:.0f} s"
        click.echo("\n  ".join([heading, *broken, *lost]), err=True)
        self._tidy_up(scene)

    def _strike(self, scene: Scene, fault: Fault) -> str:
        """Strike while something moves, also when the run had to be resumed; "" if it ended before."""
        said = ""

        def is_over() -> bool:
            nonlocal said
            if not (scene.is_running() and (fault.is_early or scene.moving())):
                return self._is_at_its_end(scene)
            scene.repair_due()
            self._look(scene)
            said = fault.strike(scene)
            if said:
                scene.tell(f"{fault.name}: {said}")
            return bool(said)

        try:
            wait_until(is_over, timeout_s=STRIKE_S, what=fault.name, every_s=0.2)
        except NOT_YET as error:
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
            scene.repair_all()
            scene.heal()
        return scene.status()

    def _look(self, scene: Scene) -> Mapping[str, Any] | None:
        """What the journal tells of a run that is not over; note whether it is held."""
        found = scene.status()
        if found is None or found["state"] in ENDS:
            return None
        scene.was_held = scene.was_held or found["is_held"]
        return found

    def _is_at_its_end(self, scene: Scene) -> bool:
        is_repaired = scene.repair_due()
        if scene.is_running():
            if (found := self._look(scene)) is not None and is_repaired:
                self._answer(scene, found)
            return False
        self._collect_output(scene)
        if not is_repaired:
            return False
        scene.tell("the run is not there")
        scene.heal()
        found = scene.status()
        scene.tell(f"found {found['state'] if found else 'nothing'}")
        if found is None and scene.run is not None and scene.run.returncode == -signal.SIGKILL:
            # It was killed before it had a journal.
            scene.begin()
            return False
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
            scene.kreassign("throttle", found["run_id"], scene.rate, "--state-dir", scene.state_dir)
        elif scene.lost and not scene.is_cancelled and time.monotonic() - scene.begun_s > LOST_S:
            scene.is_cancelled = True
            scene.kreassign("cancel", found["run_id"], "--drain", "--state-dir", scene.state_dir)

    def _collect_output(self, scene: Scene) -> None:
        if scene.run is not None and scene.run.stderr is not None and not scene.run.stderr.closed:
            _, errors = scene.run.communicate(timeout=60)
            if "Traceback" in errors:
                scene.untrue.append(f"a traceback: {errors[-300:]}")
            with (scene.folder / "stderr.txt").open("a") as said:
                said.write(errors)

    def _judge(self, scene: Scene, struck: Sequence[tuple[Fault, str]], found: Mapping[str, Any] | None) -> list[str]:
        if found is None:
            return ["the run has no journal"]
        broken = []
        told = json.dumps([found["problems"], [move["problem"] for move in found["moves"]]])
        left = {
            key: value
            for key, value in scene.throttles().items()
            if value != FOREIGN_RATE and not _is_of_former_topic(key, told)
        }
        if left:
            broken.append(f"throttles left{'' if found['throttle_residue'] else ' and not told of'}: {left}")
        # What others overrode is theirs; the run has told of it (`tells`), and `kreassign doctor` how to free it.
        if moving := sorted(set(scene.moving()) - set(scene.endless())):
            broken.append(f"ended, and still moving: {', '.join(map(str, moving))}")
        broken += [
            f"not told of: {said}"
            for fault, said in struck
            if fault.tells is not None and fault.tells not in told and said not in scene.needless
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


def _is_of_former_topic(key: str, told: str) -> bool:
    """Whether the run names it as what should not be on the topic that others made again.

    A broker that starts again shows what was set on the topic of that name before (docs/design/non-obvious.md, 62).
    """
    owner, _, name = key.rpartition(" ")
    return owner == f"topic {RECREATED}" and f"{owner}: {name} is " in told


def _end(scene: Scene, found: Mapping[str, Any] | None) -> str:
    """How a run ended, in the word of the table."""
    if found is None:
        return "no journal"
    return f"{'held, then ' if scene.was_held else ''}{SAID.get(found['state'], found['state'])}"
