"""Commands given to a twin that gives one odd answer: the shapes of the cluster, the odd answers, what came of it."""

from __future__ import annotations

import re
import shlex
import signal
from _thread import interrupt_main
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from io import StringIO
from pathlib import Path

from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.errors import KreassignError
from kreassign.kafka_tools import leader_election, preferred_replica_election, reassign_partitions, topics
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.plan_files import write_plan
from kreassign.twin.api.connection import AffectedResponses, Execute, Refused, ResponseFaults
from kreassign.twin.api.request import Request
from kreassign.twin.cluster import Twin
from kreassign.twin.faults import PlannedFault, read_fault
from kreassign.twin.server import serving
from kreassign.web.operations import Served
from kreassign.web.previews import PreviewRequest
from kreassign.web.settings import Reach, WebSettings
from kreassign.web.tasks import TaskRequest
from kreassign.wire import api
from kreassign.wire.api import Api, Message
from tests.cli.test_permissions import PATIENT, SPEED, Asked, write_files
from tests.twin.asking import cluster

# Shapes of the cluster. Each comes with a copy from before a change that others made: old answers are of that.

AGES_MS = 60_000
"""Enough for any copy to be whole, and for each broker to be in sync."""


def fault(text: str) -> PlannedFault:
    """A fault that begins when it is injected."""
    return read_fault(f"{text}@0s")


@dataclass(frozen=True, slots=True)
class Shape:
    """A cluster, and its state before others changed it."""

    now: Twin
    past: Twin


def at_rest() -> Shape:
    """Others have moved t-0 back from where plan.json wants it; broker 2 was down, and a replica of t throttled."""
    return _changed_by_others({"t": [[3, 1], [1, 2], [2, 0], [3, 0]]}, brokers=4)


def with_moves_of_others() -> Shape:
    """Besides, others move u-0, which cannot end: its brokers do not reach each other. Broker 1 has not read of it."""
    shape = _changed_by_others({"t": [[3, 1], [1, 2], [2, 0], [3, 0]], "u": [[0, 4]]}, brokers=6)
    twin = shape.now
    # An old answer is older than those of broker 1: two that are alike would be believed.
    fault("move:u:0:4,0").inject(twin)
    twin.advance(AGES_MS)
    twin.restore_preferred_leaders()
    fault("cut:4:5").inject(twin)
    fault("stale:1").inject(twin)
    fault("move:u:0:4,5").inject(twin)
    return shape


def _changed_by_others(lists: dict[str, list[list[int]]], brokers: int) -> Shape:
    twin = Twin(cluster({**lists, "__consumer_offsets": [[0, 1, 2]]}, brokers=brokers))
    fault("list-replica:t:0:3").inject(twin)
    fault("stop:2").inject(twin)
    twin.advance(AGES_MS)
    past = deepcopy(twin)
    fault("stop:2").recover(twin)
    fault("move:t:0:0,1").inject(twin)
    twin.advance(AGES_MS)
    fault("clear-lists").inject(twin)
    twin.restore_preferred_leaders()
    return Shape(twin, past)


# Odd answers.

Odd = Callable[["Noted", Request, Execute], Message | None]
"""Makes the odd answer to a request; None hangs up."""


def silent(_noted: Noted, _request: Request, _execute: Execute) -> None:
    pass


def empty(noted: Noted, request: Request, execute: Execute) -> Message:
    noted.twin.views.forget(None, request.called.key)
    try:
        return execute(request)
    finally:
        noted.twin.views.release(None, request.called.key)


OF_ITSELF = {api.DESCRIBE_LOG_DIRS, api.LIST_OFFSETS}
"""A broker reads its own disks, which are no copy of anything: that is old only beside what a command changed."""


def stale(noted: Noted, request: Request, execute: Execute) -> Message:
    if request.called in OF_ITSELF and not noted.has_changed:
        return execute(request)
    return execute(replace(request, cluster=noted.past))


def refused(code: int) -> Odd:
    return lambda _noted, request, execute: Refused(code).meet(request, execute)


WRITES = {
    api.ALTER_PARTITION_REASSIGNMENTS,
    api.ALTER_REPLICA_LOG_DIRS,
    api.ELECT_LEADERS,
    api.INCREMENTAL_ALTER_CONFIGS,
}


@dataclass
class Noted:
    """Counts the answers of each API, and makes one of them odd; `past` is the cluster before the last change.

    The last change is that of others until a command `has_changed` something. With `interrupts` the first move that is
    asked for is answered while Ctrl-C is pressed.
    """

    twin: Twin
    past: Twin
    asked: Api | None = None
    odd: Odd | None = None
    turn: int = 0
    counts: Counter[Api] = field(default_factory=Counter)
    interrupts: bool = False
    has_changed: bool = False

    def meet(self, request: Request, execute: Execute) -> Message | None:
        """Answer a request."""
        self.counts[request.called] += 1
        if request.called == self.asked and self.odd and self.counts[request.called] == self.turn:
            return self.odd(self, request, execute)
        if self.interrupts and request.called == api.ALTER_PARTITION_REASSIGNMENTS and _moves_anything(request):
            self.interrupts = False
            interrupt_main(signal.SIGINT)
        if self.odd is stale and request.called in WRITES:
            return self._changed(request, execute)
        return execute(request)

    def _changed(self, request: Request, execute: Execute) -> Message:
        before = self._copy()
        answer = execute(request)
        if self.twin.metadata.offset != before.metadata.offset:
            self.past, self.has_changed = before, True
        return answer

    def _copy(self) -> Twin:
        """The cluster as it is now, without this: what would note would be copied as well."""
        faults, self.twin.response_faults = self.twin.response_faults, ResponseFaults()
        try:
            return deepcopy(self.twin)
        finally:
            self.twin.response_faults = faults


