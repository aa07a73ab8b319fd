"""Choose the node for a call, and retry after failures.

The rules of retrying live here only:

- never sent (`Unreachable`): retry until the deadline, at another node where any will do; a read gives up on a
  broker that the cluster does not list;
- sent, no answer (`OutcomeUnknown`): retry a read, elsewhere if possible; never a write;
- a change that needs a confirmation: confirmed before each time that it is sent, and not sent without;
- NOT_CONTROLLER: nothing was done, so look the controller up again and ask it;
- a listing of reassignments at a controller: an inactive one answers without an error, from what it has read, so first
  ask the controller that is named whether it is the active one;
- no node of the cluster answers for some seconds: the call fails, however much of its time is left;
- a brief read that its node has not answered for some seconds: look for other nodes, which tells a cluster that is
  silent from a node that hangs;
- bootstrap addresses share the time of one connection: each is asked beside those before it that are silent, and who is
  waited for is logged after some seconds;
- a bootstrap address that is no Kafka, or speaks no TLS: ask the next one, and warn of this one by its name;
- an address that a node named and that this client never reached: given up after some seconds (at once
  if its name does not resolve), with who named it;
- the controller cannot be reached or hangs: by the same two rules ask another broker. With KRaft, brokers name any
  broker as the controller, also one that hangs, and all forward the call; with ZooKeeper others say NOT_CONTROLLER;
- a partition whose leader has just changed: ask again about it alone;
- a node of another cluster at a known address: `Unreachable`, and nothing is sent to it;
- no broker, no topic, no topic of a name that was asked for, or no reassignment: nodes that have not read the metadata
  answer so too, or forward to one that has not, so another node is asked, once;
- NOT_COORDINATOR and similar codes: nothing was done, so look the group's coordinator up again and ask it;
- anything else is the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from enum import Enum
from functools import cached_property, partial
from threading import Lock, RLock, Thread
from typing import TypeVar

from kreassign.admin.call import Call, reading_answer
from kreassign.admin.sasl import principal_of
from kreassign.admin.settings import Address, ClientSettings, check_timeout
from kreassign.admin.tls import NoTls
from kreassign.admin.tokens import NoToken
from kreassign.admin.translate import cluster as cluster_calls
from kreassign.admin.translate import groups as group_calls
from kreassign.admin.transport import ClusterIdentity, Link, NoHost, Transport
from kreassign.clock import Clock
from kreassign.errors import (
    ClusterError,
    OutcomeUnknown,
    ProtocolViolation,
    Rejected,
    Unauthenticated,
    Unreachable,
    Unsupported,
)
from kreassign.model import Batch, Broker, Cluster, error_codes
from kreassign.model.cluster import listed_ids
from kreassign.model.requests import join
from kreassign.model.text import by_reason, some_of
from kreassign.wire.api import Message

Answer = TypeVar("Answer")
Key = TypeVar("Key", bound=Hashable)
Node = TypeVar("Node", bound=Hashable)

_FAN_OUT_THREADS = 64
# Long enough for a listener that is just starting; a cluster that is down must be reported as down.
_BOOTSTRAP_PATIENCE_S = 5.0
# A node that dies is listed for some seconds more; a wrong advertised listener stays wrong.
_ADVERTISED_PATIENCE_S = 8.0
# Silence that is not explained looks like a command that hangs.
_SILENT_S = 2.0
# Known nodes answer soon or are gone: so long they are asked in turn, to notice soon that all are.
_LOOK_AGAIN_S = 5.0
# A node that is far away or busy answers by then, also on a new connection.
_KNOWN_TRY_S = 3.0
# A node that has not answered a brief read by then hangs, or the cluster does.
_BRIEF_S = 5.0
# Brokers learn of a new leader one by one, and the leader itself learns its followers' offsets last (KIP-207).
_LEADER_CHANGED = frozenset(
    {error_codes.LEADER_NOT_AVAILABLE, error_codes.NOT_LEADER_OR_FOLLOWER, error_codes.OFFSET_NOT_AVAILABLE}
)
# A coordinator moves with the leader of its partition of __consumer_offsets, and reads that log before answering.
_COORDINATOR_CHANGED = (
    error_codes.COORDINATOR_LOAD_IN_PROGRESS,
    error_codes.COORDINATOR_NOT_AVAILABLE,
    error_codes.NOT_COORDINATOR,
)
# A coordinator that hangs must leave time to find its successor.
_LEAST_TRY_S = 1.0
# Another address would not behave differently towards the same client, but may be a listener of Kafka.
_NO_LISTENER = (ProtocolViolation, NoTls, Unsupported)

log = logging.getLogger(__name__)


class NoNode(Unreachable):
    """No known address of the cluster answers."""


class To(Enum):
    """Nodes without a fixed id; brokers are addressed by id."""

    ANY = "any node"
    CONTROLLER = "the controller"


Target = To | int
Tries = Generator[tuple[Address, Cluster | ClusterError], None, None]
"""Addresses in the order of their answers, and why another one should be asked."""


class Session:
    """The known nodes of one cluster and the links to them. Safe for use by several threads."""

    def __init__(self, settings: ClientSettings, transport: Transport, clock: Clock) -> None:
        self.settings = settings
        self._transport = transport
        self._clock = clock
        self._lock = Lock()
        self._confirming = RLock()  # Threads of one call confirm in turn; a confirmation may ask through this session.
        self._links: dict[Address, Link] = {}
        self._searching = Lock()
        self._tried: set[Link] = set()
        self._cluster: Cluster | None = None
        self._named_by: Address | None = None
        self._doubted: Address | None = None
        self._identity = ClusterIdentity()
        self._look_up = cluster_calls.controller_nodes() if self.talks_to_controllers else cluster_calls.nodes()
        self._coordinators: dict[str, int] = {}
        self._is_closed = False

    @cached_property
    def principal(self) -> str | None:
        """The client's principal, by Kafka's own rules; None if only the brokers know it."""
        return principal_of(self.settings)

    def call(self, call: Call[Answer], target: Target, timeout_ms: int | None = None) -> Answer:
        """Make a call within the deadline (default `settings.api_timeout_ms`), by the rules of this module."""
        deadline = self._deadline(timeout_ms)
        first, link = self._answered(call, target, deadline, set())
        if not call.is_doubtful(first) or self._is_late(deadline):
            return first
        try:
            second, _ = self._answered(call, target, deadline, {link.address}, is_first=False)
        except (Unreachable, OutcomeUnknown):
            raise
        except ClusterError:
            # With ZooKeeper, others refuse what the controller itself has answered; one without TLS says nothing.
            return first
        return call.join(first, second)

    def _answered(
        self, call: Call[Answer], target: Target, deadline: float, avoid: set[Address], *, is_first: bool = True
    ) -> tuple[Answer, Link]:
        """The answer of a node, and its link; `avoid` has those that are asked only if there is no other."""
        unreached: set[Address] = set()
        has_looked_afresh = False
        failure: ClusterError | None = None
        self._known_cluster(deadline)  # Report a cluster that cannot be reached at once.
        give_up = self._clock.monotonic_s() + _ADVERTISED_PATIENCE_S
        while True:
            link: Link | None = None
            try:
                link = self._route(call, target, avoid, deadline)
                self._confirm(call)
                longest_s = _BRIEF_S if call.is_brief and not has_looked_afresh else self._request_timeout_s
                timeout_s = min(self._remaining_s(deadline), self._request_timeout_s, longest_s)
                response = link.exchange(call, timeout_s, self._connect_timeout_s(link))
                if not is_first or not _is_wrong_controller(call, response):
                    # REQUEST_TIMED_OUT for all of it is an OutcomeUnknown, too.
                    return self._read(call, response), link
            except (Unreachable, OutcomeUnknown) as caught:
                error: ClusterError = caught
                is_over = isinstance(error, NoNode)
                if link is not None and self._is_elsewhere(link):
                    unreached.add(link.address)
                    is_vain = isinstance(error, NoHost) or self._is_late(give_up)
                    is_over = is_vain and (isinstance(target, int) or self._are_all(unreached))
                    error = self._named_in_vain(link.address, error)
                self._forget_nodes()  # Also for the next call: the metadata named the node that does not answer.
                # Stop reading from a broker that fresh metadata does not list either; keep trying a change.
                is_absent = link is None and isinstance(target, int) and has_looked_afresh and not call.is_write
                if is_over or is_absent or not self._may_ask_again(call, target, error, deadline):
                    # A last try cut short by the deadline says less than the failure before it.
                    if failure is not None and isinstance(error, Unreachable) and self._is_late(deadline):
                        raise failure from error
                    raise error from caught.__cause__
                failure = error
                if link is not None:
                    avoid.add(link.address)
            else:
                if self._is_late(deadline):
                    if failure is not None:
                        raise failure  # Nothing can replace the controller itself.
                    return self._read(call, response), link
                self._forget_nodes()
                avoid.clear()
            has_looked_afresh = True
            self._clock.sleep(self._backoff_s)

    def _read(self, call: Call[Answer], response: Message) -> Answer:
        with reading_answer(call.api, self.principal):
            return call.read(response)

    def _confirm(self, call: Call[Answer]) -> None:
        if call.confirm is not None:
            with self._confirming:
                call.confirm()

    def _may_ask_again(self, call: Call[Answer], target: Target, error: ClusterError, deadline: float) -> bool:
        if isinstance(error, OutcomeUnknown) and call.is_write:
            return False
        # A broker that hangs costs one timeout, not several in a row until the deadline.
        if isinstance(target, int) and _timed_out(error):
            return False
        return not self._is_closed and not self._is_late(deadline)

    def fan_out(
        self, keys: Iterable[Key], ask: Callable[[Key], Answer]
    ) -> tuple[dict[Key, Answer], dict[Key, ClusterError]]:
        """Ask about all keys, in parallel where that is quicker; a failed key does not affect the others."""
        wanted = list(dict.fromkeys(keys))
        if len(wanted) <= 1 or self._transport.takes_turns:
            return _collected({key: partial(ask, key) for key in wanted})
        with ThreadPoolExecutor(min(len(wanted), _FAN_OUT_THREADS)) as threads:
            return _collected({key: threads.submit(ask, key).result for key in wanted})

    def fan_out_batch(self, keys: Iterable[Key], ask: Callable[[Key], Answer]) -> Batch[Key, Answer]:
        """`fan_out` as a batch."""
        return Batch(*self.fan_out(keys, ask))

    def fan_out_groups(
        self, groups: Mapping[Node, list[Key]], ask: Callable[[Node, list[Key]], Batch[Key, Answer]]
    ) -> Batch[Key, Answer]:
        """Ask each node about its keys; if a node does not answer, its keys fail with its error."""
        answers, errors = self.fan_out(groups, lambda node: ask(node, groups[node]))
        silent = {key: error for node, error in errors.items() for key in groups[node]}
        return join([*answers.values(), Batch({}, silent)])

    def ask_leaders(
        self, keys: Iterable[Key], ask: Callable[[Iterable[Key]], Batch[Key, Answer]], timeout_ms: int | None
    ) -> Batch[Key, Answer]:
        """Ask leaders about partitions; within the deadline ask again about those whose leader has just changed."""
        deadline = self._deadline(timeout_ms)
        found = ask(keys)
        while (changed := _leader_changed(found)) and not self._is_late(deadline):
            self._clock.sleep(self._backoff_s)
            kept = {key: error for key, error in found.failed.items() if key not in changed}
            found = join([Batch(found.ok, kept), ask(changed)])
        return found

    def ask_coordinator(self, group_id: str, call: Call[Answer], timeout_ms: int | None = None) -> Answer:
        """Make a call at a group's coordinator; within the deadline try again if the coordinator has just changed.

        Each try gets half of the time left.
        """
        deadline = self._deadline(timeout_ms)
        while True:
            try_ms = round(max(self._remaining_s(deadline) / 2, _LEAST_TRY_S) * 1000)
            try:
                if group_id not in self._coordinators:
                    self._coordinators[group_id] = self.call(group_calls.find_coordinator(group_id), To.ANY, try_ms)
                return self.call(call, self._coordinators[group_id], try_ms)
            except (Rejected, Unreachable, OutcomeUnknown) as error:
                is_elsewhere = error_codes.has_code(error, *_COORDINATOR_CHANGED)
                if not is_elsewhere and (
                    isinstance(error, (Rejected, NoNode)) or (call.is_write and isinstance(error, OutcomeUnknown))
                ):
                    raise
                self._coordinators.pop(group_id, None)
                if self._is_closed or self._is_late(deadline):
                    raise
            self._clock.sleep(self._backoff_s)

    @property
    def talks_to_controllers(self) -> bool:
        """True if the client was given bootstrap controllers instead of brokers."""
        return bool(self.settings.bootstrap_controllers)

    def expect_cluster(self, cluster_id: str) -> None:
        """Refuse every node of another cluster. Raises InputError if the client already used one."""
        self._identity.expect(cluster_id)

    def close(self) -> None:
        """Close all connections; ongoing calls of other threads fail, and so do later ones."""
        with self._lock:
            self._is_closed = True
            links, self._links = [*self._links.values(), *self._tried], {}
        for link in links:
            link.close()

    # --- where to ---------------------------------------------------------------------------------------------

    def _route(self, call: Call[Answer], target: Target, avoid: set[Address], deadline: float) -> Link:
        cluster = self._known_cluster(deadline)
        # With controllers, the active one takes every request; any broker takes topic and cluster requests.
        if self.talks_to_controllers and call.is_answered_by_inactive_controllers:
            return self._active_controller(cluster, deadline)
        if self.talks_to_controllers:
            target = cluster.controller_id
        elif target is To.CONTROLLER:
            named = cluster.broker(cluster.controller_id)
            hangs = named is not None and Address(named.host, named.port) in avoid
            target = To.ANY if hangs else cluster.controller_id
        if isinstance(target, int) and target >= 0:
            broker = cluster.broker(target)
            if broker is None:
                listed = listed_ids(cluster.broker_ids)
                self._doubted = self._named_by  # It may lag: ask another node next.
                raise Unreachable(f"broker {target} is not among those that the cluster lists ({listed})")
            return self._link(Address(broker.host, broker.port), target)
        return self._any_link(cluster.brokers, avoid)

    def _active_controller(self, cluster: Cluster, deadline: float) -> Link:
        """The link to the controller that names itself active; one that others name may be inactive since."""
        while True:
            named = cluster.broker(cluster.controller_id)
            if named is None:
                self._forget_nodes()
                raise Unreachable("no controller of the quorum is active; ask again once it has elected one")
            link = self._link(Address(named.host, named.port))
            found = self._asked_who_is_there(link, min(self._remaining_s(deadline), self._request_timeout_s))
            if not isinstance(found, Cluster):
                raise found
            self._cluster = cluster = found
            if cluster.controller_id == named.id:
                return link
            self._clock.sleep(self._backoff_s)

    def _any_link(self, brokers: tuple[Broker, ...], avoid: set[Address]) -> Link:
        addresses = [Address(broker.host, broker.port) for broker in brokers] or list(self.settings.bootstrap)
        # Idle open links come first, links that just failed last.
        addresses.sort(key=lambda address: (address in avoid, *self._delay(address)))
        return self._link(addresses[0])

    def _delay(self, address: Address) -> tuple[bool, bool]:
        """Sort key of the delay of a call to this address: another call in flight, or connecting first."""
        link = self._links.get(address)
        return (False, True) if link is None else (link.is_busy, not link.is_open)

    def _link(self, address: Address, node_id: int | None = None) -> Link:
        """The link to this address, for the node that is listed there; None if any node will do."""
        with self._lock:
            if self._is_closed:
                raise Unreachable("the client is closed")
            if address not in self._links:
                self._links[address] = self._new_link(address)
            self._links[address].node_id = node_id
            return self._links[address]

    def _new_link(self, address: Address) -> Link:
        return Link(address, self._transport, self.settings.client_id, self._clock, self._identity, self._look_up)

    def _keep(self, link: Link) -> None:
        with self._lock:
            kept = self._links.setdefault(link.address, link)
        if kept is not link:
            link.close()

    def _known_cluster(self, deadline: float) -> Cluster:
        cluster = self._cluster
        if cluster is not None:
            return cluster
        if self._named_by is not None:
            self._cluster = cluster = self._discover(deadline)
            return cluster
        # Threads that begin at the same time need one search and one connection.
        if not self._searching.acquire(timeout=max(0.0, deadline - self._clock.monotonic_s())):
            raise Unreachable("no time is left to ask the cluster")
        try:
            self._cluster = cluster = self._cluster or self._discover(deadline)
            return cluster
        finally:
            self._searching.release()

    def _forget_nodes(self) -> None:
        self._cluster = None

    # --- addresses that nodes name ----------------------------------------------------------------------------

    def _is_elsewhere(self, link: Link) -> bool:
        """True if the address was named by another one and never reached."""
        return not link.was_reached and self._named_by not in {None, link.address}

    def _connect_timeout_s(self, link: Link) -> float | None:
        """Share the time for addresses that were never reached among them, so that each gets a try."""
        cluster = self._cluster
        if cluster is None or not self._is_elsewhere(link):
            return None
        return max(_ADVERTISED_PATIENCE_S / max(len(cluster.brokers), 1), _LEAST_TRY_S)

    def _are_all(self, unreached: set[Address]) -> bool:
        cluster = self._cluster
        return cluster is None or {Address(broker.host, broker.port) for broker in cluster.brokers} <= unreached

    def _named_in_vain(self, address: Address, error: ClusterError) -> ClusterError:
        if not isinstance(error, Unreachable):
            return error
        named = Unreachable(
            f"{self._named_by} answered and tells clients to go to {address}, which cannot be reached: {error}. Check "
            "advertised.listeners of that broker, and that this name and port lead there from here"
        )
        named.__cause__ = error
        return named

    def _discover(self, deadline: float) -> Cluster:
        """Ask the known addresses, bootstrap last, until one describes the cluster."""
        begun_s = self._clock.monotonic_s()
        give_up = min(deadline, begun_s + _BOOTSTRAP_PATIENCE_S)
        failures: dict[Address, ClusterError] = {}
        while True:
            addresses = [one for one in self._addresses() if not isinstance(failures.get(one), _NO_LISTENER)]
            with closing(self._tries(addresses, begun_s, deadline)) as tries:
                for address, found in tries:
                    if isinstance(found, Cluster):
                        if self._named_by is None and failures:
                            log.warning("passed over: %s", _texts(failures))
                        self._named_by = address
                        return found
                    failures.setdefault(address, found)  # The first try had the most time.
            self._raise_if_vain(failures, give_up)
            self._clock.sleep(self._backoff_s)

    def _tries(self, addresses: list[Address], begun_s: float, deadline: float) -> Tries:
        if self._named_by is None:
            longest_s = self.settings.connect_timeout_ms / 1000
            end_s = min(begun_s + max(longest_s, _BOOTSTRAP_PATIENCE_S), self._clock.monotonic_s() + longest_s)
            return self._tries_side_by_side(addresses, min(deadline, end_s))
        return self._tries_in_turn(addresses, deadline)

    def _tries_in_turn(self, addresses: list[Address], deadline: float) -> Tries:
        """Ask known nodes until the time is over, then only bootstrap addresses; the silent come last next time."""
        end_s = self._clock.monotonic_s() + _LOOK_AGAIN_S
        for number, address in enumerate(addresses):
            now_s = self._clock.monotonic_s()
            timeout_s = min(deadline - now_s, max((end_s - now_s) / (len(addresses) - number), _KNOWN_TRY_S))
            if number and (timeout_s <= 0 or (now_s >= end_s and address not in self.settings.bootstrap)):
                continue
            found = self._asked_who_is_there(self._link(address), timeout_s)
            if not isinstance(found, Cluster):
                with self._lock:
                    if address in self._links:  # A client that is being closed has none.
                        self._links[address] = self._links.pop(address)
            yield address, found

    def _tries_side_by_side(self, addresses: list[Address], end_s: float) -> Tries:
        """Ask each address beside those before it that are silent, so that all of them share the time until `end_s`.

        Links are of this search alone: to end them disturbs no call. The one that answers is kept.
        """
        begun_s = self._clock.monotonic_s()
        todo, waiting, has_told = [*addresses], dict[Future[Cluster | ClusterError], Link](), False
        asked_s: dict[Link, float] = {}
        try:
            while todo or waiting:
                if todo:
                    link = self._new_link(todo.pop(0))
                    self._tried.add(link)
                    asked_s[link] = self._clock.monotonic_s()
                    waiting[self._asked_aside(link, end_s)] = link
                left_s = end_s - self._clock.monotonic_s()
                done, _ = wait(waiting, max(0.0, min(_LEAST_TRY_S, left_s / (len(todo) + 1))), FIRST_COMPLETED)
                answers = [(waiting.pop(future), future.result()) for future in done]
                is_over = not todo and not done and (left_s <= 0 or self._is_closed)
                if is_over or any(isinstance(found, Cluster) for _, found in answers):
                    now_s = self._clock.monotonic_s()
                    for link in waiting.values():
                        late = (
                            f"did not answer within {now_s - asked_s[link]:.1f} s"
                            if is_over
                            else "has not answered yet"
                        )
                        answers.append((link, Unreachable(f"{link.address} {late}")))
                    waiting.clear()
                    todo.clear()
                for link, found in sorted(answers, key=lambda answer: isinstance(answer[1], Cluster)):
                    if isinstance(found, Cluster):
                        self._tried.discard(link)
                        self._keep(link)
                    yield link.address, found
                if waiting and not has_told and self._clock.monotonic_s() - begun_s >= _SILENT_S:
                    has_told = True
                    named = ", ".join(str(link.address) for link in waiting.values())
                    log.warning(
                        "waiting up to %.0f s more for an answer of %s", end_s - self._clock.monotonic_s(), named
                    )
        finally:
            while self._tried:
                self._tried.pop().close()

    def _asked_aside(self, link: Link, end_s: float) -> Future[Cluster | ClusterError]:
        future: Future[Cluster | ClusterError] = Future()

        def ask() -> None:
            try:
                future.set_result(self._asked_who_is_there(link, end_s - self._clock.monotonic_s()))
            except BaseException as error:  # noqa: BLE001 (raised by whoever takes the result)
                future.set_exception(error)

        if self._transport.takes_turns:
            ask()
        else:
            # Not awaited at the end of the process: an address may take the whole time of a connection.
            Thread(target=ask, daemon=True).start()
        return future

    def _raise_if_vain(self, failures: Mapping[Address, ClusterError], give_up: float) -> None:
        first, *_ = failures.values()
        if all(isinstance(failures.get(address), _NO_LISTENER) for address in self._addresses()):
            raise type(first)(_texts(failures)) from first
        if self._is_closed or self._is_late(give_up):
            for error in failures.values():
                if isinstance(error, NoToken):
                    raise error  # The token issuer failed, not the cluster.
            raise NoNode(
                f"no node of the cluster can be reached: {_texts(failures)}. Check the addresses, that the brokers are "
                "up, and that security.protocol of the client properties, PLAINTEXT by default, fits the listener"
            )

    def _asked_who_is_there(self, link: Link, timeout_s: float) -> Cluster | ClusterError:
        """The cluster as this node describes it, or why another address should be asked. Raises other failures."""
        try:
            response = link.exchange(self._look_up, timeout_s)
            found = self._read(self._look_up, response)
            self._identity.check(link.address, found.cluster_id)
        except ClusterError as error:
            link.close()  # Opened before the cluster was known: a new connection must report its cluster id.
            is_refusal = isinstance(error, Rejected) and not error.retriable
            if is_refusal or (isinstance(error, Unauthenticated) and not isinstance(error, NoTls)):
                raise  # Other nodes would say the same; a wrong password tried at each may lock the account.
            return error
        return found

    def _addresses(self) -> list[Address]:
        with self._lock:
            known = sorted(self._links, key=self._delay)
        addresses = dict.fromkeys([*known, *self.settings.bootstrap])
        return sorted(addresses, key=lambda address: address == self._doubted)

    # --- how long ---------------------------------------------------------------------------------------------

    @property
    def _backoff_s(self) -> float:
        return self.settings.retry_backoff_ms / 1000

    @property
    def _request_timeout_s(self) -> float:
        return self.settings.request_timeout_ms / 1000

    def _deadline(self, timeout_ms: int | None) -> float:
        if timeout_ms is not None:
            check_timeout("timeout_ms", timeout_ms)
        return self._clock.monotonic_s() + (self.settings.api_timeout_ms if timeout_ms is None else timeout_ms) / 1000

    def _is_late(self, deadline: float) -> bool:
        """True if the pause before another try would end after the deadline."""
        return self._clock.monotonic_s() + self._backoff_s >= deadline

    def _remaining_s(self, deadline: float) -> float:
        remaining = deadline - self._clock.monotonic_s()
        if remaining <= 0:
            raise Unreachable("no time is left to ask the cluster")
        return remaining


def _collected(
    results: Mapping[Key, Callable[[], Answer]],
) -> tuple[dict[Key, Answer], dict[Key, ClusterError]]:
    answers: dict[Key, Answer] = {}
    errors: dict[Key, ClusterError] = {}
    for key, result in results.items():
        try:
            answers[key] = result()
        except ClusterError as error:
            errors[key] = error
    return answers, errors


def _is_wrong_controller(call: Call[Answer], response: Message) -> bool:
    with reading_answer(call.api):
        return error_codes.NOT_CONTROLLER in call.routing_codes(response)


_ADDRESSES = "\0"
"""Stands for the address of a failure where its text is compared with others."""
_NAMED_ADDRESSES = 5


def _texts(failures: Mapping[Address, ClusterError]) -> str:
    """The failures, each once with the addresses that it is of, in one text."""
    alike = by_reason(
        (str(address), str(error).replace(str(address), _ADDRESSES)) for address, error in failures.items()
    )
    named = ((some_of(addresses, _NAMED_ADDRESSES), text) for text, addresses in alike.items())
    return "; ".join(
        text.replace(_ADDRESSES, where) if _ADDRESSES in text else f"{where}: {text}" for where, text in named
    )


def _leader_changed(found: Batch[Key, Answer]) -> list[Key]:
    return [key for key, error in found.failed.items() if error_codes.has_code(error, *_LEADER_CHANGED)]


def _timed_out(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, TimeoutError):
            return True
        error = error.__cause__
    return False
