"""Contents of an installation: complete, with licences, and none that asks users for more than credit."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from scripts import sbom
from scripts.audit import pins
from tests.checks.source import ROOT


@pytest.fixture(scope="module")
def found() -> dict[str, sbom.Component]:
    return sbom.components()


def test_all_that_an_installation_needs_is_listed_and_no_tool_of_the_tests(found: dict[str, sbom.Component]) -> None:
    assert next(iter(found)) == "kreassign"
    assert {"click", "kafka-python", "deltalake", "arro3-core", "numba", "llvmlite", "pyspark", "starlette"} <= set(
        found
    )
    assert not {"pytest", "hypothesis", "mypy", "crc32c", "playwright"} & set(found)
    assert all(one.version == version(name) for name, one in found.items() if one.registry == "pypi")


def test_the_script_of_the_pages_is_listed_with_its_version() -> None:
    parts = sbom.components(extras=())
    assert parts[sbom.PLOTLY].purl == "pkg:npm/plotly.js-cartesian-dist-min@4.1.1"
    assert sbom.PLOTLY in parts["kreassign"].needs


def test_an_extra_that_is_not_asked_for_is_not_listed() -> None:
    assert not {"pyspark", "starlette", "numba", "pyarrow", "deltalake"} & set(sbom.components(extras=()))


def test_what_is_needed_and_not_here_is_no_list_without_it() -> None:
    with pytest.raises(sbom.IncompleteError, match="kreassign needs gssapi, which is not installed here"):
        sbom.components(extras=("kerberos",))


def test_a_release_lists_the_versions_whose_hashes_it_locks(found: dict[str, sbom.Component]) -> None:
    locked = pins((ROOT / "locks" / "product.lock").read_text(encoding="utf-8"))
    listed = {name: one.version for name, one in found.items() if name != "kreassign" and one.registry == "pypi"}
    assert listed.items() <= locked.items()


def test_every_package_of_an_installation_has_a_permissive_licence(found: dict[str, sbom.Component]) -> None:
    unclear = sbom.without_permissive_licence(found.values())
    assert unclear == {}, "read its licence; if it is permissive, teach scripts/sbom.py its words"


def test_the_document_names_every_part_and_what_needs_it(found: dict[str, sbom.Component]) -> None:
    made = sbom.document(found)
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    listed = {entry["bom-ref"] for entry in made["components"]}
    assert len(listed) == len(found) - 1
    dependencies = {entry["ref"]: entry["dependsOn"] for entry in made["dependencies"]}
    assert found["arro3-core"].purl in dependencies[found["deltalake"].purl]
    assert all(set(needed) <= listed for needed in dependencies.values())


def test_the_same_installation_gives_the_same_document(found: dict[str, sbom.Component]) -> None:
    assert sbom.document(found) == sbom.document(sbom.components())
