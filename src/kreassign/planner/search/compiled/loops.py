"""Loops of the search over all partitions, compiled; built from the single changes of `kernels.py`."""

from __future__ import annotations

from kreassign.planner.arrays import BoolArray, IndexArray
from kreassign.planner.search.compiled.compiler import compiled, compiled_part
from kreassign.planner.search.compiled.kernels import (
    FIXED,
    LEADER_CHANGES,
    NO_BROKER,
    REMOVED,
    TINY,
    UNLIMITED,
    UNPLACED,
    Destinations,
    Encoding,
    SlotsByBroker,
    State,
    best_destination,
    candidates_for,
    copy_cost,
    fits,
    following,
    gain,
    is_behind,
    is_initial,
    lead,
    leading,
    load_of,
    look_below,
    may_be_given,
    may_host,
    may_lead,
    may_leave,
    most_headroom,
    nothing,
    place,
    rank_of,
    update_deficit,
)

RNG_FACTOR, RNG_STEP = 6364136223846793005, 1442695040888963407  # Knuth's MMIX generator
# --- single changes ---------------------------------------------------------------------------------------------------


def move_pass(encoding: Encoding, state: State, threshold: float) -> int:
    """Make every move that relieves at least `threshold` per scaled byte; return the number.

    A replica that is away from its initial broker already moves on at no cost.
    """
    return move_each(encoding, state, candidates_for(encoding), candidates_for(encoding), threshold)


@compiled
def move_each(encoding: Encoding, state: State, below: Destinations, receivers: Destinations, threshold: float) -> int:
    """Make the moves of `move_pass`; `below` is scratch space for the brokers below a band."""
    look_below(encoding, state, below)
    moved = 0
    for partition in range(encoding.offsets.shape[0] - 1):
        for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
            origin = state.places[slot]
            if origin < 0 or not may_leave(encoding, state, slot):
                continue
            load = load_of(encoding, state, slot)
            least = threshold * encoding.size[partition]
            possible, whole = 0.0, 0.0
            for goal in range(encoding.loads.shape[1]):
                possible += min(encoding.loads[load, goal], below.largest_shortfall[goal])
                whole += encoding.loads[load, goal]
            if least >= possible + whole and origin == encoding.initial_brokers[slot]:
                continue
            least = max(least - threshold * copy_cost(encoding, partition, origin), TINY)
            given = gain(encoding, state, origin, nothing(encoding), load)
            if given + possible <= least:
                continue
            broker = best_destination(encoding, state, slot, below, (least - given, possible - TINY))
            if broker == NO_BROKER and given > least:
                broker = most_headroom(encoding, state, slot, receivers)
            if broker != NO_BROKER:
                place(encoding, state, slot, broker)
                update_deficit(state, below, origin)
                update_deficit(state, below, broker)
                moved += 1
    return moved


@compiled
def lead_pass(encoding: Encoding, state: State, threshold: float) -> int:
    """Change every leader if that relieves at least `threshold` of the load of leading; return the number."""
    changed = 0
    for partition in range(encoding.offsets.shape[0] - 1):
        leader = state.leaders[partition]
        if not encoding.may_change_leader[partition] or state.places[leader] < 0:
            continue
        more, less = leading(partition), following(partition)
        extra = 0.0
        for goal in range(encoding.loads.shape[1]):
            extra += encoding.loads[more, goal] - encoding.loads[less, goal]
        given = gain(encoding, state, state.places[leader], less, more)
        best, most = leader, max(threshold * extra, TINY)
        if given + extra <= most:
            continue
        for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
            broker = state.places[slot]
            if slot == leader or broker < 0 or not may_be_given(encoding, partition, broker):
                continue
            if rank_of(encoding, partition, broker) > rank_of(encoding, partition, state.places[leader]):
                continue
            gained = given + gain(encoding, state, broker, more, less)
            if (
                gained > most
                and fits(encoding, state, broker, more, less)
                and may_pay_leader_change(encoding, state, partition)
            ):
                best, most = slot, gained
        if best != leader:
            lead(encoding, state, best)
            changed += 1
    return changed


