"""One writer per cluster: a lease that is kept in the cluster itself, with what was set there before anyone's run."""

from kreassign.executor.lease.lease import (
    NO_LEASE,
    ClusterLease,
    Forgone,
    Held,
    Lease,
    LeaseHolder,
    LeasePolicy,
    LeaseStatus,
    Taken,
    present_holder,
)
from kreassign.executor.lease.record import OriginalValues

__all__ = [
    "NO_LEASE",
    "ClusterLease",
    "Forgone",
    "Held",
    "Lease",
    "LeaseHolder",
    "LeasePolicy",
    "LeaseStatus",
    "OriginalValues",
    "Taken",
    "present_holder",
]
