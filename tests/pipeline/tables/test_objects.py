"""Journals in an object store, by the library of tables; here its store of files."""

from pathlib import Path

import pytest

from kreassign.errors import MirrorUnavailable
from kreassign.pipeline.tables.objects import ObjectPlace


def test_entries_are_stored_listed_read_and_taken_back(tmp_path: Path) -> None:
    place = ObjectPlace(tmp_path.as_uri())
    assert place.names("c/run") == []
    entries = {"c/run/0/1-a": b"x" * 500_000, "c/run/0/2-b": b""}
    for name, content in (*entries.items(), *entries.items()):  # an answer that got lost is followed by the same again
        place.put(name, content)
    assert {name: place.get(name) for name in entries} == entries
    assert (place.names("c"), place.names("c/run"), sorted(place.names("c/run/0"))) == (["run"], ["0"], ["1-a", "2-b"])
    place.remove("c/run/0/2-b")
    assert place.names("c/run/0") == ["1-a"]
    with pytest.raises(MirrorUnavailable, match="does not keep the journal"):
        place.get("c/run/0/2-b")
