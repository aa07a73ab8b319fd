"""The command line: `kreassign` and the drop-in tools. Joins all other packages; nothing imports it."""
