"""Contracts of import-linter that a graph of imports breaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from grimp import ImportGraph
from importlinter import Contract
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract

_TYPES: Mapping[str, type[Contract]] = {
    contract.type_name: contract
    for contract in (AcyclicSiblingsContract, ForbiddenContract, LayersContract, ProtectedContract)
}


def broken_contracts(graph: ImportGraph, contracts: Iterable[Mapping[str, Any]]) -> set[str]:
    """The ids of the contracts that the imports break. The graph is left as it was."""
    return {contract["id"] for contract in contracts if not _contract(contract).check(deepcopy(graph), False).kept}


def _contract(options: Mapping[str, Any]) -> Contract:
    session = {"root_packages": ["kreassign"]}
    return _TYPES[options["type"]](name=options["name"], session_options=session, contract_options={**options})
