"""Everything that is looked at before a run begins."""
