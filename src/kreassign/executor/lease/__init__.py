"""One writer per cluster: a lease that is kept in the cluster itself."""

from kreassign.executor.lease.lease import (
    NO_LEASE,
    ClusterLease,
    Forgone,
    Held,
    Lease,
    LeaseHolder,
    LeasePolicy,
    LeaseStatus,
    NoLease,
    Taken,
    present_holder,
)

__all__ = [
    "NO_LEASE",
    "ClusterLease",
    "Forgone",
    "Held",
    "Lease",
    "LeaseHolder",
    "LeasePolicy",
    "LeaseStatus",
    "NoLease",
    "Taken",
    "present_holder",
]
