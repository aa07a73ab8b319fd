import logging
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.admin import Address, ClientSettings, SecurityProtocol, client_settings, read_properties
from kreassign.admin.properties import addresses_of
from kreassign.admin.settings import Sasl, Secret, Tls
from kreassign.errors import InputError
from tests.admin.test_pem import CERTIFICATE, KEY
from tests.logs import Logged

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECRETS = ("pa55-sasl", "pa55-key", "pa55-store", "S0VZ")


def settings(**properties: str) -> ClientSettings:
    """Settings from properties; an underscore stands for a dot."""
    return client_settings({key.replace("_", "."): value for key, value in properties.items()}, bootstrap_servers="b")


def sasl(jaas: str, mechanism: str = "PLAIN") -> Sasl:
    found = settings(security_protocol="SASL_SSL", sasl_mechanism=mechanism, sasl_jaas_config=jaas).sasl
    assert found is not None
    return found


def tls(**properties: str) -> Tls:
    return settings(security_protocol="SSL", **properties).tls


# Reading the file


def test_a_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_bytes(
        b"# a comment\n! another\nsecurity.protocol = SASL_SSL\nclient.id: caf\xe9\nother  caf\\u00e9\n"
        b"sasl.jaas.config=a \\\n    b\nempty=\nssl.keystore.key=one\\ntwo\n"
    )
    assert read_properties(file) == {
        "security.protocol": "SASL_SSL",
        "client.id": "café",
        "other": "café",
        "sasl.jaas.config": "a b",
        "empty": "",
        "ssl.keystore.key": "one\ntwo",
    }


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the properties file .*absent.properties: No such file"):
        read_properties(tmp_path / "absent.properties")
    with pytest.raises(InputError, match="Is a directory"):
        read_properties(tmp_path)


@pytest.mark.parametrize(("content", "said"), [
    (b"\xef\xbb\xbfsecurity.protocol=SSL", "begins with a byte order mark, which Java takes for a part of the first"),
    ("security.protocol=SSL".encode("utf-16"), "is not a properties file: it is UTF-16, as `>` writes it"),
    ("security.protocol=SSL".encode("utf-16-be"), "is not a properties file: it is UTF-16"),
    (b"PK\x03\x04", "is not a properties file: it is a ZIP archive"),
    (b'\n{"security.protocol": "SSL"}', "is not a properties file: it is JSON. Write lines like security.protocol=SSL"),
])  # fmt: skip
def test_another_encoding_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "client.properties").write_bytes(content)
    with pytest.raises(InputError, match=rf"client\.properties {said}"):
        read_properties(tmp_path / "client.properties")


