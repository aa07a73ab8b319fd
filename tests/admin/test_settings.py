import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.admin import Address, ClientSettings, SecurityProtocol
from kreassign.admin.settings import Sasl, Secret, Tls
from kreassign.errors import InputError

BROKER = (Address("broker-1", 9092),)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("broker-1:9093", "broker-1", 9093),
        ("broker-1", "broker-1", 9092),
        (" broker-1:9093 ", "broker-1", 9093),
        ("[::1]:9093", "::1", 9093),
        ("[::1]", "::1", 9092),
        ("[2001:db8:0:0:0:0:0:1]", "2001:db8:0:0:0:0:0:1", 9092),
        ("::1", "::1", 9092),
        ("127.0.0.1:1", "127.0.0.1", 1),
        ("127.0.0.1:65535", "127.0.0.1", 65535),
        ("SASL_SSL://broker-1.example:9093", "broker-1.example", 9093),
        ("9EXTERNAL-%.1://broker-1.example:9093", "broker-1.example", 9093),
        ("PLAINTEXT://[::1]:9092", "::1", 9092),
        (" ssl://broker ", "broker", 9092),
    ],
)
def test_an_address_is_read(text: str, host: str, port: int) -> None:
    assert Address.parse(text) == Address(host, port)


@pytest.mark.parametrize(
    "text",
    ["", ":9092", "SSL://", "://broker:9092", "broker:", "broker:x", "broker:0", "broker:65536", "broker:-1", "b:٣"],
)
def test_what_is_no_address_is_refused_with_the_form_it_should_have(text: str) -> None:
    with pytest.raises(InputError, match=r"is not an address.*; write host:port, for example broker-1:9092"):
        Address.parse(text)


def test_a_host_that_holds_colons_is_printed_in_brackets() -> None:
    assert [str(Address("::1", 9092)), str(Address("broker-1", 9092))] == ["[::1]:9092", "broker-1:9092"]


@given(st.from_regex(r"[a-z][a-z0-9.-]{0,20}", fullmatch=True) | st.ip_addresses().map(str), st.integers(1, 65535))
def test_an_address_is_read_back_from_its_own_text(host: str, port: int) -> None:
    assert Address.parse(str(Address(host, port))) == Address(host, port)


def test_a_list_of_addresses_may_have_blanks_and_a_comma_too_many() -> None:
    assert Address.parse_list("a:1, b:2,,c") == (Address("a", 1), Address("b", 2), Address("c", 9092))


@pytest.mark.parametrize("text", ["", " ", ",", " , "])
def test_a_list_without_any_address_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="no bootstrap address is given"):
        Address.parse_list(text)


@pytest.mark.parametrize("both", [{}, {"bootstrap_servers": BROKER, "bootstrap_controllers": BROKER}])
def test_exactly_one_kind_of_bootstrap_addresses_is_wanted(both: dict[str, tuple[Address, ...]]) -> None:
    with pytest.raises(InputError, match="exactly one of the two"):
        ClientSettings(**both)


def test_bootstrap_is_whichever_was_given() -> None:
    assert ClientSettings(bootstrap_servers=BROKER).bootstrap == BROKER
    assert ClientSettings(bootstrap_controllers=BROKER).bootstrap == BROKER


@pytest.mark.parametrize("protocol", [SecurityProtocol.SASL_SSL, SecurityProtocol.SASL_PLAINTEXT])
def test_sasl_needs_credentials(protocol: SecurityProtocol) -> None:
    with pytest.raises(InputError, match=f"security.protocol={protocol.value} needs credentials"):
        ClientSettings(bootstrap_servers=BROKER, security_protocol=protocol)


def test_each_protocol_knows_whether_it_is_tls_and_whether_it_is_sasl() -> None:
    assert [(protocol.value, protocol.uses_tls, protocol.uses_sasl) for protocol in SecurityProtocol] == [
        ("PLAINTEXT", False, False),
        ("SSL", True, False),
        ("SASL_PLAINTEXT", False, True),
        ("SASL_SSL", True, True),
    ]


def test_a_secret_is_shown_nowhere() -> None:
    secret = Secret("hunter2")
    settings = ClientSettings(
        bootstrap_servers=BROKER,
        security_protocol=SecurityProtocol.SASL_SSL,
        sasl=Sasl("PLAIN", "alice", secret),
        tls=Tls(certificate_chain="c", private_key=secret, key_password=secret),
    )
    shown = [f"{thing} {thing!r} {[thing]}" for thing in (secret, settings, settings.sasl, settings.tls)]
    assert "hunter2" not in "".join(shown)
    assert secret.reveal() == "hunter2"


def test_secrets_are_equal_by_what_they_hide() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