@compiled
def pin_pass(encoding: Encoding, state: State) -> int:
    """Let replicas in the most preferred racks lead, where there are any; return the number of changes."""
    changed = 0
    for partition in range(encoding.offsets.shape[0] - 1):
        leader = state.leaders[partition]
        if encoding.lead_rows[partition] < 1 or state.places[leader] < 0:
            continue
        more, less = leading(partition), following(partition)
        best, least, most = leader, rank_of(encoding, partition, state.places[leader]), -UNLIMITED
        for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
            broker = state.places[slot]
            if slot == leader or broker < 0 or not may_be_given(encoding, partition, broker):
                continue
            rank = rank_of(encoding, partition, broker)
            if rank > least or (rank == least and best == leader) or not fits(encoding, state, broker, more, less):
                continue
            gained = gain(encoding, state, broker, more, less)
            if (rank < least or gained > most) and may_pay_leader_change(encoding, state, partition):
                best, least, most = slot, rank, gained
        if best != leader:
            lead(encoding, state, best)
            changed += 1
    return changed


@compiled_part
def may_pay_leader_change(encoding: Encoding, state: State, partition: int) -> bool:
    """True if the budget allows another leader."""
    at_home = state.places[state.leaders[partition]] == encoding.initial_leaders[partition]
    return bool(not at_home or state.budget_left[LEADER_CHANGES] >= 1.0)


# --- forced changes ---------------------------------------------------------------------------------------------------


@compiled
def place_pass(encoding: Encoding, state: State, slots: IndexArray, brokers: IndexArray) -> None:
    """Put each slot's replica on the given broker, or nowhere, regardless of rules."""
    for index in range(slots.shape[0]):
        place(encoding, state, slots[index], brokers[index])


@compiled
def adopt_pass(encoding: Encoding, state: State, slots: IndexArray, brokers: IndexArray, leaders: IndexArray) -> None:
    """Place replicas and leaders as in another plan."""
    for index in range(slots.shape[0]):
        place(encoding, state, slots[index], brokers[index])
    for index in range(leaders.shape[0]):
        lead(encoding, state, leaders[index])


@compiled
def shrink_pass(encoding: Encoding, state: State, wanted: IndexArray, lags: BoolArray) -> None:
    """Remove replicas down to the wanted numbers, not counting removed ones; those that lag first."""
    for partition in range(wanted.shape[0]):
        count = 0
        for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
            count += int(encoding.initial_brokers[slot] >= 0 and state.places[slot] != REMOVED)
        for _ in range(wanted[partition], count):
            slot = most_dispensable(encoding, state, partition, lags)
            if state.leaders[partition] == slot and not hand_over(encoding, state, partition):
                heir = heir_of(encoding, state, slot)
                if heir == slot or state.budget_left[LEADER_CHANGES] < 1.0:
                    break
                lead(encoding, state, heir)  # it may not lead, or has no place yet, but is the only one left
            place(encoding, state, slot, REMOVED)


@compiled_part
def heir_of(encoding: Encoding, state: State, slot: int) -> int:
    """Another slot of the partition, if possible one that has a broker; the same slot if the others are removed."""
    partition = encoding.owners[slot]
    found = slot
    for other in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        if other != slot and state.places[other] != REMOVED and (state.places[other] >= 0 or found == slot):
            found = other
    return found


@compiled_part
def most_dispensable(encoding: Encoding, state: State, partition: int, lags: BoolArray) -> int:
    """Slot of the replica to remove: one that lags, without a place, sharing its rack, or relieving its broker most."""
    best, most = 0, -UNLIMITED
    for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        broker = state.places[slot]
        if broker == REMOVED:
            continue
        gained = 1e9
        if broker >= 0:
            gained = gain(encoding, state, broker, nothing(encoding), load_of(encoding, state, slot))
            for other in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
                neighbour = state.places[other]
                if other != slot and neighbour >= 0 and encoding.racks[neighbour] == encoding.racks[broker]:
                    gained += 1e3
        gained -= 1e6 if state.leaders[partition] == slot else 0.0
        gained += 1e12 if lags[slot] else 0.0
        if gained > most:
            best, most = slot, gained
    return best


@compiled
def demote_pass(encoding: Encoding, state: State) -> None:
    """Replace leaders on brokers that may not lead; if no other can lead, unplace the replica.

    One that may just not be given leadership keeps it where no other can lead, or the task changes no leaders.
    """
    for partition in range(encoding.offsets.shape[0] - 1):
        broker = state.places[state.leaders[partition]]
        barred = broker >= 0 and not may_lead(encoding, broker) and encoding.lead_rows[partition] != FIXED
        must = barred and encoding.demoted[broker]
        if not (must or (barred and encoding.may_change_leader[partition])) or hand_over(encoding, state, partition):
            continue
        if must and encoding.movable[partition] and not encoding.pinned[state.leaders[partition]]:
            place(encoding, state, state.leaders[partition], UNPLACED)


