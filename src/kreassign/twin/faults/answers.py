"""Faults of answers, and of the controller that they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kreassign.twin.faults.nodes import need_broker
from kreassign.twin.network.response_faults import Concerned, Disturbance

if TYPE_CHECKING:
    from kreassign.twin.cluster import Twin


@dataclass(frozen=True, slots=True)
class AnswerFault:
    """Something befalls the next such answer, or (not `hits_once`) all of them until it is over.

    The request has been carried out by then.
    """

    disturbance: Disturbance
    concerned: Concerned
    hits_once: bool = True

    def check(self, twin: Twin) -> None:
        """InputError if it cannot befall this twin."""
        node_id = self.concerned.node_id
        if node_id is not None and node_id not in twin.quorum.ids:
            need_broker(twin, node_id)

    def strike(self, twin: Twin) -> None:
        """Lie in wait for the answers."""
        twin.disturbances.add(self.disturbance, self.concerned, hits_once=self.hits_once)

    def heal(self, twin: Twin) -> None:
        """Leave them alone."""
        twin.disturbances.remove(self.disturbance, self.concerned)


@dataclass(frozen=True, slots=True)
class FailOver:
    """Another controller takes over, between two requests."""

    def check(self, twin: Twin) -> None:
        """It can befall every twin."""

    def strike(self, twin: Twin) -> None:
        """Let the next controller take over."""
        twin.fail_over()

    def heal(self, twin: Twin) -> None:
        """There is nothing to mend: the new controller stays."""