def test_a_broken_escape_is_named_without_its_text(tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("password=\\upa55")
    with pytest.raises(InputError, match=r"malformed .u escape") as refused:
        read_properties(tmp_path / "client.properties")
    assert "pa55" not in str(refused.value)


# Addresses, names and numbers


def test_without_any_property_the_defaults_are_kafkas() -> None:
    assert settings() == ClientSettings(
        bootstrap_servers=(Address("b", 9092),),
        client_id="kreassign",
        security_protocol=SecurityProtocol.PLAINTEXT,
        request_timeout_ms=30_000,
        api_timeout_ms=60_000,
        connect_timeout_ms=10_000,
        retry_backoff_ms=100,
    )


def test_settings_made_without_properties_have_the_same_defaults() -> None:
    assert ClientSettings(bootstrap_servers=(Address("b", 9092),)) == settings()


def test_what_the_caller_gives_wins_over_the_addresses_in_the_file() -> None:
    properties = {"bootstrap.servers": "file:1"}
    assert client_settings(properties).bootstrap_servers == (Address("file", 1),)
    assert client_settings(properties, bootstrap_servers="caller:2").bootstrap_servers == (Address("caller", 2),)
    given_controllers = client_settings(properties, bootstrap_controllers="caller:2")
    assert given_controllers.bootstrap_servers == ()
    assert given_controllers.bootstrap_controllers == (Address("caller", 2),)


def test_controllers_may_be_named_in_the_file() -> None:
    assert client_settings({"bootstrap.controllers": "c:1"}).bootstrap_controllers == (Address("c", 1),)


def test_no_address_anywhere_is_refused() -> None:
    with pytest.raises(InputError, match="specify addresses"):
        client_settings()


def test_the_file_names_the_client() -> None:
    assert settings(client_id="ours").client_id == "ours"
    assert client_settings(bootstrap_servers="b", client_id="caller").client_id == "caller"


@pytest.mark.parametrize(("key", "field"), [
    ("request.timeout.ms", "request_timeout_ms"),
    ("default.api.timeout.ms", "api_timeout_ms"),
    ("socket.connection.setup.timeout.ms", "connect_timeout_ms"),
    ("retry.backoff.ms", "retry_backoff_ms"),
])  # fmt: skip
def test_times_are_read_and_checked(key: str, field: str) -> None:
    assert getattr(client_settings({key: " 1234 "}, bootstrap_servers="b"), field) == 1234
    for wrong in ("", "-1", "1.5", "1s", "٣", "abc"):
        with pytest.raises(InputError, match=f"{key}=.* is not a number of milliseconds"):
            client_settings({key: wrong}, bootstrap_servers="b")


# Unknown keys


def test_blanks_around_values_are_trimmed_as_kafka_trims(tmp_path: Path) -> None:
    file = tmp_path / "trailing-space.properties"
    file.write_text(
        "bootstrap.servers=broker-1:9092, broker-2:9092 \n"
        "security.protocol=SASL_PLAINTEXT\t \n"
        "sasl.mechanism=PLAIN \n"
        "request.timeout.ms=20000 \n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="a" password=" b "; \n',
        encoding="iso-8859-1",
    )
    found = client_settings(read_properties(file))
    assert [str(address) for address in found.bootstrap_servers] == ["broker-1:9092", "broker-2:9092"]
    assert (found.security_protocol, found.request_timeout_ms) == (SecurityProtocol.SASL_PLAINTEXT, 20_000)
    assert isinstance(found.sasl, Sasl)
    assert found.sasl.password.reveal() == " b "


@pytest.mark.parametrize(("key", "name"), [
    ("sasl.mechanisms", "sasl.mechanism"),
    ("sasl.username", "sasl.jaas.config, as username"),
    ("ssl.ca.location", "ssl.truststore.location, with ssl.truststore.type=PEM"),
    ("sasl.kerberos.keytab", "sasl.jaas.config, as keyTab"),
    ("sasl.oauthbearer.method", "sasl.login.callback.handler.class"),
])  # fmt: skip
def test_a_name_of_librdkafka_is_answered_with_that_of_java(key: str, name: str) -> None:
    with pytest.raises(InputError, match=f"the property {key} is not supported .*; Java's clients call it {name}"):
        client_settings({"bootstrap.servers": "broker:9092", key: "x"})


def test_the_address_of_librdkafka_is_answered_with_the_name_of_java() -> None:
    with pytest.raises(InputError, match=r"metadata.broker.list is not used; Java's clients call it bootstrap.servers"):
        addresses_of("bootstrap.servers", {"metadata.broker.list": "broker:9092"})
    assert addresses_of("bootstrap.controllers", {"metadata.broker.list": "broker:9092"}) is None


def test_an_address_under_a_mistyped_key_is_noticed() -> None:
    with pytest.raises(InputError, match=r"no property bootstrap.server; did you mean bootstrap.servers\?"):
        addresses_of("bootstrap.servers", {"bootstrap.server": "broker:9092"})
    assert addresses_of("bootstrap.controllers", {"bootstrap.servers": "broker:9092"}) is None
    assert addresses_of("bootstrap.servers", {"request.timeout.ms": "5"}) is None


FALLEN = {"MIIEvQIBADAN": "", "gkqhkiG9w0BAQEF": "=", "pa55word": "", "-----END": "PRIVATE KEY-----"}
"""Parts of a secret, of which no message may show one."""


@pytest.mark.parametrize(("properties", "said"), [
    ({"request.timeouts.ms": "5"}, ["request.timeouts.ms (did you mean request.timeout.ms?)"]),
    ({"group.id": "pa55-x", "acks": "all", "metadata.max.age.ms": "5"}, ["acks, group.id"]),
    ({"acks": "all", **FALLEN}, ["acks, 4 whose names are not those of properties"]),
    ({"socket.timeout.ms": "5"}, ["socket.timeout.ms (Java's clients call it request.timeout.ms)"]),
    ({"retries": "5", "ssl.protocol": "TLSv1.3", "client.id": "x", "security.protocol": "plaintext"}, []),
], ids=["mistyped", "unknown", "fallen out of a secret", "of librdkafka", "known"])  # fmt: skip
def test_unknown_keys_are_warned_of_in_one_line(properties: dict[str, str], said: list[str], logged: Logged) -> None:
    client_settings(properties, bootstrap_servers="b")
    assert [(record.levelno, record.getMessage()) for record in logged.warnings] == [
        (logging.WARNING, f"ignored unknown client properties: {one}") for one in said
    ]


@pytest.mark.parametrize(("key", "advice"), [
    ("sasl.login.callback.handler.klass", "did you mean sasl.login.callback.handler.class"),
    ("ssl.truststore.certifcates", "did you mean ssl.truststore.certificates or "),
    ("security.protocl", "did you mean security.protocol?"),
    ("ssl.ca.location", "Java's clients call it "),
    ("ssl.of.my.own", "remove it. "),
])  # fmt: skip
def test_what_bears_on_security_is_refused_rather_than_ignored(key: str, advice: str) -> None:
    said = f"the property {key} is not supported and ignoring it could weaken security; {advice}"
    with pytest.raises(InputError, match=re.escape(said)):
        client_settings({key: "pa55-x"}, bootstrap_servers="b")


# SASL


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_credentials_come_from_the_login_module(mechanism: str) -> None:
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    jaas = f'{module} required username="alice" password="pa55-sasl";'
    assert sasl(jaas, mechanism) == Sasl(mechanism, "alice", Secret("pa55-sasl"))


@pytest.mark.parametrize(("options", "password"), [
    ('username="alice" password="two words"', "two words"),
    ("username='alice' password='single'", "single"),
    ("username=alice password=bare", "bare"),
    ('username = "alice"\n  password\t=\t"spaced"', "spaced"),
    ('password="reversed" username="alice"', "reversed"),
    (r'username="alice" password="a\"b"', 'a"b'),
    (r'username="alice" password="a\\b"', r"a\b"),
    ('username="alice" password="semi;colon;"', "semi;colon;"),
    ('username="alice" password="a=b=="', "a=b=="),
    ('username="alice" password="it\'s"', "it's"),
    ('username="alice" password=""', ""),
    ('username="alice" password="x" user_bob="y"', "x"),
    ('username="alice" password="grüße"', "grüße"),
])  # fmt: skip
@pytest.mark.parametrize("end", [";", " ; ", ""])
def test_quotes_blanks_and_escapes_are_read_as_java_does(options: str, password: str, end: str) -> None:
    assert sasl(f"  {PLAIN_MODULE} required {options}{end}") == Sasl("PLAIN", "alice", Secret(password))


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_any_password_survives_quoting(password: str) -> None:
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    assert sasl(f'{PLAIN_MODULE} required username="alice" password="{quoted}";').password == Secret(password)


@pytest.mark.parametrize("jaas", [
    "",
    "pa55-sasl",
    f"{PLAIN_MODULE} required;",
    f'{PLAIN_MODULE} required password="pa55-sasl";',
    f'{PLAIN_MODULE} required username="alice";',
    f'{PLAIN_MODULE} required username="alice" password="pa55-sasl',
    f'{PLAIN_MODULE} required username="alice" password=pa55-sasl=;',
    f'{PLAIN_MODULE} required username="alice" password="pa55-sasl"; Other required x="y";',
    'username="alice" password="pa55-sasl";',
    'password=pa55-sasl username="alice"',
])  # fmt: skip
def test_an_unusable_login_is_refused_without_showing_it(jaas: str) -> None:
    with pytest.raises(InputError, match=r"sasl.jaas.config must be one login module with username and password") as no:
        sasl(jaas)
    assert "pa55" not in str(no.value)


@given(st.text("\"'\\=; \n", max_size=6), st.integers(0, 120), st.integers(0, 120))
def test_no_way_of_breaking_a_login_brings_its_password_to_light(noise: str, at: int, cut: int) -> None:
    jaas = f'{PLAIN_MODULE} required username="alice" password="pa55-sasl";'
    broken = (jaas[:at] + noise + jaas[at:])[cut // 3 :]
    try:
        shown = repr(sasl(broken))
    except InputError as error:
        shown = str(error)
    # A password cut open by a quote is another one; none of it may be seen in the settings, whole or in part.
    assert "pa55-sasl" not in shown


@pytest.mark.parametrize("module", ["com.sun.security.auth.module.Krb5LoginModule", "OAuthBearerLoginModule"])
def test_other_login_modules_are_named(module: str) -> None:
    with pytest.raises(InputError, match=f"the login module {module} of sasl.jaas.config is not supported"):
        sasl(f'{module} required username="alice" password="pa55-sasl";')


@pytest.mark.parametrize("mechanism", ["DIGEST-MD5", "plain", ""])
def test_other_mechanisms_are_refused_with_those_that_work(mechanism: str) -> None:
    with pytest.raises(InputError, match="is not supported; use one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
        sasl(f'{PLAIN_MODULE} required username="a" password="b";', mechanism)


def test_no_mechanism_is_kerberos_as_in_kafka() -> None:
    said = "sasl.jaas.config must be one login module, for example .*Krb5LoginModule.* set it for PLAIN, SCRAM-SHA-256"
    with pytest.raises(InputError, match=said):
        settings(security_protocol="SASL_PLAINTEXT")


def test_a_request_that_may_take_longer_than_a_call_lengthens_the_call() -> None:
    """As in Kafka's client, so that the longer time is not cut short by a default."""
    assert settings(request_timeout_ms="90000").api_timeout_ms == 90_000
    assert settings(request_timeout_ms="50000").api_timeout_ms == 60_000
    assert settings(request_timeout_ms="90000", default_api_timeout_ms="70000").api_timeout_ms == 70_000


def test_credentials_of_a_protocol_without_sasl_are_not_read() -> None:
    assert settings(security_protocol="PLAINTEXT", sasl_mechanism="PLAIN", sasl_jaas_config="x").sasl is None


@pytest.mark.parametrize("name", ["SASL_SSL", "sasl_ssl"])
def test_the_protocol_may_be_written_small(name: str) -> None:
    jaas = f'{PLAIN_MODULE} required username="a" password="b";'
    found = settings(security_protocol=name, sasl_mechanism="PLAIN", sasl_jaas_config=jaas)
    assert found.security_protocol is SecurityProtocol.SASL_SSL


def test_an_unknown_protocol_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="TLS is not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"):
        settings(security_protocol="TLS")


# TLS


def test_pem_may_stand_in_the_file_itself() -> None:
    found = tls(
        ssl_truststore_certificates=CERTIFICATE,
        ssl_keystore_certificate_chain=CERTIFICATE.replace("\n", " "),
        ssl_keystore_key=KEY,
        ssl_key_password="pa55-key",
    )
    assert found == Tls(CERTIFICATE, CERTIFICATE, Secret(KEY), Secret("pa55-key"))


def test_pem_may_stand_in_files_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "trust.pem").write_text(f"# Főtanúsítvány\n{CERTIFICATE}\n", encoding="utf-8")
    (tmp_path / "key.pem").write_text(f"{KEY}\n{CERTIFICATE}\n")
    found = tls(
        ssl_truststore_location=str(tmp_path / "trust.pem"),
        ssl_truststore_type="PEM",
        ssl_keystore_location=str(tmp_path / "key.pem"),
        ssl_keystore_type="pem",
        ssl_keystore_password="pa55-store",
    )
    assert found == Tls(CERTIFICATE, CERTIFICATE, Secret(KEY))


def test_without_stores_the_system_is_trusted_and_nothing_presented() -> None:
    assert tls() == Tls(None, None, None, None, verifies_host_name=True)


def test_stores_of_a_protocol_without_tls_are_not_read() -> None:
    assert settings(ssl_truststore_location="/absent.jks").tls == Tls()


def test_the_check_of_the_host_name_is_switched_off_by_an_empty_value() -> None:
    assert not tls(ssl_endpoint_identification_algorithm=" ").verifies_host_name
    assert tls(ssl_endpoint_identification_algorithm="https").verifies_host_name


@pytest.mark.parametrize(("text", "versions"), [
    ("TLSv1.3", ("TLSv1.3",)),
    ("TLSv1.3, TLSv1.2", ("TLSv1.2", "TLSv1.3")),
    ("TLSv1.1,TLSv1.2", ("TLSv1.2",)),
])  # fmt: skip
def test_enabled_versions_are_kept_to(text: str, versions: tuple[str, ...]) -> None:
    assert tls(ssl_enabled_protocols=text).versions == versions


def test_versions_that_are_no_longer_safe_are_refused() -> None:
    with pytest.raises(InputError, match=r"ssl.enabled.protocols=TLSv1.1 names none of TLSv1.2, TLSv1.3"):
        tls(ssl_enabled_protocols="TLSv1.1")


@pytest.mark.parametrize("missing", ["ssl.keystore.key", "ssl.keystore.certificate.chain"])
def test_key_and_chain_go_together(missing: str) -> None:
    both = {"ssl.keystore.key": KEY, "ssl.keystore.certificate.chain": CERTIFICATE, "security.protocol": "SSL"}
    del both[missing]
    with pytest.raises(InputError, match="go together; one of them is missing"):
        client_settings(both, bootstrap_servers="b")


@pytest.mark.parametrize(("properties", "words"), [
    ({"ssl_truststore_certificates": KEY}, "ssl.truststore.certificates holds no certificate in PEM form"),
    ({"ssl_keystore_key": "S0VZ", "ssl_keystore_certificate_chain": CERTIFICATE}, "holds no private key"),
    ({"ssl_keystore_key": KEY, "ssl_keystore_certificate_chain": KEY}, "the key store holds no certificate"),
])  # fmt: skip
def test_a_store_without_what_it_is_for_is_refused_without_showing_it(properties: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        tls(**properties)
    assert "S0VZ" not in str(refused.value)


def test_a_missing_store_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read ssl.truststore.location .*absent.pem: No such file"):
        tls(ssl_truststore_location=str(tmp_path / "absent.pem"), ssl_truststore_type="PEM")


# Secrets


def test_no_secret_is_shown_by_settings_or_in_the_log(tmp_path: Path, logged: Logged) -> None:
    (tmp_path / "key.pem").write_text(f"{KEY}\n{CERTIFICATE}\n")
    found = settings(
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        sasl_jaas_config=f'{PLAIN_MODULE} required username="alice" password="pa55-sasl";',
        ssl_keystore_location=str(tmp_path / "key.pem"),
        ssl_keystore_type="PEM",
        ssl_keystore_password="pa55-store",
        ssl_key_password="pa55-key",
        ssl_truststore_password="pa55-store",
        password="pa55-store",
    )
    shown = f"{found} {found!r} {found.sasl} {found.tls!r} {logged.text}"
    assert not [secret for secret in SECRETS if secret in shown]
    assert "alice" in shown
    assert "ignored unknown client properties: password" in logged.text
