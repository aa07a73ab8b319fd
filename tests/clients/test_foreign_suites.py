"""The guide's list of foreign suites: what is told of a run, and what the list says. `make test-clients` runs them."""

from __future__ import annotations

import tarfile
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.clients.foreign_suites import SUITES, admin_tests, ends_in_go, ends_in_junit
from tests.clients.known import FAILS_ON_KAFKA_TOO, LEFT_OUT, REFUSED_AT_ONCE, WITHOUT_TESTS
from tests.clients.suite_table import GUIDE, NOT_RUN, End, Ended, Row, recorded, side_by_side, suite_table, surprises

PASSED, FAILED, MISSED = End
SUITE, QUOTAS, AUTHORIZER = "Sarama", "TestFuncAdminQuotas", "test_create_describe_delete_acls"


def ended(test: str, on_kafka: End, on_twin: End, seconds: float = 0.1) -> list[str]:
    """Lines about a test that ended so."""
    suite = next((suite for suite, reasons in LEFT_OUT.items() if test in reasons), SUITE)
    return list(surprises(Row(suite, test, on_kafka, Ended(on_twin, seconds))))


def test_the_guide_lists_what_its_rows_and_the_reasons_make() -> None:
    page = GUIDE.read_text(encoding="utf-8")
    rows = recorded(page)
    assert suite_table(rows) in page, suite_table(rows)
    assert {row.suite for row in rows} == {suite.name for suite in SUITES} == LEFT_OUT.keys()


def test_the_guide_leaves_nothing_out_without_a_reason() -> None:
    rows = recorded(GUIDE.read_text(encoding="utf-8"))
    listed = {(row.suite, row.test) for row in rows if row.on_twin.end is FAILED}
    assert listed == {(suite, test) for suite, reasons in LEFT_OUT.items() for test in reasons}


@pytest.mark.parametrize("on_twin", [FAILED, MISSED])
def test_a_test_that_only_kafka_passes_needs_a_reason(on_twin: End) -> None:
    assert ended("TestFuncAdminNew", PASSED, on_twin)
    assert ended(QUOTAS, PASSED, FAILED) == []


def test_a_test_that_fails_on_kafka_too_needs_no_reason() -> None:
    assert ended("TestFuncAdminNew", FAILED, FAILED) == []


@pytest.mark.parametrize(
    ("test", "on_kafka", "on_twin", "seconds", "told"),
    [
        ("TestFuncAdminNew", PASSED, FAILED, 0.1, "passed on Kafka, failed on the twin, for no reason in known.py"),
        (QUOTAS, PASSED, PASSED, 0.1, "passed on the twin, though it is left out: sets quotas"),
        (QUOTAS, PASSED, FAILED, 61.0, "took 61 s on the twin, which refuses at once: sets quotas"),
        (AUTHORIZER, PASSED, FAILED, 0.1, "passed on Kafka, which does not have what it is left out for: needs an aut"),
        ("TestFuncAdminNew", MISSED, PASSED, 0.1, "was not run on Kafka"),
        (QUOTAS, MISSED, MISSED, 0.1, "was not run on Kafka and on the twin"),
    ],
)
def test_an_end_that_no_reason_explains_is_told(
    test: str, on_kafka: End, on_twin: End, seconds: float, told: str
) -> None:
    (sentence,) = ended(test, on_kafka, on_twin, seconds)
    assert sentence.startswith(test)
    assert told in sentence


def test_ends_that_are_explained_are_not_told() -> None:
    assert ended("TestFuncAdminNew", PASSED, PASSED, 61.0) == []
    assert ended(AUTHORIZER, FAILED, FAILED) == ended(AUTHORIZER, MISSED, MISSED) == []


def test_a_test_that_is_gone_keeps_its_row() -> None:
    rows = side_by_side(SUITE, ["TestFuncAdminGone"], {}, {"TestFuncAdminNew": Ended(PASSED, 1.0)})
    assert [row for row in rows if row.test not in LEFT_OUT[SUITE]] == [
        Row(SUITE, "TestFuncAdminGone", MISSED, NOT_RUN), Row(SUITE, "TestFuncAdminNew", MISSED, Ended(PASSED, 1.0))
    ]  # fmt: skip
    assert {row.test for row in rows} >= LEFT_OUT[SUITE].keys()


def test_a_list_is_read_as_it_was_written() -> None:
    rows = (
        Row(SUITE, QUOTAS, PASSED, Ended(FAILED)), Row(SUITE, "TestFuncAdminNew", FAILED, NOT_RUN),
        Row(SUITE, "TestFuncClientMetadata", MISSED, Ended(PASSED)),
    )  # fmt: skip
    assert recorded(suite_table(rows)) == rows


def test_every_client_without_tests_of_its_own_is_listed() -> None:
    table = suite_table(())
    assert all(f"| {client} | none | not run | not run: {why} |" in table for client, why in WITHOUT_TESTS.items())


def test_each_reason_is_of_one_kind() -> None:
    assert not FAILS_ON_KAFKA_TOO & REFUSED_AT_ONCE
    reasons = {reason for left_out in LEFT_OUT.values() for reason in left_out.values()}
    assert reasons >= FAILS_ON_KAFKA_TOO | REFUSED_AT_ONCE


def test_ends_are_read_from_what_go_prints() -> None:
    shown = "=== RUN   TestFuncAdminQuotas\n--- FAIL: TestFuncAdminQuotas (0.52s)\n--- SKIP: TestFuncB (0.00s)\nPASS\n"
    assert ends_in_go(shown) == {QUOTAS: Ended(FAILED, 0.52), "TestFuncB": Ended(MISSED, 0.0)}


def test_ends_are_read_from_the_report_of_pytest() -> None:
    cases = ("/>", "><failure/></testcase>", "><error/></testcase>", "><skipped/></testcase>")
    report = "".join(f'<testcase name="test_{number}" time="1.5"{case}' for number, case in enumerate(cases))
    ends = ends_in_junit(ET.fromstring(f"<testsuite>{report}</testsuite>"))
    assert ends == {
        "test_0": Ended(PASSED, 1.5), "test_1": Ended(FAILED, 1.5), "test_2": Ended(FAILED, 1.5),
        "test_3": Ended(MISSED, 1.5),
    }  # fmt: skip


def test_tests_of_an_admin_client_are_found_in_a_package(tmp_path: Path) -> None:
    files = {
        "package/src/admin/__tests__/createTopics.spec.js": "const createAdmin = require('../index')",
        "package/src/retry/defaults.test.js": "expect(retry)",
        "package/src/admin/index.js": "module.exports = admin",
        "client-1.0/tests/test_Admin.py": "AdminClient",
        "client-1.0/src/latest.py": "AdminClient",
    }
    with tarfile.open(tmp_path / "package.tgz", "w:gz") as archive:
        for name, text in files.items():
            (tmp_path / "file").write_text(text)
            archive.add(tmp_path / "file", name)
    assert admin_tests(tmp_path / "package.tgz") == (
        "package/src/admin/__tests__/createTopics.spec.js",
        "client-1.0/tests/test_Admin.py",
    )
