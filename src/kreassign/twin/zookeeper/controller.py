"""The controller in ZooKeeper mode: executes requests of clients, requests in znodes, and reports of brokers.

It moves partitions by the phases in `decisions`, writes only while its epoch is the latest, and takes over from the
znodes alone. `Delivery` sends its messages to the brokers of the twin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from kreassign.errors import ControllerMoved, DamagedZnode, StaleZnode
from kreassign.model import ConfigResource, ElectionType, OngoingReassignment, TopicPartition
from kreassign.model.error_codes import NO_REASSIGNMENT_IN_PROGRESS, UNSUPPORTED_VERSION
from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import find_poison, format_reassignments, parse_election, parse_reassignments
from kreassign.twin.access import HostPort
from kreassign.twin.controller.decision import Decision, Outcome, with_default_text
from kreassign.twin.controller.leader_and_isr import ElectLeaders, LeadersElected, elect_leaders
from kreassign.twin.controller.reassignments import AlterReassignments, ReassignmentsAltered
from kreassign.twin.controller.topics import CreatePartitions, CreateTopics, TopicCreation, created_partition
from kreassign.twin.core import KRaftController, TwinCore
from kreassign.twin.metadata import (
    BrokerFenced,
    BrokerUnfenced,
    ConfigChanged,
    PartitionChanged,
    PartitionCreated,
    Record,
    TopicCreated,
    TopicDeleted,
)
from kreassign.twin.zookeeper import control_requests, decisions
from kreassign.twin.zookeeper.znodes import Delete, Registrations, Set, ZooKeeperLog

# Topics that tools create, extend and delete by writing znodes, as `kafka-topics --zookeeper` of Kafka 2.8 does.


class TopicWatcher:
    """Watches `/brokers/topics` and `/admin/delete_topics`. `notes` collects unreadable znodes."""

    def __init__(self, core: TwinCore, log: ZooKeeperLog, notes: list[str]) -> None:
        self._core = core
        self._log = log
        self._notes = notes

    def process_changes(self) -> None:
        """Process new writes to these znodes."""
        self._delete_as_wanted()
        self._follow_names()
        self._create_what_is_new()

    def _delete_as_wanted(self) -> None:
        """Delete the named topics; entries of unknown topics are just removed."""
        znodes = self._log.znodes
        if not znodes.watch(paths.DELETE_TOPICS):
            return
        for name in znodes.children(paths.DELETE_TOPICS):
            if name in self._core.metadata.topics:
                self._core.commit(Decision((TopicDeleted(name),), None))
            self._log.write((Delete(f"{paths.DELETE_TOPICS}/{name}"),))

    def _follow_names(self) -> None:
        """Read new and changed topics, and forget topics whose znode was deleted by hand."""
        znodes, cache = self._log.znodes, self._log.cache
        if znodes.watch(paths.TOPICS):
            names = znodes.children(paths.TOPICS)
            for gone in sorted(cache.topics.keys() - set(names)):
                cache.forget_topic(gone)
                if gone in self._core.metadata.topics:
                    self._core.apply((TopicDeleted(gone),))
            self._read(name for name in names if name not in cache.topics)
        self._read(name for name in sorted(cache.topics) if znodes.watch(paths.topic_path(name)))

    def _read(self, names: Iterable[str]) -> None:
        for name in list(names):
            try:
                self._log.cache.read_topic(self._log.znodes, name)
            except DamagedZnode as error:
                self._notes.append(str(error))

    def _create_what_is_new(self) -> None:
        """Elect leaders of new partitions with a replica on an active broker."""
        for name, znode in sorted(self._log.cache.topics.items()):
            known = self._core.metadata.topics.get(name)
            if known is None or len(known.partitions) < len(znode.partitions):
                self._create(name)

    def _create(self, name: str) -> None:
        metadata, cache = self._core.metadata, self._log.cache
        keys = [TopicPartition(name, number) for number in sorted(cache.topics[name].partitions)]
        records = tuple(self._created(key) for key in keys if metadata.partition(key) is None and self._is_led(key))
        if name not in metadata.topics:
            self._core.commit(Decision((cache.topic_created(name), *records), None))
            resource = ConfigResource.topic(name)
            values = cache.configs.get(resource, {}).items()
            self._core.apply(tuple(ConfigChanged(resource, key, value) for key, value in values))
        elif records:
            self._core.commit(Decision(records, None))

    def _is_led(self, key: TopicPartition) -> bool:
        return any(map(self._core.metadata.is_active, self._log.cache.lists(key).replicas))

    def _created(self, key: TopicPartition) -> PartitionCreated:
        lists = self._log.cache.lists(key)
        record = created_partition(self._core.context, key, lists.replicas)
        return replace(record, adding=lists.adding, removing=lists.removing)


# The controller.

Targets = Mapping[TopicPartition, tuple[int, ...] | None]

_WATCHED = (paths.CONTROLLER, paths.REASSIGN_PARTITIONS, paths.PREFERRED_REPLICA_ELECTION, paths.CONFIG_CHANGES)


class ZooKeeperController(KRaftController):
    """The controller of one twin. `on_messages` gets the messages to brokers, batch by batch."""

    def __init__(self, core: TwinCore, log: ZooKeeperLog) -> None:
        self.on_messages: Callable[[tuple[control_requests.PartitionMessage, ...]], None] = _discard
        super().__init__(core)
        self._log = log
        self._registrations = Registrations(core, log)
        self._due: set[TopicPartition] = set()
        self._done_reassignments = 0
        self._last_change = ""
        self._is_sending = True
        self.notes: list[str] = []
        self._topics = TopicWatcher(core, log, self.notes)

    # --- controller nodes ------------------------------------------------------------------------------------

    @property
    def active_id(self) -> int:
        """The broker that is the controller; -1 if it is no broker of this twin."""
        return self._log.controller_id if self._log.is_active_controller else -1

    @property
    def node_ids(self) -> tuple[int, ...]:
        """Return no nodes: the controller is a broker."""
        return ()

    @property
    def epoch(self) -> int:
        """The controller epoch, as `/controller_epoch` has it."""
        return self._log.controller_epoch

    def takes_requests_at(self, node_id: int) -> bool:
        """True for the controller only: other brokers refuse requests instead of forwarding them."""
        return node_id == self.active_id

    def advertised_id(self, live_brokers: Sequence[int]) -> int:
        """The controller itself, as brokers in this mode know it."""
        del live_brokers
        return self.active_id

    @property
    def sender(self) -> control_requests.SendingController:
        """The controller and its epoch, for requests to brokers."""
        return control_requests.SendingController(self._log.controller_id, self._log.controller_epoch)

    def address_of(self, broker_id: int) -> HostPort:
        """Address of a broker for clients and brokers."""
        return self._registrations.address_of(broker_id)

    # --- elections of the controller -------------------------------------------------------------------------

    def take_over(self) -> None:
        """Take over: send the state in ZooKeeper to the brokers, and continue every move."""
        self._registrations.renew()
        with self._muted():
            self._catch_up_with_znodes()
        self._tell((), even_if_empty=True)
        self._tell(control_requests.full_state_messages(self._core.metadata, self._log.controller_epoch))
        self._last_change = max(self._log.znodes.children(paths.CONFIG_CHANGES), default="")
        self._done_reassignments = 0
        self._topics.process_changes()  # a move needs its partition, and deleted topics have none
        started = self._process_reassignments()
        for key in self._log.cache.reassigning:
            if key not in started and self._core.metadata.partition(key) is not None:
                self._move(key, self._log.cache.lists(key))
        for key in sorted(self._core.metadata.reassigning.difference(self._log.cache.reassigning)):
            # The lists were the last that this controller wrote of a cancel before it was deposed.
            self._move(key, self._log.cache.lists(key), ReassignmentsAltered(Outcome(), ()))
        self.process_changes()

    def register_at(self, addresses: Mapping[int, HostPort]) -> None:
        """Register the brokers at the addresses where clients can reach them."""
        self._registrations.renew(addresses)

    def run_for_controller(self, broker_id: int) -> bool:
        """Let a broker become the controller if there is none; return whether it did."""
        is_elected = self._log.become_controller(broker_id, self._core.now_ms)
        if is_elected:
            self.take_over()
        return is_elected

    def fail_over(self) -> None:
        """Resign in favour of the next responsive broker."""
        self._log.resign_controller()
        self._elect_next(self._log.controller_id + 1)

    def _elect_next(self, first: int) -> None:
        """Let the next responsive broker, starting at `first`, become the controller."""
        responsive = [one for one in self._core.processes.ids if self._core.processes.is_responsive(one)]
        later = [one for one in responsive if one >= first]
        if responsive:
            self.run_for_controller((later or responsive)[0])

    def process_changes(self) -> None:
        """Read everything in ZooKeeper that others may have changed, and process it."""
        znodes = self._log.znodes
        for path in _WATCHED:
            znodes.watch(path)
        # A concurrent write causes another notification, and this runs again.
        with suppress(ControllerMoved, StaleZnode):
            self._log.check_epoch()
            if not self._log.is_active_controller:
                self._elect_next(self._log.controller_id)
                return
            self._topics.process_changes()
            self._process_reassignments()
            self._process_elections()
            self._process_configs()

    def before_apply(self, records: tuple[Record, ...]) -> None:
        """Send the messages that brokers need before the change."""
        steps = tuple(control_requests.messages_before(self._core.metadata, records, self._log.controller_epoch))
        self._tell(steps)
        for delete in (False, True):
            self._tell(control_requests.stopped(one, delete=delete) for one in steps)

    def after_apply(self, records: tuple[Record, ...]) -> None:
        """Process applied records: moves may be complete now, or can be tried again."""
        if BrokerFenced(self.active_id) not in records:  # its successor sends everything
            is_about_brokers = any(isinstance(record, BrokerFenced | BrokerUnfenced) for record in records)
            steps = control_requests.messages_after(self._core.metadata, records, self._log.controller_epoch)
            self._tell(steps, even_if_empty=is_about_brokers)
        for record in records:
            match record:
                case PartitionChanged(key) | PartitionCreated(key) if self._is_complete(key):
                    self._plan(key)
                case BrokerUnfenced(broker_id):
                    self._registrations.register(broker_id)
                    for key in self._log.cache.reassigning:
                        if broker_id in self._log.cache.lists(key).target:
                            self._plan(key)
                    self._core.schedule(self._core.now_ms, self._topics.process_changes)
                case BrokerFenced(broker_id):
                    self._registrations.unregister(broker_id)
                    if broker_id == self.active_id:
                        self._core.schedule(self._core.now_ms, self.fail_over)
                case TopicDeleted(name):
                    self._remove_entries(lambda key, _: key.topic == name)
                case _:
                    pass

    # --- messages to brokers ---------------------------------------------------------------------------------

    def _tell(self, steps: Iterable[control_requests.PartitionMessage], *, even_if_empty: bool = False) -> None:
        if self._is_sending and self.on_messages is not _discard:
            told = tuple(self._as_of_its_controller(step) for step in steps)
            if told or even_if_empty:
                self.on_messages(told)

    def _as_of_its_controller(self, step: control_requests.PartitionMessage) -> control_requests.PartitionMessage:
        """A message with the epoch of the controller that wrote the partition's state, as brokers get that state."""
        state = self._log.cache.states.get(TopicPartition(step.topic, step.partition))
        return step if state is None else replace(step, controller_epoch=state.controller_epoch)

    @contextmanager
    def _muted(self) -> Iterator[None]:
        """Send no messages about changes in the block: they were sent already, or are sent in another form."""
        self._is_sending = False
        try:
            yield
        finally:
            self._is_sending = True

    # --- requests of clients ---------------------------------------------------------------------------------

    def create_topics(self, command: CreateTopics) -> tuple[TopicCreation, ...]:
        """Create topics; return the outcome of each."""
        return self._core.commit(decisions.create_topics_in_zookeeper(self._core.context, command, self._core.random))

    def create_partitions(self, command: CreatePartitions) -> tuple[tuple[str, Outcome], ...]:
        """Add partitions; return the outcome by topic."""
        return self._core.commit(
            decisions.create_partitions_in_zookeeper(self._core.context, command, self._core.random)
        )

    def alter_reassignments(self, command: AlterReassignments) -> ReassignmentsAltered:
        """Start, override and cancel moves; return the outcome of each partition."""
        try:
            outcomes = self._alter(decisions.targets_by_partition(command))
        except ControllerMoved:
            return ReassignmentsAltered(decisions.WRONG_CONTROLLER, ())
        # Kafka responds with an empty text instead of none.
        return ReassignmentsAltered(Outcome(message=""), decisions.by_topic(outcomes.items()))

    def _alter(self, demands: Targets) -> dict[TopicPartition, Outcome]:
        outcomes: dict[TopicPartition, Outcome] = {}
        moves: dict[TopicPartition, OngoingReassignment] = {}
        for key, target in demands.items():
            refusal, move = self._check(key, target)
            if move is None:
                outcomes[key] = refusal
            else:
                moves[key] = move
        self._remove_entries(lambda key, _: key in moves)
        return {key: outcomes[key] if key in outcomes else self._start_move(key, moves[key]) for key in demands}

    def _check(self, key: TopicPartition, target: tuple[int, ...] | None) -> tuple[Outcome, OngoingReassignment | None]:
        present = self._log.cache.lists(key)
        if target is None:
            if not present.adding and not present.removing:
                return with_default_text(NO_REASSIGNMENT_IN_PROGRESS), None
            return Outcome(), decisions.move_to(present.sources, present.sources)
        metadata = self._core.metadata
        live = (broker_id for broker_id in metadata.brokers if metadata.is_active(broker_id))
        refusal = decisions.check_target(target, present.sources, live)
        return refusal, None if refusal.is_failure else decisions.move_to(present.sources, target)

    def elect_leaders(self, command: ElectLeaders) -> LeadersElected:
        """Elect leaders, preferred or unclean."""
        answer = self._core.commit(elect_leaders(self._core.context, decisions.elections_to_hold(command)))
        return decisions.election_response(command, answer)

    def unregister_broker(self, broker_id: int) -> Outcome:
        """Refuse: with ZooKeeper a broker is registered exactly as long as its session lasts."""
        del broker_id
        return with_default_text(UNSUPPORTED_VERSION)

    def assign_directories(self, broker_id: int, directories: Mapping[TopicPartition, str]) -> None:
        """Nothing to do: with ZooKeeper the controller does not know log directories."""

    # --- requests in znodes ----------------------------------------------------------------------------------

    def _process_reassignments(self) -> set[TopicPartition]:
        """Start the moves in the reassignment znode, once each time it is created."""
        found = self._log.znodes.get(paths.REASSIGN_PARTITIONS)
        if found is None or found.created == self._done_reassignments:
            return set()
        self._done_reassignments = found.created
        try:
            targets = parse_reassignments(found.content)
        except DamagedZnode as error:  # Kafka leaves it there and does nothing, too.
            self.notes.append(str(error))
            return set()
        poisonous = {key for key, target in targets.items() if find_poison({key: target})}
        self.notes += find_poison(targets)
        outcomes = {
            key: decisions.NO_PARTITION
            if key in poisonous
            else self._start_move(key, decisions.move_to(self._log.cache.lists(key).sources, target))
            for key, target in targets.items()
        }
        self._remove_entries(lambda key, _: key in outcomes and outcomes[key].is_failure)
        return {key for key, outcome in outcomes.items() if not outcome.is_failure}

    def _process_elections(self) -> None:
        """Hold the elections in the election znode, and delete it whatever their outcome."""
        path = paths.PREFERRED_REPLICA_ELECTION
        found = self._log.znodes.get(path)
        if found is None:
            return
        try:
            topics = tuple((key.topic, (key.partition,)) for key in parse_election(found.content))
            self.elect_leaders(ElectLeaders(ElectionType.PREFERRED, topics))
        except DamagedZnode as error:
            self.notes.append(str(error))
        self._log.write((Delete(path),))

    def _process_configs(self) -> None:
        """Apply configuration that others changed."""
        names = [name for name in self._log.znodes.children(paths.CONFIG_CHANGES) if name > self._last_change]
        if names:
            self._last_change = names[-1]
            self._log.cache.load_configs(self._log.znodes)
            self._learn_configs()

    def _learn_configs(self) -> None:
        metadata, wanted = self._core.metadata, self._log.cache.configs
        changes: list[Record] = []
        for resource in sorted({*wanted, *metadata.configs}):
            known, values = metadata.configs.get(resource, {}), wanted.get(resource, {})
            changes += _differences(resource, known, values)
        self._core.apply(tuple(changes))

    def _remove_entries(self, is_done: Callable[[TopicPartition, tuple[int, ...]], bool]) -> None:
        """Remove entries from the reassignment znode."""
        found = self._log.znodes.get(paths.REASSIGN_PARTITIONS)
        if found is None:
            return
        try:
            present = parse_reassignments(found.content)
        except DamagedZnode:
            return
        left = {key: one for key, one in present.items() if not is_done(key, one)}
        if left == present:
            return
        fit = {key: one for key, one in left.items() if not find_poison({key: one})}
        path = paths.REASSIGN_PARTITIONS
        content = format_reassignments(fit)
        self._log.write((Set(path, content, found.version) if fit else Delete(path),))

    # --- moves -----------------------------------------------------------------------------------------------

    def _start_move(self, key: TopicPartition, wanted: OngoingReassignment) -> Outcome:
        """Start a requested move."""
        if self._core.metadata.partition(key) is None:
            return decisions.NO_PARTITION
        self._move(key, wanted, ReassignmentsAltered(Outcome(), ()))
        return Outcome()

    def _move(self, key: TopicPartition, wanted: OngoingReassignment, answer: object = None) -> None:
        """Execute the due phases. `answer` is the response to the request, if there was one."""
        move = decisions.WantedMove(self._core.metadata.present(key), self._log.cache.lists(key), wanted)
        for effect in decisions.effects_of(self._core.context, move, self._log.controller_epoch):
            self._perform(effect, answer)

    def _perform(self, effect: decisions.Effect, answer: object) -> None:
        match effect:
            case decisions.WriteLists(key, lists):
                self._log.write_lists(key, lists)
            case decisions.WriteState(record):
                with self._muted():
                    self._core.commit(Decision((record,), answer))
            case decisions.RemoveEntry(key, replicas):
                self._remove_entries(lambda other, target: (other, target) == (key, replicas))
            case decisions.SendMessages(steps):
                self._tell(steps)

    def _plan(self, key: TopicPartition) -> None:
        """Continue a move once the current report of a broker has been processed."""
        if key not in self._due:
            self._due.add(key)
            self._core.schedule(self._core.now_ms, self._go_on)

    def _go_on(self) -> None:
        due, self._due = sorted(self._due), set()
        for key in due:
            lists = self._log.cache.lists(key)
            if (lists.adding or lists.removing) and self._core.metadata.partition(key) is not None:
                self._move(key, lists)

    def _is_complete(self, key: TopicPartition) -> bool:
        partition, lists = self._core.metadata.partition(key), self._log.cache.lists(key)
        is_moving = bool(lists.adding or lists.removing)
        return partition is not None and is_moving and decisions.WantedMove(partition, lists, lists).is_complete

    def _catch_up_with_znodes(self) -> None:
        """Apply the writes of another controller."""
        metadata, cache = self._core.metadata, self._log.cache
        gone = tuple(TopicDeleted(name) for name in sorted(metadata.topics.keys() - cache.topics.keys()))
        self._core.apply(gone)
        for record in tuple(cache.records()):
            if isinstance(record, TopicCreated) and record.name not in metadata.topics:
                self._core.apply((record,))
        for key in sorted(cache.states):
            created, known = cache.created(key), metadata.partition(key)
            if known is None or (known.leader_epoch, known.partition_epoch, known.leader, known.isr) != (
                created.leader_epoch, created.partition_epoch, created.leader, created.isr,
            ):  # fmt: skip
                self._core.apply((created,))
        self._learn_configs()


