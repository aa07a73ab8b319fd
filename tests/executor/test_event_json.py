from dataclasses import fields
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.executor.client_guard import ClientGuard, ClientQuery
from kreassign.executor.events import Event, StopRequested, ThrottleIntended
from kreassign.executor.journal.file import KINDS, event_from_json, event_to_json, kind_of
from kreassign.executor.throttle_ledger import ConfigKey, ConfigOverride
from kreassign.model import ConfigResource
from kreassign.model.cluster import ResourceType
from kreassign.model.pace import Cap, EndpointKind, Limit, Measure, Pace, PaceChange
from kreassign.model.text import LARGEST_AMOUNT, LARGEST_ID
from kreassign.model.throttle import AdaptiveThrottle, BrokerCapacity, BrokerRate, ThrottleRates
from tests.executor.run_events import OVERRIDES, WHOLE
from tests.model.test_odd_fields import ODD_JSON, with_odd_json

st.register_type_strategy(ConfigResource, st.builds(ConfigResource, st.sampled_from(ResourceType), st.text()))
st.register_type_strategy(float, st.floats(allow_nan=False))  # NaN is not equal to itself
RESERVES = st.floats(0, 1, exclude_max=True)
for kind, reserves in ((Pace, RESERVES), (PaceChange, st.none() | RESERVES)):
    any_fields = {one.name: ... for one in fields(kind)}
    st.register_type_strategy(kind, st.builds(kind, **(any_fields | {"disk_reserve": reserves})))
LIMITS = st.none() | st.integers(1)
IDS, RATES = st.integers(0, LARGEST_ID), st.integers(max_value=LARGEST_AMOUNT)
for checked, bounds in (
    (Cap, {"moves": LIMITS, "size_bytes": LIMITS}),
    (Limit, {"end": st.sampled_from(EndpointKind), "measure": st.sampled_from(Measure), "at_most": LIMITS}),
    (BrokerCapacity, {"broker": IDS, "bytes_per_s": RATES}),
    (AdaptiveThrottle, {"capacity_bytes_per_s": RATES, "per_broker": ..., "floor_bytes_per_s": st.none() | RATES}),
    (BrokerRate, {"broker": IDS, "bytes_per_s": st.none() | RATES}),
    (ThrottleRates, {"bytes_per_s": st.none() | RATES, "per_broker": ..., "adaptive": ...}),
):
    st.register_type_strategy(checked, st.builds(checked, **bounds))
QUERIES = st.lists(st.builds(ClientQuery, bound=st.floats(allow_nan=False)), min_size=1).map(tuple)
COMMANDS = st.lists(st.text(), min_size=1).map(tuple)
st.register_type_strategy(
    ClientGuard,
    st.builds(
        ClientGuard, command=COMMANDS, queries=st.just(()), url=st.none(), login_file=st.none(), ca_file=st.none()
    )
    | st.builds(ClientGuard, queries=QUERIES, url=st.just("https://prometheus:9090")),
)
EVENTS = st.one_of([st.from_type(kind) for kind in get_args(Event)])


@given(EVENTS)
def test_every_event_comes_back_as_it_was(event: Event) -> None:
    assert event_from_json(kind_of(event), event_to_json(event)) == event


@pytest.mark.parametrize("event", {type(event): event for event in WHOLE}.values(), ids=kind_of)
def test_any_odd_field_of_a_row_is_refused_or_means_something(
    event: Event,
) -> None:
    said = []
    for place, value, text in with_odd_json(event_to_json(event), ODD_JSON):
        try:
            event_from_json(kind_of(event), text)
        except ValueError as refusal:
            said.append((str(refusal), place, value))
    assert said
    assert [one for one in said if f"a {kind_of(event)} cannot be read" not in one[0]] == []


def test_the_text_of_an_event_is_stable() -> None:
    key = ConfigKey(ConfigResource.broker(1), "leader.replication.throttled.rate")
    assert event_to_json(ThrottleIntended(5, (ConfigOverride(key, None, "9"),))) == (
        '{"at_ms":5,"overrides":[{"key":[[4,"1"],"leader.replication.throttled.rate"],"before":null,"value":"9",'
        '"unconfirmed":[]}]}'
    )


def test_named_tuples_and_choices_keep_their_types() -> None:
    back = event_from_json("ThrottleIntended", event_to_json(ThrottleIntended(5, OVERRIDES)))
    assert isinstance(back, ThrottleIntended)
    assert type(back.overrides[0].key) is ConfigKey
    assert type(back.overrides[0].key.resource.type) is ResourceType


@pytest.mark.parametrize(("kind", "text"), [
    ("Nonsense", "{}"),
    ("StopRequested", "{"),
    ("StopRequested", "{}"),
    ("StopRequested", "[]"),
    ("StopRequested", '{"at_ms":"5"}'),
    ("StopRequested", '{"at_ms":true}'),
    ("StopRequested", '{"at_ms":5,"more":1}'),
    ("ThrottleIntended", '{"at_ms":5,"overrides":[{"key":[[3,"1"],"x"],"before":null,"value":"9","unconfirmed":[]}]}'),
])  # fmt: skip
def test_what_is_not_an_event_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match=kind):
        event_from_json(kind, text)


def test_fields_with_defaults_may_be_missing() -> None:
    assert event_from_json("StopRequested", '{"at_ms":5}') == StopRequested(5)
    assert kind_of(event_from_json("ThrottleSet", '{"at_ms":5}')) == "ThrottleSet"


def test_every_kind_has_its_own_name() -> None:
    assert set(KINDS) == {kind.__name__ for kind in get_args(Event)}
    assert {kind_of(event) for event in WHOLE} <= set(KINDS)
