"""Everything that is checked before a run begins."""