def _differences(resource: ConfigResource, known: Mapping[str, str], wanted: Mapping[str, str]) -> list[Record]:
    names = sorted({*known, *wanted})
    return [ConfigChanged(resource, name, wanted.get(name)) for name in names if known.get(name) != wanted.get(name)]


def _discard(steps: tuple[control_requests.PartitionMessage, ...]) -> None:
    del steps


# From the controller to the brokers of its twin: each batch becomes requests.


class Delivery:
    """Sends the messages of a controller: `on_request` gets each request with its sending time in milliseconds."""

    def __init__(
        self,
        core: TwinCore,
        controller: ZooKeeperController,
        on_request: Callable[[int, control_requests.ControlRequest], None],
    ) -> None:
        self._core = core
        self._controller = controller
        self._on_request = on_request
        self._known_epochs: dict[int, int] = {}

    def __call__(self, steps: tuple[control_requests.PartitionMessage, ...]) -> None:
        """Build and send the requests of one batch; newly registered brokers get the full state first."""
        alive = tuple(
            control_requests.LiveBroker(
                one.broker_id, *self._controller.address_of(one.broker_id), one.rack, one.broker_epoch
            )
            for one in self._core.metadata.brokers.values()
            if not one.fenced
        )
        newcomers = self._newcomers(alive)
        if newcomers and len(newcomers) < len(alive):
            register_connection = control_requests.build(self._controller.sender, self._everything(), alive)
            others = control_requests.build(self._controller.sender, (), alive)
            self._send(request for request in others if request.broker_id not in newcomers)
            self._send(request for request in register_connection if request.broker_id in newcomers)
        if steps or not newcomers or len(newcomers) == len(alive):
            self._send(control_requests.build(self._controller.sender, steps, alive))

    def _send(self, requests: Iterable[control_requests.ControlRequest]) -> None:
        for request in requests:
            self._on_request(self._core.now_ms, request)

    def _newcomers(self, alive: tuple[control_requests.LiveBroker, ...]) -> frozenset[int]:
        """The brokers registered since the last batch: they know nothing yet."""
        epochs = {broker.broker_id: broker.broker_epoch for broker in alive}
        newcomers = frozenset(one for one, epoch in epochs.items() if self._known_epochs.get(one) != epoch)
        self._known_epochs |= epochs
        return newcomers

    def _everything(self) -> Iterator[control_requests.PartitionMessage]:
        for topic in self._core.metadata.topics.values():
            for partition in topic.partitions.values():
                yield control_requests.message_of(
                    self._core.metadata, partition, self._controller.sender.controller_epoch
                )
