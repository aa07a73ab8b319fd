"""The command line: `kreassign` and the drop-in tools. Imports all other packages; none of them imports it."""
