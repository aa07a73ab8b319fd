"""All kinds of faults, in the order of the table."""

from __future__ import annotations

from tests.torture.broker_faults import BROKER_FAULTS
from tests.torture.disk_faults import DAMAGED, DISK_FAULTS, LOG_DIR_FAULTS
from tests.torture.network_faults import NETWORK_FAULTS, SECURITY_FAULTS
from tests.torture.operator_faults import OPERATOR_FAULTS
from tests.torture.process_faults import PROCESS_FAULTS

FAULTS = (
    *PROCESS_FAULTS,
    DAMAGED,
    *DISK_FAULTS,
    *BROKER_FAULTS,
    *LOG_DIR_FAULTS,
    *NETWORK_FAULTS,
    *SECURITY_FAULTS,
    *OPERATOR_FAULTS,
)