@compiled
def hand_over_pass(encoding: Encoding, state: State, slots: IndexArray) -> None:
    """If one of these slots leads, hand the lead to another eligible replica of its partition."""
    for index in range(slots.shape[0]):
        partition = encoding.owners[slots[index]]
        if state.leaders[partition] == slots[index]:
            hand_over(encoding, state, partition)


@compiled_part
def hand_over(encoding: Encoding, state: State, partition: int) -> bool:
    """Let the eligible replica lead for which the relief is greatest, one in sync first; False if there is none."""
    more, less = leading(partition), following(partition)
    leader = state.leaders[partition]
    best, most, initial_leader = leader, -UNLIMITED, encoding.initial_leaders[partition]
    former = state.places[leader]
    cannot_afford = (former == initial_leader or former < 0) and state.budget_left[LEADER_CHANGES] < 1.0
    for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
        broker = state.places[slot]
        if slot == leader or broker < 0 or not may_lead(encoding, broker):
            continue
        if cannot_afford and broker != initial_leader:
            continue
        gained = gain(encoding, state, broker, more, less)
        gained -= 0.0 if fits(encoding, state, broker, more, less) else 1e8
        gained -= 1e6 if is_behind(encoding, partition, broker) else 0.0
        gained -= 1e3 * rank_of(encoding, partition, broker)
        if gained > most:
            best, most = slot, gained
    if best == leader:
        return False
    lead(encoding, state, best)
    return True


def fill_pass(encoding: Encoding, state: State, order: IndexArray) -> None:
    """Give every slot of `order` a broker, if rules, capacities and budget allow any."""
    fill_each(encoding, state, candidates_for(encoding), candidates_for(encoding), order)


@compiled
def fill_each(
    encoding: Encoding, state: State, below: Destinations, receivers: Destinations, order: IndexArray
) -> None:
    """Make the changes of `fill_pass`; `below` is scratch space for the brokers below a band."""
    for index in range(order.shape[0]):
        slot = order[index]
        look_below(encoding, state, below)
        broker = best_destination(encoding, state, slot, below, (TINY, UNLIMITED))
        if broker == NO_BROKER:
            broker = most_headroom(encoding, state, slot, receivers)
        if broker == NO_BROKER:
            broker = best_destination(encoding, state, slot, receivers, (-UNLIMITED, UNLIMITED))
        if broker != NO_BROKER:
            place(encoding, state, slot, broker)


# --- pairs of changes, where a single one does not help ---------------------------------------------------------------


@compiled_part
def random_below(state: State, below: int) -> int:
    """Random number from 0 to `below` - 1 by the seeded generator."""
    state.rng_state[0] = state.rng_state[0] * RNG_FACTOR + RNG_STEP
    return int(((state.rng_state[0] >> 33) & 0x7FFFFFFF) % below)


@compiled_part
def exchange_gain(encoding: Encoding, state: State, one: int, other: int) -> float:
    """Gain of two replicas exchanging their brokers."""
    first, second = load_of(encoding, state, one), load_of(encoding, state, other)
    here, there = state.places[one], state.places[other]
    return gain(encoding, state, here, second, first) + gain(encoding, state, there, first, second)


@compiled_part
def exchange_cost(encoding: Encoding, state: State, one: int, other: int) -> float:
    """Scaled bytes of two replicas exchanging their brokers; negative if they return to initial brokers."""
    here, there = state.places[one], state.places[other]
    first, second = encoding.owners[one], encoding.owners[other]
    after = copy_cost(encoding, first, there) + copy_cost(encoding, second, here)
    return after - copy_cost(encoding, first, here) - copy_cost(encoding, second, there)


@compiled_part
def may_exchange(encoding: Encoding, state: State, one: int, other: int) -> bool:
    """True if rules and capacities allow two replicas to exchange their brokers."""
    here, there = state.places[one], state.places[other]
    if not (may_leave(encoding, state, one) and may_leave(encoding, state, other)):
        return False
    if not (may_enter(encoding, one, there) and may_enter(encoding, other, here)):
        return False
    first, second = load_of(encoding, state, one), load_of(encoding, state, other)
    if not (fits(encoding, state, here, second, first) and fits(encoding, state, there, first, second)):
        return False
    return may_host(encoding, state, one, there) and may_host(encoding, state, other, here)


