"""Requests that schemathesis makes of the OpenAPI document, good and bad: each answered as the document says."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from kreassign.web.api import openapi
from tests.web.conftest import Place
from tests.web.site import TOKEN

pytestmark = pytest.mark.thorough

CHECKS = (
    not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
    negative_data_rejection,
)  # fmt: skip
THERE = {"run_id": "run-1", "name": "plan.json"}
# The same requests each time: what a change breaks, it breaks for everybody.
BOUNDED = settings(
    max_examples=30, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
KINDS = [
    pytest.param(found.ok(), mode, id=f"{mode.value} {found.ok().label}")
    for found in schemathesis.openapi.from_dict(openapi()).get_all_operations()
    for mode in GenerationMode
    # Where a request is a path alone, whatever is sent is a name.
    if mode is GenerationMode.POSITIVE or found.ok().body or found.ok().query
]


@pytest.mark.parametrize(("operation", "mode"), KINDS)
def test_whatever_is_sent_is_answered_as_the_document_says(
    place: Place, operation: schemathesis.schemas.APIOperation, mode: GenerationMode
) -> None:
    known = {name: value for name, value in THERE.items() if f"{{{name}}}" in operation.path}
    before = sorted(path.name for path in place.plans.iterdir())
    made = operation.as_strategy(mode)
    if known:
        made = st.one_of(made, operation.as_strategy(mode, path_parameters=known))

    @BOUNDED
    @given(case=made, token=st.sampled_from([TOKEN, "wrong"]))
    def is_as_said(case: schemathesis.Case, token: str) -> None:
        answer = case.call(base_url=place.site.address, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        case.validate_response(answer, checks=CHECKS)
        assert token == TOKEN or case.method == "GET" or 400 <= answer.status_code < 500

    is_as_said()
    assert sorted(path.name for path in place.plans.iterdir()) == before, "nothing is approved by chance"
