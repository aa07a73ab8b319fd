"""ListTransactions: the transactions that a broker coordinates.

Versions: 0 on 3.7; 0-1 on 3.9; 0-2 on 4.2, 4.3.
Permission: none; a real broker leaves out what the client may not see.

Behaviour:
- There are never any. States asked for that no release knows are named in the answer.

Left out:
- Transactions: there are no records.
"""

from __future__ import annotations

from kreassign.model.error_codes import NONE
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message

_STATES = {
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
}  # fmt: skip


def _handle(request: Request) -> Message:
    unknown = [state for state in request.message.state_filters if state not in _STATES]
    return api.LIST_TRANSACTIONS.response(error_code=NONE, unknown_state_filters=unknown, transaction_states=[])


HANDLERS = (Handler(api.LIST_TRANSACTIONS, _handle),)
