"""A stream of metrics from real Kafka, killed in the middle: nothing is lost and nothing comes twice."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import javaproperties
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificates

from kreassign.admin.sasl_properties import FROM_ENDPOINT
from kreassign.errors import DataError
from kreassign.pipeline.ingest.metric_records import RecordForm
from kreassign.pipeline.tables.delta import open_log
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import METRIC_BATCHES, METRICS, METRICS_QUARANTINE
from testbed import KafkaCluster, Listener
from testbed.certificates import Certificates
from testbed.jars import spark_kafka_jars
from testbed.java import java_binary
from testbed.processes import ProcessGroup
from testbed.records import Writer
from testbed.security import OAUTH_MODULE, USERS
from testbed.waiting import PATIENCE_S, wait_until
from tests.admin.token_server import Reply, TokenServer, granted
from tests.pipeline.ingest.test_cruise_control import PARTITION, TOPIC, metric

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

START_S = 200.0
_PROGRAM = "from kreassign.cli.main import main; main()"


def streaming(bootstrap: str, topic: str, data: Path, *options: str) -> list[str]:
    """The command line that reads the topic into the data directory."""
    command = [sys.executable, "-c", _PROGRAM, "stream-metrics", "--bootstrap-server", bootstrap, "--data", str(data)]
    own = ["--topic", topic, "--cluster", "c", "--jars", str(spark_kafka_jars()), "--master", "local[2]", *options]
    return [*command, *own]


def send(bootstrap: str, topic: str, numbers: Iterable[int], *others: bytes, at_ms: int | None = None) -> int:
    """Send a metric of each number, and other records; the time of the metrics."""
    writer = Writer(bootstrap, topic)
    now_ms = round(time.time() * 1000) if at_ms is None else at_ms
    for number in numbers:
        metric = {"taken_ms": now_ms, "broker": number, "name": "bytes_in_per_s", "value": number}
        writer.send(number % 2, b"", json.dumps(metric).encode())
    for other in others:
        writer.send(0, b"", other)
    writer.close()
    return now_ms


def values(data: Path) -> list[float]:
    try:
        return sorted(row["value"] for row in read_rows(data, METRICS, only={"cluster_id": "c"}))
    except DataError:
        return []  # the table is not there yet


def test_a_stream_killed_repeatedly_has_every_record_once(kafka: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    brokers, bootstrap = sorted(kafka.brokers), kafka.bootstrap_servers
    kafka.create_topic(topic_name, [[brokers[0]], [brokers[1]]])
    data = tmp_path / "data"
    command = streaming(bootstrap, topic_name, data, "--max-offsets-per-trigger", "40")
    sent_ms = send(bootstrap, topic_name, range(300))
    for first_new in (300, 600):
        stored, killed = len(values(data)), ProcessGroup()
        running = killed.spawn(command, log=tmp_path / "log")
        try:
            wait_until(
                lambda before=stored, process=running: len(values(data)) > before or process.poll() is not None,
                timeout_s=START_S,
                what="a batch",
            )
            assert running.poll() is None, (tmp_path / "log").read_text()
            # New ones, some of which were sent before, and one that says nothing.
            send(bootstrap, topic_name, [*range(50), *range(first_new, first_new + 300)], b"?", at_ms=sent_ms)
        finally:
            killed.close()  # Java too, which is what does the work
            running.wait(PATIENCE_S)
    last = ProcessGroup()
    finished = last.run([*command, "--once"], timeout_s=START_S)
    last.close()
    assert finished.exit_code == 0, finished.stderr
    assert values(data) == list(range(900))
    letters = read_rows(data, METRICS_QUARANTINE)
    assert [bytes.fromhex(row["row_json"]) for row in letters] == [b"?", b"?"]
    counts: Counter[str] = Counter()
    for row in read_rows(data, METRIC_BATCHES):
        counts[row["treatment"]] += row["records"]
    assert counts == {"good": 900, "late": 100, "quarantined": 2}


_IN_TURN = """
import json, sys
from pathlib import Path
from kreassign.operations.ingest import MetricStream, RecordForm, SparkOptions, stream_metrics

bootstrap, jars, data, tasks = json.loads(sys.argv[1])
for topic, form in tasks:
    source = MetricStream(bootstrap, topic, "c", RecordForm(form), Path(jars), max_offsets_per_trigger=20)
    stream_metrics(source, Path(data), SparkOptions("local[2]"), once=True, compact_every=2)
