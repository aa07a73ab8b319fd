"""Loops of the failover goal (`search/spread.py`), compiled.

A *loss* is that of a broker (its index) or of a rack (N plus its number). The load of a broker after a loss is
`base + added`; its excess is the part above `limit`. Changing one partition affects the two losses of its leader, so a
change of order is judged by a few cells, and any other change by the columns of its brokers.
"""

from __future__ import annotations

from typing import NamedTuple

from kreassign.planner.arrays import BoolArray, FloatArray, IndexArray
from kreassign.planner.search.compiled.compiler import compiled, compiled_part
from kreassign.planner.search.compiled.kernels import (
    FIXED,
    NO_BROKER,
    TINY,
    UNLIMITED,
    Encoding,
    SlotsByBroker,
    State,
    affordable,
    copy_cost,
    fits,
    following,
    lead,
    leading,
    load_of,
    may_host,
    may_leave,
    nothing,
    place,
)
from kreassign.planner.search.compiled.loops import exchange, lead_allowed, may_exchange, random_below
from kreassign.planner.search.compiled.spread_loops import harmless

NO_SLOT = -1
WORTH = 0.5  # gain per scaled byte of a copy, as the last threshold of the moves


class Failover(NamedTuple):
    """Takeovers: N brokers, M losses, P partitions, S slots, G goals that depend on who leads."""

    gone: BoolArray  # (S,) the replica stays, but cannot be elected
    live: BoolArray  # (N,)
    racks: IndexArray  # (N,) loss of the broker's rack, or NO_BROKER
    rack_names: IndexArray  # (N,) which rack a broker is in, -1 unknown
    extra: FloatArray  # (P, G) what leading adds to following
    following: FloatArray  # (P, G) load of following
    base: FloatArray  # (N, G) load of a broker without any loss
    added: FloatArray  # (M, N, G) load that it would take over
    limit: FloatArray  # (M, N, G) infinite where not limited
    leaders: IndexArray  # (P,) slot that leads now: the first usable one
    seconds: IndexArray  # (P,) slot that takes over when the broker is lost, or NO_SLOT
    outside: IndexArray  # (P,) slot that takes over when the rack is lost, or NO_SLOT
    touched: IndexArray  # scratch space for the brokers of two partitions


@compiled_part
def excess_at(failover: Failover, loss: int, broker: int) -> float:
    """Excess of a broker's load over its limits after a loss."""
    excess = 0.0
    for goal in range(failover.base.shape[1]):
        carried = failover.base[broker, goal] + failover.added[loss, broker, goal]
        excess += max(carried - failover.limit[loss, broker, goal], 0.0)
    return excess


@compiled_part
def excess_of(failover: Failover, broker: int) -> float:
    """Excess of a broker's load over its limits, over all losses."""
    excess = 0.0
    for loss in range(failover.added.shape[0]):
        excess += excess_at(failover, loss, broker)
    return excess


@compiled
def total_excess(failover: Failover) -> float:
    """Excess over all losses and brokers: the passes reduce it."""
    excess = 0.0
    for broker in range(failover.base.shape[0]):
        excess += excess_of(failover, broker)
    return excess


@compiled_part
def take_over(state: State, failover: Failover, partition: int, sign: float) -> None:
    """Count the takeovers of a partition (sign 1), or remove them (sign -1)."""
    leader = failover.leaders[partition]
    if leader == NO_SLOT:
        return
    host = state.places[leader]
    for loss, heir in ((host, failover.seconds[partition]), (failover.racks[host], failover.outside[partition])):
        if heir != NO_SLOT and loss != NO_BROKER:
            for goal in range(failover.base.shape[1]):
                failover.added[loss, state.places[heir], goal] += sign * failover.extra[partition, goal]


@compiled_part
def is_usable(encoding: Encoding, state: State, failover: Failover, slot: int) -> bool:
    """True if a slot has a replica that may be elected."""
    broker = state.places[slot]
    return bool(broker >= 0 and failover.live[broker] and encoding.lost_on[slot] != broker and not failover.gone[slot])


@compiled_part
def can_follow(encoding: Encoding, state: State, failover: Failover, partition: int, slot: int) -> bool:
    """True if a slot may take over from the leader."""
    return bool(slot != failover.leaders[partition] and is_usable(encoding, state, failover, slot))


@compiled_part
def is_outside(encoding: Encoding, state: State, failover: Failover, partition: int, slot: int) -> bool:
    """True if a slot may take over when the leader's rack is lost."""
    rack = failover.rack_names[state.places[failover.leaders[partition]]]
    return bool(
        can_follow(encoding, state, failover, partition, slot) and failover.rack_names[state.places[slot]] != rack
    )


