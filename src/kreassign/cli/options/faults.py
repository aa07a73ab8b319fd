"""The faults that a twin injects, as options."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.group import option_group
from kreassign.cli.options.values import ReadBy, checked
from kreassign.operations.twin import faults_of

_OPTIONS = (
    click.option(
        "--fault",
        "texts",
        type=ReadBy("fault", checked(lambda text: faults_of((text,)))),
        multiple=True,
        metavar="KIND:…@AT[+LASTS]",
        help="Inject a fault, for example crash:2@60s+30s; may be repeated.  [default: none]",
    ),
    click.option(
        "--faults",
        "fault_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Load faults from a TOML file.  [default: none]",
    ),
)

fault_options = option_group("faults", _OPTIONS, faults_of)
"""Add `--fault` and `--faults`: keyword `faults: tuple[PlannedFault, ...]`."""
