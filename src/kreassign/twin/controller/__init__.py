"""Decisions of the controller: from a command and the metadata to records and an answer."""