"""


def batches(data: Path) -> dict[str, dict[str, int]]:
    """Records of each topic by what became of them."""
    found: dict[str, Counter[str]] = {}
    for row in read_rows(data, METRIC_BATCHES):
        found.setdefault(row["source_topic"], Counter())[row["treatment"]] += row["records"]
    return {topic: dict(counts) for topic, counts in found.items()}


def test_topics_of_both_forms_share_tables_with_own_checkpoints(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    brokers, bootstrap, data = sorted(kafka.brokers), kafka.bootstrap_servers, tmp_path / "data"
    of_reporter = f"{topic_name}-reporter"
    for name in (topic_name, of_reporter):
        kafka.create_topic(name, [[brokers[0]], [brokers[1]]])

    def stream(*tasks: tuple[str, RecordForm]) -> None:
        group = ProcessGroup()
        given = json.dumps([bootstrap, str(spark_kafka_jars()), str(data), tasks])
        finished = group.run([sys.executable, "-c", _IN_TURN, given], timeout_s=START_S)
        group.close()
        assert finished.exit_code == 0, finished.stderr

    def report(*records: bytes) -> None:
        writer = Writer(bootstrap, of_reporter)
        for number, record in enumerate(records):
            writer.send(number % 2, b"", record)
        writer.close()

    send(bootstrap, topic_name, range(60))
    report(*(metric(TOPIC, 3, b"orders-%d" % number) for number in range(30)), b"\x07")
    stream((topic_name, RecordForm.JSON), (of_reporter, RecordForm.CRUISE_CONTROL))
    assert batches(data) == {topic_name: {"good": 60}, of_reporter: {"good": 30, "quarantined": 1}}

    # What is new of each, and nothing else: of either topic the other's offsets say nothing.
    send(bootstrap, topic_name, range(60, 65))
    report(metric(PARTITION, 4, b"orders", 9))
    stream((of_reporter, RecordForm.CRUISE_CONTROL), (topic_name, RecordForm.JSON))
    assert batches(data) == {topic_name: {"good": 65}, of_reporter: {"good": 31, "quarantined": 1}}
    rows = read_rows(data, METRICS)
    assert sorted(row["value"] for row in rows if row["name"] == "bytes_in_per_s") == list(range(65))
    assert {row["topic"] for row in rows if row["name"] == "bytes_out_per_s"} == {f"orders-{i}" for i in range(30)}
    (size,) = (row for row in rows if row["name"] == "size_bytes")
    assert (size["broker"], size["topic"], size["partition"], size["value"]) == (4, "orders", 9, 2.5)
    (letter,) = read_rows(data, METRICS_QUARANTINE)
    assert (letter["source_topic"], letter["row_json"]) == (of_reporter, "07")
    # Without compaction there would be a file for each batch: four of the first topic, three of the other one.
    dates = Counter(file.part for file in open_log(data, METRICS).files())
    assert len(dates) == 2
    assert max(dates.values()) <= 2


STORE_SECRET, CLIENT_SECRET = "of-the-store", "of-the-client"


def java_stores(folder: Path, certificates: Certificates, user: str) -> tuple[Path, Path]:
    """A trust store (JKS) and a key store (PKCS12) as Java's own tool makes them, with a password."""
    keytool = str(Path(java_binary()).resolve().parent / "keytool")
    trusted, keys = folder / "trusted.jks", folder / "keys.p12"
    subprocess.run(
        [keytool, "-importcert", "-noprompt", "-alias", "authority", "-file", str(certificates.trust_store),
         "-keystore", str(trusted), "-storetype", "JKS", "-storepass", STORE_SECRET], check=True, capture_output=True,
    )  # fmt: skip
    pem = certificates.user_key_store(user).read_bytes()
    key, (certificate, *chain) = load_pem_private_key(pem, password=None), load_pem_x509_certificates(pem)
    assert isinstance(key, RSAPrivateKey | EllipticCurvePrivateKey)
    keys.write_bytes(
        serialize_key_and_certificates(
            user.encode(), key, certificate, chain, BestAvailableEncryption(STORE_SECRET.encode())
        )
    )
    return trusted, keys


def certificates_in(pem: str) -> str:
    return pem[pem.index("-----BEGIN CERTIFICATE") :]


