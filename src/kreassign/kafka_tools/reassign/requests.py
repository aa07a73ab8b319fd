"""Requests, parsed from the command line and its files before anything is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from kreassign.kafka_tools.command_line import Options, ToolError, java_int, java_split, naming_kind
from kreassign.kafka_tools.reassign.messages import joined
from kreassign.kafka_tools.reassign.options import (
    ALL_AT_ONCE,
    FORMATS,
    LEAST_INTERVAL_MS,
    LONGEST_INTERVAL_MS,
    NO_TIMEOUT,
    Action,
    BatchOptions,
)
from kreassign.model import TopicPartition
from kreassign.model.plan import Plan, parse_plan, parse_topics, partition_order, utf16_order
from kreassign.model.reassignment import missing_expectations

Item = TypeVar("Item", int, str)


@dataclass(frozen=True, slots=True)
class ListRequest:
    """List the ongoing reassignments."""


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """Propose an assignment of `topics` to `brokers`."""

    topics: tuple[str, ...]
    brokers: tuple[int, ...]
    is_rack_aware: bool


@dataclass(frozen=True, slots=True)
class ExecuteRequest:
    """Start a plan. Rates are in bytes per second; a negative rate leaves the throttle as it is.

    `expected` are the required present replica lists, of all partitions of the plan or of none. With `cancels_first`
    moves of the plan's partitions are cancelled before it is started. The unsubmitted rest of a plan in batches is kept
    `beside` the file of the plan.
    """

    plan: Plan
    is_additional: bool
    throttle: int
    log_dir_throttle: int
    timeout_ms: int
    allows_replication_factor_change: bool
    expected: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    batches: BatchOptions = ALL_AT_ONCE
    cancels_first: bool = False
    beside: Path | None = None


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """Compare the cluster with a plan, and clear throttles once nothing moves."""

    plan: Plan
    preserves_throttles: bool


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Cancel the moves of the partitions and directories of a plan."""

    plan: Plan
    preserves_throttles: bool
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class CancelAllRequest:
    """Cancel every move, unless it is a dry run; write the plan that would restart them to `output`."""

    preserves_throttles: bool
    timeout_ms: int
    output: Path | None
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ProgressRequest:
    """Show the progress of moves, of a plan or (None) of the whole cluster; once, or until nothing moves.

    Shown by replica, or summed by broker.
    """

    plan: Plan | None
    follows: bool
    interval_ms: int
    as_json: bool
    by_broker: bool = False


Request = (
    ListRequest | GenerateRequest | ExecuteRequest | VerifyRequest | CancelRequest | CancelAllRequest | ProgressRequest
)


def read_request(action: Action, options: Options) -> Request:
    """Parse the files and values of an action; raises `ToolError` or `InputError` for the first error."""
    with (
        naming_kind(options.text("reassignment-json-file")),
        naming_kind(options.text("expect-current")),
        naming_kind(options.text("topics-to-move-json-file"), is_plan=False),
    ):
        return _read_request(action, options)


def _read_request(action: Action, options: Options) -> Request:
    match action:
        case Action.LIST:
            return ListRequest()
        case Action.GENERATE:
            return _generate(options)
        case Action.EXECUTE:
            return _execute(options)
        case Action.VERIFY:
            return VerifyRequest(parse_plan(_content(options, "reassignment-json-file")), _preserves(options))
        case Action.CANCEL:
            return _cancel(options)
        case Action.PROGRESS:
            return _progress(options)


def _generate(options: Options) -> GenerateRequest:
    text = _content(options, "topics-to-move-json-file")
    brokers = parse_brokers(options.text("broker-list") or "")
    topics = parse_topics(text)
    if repeated := _repeated(topics):
        shown = ", ".join(sorted(repeated, key=utf16_order))
        raise ToolError(f"List of topics to reassign contains duplicate entries: [{shown}]")
    return GenerateRequest(topics, brokers, is_rack_aware=not options.has("disable-rack-aware"))


def _execute(options: Options) -> ExecuteRequest:
    text = _content(options, "reassignment-json-file")
    throttle = options.number("throttle")
    log_dir_throttle = options.number("replica-alter-log-dirs-throttle")
    timeout_ms = _timeout_ms(options)
    plan = parse_plan(text)
    check_executable(plan)
    batches = _batches(options)
    return ExecuteRequest(
        plan=plan,
        is_additional=options.has("additional"),
        throttle=throttle,
        log_dir_throttle=log_dir_throttle,
        timeout_ms=timeout_ms,
        allows_replication_factor_change=not options.has("disallow-replication-factor-change"),
        expected=_expected(options, plan),
        batches=batches,
        cancels_first=options.has("cancel-first"),
        beside=_place(options.text("reassignment-json-file") or "") if batches.batch_size else None,
    )


