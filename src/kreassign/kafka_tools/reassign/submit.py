"""Submitting a plan, at once or in steps (KIP-1335)."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kreassign.clock import Clock
from kreassign.kafka_tools.failures import TerseError
from kreassign.kafka_tools.reassign import directory_moves, texts
from kreassign.kafka_tools.reassign.conversation import Conversation
from kreassign.kafka_tools.reassign.output import say
from kreassign.kafka_tools.reassign.pacing import State, Steps, states
from kreassign.kafka_tools.reassign.requests import ExecuteRequest
from kreassign.model import OngoingReassignment, TopicPartition
from kreassign.model.plan import partition_order

SETTLE_S = 5.0
"""Brokers show the end of a move a moment after the controller knows it; so long is a wrong list not believed."""


def submit(conversation: Conversation, request: ExecuteRequest, clock: Clock) -> None:
    """Start all reassignments and directory moves of a plan, as the pace of the request has it.

    Returns once all are submitted, not once they are done. Raises `TerseError` when a step is refused, ends elsewhere,
    or takes too long; then later steps are not submitted, and are named.
    """
    run = _Submission(conversation, request, clock, Steps(request.plan.replicas, request.pace))
    run.start(run.steps.next())
    while run.steps.waiting:
        run.start(run.wait_for_room())
    say(texts.started(request.plan.replicas))
    if not request.pace.batch_size:
        run.start_directory_moves(request.plan.replicas)


def warn_about_others(request: ExecuteRequest, ongoing: Mapping[TopicPartition, OngoingReassignment]) -> None:
    """Say, if that is wished for, that others move partitions too, which no pace of this run counts."""
    others = ongoing.keys() - request.plan.replicas.keys()
    if request.pace.warns_about_others and others:
        print(texts.others_move(others), file=sys.stderr)


@dataclass(frozen=True, slots=True)
class _Submission:
    conversation: Conversation
    request: ExecuteRequest
    clock: Clock
    steps: Steps

    def start(self, step: Collection[TopicPartition]) -> None:
        targets, expected = self.request.plan.replicas, self.request.expected
        failures = self.conversation.reassign(
            {partition: targets[partition] for partition in step},
            allow_replication_factor_change=self.request.allows_replication_factor_change,
            expected={partition: expected[partition] for partition in step if partition in expected},
        )
        if failures:
            raise self._end(texts.not_started(failures))
        if self.request.pace.batch_size:
            say(texts.step_started(step, len(targets) - len(self.steps.waiting), len(targets)))
            self.start_directory_moves(step)

    def start_directory_moves(self, partitions: Collection[TopicPartition]) -> None:
        """Start those of the same partitions: in steps they go with their own step."""
        every = self.request.plan.log_dirs
        moves = {replica: path for replica, path in every.items() if replica.topic_partition in partitions}
        if moves:
            directory_moves.start(self.conversation, moves, self.request.timeout_ms, self.clock)

    def wait_for_room(self) -> tuple[TopicPartition, ...]:
        """Look until there is room for the next step; what it is."""
        pace = self.request.pace
        began_s = self.clock.monotonic_s()
        elsewhere_since_s: dict[TopicPartition, float] = {}
        while True:
            found = self._look()
            if step := self.steps.next({partition for partition, state in found.items() if state is State.DONE}):
                return step
            now_s = self.clock.monotonic_s()
            elsewhere_since_s = {
                partition: elsewhere_since_s.get(partition, now_s)
                for partition, state in found.items()
                if state is State.ELSEWHERE
            }
            if lost := [key for key, since_s in elsewhere_since_s.items() if now_s - since_s >= SETTLE_S]:
                raise self._end(self._story_of(lost))
            if pace.wait_timeout_ms is not None and (now_s - began_s) * 1000 >= pace.wait_timeout_ms:
                raise self._end(texts.waited_too_long(self.steps.in_flight, pace.wait_timeout_ms))
            self.clock.sleep(pace.poll_interval_ms / 1000)

    def _look(self) -> dict[TopicPartition, State]:
        in_flight = {partition: self.request.plan.replicas[partition] for partition in self.steps.in_flight}
        ongoing = self.conversation.reassignments(None if self.request.pace.warns_about_others else in_flight)
        warn_about_others(self.request, ongoing)
        return states(in_flight, ongoing, self._current(in_flight.keys() - ongoing.keys()))

    def _current(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
        topics = self.conversation.topics(partition.topic for partition in partitions)
        known = [entry for topic in topics.values() if topic is not None for entry in topic.partitions]
        return {entry.topic_partition: entry.replicas for entry in known}

    def _story_of(self, lost: Collection[TopicPartition]) -> str:
        current = self._current(lost)
        return "\n".join(
            texts.elsewhere(partition, current.get(partition, ()), self.request.plan.replicas[partition])
            for partition in sorted(lost, key=partition_order)
        )

    def _end(self, story: str) -> TerseError:
        return TerseError(story + texts.left_out(self.steps.waiting))