@compiled_part
def by_order(encoding: Encoding, state: State, failover: Failover, partition: int) -> None:
    """Set the leader and its successors by the order of the slots."""
    failover.leaders[partition] = NO_SLOT
    failover.seconds[partition] = NO_SLOT
    failover.outside[partition] = NO_SLOT
    leader = state.leaders[partition]
    if is_usable(encoding, state, failover, leader):
        failover.leaders[partition] = leader
    for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        if not is_usable(encoding, state, failover, slot):
            continue
        if failover.leaders[partition] == NO_SLOT:
            failover.leaders[partition] = slot
        elif slot != failover.leaders[partition]:
            if failover.seconds[partition] == NO_SLOT:
                failover.seconds[partition] = slot
            if failover.outside[partition] == NO_SLOT and is_outside(encoding, state, failover, partition, slot):
                failover.outside[partition] = slot


@compiled
def begin_pass(encoding: Encoding, state: State, failover: Failover) -> None:
    """Compute base loads and takeovers from the places of the replicas."""
    for partition in range(encoding.offsets.shape[0] - 1):
        by_order(encoding, state, failover, partition)
        take_over(state, failover, partition, 1.0)
        for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
            if state.places[slot] >= 0:
                for goal in range(failover.base.shape[1]):
                    failover.base[state.places[slot], goal] += failover.following[partition, goal]
        if failover.leaders[partition] != NO_SLOT:
            for goal in range(failover.base.shape[1]):
                failover.base[state.places[failover.leaders[partition]], goal] += failover.extra[partition, goal]


# --- the order of followers -------------------------------------------------------------------------------------------


@compiled_part
def row_excess(encoding: Encoding, state: State, failover: Failover, partition: int) -> float:
    """Excess of a partition's brokers in the losses that take its leader."""
    host = state.places[failover.leaders[partition]]
    excess = 0.0
    for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        if state.places[slot] >= 0:
            excess += excess_at(failover, host, state.places[slot])
            if failover.racks[host] != NO_BROKER:
                excess += excess_at(failover, failover.racks[host], state.places[slot])
    return excess


@compiled_part
def set_heirs(state: State, failover: Failover, partition: int, second: int, outside: int) -> None:
    """Let these slots take over when the broker, and when the rack is lost."""
    take_over(state, failover, partition, -1.0)
    failover.seconds[partition] = second
    failover.outside[partition] = outside
    take_over(state, failover, partition, 1.0)


@compiled_part
def reorder(encoding: Encoding, state: State, failover: Failover, partition: int) -> bool:
    """Choose the successors that reduce the excess most; False if none do."""
    if failover.seconds[partition] == NO_SLOT:
        return False
    was_second, was_outside = failover.seconds[partition], failover.outside[partition]
    before = row_excess(encoding, state, failover, partition)
    if before <= TINY:
        return False
    best_second, best_outside, least = was_second, was_outside, before - TINY
    for second in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        if not can_follow(encoding, state, failover, partition, second):
            continue
        second_is_outside = is_outside(encoding, state, failover, partition, second)
        for outside in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
            # If the second is in another rack, it takes over in both losses.
            if second_is_outside and outside != second:
                continue
            if was_outside == NO_SLOT and outside != second:
                continue
            if was_outside != NO_SLOT and not is_outside(encoding, state, failover, partition, outside):
                continue
            set_heirs(state, failover, partition, second, outside if was_outside != NO_SLOT else NO_SLOT)
            after = row_excess(encoding, state, failover, partition)
            if after < least:
                best_second, best_outside, least = second, failover.outside[partition], after
    set_heirs(state, failover, partition, best_second, best_outside)
    return bool(best_second != was_second or best_outside != was_outside)


@compiled
def order_pass(encoding: Encoding, state: State, failover: Failover) -> int:
    """Reorder followers wherever that reduces the excess; return the number of partitions."""
    made = 0
    for partition in range(encoding.offsets.shape[0] - 1):
        if encoding.lead_rows[partition] != FIXED and failover.leaders[partition] != NO_SLOT:
            made += int(reorder(encoding, state, failover, partition))
    return made


@compiled
def order_lists(encoding: Encoding, state: State, failover: Failover, order: IndexArray) -> None:
    """Set `order` so that successors come first if the order of the slots differs; loads are not updated."""
    for partition in range(encoding.offsets.shape[0] - 1):
        second, outside = failover.seconds[partition], failover.outside[partition]
        by_order(encoding, state, failover, partition)
        if second != failover.seconds[partition] or outside != failover.outside[partition]:
            if outside != NO_SLOT:
                order[outside] = -1
            order[second] = -2


# --- leaders and moves, as far as they take no broker farther from a band ---------------------------------------------


