"""The options of `kafka-reassign-partitions`, the options of each action, and batches (KIP-1335).

Names, help texts and rules are those of Kafka 4.4.0; `--all` and `--output` are ours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum, auto

from kreassign.kafka_tools.command_line import Option, Options, ToolError, UncaughtError, UsageError
from kreassign.model import Partition, TopicPartition
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
    return tuple(broker for broker in partition.replicas if broker not in partition.isr)


HELP_TEXT = "This tool helps to move topic partitions between replicas."
NO_THROTTLE = -1
DEFAULT_TIMEOUT_MS = 10_000
DEFAULT_INTERVAL_MS = 2_000
LEAST_INTERVAL_MS = 2_000
"""Over shorter times the rate is mostly measurement error."""
FORMATS = ("text", "json")
NO_TIMEOUT = -1
_THROTTLE_USE = (
    "This option can be included with --execute when a reassignment is started, and it can be altered by resubmitting "
    "the current reassignment along with the --additional flag. The throttle rate should be at least 1 KB/s."
)
_PLAN_FORMAT = (
    '{"partitions":\n\t[{"topic": "foo",\n\t  "partition": 1,\n\t  "replicas": [1,2,3],\n'
    '\t  "log_dirs": ["dir1","dir2","dir3"] }],\n"version":1\n}\n'
)
_NOT_KAFKAS = "Kafka's own tool does not have this option."
_KIP_1335 = "Proposed for Kafka's own tool by KIP-1335."
_NOT_KAFKAS_ANY_MORE = "Kafka's own tool has not had this option since 3.0."
OPTIONS = (
    Option(
        "additional",
        "Execute this reassignment in addition to any other ongoing ones. This option can also be used to change the "
        "throttle of an ongoing reassignment.",
    ),
    Option(
        "all",
        "With --cancel: cancel every ongoing reassignment and log directory move in the cluster, without a "
        f"--reassignment-json-file, and print the JSON to start them again. {_NOT_KAFKAS}",
    ),
    Option(
        "bootstrap-controller",
        "The controller to use for reassignment. By default, the tool will get the quorum controller. This option "
        "supports the actions --cancel and --list.",
        "bootstrap controller to connect to",
        is_value_optional=True,
    ),
    Option(
        "bootstrap-server",
        "the server(s) to use for bootstrapping.",
        "Server(s) to use for bootstrapping",
        is_value_optional=True,
    ),
    Option(
        "broker-list",
        'The list of brokers to which the partitions need to be reassigned in the form "0,1,2". This is required if '
        "--topics-to-move-json-file is used to generate reassignment configuration",
        "brokerlist",
    ),
    Option("cancel", "Cancel an active reassignment."),
    Option(
        "by-broker",
        "With --progress: show for each broker how many replicas it sends and gets, bytes left, and rates. "
        f"{_NOT_KAFKAS}",
    ),
    Option(
        "cancel-first",
        "With --execute --additional: cancel ongoing reassignments of partitions in the plan, and wait until they are "
        f"cancelled, before the plan is started. {_NOT_KAFKAS}",
    ),
    Option(
        "command-config",
        "Property file containing configs to be passed to Admin Client.",
        "Admin client property file",
    ),
    Option("disable-rack-aware", "Disable rack aware replica assignment"),
    Option(
        "disallow-replication-factor-change",
        "Denies the ability to change a partition's replication factor as part of this reassignment through adding "
        "validation against it.",
    ),
    Option(
        "dry-run",
        "With --cancel --all: print, and with --output write, the JSON that --cancel with --reassignment-json-file "
        f"takes to cancel just that, and change nothing. {_NOT_KAFKAS}",
    ),
    Option("execute", "Kick off the reassignment as specified by the --reassignment-json-file option."),
    Option(
        "generate",
        "Generate a candidate partition reassignment configuration. Note that this only generates a candidate "
        "assignment, it does not execute it.",
    ),
    Option(
        "expect-current",
        "With --execute: a JSON file in the format of --reassignment-json-file with the replicas that every partition "
        "in the plan must currently have, such as the rollback JSON. If any differs, or is being reassigned, show the "
        f"difference and do nothing. {_NOT_KAFKAS}",
        "expected assignment json file path",
        default="no check",
    ),
    Option("follow", f"With --progress: refresh until nothing is being moved any more. {_NOT_KAFKAS}"),
    Option(
        "format",
        f"With --progress: output format, text or json (one document per measurement). {_NOT_KAFKAS}",
        "|".join(FORMATS),
        default=FORMATS[0],
    ),
    Option("help", "Print usage information."),
    Option(
        "incremental",
        "With --execute and --reassignment-batch-size N: keep at most N of the plan's reassignments in progress, and "
        f"start the next one as soon as one is complete. {_KIP_1335}",
    ),
    Option(
        "interval-ms",
        f"With --progress: the time in ms between two measurements, from which rates are computed. {_NOT_KAFKAS}",
        "interval",
        "Long",
        DEFAULT_INTERVAL_MS,
    ),
    Option("list", "List all active partition reassignments."),
    Option(
        "output",
        "With --cancel --all: also write that JSON to this file, before anything is cancelled. An existing file is not "
        f"overwritten. {_NOT_KAFKAS}",
        "reassignment json file path",
        default="no file",
    ),
    Option("preserve-throttles", "Do not modify broker or topic throttles."),
    Option(
        "progress",
        "Show the progress of each replica that is being moved: bytes done and left, rate, and time left. With a "
        f"--reassignment-json-file only those of the plan. {_NOT_KAFKAS}",
    ),
    Option(
        "reassignment-batch-size",
        "With --execute: the number of partitions to start at a time, by topic and partition. A batch starts when the "
        f"one before it is complete; the last one is not waited for. 0 starts the whole plan at once. {_KIP_1335}",
        "batch size",
        "Integer",
        0,
    ),
    Option(
        "reassignment-json-file",
        f"The JSON file with the partition reassignment configurationThe format to use is - \n{_PLAN_FORMAT}"
        'Note that "log_dirs" is optional. When it is specified, its length must equal the length of the replicas '
        'list. The value in this list can be either "any" or the absolution path of the log directory on the broker. '
        "If absolute log directory path is specified, the replica will be moved to the specified log directory on the "
        "broker.",
        "manual assignment json file path",
    ),
    Option(
        "reassignment-poll-interval-ms",
        f"With --reassignment-batch-size: the time in ms between two checks of what is in progress. {_KIP_1335}",
        "poll interval",
        "Long",
        ALL_AT_ONCE.poll_interval_ms,
    ),
    Option(
        "reassignment-require-isr",
        "With --reassignment-batch-size: a partition is complete only once all of its replicas are in sync. Without "
        f"it, replicas that are not are warned of on standard error. {_NOT_KAFKAS}",
    ),
    Option(
        "reassignment-wait-timeout-ms",
        "With --reassignment-batch-size: the maximum time in ms to wait before the next partitions can start; after "
        f"it, fail and start nothing more. {_NOT_KAFKAS}",
        "timeout",
        "Long",
        "no limit",
    ),
    Option(
        "reassignment-warn-others",
        "With --execute: warn on standard error while partitions outside the plan are being reassigned; they do not "
        f"count towards the batch size. {_NOT_KAFKAS}",
    ),
    Option(
        "replica-alter-log-dirs-throttle",
        "The movement of replicas between log directories on the same broker will be throttled to this value "
        f"(bytes/sec). {_THROTTLE_USE}",
        "replicaAlterLogDirsThrottle",
        "Long",
        NO_THROTTLE,
    ),
    Option(
        "throttle",
        f"The movement of partitions between brokers will be throttled to this value (bytes/sec). {_THROTTLE_USE}",
        "throttle",
        "Long",
        NO_THROTTLE,
    ),
    Option(
        "timeout",
        "The maximum time in ms to wait for log directory replica assignment to begin.",
        "timeout",
        "Long",
        DEFAULT_TIMEOUT_MS,
    ),
    Option(
        "topics-to-move-json-file",
        "Generate a reassignment configuration to move the partitions of the specified topics to the list of brokers "
        "specified by the --broker-list option. The format to use is - \n"
        '{"topics":\n\t[{"topic": "foo"},{"topic": "foo1"}],\n"version":1\n}',
        "topics to reassign json file path",
    ),
    Option(
        "verify",
        "Verify if the reassignment completed as specified by the --reassignment-json-file option. If there is a "
        "throttle engaged for the replicas specified, and the rebalance has completed, the throttle will be removed",
    ),
    Option("version", "Display Kafka version."),
    Option(
        "zookeeper",
        "DEPRECATED: The connection string of the zookeeper of a cluster up to Kafka 3.9, in the form host:port. "
        "Multiple URLs can be given to allow fail-over. It works with --generate, --execute and --verify, and is "
        f"ignored if --bootstrap-server is given. {_NOT_KAFKAS_ANY_MORE}",
        "urls",
    ),
)


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

_PERMITTED = {
    Action.GENERATE: ("bootstrap-server", "command-config", "disable-rack-aware", "zookeeper"),
    Action.EXECUTE: (*_NEEDS_BROKERS, "bootstrap-server", "throttle", "zookeeper"),
    Action.VERIFY: ("bootstrap-server", "command-config", "preserve-throttles", "zookeeper"),
    Action.CANCEL: (
        "bootstrap-server",
        "bootstrap-controller",
        "command-config",
        "preserve-throttles",
        "timeout",
        "all",
        "dry-run",
        "output",
    ),
    Action.LIST: ("bootstrap-server", "bootstrap-controller", "command-config"),
    Action.PROGRESS: (
        "bootstrap-server",
        "command-config",
        "reassignment-json-file",
        "by-broker",
        "follow",
        "format",
        "interval-ms",
    ),
}


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