@compiled_part
def may_enter(encoding: Encoding, slot: int, broker: int) -> bool:
    """True if a broker receives replicas, or had this one at first."""
    return bool(
        encoding.receiving[broker] or (encoding.staying[broker] and is_initial(encoding, encoding.owners[slot], broker))
    )


@compiled_part
def exchange(encoding: Encoding, state: State, one: int, other: int) -> bool:
    """Make the exchange; return False and undo it if the budget does not allow it."""
    here, there = state.places[one], state.places[other]
    place(encoding, state, one, there)
    place(encoding, state, other, here)
    if overdrawn(state, here, there):
        place(encoding, state, one, here)
        place(encoding, state, other, there)
        return False
    return True


@compiled_part
def overdrawn(state: State, one: int, other: int) -> bool:
    """True if the budget is overspent."""
    least = min(state.bytes_in_left[one], state.bytes_in_left[other])
    for broker in range(state.bytes_out_left.shape[0]):
        least = min(least, state.bytes_out_left[broker])
    for limit in range(state.budget_left.shape[0]):
        least = min(least, state.budget_left[limit])
    return bool(least < -TINY)


@compiled_part
def is_outside(state: State, broker: int) -> bool:
    """True if a broker is outside any band."""
    outside = False
    for goal in range(state.shortfall.shape[1]):
        outside |= state.shortfall[broker, goal] > TINY or state.headroom[broker, goal] < -TINY
    return outside


@compiled
def exchange_pass(
    encoding: Encoding, state: State, by_broker: SlotsByBroker, partners: IndexArray, attempts: int, threshold: float
) -> int:
    """Make the best of `attempts` random exchanges around every broker outside its bands, while any helps.

    Each pairs a slot of the broker with one of the `partners`.
    """
    made = 0
    if not partners.shape[0]:
        return made
    for broker in range(encoding.racks.shape[0]):
        first, last = by_broker.starts[broker], by_broker.starts[broker + 1]
        while first < last and is_outside(state, broker):
            best, partner, most = by_broker.slots[first], by_broker.slots[first], 0.0
            for _ in range(attempts):
                one = by_broker.slots[first + random_below(state, last - first)]
                other = partners[random_below(state, partners.shape[0])]
                if state.places[one] != broker or state.places[other] < 0 or state.places[other] == broker:
                    continue
                gained = exchange_gain(encoding, state, one, other)
                if gained <= TINY:
                    continue
                gained -= threshold * exchange_cost(encoding, state, one, other)
                if gained > most and may_exchange(encoding, state, one, other):
                    best, partner, most = one, other, gained
            if most == 0.0 or not exchange(encoding, state, best, partner):
                break
            made += 1
    return made


@compiled
def lead_chain_pass(encoding: Encoding, state: State, by_broker: SlotsByBroker, attempts: int) -> int:
    """Change two leaders at once around every broker outside its bands, if one alone does not help."""
    made = 0
    for broker in range(encoding.racks.shape[0]):
        first, last = by_broker.starts[broker], by_broker.starts[broker + 1]
        for _ in range(attempts if first < last else 0):
            if role_excess(encoding, state, broker) <= TINY:
                break
            slot = by_broker.slots[first + random_below(state, last - first)]
            partition = encoding.owners[slot]
            former = state.leaders[partition]
            if state.places[slot] != broker or not encoding.may_change_leader[partition]:
                continue
            if former == slot:
                span = encoding.offsets[partition + 1] - encoding.offsets[partition]
                slot = encoding.offsets[partition] + random_below(state, span)
            made += try_lead_chain(encoding, state, by_broker, slot, broker)
    return made


@compiled_part
def role_excess(encoding: Encoding, state: State, broker: int) -> float:
    """Largest distance of a broker from its bands in goals that depend on who leads."""
    most = 0.0
    for goal in range(state.shortfall.shape[1]):
        if encoding.role_goals[goal]:
            most = max(most, state.shortfall[broker, goal], -state.headroom[broker, goal])
    return most