@compiled_part
def touched_excess(failover: Failover, count: int) -> float:
    """Excess of the first `count` noted brokers over all losses; duplicates count once, NO_BROKER not at all."""
    excess = 0.0
    for index in range(count):
        broker, is_new = failover.touched[index], failover.touched[index] >= 0
        for earlier in range(index):
            is_new = is_new and failover.touched[earlier] != broker
        if is_new:
            excess += excess_of(failover, broker)
    return excess


@compiled_part
def note_hosts(encoding: Encoding, state: State, failover: Failover, partition: int, count: int) -> int:
    """Note the brokers of a partition (negative for empty slots) after `count` others; return the new count."""
    for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        failover.touched[count] = state.places[slot]
        count += 1
    return count


@compiled_part
def withdraw(encoding: Encoding, state: State, failover: Failover, partition: int, sign: float) -> None:
    """Add (sign 1) or remove (sign -1) all loads of a partition."""
    take_over(state, failover, partition, sign)
    for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        if state.places[slot] >= 0:
            for goal in range(failover.base.shape[1]):
                failover.base[state.places[slot], goal] += sign * failover.following[partition, goal]
    for goal in range(failover.base.shape[1]):
        failover.base[state.places[failover.leaders[partition]], goal] += sign * failover.extra[partition, goal]


@compiled_part
def is_over(state: State, failover: Failover, partition: int) -> bool:
    """True if any broker would exceed a limit by taking over the partition."""
    if failover.leaders[partition] == NO_SLOT or failover.seconds[partition] == NO_SLOT:
        return False
    host = state.places[failover.leaders[partition]]
    over = excess_at(failover, host, state.places[failover.seconds[partition]]) > TINY
    if failover.racks[host] != NO_BROKER and failover.outside[partition] != NO_SLOT:
        over |= excess_at(failover, failover.racks[host], state.places[failover.outside[partition]]) > TINY
    return bool(over)


@compiled
def lead_over_pass(encoding: Encoding, state: State, failover: Failover) -> int:
    """Change leaders if that reduces the excess and no broker gets farther from a band."""
    made = 0
    for partition in range(encoding.offsets.shape[0] - 1):
        if not encoding.may_change_leader[partition] or not is_over(state, failover, partition):
            continue
        former = state.leaders[partition]
        if failover.leaders[partition] != former:
            continue
        more, less = leading(partition), following(partition)
        hosts = note_hosts(encoding, state, failover, partition, 0)
        if not harmless(encoding, state, state.places[former], less, more):
            continue
        for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
            if slot == former or state.places[slot] < 0 or not lead_allowed(encoding, state, slot):
                continue
            if not harmless(encoding, state, state.places[slot], more, less):
                continue
            seconds, outside = failover.seconds[partition], failover.outside[partition]
            before = touched_excess(failover, hosts)
            change_leader(encoding, state, failover, partition, slot)
            reorder(encoding, state, failover, partition)
            if touched_excess(failover, hosts) < before - TINY:
                made += 1
                break
            withdraw(encoding, state, failover, partition, -1.0)
            lead(encoding, state, former)
            failover.leaders[partition] = former
            failover.seconds[partition], failover.outside[partition] = seconds, outside
            withdraw(encoding, state, failover, partition, 1.0)
    return made


@compiled_part
def change_leader(encoding: Encoding, state: State, failover: Failover, partition: int, slot: int) -> None:
    """Let a slot lead; its successors follow from the order of the slots."""
    withdraw(encoding, state, failover, partition, -1.0)
    lead(encoding, state, slot)
    by_order(encoding, state, failover, partition)
    withdraw(encoding, state, failover, partition, 1.0)


@compiled
def move_over_pass(
    encoding: Encoding, state: State, failover: Failover, by_broker: SlotsByBroker, attempts: int
) -> int:
    """Move or exchange followers that would take over too much, if no broker gets farther from a band."""
    made = 0
    for partition in range(encoding.offsets.shape[0] - 1):
        if not encoding.movable[partition] or not is_over(state, failover, partition):
            continue
        for slot in (failover.seconds[partition], failover.outside[partition]):
            if slot == NO_SLOT or not may_leave(encoding, state, slot) or not is_over(state, failover, partition):
                continue
            if move_heir(encoding, state, failover, slot) or exchange_heir(
                encoding, state, failover, by_broker, slot, attempts
            ):
                made += 1
    return made


@compiled_part
def cell_excess(failover: Failover, partition: int, host: int, broker: int) -> float:
    """Estimate by how much a broker would exceed its limits if it took over a partition led from `host`."""
    excess = 0.0
    for loss in (host, failover.racks[host]):
        if loss != NO_BROKER:
            for goal in range(failover.base.shape[1]):
                carried = failover.base[broker, goal] + failover.added[loss, broker, goal]
                carried += failover.extra[partition, goal] + failover.following[partition, goal]
                excess += max(carried - failover.limit[loss, broker, goal], 0.0)
    return excess


