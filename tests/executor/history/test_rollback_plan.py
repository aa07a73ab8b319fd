from dataclasses import replace

from kreassign.executor.cluster.observations import ReplicaLocation
from kreassign.executor.history.run_history import Present, rollback_plan
from kreassign.model import Partition, TopicPartition, TopicPartitionReplica
from kreassign.model.plan import PartitionAssignment
from kreassign.model.run import LogDirTarget, MoveHistory

ORIGINAL, TARGET = (0, 1), (2, 1)


def move(number: int, status: str = "complete", submitted_ms: int | None = 5) -> MoveHistory:
    left = (TARGET,) if status == "complete" else (ORIGINAL, ORIGINAL[::-1])
    return MoveHistory("t", number, ORIGINAL, TARGET, (2,), 1_000, submitted_ms, None, 0, status, None, left=left)


def now(*replicas: tuple[int, ...]) -> dict[TopicPartition, Partition]:
    names = (TopicPartition("t", number) for number in range(len(replicas)))
    return {name: Partition(name, found, found, found[0]) for name, found in zip(names, replicas, strict=True)}


def test_a_completed_move_goes_back_and_its_copy_is_counted() -> None:
    back = rollback_plan([move(0)], now(TARGET))
    assert back.plan.replicas == {TopicPartition("t", 0): ORIGINAL}
    assert back.expected == {TopicPartition("t", 0): TARGET}
    assert (back.copy_count, back.copied_bytes, back.skipped) == (1, 1_000, ())


def test_a_cancelled_move_gets_the_order_back_without_a_copy() -> None:
    back = rollback_plan([move(0, "cancelled")], now((1, 0)))
    assert back.plan.replicas == {TopicPartition("t", 0): ORIGINAL}
    assert (back.copy_count, back.copied_bytes) == (0, 0)


def test_a_failed_move_is_undone_only_if_it_may_have_made_its_target() -> None:
    failed = move(0, "failed")
    back, left = (rollback_plan([replace(failed, left=lists)], now(TARGET)) for lists in ((TARGET,), (ORIGINAL,)))
    assert back.plan.replicas == {TopicPartition("t", 0): ORIGINAL}
    assert (len(left.plan), left.skipped) == (
        0, ("t-0: its replicas are [2, 1], changed since by somebody else; look at it",)
    )  # fmt: skip


def test_a_directory_goes_back_beside_a_list_that_others_made() -> None:
    failed = replace(move(0, "failed"), log_dirs=(LogDirTarget(1, "/new", before="/old"),))
    name, moved = TopicPartition("t", 0), {TopicPartitionReplica(1, "t", 0): ReplicaLocation(current="/new")}
    theirs = "its replicas are [2, 1], changed since by somebody else; look at it"
    back = rollback_plan([failed], now(TARGET), moved)
    assert back.plan.assignments == (PartitionAssignment(name, TARGET, ("any", "/old")),)
    assert (back.left, back.copy_count) == (((name, theirs),), 1)
    held = rollback_plan([failed], now(TARGET), moved, Present(hindrances={name: "it has no leader"}))
    assert (len(held.plan), held.left) == (0, ((name, theirs), (name, "it has no leader")))
    later = rollback_plan([failed], now(TARGET), moved, Present(changed_by={name: "as run-2 left it"}))
    assert (len(later.plan), len(later.left)) == (0, 1)


def test_a_rollback_goes_no_further_back_than_what_others_made() -> None:
    theirs = (3, 1)
    made = replace(move(0), made_by_others=theirs)
    cancelled = replace(move(1, "cancelled"), made_by_others=theirs, left=(theirs[::-1],))
    back = rollback_plan([made, cancelled], now(TARGET, theirs[::-1]))
    assert ({*back.plan.replicas.values()}, back.skipped, back.copy_count) == ({theirs}, (), 1)


def test_what_never_began_or_is_as_before_needs_nothing() -> None:
    assert len(rollback_plan([move(0, submitted_ms=None), move(1, "cancelled")], now(TARGET, ORIGINAL)).plan) == 0


def test_what_somebody_else_changed_or_deleted_is_left_alone_and_named() -> None:
    back = rollback_plan([move(0), move(1)], now((3, 4)))
    assert len(back.plan) == 0
    assert back.skipped[0].startswith("t-0: its replicas are [3, 4]")
    assert back.skipped[1] == "t-1: it no longer exists"


def test_partitions_left_for_one_reason_are_one_sentence_with_names() -> None:
    back = rollback_plan(map(move, range(23)), now((3, 4), *[(5, 6)] * 22))
    reason = "changed since by somebody else; look at it"
    named = ", ".join(f"t-{number}" for number in range(1, 21))
    assert back.reasons == (
        f"t-0: its replicas are [3, 4], {reason}",
        f"22 partitions ({named} and 2 more): its replicas are [5, 6], {reason}",
    )
    assert back.skipped[1:] == tuple(f"t-{number}: its replicas are [5, 6], {reason}" for number in range(1, 23))


def test_a_copy_returns_to_its_directory_unless_moved_by_others() -> None:
    moved = replace(move(0), target=ORIGINAL, adding=(), log_dirs=(LogDirTarget(1, "/new", before="/old"),))
    back, left = (
        rollback_plan([moved], now(ORIGINAL), {TopicPartitionReplica(1, "t", 0): ReplicaLocation(current=path)})
        for path in ("/new", "/elsewhere")
    )
    assert [one.log_dirs for one in back.plan.assignments] == [("any", "/old")]
    assert len(left.plan) == 0
