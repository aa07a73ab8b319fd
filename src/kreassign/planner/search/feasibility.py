"""Hard limits: make room if forced changes alone do not fit, or say why there is no plan.

Making room is the only reason for more changes than the task demands. A replica that must move goes first to the
broker where it exceeds a hard limit least. Then brokers over a limit are relieved: of replicas that must move anyway;
if that is not enough, of followers that could stay; last, of leaders. Finally every replica returns that the limits
allow back, so that each extra move is needed by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from shlex import quote

import numpy as np
import numpy.typing as npt

from kreassign.errors import Infeasible
from kreassign.model.closures import Closure
from kreassign.model.cluster import listed_ids, named_brokers
from kreassign.model.text import agreeing, counted, format_amount
from kreassign.planner.arrays import NOWHERE, BoolArray, IndexArray
from kreassign.planner.goals import DISK, Goal
from kreassign.planner.problem.holds import Hold, first_names, held_sentences, lagging_copies, too_few_partitions
from kreassign.planner.problem.problem import ANY_RACKS, Budget, Problem, RackRule
from kreassign.planner.search.compiled import kernels, loops
from kreassign.planner.search.compiled.kernels import NO_RANK, REMOVED, Encoding, SlotsByBroker, State, slots_by_broker
from kreassign.planner.search.encoding import (
    Search,
    crowding,
    may_stay_or_go,
    rack_excess,
    rack_limits,
    refresh,
    scales,
)

# Make room.

RELIEF_THRESHOLDS = (1.0, 0.1, 0.0)
EXCHANGE_ATTEMPTS = 1_500
PINNED_NOWHERE = -3


def make_room(search: Search, unplaced: IndexArray) -> IndexArray:
    """Place these slots regardless of limits, then relieve brokers over one; return slots that no rule allows anywhere.

    Limits may still be exceeded afterwards: the caller checks `is_overfull`.
    """
    state = search.state
    loose = by_limits(state)._replace(spare_capacity=np.full_like(state.spare_capacity, np.inf))
    loops.fill_pass(search.encoding, loose, unplaced)
    state.spare_capacity[:] = loose.headroom
    relieve(search)
    return unplaced[state.places[unplaced] < 0]


def fill_crowded(search: Search, unplaced: IndexArray) -> IndexArray:
    """Place these slots where racks stay as crowded as they are now, one of each partition at a time; return the rest.

    Only where a rack that has room by the rule has none otherwise, and nothing is to repair racks. Those that come
    first get what a budget or a limit leaves.
    """
    return unplaced if search.problem.rules.repair_racks else _fill_crowded(search, unplaced)


def keep_crowded(search: Search, unplaced: IndexArray) -> IndexArray:
    """Give up the repair of racks for partitions that lack a copy besides, and place that; return the rest.

    Replicas that only share a rack go home. The last resort: without that copy the partition would be worse off.
    """
    encoding, owners = search.encoding, search.encoding.owners[unplaced]
    if not search.problem.rules.repair_racks:
        return unplaced
    may_stay = (_could_stay(encoding) & (encoding.lost_on != encoding.initial_brokers))[unplaced]
    lacks = np.isin(owners, owners[~may_stay])
    home, lost = unplaced[lacks & may_stay], unplaced[~may_stay]
    loops.place_pass(encoding, search.state, home, encoding.initial_brokers[home])
    left = _fill_crowded(search, lost)
    home = home[np.isin(encoding.owners[home], encoding.owners[left])]
    loops.place_pass(encoding, search.state, home, np.full_like(home, kernels.UNPLACED))
    return np.concatenate([unplaced[~lacks], home, left])


def _fill_crowded(search: Search, unplaced: IndexArray) -> IndexArray:
    encoding, state, loose = search.encoding, search.state, kernels.MOST_IN_RACK | ANY_RACKS << kernels.FULL_RACKS
    if not len(unplaced):
        return unplaced
    at_first = rack_excess(encoding, encoding.initial_brokers)
    while len(unplaced):
        is_free = rack_excess(encoding, state.places) < at_first
        first = np.sort(np.unique(encoding.owners[unplaced], return_index=True)[1])
        chosen = unplaced[first][is_free[encoding.owners[unplaced[first]]]]
        limits = np.where(is_free, loose, encoding.rack_limit)
        loops.fill_pass(encoding._replace(rack_limit=limits), state, chosen)
        if not (state.places[chosen] >= 0).any():
            break
        unplaced = unplaced[state.places[unplaced] < 0]
    return unplaced


def relieve(search: Search) -> None:
    """Bring brokers below their limits with as few changes as possible; replicas already away may move on."""
    state, encoding = search.state, search.encoding
    stay, crowded = np.zeros_like(encoding.may_change_leader), _in_crowds(encoding, state)
    may_lead = search.problem.partitions.may_move & search.problem.rules.leaders
    for pinned, leaders in ((encoding.pinned, stay), (crowded, stay), (crowded, may_lead)):
        if is_overfull(search):
            _relieve(encoding._replace(pinned=pinned, may_change_leader=leaders), state)
    _go_back(search)
    search.encoding = encoding._replace(pinned=encoding.pinned & (state.places == encoding.initial_brokers))


def go_back(search: Search) -> None:
    """Undo every move that neither the task nor a limit demands."""
    encoding = search.encoding
    away = (search.state.places >= 0) & (search.state.places != encoding.initial_brokers)
    if (away & _could_stay(encoding)).any():
        _go_back(search)


def is_overfull(search: Search) -> bool:
    """True if any broker is over a hard limit."""
    return bool((search.state.spare_capacity < -kernels.TINY).any())


def movable_slots(encoding: Encoding, state: State) -> tuple[SlotsByBroker, IndexArray]:
    """Movable slots by broker, and all movable slots, to draw from."""
    if not encoding.pinned.any():
        return slots_by_broker(state.places, len(encoding.racks)), np.arange(len(state.places))
    free = ~encoding.pinned
    masked = np.where(free, state.places, PINNED_NOWHERE)
    return slots_by_broker(masked, len(encoding.racks)), np.flatnonzero(free & (state.places >= 0))


def exchange_attempts(encoding: Encoding, partners: IndexArray) -> int:
    """Number of exchanges to draw per broker: at most the number of pairs, if few replicas may move."""
    return min(EXCHANGE_ATTEMPTS, len(partners) ** 2) if encoding.pinned.any() else EXCHANGE_ATTEMPTS


def undo_copies_of_start(search: Search) -> None:
    """After a start with another plan, undo copies that replace a replica which may stay."""
    encoding, state = search.encoding, search.state
    away = encoding.pinned & (state.places != encoding.initial_brokers)
    copied = (state.places >= 0) & (state.places != encoding.initial_brokers)
    heads = encoding.offsets[:-1]
    deposed = encoding.pinned[heads] & (state.leaders != heads) & (state.places[heads] != REMOVED)
    undone = deposed | (_partitions_with(encoding, away) & _partitions_with(encoding, copied))
    slots = np.flatnonzero(undone[encoding.owners])
    if len(slots):
        loops.adopt_pass(encoding, state, slots, encoding.initial_brokers[slots], heads[undone])


def _partitions_with(encoding: Encoding, slots: BoolArray) -> BoolArray:
    """Mask of partitions with one of these slots, (P,)."""
    result: BoolArray = np.bincount(encoding.owners[slots], minlength=len(encoding.offsets) - 1) > 0
    return result


def _relieve(encoding: Encoding, state: State) -> None:
    hard = by_limits(state)
    for threshold in RELIEF_THRESHOLDS:
        loops.move_pass(encoding, hard, threshold)
    for threshold in RELIEF_THRESHOLDS:
        if (hard.headroom < -kernels.TINY).any():
            by_broker, partners = movable_slots(encoding, state)
            loops.exchange_pass(encoding, hard, by_broker, partners, exchange_attempts(encoding, partners), threshold)


def _go_back(search: Search) -> None:
    encoding, state = search.encoding, search.state
    # Replicas that could have stayed come first, or one that must move would take their place.
    order = np.lexsort((-encoding.size[encoding.owners], ~_could_stay(encoding)))
    order = order[~may_stay_or_go(search.problem, encoding)[order]]
    while loops.return_pass(encoding, by_limits(state), order):
        pass
    loops.restore_leaders_pass(encoding, state)
    refresh(search.problem, encoding, state)


def _in_crowds(encoding: Encoding, state: State) -> BoolArray:
    """Mask of replicas of partitions that crowd a rack now: they could not return, as their rack is full, (S,)."""
    initial = encoding.initial_brokers
    partitions = encoding.owners[crowding(encoding, state._replace(places=initial), initial >= 0)]
    result: BoolArray = np.isin(encoding.owners, partitions) & encoding.pinned
    return result


def _could_stay(encoding: Encoding) -> BoolArray:
    """Mask of slots whose initial broker may hold replicas in the end, (S,)."""
    initial = encoding.initial_brokers
    result: BoolArray = (initial >= 0) & encoding.staying[np.maximum(initial, 0)]
    return result


def by_limits(state: State) -> State:
    """The state with hard limits as bands: only loads above them count as missed."""
    return state._replace(shortfall=np.full_like(state.shortfall, -np.inf), headroom=state.spare_capacity.copy())


# Why there is no plan: the rule, the brokers or partitions, and how much is missing.

SHOWN_EXAMPLES = 5
ROUNDING = 1e-9


def refuse_impossible(problem: Problem) -> None:
    """Raise Infeasible with all reasons that are known without a search."""
    found = list(_too_large(problem))
    if not problem.rules.leaves_rest:
        found = [*_pinned(problem), *_factors(problem), *_capacities(problem), *found, *_topic_leaders(problem)]
    if len(problem.partitions) and not (problem.brokers.staying & problem.brokers.may_lead).any():
        found.append(("leaders", "no broker is left that may lead"))
    if found:
        raise _infeasible(found)


def _pinned(problem: Problem) -> Iterator[tuple[str, str]]:
    partitions, brokers = problem.partitions, problem.brokers
    must_leave = problem.leaving
    within_reach = partitions.within_reach(brokers.is_live)[partitions.owners]
    stuck = must_leave & ~partitions.may_move[partitions.owners] & within_reach
    if stuck.any():
        ids = np.unique(brokers.ids[partitions.replicas[stuck]]).tolist()
        held = [*partitions.holds_of(np.unique(partitions.owners[stuck]))]
        for sentence in held_sentences(held):
            yield "drain", f"{named_brokers(ids)} cannot be emptied: {sentence}"
        if excluded := sorted({name.topic for name, hold in held if hold == Hold.EXCLUDED}):
            stay = " ".join(f"--may-stay {quote(re.escape(topic))}" for topic in excluded[:SHOWN_EXAMPLES])
            more = f" and {len(excluded) - SHOWN_EXAMPLES} more" if len(excluded) > SHOWN_EXAMPLES else ""
            command = f"kreassign decommission {listed_ids(ids)} {stay}"
            yield "drain", f"if these may stay on brokers that leave, take those out with `{command}`{more}"
    if must_leave.any() and not problem.rules.between_brokers:
        ids = np.unique(brokers.ids[partitions.replicas[must_leave]]).tolist()
        hold = "hold replicas and must hold none, but nothing may move between brokers"
        yield "drain", named_brokers(ids, hold)
    yield from _pinned_in_log_dirs(problem)


def _pinned_in_log_dirs(problem: Problem) -> Iterator[tuple[str, str]]:
    """Copies that must stay, in log directories to be drained of brokers that stay."""
    now, dirs = problem.partitions, problem.log_dirs
    if dirs is None or not problem.rules.between_log_dirs:
        return
    drained = (now.log_dirs != NOWHERE) & dirs.must_empty[now.log_dirs]
    stuck = drained & ~now.may_move[now.owners] & ~problem.leaving
    for place in np.unique(now.log_dirs[stuck]).tolist():
        name = f"log directory {dirs.paths[place]} of broker {problem.brokers.ids[dirs.brokers[place]]}"
        for sentence in held_sentences(now.holds_of(now.owners[stuck & (now.log_dirs == place)].tolist())):
            yield "drain", f"{name} cannot be emptied: {sentence}"


def _factors(problem: Problem) -> Iterator[tuple[str, str]]:
    """Too few brokers, or racks under the strict rule, for the wanted factor of what must change; per broker set."""
    if not problem.rules.between_brokers:
        return
    partitions, brokers, racks = problem.partitions, problem.brokers, problem.rack_of_broker
    strict = problem.rules.racks is RackRule.STRICT
    leaves = np.bincount(partitions.owners[problem.leaving], minlength=len(partitions)) > 0
    for broker_set in np.unique(partitions.broker_sets):
        members = brokers.staying & ((broker_set == NOWHERE) | (brokers.broker_sets == broker_set))
        places = len(np.unique(racks[members])) if strict else int(members.sum())
        wanted = partitions.wanted_factors
        grows = wanted > partitions.factors
        bound = grows | (problem.rules.repair_racks if strict else leaves)
        short = (partitions.broker_sets == broker_set) & (wanted > places) & bound & partitions.may_move
        if short.any():
            what = "racks" if strict else "brokers"
            where = "" if broker_set == NOWHERE else " of its broker set"
            goal = "racks" if strict else "replication factor"
            most = int(wanted[short].max())
            text = f"{counted(most, 'replica')} {agreeing(most, 'need')} as many {what}{where}, there are {places}"
            yield goal, f"{text}: {_names(problem, np.flatnonzero(short))}"


def _capacities(problem: Problem) -> Iterator[tuple[str, str]]:
    """Total loads that exceed the capacity of the remaining brokers; one above its limit may keep what it has."""
    staying = problem.brokers.staying
    for band, total, loads in zip(problem.bands, problem.totals, problem.present_loads.T, strict=True):
        room = float(np.maximum(problem.brokers.capacity_of(band.goal.name), loads)[staying].sum())
        if total > room * (1 + ROUNDING) and not band.of_log_dirs:
            load = _amount(problem, float(total), band.goal)
            count = int(staying.sum())
            stay = f"{counted(count, 'broker')} that {agreeing(count, 'stay')}"
            text = f"the load of {load} exceeds the capacity of the {stay}"
            yield band.goal.name, f"{band.goal.name}: {text} by {_amount(problem, float(total) - room, band.goal)}"


def _too_large(problem: Problem) -> Iterator[tuple[str, str]]:
    """Replicas that must be placed, and are larger than any disk that may take them."""
    partitions, brokers, dirs = problem.partitions, problem.brokers, problem.log_dirs
    if not problem.rules.between_brokers or problem.may_leave:
        return
    room, place = brokers.capacity_of(DISK.name).astype(np.float64), "disk"
    if dirs is not None:
        largest, place = np.where(np.isin(np.arange(len(brokers)), dirs.brokers), 0.0, np.inf), "log directory"
        np.maximum.at(largest, dirs.brokers, np.where(dirs.may_receive & ~dirs.must_empty, dirs.capacity_bytes, 0.0))
        room = np.minimum(room, largest)
    stays = ~problem.leaving
    kept = np.bincount(partitions.owners[stays], minlength=len(partitions))
    placed = (kept < partitions.wanted_factors) & partitions.may_move
    placed &= partitions.size_bytes > room[brokers.receiving & (room > 0)].min(initial=np.inf)
    for partition in np.flatnonzero(placed).tolist():
        broker_set = partitions.broker_sets[partition]
        allowed = brokers.receiving & ((broker_set == NOWHERE) | (brokers.broker_sets == broker_set))
        allowed[partitions.list_of(partition)[stays[partitions.span(partition)]]] = False
        size = float(partitions.size_bytes[partition])
        if 0 < (most := float(room[allowed].max(initial=0.0))) < size:
            amounts = _amount(problem, size, DISK), _amount(problem, most, DISK)
            text = "a replica of {} is larger than any {} that may take it; the largest may hold {}"
            yield DISK.name, f"{partitions.name(partition)}: {text.format(amounts[0], place, amounts[1])}"


def _topic_leaders(problem: Problem) -> Iterator[tuple[str, str]]:
    brokers, partitions = problem.brokers, problem.partitions
    if not problem.rules.may_change_leaders:
        return
    leading = int((brokers.staying & brokers.may_get_leaders).sum())
    for topic, least in sorted(problem.rules.least_topic_leaders.items()):
        index = partitions.topic_names.index(topic) if topic in partitions.topic_names else NOWHERE
        if few := too_few_partitions(topic, int((partitions.topics == index).sum()), least, leading):
            yield "leaders of a topic", few


def refuse_unplaced(problem: Problem, encoding: Encoding, state: State, slots: IndexArray) -> None:
    """Raise Infeasible for replicas that must move and have no possible broker."""
    reasons = dict.fromkeys(_why_unplaced(problem, encoding, state, int(slot)) for slot in slots[:SHOWN_EXAMPLES])
    missing = int(problem.partitions.size_bytes[encoding.owners[slots]].sum())
    names = _names(problem, np.unique(encoding.owners[slots]))
    raise Infeasible(
        f"{counted(len(slots), 'replica')} ({format_amount(missing, 'B')}) must be placed and no broker may take them: "
        f"{names}; " + "; ".join((*(sentence for _, sentence in reasons), *_closed(problem))),
        goals=tuple(dict.fromkeys(goal for goal, _ in reasons)),
    )


def _closed(problem: Problem) -> Iterator[str]:
    """Each broker that stays and receives nothing, with the reason."""
    brokers = problem.brokers
    for place in np.flatnonzero(brokers.staying & (brokers.closures != Closure.NONE)).tolist():
        closure = Closure(int(brokers.closures[place]))
        yield f"broker {brokers.ids[place]} takes none: {closure.why}; {closure.remedy}"


def _why_unplaced(problem: Problem, encoding: Encoding, state: State, slot: int) -> tuple[str, str]:
    """The first rule, in the order in which they narrow the choice, that leaves no broker."""
    partition = encoding.owners[slot]
    others = state.places[encoding.offsets[partition] : encoding.offsets[partition + 1]]
    others, lost = others[others >= 0], encoding.lost_on[encoding.offsets[partition] : encoding.offsets[partition + 1]]
    leads = state.leaders[partition] == slot
    load = encoding.loads[2 * partition + (not leads)]
    left = encoding.receiving.copy()
    broker_set = encoding.partition_sets[partition]
    of_set = (encoding.broker_sets == broker_set) | (broker_set == NOWHERE)
    used = np.bincount(encoding.racks[others], minlength=int(encoding.racks.max()) + 1)
    has_room = used < rack_limits(encoding).of(partition, used)
    rooms = [column for column, band in enumerate(problem.bands) if band.of_log_dirs]
    without_directory = (load[rooms] > state.spare_capacity[:, rooms] + kernels.TINY).any(axis=1)
    for rule, allowed, sentence in (
        ("receivers", encoding.receiving, "no broker may receive replicas"),
        ("broker sets", of_set, "none of its broker set may receive"),
        ("leaders", (encoding.lead_ranks[: len(left)] < NO_RANK) | (not leads), "none of the receivers may lead"),
        ("distinct brokers", ~np.isin(np.arange(len(left)), others), "every receiver holds a replica of it already"),
        (
            "log directories",
            ~np.isin(np.arange(len(left)), lost) & ~without_directory,
            "every other receiver has lost its copy of it, or none of its log directories has room for it",
        ),
        ("racks", has_room[encoding.racks], "every receiver is in a rack that has as many as may share one"),
    ):
        left &= allowed
        if not left.any():
            return rule, sentence
    short = np.maximum(load - state.spare_capacity[left], 0.0) / np.maximum(load, ROUNDING)
    goal = problem.bands[int(short.min(axis=0).argmax())].goal
    return goal.name, f"no receiver has enough {goal.name} left"


def refuse_overfull(problem: Problem, encoding: Encoding, state: State) -> None:
    """Raise Infeasible if brokers rise above their capacity although no budget limits the plan."""
    if problem.budget != Budget() or not problem.rules.between_brokers:
        return
    found: list[tuple[str, str]] = []
    scale = scales(problem)
    for column, (band, loads) in enumerate(zip(problem.bands, problem.present_loads.T, strict=True)):
        spare = state.spare_capacity[:, column].copy()
        if not problem.rules.only_forced:  # else `encode` has left out what was above a limit before
            room = problem.brokers.capacity_of(band.goal.name)
            spare += np.maximum(loads - room, 0.0) * scale[column]
        over = np.flatnonzero((spare < -ROUNDING) & encoding.staying)
        if len(over):
            limit = problem.brokers.capacity_of(band.goal.name)[over]
            unit = problem.totals[column] / max(1, int(encoding.staying.sum())) / band.weight
            excess = ", ".join(
                f"broker {problem.brokers.ids[broker]} by {_amount(problem, by, band.goal)} of "
                f"{_amount(problem, room, band.goal)}"
                for broker, by, room in zip(
                    over[:SHOWN_EXAMPLES], (-spare[over] * unit).tolist(), limit.tolist(), strict=False
                )
            )
            found.append((band.goal.name, f"{band.goal.name}: no plan was found that keeps within capacity: {excess}"))
    if found:
        raise _infeasible(found)


def refuse_few_leaders(problem: Problem, state: State) -> None:
    """Raise Infeasible if brokers lead too few partitions of a topic, unless the plan may leave that."""
    if not problem.may_leave and (found := list(_few_leaders(problem, state))):
        raise _infeasible(found[:SHOWN_EXAMPLES])


def _few_leaders(problem: Problem, state: State) -> Iterator[tuple[str, str]]:
    brokers, partitions = problem.brokers, problem.partitions
    follows = np.arange(len(partitions.replicas)) != partitions.offsets[partitions.owners]
    for topic, least in sorted(problem.rules.least_topic_leaders.items()):
        its = np.flatnonzero(np.array([name == topic for name in partitions.topic_names])[partitions.topics])
        hosts = state.places[state.leaders[its]]
        led = np.bincount(hosts[hosts >= 0], minlength=len(brokers))
        before = np.bincount(partitions.replicas[partitions.offsets[:-1][its]], minlength=len(brokers))
        demanded = np.full_like(led, least) if problem.rules.may_change_leaders else np.minimum(least, before)
        for broker in np.flatnonzero((led < demanded) & brokers.staying & brokers.may_get_leaders).tolist():
            leads = counted(int(led[broker]), "partition")
            behind = partitions.owners[partitions.lags & follows & (partitions.replicas == broker)]
            lags = lagging_copies([partitions.name(one) for one in behind[np.isin(behind, its)].tolist()])
            few = f"broker {brokers.ids[broker]} leads {leads} of topic {topic}, not {least}{lags}"
            yield "leaders of a topic", f"no plan was found in which every broker leads enough of a topic: {few}"


def _infeasible(found: list[tuple[str, str]]) -> Infeasible:
    return Infeasible(
        "no plan keeps the rules:\n" + "\n".join(f"  - {sentence}" for _, sentence in found),
        goals=tuple(dict.fromkeys(goal for goal, _ in found)),
    )


def _names(problem: Problem, partitions: npt.NDArray[np.signedinteger]) -> str:
    return first_names([problem.partitions.name(one) for one in np.unique(partitions).tolist()])


def _amount(problem: Problem, value: float, goal: Goal) -> str:
    return format_amount(value, problem.unit_of(goal.name))
