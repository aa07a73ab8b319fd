"""The table of foreign suites: what is told of a run, and that the page has it. `make test-clients` runs them."""

from __future__ import annotations

import tarfile
from pathlib import Path

from tests.clients.foreign_suites import KAFKA_PYTHON, SARAMA, SUITES, Suite, admin_tests, suite_table, surprises
from tests.clients.programs import ROOT, Language

PAGE = ROOT / "docs" / "design" / "conformance.md"


def test_the_page_has_the_table_of_suites() -> None:
    assert suite_table() in PAGE.read_text(encoding="utf-8"), suite_table()


def test_no_test_both_passes_and_is_left_out() -> None:
    assert not [suite.name for suite in SUITES if set(suite.passes) & suite.left_out.keys()]


def test_each_test_that_ends_otherwise_is_told() -> None:
    suite = Suite("a client", Language.PYTHON, 1, ("test_a", "test_b"), {"test_c": "records", "test_d": "records"})
    as_told = {"test_a": True, "test_b": True, "test_c": False, "test_d": False}
    assert surprises(suite, as_told) == ()
    otherwise = {"test_a": False, "test_c": True, "test_d": False, "test_e": True}
    assert surprises(suite, otherwise) == (
        "test_a fails",
        "test_c passes, though it is left out",
        "test_b was not run",
        "test_e is not in the table",
    )


def test_reasons_name_what_the_twin_lacks_or_the_suite_needs() -> None:
    reasons = {*KAFKA_PYTHON.left_out.values(), *SARAMA.left_out.values()}
    assert all(reason.split()[0] in {"produces", "needs", "stops", "breaks", "sets"} for reason in reasons)


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
