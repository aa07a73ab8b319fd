"""Every sentence printed by `kafka-reassign-partitions`, worded as in Kafka 4.4.0, because scripts parse them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kreassign.errors import ClusterError
from kreassign.model import OngoingReassignment, TopicPartition, TopicPartitionReplica
from kreassign.model.plan import partition_order
from kreassign.model.reassignment import Override

ALREADY_ASSIGNING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and create "
    "a new partition assignment in addition to the existing one. The --additional flag can also be used to change the "
    "throttle by resubmitting the current reassignment."
)
VERIFY_PERIODICALLY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
)
ZOOKEEPER_IS_DEPRECATED = "Warning: --zookeeper is deprecated, and will be removed in a future version of Kafka."
ZOOKEEPER_IS_IGNORED = (
    "Warning: ignoring deprecated --zookeeper option because --bootstrap-server was specified.  The --zookeeper option "
    "will be removed in a future version of Kafka."
)
INCOMPLETE_RESULTS = (
    "Warning: because you are using the deprecated --zookeeper option, the results may be incomplete.  Use "
    "--bootstrap-server instead for more accurate results."
)
POISONED = (
    "The znode /admin/reassign_partitions has an entry that no controller can complete, so the znode is never deleted. "
    "Delete it, then /controller, so that a new controller starts without it."
)
NOT_READ = (
    "Warning: the controller has not read the new znode /admin/reassign_partitions. This happens after such a znode "
    "was deleted by hand. A controller reads the znode when it is elected: delete the znode /controller to trigger an "
    "election, or use --bootstrap-server."
)
CANCEL_FIRST = "With --cancel-first the plan would be started once that move is cancelled"
NO_REASSIGNMENTS = "No partition reassignments found."
NOTHING_MOVES = "No replica is being moved."
NOTHING_TO_CANCEL = "None of the specified partition reassignments are active."
NO_MOVES_TO_CANCEL = "None of the specified partition moves are active."


def plural(items: Collection[object]) -> str:
    """The plural suffix for the number of items: empty for exactly one."""
    return "" if len(items) == 1 else "s"


def joined(items: Iterable[object]) -> str:
    """Items joined by commas without blanks."""
    return ",".join(map(str, items))


def reassignments(ongoing: Mapping[TopicPartition, OngoingReassignment]) -> str:
    """The output of `--list`."""
    if not ongoing:
        return NO_REASSIGNMENTS
    lines = [f"{partition}: {ongoing[partition]}" for partition in _in_order(ongoing)]
    return "\n".join(["Current partition reassignments:", *lines])


def candidate(current: str, proposed: str) -> str:
    """The output of `--generate` from two assignments in JSON."""
    return (
        f"Current partition replica assignment\n{current}\n\nProposed partition reassignment configuration\n{proposed}"
    )


def rollback(current: str) -> str:
    """The assignment to save for a rollback, in JSON."""
    return (
        f"Current partition replica assignment\n\n{current}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )


def list_of_both_sides(partition: TopicPartition, move: OngoingReassignment) -> str:
    """Ours: a printed assignment has the full list of a move, which is no list to go back to (KIP-860)."""
    ends_with = len(move.target)
    return (
        f"Warning: {partition} is being reassigned ({move}), and its list printed above has the replicas from before "
        f"and those being added: a plan with that list leaves {len(move.replicas)} replicas, where the move ends with "
        f"{ends_with}. To go back to before the move, put {joined(move.sources)} in its place"
    )


def inflated_proposal(topic: str, listed: tuple[int, ...], move: OngoingReassignment) -> str:
    """Ours: `--generate` counts the replicas of a partition that moves, as Kafka's tool does."""
    return (
        f"Warning: the proposal gives each partition of {topic} {len(listed)} replicas, as its first partition has "
        f"while it is being reassigned; that move ends with {len(move.target)}. Generate again once it has ended"
    )


def moves_unknown(reason: str) -> str:
    """Ours: the moves are unknown, so the printed assignment may have full lists of moves."""
    return (
        f"Warning: it is not known which of these partitions are being reassigned ({reason}): lists printed above may "
        "have the replicas from before a move and those being added. Ask for them with --list"
    )


