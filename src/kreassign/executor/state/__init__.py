"""The state machine of a run: from events to instructions. Other packages see a run only through `RunView`."""

from kreassign.executor.state.admission import REPLAN_AFTER_MS
from kreassign.executor.state.machine import TRANSITIONS, Machine
from kreassign.executor.state.move import MoveRecord
from kreassign.executor.state.phases import STATES
from kreassign.executor.state.run import WindDown, candidate, left_by_destination
from kreassign.executor.state.steps import brokers_between
from kreassign.executor.state.view import RunView

__all__ = [
    "REPLAN_AFTER_MS",
    "STATES",
    "TRANSITIONS",
    "Machine",
    "MoveRecord",
    "RunView",
    "WindDown",
    "brokers_between",
    "candidate",
    "left_by_destination",
]