def ways_in(cluster: KafkaCluster, folder: Path, token_url: str) -> dict[str, tuple[Listener, dict[str, str]]]:
    """Client properties of every kind that Kafka's Java clients know for TLS and SASL, by name."""
    certificates = cluster.certificates
    assert certificates is not None
    trusted, keys = java_stores(folder, certificates, "admin")
    key_store = certificates.user_key_store("admin").read_text()
    java_trust = {"ssl.truststore.location": str(trusted), "ssl.truststore.type": "JKS",
                  "ssl.truststore.password": STORE_SECRET}  # fmt: skip
    in_line = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": certificates.trust_store.read_text()}

    def sasl(mechanism: str) -> dict[str, str]:
        found = cluster.client_properties(Listener.SASL_SSL, mechanism=mechanism)
        return {name: value for name, value in found.items() if not name.startswith("ssl.")}

    bearer = {
        "sasl.login.callback.handler.class": FROM_ENDPOINT[0],
        "sasl.oauthbearer.token.endpoint.url": token_url,
        "sasl.jaas.config": f'{OAUTH_MODULE} required clientId="us" clientSecret="{CLIENT_SECRET}" scope="admin";',
    }
    return {
        "bearer-token": (Listener.SASL_SSL, sasl("OAUTHBEARER") | java_trust | bearer),
        "scram-256-pem": (Listener.SASL_SSL, cluster.client_properties(Listener.SASL_SSL, mechanism="SCRAM-SHA-256")),
        "scram-512-jks": (Listener.SASL_SSL, sasl("SCRAM-SHA-512") | java_trust),
        "plain-in-line": (Listener.SASL_SSL, sasl("PLAIN") | in_line),
        "certificate-pem": (Listener.SSL, cluster.client_properties(Listener.SSL)),
        "certificate-pkcs12": (Listener.SSL, {
            "security.protocol": "SSL", **java_trust, "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(keys), "ssl.keystore.password": STORE_SECRET,
            "ssl.key.password": STORE_SECRET,
        }),
        "certificate-in-line": (Listener.SSL, {
            "security.protocol": "SSL", **in_line, "ssl.keystore.type": "PEM",
            "ssl.keystore.key": key_store[: key_store.index("-----BEGIN CERTIFICATE")],
            "ssl.keystore.certificate.chain": certificates_in(key_store),
        }),
    }  # fmt: skip


@pytest.fixture
def issuing(kafka_secure: KafkaCluster) -> Iterator[TokenServer]:
    """A token endpoint that the brokers believe."""
    assert kafka_secure.issuer is not None
    with closing(TokenServer(granted(kafka_secure.issuer.token(lifetime_s=3600), expires_in=3600))) as server:
        yield server


_EACH = """
import json, sys
from pathlib import Path
from kreassign import MetricStream, SparkOptions, stream_metrics

for bootstrap, topic, jars, properties, data in json.loads(sys.argv[1]):
    source = MetricStream(bootstrap, topic, "c", jars=Path(jars), command_config=Path(properties))
    print(data, stream_metrics(source, Path(data), SparkOptions("local[2]"), once=True))
"""
_NOTE_ALL = """\
spark.eventLog.enabled true
spark.eventLog.dir {events}
spark.eventLog.compress false
spark.ui.enabled true
spark.sql.planChangeLog.level WARN
"""


def test_a_topic_is_streamed_with_every_security_and_no_leaked_secret(
    kafka_secure: KafkaCluster, topic_name: str, tmp_path: Path, issuing: TokenServer
) -> None:
    kafka_secure.create_topic(topic_name, [[0], [1]])
    send(kafka_secure.bootstrap_servers, topic_name, range(50))
    secret, told = tmp_path / "secret", tmp_path / "told"
    for folder in (secret, told / "events", told / "conf"):
        folder.mkdir(parents=True)
    (told / "conf" / "spark-defaults.conf").write_text(_NOTE_ALL.format(events=told / "events"))
    tasks = []
    for name, (listener, properties) in ways_in(kafka_secure, secret, issuing.url).items():
        file = secret / f"{name}.properties"
        with file.open("w", encoding="iso-8859-1") as stream:
            javaproperties.dump(properties, stream)
        tasks.append(
            (kafka_secure.bootstrap(listener), topic_name, str(spark_kafka_jars()), str(file), str(told / name))
        )
    group = ProcessGroup()
    command = ["env", f"SPARK_CONF_DIR={told / 'conf'}", sys.executable, "-c", _EACH, json.dumps(tasks)]
    finished = group.run(command, timeout_s=START_S * 2)
    group.close()
    assert finished.exit_code == 0, finished.stderr
    for *_, data in tasks:
        assert values(Path(data)) == list(range(50)), data

    key = javaproperties.loads((secret / "certificate-in-line.properties").read_text())["ssl.keystore.key"]
    line = key.splitlines()[2]
    assert base64.b64decode(line), "a line of the key"
    assert len(issuing.asked) > 1, "the token of our client, and those of Kafka's own"
    token = json.loads(issuing.reply.body)["access_token"] if isinstance(issuing.reply, Reply) else ""
    secrets = [word.encode() for word in (USERS["admin"], STORE_SECRET, CLIENT_SECRET, token, line)]
    written = [file for file in told.rglob("*") if file.is_file()]
    for part in (b"physicalPlanDescription", b"StreamingRelation", b"kafka.bootstrap.servers"):
        assert any(part in file.read_bytes() for file in written), "plans are among what is searched"
    found = [(file, word) for file in written for word in secrets if word in file.read_bytes()]
    assert not found, "neither Spark's log, its plans nor the state of the stream is to hold it"
    assert not [word for word in secrets if word.decode() in finished.stdout + finished.stderr]
