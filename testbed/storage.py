"""Formatting the storage of KRaft nodes with Kafka's own tool, run once for a whole cluster."""

from __future__ import annotations

import base64
import re
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from testbed.errors import NodeFailed
from testbed.java import tool_command
from testbed.processes import ProcessGroup
from testbed.properties import Place

_META = "meta.properties"


def random_id() -> str:
    """An id as Kafka makes them: a random UUID in 22 characters, not beginning with a dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def format_template(
    group: ProcessGroup, version: str, controller: Place, template: Path, *, scram: Sequence[str] = ()
) -> None:
    """Run `StorageTool format` for one controller and put what it wrote into the folder `template`.

    `scram` are values of the tool's option --add-scram. NodeFailed, with what the tool wrote, if it refuses.
    """
    options = [word for value in scram for word in ("--add-scram", value)]
    arguments = ("format", "-t", random_id(), "-c", str(controller.config_file), *options)
    finished = group.run(tool_command(version, "kafka.tools.StorageTool", *arguments), timeout_s=120)
    if finished.exit_code:
        raise NodeFailed(f"formatting {controller.folder} failed:\n{finished.stdout}{finished.stderr}")
    controller.metadata_dir.rename(template)


def copy_format(template: Path, node: Place, log_dirs: Sequence[Path] = ()) -> None:
    """Give a node what the tool wrote, with its own node id and directory ids.

    Running the tool for each node would take longer than starting the cluster; its files differ in nothing else.
    """
    shutil.copytree(template, node.metadata_dir)
    meta = (template / _META).read_text()
    for directory in (node.metadata_dir, *log_dirs):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / _META).write_text(_with_own_ids(meta, node.node_id))


def _with_own_ids(meta: str, node_id: int) -> str:
    meta = re.sub(r"(?m)^node\.id=.*$", f"node.id={node_id}", meta)
    return re.sub(r"(?m)^directory\.id=.*$", f"directory.id={random_id()}", meta)