@compiled_part
def try_lead_chain(encoding: Encoding, state: State, by_broker: SlotsByBroker, slot: int, broker: int) -> int:
    """Let a slot lead, then make the best second change at the other broker; undo both unless they help together."""
    former = state.leaders[encoding.owners[slot]]
    if state.places[slot] < 0 or state.places[former] < 0 or not lead_allowed(encoding, state, slot):
        return 0
    first_gain = lead_gain(encoding, state, slot)
    middle = state.places[slot] if state.places[former] == broker else state.places[former]
    lead(encoding, state, slot)
    best, most = former, -first_gain + TINY
    for index in range(by_broker.starts[middle], by_broker.starts[middle + 1]):
        candidate = by_broker.slots[index]
        partition = encoding.owners[candidate]
        if (
            state.places[candidate] != middle
            or not encoding.may_change_leader[partition]
            or partition == encoding.owners[slot]
        ):
            continue
        for second in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
            takes = second == candidate or state.leaders[partition] == candidate
            if takes and state.places[second] >= 0 and lead_allowed(encoding, state, second):
                gained = lead_gain(encoding, state, second)
                if gained > most:
                    best, most = second, gained
    lead(encoding, state, best)
    return int(best != former)


@compiled_part
def lead_gain(encoding: Encoding, state: State, slot: int) -> float:
    """Gain of letting a slot lead its partition."""
    partition = encoding.owners[slot]
    more, less = leading(partition), following(partition)
    former = state.places[state.leaders[partition]]
    return gain(encoding, state, former, less, more) + gain(encoding, state, state.places[slot], more, less)


@compiled_part
def lead_allowed(encoding: Encoding, state: State, slot: int) -> bool:
    """True if rules, capacity and budget allow a follower's slot to lead."""
    partition, broker = encoding.owners[slot], state.places[slot]
    if (
        state.leaders[partition] == slot
        or not may_be_given(encoding, partition, broker)
        or not may_pay_leader_change(encoding, state, partition)
    ):
        return False
    if rank_of(encoding, partition, broker) > rank_of(encoding, partition, state.places[state.leaders[partition]]):
        return False
    return fits(encoding, state, broker, leading(partition), following(partition))


# --- trimming ---------------------------------------------------------------------------------------------------------


@compiled
def return_pass(encoding: Encoding, state: State, order: IndexArray) -> int:
    """Undo every move that the bands do not need, in the given order; return the number."""
    returned = 0
    for index in range(order.shape[0]):
        slot = order[index]
        partition, origin = encoding.owners[slot], state.places[slot]
        if origin < 0 or is_initial(encoding, partition, origin):
            continue
        load, none = load_of(encoding, state, slot), nothing(encoding)
        given = gain(encoding, state, origin, none, load)
        for other in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
            initial_broker = encoding.initial_brokers[other]
            if initial_broker < 0 or not encoding.staying[initial_broker]:
                continue
            if (
                fits(encoding, state, initial_broker, load, none)
                and given + gain(encoding, state, initial_broker, load, none) >= -TINY
                and may_host(encoding, state, slot, initial_broker)
            ):
                place(encoding, state, slot, initial_broker)
                returned += 1
                break
    return returned


@compiled
def restore_leaders_pass(encoding: Encoding, state: State) -> None:
    """Let replicas lead again that are back on the present leader's broker."""
    for partition in range(encoding.initial_leaders.shape[0]):
        initial_leader = encoding.initial_leaders[partition]
        if state.places[state.leaders[partition]] == initial_leader or not may_lead(encoding, initial_leader):
            continue
        for slot in range(encoding.offsets[partition], encoding.offsets[partition + 1]):
            if state.places[slot] == initial_leader and fits(
                encoding, state, initial_leader, leading(partition), following(partition)
            ):
                lead(encoding, state, slot)


@compiled
def smaller_pass(encoding: Encoding, state: State, by_broker: SlotsByBroker, attempts: int) -> int:
    """Move smaller replicas in place of moved ones, if the bands stay as they are; return the number."""
    made = 0
    for slot in range(state.places.shape[0]):
        initial_broker, origin = encoding.initial_brokers[slot], state.places[slot]
        if (
            initial_broker < 0
            or origin < 0
            or origin == initial_broker
            or is_initial(encoding, encoding.owners[slot], origin)
        ):
            continue
        first, last = by_broker.starts[initial_broker], by_broker.starts[initial_broker + 1]
        for _ in range(attempts if first < last else 0):
            other = by_broker.slots[first + random_below(state, last - first)]
            if (
                encoding.size[encoding.owners[other]] >= encoding.size[encoding.owners[slot]]
                or state.places[other] != initial_broker
            ):
                continue
            if (
                exchange_gain(encoding, state, slot, other) < -TINY
                or exchange_cost(encoding, state, slot, other) > -TINY
            ):
                continue
            if not may_exchange(encoding, state, slot, other):
                continue
            if exchange(encoding, state, slot, other):
                made += 1
                break
    return made
