"""One writer per cluster: a lease that is kept in the cluster itself, with what was set there before anyone's run."""

from kreassign.executor.lease.holder import LeaseHolder
from kreassign.executor.lease.lease import NO_LEASE, ClusterLease, Lease, present_holder
from kreassign.executor.lease.record import OriginalValues
from kreassign.executor.lease.status import Forgone, Held, LeasePolicy, LeaseStatus, Taken

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
