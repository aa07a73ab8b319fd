"""Talk to a cluster: `AdminClient`, its settings and its connections."""

from kreassign.admin.client import AdminClient
from kreassign.admin.properties import client_settings, read_properties
from kreassign.admin.settings import Address, ClientSettings, SecurityProtocol
from kreassign.admin.topic_changes import OverrideWarning
from kreassign.admin.transport import Connection, TcpTransport, Transport

__all__ = [
    "Address",
    "AdminClient",
    "ClientSettings",
    "Connection",
    "OverrideWarning",
    "SecurityProtocol",
    "TcpTransport",
    "Transport",
    "client_settings",
    "read_properties",
]