@compiled_part
def move_heir(encoding: Encoding, state: State, failover: Failover, slot: int) -> bool:
    """Move a replica to the broker that would exceed its limits least, if that helps; return whether it does."""
    partition, origin, load = encoding.owners[slot], state.places[slot], load_of(encoding, state, slot)
    host = state.places[failover.leaders[partition]]
    none = nothing(encoding)
    if not harmless(encoding, state, origin, none, load):
        return False
    best, least = NO_BROKER, UNLIMITED
    for broker in range(encoding.racks.shape[0]):
        if broker == origin or not encoding.receiving[broker] or not harmless(encoding, state, broker, load, none):
            continue
        excess = cell_excess(failover, partition, host, broker)
        if (
            excess < least
            and fits(encoding, state, broker, load, none)
            and affordable(encoding, state, slot, broker)
            and may_host(encoding, state, slot, broker)
        ):
            best, least = broker, excess
    if best == NO_BROKER:
        return False
    seconds, outside = failover.seconds[partition], failover.outside[partition]
    hosts = note_hosts(encoding, state, failover, partition, 0) + 1
    failover.touched[hosts - 1] = best
    cost = copy_cost(encoding, partition, best) - copy_cost(encoding, partition, origin)
    before = touched_excess(failover, hosts)
    put(encoding, state, failover, slot, best)
    reorder(encoding, state, failover, partition)
    if touched_excess(failover, hosts) < before - max(TINY, WORTH * cost):
        return True
    withdraw(encoding, state, failover, partition, -1.0)
    place(encoding, state, slot, origin)
    failover.seconds[partition], failover.outside[partition] = seconds, outside
    withdraw(encoding, state, failover, partition, 1.0)
    return False


@compiled_part
def put(encoding: Encoding, state: State, failover: Failover, slot: int, broker: int) -> None:
    """Move a follower; successors follow from the order of the slots."""
    partition = encoding.owners[slot]
    withdraw(encoding, state, failover, partition, -1.0)
    place(encoding, state, slot, broker)
    by_order(encoding, state, failover, partition)
    withdraw(encoding, state, failover, partition, 1.0)


@compiled_part
def exchange_heir(
    encoding: Encoding, state: State, failover: Failover, by_broker: SlotsByBroker, slot: int, attempts: int
) -> bool:
    """Exchange a follower with one of another partition, drawn `attempts` times, if that helps."""
    partition, here = encoding.owners[slot], state.places[slot]
    for _ in range(attempts):
        other = by_broker.slots[random_below(state, by_broker.slots.shape[0])]
        second, there = encoding.owners[other], state.places[other]
        if there < 0 or there == here or second == partition or failover.leaders[second] == NO_SLOT:
            continue
        if state.leaders[second] == other or not may_exchange(encoding, state, slot, other):
            continue
        ours, theirs = load_of(encoding, state, slot), load_of(encoding, state, other)
        if not harmless(encoding, state, here, theirs, ours) or not harmless(encoding, state, there, ours, theirs):
            continue
        if try_exchange(encoding, state, failover, slot, other):
            return True
    return False


@compiled_part
def try_exchange(encoding: Encoding, state: State, failover: Failover, slot: int, other: int) -> bool:
    """Make an exchange; undo it unless it reduces the excess enough for its copies."""
    one, two, here, there = encoding.owners[slot], encoding.owners[other], state.places[slot], state.places[other]
    hosts = note_hosts(encoding, state, failover, two, note_hosts(encoding, state, failover, one, 0))
    cost = copy_cost(encoding, one, there) + copy_cost(encoding, two, here)
    cost -= copy_cost(encoding, one, here) + copy_cost(encoding, two, there)
    kept = (failover.seconds[one], failover.outside[one], failover.seconds[two], failover.outside[two])
    before = touched_excess(failover, hosts)
    withdraw(encoding, state, failover, one, -1.0)
    withdraw(encoding, state, failover, two, -1.0)
    is_made = exchange(encoding, state, slot, other)
    if is_made:
        by_order(encoding, state, failover, one)
        by_order(encoding, state, failover, two)
    withdraw(encoding, state, failover, one, 1.0)
    withdraw(encoding, state, failover, two, 1.0)
    if not is_made:
        return False
    reorder(encoding, state, failover, one)
    reorder(encoding, state, failover, two)
    if touched_excess(failover, hosts) < before - max(TINY, WORTH * cost):
        return True
    withdraw(encoding, state, failover, one, -1.0)
    withdraw(encoding, state, failover, two, -1.0)
    place(encoding, state, slot, here)
    place(encoding, state, other, there)
    failover.seconds[one], failover.outside[one], failover.seconds[two], failover.outside[two] = kept
    withdraw(encoding, state, failover, one, 1.0)
    withdraw(encoding, state, failover, two, 1.0)
    return False