def started(partitions: Collection[TopicPartition]) -> str:
    """The partitions that `--execute` started."""
    names = joined(_in_order(partitions))
    return f"Successfully started partition reassignment{plural(partitions)} for {names}"


def not_started(failures: Mapping[TopicPartition, ClusterError]) -> str:
    """The partitions that `--execute` could not start, with reasons."""
    return "\n".join(["Error reassigning partition(s):", *_reasons(failures)])


def batch_started(partitions: Collection[TopicPartition], started_count: int, total_count: int) -> str:
    """A batch of `--execute` was started (KIP-1335)."""
    names = joined(_in_order(partitions))
    return f"Started partition reassignment{plural(partitions)} for {names} ({started_count} of {total_count})"


def not_submitted(partitions: Collection[TopicPartition]) -> str:
    """Partitions that are not submitted because an earlier batch failed; empty without any."""
    if not partitions:
        return ""
    return f"\nNot submitted: {joined(_in_order(partitions))}"


def drifted_between_batches(differences: Iterable[str], unsubmitted: Collection[TopicPartition]) -> str:
    """Ours: `--expect-current` found the next batch changed since the plan began."""
    lines = "\n".join(["nothing more was submitted, because the cluster is not what was expected:", *differences])
    return lines + not_submitted(unsubmitted)


def rest(where: str, count: int, of: int) -> str:
    """Ours: a plan in batches ended before all of it was submitted."""
    return f"What was not submitted ({count} of {of} partitions) is in {where}"


def rest_printed(plan: str) -> str:
    """Ours: the rest of a plan as JSON, if it has no file."""
    return f"this plan:\n{plan}"


def rest_not_written(path: object, reason: str | None) -> str:
    """Ours: the file of the rest cannot be written."""
    return f"Warning: cannot write {path}: {reason}; if not all is submitted in the end, the rest is printed"


def lagging(partition: TopicPartition, out_of_sync: Collection[int]) -> str:
    """Ours: a reassignment has ended with replicas out of sync."""
    return (
        f"Warning: the reassignment of {partition} is complete, but its replica{plural(out_of_sync)} on "
        f"{joined(out_of_sync)} {'is' if len(out_of_sync) == 1 else 'are'} not in sync; with "
        "--reassignment-require-isr the next partitions wait for that"
    )


def waiting_for_isr(partition: TopicPartition, out_of_sync: Collection[int]) -> str:
    """Ours: a reassignment has ended with replicas out of sync, and the next batch waits for them."""
    return f"Waiting until replicas of {partition} are in sync: {joined(out_of_sync)}"


def batch_timed_out(
    partitions: Collection[TopicPartition], timeout_ms: int, lagging: Mapping[TopicPartition, tuple[int, ...]]
) -> str:
    """Ours: a batch was not complete in time; parts of it perhaps only because replicas are out of sync."""
    names = joined(_in_order(partitions))
    text = f"Timed out after {timeout_ms} ms waiting for reassignment{plural(partitions)} to complete: {names}"
    waits = [f"{partition}: not in sync: {joined(lagging[partition])}" for partition in _in_order(lagging)]
    return "\n".join([text, *waits])


def others_moving(partitions: Collection[TopicPartition]) -> str:
    """Ours: partitions outside the plan are being reassigned."""
    return (
        f"Warning: {len(partitions)} partition reassignment{plural(partitions)} outside the plan "
        f"{'is' if len(partitions) == 1 else 'are'} in progress, which --reassignment-batch-size does not count: "
        f"{joined(_in_order(partitions))}"
    )


def risky_override(partition: TopicPartition, override: Override) -> str:
    """Ours: a plan overrides a move, and Kafka will not do exactly what the plan says."""
    return (
        f"Warning: {partition} is being reassigned ({override.ongoing}), and the plan overrides that with "
        f"{joined(override.target)}: {override}. {CANCEL_FIRST}"
    )


