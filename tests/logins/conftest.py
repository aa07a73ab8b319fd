"""Logins that need more than Kafka: a KDC of the system's packages, and AWS's library. Run by `make test-logins`."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed import ClusterSpec, KafkaCluster, Listener, Security
from testbed.ports import HOST, ReservedPorts
from testbed.processes import ProcessGroup
from testbed.waiting import wait_until

# Other targets of make have neither the packages nor the libraries.
collect_ignore_glob = [] if "KREASSIGN_TEST_LOGINS" in os.environ else ["test_*.py"]

REALM = "EXAMPLE.COM"
SERVICE = f"kafka/{HOST}"
MODULE = "com.sun.security.auth.module.Krb5LoginModule"
PREFIX = f"listener.name.{Listener.SASL_PLAINTEXT.lower()}.gssapi"
LIFETIME_S = 2.0
"""How long a login by Kerberos lasts."""
# Packages that were unpacked and not installed are found below this folder.
_ROOT_VARIABLE = "KREASSIGN_KRB5"
_KRB5_CONF = """\
[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
[realms]
 {realm} = {{
  kdc = {host}:{port}
 }}
[dbmodules]
 {modules}
 {realm} = {{
  db_library = db2
  database_name = {folder}/principals
 }}
"""
_KDC_CONF = """\
[kdcdefaults]
 kdc_listen = {host}:{port}
 kdc_tcp_listen = {host}:{port}
[realms]
 {realm} = {{
  key_stash_file = {folder}/stash
 }}
"""


@dataclass(frozen=True, slots=True)
class Kdc:
    """A realm with the service of the brokers and some users."""

    folder: Path
    run: Callable[..., None]
    stop: Callable[[], None]

    @property
    def krb5_conf(self) -> Path:
        """Text of krb5.conf with the place of the realm."""
        return self.folder / "krb5.conf"

    def keytab(self, principal: str) -> Path:
        """A file with the key of a principal, which is made if it is new."""
        path = self.folder / f"{principal.replace('/', '_')}.keytab"
        if not path.exists():
            self.run("kadmin.local", "-r", REALM, "addprinc", "-randkey", principal)
            self.run("kadmin.local", "-r", REALM, "ktadd", "-k", str(path), principal)
        return path


@pytest.fixture(scope="session")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A KDC on this machine, which this process and those that it starts find."""
    folder, ports, group = tmp_path_factory.mktemp("kdc"), ReservedPorts(), ProcessGroup()
    root = os.environ.get(_ROOT_VARIABLE)
    plugins = f"db_module_dir = {root}/usr/lib/x86_64-linux-gnu/krb5/plugins/kdb" if root else ""
    port = ports.take()
    told = {"realm": REALM, "host": HOST, "port": port, "folder": folder, "modules": plugins}
    (folder / "krb5.conf").write_text(_KRB5_CONF.format(**told))
    (folder / "kdc.conf").write_text(_KDC_CONF.format(**told))
    environment = {"KRB5_CONFIG": str(folder / "krb5.conf"), "KRB5_KDC_PROFILE": str(folder / "kdc.conf")}
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)

    def run(program: str, *words: str) -> None:
        finished = group.run((_program(program, root), *words), timeout_s=60)
        assert finished.exit_code == 0, finished

    run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
    process = group.spawn((_program("krb5kdc", root), "-n", "-r", REALM), log=folder / "kdc.log")

    def stop() -> None:
        process.kill()
        process.wait()

    try:
        wait_until(lambda: _listens(port), what="a KDC that listens")
        yield Kdc(folder, run, stop)
    finally:
        stop()
        group.close()
        ports.release()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


@pytest.fixture(scope="session")
def cluster(kdc: Kdc) -> Iterator[KafkaCluster]:
    """Brokers that Kerberos knows, with the listeners of a secure cluster besides."""
    keytab = kdc.keytab(SERVICE)
    login = f'{MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{SERVICE}@{REALM}";'
    config = {
        f"listener.name.{Listener.SASL_PLAINTEXT.lower()}.sasl.enabled.mechanisms": "GSSAPI",
        f"{PREFIX}.sasl.jaas.config": login,
        "sasl.kerberos.service.name": "kafka",
        "listener.name.sasl_ssl.oauthbearer.connections.max.reauth.ms": "20000",
        f"{PREFIX}.connections.max.reauth.ms": str(round(LIFETIME_S * 1000)),
    }
    os.environ["JDK_JAVA_OPTIONS"] = f"-Djava.security.krb5.conf={kdc.krb5_conf}"
    try:
        with KafkaCluster.start(ClusterSpec(brokers=2, security=Security.SECURE, broker_config=config)) as started:
            yield started
    finally:
        del os.environ["JDK_JAVA_OPTIONS"]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _program(name: str, root: str | None) -> str:
    folders = [f"{root or ''}/usr/{folder}" for folder in ("sbin", "bin")]
    found = shutil.which(name, path=os.pathsep.join([*folders, os.environ["PATH"]]))
    assert found, f"{name} was not found; install a KDC (Debian: apt install krb5-kdc krb5-admin-server krb5-user)"
    return found
