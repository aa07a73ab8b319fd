"""Single changes to brokers, each under the lease of the cluster: the cordon of their log directories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kreassign.admin import AdminClient
from kreassign.clock import Clock
from kreassign.errors import ExecutionError, InputError
from kreassign.executor.brokers.cordon import CORDON, CORDONED_LOG_DIRS, UNCORDON, is_ours
from kreassign.executor.brokers.readings import BrokerReading
from kreassign.executor.cluster.config_changes import CHANGE_TIMEOUT_MS
from kreassign.executor.cluster.port import ConfigPort
from kreassign.executor.lease.status import Taken
from kreassign.model import ConfigResource
from kreassign.model.error_codes import INVALID_CONFIG, INVALID_REQUEST, has_code
from kreassign.operations.lease import LeaseRequest, leased
from kreassign.operations.run import RunContext, new_run_id


@contextmanager
def sole_change(client: AdminClient, context: RunContext, what: str, clock: Clock) -> Iterator[Callable[[], None]]:
    """Hold the lease of the cluster for changes that are no run; yields what to call before each of them.

    Raises InputError if a run holds it, ExecutionError if it was lost meanwhile; ClusterError. Controllers of another
    cluster are not told anything from here on.
    """
    name = f"{what}-{new_run_id(clock.now_ms())}"
    cluster_id = client.describe_cluster().cluster_id
    if context.controllers is not None:
        context.controllers.expect_cluster(cluster_id)
    wanted = LeaseRequest(name, cluster_id, context.state_dir, context.lease, context.operator, context.warn)
    with leased(client, wanted, clock) as lease:

        def confirm() -> None:
            if isinstance(status := lease.confirm(), Taken):
                raise ExecutionError(f"nothing more was changed: {status.reason}; give the command again")

        confirm()
        yield confirm


def cordon(client: AdminClient, broker: int) -> str | None:
    """Close the log directories of a live broker; why Kafka does not let it be done, if so. Raises ClusterError."""
    resource = ConfigResource.broker(broker)
    error = client.incremental_alter_configs({resource: [CORDON]}).failed.get(resource)
    if error is not None and has_code(error, INVALID_CONFIG, INVALID_REQUEST):
        return error.message  # brokers of 4.3 in a cluster whose metadata.version is an older one
    if error is not None:
        raise error
    return None


def uncordon(client: AdminClient, found: BrokerReading, context: RunContext) -> str:
    """Take the cordon of a broker back, if it is one like ours; what was done. Raises InputError, ClusterError."""
    if found.is_live and found.cordon is None:
        raise InputError(f"broker {found.broker} cannot be read: {found.unread}. Then give the command again")
    if found.cordon is None:
        if context.controllers is None:
            raise InputError(
                f"broker {found.broker} is not live, and only it and the controllers take {CORDONED_LOG_DIRS}: start "
                "it, or give --bootstrap-controller, then give the command again"
            )
        uncordon_dead(context.controllers, found.broker)
        return f"uncordon broker {found.broker}, which is not live"
    if is_ours(found.cordon.value):
        client.incremental_alter_configs({ConfigResource.broker(found.broker): [UNCORDON]}).raise_if_any()
        return f"uncordon broker {found.broker}"
    if found.cordon.value:
        return f"broker {found.broker} stays as it is: its {CORDONED_LOG_DIRS} is {found.cordon.value}, set by others"
    return f"broker {found.broker} is not cordoned"


def uncordon_dead(controllers: ConfigPort, broker: int) -> None:
    """Delete the setting where only the controllers take it. They do not tell what it was. Raises ClusterError."""
    change = {ConfigResource.broker(broker): [UNCORDON]}
    controllers.incremental_alter_configs(change, timeout_ms=CHANGE_TIMEOUT_MS).raise_if_any()