def _place(text: str) -> Path:
    """The path of a plan; for /dev/stdin that of the file behind it: what is written to /dev is lost with the host.

    Nothing can be written beside a pipe: its plan counts as one in the working directory.
    """
    path = Path(text)
    if Path("/dev") not in path.parents:
        return path
    behind = path.resolve()
    return behind if behind.is_file() else Path("plan.json")


def _batches(options: Options) -> BatchOptions:
    """Batch options (KIP-1335); `choose_action` has checked their ranges."""
    timeout_ms = options.number("reassignment-wait-timeout-ms", NO_TIMEOUT)
    return BatchOptions(
        options.number("reassignment-batch-size"),
        options.has("incremental"),
        options.number("reassignment-poll-interval-ms"),
        None if timeout_ms == NO_TIMEOUT else timeout_ms,
        options.has("reassignment-warn-others"),
        options.has("reassignment-require-isr"),
    )


def _expected(options: Options, plan: Plan) -> dict[TopicPartition, tuple[int, ...]]:
    if not options.has("expect-current"):
        return {}
    expected = parse_plan(_content(options, "expect-current")).replicas
    if missing := missing_expectations(expected, plan.replicas):
        raise ToolError(f"The file of --expect-current does not name {joined(missing)}, which the plan moves")
    return {partition: expected[partition] for partition in plan.replicas}


def _cancel(options: Options) -> CancelRequest | CancelAllRequest:
    if options.has("all"):
        output = options.text("output")
        if output == "":
            raise ToolError("--output is empty, so nothing was cancelled; name the file to write")
        target = None if output is None else Path(output)
        return CancelAllRequest(_preserves(options), _timeout_ms(options), target, options.has("dry-run"))
    text = _content(options, "reassignment-json-file")
    timeout_ms = _timeout_ms(options)
    return CancelRequest(parse_plan(text), _preserves(options), timeout_ms)


def _progress(options: Options) -> ProgressRequest:
    form = options.text("format") or FORMATS[0]
    if form not in FORMATS:
        raise ToolError(f"--format is one of {', '.join(FORMATS)}, not {form}")
    interval_ms = options.number("interval-ms")
    if interval_ms < LEAST_INTERVAL_MS:
        raise ToolError(f"--interval-ms must be at least {LEAST_INTERVAL_MS}, not {interval_ms}")
    if interval_ms > LONGEST_INTERVAL_MS:
        raise ToolError(f"--interval-ms must be at most {LONGEST_INTERVAL_MS}, not {interval_ms}")
    has_plan = options.has("reassignment-json-file")
    plan = parse_plan(_content(options, "reassignment-json-file")) if has_plan else None
    return ProgressRequest(plan, options.has("follow"), interval_ms, form == "json", options.has("by-broker"))


def parse_brokers(text: str) -> tuple[int, ...]:
    """Parse `0,1,2` in order; raises `ToolError` for a word that is no number, or for a duplicate."""
    brokers = tuple(map(java_int, java_split(text, ",")))
    if repeated := _repeated(brokers):
        raise ToolError(f"Broker list contains duplicate entries: {sorted(repeated)}")
    return brokers


def _repeated(items: tuple[Item, ...]) -> list[Item]:
    return [item for item, times in Counter(items).items() if times > 1]


def check_executable(plan: Plan) -> None:
    """Raise `ToolError` for the first rule that the plan violates: not empty, and no duplicates."""
    if not plan.assignments:
        raise ToolError("Partition reassignment list cannot be empty")
    if not all(entry.replicas for entry in plan.assignments):
        raise ToolError("Partition replica list cannot be empty")
    if repeated := sorted(plan.duplicate_partitions, key=partition_order):
        raise ToolError(f"Partition reassignment contains duplicate topic partitions: {joined(repeated)}")
    doubled = [
        f"{entry.topic_partition} contains multiple entries for {joined(sorted(entry.duplicate_replicas))}"
        for entry in plan.assignments
        if entry.duplicate_replicas
    ]
    if doubled:
        raise ToolError(f"Partition replica lists may not contain duplicate entries: {'. '.join(doubled)}")


def _preserves(options: Options) -> bool:
    return options.has("preserve-throttles")


def _timeout_ms(options: Options) -> int:
    return options.number("timeout")


def _content(options: Options, name: str) -> str:
    path = options.text(name) or ""
    try:
        return Path(path).read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise ToolError(f"Unable to read file {path}", reason=error.strerror) from error
