"""Faults of responses, and of the controller that they come from."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.twin.api.response_faults import AffectedResponses, ResponseFault
from kreassign.twin.cluster import Twin
from kreassign.twin.faults.nodes import need_broker


@dataclass(frozen=True, slots=True)
class AnswerFault:
    """A fault of the next response that matches, or (not `hits_once`) of all of them until it is over.

    The request has been executed by then.
    """

    fault: ResponseFault
    affected: AffectedResponses
    hits_once: bool = True

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        node_id = self.affected.node_id
        if node_id is not None and node_id not in twin.controller.node_ids:
            need_broker(twin, node_id)

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
