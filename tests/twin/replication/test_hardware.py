import pytest

from kreassign.errors import InputError
from kreassign.twin.replication.hardware import BrokerHardware, LogDirHardware
from kreassign.twin.replication.partition_logs import Traffic


def test_hardware_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="absolute"):
        LogDirHardware("data")
    with pytest.raises(InputError, match="/data needs sizes and speeds above zero"):
        LogDirHardware("/data", capacity_bytes=0)
    with pytest.raises(InputError, match="network"):
        BrokerHardware((LogDirHardware("/data"),), net_in_bytes_per_s=float("inf"))
    with pytest.raises(InputError, match="each named once"):
        BrokerHardware((LogDirHardware("/data"), LogDirHardware("/data")))
    with pytest.raises(InputError, match="each named once"):
        BrokerHardware(())


def test_traffic_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="less than nothing"):
        Traffic(size_bytes=-1)
    with pytest.raises(InputError, match="less than nothing"):
        Traffic(record_bytes=0)
    with pytest.raises(InputError, match="keeps no bytes"):
        Traffic(retention_bytes=0)
