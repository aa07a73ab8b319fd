"""What the controller decides: from a command and the metadata to records and an answer, changing nothing."""