def never_ends(partition: TopicPartition, move: OngoingReassignment) -> str:
    """Ours: an override keeps a move open for ever."""
    both = sorted(set(move.adding) & set(move.removing))
    return (
        f"Warning: the reassignment of {partition} ({move}) was overridden and can never end (Kafka 4.3): "
        f"{joined(both)} {'is' if len(both) == 1 else 'are'} both added and removed. Execute the plan that is wanted "
        "with --additional --cancel-first, which cancels it first, waits, and then starts the plan"
    )


def not_cancelled_in_time(partitions: Collection[TopicPartition]) -> str:
    """Ours: moves cancelled before the start of a plan are still listed, or shown by brokers."""
    return (
        "Nothing was submitted: still being reassigned after they were cancelled, or brokers still show their move: "
        f"{joined(_in_order(partitions))}. Execute the plan again once they show it as cancelled"
    )


def cancelled(partitions: Collection[TopicPartition]) -> str:
    """The moves that `--cancel` cancelled."""
    names = joined(_in_order(partitions))
    return f"Successfully cancelled partition reassignment{plural(partitions)} for: {names}"


def not_cancelled(failures: Mapping[TopicPartition, ClusterError]) -> str:
    """The moves that `--cancel` could not cancel, with reasons."""
    return "\n".join([f"Error cancelling partition reassignment{plural(failures)} for:", *_reasons(failures)])


def _reasons(failures: Mapping[TopicPartition, ClusterError]) -> list[str]:
    return [f"{partition}: {failures[partition].message}" for partition in _in_order(failures)]


def _in_order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    return sorted(partitions, key=partition_order)


def will_cancel(plan: str) -> str:
    """The moves that `--cancel --all` is about to cancel, in JSON."""
    return (
        f"Partition reassignments to be cancelled\n\n{plan}\n\n"
        "Save this to use as the --reassignment-json-file option to start them again"
    )


def would_cancel(plan: str) -> str:
    """The moves that `--cancel --all --dry-run` found, in JSON."""
    return (
        f"Partition reassignments in progress\n\n{plan}\n\n"
        "Nothing was cancelled. Save this to use as the --reassignment-json-file option of --cancel, which cancels "
        "just these, or of --execute, which then starts them again"
    )


def still_moving(partition: TopicPartition) -> str:
    """`--verify`: the partition is being reassigned, to any target."""
    return f"Reassignment of partition {partition} is still in progress."


def arrived(partition: TopicPartition) -> str:
    """`--verify`: the partition has the replicas of the plan, in order."""
    return f"Reassignment of partition {partition} is completed."


def elsewhere(partition: TopicPartition, current: tuple[int, ...], target: tuple[int, ...]) -> str:
    """`--verify`: the partition is not being reassigned and has other replicas than in the plan."""
    return (
        f"There is no active reassignment of partition {partition}, "
        f"but replica set is {joined(current)} rather than {joined(target)}."
    )


def rate_set(kind: str, bytes_per_s: int) -> str:
    """A throttle was set; `kind` is `inter-broker` or `replica-alter-dir`."""
    return f"The {kind} throttle limit was set to {bytes_per_s} B/s"


def clearing(level: str, noun: str, names: Collection[object]) -> str:
    """Throttles of a level are about to be cleared."""
    return f"Clearing {level}-level throttles on {noun}{plural(names)} {joined(names)}"


def directory_move_started(replica: TopicPartitionReplica, directory: str) -> str:
    """A broker accepted the move of a replica to a directory. The blank at the end is Kafka's."""
    return (
        f"Successfully started moving log directory to {directory} for replica {replica.topic_partition} "
        f"with broker {replica.broker} "
    )


def directory_moves_timed_out(replicas: Collection[TopicPartitionReplica]) -> str:
    """Brokers did not accept the move in time."""
    return f"Timed out before log directory move{plural(replicas)} could be started for: {joined(sorted(replicas))}"


def say(text: str, *, end: str = "\n") -> None:
    """Print and flush: a killed tool must not lose the text for the rollback."""
    print(text, end=end, flush=True)
