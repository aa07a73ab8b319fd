"""Kerberos at real brokers, with a KDC of the system's packages: keytabs, tickets of kinit, and what goes wrong."""

from __future__ import annotations

import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import ClusterError, Unauthenticated
from testbed import KafkaCluster, Listener
from testbed.waiting import wait_until
from tests.logins.conftest import LIFETIME_S, MODULE, REALM, Kdc

ADMIN = f"admin@{REALM}"


def client(cluster: KafkaCluster, options: str, **properties: str) -> AdminClient:
    named = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": f"{MODULE} required {options};",
    }
    bootstrap = cluster.bootstrap(Listener.SASL_PLAINTEXT)
    return AdminClient.connect(client_settings(named | properties, bootstrap_servers=bootstrap))


def by_keytab(path: Path, principal: str = ADMIN) -> str:
    return f'useKeyTab=true storeKey=true keyTab="{path}" principal="{principal}"'


def failure(cluster: KafkaCluster, options: str, **properties: str) -> ClusterError:
    with pytest.raises(ClusterError) as refused, client(cluster, options, **properties) as connected:
        connected.describe_cluster()
    assert "Traceback" in "".join(traceback.format_exception(refused.value))
    return refused.value


def test_a_keytab_lets_in_on_many_connections_at_once(cluster: KafkaCluster, kdc: Kdc) -> None:
    options = by_keytab(kdc.keytab("admin"))

    def is_served(_: int) -> bool:
        with client(cluster, options) as connected:
            return len(connected.describe_log_dirs().ok) == 2

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(is_served, range(16)))


def test_two_principals_of_one_process_are_not_mixed_up(cluster: KafkaCluster, kdc: Kdc) -> None:
    with (
        client(cluster, by_keytab(kdc.keytab("admin"))) as admin,
        client(cluster, by_keytab(kdc.keytab("alice"), f"alice@{REALM}")) as alice,
    ):
        for _ in range(2):
            assert len(admin.describe_log_dirs().ok) == 2
            assert alice.describe_log_dirs().failed


def test_tickets_of_kinit_let_in(cluster: KafkaCluster, kdc: Kdc, tmp_path: Path) -> None:
    cache = tmp_path / "tickets"
    kdc.run("kinit", "-k", "-t", str(kdc.keytab("admin")), "-c", str(cache), ADMIN)
    with client(cluster, f'useTicketCache=true ticketCache="{cache}"') as connected:
        assert len(connected.describe_log_dirs().ok) == 2


def test_a_client_outlives_its_logins(cluster: KafkaCluster, kdc: Kdc) -> None:
    with client(cluster, by_keytab(kdc.keytab("admin"))) as connected:

        def are_outlived() -> bool:
            connected.describe_cluster()
            before = [link._connection for link in connected._session._links.values() if link.is_open]
            end_s = time.monotonic() + 1.5 * LIFETIME_S
            while time.monotonic() < end_s:
                connected.describe_cluster()
            return before == [link._connection for link in connected._session._links.values() if link.is_open]

        wait_until(are_outlived, what="connections to outlive their logins")


def test_what_is_wrong_is_named(cluster: KafkaCluster, kdc: Kdc, tmp_path: Path) -> None:
    keytab = kdc.keytab("admin")
    (tmp_path / "damaged").write_bytes(keytab.read_bytes()[:20])
    cases = (
        (by_keytab(tmp_path / "absent"), {}),
        (by_keytab(tmp_path / "damaged"), {}),
        (by_keytab(keytab, f"nobody@{REALM}"), {}),
        (by_keytab(keytab), {"sasl.kerberos.service.name": "other"}),
        (f'useTicketCache=true ticketCache="{tmp_path}/none"', {}),
    )
    for options, properties in cases:
        error = failure(cluster, options, **properties)
        assert isinstance(error, Unauthenticated)
        assert "SASL GSSAPI at " in str(error)
        assert "Check the keytab or kinit (klist), the service name and host of the broker" in str(error)


def test_a_kdc_that_is_down_is_named(cluster: KafkaCluster, kdc: Kdc) -> None:
    keytab = kdc.keytab("late")
    kdc.stop()
    error = failure(cluster, by_keytab(keytab, f"late@{REALM}"))
    assert "SASL GSSAPI at kafka@127.0.0.1" in str(error)
    assert "KDC" in str(error)
