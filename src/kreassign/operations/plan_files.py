"""Plans on disk: a plan and the facts beside it, assignments of other tools, and approvals.

What counts as a plan is decided in `kreassign.model.plan_document`. Asks no cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kreassign.errors import InputError, KreassignError, MalformedPlan
from kreassign.model import TopicPartition
from kreassign.model.approvals import parse_request
from kreassign.model.documents import read_json
from kreassign.model.plan import PartitionAssignment, Plan, format_plan, partition_order
from kreassign.model.plan_document import parse_plan_document
from kreassign.model.plan_facts import UNKNOWN_ORIGIN, PlanFacts, PlanOrigin, plan_id, refuse_other_cluster
from kreassign.model.plan_facts_json import format_facts, parse_facts
from kreassign.model.proposals import Proposals
from kreassign.model.text import printable, shortened, some_of
from kreassign.model.typed_json import Reader, hints_of
from kreassign.operations.text_files import UnreadableFileError, read_text
from kreassign.operations.whole_file import replace_file

FACTS_SUFFIX = ".facts.json"


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan from a file, and the recorded state from which it was made.

    `expected` has the replica lists that the partitions must still have; empty where nothing is known. `facts` is the
    facts file, if there is one. `origin` has the cluster and the topics for which it was made: those of the facts,
    unless given. `unsaid` are sentences on what its maker wanted and the file cannot express.
    """

    plan: Plan
    expected: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    facts: PlanFacts | None = None
    origin: PlanOrigin = UNKNOWN_ORIGIN
    unsaid: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.facts is not None:
            origin = PlanOrigin(self.facts.cluster_id or self.origin.cluster_id, self.facts.topic_ids)
            object.__setattr__(self, "origin", origin)

    @property
    def current(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The replica lists that partitions are to have: those it was made from, or where it has none its own."""
        return self.expected or self.plan.replicas


def read_plan_file(path: Path, *, takes_two: bool = True) -> PlanFile:
    """Read a plan file with its facts file.

    Of the two assignments in an output of `--generate` the proposed one is the plan. Where an assignment is meant as
    such, not as a change, `takes_two` is False: such a file is refused. Raises MalformedPlan, which names the file;
    also when the facts file belongs to another plan, because then the plan was edited after it was made, and its
    expectations and predictions do not hold.
    """
    with _naming(path):
        found = parse_plan_document(read_text(path))
        if found.has_current and not takes_two:
            raise MalformedPlan(TWO_ASSIGNMENTS)
    beside = facts_path(path)
    if not beside.exists():
        unsaid = () if found.proposals is None else tuple(_unsaid(found.proposals))
        return PlanFile(found.plan, dict(found.expected), None, PlanOrigin(found.cluster_id), unsaid)
    facts = read_facts(beside)
    if facts.plan_id != plan_id(found.plan):
        raise MalformedPlan(
            f"describes plan {facts.plan_id}, but {path.name} is {plan_id(found.plan)}: the plan was changed after "
            "it was made; make a new plan, or remove this file to run the changed plan without its checks",
            path=str(beside),
        )
    with _naming(beside):
        refuse_other_cluster("the plan beside it is for", found.cluster_id, facts.cluster_id or "")
    return PlanFile(found.plan, facts.expected, facts, PlanOrigin(found.cluster_id))


def read_facts(path: Path) -> PlanFacts:
    """Read a facts file. Raises MalformedPlan, which names the file."""
    with _naming(path):
        return parse_facts(read_text(path))


def facts_path(path: Path) -> Path:
    """Path of the facts file beside a plan: `plan.facts.json` for `plan.json`."""
    return path.with_name(path.name.removesuffix(".json") + FACTS_SUFFIX)


def write_plan(path: Path, plan: Plan, facts: PlanFacts | str | None) -> None:
    """Write a plan, and the facts beside it; a file that is there is replaced as a whole or not at all.

    Where there are no facts, `facts` is the id of the cluster that the plan is for, None if unknown; a facts file of an
    earlier plan is removed: it would speak of another one. Raises InputError where approvals are of another plan.
    """
    keep_approved(path, plan)
    beside = facts_path(path)
    beside.unlink(missing_ok=True)
    cluster_id = facts.cluster_id if isinstance(facts, PlanFacts) else facts
    replace_file(path, f"{format_plan(plan, cluster_id)}\n".encode())
    if isinstance(facts, PlanFacts):
        replace_file(beside, f"{format_facts(facts)}\n".encode())


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn errors about content within the block into a MalformedPlan that names the file, once."""
    try:
        yield
    except UnreadableFileError:
        raise
    except InputError as error:
        raise MalformedPlan(str(error).removeprefix(f"{path}: "), path=str(path)) from error


# Assignments of other tools in files: Cruise Control's proposals, and Kafka's JSON, also one file for each topic.
#
# Several files are joined. A partition may be in two of them with equal replicas, as in topicmappr's
# combined map and the one of its topic.

NAMED = 5
"""Number of partitions that a sentence names."""
TWO_ASSIGNMENTS = (
    "it has two assignments, the current and the proposed one of `--generate`; save the JSON of the one that is meant"
)


@dataclass(frozen=True, slots=True)
class Assignments:
    """Joined contents of files, sorted, and their names."""

    file: PlanFile
    source: str


def read_assignments(paths: Sequence[Path], *, takes_two: bool = True) -> Assignments:
    """Read files, and all `*.json` in directories, as one plan; `takes_two` as in `read_plan_file`.

    Raises InputError, which names the file.
    """
    entries: dict[TopicPartition, tuple[PartitionAssignment, Path]] = {}
    expected: dict[TopicPartition, tuple[int, ...]] = {}
    origin = UNKNOWN_ORIGIN
    unsaid: list[str] = []
    for path in _files(paths):
        found = read_plan_file(path, takes_two=takes_two)
        expected |= found.expected
        unsaid += found.unsaid
        refuse_other_cluster(f"{path} is for", found.origin.cluster_id, origin.cluster_id or "")
        known = found.origin.cluster_id or origin.cluster_id
        origin = PlanOrigin(known, {**origin.topic_ids, **found.origin.topic_ids})
        for entry in found.plan.assignments:
            for wrong in entry.wrong_in_itself:
                raise MalformedPlan(f"{entry.topic_partition}: {wrong}", path=str(path))
            before, place = entries.setdefault(entry.topic_partition, (entry, path))
            if before != entry:
                raise MalformedPlan(
                    f"says {entry}, but {place.name} says {before}; leave out one of the two files", path=str(path)
                )
    ordered = sorted(entries, key=partition_order)
    source = ", ".join(path.name or str(path) for path in paths)
    plan = Plan(tuple(entries[name][0] for name in ordered))
    return Assignments(PlanFile(plan, expected, None, origin, tuple(unsaid)), source)


def named(partitions: Sequence[TopicPartition]) -> str:
    """Some partitions by name, and how many more there are."""
    return some_of((shortened(str(one)) for one in sorted(partitions, key=partition_order)), NAMED)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(one for one in path.glob("*.json") if one.is_file() and not one.name.endswith(BESIDE))
        if not inside:
            raise InputError(f"no file in {path} has a name that ends in .json; name the files, or another directory")
        yield from inside


def _unsaid(found: Proposals) -> Iterator[str]:
    if found.violated:
        yield f"Cruise Control says that its plan violates {', '.join(map(shortened, found.violated))}"
    if found.log_dir_moves:
        yield (
            f"{named(found.log_dir_moves)}: Cruise Control moves copies between log directories of a broker, but "
            "does not name them; `kreassign plan disks` plans such moves"
        )
    if found.elections:
        yield (
            f"{named(found.elections)}: only the leader is to change, which `kafka-leader-election --election-type "
            "preferred` does"
        )


# Approval of plans: a file beside the plan records who approved it, and the content approved.
#
# For teams in which one person proposes and another agrees: `kreassign run --require-approval` refuses a plan without
# approval, or changed since. Anyone who may write into the directory can approve; the file is not signed. Signed
# approvals are in `approvals.py`.

APPROVAL_SUFFIX = ".approval.json"
REQUEST_SUFFIX = ".request.json"
LONGEST_NAME = 100
LONGEST_NOTE = 1_000


@dataclass(frozen=True, slots=True)
class Approval:
    """Operator who approved a plan, the plan's id, the time (ms since the epoch), and a note."""

    plan_id: str
    approved_by: str
    approved_ms: int
    note: str = ""

    def __post_init__(self) -> None:
        if not self.approved_by.strip():
            raise InputError("an approval needs the name of who approves")
        if len(self.approved_by) > LONGEST_NAME or len(self.note) > LONGEST_NOTE:
            raise InputError(f"a name has up to {LONGEST_NAME} characters, and a note up to {LONGEST_NOTE}")


def approval_path(plan: Path) -> Path:
    """Path of the approval of a plan: `plan.approval.json` for `plan.json`."""
    return plan.with_name(plan.name.removesuffix(".json") + APPROVAL_SUFFIX)


def approve(plan: Path, expected_id: str, approved_by: str, note: str, now_ms: int) -> Approval:
    """Approve a plan as it was viewed. Raises InputError if its file has another content by now."""
    found = plan_id(read_plan_file(plan).plan)
    if found != expected_id:
        raise InputError(f"{plan.name} is plan {found} by now, and not {expected_id}, which was looked at; look again")
    approval = Approval(found, approved_by.strip(), now_ms, note.strip())
    replace_file(approval_path(plan), f"{json.dumps(asdict(approval))}\n".encode())
    return approval


def revoke(plan: Path) -> None:
    """Revoke the approval of a plan. Raises InputError where there is none."""
    try:
        approval_path(plan).unlink()
    except FileNotFoundError:
        raise InputError(f"{plan.name} is not approved") from None


def approval_of(plan: Path) -> Approval | None:
    """Read the approval beside a plan, of whatever content; None where there is none.

    Raises UnreadableFileError, and MalformedPlan also for a field that this version does not know: it may limit the
    approval.
    """
    path = approval_path(plan)
    if not path.exists():
        return None
    known = hints_of(Approval)
    try:
        document = Reader().plain(read_json(read_text(path)), dict, "the document")
        found: Approval = Reader().record({name: one for name, one in document.items() if name in known}, Approval)
    except UnreadableFileError:
        raise
    except (InputError, ValueError, TypeError) as error:
        raise MalformedPlan(f"is no approval of a plan: {error}", path=str(path)) from error
    if strange := [repr(shortened(name)) for name in document if name not in known]:
        raise MalformedPlan(
            f"this version does not know its field {some_of(strange, NAMED)}, which may limit the approval: approve "
            f"the plan again (`kreassign approve {plan}`), with anything else to be known as its note (--note)",
            path=str(path),
        )
    return found


def require_approval(path: Path, file: PlanFile) -> Approval:
    """Return the approval of this content of a plan. Raises InputError where there is none, or for another content."""
    found, wanted = approval_of(path), plan_id(file.plan)
    if found is None:
        raise InputError(
            f"nobody has approved {path.name} (plan {wanted}); approve it with `kreassign approve {path}`, or on the "
            "page of `kreassign web`"
        )
    if found.plan_id != wanted:
        raise InputError(
            f"{path.name} was changed: {printable(found.approved_by)} approved plan {found.plan_id}, and by now it is "
            f"{wanted}; approve it again"
        )
    return found


def request_path(plan: Path) -> Path:
    """Path of the request for signed approvals beside a plan: `plan.request.json` for `plan.json`."""
    return plan.with_name(plan.name.removesuffix(".json") + REQUEST_SUFFIX)


def shared_file(plan: Path, other: Path) -> Path | None:
    """A file that is of two plans, each with the files beside it; None if each has its own."""
    return next((one for one in _files_of(plan) if one in _files_of(other)), None)


def _files_of(plan: Path) -> tuple[Path, ...]:
    """A plan and the files beside it, whatever links lead there."""
    return tuple(one.resolve() for one in (plan, facts_path(plan), approval_path(plan), request_path(plan)))


def keep_approved(path: Path, plan: Plan) -> None:
    """Raise InputError where writing a plan would replace another that was approved, or proposed for approval.

    Raises MalformedPlan for approvals that cannot be read: what they are of is not known.
    """
    approval, request = approval_of(path), request_path(path)
    if approval is not None and approval.plan_id != plan_id(plan):
        has = f"{printable(approval.approved_by)} approved plan {approval.plan_id} there"
    elif request.exists() and not _is_same(parse_request(read_text(request), str(request)).plan, plan):
        has = "another plan is proposed there for signed approvals"
    else:
        return
    raise InputError(
        f"{path} is not replaced: {has}, and this is plan {plan_id(plan)}; write it to another file, or take the "
        f"approvals back with `kreassign approve {path} --revoke`"
    )


def _is_same(one: Plan, other: Plan) -> bool:
    """True for equal assignments in any order: a request has them sorted."""
    return set(one.assignments) == set(other.assignments)


# Plans of a directory: a summary of each, and lookup by name.

BESIDE = (FACTS_SUFFIX, APPROVAL_SUFFIX, REQUEST_SUFFIX)


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A plan in one line.

    `task` is its task, None without facts. `approval` is one of just this content. `problem` says why a
    file could not be read as a plan; then the figures are 0.
    """

    name: str
    plan_id: str
    cluster_id: str | None
    task: str | None
    partition_count: int
    moved_bytes: int | None
    approval: Approval | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class PlanDirectory:
    """A directory with plans."""

    folder: Path

    def names(self) -> tuple[str, ...]:
        """Names of the plan files, sorted."""
        found = (path for path in self.folder.glob("*.json") if path.is_file())
        return tuple(sorted(path.name for path in found if not path.name.endswith(BESIDE)))

    def path(self, name: str) -> Path:
        """Path of a plan; only listed files are ever opened. Raises InputError."""
        if name not in self.names():
            raise InputError(f"there is no plan {name}")
        return self.folder / name

    def summaries(self) -> tuple[PlanSummary, ...]:
        """Summaries of all plans."""
        return tuple(map(self.summary, self.names()))

    def summary(self, name: str) -> PlanSummary:
        """Summary of one plan. Raises InputError where there is none of this name."""
        try:
            return plan_summary(name, self.read(name), self.approval(name))
        except (KreassignError, OSError) as error:
            if name not in self.names():
                raise
            return PlanSummary(name, "", None, None, 0, None, None, str(error))

    def read(self, name: str) -> PlanFile:
        """Read one plan, with its facts. Raises InputError."""
        return read_plan_file(self.path(name))

    def approval(self, name: str) -> Approval | None:
        """Approval of a plan, of whatever content. Raises InputError."""
        return approval_of(self.path(name))


def plan_summary(name: str, file: PlanFile, approval: Approval | None) -> PlanSummary:
    """Summarise a plan in one line."""
    facts, found = file.facts, plan_id(file.plan)
    return PlanSummary(
        name=name,
        plan_id=found,
        cluster_id=None if facts is None else facts.cluster_id,
        task=None if facts is None else facts.task,
        partition_count=len(file.plan.replicas),
        moved_bytes=None if facts is None else facts.totals.moved_bytes,
        approval=approval if approval is not None and approval.plan_id == found else None,
    )
