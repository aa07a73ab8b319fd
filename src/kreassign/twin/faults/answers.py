"""Faults of requests and responses on their way, of what answers are made from, and of the controller."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.errors import InputError
from kreassign.twin.api import refusals
from kreassign.twin.api.response_faults import AffectedResponses, Refused, RequestFault, ResponseFault
from kreassign.twin.cluster import Twin
from kreassign.twin.faults.nodes import need_node
from kreassign.wire import api


@dataclass(frozen=True, slots=True)
class AnswerFault:
    """A fault of the next request or response that matches, or (not `hits_once`) of all of them until it is over."""

    fault: ResponseFault | RequestFault
    affected: AffectedResponses
    hits_once: bool = True

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        node_id = self.affected.node_id
        if node_id is not None:
            need_node(twin, node_id)
        if isinstance(self.fault, Refused) and self.affected.api_key not in refusals.BY_KEY:
            raise InputError("a fault refuses requests that cannot be refused item by item; name another API")

    def inject(self, twin: Twin) -> None:
        """Activate it."""
        twin.response_faults.add(self.fault, self.affected, hits_once=self.hits_once)

    def recover(self, twin: Twin) -> None:
        """Deactivate it."""
        twin.response_faults.remove(self.fault, self.affected)


@dataclass(frozen=True, slots=True)
class FailOver:
    """Another controller takes over, between two requests."""

    def check(self, twin: Twin) -> None:
        """Every twin can have it."""

    def inject(self, twin: Twin) -> None:
        """Let the next controller take over."""
        twin.fail_over()

    def recover(self, twin: Twin) -> None:
        """Nothing to repair: the new controller stays."""


@dataclass(frozen=True, slots=True)
class StaleAnswers:
    """A node answers requests of one API from what it knew when this began, or always so many records late.

    Without a node all of them do. Its answers to other requests are up to date.
    """

    api_key: int
    node: int | None = None
    behind: int | None = None

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        if self.node is not None:
            need_node(twin, self.node)

    def inject(self, twin: Twin) -> None:
        """Hold its answers back."""
        twin.views.hold_back(self.node, self.behind, self.api_key)

    def recover(self, twin: Twin) -> None:
        """Let it answer from all that it knows."""
        twin.views.release(self.node, self.api_key)


@dataclass(frozen=True, slots=True)
class EmptyLists:
    """A controller that has just started, and has read nothing yet, answers what is being reassigned: nothing.

    That is what a list looks like, without an error, that an inactive controller gives. As `node` a broker stands for
    the controller to which it forwards; without any, all answers are such.
    """

    node: int | None = None

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        if self.node is not None:
            need_node(twin, self.node)

    def inject(self, twin: Twin) -> None:
        """Let the list be empty."""
        twin.views.forget(self.node, api.LIST_PARTITION_REASSIGNMENTS.key)

    def recover(self, twin: Twin) -> None:
        """Let the list be what it is."""
        twin.views.release(self.node, api.LIST_PARTITION_REASSIGNMENTS.key)
