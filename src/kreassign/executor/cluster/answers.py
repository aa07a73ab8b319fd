"""What an error says of a change that was sent: it was not made, not made for now, or nobody knows. Pure."""

from __future__ import annotations

from kreassign.errors import ClusterError, Rejected
from kreassign.model.error_codes import UNKNOWN_SERVER_ERROR, has_code


def may_be_done(error: ClusterError) -> bool:
    """Whether the change may have been made, now or later.

    That is so of a lost answer, and of UNKNOWN_SERVER_ERROR (-1): a controller that fails over in the middle answers it
    to changes that it has written.
    """
    return not isinstance(error, Rejected) or has_code(error, UNKNOWN_SERVER_ERROR)


def is_for_now(error: ClusterError) -> bool:
    """Whether it was not made, and Kafka's own client would ask again."""
    return isinstance(error, Rejected) and error.retriable and not may_be_done(error)


def is_final(error: ClusterError) -> bool:
    """Whether it was not made, and will not be."""
    return is_refusal(error) and not (may_be_done(error) or is_for_now(error))


def is_refusal(error: ClusterError) -> bool:
    """Whether Kafka answered with an error code."""
    return isinstance(error, Rejected)
