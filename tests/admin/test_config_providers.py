"""References in a properties file, as Kafka's clients resolve them (KIP-297); none is taken for a password."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.admin import client_settings
from kreassign.admin.properties import PROVIDER_CLASSES, resolve_references
from kreassign.admin.settings import Secret
from kreassign.errors import InputError

ENVIRONMENT = {"KAFKA_PASSWORD": "pa55-env", "OTHER": "${file:/etc/passwd:root}"}


def resolved(properties: dict[str, str], environment: dict[str, str] | None = None) -> dict[str, str]:
    return resolve_references(properties, environment).properties


def declared(**others: str) -> dict[str, str]:
    """A file that declares Kafka's three providers; an underscore stands for a dot."""
    classes = {f"config.providers.{name}.class": class_name for name, class_name in PROVIDER_CLASSES.items()}
    return {
        "config.providers": "env, file,dir",
        **classes,
        **{key.replace("_", "."): text for key, text in others.items()},
    }


def refusal(properties: dict[str, str]) -> str:
    with pytest.raises(InputError) as refused:
        resolved(properties, ENVIRONMENT)
    assert "pa55" not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
    return str(refused.value)


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    (tmp_path / "secrets.properties").write_text("sasl.password = pa55-fïle\nempty=\n", encoding="utf-8")
    (tmp_path / "password").write_text("pa55-dir", encoding="utf-8")
    return tmp_path


# What is found


def test_each_of_kafkas_providers_is_asked(secrets: Path) -> None:
    found = resolved(
        declared(
            a="${env:KAFKA_PASSWORD}",
            b=f"${{file:{secrets}/secrets.properties:sasl.password}}",
            c=f"${{dir:{secrets}:password}}",
        ),
        ENVIRONMENT,
    )
    assert (found["a"], found["b"], found["c"]) == ("pa55-env", "pa55-fïle", "pa55-dir")


def test_references_stand_in_the_middle_of_a_value_and_more_than_once() -> None:
    found = resolved(declared(a='user="x" password="${env:KAFKA_PASSWORD}" ${env:KAFKA_PASSWORD};'), ENVIRONMENT)
    assert found["a"] == 'user="x" password="pa55-env" pa55-env;'


def test_what_is_found_is_not_searched_again() -> None:
    assert resolved(declared(a="${env:OTHER}"), ENVIRONMENT)["a"] == "${file:/etc/passwd:root}"


def test_a_provider_may_have_any_name() -> None:
    properties = {
        "config.providers": "vault",
        "config.providers.vault.class": PROVIDER_CLASSES["env"],
        "a": "${vault:OTHER}",
    }
    assert resolved(properties, ENVIRONMENT)["a"].startswith("${file")


def test_an_empty_value_is_a_value(secrets: Path) -> None:
    assert resolved(declared(a=f"${{file:{secrets}/secrets.properties:empty}}"))["a"] == ""


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=20).filter(lambda text: "${" not in text), max_size=5))
def test_what_has_no_reference_stays_as_it_is(properties: dict[str, str]) -> None:
    assert resolved({**properties, "config.providers": ""}) == {**properties, "config.providers": ""}


def test_settings_are_made_of_what_was_found(secrets: Path) -> None:
    reference = f"${{file:{secrets}/secrets.properties:sasl.password}}"
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="{reference}";'
    properties = declared(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_jaas_config=login)
    settings = client_settings(properties, bootstrap_servers="b")
    assert getattr(settings.sasl, "password", None) == Secret("pa55-fïle")
    assert "pa55" not in repr(settings)


def test_a_reference_of_a_property_that_is_not_heard_matters_to_nobody() -> None:
    assert client_settings({"value.serializer": "${vault:x:y}", "acks": "${file:/absent:x}"}, bootstrap_servers="b")


@pytest.mark.parametrize("key", ["request.timeout.ms", "security.protocol", "client.id"])
def test_what_was_kept_elsewhere_is_not_shown_where_it_is_wrong(key: str, secrets: Path) -> None:
    properties = declared() | {key: f"${{file:{secrets}/secrets.properties:sasl.password}}"}
    try:
        shown = f"{client_settings(properties | {'bootstrap.servers': 'b'}).tls!r}"
    except InputError as error:
        shown = "".join(traceback.format_exception(error))
    assert "pa55" not in shown


@pytest.mark.parametrize(
    "secret",
    [
        *("pa55-word\n", " \tpa55-word ", "pa55" * 20, "pa55" * 50_000, "pa55'\\\n\"x", "pa55\tü" * 20),
        *("pa55'" * 20, f"""pa55\\'{"pa55" * 20}\""""),
    ],
    ids=["line", "blanks", "long", "endless", "quotes", "escapes", "apostrophes", "early and late quote"],
)
@pytest.mark.parametrize("before", ["", '"'], ids=["alone", "after a quote"])
@pytest.mark.parametrize(
    "key", ["request.timeout.ms", "security.protocol", "sasl.mechanism", "ssl.truststore.type", "ssl.enabled.protocols"]
)
def test_no_form_of_what_was_kept_elsewhere_is_shown(key: str, before: str, secret: str, tmp_path: Path) -> None:
    """Values are trimmed, quoted and shortened before they are shown as wrong; files of one value end a line."""
    (tmp_path / "password").write_text(secret, encoding="utf-8")
    protocol = "SSL" if key.startswith("ssl.") else "SASL_SSL"
    properties = declared(bootstrap_servers="b", security_protocol=protocol, sasl_jaas_config="x")
    with pytest.raises(InputError) as refused:
        client_settings(properties | {key: f"{before}${{dir:{tmp_path}:password}}"})
    assert "[hidden]" in str(refused.value)
    assert "pa55" not in "".join(traceback.format_exception(refused.value)).lower()


