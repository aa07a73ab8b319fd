"""The facts of a plan beside the journal of its run: whoever reports the run has the bound and the reasons at hand.

A plan's own files are where the operator put them, and may be gone or replaced when the run is reported.
"""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

from kreassign.errors import MalformedPlan
from kreassign.executor.journal.paths import make_file, rename
from kreassign.model.amount import format_amount
from kreassign.model.plan_facts import PlanFacts
from kreassign.model.plan_facts_json import format_facts, parse_facts

KEPT_SUFFIX = ".facts.json.gz"
MOST_BYTES = 500_000_000
"""A move takes some hundred bytes, so this is more than a million of them."""


def kept_facts_path(journal: Path) -> Path:
    """Where the facts of a run are kept, by its journal: `RUN_ID.facts.json.gz` beside it."""
    return journal.with_suffix(KEPT_SUFFIX)


def keep_facts(journal: Path, facts: PlanFacts) -> None:
    """Keep the facts of the plan that a run executes, for the eyes of their owner only. Raises OSError."""
    kept = kept_facts_path(journal)
    unfinished = kept.with_name(f".{kept.name}.{os.getpid()}.unfinished")
    make_file(unfinished)
    unfinished.write_bytes(gzip.compress(format_facts(facts).encode()))
    rename(unfinished, kept)


def kept_facts(journal: Path, plan_id: str, *, most_bytes: int = MOST_BYTES) -> PlanFacts | None:
    """The facts that were kept for the run of this journal; None without, or where they are of another plan.

    Not more than `most_bytes` are ever decompressed. Raises MalformedPlan, which names the file.
    """
    kept = kept_facts_path(journal)
    if not kept.exists():
        return None
    try:
        with gzip.open(kept) as file:
            content = file.read(most_bytes + 1)
        found = None if len(content) > most_bytes else parse_facts(content.decode())
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise MalformedPlan(f"cannot be read: {error}", path=str(kept)) from error
    except MemoryError:
        raise MalformedPlan("needs more memory than there is", path=str(kept)) from None
    except MalformedPlan as error:
        raise error if error.path else MalformedPlan(str(error), path=str(kept)) from error
    if found is None:
        what = f"holds more than {format_amount(most_bytes, 'B')}, which no plan's facts do"
        raise MalformedPlan(what, path=str(kept))
    return found if found.plan_id == plan_id else None
