"""The options of `kafka-reassign-partitions`, the options of each action, and batches (KIP-1335).

Names, help texts and rules are those of Kafka 4.4.0; `--all` and `--output` are ours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum, auto

from kreassign.kafka_tools.command_line import Options, ToolError, UncaughtError, UsageError, read_options
from kreassign.model import Partition, TopicPartition
from kreassign.model.cluster import without
from kreassign.model.plan import partition_order
from kreassign.model.text import LARGEST_ID

# Start a plan in batches (KIP-1335): complete partitions in, the next ones to submit out. Pure.
#
# Either a batch starts at once and all of it must be complete before the next, or incrementally: each complete
# partition lets the next one start. Both go through the plan by topic and partition, whatever the order in its file.


LONGEST_INTERVAL_MS = LARGEST_ID
"""24 days; Java would wait for 292 million years, and the system's clock holds no such time."""


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Division of a plan into steps. A batch size of 0 submits it in one request, as Kafka's tool always did.

    `wait_timeout_ms` limits the wait for each batch; None waits for ever, as KIP-1335 does. With `requires_isr` a
    partition is complete only once all of its target is in sync.
    """

    batch_size: int = 0
    is_incremental: bool = False
    poll_interval_ms: int = 1_000
    wait_timeout_ms: int | None = None
    warns_about_others: bool = False
    requires_isr: bool = False


ALL_AT_ONCE = BatchOptions()


class BatchQueue:
    """Partitions of a plan that wait or are in flight; decides which to submit next."""

    def __init__(self, partitions: Iterable[TopicPartition], options: BatchOptions) -> None:
        self._waiting = deque(sorted(partitions, key=partition_order))
        self._options = options
        self._in_flight: set[TopicPartition] = set()

    @property
    def waiting(self) -> tuple[TopicPartition, ...]:
        """Partitions not submitted yet, in order."""
        return tuple(self._waiting)

    @property
    def in_flight(self) -> tuple[TopicPartition, ...]:
        """Submitted partitions not known to be complete, in order."""
        return tuple(sorted(self._in_flight, key=partition_order))

    def next_batch(self, complete: AbstractSet[TopicPartition] = frozenset()) -> tuple[TopicPartition, ...]:
        """The partitions to submit after these are complete; empty if the next must wait, or none is left."""
        self._in_flight -= complete
        batch = tuple(self._waiting.popleft() for _ in range(min(self._free_slots(), len(self._waiting))))
        self._in_flight.update(batch)
        return batch

    def _free_slots(self) -> int:
        if self._options.batch_size == 0:
            return len(self._waiting)
        if self._options.is_incremental:
            return self._options.batch_size - len(self._in_flight)
        return 0 if self._in_flight else self._options.batch_size


class MoveState(Enum):
    """State of a submitted partition."""

    MOVING = auto()
    COMPLETE = auto()
    LAGGING = auto()
    """At its target with replicas out of sync: Kafka 4.3 ends a move without waiting for former replicas."""
    ELSEWHERE = auto()


def move_states(
    targets: Mapping[TopicPartition, tuple[int, ...]],
    ongoing: Collection[TopicPartition],
    current: Mapping[TopicPartition, Partition],
) -> dict[TopicPartition, MoveState]:
    """The state of each target; a partition is complete if it is not being reassigned and has exactly its target."""
    return {
        partition: MoveState.MOVING if partition in ongoing else _arrived(current.get(partition), target)
        for partition, target in targets.items()
    }


def _arrived(found: Partition | None, target: tuple[int, ...]) -> MoveState:
    if found is None or found.replicas != target:
        return MoveState.ELSEWHERE
    return MoveState.LAGGING if out_of_sync(found) else MoveState.COMPLETE


def out_of_sync(partition: Partition) -> tuple[int, ...]:
    """The replicas outside the ISR, in their order."""
    return without(partition.replicas, partition.isr)


HELP_TEXT = "This tool helps to move topic partitions between replicas."
LEAST_INTERVAL_MS = 2_000
"""Over shorter times the rate is mostly measurement error."""
FORMATS = ("text", "json")
NO_TIMEOUT = -1
OPTIONS = read_options("kafka-reassign-partitions")


class Action(Enum):
    """An action of the tool; exactly one per command line."""

    GENERATE = "generate"
    EXECUTE = "execute"
    VERIFY = "verify"
    CANCEL = "cancel"
    LIST = "list"
    PROGRESS = "progress"


_REQUIRED = {
    Action.GENERATE: ("topics-to-move-json-file", "broker-list"),
    Action.EXECUTE: ("reassignment-json-file",),
    Action.VERIFY: ("reassignment-json-file",),
    Action.CANCEL: ("reassignment-json-file",),
    Action.LIST: (),
    Action.PROGRESS: (),
}

_BATCH_OPTIONS = (
    "reassignment-batch-size",
    "incremental",
    "reassignment-poll-interval-ms",
    "reassignment-require-isr",
    "reassignment-wait-timeout-ms",
    "reassignment-warn-others",
)

_NEEDS_BROKERS = (
    "additional",
    "command-config",
    "replica-alter-log-dirs-throttle",
    "timeout",
    "disallow-replication-factor-change",
    "expect-current",
    "cancel-first",
    *_BATCH_OPTIONS,
)

_PERMITTED = {action: [option.name for option in OPTIONS if action.value in option.actions] for action in Action}


def choose_action(options: Options) -> Action:
    """The action of a command line; raises `UsageError` for the first violated rule, in Kafka's order."""
    if not options.word_count or options.has("help"):
        raise UsageError(HELP_TEXT)
    action = _only_action(options)
    _check_bootstrap(options)
    required = _REQUIRED[action]
    if action is Action.CANCEL and options.has("all"):
        required = ()
        if options.has("reassignment-json-file"):
            raise UsageError('Option "[all]" can\'t be used with option "[reassignment-json-file]"')
    for name in required:
        if not options.has(name):
            raise UsageError(f'Missing required argument "[{name}]"')
    for name in options.names:
        if name not in (action.value, *required, *_PERMITTED[action]):
            raise UsageError(f'Option "[{name}]" can\'t be used with action "[{action.value}]"')
    for name in ("output", "dry-run"):
        if options.has(name) and not options.has("all"):
            raise UsageError(f'Option "[{name}]" can only be used with option "[all]"')
    if options.has("cancel-first") and not options.has("additional"):
        raise UsageError('Option "[cancel-first]" can only be used with option "[additional]"')
    _check_zookeeper(options)
    _check_batches(options)
    return action