def test_paths_and_addresses_are_shown_wherever_they_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KREASSIGN_DIR", "/absent-dir")
    with pytest.raises(InputError, match=r"cannot read ssl.truststore.location /absent-dir/trust.jks: No such file"):
        client_settings(declared(security_protocol="SSL", ssl_truststore_location="${env:KREASSIGN_DIR}/trust.jks"))


# What leads nowhere


@pytest.mark.parametrize("name", PROVIDER_CLASSES)
def test_an_undeclared_provider_is_refused_with_the_lines_to_add(name: str) -> None:
    said = refusal({"sasl.jaas.config": f"${{{name}:x:y}}"})
    line = f"config.providers.{name}.class={PROVIDER_CLASSES[name]}"
    assert f"sasl.jaas.config has a reference, but config.providers does not declare {name!r}: add" in said
    assert line in said


def test_the_lines_to_add_keep_the_providers_that_are_declared() -> None:
    properties = {"config.providers": "env", "config.providers.env.class": PROVIDER_CLASSES["env"], "a": "${file:/x:y}"}
    assert "add config.providers=env,file and" in refusal(properties)


def test_a_password_that_looks_like_a_reference_is_not_shown() -> None:
    said = refusal(declared(a="${pa55:pa55-word}"))
    assert "a has a reference, but config.providers does not declare its provider" in said
    assert "kept in a file and referred to" in said


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("${env:ABSENT}", "the environment has no variable ABSENT: export it first"),
        ("${env:/x:KAFKA_PASSWORD}", "a variable of the environment has no path"),
        ("${file:/absent/x:key}", "cannot be read: No such file or directory"),
        ("${file:HERE/secrets.properties:absent}", "that file has no key absent"),
        ("${file:HERE:key}", "cannot be read: Is a directory"),
        ("${file:key}", "without a path"),
        ("${dir:HERE:absent}", "cannot be read: No such file or directory"),
        ("${dir:HERE:../x}", "is the name of a file in the directory, not a path"),
        ("${file:/a\0b:c}", "cannot be read: the path cannot be one"),
    ],
)
def test_a_reference_that_leads_nowhere_says_where_it_stands_and_why(reference: str, words: str, secrets: Path) -> None:
    said = refusal(declared(ssl_key_password=reference.replace("HERE", str(secrets))))
    assert said.startswith("ssl.key.password refers to ${")
    assert words in said


@pytest.mark.parametrize("content", [b"key=\\u12", b"key=\xff"])
def test_a_file_that_is_no_properties_file_is_named_without_its_text(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(content)
    said = refusal(declared(a=f"${{file:{tmp_path}/x:key}}"))
    assert "which is not a properties file in UTF-8" in said


@pytest.mark.parametrize("class_name", ["", "com.example.VaultConfigProvider"])
def test_other_providers_are_refused_with_those_that_work(class_name: str) -> None:
    said = refusal({"config.providers": "vault", "config.providers.vault.class": class_name})
    assert "config.providers.vault.class is" in said
    assert "; use one of org.apache.kafka.common.config.provider.EnvVarConfigProvider" in said


# What a provider may not read


def test_only_allowed_paths_are_read_also_by_way_of_dots(secrets: Path) -> None:
    allowed = {"config.providers.file.param.allowed.paths": str(secrets / "inside")}
    for path in (f"{secrets}/secrets.properties", f"{secrets}/inside/../secrets.properties"):
        said = refusal(declared(a=f"${{file:{path}:sasl.password}}") | allowed)
        assert "config.providers.file.param.allowed.paths does not allow" in said
    allowed = {"config.providers.file.param.allowed.paths": f"/elsewhere,{secrets}"}
    assert resolved(declared(a=f"${{file:{secrets}/secrets.properties:empty}}") | allowed)["a"] == ""


def test_only_allowed_variables_are_read() -> None:
    allowed = {"config.providers.env.param.allowlist.pattern": "KAFKA_.*"}
    assert resolved(declared(a="${env:KAFKA_PASSWORD}") | allowed, ENVIRONMENT)["a"] == "pa55-env"
    assert "allowlist.pattern does not allow" in refusal(declared(a="${env:OTHER}") | allowed)


@pytest.mark.parametrize(("pattern", "why"), [
    ("(", "'(' is not a regular expression: missing )"),
    ("[A-Z_&&[^X]]+", "'[A-Z_&&[^X]]+' has a set of characters within a set"),
])  # fmt: skip
def test_an_allowlist_that_is_refused_comes_with_the_reason(pattern: str, why: str) -> None:
    refused = refusal(declared() | {"config.providers.env.param.allowlist.pattern": pattern})
    assert f"config.providers.env.param.allowlist.pattern: {why}" in refused