def _moves_anything(request: Request) -> bool:
    """False for a request that only asks whether moves are permitted."""
    return any(partition.replicas for topic in request.message.topics for partition in topic.partitions)


# Commands, and what comes of them.

Step = str | Callable[[Twin], None]
"""Words of a command, or what happens to the cluster."""
INTERRUPTED_BY_CTRL_C = "Ctrl-C: "
"""Before the words of a command that Ctrl-C interrupts at its first move."""
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Command:
    """Words of a command, and the steps before it."""

    words: str
    before: tuple[Step, ...] = ()

    @property
    def is_tool(self) -> bool:
        """True for a tool of Kafka's: its texts are Kafka's own, which name no resource."""
        return self.words.split()[0] in TOOLS


TOOLS = {
    "kafka-reassign-partitions": reassign_partitions.main,
    "kafka-leader-election": leader_election.main,
    "kafka-preferred-replica-election": preferred_replica_election.main,
    "kafka-topics": topics.main,
}
PROPOSED = "Proposed partition reassignment configuration"
"""Line before a proposal that is drawn at random."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """Gives commands, tools and requests of the page to a served twin."""

    asked: Asked

    def give(self, words: str) -> tuple[int, str]:
        """The exit code, and the output."""
        first, *others = shlex.split(words)
        if first in TOOLS:
            return self._tool(first, others)
        if first == "page":
            return self._page(others[0])
        if first == "home":
            return self._home()
        found = self.asked.give(words)
        return found.exit_code, found.output

    def _tool(self, name: str, words: list[str]) -> tuple[int, str]:
        where = ("--bootstrap-server", self.asked.server.bootstrap_servers)
        with redirect_stdout(StringIO()) as shown, redirect_stderr(shown):
            code = TOOLS[name]([*words, *where])
        return code, re.sub(rf"(?s)({PROPOSED}).*", r"\1", shown.getvalue())

    def _home(self) -> tuple[int, str]:
        where = {"KREASSIGN_BOOTSTRAP_SERVER": self.asked.server.bootstrap_servers, "KREASSIGN_STATE_DIR": "state"}
        found = CliRunner().invoke(kreassign, [], env=where)
        return found.exit_code, found.output

    def _page(self, asked: str) -> tuple[int, str]:
        reach = Reach(self.asked.server.bootstrap_servers, Path(PATIENT))
        served = Served(WebSettings(Path("state"), port=0, plans=Path(), reach=reach, measure_for_s=0))
        try:
            found = PAGE[asked](served)
        except KreassignError as error:
            return 1, f"error: {error}"
        return 0, "\n".join(f"{name}: {value}" for name, value in _flat(found))


PAGE: dict[str, Callable[[Served], dict[str, object]]] = {
    "cluster": lambda served: asdict(served.cluster()),
    "plan": lambda served: asdict(served.make_plan(TaskRequest("rebalance"))),
    "preview": lambda served: asdict(served.preview("plan.json", PreviewRequest())),
}


def _flat(found: dict[str, object]) -> Iterator[tuple[str, object]]:
    """A line for each element of a list, so that one that is added shows as a line."""
    for name, value in found.items():
        for one in value if isinstance(value, tuple | list) else (value,):
            yield name, one


HINT = re.compile(r"--bootstrap-server \S+")
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
BROKER = "broker at …"
"""Instead of an address, which differs each time."""
CHANGING = re.compile(
    r"\d{8}T\d{6}(\.\d+)?Z-\w+|\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?|\d+:\d\d(:\d\d)?"
    r"|\(\d+ seconds? ago\)|\(just now\)|for [\d.]+ s only|[\d.]+ [kM]?B copied|at_ms: \d+|preview_id: \S+"
)
"""Runs and times."""
PROGRESS = re.compile(r"\s*\d+/\d+ moves, |next: kreassign (doctor|rollback) ")
"""How many lines of this there are, and whether a cancelled move had copied anything, depends on how quick all is."""
TOLD = re.compile(
    r"could not be|cannot be|is not known|does not answer|has not answered|passed over|UNREAD|PERMISSION|LOG-DIR"
    r"|warning:|^wait: |\b\w+, -?\d+ [A-Z_]+\)|permission is missing: "
)
"""Words of a line that tells what was not read, or looks at it again after a wait."""
TOPIC = r"\b[tu]\b|\btopics?\b|__consumer_offsets"
KEPT_IN_GROUPS = r"lease|maintenance|\bruns?\b|group"
NAMES = {
    api.CREATE_TOPICS: r"\bbrokers? \d",
    api.DESCRIBE_CLUSTER: "cluster|brokers",
    api.DESCRIBE_CONFIGS: TOPIC,
    api.DESCRIBE_GROUPS: KEPT_IN_GROUPS,
    api.DESCRIBE_LOG_DIRS: r"\bbrokers? \d",
    api.DESCRIBE_TOPIC_PARTITIONS: TOPIC,
    api.FIND_COORDINATOR: KEPT_IN_GROUPS,
    api.LIST_OFFSETS: TOPIC,
    api.LIST_PARTITION_REASSIGNMENTS: "reassign|moves|moving",
    api.METADATA: f"{TOPIC}|brokers",
    api.OFFSET_FETCH: KEPT_IN_GROUPS,
}
"""Names of the resource of a read; the broker that was asked or a missing permission are as good."""
OF_ANY_READ = r"\bbrokers? (\d|at …)|permission is missing: \w+ on |the cluster has not answered"


def is_named(asked: Api, line: str) -> bool:
    """True if a line names what was asked for, or the broker that was asked."""
    return re.search(f"{NAMES[asked]}|{OF_ANY_READ}", line, re.IGNORECASE) is not None


def plain(line: str) -> str:
    """A line without what differs each time."""
    return CHANGING.sub("…", ADDRESS.sub(BROKER, HINT.sub("…", line))).strip()


@dataclass(frozen=True)
class Outcome:
    """Result of a command: its exit code, its output without what differs each time, and the cluster afterwards."""

    code: int
    words: tuple[str, ...]
    cluster: str
    was: str = field(compare=False)
    counts: Counter[Api] = field(compare=False)

    def is_fine_beside(self, whole: Outcome, asked: Api, *, is_tool: bool) -> str | None:
        """Sentence about the difference from `whole` after one odd answer to `asked`; None if there is none."""
        if self == whole:
            return None
        told = [line for line in self.words if line not in whole.words]
        has_name = is_tool or any(is_named(asked, line) for line in told)
        is_told = has_name and any(TOLD.search(line) for line in told)
        if self.code == INTERRUPTED:
            return f"did not end by itself: {told}"
        is_refused = self.code != 0 and has_name and any("error" in line.lower() for line in told)
        if is_refused or (is_told and self.code not in {0, whole.code}):
            return None if self.cluster in {self.was, whole.cluster} else f"changed something, and ended: {told}"
        if self.code not in {0, whole.code}:
            return f"ended with {self.code}: {told}"
        return None if is_told and self.cluster == whole.cluster else f"went on as if all were known: {told}"


def outcome(
    command: Command,
    folder: Path,
    asked: Api | None = None,
    odd: Odd | None = None,
    turn: int = 0,
    shape: Callable[[], Shape] = at_rest,
) -> Outcome:
    """Give a command to a twin of its own, whose answer number `turn` of an API is odd."""
    with _serving(shape(), folder, odd) as (given, noted):
        terminal = Terminal(given)
        for step in command.before:
            if not isinstance(step, str):
                given.server.do(step)
                continue
            noted.interrupts = step.startswith(INTERRUPTED_BY_CTRL_C)
            wanted = INTERRUPTED if noted.interrupts else 0
            code, text = terminal.give(step.removeprefix(INTERRUPTED_BY_CTRL_C))
            assert code == wanted, text
        noted.asked, noted.turn = asked, turn
        noted.counts.clear()
        was = given.server.do(state)
        code, text = terminal.give(command.words)
        lines = (line for line in text.splitlines() if not PROGRESS.match(line))
        words = tuple(sorted({plain(line) for line in lines}))
        return Outcome(code, words, given.server.do(state), was, noted.counts)


@contextmanager
def _serving(shape: Shape, folder: Path, odd: Odd | None) -> Iterator[tuple[Asked, Noted]]:
    folder.mkdir(parents=True, exist_ok=True)
    noted = Noted(shape.now, shape.past, odd=odd)
    shape.now.response_faults.add(noted, AffectedResponses(), hits_once=False)
    with chdir(folder):
        write_files()
        slow = PartitionAssignment(TopicPartition("t", 1), (1, 3))
        write_plan(Path("slow.json"), Plan((slow,)), None)
        write_plan(Path("dirs.json"), Plan((replace(slow, replicas=(1, 2), log_dirs=("/data/1/d0", "any")),)), None)
        Path("topics.json").write_text('{"version": 1, "topics": [{"topic": "t"}]}')
        with serving(shape.now, speed=SPEED) as server:
            yield Asked(server), noted


def state(twin: Twin) -> str:
    """The replicas, where they move those that are wanted, and the settings."""
    lists = [
        (str(one.topic_partition), [each for each in one.replicas if each not in one.removing])
        for topic in twin.metadata.topics.values()
        for one in topic.partitions.values()
    ]
    configs = [(str(one), sorted(entries.items())) for one, entries in twin.metadata.configs.items() if entries]
    return f"{sorted(lists)} {sorted(configs)}"