def _only_action(options: Options) -> Action:
    chosen = [action for action in Action if options.has(action.value)]
    if len(chosen) != 1:
        # Kafka's sentence, word for word: it does not know our action.
        every = ", ".join(f"--{action.value}" for action in Action if action is not Action.PROGRESS)
        raise UsageError(f"Command must include exactly one action: {every}")
    return chosen[0]


def _check_bootstrap(options: Options) -> None:
    given = [name for name in ("bootstrap-server", "bootstrap-controller") if options.has(name)]
    if len(given) == 2:
        raise UsageError("Please don't specify both --bootstrap-server and --bootstrap-controller")
    if not given and not options.has("zookeeper"):
        raise UsageError("Please specify either --bootstrap-server or --bootstrap-controller")


def _check_zookeeper(options: Options) -> None:
    """Refuse options that are impossible through ZooKeeper, in the words and form of Kafka 2.8."""
    if not goes_through_zookeeper(options):
        return
    for name in _NEEDS_BROKERS:
        if options.has(name):
            raise UncaughtError(
                "java.lang.RuntimeException", f'You must specify --bootstrap-server when using "[{name}]"'
            )


def _check_batches(options: Options) -> None:
    """Refuse what KIP-1335 refuses when arguments are validated."""
    batch_size = _checked_number(options, "reassignment-batch-size", 0, bits=32)
    if batch_size < 0:
        raise UsageError(f'Option "[reassignment-batch-size]" must not be negative, but is {batch_size}')
    if options.has("incremental") and batch_size == 0:
        raise UsageError("Incremental partition reassignment requires reassignment-batch-size > 0")
    for name in ("reassignment-poll-interval-ms", "reassignment-wait-timeout-ms"):
        if options.has(name) and (value := _checked_number(options, name, 0)) <= 0:
            raise UsageError(f'Option "[{name}]" must be greater than 0, but is {value}')
    if (interval := _checked_number(options, "reassignment-poll-interval-ms", 0)) > LONGEST_INTERVAL_MS:
        raise UsageError(
            f'Option "[reassignment-poll-interval-ms]" must be at most {LONGEST_INTERVAL_MS}, but is {interval}'
        )
    # KIP-1335 refuses no interval: with a batch size of 0 nothing waits, so it has no effect. These rules are ours.
    for name in ("reassignment-require-isr", "reassignment-wait-timeout-ms"):
        if options.has(name) and batch_size == 0:
            raise UsageError(f'Option "[{name}]" requires reassignment-batch-size > 0')


def _checked_number(options: Options, name: str, default: int, *, bits: int = 64) -> int:
    """The value of an option that is parsed while arguments are validated, so that every failure is a usage error."""
    try:
        return options.number(name, default, bits=bits)
    except ToolError as error:
        raise UsageError(error.message) from error


def goes_through_zookeeper(options: Options) -> bool:
    """True if the cluster is reached through ZooKeeper: only if no broker is given."""
    return options.has("zookeeper") and not options.has("bootstrap-server")
